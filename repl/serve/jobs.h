/* SPDX-License-Identifier: MIT */
/*
 * jobs.h - requests that wait for a jail, or run in one
 */
#ifndef REPL_SERVE_JOBS_H
#define REPL_SERVE_JOBS_H

#include "execute.h"
#include "metrics.h"
#include "repl/json/request.h"

#include <poll.h>
#include <stddef.h>

struct config;
struct exchange;
struct jobs;
struct log;
struct pool;

/* Borrowed. */
struct jobs_rules {
	const struct config *cfg;
	struct pool *pool;
	struct store *store;
	struct metrics *metrics;
	size_t npythons;
};

int jobs_open(struct jobs **out, const struct jobs_rules *rules);
void jobs_close(struct jobs *s);

/* Where limits that strike are recorded (borrowed). */
void jobs_set_log(struct jobs *s, const struct log *log);

/* Whether one more may wait. */
bool jobs_have_room(const struct jobs *s);

/* Run this request (taken, as are the files; of /v1/execute if `stores`) and
 * answer the exchange. -1: out of memory, and nothing was taken. */
int jobs_add(struct jobs *s, struct exchange *x, struct request *q,
	struct execute_files *files, bool stores);

/* Nobody wants the exchange's answer any more. */
void jobs_cancel(struct jobs *s, struct exchange *x);

size_t jobs_running(const struct jobs *s);
size_t jobs_waiting(const struct jobs *s);

/* What to poll, at most `max`: their number; *timeout_ms becomes earlier. Hand
 * all over again. */
size_t jobs_polls(
	const struct jobs *s, struct pollfd *p, size_t max, int *timeout_ms);
void jobs_turn(struct jobs *s, const struct pollfd *p, size_t n);

/* Give jails to those that wait. */
void jobs_start(struct jobs *s);

#endif
