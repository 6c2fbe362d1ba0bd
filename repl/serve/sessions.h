/* SPDX-License-Identifier: MIT */
/*
 * sessions.h - sessions that outlive a request
 */
#ifndef REPL_SERVE_SESSIONS_H
#define REPL_SERVE_SESSIONS_H

#include "metrics.h"
#include "repl/json/request.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct config;
struct err;
struct exchange;
struct log;
struct pool;
struct session;
struct sessions;
struct strbuf;

/* Borrowed. */
struct sessions_rules {
	const struct config *cfg;
	struct pool *pool;
	struct metrics *metrics;
};

/* Before the cage closes. 0, or -1 with e. */
int sessions_open(struct sessions **out, const struct sessions_rules *rules,
	struct err *e);
void sessions_close(struct sessions *s);

/* Where limits that strike are recorded (borrowed). */
void sessions_set_log(struct sessions *s, const struct log *log);

/* Whether there may be one more; and how many the client has begun. */
bool sessions_have_room(const struct sessions *s);
size_t sessions_of_client(const struct sessions *s, const struct exchange *x);

/* Begin one, and answer the exchange with its id. -1: out of memory. */
int sessions_begin(struct sessions *s, struct exchange *x);

/* The session that this path names behind /v1/sessions/; NULL: there is none,
 * and never was as far as can be told. */
struct session *sessions_find(const struct sessions *s, const char *path);

/* Why it is over, or NULL; whether it serves a request. */
const char *sessions_why_over(const struct session *se);
bool sessions_is_busy(const struct session *se);

/* Append what can be said of it. */
void sessions_add_state(struct strbuf *b, const struct session *se);

/* Serve this request (taken) in a session that is neither over nor busy, and
 * answer the exchange. */
void sessions_serve(struct sessions *s, struct session *se, struct exchange *x,
	struct request *q);

/* Interrupt the request that it serves, which is answered so. */
void sessions_interrupt(struct session *se);

/* End it. Nobody can find it any more. */
void sessions_end(struct sessions *s, struct session *se);

/* For struct http_calls: more of a streamed answer; an exchange is over, of
 * which true says that it was ours. */
ssize_t sessions_more(struct exchange *x, char *p, size_t max);
bool sessions_cancel(struct sessions *s, struct exchange *x);

/* How many there are, and how many of them serve a request. */
size_t sessions_count(const struct sessions *s);
size_t sessions_busy(const struct sessions *s);

/* What to poll, at most `max` (their number), and for how long at most. Hand
 * all over again. */
size_t sessions_most_polls(const struct sessions *s);
size_t sessions_polls(const struct sessions *s, struct pollfd *p, size_t max,
	int *timeout_ms);
void sessions_turn(struct sessions *s, const struct pollfd *p, size_t n);

/* Give jails to those that wait. */
void sessions_start(struct sessions *s);

#endif
