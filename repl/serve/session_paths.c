/* SPDX-License-Identifier: MIT */
/*
 * session_paths.c - what each path of /v1/sessions does
 *
 * Runs in:   front end, confined
 * Trusts:    nobody; route.c has looked at the token and the type of the body
 * Leaves:    an answer, or a session at work that will answer
 */
#include "repl/serve/route.h"

#include "repl/json/json.h"

#include <stdlib.h>
#include <string.h>

/* The session that the path names, if it is not over; or NULL, after a refusal.
 */
static struct http_session *find_session(struct route *r, struct exchange *x)
{
	struct http_session *se = sessions_find(r->sessions,
		http_path(x) + strlen(ROUTE_SESSIONS), http_peer(x));
	const char *why = se ? sessions_why_over(se) : NULL;
	char words[1200];

	if (!se) {
		refusal_send(x, 404, "Session not found");
		return NULL;
	}
	if (!why)
		return se;
	snprintf(words, sizeof(words), "The session is over: %s", why);
	refusal_send(x, 410, words);
	return NULL;
}

static struct http_session *find_idle(struct route *r, struct exchange *x)
{
	struct http_session *se = find_session(r, x);

	if (!se)
		return NULL;
	if (sessions_is_busy(se))
		refusal_send(x, 409, "The session serves another request");
	else if (r->draining)
		refusal_send_busy(x, "the server is ending");
	else
		return se;
	return NULL;
}

void session_paths_ask(
	struct route *r, struct exchange *x, enum request_form form)
{
	struct request q = {.form = form, .undo = 1};
	struct http_session *se = find_idle(r, x);

	if (se)
		sessions_serve(r->sessions, se, x, &q);
}

void session_paths_ask_body(
	struct route *r, struct exchange *x, enum request_form form)
{
	struct request_rules rules = *r->rules;
	const struct strbuf *body = http_body(x);
	const char *accept = http_field(x, FRAMING_ACCEPT);
	struct http_session *se = find_idle(r, x);
	struct request_refusal why = {0};
	struct request q = {0};

	if (!se)
		return;
	rules.session = true;
	rules.limits = sessions_limits(se);
	if (body->n == 0)
		refusal_send(x, 422, refusal_empty);
	else if (request_is_deep(body->s, body->n))
		refusal_send(x, 422, refusal_too_deep);
	else if (request_parse(&q, body->s, body->n, &rules, &why) < 0)
		refusal_send(x, 422, strbuf_text(&why.description));
	else if (q.form != form)
		refusal_send(x, 422,
			form == REQUEST_CELL ? "'code' is a required property"
					     : "'undo' is a required property");
	q.streams = accept && strcasestr(accept, "text/event-stream");
	if (!http_status(x))
		sessions_serve(r->sessions, se, x, &q);
	request_fini(&q);
	strbuf_free(&why.description);
}

void session_paths_ask_either(
	struct route *r, struct exchange *x, enum request_form form)
{
	if (http_body(x)->n)
		session_paths_ask_body(r, x, form);
	else
		session_paths_ask(r, x, form);
}

void session_paths_ask_file(
	struct route *r, struct exchange *x, enum request_form form)
{
	const char *path =
		strstr(http_path(x) + strlen(ROUTE_SESSIONS), "/files/") + 7;
	const struct strbuf *body = http_body(x);
	struct http_session *se = find_idle(r, x);
	struct request_refusal why = {0};
	struct request q = {.form = form};

	if (!se)
		return;
	if (request_add_content(&q, path, body->s, body->n, r->rules, &why) < 0)
		refusal_send(x, 422, strbuf_text(&why.description));
	else
		sessions_serve(r->sessions, se, x, &q);
	request_fini(&q);
	strbuf_free(&why.description);
}

void session_paths_post(struct route *r, struct exchange *x)
{
	struct connections_peer who = http_peer(x);
	struct request_refusal why = {0};
	struct terms t;

	if (terms_parse(&t, http_body(x), r->rules->limits, &why) < 0)
		refusal_send(x, 422, strbuf_text(&why.description));
	else if (r->draining)
		refusal_send_busy(x, "the server is ending");
	else if (!sessions_have_room(r->sessions))
		refusal_send_until(x, 503, sessions_wait_ms(r->sessions, NULL),
			"there are too many sessions");
	else if (sessions_of_client(r->sessions, who) >=
		 (size_t)r->limits->sessions_per_client)
		refusal_send_until(x, 429, sessions_wait_ms(r->sessions, &who),
			"too many sessions of this client");
	else if (sessions_begin(r->sessions, x, &t) < 0)
		refusal_send_busy(x, "out of memory");
	terms_fini(&t);
	strbuf_free(&why.description);
}

void session_paths_get_all(struct route *r, struct exchange *x)
{
	struct strbuf b = {0};

	sessions_add_list(&b, r->sessions, http_peer(x));
	http_answer(x, 200, HTTP_JSON, &b);
}

void session_paths_get(struct route *r, struct exchange *x)
{
	struct http_session *se = find_session(r, x);
	struct strbuf b = {0};

	if (!se)
		return;
	sessions_add_state(&b, se);
	http_answer(x, 200, HTTP_JSON, &b);
}

void session_paths_delete(struct route *r, struct exchange *x)
{
	struct http_session *se = sessions_find(r->sessions,
		http_path(x) + strlen(ROUTE_SESSIONS), http_peer(x));
	struct strbuf b = {0};

	if (!se) {
		refusal_send(x, 404, "Session not found");
		return;
	}
	sessions_end(r->sessions, se, "it was deleted");
	http_answer(x, 204, NULL, &b);
}

void session_paths_post_interrupt(struct route *r, struct exchange *x)
{
	struct http_session *se = find_session(r, x);
	struct strbuf b = {0};

	if (!se)
		return;
	sessions_interrupt(se);
	http_answer(x, 204, NULL, &b);
}

void session_paths_post_extend(struct route *r, struct exchange *x)
{
	struct request_refusal why = {0};
	struct strbuf b = {0};
	struct http_session *se = find_session(r, x);
	int64_t ms;

	if (!se)
		return;
	if (terms_parse_extension(&ms, http_body(x), &why) < 0) {
		refusal_send(x, 422, strbuf_text(&why.description));
	} else if (sessions_extend(r->sessions, se, ms) < 0) {
		refusal_send(x, 422, "session.lifetime is over before");
	} else {
		sessions_add_state(&b, se);
		http_answer(x, 200, HTTP_JSON, &b);
	}
	strbuf_free(&why.description);
}

void session_paths_get_events(struct route *r, struct exchange *x)
{
	const char *cell = strstr(http_path(x), "/cells/") + 7;
	struct http_session *se = find_session(r, x);
	int found;

	if (!se)
		return;
	found = sessions_resume(se, x, (unsigned)strtoul(cell, NULL, 10),
		http_field(x, FRAMING_LAST_EVENT_ID));
	if (found == 0)
		refusal_send(x, 404, "The events of this cell are not kept");
	else if (found < 0)
		refusal_send(
			x, 422, "Last-Event-ID is of no event of this cell");
}
