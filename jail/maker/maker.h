/* SPDX-License-Identifier: MIT */
/*
 * maker.h - who makes sessions: the front end itself, or a process for it
 */
#ifndef JAIL_MAKER_MAKER_H
#define JAIL_MAKER_MAKER_H

#include "jail/spec.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

/* Fork a warden, which builds the jail. Its pid, and in *sock the socket to it
 * (wire.h); -1 with e. The caller has one thread, and `spec` lies nowhere in
 * argv. */
pid_t maker_make(const struct jail_spec *spec, int *sock, struct err *e);

/* Become the warden of a session that somebody asked for over the connection
 * `asked` (taken), and who gets the socket to it. The caller has an alarm,
 * which is called off. */
_Noreturn void maker_become(int asked, const struct jail_spec *spec);

/* Be the warden at the end `sock` of its socket, in a child. */
_Noreturn void maker_run(int sock, const struct jail_spec *spec);

/* Answer who asked over the connection with the socket to a warden (borrowed).
 * 0, or -1. */
int maker_hand_over(int asked, int sock);

/* Answer that there will be none. */
void maker_refuse(int asked, const struct err *e);

/* The sessions that a maker may make. Borrowed until maker_start() returns. */
struct maker_offer {
	const struct jail_spec *spec;
	const char *const *pythons; /* instead of spec->python */
	size_t npythons;
	int most; /* sessions at a time */
};

/* Fork a maker: *sock is the socket to it, and its end of file the maker's own
 * end. Its pid, or -1 with e. */
pid_t maker_start(const struct maker_offer *offer, int *sock, struct err *e);

/* A request for a session with interpreter number `python`. */
struct maker_question {
	uint32_t python;
	enum spec_mode mode;
	int hurried; /* (spec.h) */
};

/* Ask; returns at once. 0, or -1 with e. */
int maker_ask(int sock, const struct maker_question *q, struct err *e);

/* Wait for the answer to the oldest question, or from who becomes the warden:
 * the socket to the warden, or -1
 * with e. */
int maker_answer(int sock, struct err *e);

#endif
