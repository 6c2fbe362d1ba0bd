/* SPDX-License-Identifier: MIT */
/*
 * prewarm.h - jails that are made before their user is known
 *
 * Two have them: a front end that serves many requests (a pool), and root's
 * maker of sessions (spares). One policy decides how many there are.
 */
#ifndef JAIL_PREWARM_H
#define JAIL_PREWARM_H

#include "spec.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct jail;
struct pool;

/* ---- stock.c: how many are made ahead, and when the next is begun ----
 *
 * It makes nothing: the caller counts what there is, asks for the next jail,
 * and makes it. */

/* One kind of jail. */
struct stock_kind {
	int waited;	  /* wanted: somebody waits for so many, */
	int ahead;	  /* and so many are to be ready beside them */
	int have;	  /* there are, ready or in the making */
	int making;	  /* of them in the making */
	int lost;	  /* made ahead, and of no use any more */
	int64_t again_ms; /* begin none before: the last one failed */
};

struct stock {
	struct stock_kind *kinds; /* borrowed */
	int n;
	int room;	 /* so many more jails may there be */
	int at_once;	 /* so many are in the making at a time for those who
			  * wait: more than cores would only be ready later */
	int64_t rest_ms; /* make none ahead before: leave the host to a jail
			  * that was just taken */
	int idle;	 /* cores that had nothing to do a moment ago; 0: this
			  * is not known */
};

struct stock_next {
	int kind;	 /* its index; -1: none is wanted, or may be */
	bool waited;	 /* somebody waits for it */
	int64_t when_ms; /* not before */
};

/* The jail to begin next. First what somebody waits for; jails ahead one by
 * one, while no other is in the making. Where cores are idle there may be more
 * of them, and one beside a jail that was just taken, if that was the last.
 * Jails that do not last are not replaced without end: a lost one counts until
 * the caller drops it. */
struct stock_next stock_next(const struct stock *s);

/* Note a jail of that kind in the making. */
void stock_note_begun(struct stock *s, int kind);

/* ---- pool.c: those of one front end ----
 *
 * A process of its own makes them, so that the caller may confine itself
 * (jail_sandbox_enter()) before it reads its first request. Each is used once.
 * Nothing but pool_await() and pool_close() waits. */

/* The sessions to make: of `spec`, with one of `pythons` each. Borrowed for the
 * call, and as jail_open() wants it. */
struct pool_offer {
	const struct jail_spec *spec;
	const char *const *pythons;
	size_t npythons;
	int most; /* sessions at a time, with those on their way out */
	/* NULL, or what that process does when the caller is gone, whatever
	 * ended it: it is not confined. */
	void (*gone)(void *arg);
	void *arg;
};

/* Fork the process that makes sessions. 0, or -1 with e. */
int pool_open(struct pool **out, const struct pool_offer *offer, struct err *e);

/* Keep sessions of this kind ready or in the making, and no more: those that
 * somebody waits for, and so many ahead. Fewer while there are too many of all
 * kinds. Those ahead are made one by one, and not in the first moments of a
 * session that was just taken, unless that was the last and a core is idle. */
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

/* ---- spare.c: those of root's maker, for nobody, leased once ----
 *
 * A spare is a warden with its jail, and with a Python that is up where the
 * mode has one. Two sockets lead to it: `front`, which the front end gets in
 * the end, and `lease`, which only root ever has. Spares that are ready lie on
 * a shelf, a pair of sockets that a service and its children share: what is
 * taken from it is nobody else's. A spare ends when nobody has its sockets any
 * more, as when the shelf goes with the service. */

struct spare {
	int front, lease;
	uint32_t number; /* the caller's */
};

#define SPARE_TEXT 4096

/* The key of a spare: its limits; and all of its spec that no lease changes, as
 * a text that also identifies those files of the host. */
struct spare_key {
	struct limits limits;
	char text[SPARE_TEXT];
};

/* 0, or -1 when the text has no room. */
int spare_key_fill(struct spare_key *k, const struct jail_spec *spec);

/* True if a spare that was made as `made` can become one that is asked for. */
int spare_key_fits(const struct spare_key *made, const struct spare_key *asked);

/* Sockets for a spare that is to be made: ours, and its own. 0, or -1. */
int spare_open(struct spare *ours, struct spare *its);

/* Become its warden, in a child. Root only; spec->made is set. */
_Noreturn void spare_become(
	const struct spare *its, const struct jail_spec *spec);

/* A shelf: two ends, and either serves. 0, or -1 with e. */
int spare_shelf_open(int shelf[2], struct err *e);

/* Put a spare there, which is gone then also on -1; take the one that has lain
 * there the longest: 1, 0 there is none. */
int spare_put(const int shelf[2], struct spare *s);
int spare_take(const int shelf[2], struct spare *s);

/* True if its warden lives. */
int spare_is_alive(const struct spare *s);

/* Close our ends: it ends, unless others have them. */
void spare_close(struct spare *s);

/* Make it the session of `spec`, for which it fits: count the person
 * in, lower its limits, and see that they were. 1, and its host id. 0: the
 * person has other sessions, beside which it cannot be, and it is as before. -1
 * with e: of kind ERR_BUSY when there are too many sessions, and it is as
 * before; or it is of no use any more. Waits for it, with a deadline. */
int spare_lease(const struct spare *s, const struct jail_spec *spec, uid_t *id,
	struct err *e);

/* Answer who asked over the connection with the session, as jail_hand_over()
 * does. */
int spare_hand_over(const struct spare *s, int asked);

#endif
