/* SPDX-License-Identifier: MIT */
/*
 * clocks.h - the limits of a session's life: idle and lifetime
 */
#ifndef JAIL_WARDEN_CLOCKS_H
#define JAIL_WARDEN_CLOCKS_H

#include "jail/jail.h"
#include "jail/spec.h"

#include <stdint.h>

struct link;

/* Only clocks.c writes it. */
struct clocks {
	struct link *link;
	const struct limits *limits;
	int announces;	    /* a session's are announced, a program's not */
	int64_t started_ms; /* the session; 0: nobody's yet (spec.h: early) */
	int64_t touched_ms; /* the person was there */
	unsigned announced; /* 1 << enum jail_limit */
};

void clocks_start(
	struct clocks *c, struct link *l, const struct jail_spec *spec);

/* The person is there. */
void clocks_touch(struct clocks *c);

/* What is left of LIMIT_IDLE or LIMIT_LIFETIME, in milliseconds: 0 or less,
 * it has struck. Says, once, that it is near. *due_ms: when to look again. */
int64_t clocks_remaining_ms(
	struct clocks *c, enum jail_limit limit, int64_t *due_ms);

#endif
