/* SPDX-License-Identifier: MIT */
/*
 * metrics.h - figures for Prometheus
 */
#ifndef REPL_SERVE_METRICS_H
#define REPL_SERVE_METRICS_H

#include "jail/jail.h"

#include <stdint.h>

struct pool_count;
struct strbuf;

#define METRICS_BOUNDS 12

/* Caller's storage, zero at first; only metrics.c writes it. */
struct metrics {
	uint64_t statuses[6]; /* 0xx to 5xx */
	uint64_t limits[LIMIT_OUTPUT + 1];
	uint64_t runs, failed, gone;
	uint64_t sessions, cells;
	uint64_t took[METRICS_BOUNDS + 1]; /* from request to answer */
	double seconds;
};

/* What is now. */
struct metrics_now {
	const struct pool_count *jails;
	unsigned long clients, running, waiting;
	unsigned long sessions, busy; /* serve a request */
};

void metrics_answered(struct metrics *m, int status);
void metrics_ran(
	struct metrics *m, enum jail_limit limit, int failed, int64_t took_ns);
void metrics_gone(struct metrics *m);
void metrics_session(struct metrics *m);
void metrics_cell(struct metrics *m, enum jail_limit limit);

void metrics_print(struct strbuf *b, const struct metrics *m,
	const struct metrics_now *now);

#endif
