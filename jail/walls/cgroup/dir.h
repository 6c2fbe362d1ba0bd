/* SPDX-License-Identifier: MIT */
/*
 * dir.h - one directory of a cgroup file system, and the files in it
 *
 * For cgroup.c and the two versions alone.
 */
#ifndef JAIL_WALLS_CGROUP_DIR_H
#define JAIL_WALLS_CGROUP_DIR_H

#include "cgroup.h"

#include <stddef.h>

/* The kernel's names of the controllers. */
extern const char *const cgroup_dir_controllers[CGROUP_CONTROLLERS];

/* (v2) The leaf for the guests, in the session's directory. */
#define CGROUP_GUESTS "guests"
/* How long the remains of a dead session may take to die on a busy machine,
 * and another process may take to remove them, milliseconds. */
#define CGROUP_CLEAR_MS 2000

/* ---- files ---- */

/* Write `text` to a file of a directory: 0, or -1 with errno. */
int cgroup_dir_write(int dir, const char *file, const char *text);

/* Read a small file: length, or -1 with errno. `buf` always ends with NUL. */
ssize_t cgroup_dir_read(int dir, const char *file, char *buf, size_t size);

/* The same for a file that stays open. */
int cgroup_dir_rewrite(int fd, const char *text);
ssize_t cgroup_dir_reread(int fd, char *buf, size_t size);

/* Write a number and read it back, because some hosts accept a limit and
 * ignore it. 1 if the kernel keeps at most `value` (it rounds to pages) and
 * more than half of it, else 0. */
int cgroup_dir_set_number(int dir, const char *file, int64_t value);

/* The same for a text, which must read back as it was written. */
int cgroup_dir_set_text(int dir, const char *file, const char *text);

/* The number after `key` in "key value" lines; -1 if there is none. */
int64_t cgroup_dir_key(const char *text, const char *key);

/* ---- the directory ---- */

/* The directory above `path`. */
void cgroup_dir_parent(char parent[CGROUP_PATH_MAX], const char *path);

/* Open a directory by path: descriptor, or -1 with errno. */
int cgroup_dir_open(const char *path);

/* Hold a session's directory, which marks the session as alive: an O_DIRECTORY
 * descriptor with a lock that goes with its last copy. Waits at most timeout_ms
 * for another holder. -1 with errno: ENOENT, or EBUSY if it is held. */
int cgroup_dir_hold(const char *path, int timeout_ms);

/* Make a directory and hold it, after removing the remains of a dead session
 * there; its parent is made too where it is missing. Descriptor, or -1 with e.
 */
int cgroup_dir_make(const char *path, struct err *e);

/* Kill all in a directory that the caller holds, and remove it. -1 with errno
 * if something would not die in time. */
int cgroup_dir_clear(const char *path, int timeout_ms);

/* Whether a directory holds processes that cannot be seen from here: a
 * container's, which shares our cgroups but not our locks. */
int cgroup_dir_is_foreign(const char *path);

/* Sleep a little between two looks at something without a notification. */
void cgroup_dir_nap(void);

#endif
