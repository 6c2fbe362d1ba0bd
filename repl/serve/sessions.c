/* SPDX-License-Identifier: MIT */
/*
 * sessions.c - sessions that outlive a request
 *
 * Runs in:   front end, confined but for sessions_open()
 * Trusts:    the warden for when a cell ended and how; no byte that comes from
 *            a jail
 * Leaves:    at most serve.sessions sessions, and for as many that are over
 *            the reason why
 *
 * A session serves one request at a time. It makes a streamed answer as the
 * client reads, so for a slow client it keeps only the output of a cell, which
 * cell.output and cell.tail bound. When a client goes away, we interrupt its
 * request. The session stays.
 *
 * A stream that has an Idempotency-Key can be resumed: its cell goes on without
 * a client for serve.away, and after its end we keep its output for as long, or
 * until the next request.
 */
#include "repl/serve/parts.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "jail/prewarm.h"
#include "repl/config/config.h"
#include "repl/json/json.h"
#include "repl/session/session.h"
#include "repl/text/text.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECRET_BYTES 16
#define NAME_MAX_LEN 64
#define ID_MAX (NAME_MAX_LEN + 1 + 2 * SECRET_BYTES)

static const char over_words[] = "The session is over";

struct http_session {
	struct http_session *next;
	char id[ID_MAX + 1];	      /* "": clients cannot find it */
	int number;		      /* for operators */
	char client[128];	      /* and in words */
	struct connections_peer peer; /* the client that began it */
	struct jail *jail;	      /* NULL: not made yet, or over */
	struct cells *cells;	      /* NULL when `jail` is */
	struct log log;
	int64_t born_ms, touched_ms;
	struct terms terms;
	char *why; /* why it is over, or NULL; owned */
	/* the request */
	struct request request;
	struct response response;
	bool serves; /* the request is not done */
	bool hurried;
	bool known;	 /* a client has got the id */
	bool gone;	 /* free_gone() frees it */
	int64_t left_ms; /* since when the response has no client, or was over
			  */
};

struct sessions {
	struct sessions_rules rules;
	const struct log *log;
	char name[NAME_MAX_LEN + 1];
	struct http_session *first; /* the oldest */
	int last;		    /* number of the last session */
};

/* ---- open and close ---- */

int sessions_open(struct sessions **out, const struct sessions_rules *rules,
	struct err *e)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	struct sessions *s = calloc(1, sizeof(*s));
	const char *name = rules->cfg->serve.name;

	if (!s)
		return err_errno(e, "serve");
	s->rules = *rules;
	if (name)
		snprintf(s->name, sizeof(s->name), "%s", name);
	else if (gethostname(s->name, sizeof(s->name) - 1) < 0)
		snprintf(s->name, sizeof(s->name), "host");
	if (*s->name && !s->name[strspn(s->name, letters)]) {
		*out = s;
		return 0;
	}
	err_set(e,
		"serve.name: '%s' has other characters than letters, "
		"digits, '.', '_' and '-'",
		s->name);
	free(s);
	return -1;
}

void sessions_set_log(struct sessions *s, const struct log *log)
{
	s->log = log;
}

static void end_jail(struct sessions *s, struct http_session *se)
{
	cells_close(se->cells);
	pool_end(s->rules.pool, se->jail);
	se->cells = NULL;
	se->jail = NULL;
}

/* End all of a session but its place in the list: a caller may walk along
 * that. No request finds it from now on. */
static void forget_session(struct sessions *s, struct http_session *se)
{
	end_jail(s, se);
	request_fini(&se->request);
	terms_fini(&se->terms);
	response_close(&se->response);
	free(se->why);
	se->why = NULL;
	se->id[0] = '\0';
	se->serves = false;
	se->gone = true;
}

/* Free the sessions that are forgotten. No caller may be walking along the
 * list. */
static void free_gone(struct sessions *s)
{
	struct http_session **at = &s->first, *se;

	while ((se = *at)) {
		if (!se->gone) {
			at = &se->next;
			continue;
		}
		*at = se->next;
		free(se);
	}
}

void sessions_close(struct sessions *s)
{
	if (!s)
		return;
	for (struct http_session *se = s->first; se; se = se->next)
		forget_session(s, se);
	free_gone(s);
	free(s);
}

/* ---- the list ---- */

static bool is_over(const struct http_session *se)
{
	return se->why || !se->id[0];
}

size_t sessions_count(const struct sessions *s)
{
	size_t n = 0;

	for (struct http_session *se = s->first; se; se = se->next)
		n += !is_over(se);
	return n;
}

size_t sessions_busy(const struct sessions *s)
{
	size_t n = 0;

	for (struct http_session *se = s->first; se; se = se->next)
		n += sessions_is_busy(se);
	return n;
}

bool sessions_have_room(const struct sessions *s)
{
	return sessions_count(s) < (size_t)s->rules.cfg->serve.sessions;
}

/* True if the session is not over, and of this client (NULL: of any). */
static bool is_clients(
	const struct http_session *se, const struct connections_peer *who)
{
	return !is_over(se) && (!who || connections_is_same(se->peer, *who));
}

size_t sessions_of_client(const struct sessions *s, struct connections_peer who)
{
	size_t n = 0;

	for (struct http_session *se = s->first; se; se = se->next)
		n += is_clients(se, &who);
	return n;
}

int64_t sessions_wait_ms(
	const struct sessions *s, const struct connections_peer *who)
{
	int64_t now = now_ms(), first = s->rules.cfg->limits.lifetime_ms;

	for (struct http_session *se = s->first; se; se = se->next) {
		const struct limits *l = &se->terms.limits;
		int64_t idle = sessions_is_busy(se) ? now : se->touched_ms;
		int64_t left[] = {se->born_ms + l->lifetime_ms - now,
			idle + l->idle_ms - now};

		for (int i = 0; i < 2 && is_clients(se, who); i++)
			first = left[i] < first ? left[i] : first;
	}
	return first > 0 ? first : 0;
}

/* Compare in a time that does not depend on where the two differ. */
static bool is_id(const struct http_session *se, const char *id, size_t n)
{
	unsigned char differ = 0;

	if (!n || strlen(se->id) != n)
		return false;
	for (size_t i = 0; i < n; i++)
		differ |= (unsigned char)(se->id[i] ^ id[i]);
	return !differ;
}

struct http_session *sessions_find(
	const struct sessions *s, const char *path, struct connections_peer who)
{
	size_t n = strcspn(path, "/");
	struct http_session *found = NULL;

	for (struct http_session *se = s->first; se; se = se->next)
		if (is_id(se, path, n) && connections_may_share(se->peer, who))
			found = se;
	return found;
}

const char *sessions_why_over(const struct http_session *se)
{
	return se->why;
}

bool sessions_is_busy(const struct http_session *se)
{
	return se->serves || se->response.exchange;
}

void sessions_add_state(struct strbuf *b, const struct http_session *se)
{
	const char *state = cells_has_begun(se->cells) ? "running"
			    : sessions_is_busy(se)     ? "busy"
						       : "idle";
	int64_t now = now_ms();

	emit_open(b, NULL, '{');
	emit_text(b, "id", se->id);
	emit_text(b, "state", state);
	emit_text(b, "python", cells_python(se->cells));
	emit_int(b, "cells", cells_count(se->cells));
	emit_int(b, "age_ms", now - se->born_ms);
	emit_int(b, "idle_ms", now - se->touched_ms);
	terms_add(b, &se->terms);
	emit_close(b, '}');
}

static struct metrics *metrics_of(
	const struct sessions *s, const struct http_session *se)
{
	return tenants_metrics(s->rules.tenants, se->peer);
}

void sessions_add_list(
	struct strbuf *b, const struct sessions *s, struct connections_peer who)
{
	emit_open(b, NULL, '{');
	emit_open(b, "sessions", '[');
	for (struct http_session *se = s->first; se; se = se->next) {
		if (!is_clients(se, &who) || !se->known)
			continue;
		sessions_add_state(b, se);
	}
	emit_close(b, ']');
	emit_close(b, '}');
}

/* Keep at most serve.sessions sessions that are over. */
static void forget_oldest(struct sessions *s)
{
	struct http_session *oldest = NULL;
	int n = 0;

	for (struct http_session *se = s->first; se; se = se->next) {
		if (!se->why || se->response.exchange)
			continue;
		n++;
		if (!oldest)
			oldest = se;
	}
	if (n > s->rules.cfg->serve.sessions)
		forget_session(s, oldest);
}

/* ---- answers ---- */

/* Answer a request that was served; `b` is what --eval would answer. */
static void answer_served(
	const struct sessions *s, struct http_session *se, struct strbuf *b)
{
	struct strbuf none = {0};

	switch (se->request.form) {
	case REQUEST_SESSION:
		se->known = true;
		response_send(&se->response, 201, HTTP_JSON, b);
		return;
	case REQUEST_REMOVE:
		response_send(&se->response, 204, NULL, &none);
		break;
	case REQUEST_WRITE:
		response_send(&se->response, 201, HTTP_JSON, b);
		return;
	case REQUEST_OPEN:
		response_file(&se->response, cells_take_file(se->cells),
			s->rules.cfg->limits.max_file_bytes);
		break;
	case REQUEST_CELL:
	case REQUEST_UNDO:
	case REQUEST_RESET:
	case REQUEST_READ:
	case REQUEST_LIST:
	case REQUEST_SNEKBOX:
	case REQUEST_PROGRAM:
	case REQUEST_OURS:
		if (se->response.begun)
			response_end(&se->response, "done", false, b);
		else
			response_send(&se->response, 200, HTTP_JSON, b);
		return;
	}
	strbuf_free(b);
}

/* The status for a valid request that was not served. */
static int find_status(const struct http_session *se)
{
	enum request_form form = se->request.form;

	return cells_is_forbidden(se->cells)			? 403
	       : form == REQUEST_UNDO || se->hurried		? 409
	       : form == REQUEST_OPEN || form == REQUEST_REMOVE ? 404
								: 422;
}

/* Note how the request ended. */
static void note_end(struct http_session *se, enum answer_kind kind)
{
	const struct jail_done *d = cells_done(se->cells);
	enum request_form form = se->request.form;

	if (!se->response.exchange)
		return;
	if (form == REQUEST_CELL && kind == ANSWER_RAN)
		span_note_run(
			http_span(se->response.exchange), d->limit, d->cpu_ms);
	else if (kind == ANSWER_FAILED)
		span_note_failure(http_span(se->response.exchange),
			cells_why_over(se->cells));
}

/* The request is done, served or not: answer its client, if that still waits.
 */
static void finish_request(struct sessions *s, struct http_session *se)
{
	enum request_form form = se->request.form;
	struct cells *c = se->cells;
	struct strbuf b = {0};
	struct err e = {0};
	enum answer_kind kind;

	emit_open(&b, NULL, '{');
	if (form == REQUEST_SESSION)
		emit_text(&b, "id", se->id);
	kind = outcome_add(&b, c, !se->request.streams, &e);
	emit_close(&b, '}');
	if (kind == ANSWER_RAN && se->request.streams &&
		se->response.exchange && !se->response.begun)
		response_stream(&se->response, se->id, cells_count(se->cells));
	if (form == REQUEST_CELL && kind == ANSWER_RAN)
		metrics_cell(metrics_of(s, se), cells_done(c)->limit);
	note_end(se, kind);
	if (se->response.exchange && kind == ANSWER_RAN)
		answer_served(s, se, &b);
	else if (se->response.resumable && kind == ANSWER_RAN)
		response_end(&se->response, "done", false, &b);
	else if (form == REQUEST_SESSION && kind == ANSWER_FAILED)
		response_refuse(&se->response, 503, "The jail failed",
			cells_why_over(c));
	else if (cells_is_over(c) && kind != ANSWER_RAN)
		response_refuse(
			&se->response, 410, over_words, cells_why_over(c));
	else if (kind != ANSWER_RAN)
		response_refuse(&se->response, find_status(se), "",
			cells_refusal(c, NULL));
	strbuf_free(&b);
	se->serves = false;
	se->touched_ms = se->left_ms = now_ms();
}

/* End the jail of a session that is over. Keep the session's reason for its
 * client; free a session of which no client has got the id. */
static void retire_session(
	struct sessions *s, struct http_session *se, const char *why)
{
	if (!se->known) {
		forget_session(s, se);
		return;
	}
	se->why = strdup(why);
	/* Out of memory for the reason: clients cannot find it. */
	if (!se->why)
		se->id[0] = '\0';
	end_jail(s, se);
	forget_oldest(s);
}

/* ---- streams ---- */

/* True if the session still has the events of a cell. */
static bool keeps_events(const struct http_session *se)
{
	return se->cells && response_is_kept(&se->response, se->serves);
}

int sessions_resume(struct http_session *se, struct exchange *x, unsigned cell,
	const char *id)
{
	int r;

	if (!keeps_events(se) || se->response.events.cell != cell)
		return 0;
	r = response_resume(&se->response, se->cells, x, id);
	if (r > 0)
		http_set_own(x, se);
	return r < 0 ? -1 : 1;
}

ssize_t sessions_more(struct exchange *x, char *p, size_t max)
{
	struct http_session *se = http_own(x);

	return se ? response_more(&se->response, se->cells, p, max) : -1;
}

bool sessions_cancel(struct sessions *s, struct exchange *x)
{
	struct http_session *se = s->first;

	while (se && se->response.exchange != x)
		se = se->next;
	if (!se)
		return false;
	response_lose(&se->response);
	se->touched_ms = se->left_ms = now_ms();
	if (!se->id[0] || !se->known) {
		forget_session(s, se);
		return true;
	}
	if (se->serves) {
		metrics_gone(metrics_of(s, se));
		if (!se->response.resumable)
			cells_interrupt(se->cells);
	}
	return true;
}

/* ---- requests ---- */

static void make_id(const struct sessions *s, char *id)
{
	unsigned char r[SECRET_BYTES] = {0};
	size_t n = (size_t)snprintf(id, ID_MAX + 1, "%s-", s->name);

	/* getrandom(2) never fails for so few bytes once the system is up. */
	(void)!getrandom(r, sizeof(r), 0);
	for (size_t i = 0; i < sizeof(r); i++)
		n += (size_t)snprintf(id + n, ID_MAX + 1 - n, "%02x", r[i]);
}

/* Let the exchange wait for an answer from this session. */
static void take_exchange(struct http_session *se, struct exchange *x)
{
	response_begin(&se->response, x, se->request.streams);
	se->serves = true;
	se->hurried = false;
	se->touched_ms = now_ms();
	http_set_own(x, se);
}

/* "10.8.0.7"; of a tenant "grader, 10.8.0.7". */
static void name_client(const struct sessions *s, struct http_session *se,
	const struct exchange *x)
{
	const char *tenant = tenants_name(s->rules.tenants, se->peer);

	snprintf(se->client, sizeof(se->client), "%s%s%s", tenant ? tenant : "",
		tenant ? ", " : "", http_client(x));
}

int sessions_begin(struct sessions *s, struct exchange *x, struct terms *t)
{
	struct http_session *se = calloc(1, sizeof(*se)), **at = &s->first;

	if (!se)
		return -1;
	response_open(&se->response);
	se->born_ms = now_ms();
	se->terms = *t;
	t->metadata = NULL;
	se->request.form = REQUEST_SESSION;
	se->log = *s->log;
	se->peer = http_peer(x);
	se->number = ++s->last;
	name_client(s, se, x);
	make_id(s, se->id);
	while (*at)
		at = &(*at)->next;
	*at = se;
	take_exchange(se, x);
	metrics_session(metrics_of(s, se));
	return 0;
}

/* Begin to stream a cell's output once the cell runs: before, we can still
 * refuse the request. */
static void continue_request(struct sessions *s, struct http_session *se)
{
	if (se->response.exchange && !se->response.begun &&
		se->request.streams && cells_has_begun(se->cells))
		response_stream(&se->response, se->id, cells_count(se->cells));
	if (cells_is_done(se->cells)) {
		finish_request(s, se);
	} else if (se->response.exchange && se->response.begun &&
		   events_are_due(&se->response.events, se->cells)) {
		http_go_on(se->response.exchange);
	}
}

void sessions_serve(struct sessions *s, struct http_session *se,
	struct exchange *x, struct request *q)
{
	request_fini(&se->request);
	se->request = *q;
	*q = (struct request){0};
	take_exchange(se, x);
	cells_ask(se->cells, &se->request);
	continue_request(s, se);
}

void sessions_interrupt(struct http_session *se)
{
	if (!se->serves || !se->cells)
		return;
	se->hurried = true;
	cells_interrupt(se->cells);
}

void sessions_end(struct sessions *s, struct http_session *se, const char *why)
{
	se->id[0] = '\0';
	se->serves = false;
	response_refuse(&se->response, 410, over_words, why);
	if (!se->response.exchange)
		forget_session(s, se);
	else
		end_jail(s, se);
}

void sessions_sweep(struct sessions *s)
{
	for (struct http_session *se = s->first; se; se = se->next)
		if (se->id[0] && tenants_is_gone(s->rules.tenants, se->peer))
			sessions_end(s, se, "its tenant is gone");
}

/* ---- terms ---- */

const struct limits *sessions_limits(const struct http_session *se)
{
	return &se->terms.limits;
}

int sessions_extend(
	const struct sessions *s, struct http_session *se, int64_t ms)
{
	int64_t age = now_ms() - se->born_ms;

	if (ms > s->rules.cfg->limits.lifetime_ms - age)
		return -1;
	if (age + ms > se->terms.limits.lifetime_ms)
		se->terms.limits.lifetime_ms = age + ms;
	if (se->jail)
		jail_touch(se->jail);
	se->touched_ms = now_ms();
	return 0;
}

/* Milliseconds until a limit of its own ends the session; *limit: which. The
 * warden ends it at the configured limits. */
static int64_t find_end(const struct sessions *s, const struct http_session *se,
	enum jail_limit *limit)
{
	const struct limits *l = &se->terms.limits, *c = &s->rules.cfg->limits;
	int64_t now = now_ms(), life = INT64_MAX, idle = INT64_MAX;

	if (l->lifetime_ms < c->lifetime_ms)
		life = se->born_ms + l->lifetime_ms - now;
	if (l->idle_ms < c->idle_ms && !sessions_is_busy(se))
		idle = se->touched_ms + l->idle_ms - now;
	*limit = life <= idle ? LIMIT_LIFETIME : LIMIT_IDLE;
	return life <= idle ? life : idle;
}

/* End a session at a limit of its own. True if it was time. */
static bool end_in_time(struct sessions *s, struct http_session *se)
{
	char why[VERDICT_MAX];
	enum jail_limit limit;

	if (!se->known || find_end(s, se, &limit) > 0)
		return false;
	verdict_session_end(why, limit, &se->terms.limits);
	se->serves = false;
	response_refuse(&se->response, 410, over_words, why);
	retire_session(s, se, why);
	return true;
}

/* Interrupt a cell whose client has been away for too long; forget the events
 * of one that has been over for as long. */
static void check_events(const struct sessions *s, struct http_session *se)
{
	if (!se->response.resumable || se->response.exchange ||
		now_ms() - se->left_ms < s->rules.cfg->serve.away_ms)
		return;
	if (se->serves && !se->hurried)
		sessions_interrupt(se);
	else if (!se->serves)
		response_give_up(&se->response);
}

/* ---- operators ---- */

const struct http_session *sessions_next(
	const struct sessions *s, const struct http_session *se)
{
	for (se = se ? se->next : s->first; se; se = se->next)
		if (!is_over(se) && se->cells)
			return se;
	return NULL;
}

void sessions_tell(const struct http_session *se, struct sessions_told *t)
{
	*t = (struct sessions_told){.number = se->number,
		.client = se->client,
		.born_ms = se->born_ms,
		.touched_ms = se->touched_ms,
		.cells = cells_count(se->cells),
		.usage = cells_drive(se->cells)->usage,
		.runs = cells_has_begun(se->cells)};
}

void sessions_ask_usage(struct sessions *s)
{
	for (struct http_session *se = s->first; se; se = se->next)
		if (!is_over(se) && se->cells)
			drive_ask_usage(cells_drive(se->cells));
}

bool sessions_usage_is_due(const struct sessions *s)
{
	const struct http_session *se = NULL;

	while ((se = sessions_next(s, se)))
		if (cells_drive(se->cells)->usage_due)
			return true;
	return false;
}

bool sessions_stop(struct sessions *s, int number, const char *why)
{
	struct http_session *se = s->first;

	while (se && (se->number != number || is_over(se)))
		se = se->next;
	if (!se)
		return false;
	se->serves = false;
	response_refuse(&se->response, 410, over_words, why);
	retire_session(s, se, why);
	return true;
}

/* Free the last request of an idle session. */
static void release_request(struct http_session *se)
{
	if (keeps_events(se))
		return;
	response_close(&se->response);
	cells_rest(se->cells);
	if (se->request.root || se->request.files)
		request_fini(&se->request);
}

/* ---- the loop ---- */

size_t sessions_most_polls(const struct sessions *s)
{
	return CELLS_POLLS * sessions_count(s);
}

size_t sessions_polls(
	const struct sessions *s, struct pollfd *p, size_t max, int *timeout_ms)
{
	size_t n = 0;

	for (struct http_session *se = s->first; se; se = se->next) {
		enum jail_limit limit;
		int64_t left;
		int ms;

		if (!se->cells || n + CELLS_POLLS > max)
			continue;
		ms = cells_polls(se->cells, p + n);
		n += CELLS_POLLS;
		if (ms >= 0 && ms < *timeout_ms)
			*timeout_ms = ms;
		left = se->known ? find_end(s, se, &limit) : INT64_MAX;
		if (left < *timeout_ms)
			*timeout_ms = left < 0 ? 0 : (int)left;
	}
	return n;
}

static bool is_ready(const struct pollfd *p)
{
	for (int i = 0; i < CELLS_POLLS; i++)
		if (p[i].revents)
			return true;
	return false;
}

void sessions_turn(struct sessions *s, const struct pollfd *p, size_t n)
{
	struct http_session *se = s->first;

	for (size_t at = 0; se && at + CELLS_POLLS <= n; se = se->next) {
		if (!se->cells)
			continue;
		if (se->serves || is_ready(p + at))
			cells_turn(se->cells, p + at);
		at += CELLS_POLLS;
		if (se->serves)
			continue_request(s, se);
		check_events(s, se);
		if (se->id[0] && end_in_time(s, se))
			continue;
		if (sessions_is_busy(se))
			continue;
		release_request(se);
		if (cells_is_over(se->cells) || !se->known)
			retire_session(s, se, cells_why_over(se->cells));
	}
	free_gone(s);
}

/* Give a session a jail. False: the pool has none yet. */
static bool start_session(struct sessions *s, struct http_session *se)
{
	struct err e = {0};
	int r = pool_take(s->rules.pool, 0, SPEC_SESSION, &se->jail, &e);

	if (r == 0)
		return false;
	if (r > 0)
		r = cells_open(&se->cells, se->jail, s->rules.cfg, &se->log,
			false, &e);
	if (r < 0) {
		if (se->response.exchange)
			span_note_failure(
				http_span(se->response.exchange), e.msg);
		response_refuse(&se->response, 503, "The jail failed", e.msg);
		forget_session(s, se);
		return true;
	}
	cells_lower(se->cells, &se->terms.limits);
	cells_begin(se->cells, &se->request);
	continue_request(s, se);
	return true;
}

void sessions_start(struct sessions *s)
{
	const struct config_serve *c = &s->rules.cfg->serve;
	int waiting = 0, room = c->sessions - (int)sessions_count(s);

	for (struct http_session *se = s->first; se; se = se->next)
		if (!se->jail && se->serves && !start_session(s, se))
			waiting++;
	pool_want(s->rules.pool, 0, SPEC_SESSION, waiting,
		c->spare < room ? c->spare
		: room > 0	? room
				: 0);
}
