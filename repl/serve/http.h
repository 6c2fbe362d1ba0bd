/* SPDX-License-Identifier: MIT */
/*
 * http.h - requests over HTTP, and what is answered
 *
 * An exchange is one request and its answer. The caller is told of its head, of
 * its end, and when it is over; it answers at any of the first two or later,
 * once, as a whole or bit by bit.
 */
#ifndef REPL_SERVE_HTTP_H
#define REPL_SERVE_HTTP_H

#include "gate.h"
#include "repl/text/strbuf.h"
#include "store.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct exchange;
struct http;

struct http_calls {
	/* Who it is for decides what becomes of its body: http_take_body(),
	 * http_take_file() or nothing, which drops it. */
	void (*head)(void *arg, struct exchange *x);
	/* All of it has come, and head() did not answer. */
	void (*whole)(void *arg, struct exchange *x);
	/* The client takes more of an answer that comes bit by bit: write at
	 * most `max` bytes and return how many. 0: none yet, http_go_on() will
	 * say when. -1: that was all. */
	ssize_t (*more)(void *arg, struct exchange *x, char *p, size_t max);
	/* The client is gone, or has its answer. */
	void (*over)(void *arg, struct exchange *x);
	/* Append the body of an answer that says no, as clients of that path
	 * expect it ("": nobody knows which). */
	void (*words)(void *arg, const char *path, int status,
		const char *words, struct strbuf *b);
	/* Something that was no request was answered with that. */
	void (*refused)(void *arg, int status);
	void *arg;
};

/* Borrowed. */
struct http_rules {
	const int *fds; /* listen; none: http_add_client() brings the clients */
	int nfds;
	int clients;
	size_t body;	/* longest */
	uint64_t form;	/* longest, with all that is around a file */
	size_t answers; /* together, of those that wait to be read */
	struct store *store;
	const struct http_calls *calls;
};

/* 0, or -1 with e. */
int http_open(struct http **out, const struct http_rules *rules, struct err *e);
void http_close(struct http *h);

/* Serve a client that is connected (fd is taken). 0, or -1. */
int http_add_client(struct http *h, int fd);

/* No further clients, and the last answer for each that there is. */
void http_drain(struct http *h);

/* Whether nobody asks for anything. */
bool http_is_idle(const struct http *h);
size_t http_clients(const struct http *h);

/* What to poll (their number), and how long at most. */
#define HTTP_POLLS 2
size_t http_polls(const struct http *h, struct pollfd *p);
int http_timeout_ms(const struct http *h);

/* Do what can be done. */
void http_turn(struct http *h);

/* ---- one exchange ---- */

const char *http_method(const struct exchange *x);
const char *http_path(const struct exchange *x); /* without a query */

/* A header of the request; NULL: it has none. */
const char *http_header(const struct exchange *x, const char *name);

/* In head(): keep the body; keep the file of a form's field `file`. */
void http_take_body(struct exchange *x);
void http_take_file(struct exchange *x);

/* In whole(). */
const struct strbuf *http_body(const struct exchange *x);

/* What came of the file: *file is NULL when there was none. The exchange lets
 * go of it; the name is borrowed. */
enum store_problem http_file(
	struct exchange *x, struct store_file **file, const char **name);

/* Whole requests of the same client that are not over, this one among them. */
size_t http_of_client(const struct exchange *x);
struct gate_peer http_peer(const struct exchange *x);

/* What the caller keeps with an exchange. */
void http_set_own(struct exchange *x, void *own);
void *http_own(const struct exchange *x);

/* Answer: with a body of that type (taken), or with a file (held meanwhile). A
 * header is added before; its name is borrowed. */
void http_add_header(struct exchange *x, const char *name, const char *value);
void http_answer(
	struct exchange *x, int status, const char *type, struct strbuf *body);
void http_answer_file(struct exchange *x, struct store_file *f);

/* Answer bit by bit, with `size` bytes or (-1) as many as come; there is more
 * of it now. */
void http_answer_stream(struct exchange *x, const char *type, int64_t size);
void http_go_on(struct exchange *x);

/* The status that was answered, or 0. */
int http_status(const struct exchange *x);

#endif
