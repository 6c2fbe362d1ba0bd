/* SPDX-License-Identifier: MIT */
/*
 * eval.h - cellblock --eval: requests from standard input, answers to standard
 * output
 */
#ifndef REPL_JSON_EVAL_H
#define REPL_JSON_EVAL_H

#include "jail/spec.h"
#include "pythons.h"
#include "repl/session/setup.h"

struct config;
struct err;
struct jail_spec;
struct log;
struct pool;

/* What requests are served with. Caller's storage. */
struct eval {
	const struct config *cfg; /* borrowed */
	struct pool *pool;
	struct log *log;	  /* borrowed */
	struct setup_slots slots; /* where a session is counted */
	struct pythons pythons;
	enum spec_mode mode; /* what the last request ran in */
};

/* Get ready, before the cage closes: fork the maker. `spec` is that of the
 * default interpreter. 0, or -1 with e. */
int eval_open(struct eval *ev, const struct config *cfg,
	const struct jail_spec *spec, struct err *e);

/* Serve all requests. The exit status: 0; 2 when one was not in order; or -1
 * with e, when no session could be made or no answer written. */
int eval_run(struct eval *ev, struct err *e);

/* End every session, and wait until it is gone. -1 with e when something may
 * be left. */
int eval_close(struct eval *ev, struct err *e);

#endif
