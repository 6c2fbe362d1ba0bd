/* SPDX-License-Identifier: MIT */
/*
 * early.h - Python, up before it knows its one cell (SPEC_CELL, SPEC_EVAL)
 */
#ifndef JAIL_WARDEN_EARLY_H
#define JAIL_WARDEN_EARLY_H

#include "link.h"
#include "pipes.h"

struct guest;
struct warden_jail;

/* Only early.c writes it. */
struct early {
	struct guest *guest;
	struct warden_jail *jail;
	int outer[PIPES]; /* the front end's ends */
	int64_t cpu_ms;	  /* of the jail, when it began to wait */
};

void early_init(struct early *a, struct guest *g, struct warden_jail *j);

/* Have it started. 0, or -1 with e. */
int early_start(struct early *a, enum spec_mode mode, struct err *e);

/* The jail rests, with nothing of anybody's in it: what it has used so far is
 * not the program's. */
void early_note_rest(struct early *a);

/* Wait until it is up. 0, or -1 with e; SESSION_OVER. */
LINK_CHECKED int early_await(struct early *a, struct err *e);

/* Hand over the cell, which a start holds (borrowed, wire.h): `outer` is for
 * the caller. 0, or -1 with e. */
int early_give(struct early *a, int fd, int *outer, struct err *e);

/* SPEC_EVAL: hand over arguments, which a start holds, and the program's ends
 * of its pipes, but for what is the tty (all borrowed). 0, or -1 with e. */
int early_give_program(struct early *a, int args, const int *inner,
	unsigned tty_bits, struct err *e);

#endif
