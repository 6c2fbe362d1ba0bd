/* SPDX-License-Identifier: MIT */
/*
 * hostfs.h - the host's files, as far as a session may touch them
 *
 * In an ordinary session the person may name any path. In a locked session a
 * path must lie beneath a directory that the configuration names: these roots
 * are opened at the start, and the kernel resolves every path beneath one of
 * them without following a link.
 */
#ifndef REPL_FILES_HOSTFS_H
#define REPL_FILES_HOSTFS_H

#include "jail/base/io.h"
#include "repl/config/config.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct err;
struct stat;

enum hostfs_use { HOSTFS_READ, HOSTFS_WRITE };

struct hostfs_root {
	const char *path; /* borrowed from the configuration */
	int fd;
};

/* Caller's storage. */
struct hostfs {
	bool locked;
	const char *home; /* what ~ stands for; borrowed, may be NULL */
	struct hostfs_root *roots[2];
	size_t n_roots[2]; /* by enum hostfs_use */
};

/* Open the roots of a locked session. A missing root is skipped and counts as
 * not configured. */
int hostfs_open(struct hostfs *h, const struct config *cfg, const char *home,
	struct err *e);
void hostfs_close(struct hostfs *h);

/* `path` with a leading ~ or ~/ replaced. Caller frees; NULL: no memory. */
char *hostfs_expand(const struct hostfs *h, const char *path);

/* Open a regular file for reading: descriptor, or -1 with e. Never waits for
 * the writer of a FIFO. */
int hostfs_open_file(const struct hostfs *h, const char *path, struct stat *st,
	struct err *e);

/* Open a directory: for HOSTFS_READ to list it, for HOSTFS_WRITE to make
 * files in it. Descriptor, or -1 with e. */
int hostfs_open_dir(const struct hostfs *h, enum hostfs_use use,
	const char *path, struct err *e);

/* Open beneath a directory that was opened so: descriptor, or -1 with errno. No
 * link leads out of that directory; without `links` none is followed at all,
 * nor is one in a locked session. */
int hostfs_open_beneath(const struct hostfs *h, int dir, const char *path,
	int flags, bool links);

/* What a file is that is no regular file: "is a FIFO, not a regular file". */
const char *hostfs_kind(mode_t mode);

/* The name of such a directory for a message: in a locked session the full
 * path. Caller frees; NULL: no memory. */
char *hostfs_place(
	const struct hostfs *h, enum hostfs_use use, const char *path);

/* Whether such a directory can be opened. */
bool hostfs_is_dir(
	const struct hostfs *h, enum hostfs_use use, const char *path);

/* Names that match a pattern (fnmatch(3), '*' never a leading dot, "**" any
 * number of directories), sorted, at most `max`. 0, also when there is none;
 * -1 with e. Free with strlist_fini(). */
int hostfs_glob(const struct hostfs *h, const char *pattern, size_t max,
	struct strlist *out, struct err *e);

/* Begin a new file in the directory `dir`. It gets the permissions of the file
 * `replaces` in that directory; with NULL those of `mode` that the umask
 * allows. */
int hostfs_create(struct io_newfile *f, int dir, mode_t mode,
	const char *replaces, struct err *e);

/* Give the file its name, as io_newfile_commit(); -1 with e. io_newfile_abort()
 * must follow either way. */
int hostfs_commit(
	struct io_newfile *f, const char *name, bool replace, struct err *e);

/* Whether `dir` has an entry of that name, link or not. */
bool hostfs_has(int dir, const char *name);

/* A name from the jail as a name on the host: controls, invisible characters
 * and invalid UTF-8 become '_'. 0; -1 when it cannot be a name ("..", empty,
 * too long, a slash in it). */
int hostfs_safe_name(const char *name, char out[static NAME_MAX + 1]);

#endif
