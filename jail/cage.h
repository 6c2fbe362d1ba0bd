/* SPDX-License-Identifier: MIT */
/*
 * cage.h - the confinement of a front end
 */
#ifndef JAIL_CAGE_H
#define JAIL_CAGE_H

#include <stddef.h>

struct err;

#define CAGE_PATHS 256

enum cage_access {
	CAGE_READ,   /* read files, list directories */
	CAGE_WRITE,  /* also write, create, remove, rename; no device nodes */
	CAGE_DEVICE, /* read, write and ioctl on device files */
};

/* What stays reachable: each path, and everything beneath it. All zero is
 * nothing. */
struct cage {
	struct {
		const char *path; /* borrowed */
		enum cage_access access;
	} v[CAGE_PATHS];
	size_t n;
};

/* Add a path. NULL and "" are nothing; a path that does not exist is skipped by
 * cage_close(). What does not fit stays out of reach. */
void cage_allow(struct cage *c, const char *path, enum cage_access access);

/* Give up, for good: every capability, exec, fork, sockets, and, where the
 * kernel has Landlock, every path that was not allowed. Call after jail_open()
 * and with one thread. On -1 with e the process must end. */
int cage_close(const struct cage *c, struct err *e);

#endif
