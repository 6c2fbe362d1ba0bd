/* SPDX-License-Identifier: MIT */
/*
 * asked.h - what guests must ask for: locks, anonymous shared memory
 */
#ifndef JAIL_INIT_ASKED_H
#define JAIL_INIT_ASKED_H

#include "locker.h"

#include <stdint.h>

/* Threads that have locked parts of files, at most. */
#define ASKED_SLOTS 256

/* Anonymous shared memory that guests were granted, in a page that init and the
 * warden share. Only init writes it. */
struct asked_memory {
	_Atomic int64_t bytes;	 /* all of it, since the jail began */
	_Atomic int64_t largest; /* the largest mapping; written first */
};

/* Where a thread that was not alone in its process has last locked a part of a
 * file. */
struct asked_slot {
	pid_t leader, tid;
	int number; /* of the descriptor */
};

struct asked {
	int fd;		/* where guests ask, from apply_ctx; -1: no guest may */
	int proc_fd;	/* the jail's /proc, or -1; borrowed */
	int locks;	/* no more than these exist */
	int64_t due_ms; /* they are not counted again before this time */
	struct locker locker;
	struct asked_slot slots[ASKED_SLOTS];
	int nslots;
	int64_t look_ms;	     /* nobody looks at them before this time */
	struct asked_memory *memory; /* borrowed; NULL: a cgroup counts it */
	int64_t memory_max;	     /* the largest mapping that is granted */
};

/* Answer a guest that waits for its flock(), fcntl(F_SETLK) or mmap(), if one
 * does. */
void asked_serve(struct asked *a);

#endif
