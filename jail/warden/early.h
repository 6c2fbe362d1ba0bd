/* SPDX-License-Identifier: MIT */
/*
 * early.h - Python, up before it knows its one cell (SPEC_CELL)
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
int early_start(struct early *a, struct err *e);

/* Wait until it is up. 0, or -1 with e; SESSION_OVER. */
LINK_CHECKED int early_await(struct early *a, struct err *e);

/* Hand over the cell, which a start holds (borrowed, wire.h): `outer` is for
 * the caller. 0, or -1 with e. */
int early_give(struct early *a, int fd, int *outer, struct err *e);

#endif
