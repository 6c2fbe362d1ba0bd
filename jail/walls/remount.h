/* SPDX-License-Identifier: MIT */
/*
 * remount.h - restrict mounts in place, where mount_setattr is missing
 */
#ifndef JAIL_WALLS_REMOUNT_H
#define JAIL_WALLS_REMOUNT_H

#include "jail/base/err.h"

#include <stddef.h>

/* One line of /proc/self/mountinfo. */
struct remount_line {
	int id, parent;
	char path[4096]; /* without escapes */
};

/* Parse one line (NUL or newline ends it). 0, or -1 when malformed. */
int remount_line_parse(struct remount_line *m, const char *line);

/*
 * Add attributes (SYS_ATTR_*) to the mount that `fd` is the top of, and with
 * `recursive` to each mount below it. Its path in this process is `root`
 * followed by `target`. Flags that are set already stay: they are locked where
 * the mount came from a more privileged namespace.
 */
int remount_tree(int fd, const char *root, const char *target, unsigned attrs,
	int recursive, struct err *e);

#endif
