/* SPDX-License-Identifier: MIT */
/*
 * hostfs.h - the host's files, as far as a session may touch them
 *
 * In an ordinary session a path is the person's own business. In a locked one
 * it must lie beneath a directory that the configuration names: those are
 * opened at the start, and every path is then resolved beneath one of them by
 * the kernel, without following any link.
 */
#ifndef REPL_FILES_HOSTFS_H
#define REPL_FILES_HOSTFS_H

#include "repl/config/config.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct err;
struct newfile;
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

/* Names found on the host; owned. */
struct hostfs_names {
	char **v;
	size_t n;
	bool truncated;
};

/* Open the directories of a locked session. One that is missing is skipped
 * and counts as not configured. */
int hostfs_open(struct hostfs *h, const struct config *cfg, const char *home,
	struct err *e);
void hostfs_close(struct hostfs *h);

/* `path` with a leading ~ or ~/ replaced. Caller frees; NULL: no memory. */
char *hostfs_expand(const struct hostfs *h, const char *path);

/* Open a regular file for reading: descriptor, or -1 with e. Never waits, as
 * it would for a FIFO. */
int hostfs_open_file(const struct hostfs *h, const char *path, struct stat *st,
	struct err *e);

/* Open a directory: for HOSTFS_READ to list it, for HOSTFS_WRITE to make
 * files in it. Descriptor, or -1 with e. */
int hostfs_open_dir(const struct hostfs *h, enum hostfs_use use,
	const char *path, struct err *e);

/* What such a directory is called, where `path` does not say it all: in a
 * locked session the full path. Caller frees; NULL: no memory. */
char *hostfs_place(
	const struct hostfs *h, enum hostfs_use use, const char *path);

/* Whether such a directory can be opened. */
bool hostfs_is_dir(
	const struct hostfs *h, enum hostfs_use use, const char *path);

/* Names that match a pattern (fnmatch(3), '*' never a leading dot, "**" any
 * number of directories), sorted, at most `max`. Free with
 * hostfs_names_free(). 0 when there was none, too; -1 with e. */
int hostfs_glob(const struct hostfs *h, const char *pattern, size_t max,
	struct hostfs_names *out, struct err *e);
int hostfs_names_add(struct hostfs_names *names, const char *s);
void hostfs_names_free(struct hostfs_names *names);

/* Begin a file in the directory `dir`, of which a duplicate is kept. It gets
 * the permissions of the file `replaces` (NULL: none) in that directory. */
int hostfs_create(
	struct newfile *f, int dir, const char *replaces, struct err *e);

/* Give it its name. With `replace` 0 an existing one is left alone: -1 and
 * e->code EEXIST. newfile_abort() is for the caller. */
int hostfs_commit(
	struct newfile *f, const char *name, bool replace, struct err *e);

/* Whether `dir` has something of that name, link or not. */
bool hostfs_has(int dir, const char *name);

/* Open the directory `name` in `dir`, making it when it is not there. Links
 * are not followed. Descriptor, or -1 with e. */
int hostfs_make_dir(int dir, const char *name, struct err *e);

/* A name from the jail as a name on the host: controls, invisible characters
 * and invalid UTF-8 become '_'. 0; -1 when it cannot be one ("..", empty, too
 * long, a slash in it). */
int hostfs_safe_name(const char *name, char out[static NAME_MAX + 1]);

#endif
