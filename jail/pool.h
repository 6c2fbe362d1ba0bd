/* SPDX-License-Identifier: MIT */
/*
 * pool.h - sessions made ahead, for a front end that serves many requests
 *
 * A process of its own makes them, so that the caller may close its cage
 * (jail_cage_close()) before it reads its first request. Each is used once.
 */
#ifndef JAIL_POOL_H
#define JAIL_POOL_H

#include "spec.h"

#include <stddef.h>

struct err;
struct jail;
struct pool;

/* What is made: sessions of `spec`, with one of `pythons` each. Borrowed for
 * the call, and as jail_open() wants it. */
struct pool_offer {
	const struct jail_spec *spec;
	const char *const *pythons;
	size_t npythons;
	int most; /* sessions at a time */
};

/* Fork the process that makes sessions. 0, or -1 with e. */
int pool_open(struct pool **out, const struct pool_offer *offer, struct err *e);

/* Have a session for a program, with interpreter number `python`, made ahead,
 * unless one is; returns at once. */
void pool_prepare(struct pool *p, unsigned python);

/* Take a session: the one that was made ahead, if it fits. It may still be
 * building. 0, or -1 with e. */
int pool_take(struct pool *p, unsigned python, enum spec_mode mode,
	struct jail **out, struct err *e);

/* End a session without waiting for it, and free it. */
void pool_end(struct pool *p, struct jail *j);

/* End everything, and wait until it is gone. -1 with e when something may be
 * left. */
int pool_close(struct pool *p, struct err *e);

#endif
