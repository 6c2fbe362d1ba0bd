/* SPDX-License-Identifier: MIT */
/*
 * eval.c - cellblock --eval
 *
 * Runs in:   front end; confined before it reads the first request: it can open
 *            no file, and starts only sessions, through the supplier
 * Trusts:    no request, no program
 * Leaves:    an answer for each request, in order, and no session
 *
 * The supplier makes the next session while a request runs, or while we wait
 * for one: a request does not wait for its jail.
 */
#include "repl/json/json.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "jail/prewarm.h"
#include "repl/config/config.h"
#include "repl/session/session.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

/* Most sessions at a time: the one that runs, the next, those that are ending.
 */
#define SESSIONS_MAX 8

/* ---- ready ---- */

/* Have the next session made, of the kind of the last. But if the next request
 * can be read already, that one says which kind it needs. */
static void want_next_session(struct eval *ev)
{
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};

	if (poll(&p, 1, 0) == 0)
		pool_want(ev->pool, 0, ev->mode, 1, 0);
}

int eval_open(struct eval *ev, const struct config *cfg,
	const struct jail_spec *spec, struct err *e)
{
	struct pool_offer offer = {.spec = spec, .most = SESSIONS_MAX};

	*ev = (struct eval){.cfg = cfg};
	if (pythons_find(&ev->pythons, spec, cfg, e) < 0)
		return -1;
	offer.pythons = ev->pythons.v;
	offer.npythons = ev->pythons.n;
	if (pool_open(&ev->pool, &offer, e) < 0)
		return -1;
	ev->mode = SPEC_CELL;
	want_next_session(ev);
	return 0;
}

int eval_close(struct eval *ev, struct err *e)
{
	int r = pool_close(ev->pool, e);

	pythons_free(&ev->pythons);
	*ev = (struct eval){0};
	return r;
}

/* ---- one request ---- */

/* One stream of requests. */
struct eval_state {
	struct eval *ev;
	struct stream in;
	struct jail *jail; /* of the session, if there is one */
	struct cells *cells;
	int served;
	bool refused; /* a request was invalid */
	bool failed;  /* a jail failed: `err` */
	struct err err;
};

static int write_answer(struct strbuf *b, struct err *e)
{
	int r;

	strbuf_puts(b, "\n");
	r = b->failed ? err_set(e, "write an answer: out of memory")
	    : io_write_full(STDOUT_FILENO, b->s, b->n) < 0
		    ? err_errno(e, "write an answer")
		    : 0;
	strbuf_free(b);
	return r;
}

static int write_refusal(struct eval_state *s, const char *title,
	const char *description, size_t n, struct err *e)
{
	struct strbuf b = {0};

	s->refused = true;
	answer_add_refusal(&b, title, description ? description : "", n);
	return write_answer(&b, e);
}

/* Run a request in a session of its own, which the caller ends. */
static struct jail *run_alone(
	struct eval_state *s, const struct request *q, struct run *r)
{
	struct eval *ev = s->ev;
	struct jail *j = NULL;
	struct err why = {0};

	ev->mode = run_mode(q);
	pool_await(ev->pool, (unsigned)q->python, ev->mode, &j, &why);
	if (j && stream_may_go_on(&s->in))
		pool_want(ev->pool, 0, ev->mode, 1, 0);
	run_begin(r, j, q, ev->cfg, &why);
	while (!run_is_over(r))
		run_wait(r);
	return j;
}

static int serve_alone(
	struct eval_state *s, const struct request *q, struct err *e)
{
	struct eval *ev = s->ev;
	struct strbuf b = {0};
	struct run r;
	struct jail *j = run_alone(s, q, &r);

	for (int i = 1; i < RUN_TRIES && run_is_lost(&r); i++) {
		pool_end(ev->pool, j);
		run_fini(&r);
		j = run_alone(s, q, &r);
	}
	switch (answer_add(&b, &r, NULL)) {
	case ANSWER_RAN:
		break;
	case ANSWER_REFUSED:
		s->refused = true;
		break;
	case ANSWER_FAILED:
		s->failed = true;
		s->err = r.err;
		break;
	}
	if (ev->log && r.how == RUN_ENDED &&
		r.drive.program.limit != LIMIT_NONE)
		log_limit(ev->log, r.drive.program.limit);
	pool_end(ev->pool, j);
	run_fini(&r);
	return write_answer(&b, e);
}

/* ---- a session ---- */

/* Answer that the session broke. Returns -1; e says why. */
static int write_broken(
	struct strbuf *b, const char *title, const struct err *e)
{
	answer_add_refusal(b, title, e->msg, strlen(e->msg));
	write_answer(b, NULL);
	return -1;
}

static enum answer_kind answer_request(struct eval_state *s,
	const struct request *q, struct strbuf *b, struct err *e)
{
	const char *title, *words;
	enum answer_kind kind;

	cells_ask(s->cells, q);
	while (!cells_is_done(s->cells))
		cells_wait(s->cells);
	emit_open(b, NULL, '{');
	kind = outcome_add(b, s->cells, true, e);
	emit_close(b, '}');
	if (kind == ANSWER_REFUSED) {
		b->n = 0;
		words = cells_refusal(s->cells, &title);
		answer_add_refusal(b, title, words, strlen(words));
	}
	return kind;
}

static int begin_session(
	struct eval_state *s, const struct request *q, struct err *e)
{
	static const char late[] =
		"session: goes alone, on the first line of a "
		"stream";
	struct eval *ev = s->ev;
	struct strbuf b = {0};

	if (s->served > 0)
		return write_refusal(s, "Request data failed validation", late,
			sizeof(late) - 1, e);
	if (setup_claim_slot(&ev->slots, e) < 0)
		return write_broken(&b, "The session may not begin", e);
	pool_want(ev->pool, 0, ev->mode, 0, 0);
	if (pool_await(ev->pool, 0, SPEC_SESSION, &s->jail, e) < 0)
		err_kind_set(e, ERR_JAIL);
	else if (cells_open(&s->cells, s->jail, ev->cfg, ev->log, false, e) ==
			 0 &&
		 answer_request(s, q, &b, e) == ANSWER_RAN)
		return write_answer(&b, e);
	if (!e->msg[0])
		err_set(e, "the session ended unexpectedly");
	if (e->kind < ERR_CONFIG)
		err_kind_set(e, ERR_JAIL);
	b.n = 0;
	return write_broken(&b, "The jail failed", e);
}

static int serve_in_session(
	struct eval_state *s, const struct request *q, struct err *e)
{
	struct strbuf b = {0};

	switch (answer_request(s, q, &b, e)) {
	case ANSWER_RAN:
		return write_answer(&b, e);
	case ANSWER_REFUSED:
		s->refused = true;
		return write_answer(&b, e);
	case ANSWER_FAILED:
		break;
	}
	if (!e->msg[0])
		err_set(e, "the session ended unexpectedly");
	err_kind_set(e, ERR_JAIL);
	b.n = 0;
	return write_broken(&b, "The session is over", e);
}

static void end_session(struct eval_state *s)
{
	cells_close(s->cells);
	pool_end(s->ev->pool, s->jail);
}

/* ---- all requests ---- */

static int serve_text(
	struct eval_state *s, const char *text, size_t n, struct err *e)
{
	struct eval *ev = s->ev;
	const struct request_rules rules = {.limits = &ev->cfg->limits,
		.pythons = ev->pythons.v,
		.resolved = ev->pythons.resolved,
		.npythons = ev->pythons.n,
		.locked = ev->cfg->locked,
		.session = s->cells != NULL};
	struct request_refusal why;
	struct request q;
	int r;

	if (request_parse(&q, text, n, &rules, &why) < 0)
		r = write_refusal(
			s, why.title, why.description.s, why.description.n, e);
	else if (s->cells)
		r = serve_in_session(s, &q, e);
	else if (q.form == REQUEST_SESSION)
		r = begin_session(s, &q, e);
	else
		r = serve_alone(s, &q, e);
	request_fini(&q);
	strbuf_free(&why.description);
	return r;
}

/* Base64 takes four characters for three bytes, JSON up to six for one. */
static size_t longest_request(const struct limits *l)
{
	return (size_t)(2 * l->home_bytes + 6 * l->source_bytes) + (1 << 20);
}

static int refuse_size(struct eval_state *s, const char *words, struct err *e)
{
	return write_refusal(
		s, "Request is too large", words, strlen(words), e);
}

/* Serve the next request of the stream. 1; 0: there is none; -1 with e. */
static int serve_next(struct eval_state *s, struct err *e)
{
	const char *text;
	size_t n;
	int r = 0;

	if (!s->cells && stream_is_empty(&s->in))
		want_next_session(s->ev);
	switch (stream_next(&s->in, &text, &n)) {
	case STREAM_END:
		return 0;
	case STREAM_MORE:
	case STREAM_FAILED:
		return err_errno(e, "read standard input");
	case STREAM_LONG:
		r = refuse_size(
			s, "it is longer than any that can be in order", e);
		break;
	case STREAM_DEEP:
		r = refuse_size(s, "it is nested more than 200 deep", e);
		break;
	case STREAM_MANY:
		r = refuse_size(s, "it has more than 1000000 values", e);
		break;
	case STREAM_REQUEST:
		r = serve_text(s, text, n, e);
		break;
	}
	s->served++;
	return r < 0 ? -1 : 1;
}

int eval_run(struct eval *ev, struct err *e)
{
	static const char empty[] = "JSON document body was empty";
	struct eval_state s = {.ev = ev};
	int r;

	/* A write that fails shall return an error. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	stream_open(&s.in, STDIN_FILENO, longest_request(&ev->cfg->limits),
		REQUEST_DEPTH_MAX, REQUEST_VALUES_MAX);
	do
		r = serve_next(&s, e);
	while (r > 0);
	stream_close(&s.in);
	end_session(&s);
	if (r == 0 && s.served == 0)
		r = write_refusal(
			&s, "Invalid JSON", empty, sizeof(empty) - 1, e);
	/* EPIPE: the reader of the answers is gone. If the supplier is gone,
	 * the kind is ERR_JAIL: a failure. */
	if (r < 0 && e->code == EPIPE && e->kind != ERR_JAIL)
		return 128 + SIGPIPE;
	if (r < 0)
		return -1;
	if (!s.failed)
		return s.refused ? 2 : 0;
	*e = s.err;
	return err_kind_set(e, e->kind < ERR_CONFIG ? ERR_JAIL : e->kind);
}
