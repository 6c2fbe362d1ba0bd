/* SPDX-License-Identifier: MIT */
/*
 * seccomp.h - which system calls a process may make
 *
 * The filters are made at build time from seccomp_rules.h and embedded.
 */
#ifndef JAIL_WALLS_SECCOMP_H
#define JAIL_WALLS_SECCOMP_H

#include "jail/base/err.h"

enum seccomp_profile {
	SECCOMP_GUEST,	     /* Python and whatever it starts */
	SECCOMP_GUEST_NOMEM, /* the same where no cgroup counts its memory */
	SECCOMP_INIT,	     /* pid 1 of a finished jail; allows all that GUEST
			      * allows, because guests inherit it and add theirs */
	SECCOMP_FRONT,	     /* the front end: no exec, no sockets */
	SECCOMP_INIT_SHARED, /* INIT in a jail that shares inodes with the host:
			      * without inotify */
	SECCOMP_SERVER,	     /* FRONT that accepts clients */
	SECCOMP_DOOR,	     /* FRONT that other terminals come to */
};
#define SECCOMP_PROFILES 7

/* Confine every thread of the process, for good. Needs no_new_privs, which
 * SECCOMP_FRONT and SECCOMP_SERVER set themselves. Verified by a call that
 * every profile refuses. */
int seccomp_load(enum seccomp_profile profile, struct err *e);

/* From now on each flock() and each fcntl() that sets a lock, and with `maps`
 * each mmap() of anonymous shared memory, by this process or by one that it
 * starts later, waits for an answer on the descriptor that *fd becomes. Where
 * the kernel gives none, because somebody above us listens already, such calls
 * fail with ENOSYS, ENOLCK and EPERM, and *fd is -1. */
int seccomp_hear(int *fd, int maps, struct err *e);

/* From now on this process, and what it starts, makes no socket but pairs of
 * streams: it reaches nobody through a name. Verified by the attempt. */
int seccomp_pairs_only(struct err *e);

/* Number of instructions of a filter, 0 where this processor has none. */
int seccomp_size(enum seccomp_profile profile);

#endif
