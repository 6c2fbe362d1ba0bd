/* SPDX-License-Identifier: MIT */
/*
 * path.h - paths as text, and directories opened one component at a time
 */
#ifndef JAIL_BASE_PATH_H
#define JAIL_BASE_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- text ---- */

/* The rest of `path` beneath the directory `dir`: "" for `dir` itself, NULL
 * when it lies elsewhere. Slashes at the end of `dir` do not count. */
const char *path_beneath(const char *path, const char *dir);

/* True if `path` is the directory `dir`, or lies beneath it. */
static inline bool path_is_beneath(const char *path, const char *dir)
{
	return path_beneath(path, dir) != NULL;
}

/* The text behind the last slash. */
const char *path_last(const char *path);

/* How many slashes it has. */
int path_depth(const char *path);

/* True if a directory entry is "." or "..". */
bool path_is_dots(const char *name);

/* True if a directory can have an entry `name`: one component, not too long,
 * neither "." nor "..". */
bool path_is_name(const char *name);

/* Take empty components, "." and the slash at the end out of an absolute
 * path, in place. ".." takes the component before it along if `climb` is set;
 * else -1. 0 otherwise. Links are not looked at. */
int path_clean(char *path, bool climb);

/* Copy the next component of *path into `name` and move *path behind it.
 * 1; 0 at the end; -1 with ENAMETOOLONG. */
int path_next(const char **path, char name[static NAME_MAX + 1]);

/* ---- directories ---- */

/* How a directory is opened, always close-on-exec. */
struct path_walk {
	int flags;	  /* O_PATH, or 0 to read it */
	mode_t mode;	  /* of a directory that is made; 0 makes none */
	uint64_t resolve; /* SYS_RESOLVE_* for openat2(2); 0 is openat(2) */
};

/* Open the directory `name` in `dir`, and make it if it is missing. A link is
 * never followed where `resolve` is 0. Descriptor, or -1 with errno. */
int path_enter(int dir, const char *name, const struct path_walk *how);

/* Do that for each component of `path`, from `root` on. ".." is EXDEV. A new
 * descriptor, of `root` itself for "", or -1 with errno. */
int path_walk(int root, const char *path, const struct path_walk *how);

#endif
