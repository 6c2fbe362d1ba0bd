/* SPDX-License-Identifier: MIT */
/*
 * spare.h - jails that root makes ahead, for nobody, and that are leased once
 *
 * A spare is a warden with its jail, and with a Python that is up where the
 * mode has one. Two sockets lead to it: `front`, which the front end gets in
 * the end, and `lease`, which only root ever has. Spares that are ready lie on
 * a shelf, a pair of sockets that a service and its children share: what is
 * taken from it is nobody else's. A spare ends when nobody has its sockets any
 * more, as when the shelf goes with the service.
 */
#ifndef JAIL_SPARE_H
#define JAIL_SPARE_H

#include "spec.h"

#include <stddef.h>

struct err;

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

/* Sockets for a spare that is to be made: ours, and its own. 0, or -1 with e.
 */
int spare_open(struct spare *ours, struct spare *its, struct err *e);

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
 * in, lower its limits, and see that they were. 0, and its host id. -1 with e:
 * of kind ERR_BUSY when there are too many sessions, and it is as before; or it
 * is of no use any more. Waits for it, with a deadline. */
int spare_lease(const struct spare *s, const struct jail_spec *spec, uid_t *id,
	struct err *e);

/* Answer who asked over the connection with the session. 0, or -1. */
int spare_hand_over(const struct spare *s, int asked);

#endif
