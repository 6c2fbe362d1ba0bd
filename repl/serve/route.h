/* SPDX-License-Identifier: MIT */
/*
 * route.h - what each path of --serve does
 *
 *	refusal.c		answers that refuse a request
 *	session_paths.c		the handlers of /v1/sessions
 *	route.c			those of other paths; who may ask which
 */
#ifndef REPL_SERVE_ROUTE_H
#define REPL_SERVE_ROUTE_H

#include "repl/serve/parts.h"

#define ROUTE_SESSIONS "/v1/sessions/"

/* ---- refusal.c ---- */

/* Why a body is refused. */
extern const char refusal_empty[], refusal_too_deep[];

/* True if refusals of this path are as Onyx's. */
bool refusal_is_v1(const char *path);
/* For struct http_calls; `arg` is not used. `words` may be NULL. */
void refusal_words(void *arg, const char *path, int status, const char *words,
	struct strbuf *b);
void refusal_send(struct exchange *x, int status, const char *words);
/* The client may ask again in so many milliseconds; or later. */
void refusal_send_until(
	struct exchange *x, int status, int64_t ms, const char *words);
void refusal_send_later(struct exchange *x, int status, const char *words);
/* With 503: the server cannot serve it now. */
void refusal_send_busy(struct exchange *x, const char *words);

/* ---- route.c ---- */

/* Borrowed. */
struct route {
	const struct http *http;
	struct jobs *jobs;
	struct sessions *sessions;
	struct store *store;
	struct repeats *repeats;
	const struct pool *pool;
	struct tenants *tenants;
	struct traffic *traffic;
	const struct process *process;
	struct access *log;
	const struct request_rules *rules;
	const struct config_serve *limits;
	bool local;    /* no token, and no other host can connect */
	bool ending;   /* /health says so */
	bool draining; /* no request is served any more */
};

/* For struct http_calls: `arg` is a struct route. */
void route_head(void *arg, struct exchange *x);
void route_whole(void *arg, struct exchange *x);
ssize_t route_more(void *arg, struct exchange *x, char *p, size_t max);
void route_over(void *arg, struct exchange *x);
void route_done(void *arg, const struct span *done);

/* ---- session_paths.c ---- */

void session_paths_post(struct route *r, struct exchange *x);
void session_paths_get_all(struct route *r, struct exchange *x);
void session_paths_get(struct route *r, struct exchange *x);
void session_paths_delete(struct route *r, struct exchange *x);
void session_paths_post_interrupt(struct route *r, struct exchange *x);
void session_paths_post_extend(struct route *r, struct exchange *x);
void session_paths_get_events(struct route *r, struct exchange *x);

/* Serve a request of this form: one without fields, one that is in the body,
 * the one where there is no body and else the other, one about the file that
 * the path names. */
void session_paths_ask(
	struct route *r, struct exchange *x, enum request_form form);
void session_paths_ask_body(
	struct route *r, struct exchange *x, enum request_form form);
void session_paths_ask_either(
	struct route *r, struct exchange *x, enum request_form form);
void session_paths_ask_file(
	struct route *r, struct exchange *x, enum request_form form);

#endif
