/* SPDX-License-Identifier: MIT */
/*
 * route.h - what is answered to whom, under which path
 */
#ifndef REPL_SERVE_ROUTE_H
#define REPL_SERVE_ROUTE_H

#include "metrics.h"
#include "repl/json/request.h"

#include <stdbool.h>
#include <sys/types.h>

struct exchange;
struct http;
struct jobs;
struct pool;
struct sessions;
struct store;

/* Borrowed. */
struct route {
	const struct http *http;
	struct jobs *jobs;
	struct sessions *sessions;
	struct store *store;
	const struct pool *pool;
	struct metrics *metrics;
	const struct request_rules *rules;
	const char *token; /* NULL: anybody */
	bool local;	   /* anybody, but only of this host */
	int64_t upload;	   /* largest, for the words */
	size_t per_client; /* requests at a time */
	bool draining;
};

/* For struct http_calls: `arg` is a struct route. */
void route_head(void *arg, struct exchange *x);
void route_whole(void *arg, struct exchange *x);
ssize_t route_more(void *arg, struct exchange *x, char *p, size_t max);
void route_over(void *arg, struct exchange *x);
void route_words(void *arg, const char *path, int status, const char *words,
	struct strbuf *b);
void route_refused(void *arg, int status);

#endif
