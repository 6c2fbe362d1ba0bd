/* SPDX-License-Identifier: MIT */
/*
 * locks.h - how many record locks the guests hold
 */
#ifndef JAIL_INIT_LOCKS_H
#define JAIL_INIT_LOCKS_H

#include <stdint.h>

struct locks {
	int fd;		/* where guests ask, from apply_ctx; -1: no guest may */
	int proc_fd;	/* the jail's /proc, or -1; borrowed */
	int most;	/* no more than these exist */
	int64_t due_ms; /* not counted again before this time */
};

/* Answer a guest that waits for its fcntl(F_SETLK), if one does. */
void locks_serve(struct locks *l);

#endif
