/* SPDX-License-Identifier: MIT */
/*
 * pool.h - sessions made ahead, for a front end that serves many requests
 *
 * A process of its own makes them, so that the caller may confine itself
 * (jail_sandbox_enter()) before it reads its first request. Each is used once.
 * Nothing but pool_await() and pool_close() waits.
 */
#ifndef JAIL_POOL_H
#define JAIL_POOL_H

#include "spec.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

struct err;
struct jail;
struct pool;

/* The sessions to make: of `spec`, with one of `pythons` each. Borrowed for the
 * call, and as jail_open() wants it. */
struct pool_offer {
	const struct jail_spec *spec;
	const char *const *pythons;
	size_t npythons;
	int most; /* sessions at a time, with those on their way out */
};

/* Fork the process that makes sessions. 0, or -1 with e. */
int pool_open(struct pool **out, const struct pool_offer *offer, struct err *e);

/* Keep sessions of this kind ready or in the making, and no more: those that
 * somebody waits for, and so many ahead. Fewer while there are too many of all
 * kinds. Those ahead are made one by one, and not in the first moments of a
 * session that was just taken. */
void pool_want(struct pool *p, unsigned python, enum spec_mode mode, int waited,
	int ahead);

/* Take a session of this kind; it may still be building, or have failed to,
 * which its events say. 1, 0: there is none yet, -1 with e: none could be
 * made. */
int pool_take(struct pool *p, unsigned python, enum spec_mode mode,
	struct jail **out, struct err *e);

/* The same, but wait for one, while not all that there may be are taken. No
 * other of this kind is wanted then. 0, or -1 with e. */
int pool_await(struct pool *p, unsigned python, enum spec_mode mode,
	struct jail **out, struct err *e);

/* End a session without waiting for it, and free it. */
void pool_end(struct pool *p, struct jail *j);

/* The descriptors to poll: at most `max` entries of `v` are filled. Their
 * number. */
size_t pool_polls(const struct pool *p, struct pollfd *v, size_t max);

/* How long to wait at most: -1 for ever. */
int pool_timeout_ms(struct pool *p);

/* Take what has come; see to it that what is wanted gets made. */
void pool_turn(struct pool *p);

/* How many sessions there are: ready, and on their way out. */
struct pool_count {
	int ready, making, taken, ending;
};

void pool_count(const struct pool *p, struct pool_count *c);

/* True if no session can be made any more: the process that makes them is gone.
 */
bool pool_is_lost(const struct pool *p);

/* End everything, and wait until it is gone. -1 with e when something may be
 * left. */
int pool_close(struct pool *p, struct err *e);

#endif
