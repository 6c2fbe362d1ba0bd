/* SPDX-License-Identifier: MIT */
/*
 * standin.h - a child of the warden that may be kept waiting in its place
 *
 * One question at a time. The warden asks, goes on, and takes the answer when
 * it looks again.
 */
#ifndef JAIL_WARDEN_STANDIN_H
#define JAIL_WARDEN_STANDIN_H

#include "chore.h"

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* Only standin.c writes it. */
struct standin {
	pid_t pid; /* 0: none */
	int sock;  /* -1: none, or it was killed and is not gone yet */
	clockid_t cpu;
	int64_t cpu_ns;	  /* its CPU time before the question */
	int64_t asked_ms; /* 0: nothing is asked */
	int64_t paid_ms;  /* when its work is paid for */
};

void standin_init(struct standin *s);

/* Whether it is free to work. All its work takes a small share of a core. What
 * is urgent may come a little before the work until now is paid for, and what
 * is late, a quarter of that. */
enum standin_haste { STANDIN_CALM, STANDIN_LATE, STANDIN_URGENT };
int standin_is_free(const struct standin *s, enum standin_haste haste);

/* Whether it owes an answer. */
static inline int standin_is_asked(const struct standin *s)
{
	return s->asked_ms != 0;
}

/* Ask, starting it where needed. 0, or -1 when it cannot be asked. */
int standin_ask(
	struct standin *s, const struct chore_place *p, const struct chore *q);

/* Take the answer, after a wait of at most timeout_ms. 1; 0 there is none yet,
 * or nothing was asked; -1 it did not answer in time and was killed. */
int standin_take(struct standin *s, int timeout_ms, struct chore_result *a);

/* End it, when no process of the jail is left that could hold it. */
void standin_end(struct standin *s);

#endif
