/* SPDX-License-Identifier: MIT */
/*
 * home.h - files of the session's home, reached without trusting any of it
 *
 * Every path is relative to the home. The kernel resolves it beneath the
 * home's root, so no name leads out of the home.
 */
#ifndef JAIL_WALLS_HOME_H
#define JAIL_WALLS_HOME_H

#include "jail/base/io.h"
#include "jail/jail.h"

#include <limits.h>
#include <stdint.h>

struct err;

/* Most files that are written at the same time. */
#define HOME_TOKENS_MAX JAIL_MANY_MAX
/* Most entries in a listing. */
#define HOME_LIST_MAX 10000

/* A file that is being written, under a temporary name. */
struct home_upload {
	uint32_t token; /* 0: the slot is free */
	struct io_newfile file;
	char name[NAME_MAX + 1];
	mode_t mode;
};

struct home {
	int root; /* directory descriptor of the mount, owned */
	int own;  /* names that are not the session's: the root, and the mount
		   * points of what is shown below /home */
	uint32_t last_token;
	struct home_upload uploads[HOME_TOKENS_MAX];
};

/* Takes `root`, before any guest has seen it. */
void home_init(struct home *h, int root);

/* The same home for another process, which begins no file in it. */
void home_share(struct home *h, const struct home *of);

void home_fini(struct home *h);

/* Open a regular file for reading: descriptor, or -1 with e. */
int home_open(struct home *h, const char *path, struct err *e);

/* Begin, end and give up writing a file; see jail_home_create(). The descriptor
 * is borrowed until then. A file that cannot be committed is given up. */
int home_create(struct home *h, const char *path, mode_t mode, uint32_t *token,
	struct err *e);
int home_commit(struct home *h, const struct jail_end *end, struct err *e);
int home_abort(struct home *h, uint32_t token, struct err *e);

/* Make a directory, if there is none, and give it its mode and time. */
int home_mkdir(struct home *h, const char *path, const struct jail_end *end,
	struct err *e);

/* Remove a file, a link or a whole directory, however deep. */
int home_remove(struct home *h, const char *path, struct err *e);

/*
 * The entries (the caller frees them), one record each, unsorted, `n` bytes in
 * all; NULL with e:
 *	type SP mode SP bytes SP allocated SP mtime SP links SP path NUL
 * with the mode in octal and the time in nanoseconds.
 * Only the session's own entries are listed. *truncated is 1 when there were
 * more than HOME_LIST_MAX, or when a path was too long to be listed.
 */
char *home_list(struct home *h, size_t *n, int *truncated, struct err *e);

/* Bytes, and files of every kind, that the session uses. */
void home_usage(const struct home *h, int64_t *bytes, int *files);

#endif
