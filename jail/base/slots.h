/* SPDX-License-Identifier: MIT */
/*
 * slots.h - counting sessions with locks on the bytes of a file
 *
 * A slot is a lock on one byte. It belongs to the open file, not to the
 * process: it survives fork(), and the kernel drops it with the last
 * descriptor, so that a crash leaks none.
 */
#ifndef JAIL_BASE_SLOTS_H
#define JAIL_BASE_SLOTS_H

#include <sys/types.h>

struct err;

/* Lock (F_WRLCK) or unlock (F_UNLCK) a byte: 0, or -1 with errno. */
int slots_lock(int fd, off_t at, short type);

/* After slots_lock(): whether somebody else has the byte. */
int slots_is_taken(void);

/* Take one of `most` slots from `first` on. 1, 0: all are taken, or -1 with
 * e. */
int slots_claim(int fd, off_t first, int most, struct err *e);

/* Say that a person has all sessions that session.per_user allows. -1. */
int slots_all_taken(int most, struct err *e);

#endif
