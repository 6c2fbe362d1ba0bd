/* SPDX-License-Identifier: MIT */
/*
 * claim.h - an outside uid of its own for each session that root starts
 */
#ifndef JAIL_WALLS_CLAIM_H
#define JAIL_WALLS_CLAIM_H

#include "jail/base/err.h"

#include <sys/types.h>

/* The directory that holds the file of locks. */
#define CLAIM_DIR "/run/cellblock"

enum { CLAIM_NAME_MAX = 64 };

/* Root only: pick a uid of [lo, hi] that no other session holds and that no
 * process on this host has; never 0, 65534 or -1. The claim lasts until it is
 * released or the last copy of *lock_fd is closed (caller closes). `dir` is
 * CLAIM_DIR, or a directory of a test. */
int claim_uid(const char *dir, uid_t lo, uid_t hi, uid_t *uid, int *lock_fd,
	struct err *e);

/* Give back every uid that is claimed through lock_fd. */
void claim_release(int lock_fd);

/* What a claimed uid is called where others see it, as in the name of a cgroup:
 * the number, and which file holds the lock. Where /run is another one (a
 * container, a service with a private /run) a lock on the same number says
 * nothing about this one. */
int claim_name(
	int lock_fd, uid_t uid, char name[CLAIM_NAME_MAX], struct err *e);

/* Whether `name` is the name of a uid of our file of locks that no session
 * holds. If so it is claimed from then on, so that no session takes it. */
int claim_is_free(int lock_fd, const char *name);

#endif
