/* SPDX-License-Identifier: MIT */
/*
 * locker.h - locks of whole files (flock()), taken for guests with threads
 */
#ifndef JAIL_INIT_LOCKER_H
#define JAIL_INIT_LOCKER_H

#include <stdint.h>
#include <sys/types.h>

struct locker {
	int heard_fd; /* where guests ask, and are answered; borrowed */
	int proc_fd;  /* the jail's /proc; borrowed */
	int wants_fd; /* to the thread that takes locks; 0: none yet */
};

/* What a guest waits for: flock(number, how) of the thread `tid`. */
struct locker_want {
	uint64_t id; /* the kernel's, of the call */
	pid_t tid;
	int number, how;
};

/* Have a lock taken, and the guest answered. 0, or -1 with errno when the
 * caller must answer. */
int locker_take(struct locker *l, const struct locker_want *want);

/* Whether `tid` is the thread that takes locks. It is under the filter as well,
 * so that its own flock() asks. */
int locker_asks(pid_t tid);

/* Whether the descriptor `number` of thread `tid` leads to a file or directory
 * that no other jail can have. 1, 0 (also: there is none), without waiting. */
int locker_is_file(int proc_fd, pid_t tid, int number);

#endif
