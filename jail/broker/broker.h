/* SPDX-License-Identifier: MIT */
/*
 * broker.h - the processes that make jails
 *
 *	start.c		a warden is started, and the process that asked for it
 *			gets its socket
 *	supplier.c	a process that starts wardens for a front end that
 *			can no longer fork
 *	stock.c		how many jails are made ahead (jail/prewarm.h)
 *	spare.c		those that root makes ahead (jail/prewarm.h)
 */
#ifndef JAIL_BROKER_BROKER_H
#define JAIL_BROKER_BROKER_H

#include "jail/spec.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

/* ---- start.c ---- */

/* Fork a warden, which builds the jail. Its pid, and in *sock the socket to it
 * (wire.h); -1 with e. The caller has one thread, and `spec` lies nowhere in
 * argv. */
pid_t start_warden(const struct jail_spec *spec, int *sock, struct err *e);

/* Be the warden at the end `sock` of its socket, in a child. */
_Noreturn void start_run(int sock, const struct jail_spec *spec);

/* Become the warden of a session that somebody asked for over the connection
 * `asked` (taken), over which the socket to it goes. The caller has an alarm,
 * which is called off. */
_Noreturn void start_become(int asked, const struct jail_spec *spec);

/* Go on beside our parent, in a child of it: with nothing of the parent's but
 * `n` descriptors, and in a session of our own, so that no key of
 * the terminal ends us before the parent. 0, or -1 with e. */
int start_apart(const int *keep, size_t n, const char *name, struct err *e);

/* Answer who asked over the connection with the socket to a warden (borrowed),
 * or, if that is -1, with e. `flags` as send() has them. 0, or -1 with errno;
 * 1: the kernel did not let the socket through because the user has too many on
 * their way, and the answer is that error. */
int start_answer(int asked, int sock, const struct err *e, int flags);

/* The same, but do not wait for who asked. */
int start_hand_over(int asked, int sock);
void start_refuse(int asked, const struct err *e);

/* Wait for the answer: the socket to the warden, or -1 with e. */
int start_receive(int asked, struct err *e);

/* ---- supplier.c ---- */

/* The sessions that a supplier may start. Borrowed until supplier_start()
 * returns. */
struct supplier_offer {
	const struct jail_spec *spec;
	const char *const *pythons; /* instead of spec->python */
	size_t npythons;
	int most;		 /* sessions at a time */
	void (*gone)(void *arg); /* or NULL: see struct pool_offer */
	void *arg;
};

/* Fork a supplier: *sock is the socket to it, and its end of file the
 * supplier's own end. Its pid, or -1 with e. */
pid_t supplier_start(
	const struct supplier_offer *offer, int *sock, struct err *e);

/* A request for a session with interpreter number `python`. */
struct supplier_question {
	uint32_t python;
	enum spec_mode mode;
};

/* Ask, and return at once: start_receive() takes the answer to the oldest
 * question. 0, or -1 with e. */
int supplier_ask(int sock, const struct supplier_question *q, struct err *e);

#endif
