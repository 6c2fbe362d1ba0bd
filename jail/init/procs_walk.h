/* SPDX-License-Identifier: MIT */
/*
 * procs_walk.h - the jail's processes, one after the other; for procs*.c
 */
#ifndef JAIL_INIT_PROCS_WALK_H
#define JAIL_INIT_PROCS_WALK_H

#include "procs.h"

#include <dirent.h>

/* One process at a time, never init. */
struct procs_walk {
	const struct procs_source *s;
	DIR *dir;
	int seen;
	int fd;	   /* of the process's directory, until the next step */
	pid_t pid; /* in the jail's numbers */
};

/* 0, or -1 with errno; end it only if it began. */
int procs_walk_begin(struct procs_walk *w, const struct procs_source *s);
void procs_walk_end(struct procs_walk *w);

/* 1 and w->pid, w->fd; 0 at the end; -1 with errno when there is more, and it
 * cannot be seen. */
int procs_walk_next(struct procs_walk *w);

/* Whether a directory entry is a number. */
int procs_is_number(const char *name);

/* Read a small file below a directory: length, or -1 with errno. Always ends
 * with a NUL. */
ssize_t procs_read(int dirfd, const char *path, char *buf, size_t size);

#endif
