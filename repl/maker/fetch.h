/* SPDX-License-Identifier: MIT */
/*
 * fetch.h - a session from the maker of this host, or one of our own
 */
#ifndef REPL_MAKER_FETCH_H
#define REPL_MAKER_FETCH_H

#include "order.h"

#include <stdbool.h>

struct config;
struct err;
struct jail;
struct jail_spec;

/* Whom it is for. */
struct fetch {
	const struct config *cfg; /* as the spec was made from it */
	bool eval;		  /* the program is -e */
	bool checks; /* nothing is done but to say what this host can */
	/* Load the system's configuration alone: 0, or -1 with e. NULL: `cfg`
	 * is that. */
	int (*load_system)(void *arg, struct config *system, struct err *e);
	void *arg;
	/* Say why a session is one of our own. */
	void (*complain)(const struct err *e);
	/* written by fetch.c: what the maker has not answered yet, on which
	 * connection (-1: none), and until when it is waited for */
	struct order order;
	int asked;
	int64_t until_ms;
};

/* As session.maker says: ask the maker for a session as `spec` has it, or fork
 * its warden ourselves, as jail_open(). What a maker makes is there when it has
 * answered: between the two there is time for other work. Should the maker fail
 * a warden may still be forked. 0, or -1 with e. */
int fetch_begin(struct jail **out, const struct jail_spec *spec,
	struct fetch *f, struct err *e);
int fetch_await(struct jail **out, const struct jail_spec *spec,
	struct fetch *f, struct err *e);

/* Whether jails may be made without the maker of this host by a front end that
 * does not ask it: 0; -1 with e where session.maker says that nothing starts
 * without it. `front` is the option that the front end is called by. */
int fetch_check_own(const struct config *cfg, const char *front, struct err *e);

#endif
