/* SPDX-License-Identifier: MIT */
/*
 * calls.c - the session, and the call that is served in it
 *
 * Runs in:   front end, confined
 * Holds:     the session's jail
 * Trusts:    no argument of a call, and no output of a cell: we answer with it
 *            as text, in our own JSON
 * Leaves:    an answer for each call that was not dropped; a session for the
 *            next, or the reason why there is none
 */
#include "repl/mcp/parts.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "jail/prewarm.h"
#include "repl/config/config.h"
#include "repl/json/json.h"
#include "repl/session/session.h"
#include "repl/text/text.h"

#include <stdlib.h>
#include <string.h>

/* Time between progress notifications; most bytes of a line in one. */
#define PROGRESS_MS 1000
#define LINE_MAX_BYTES 200

struct calls {
	struct pool *pool; /* borrowed, as the next two */
	const struct config *cfg;
	struct log *log;
	json_t *tools;	   /* owned */
	struct jail *jail; /* owned, with the cells; NULL: there is none */
	struct cells *cells;
	bool awaited;	   /* the pool makes a session */
	struct err failed; /* the first failure of a session */
	/* the call */
	const struct call *call;
	enum tools_tool tool;
	struct request q;
	char *path; /* of the file to read or write; owned */
	bool asks;  /* true: cells.c has the answer; false: resource.c has it */
	bool begun; /* cells.c serves it */
	unsigned cells_before;
	int code;	/* of a protocol error, or 0 */
	struct err why; /* why the call is not served; empty: it is */
	int64_t began_ms, told_ms;
};

/* ---- the session ---- */

static void fail_session(struct calls *c, const struct err *e)
{
	if (c->failed.msg[0])
		return;
	c->failed = *e;
	if (e->kind < ERR_CONFIG)
		err_kind_set(&c->failed, ERR_JAIL);
}

static void end_session(struct calls *c)
{
	if (c->cells && cells_error(c->cells)->msg[0])
		fail_session(c, cells_error(c->cells));
	cells_close(c->cells);
	pool_end(c->pool, c->jail);
	c->cells = NULL;
	c->jail = NULL;
}

/* Take the session, if the pool has made it. */
static void take_session(struct calls *c)
{
	struct err e = {0};
	int r = pool_take(c->pool, 0, SPEC_SESSION, &c->jail, &e);

	if (r == 0)
		return;
	c->awaited = false;
	pool_want(c->pool, 0, SPEC_SESSION, 0, 0);
	if (r > 0 &&
		cells_open(&c->cells, c->jail, c->cfg, c->log, true, &e) == 0)
		return;
	fail_session(c, &e);
	end_session(c);
}

static void begin_session(struct calls *c)
{
	c->awaited = true;
	pool_want(c->pool, 0, SPEC_SESSION, 1, 0);
	take_session(c);
}

/* A configuration that forbids a command forbids the tool that does the same.
 * 0, or -1 with the reason. */
static int check_tool_allowed(struct calls *c, enum tools_tool tool)
{
	return config_check_command(c->cfg, tools_command(tool), &c->why);
}

static void leave_out_tools(struct calls *c)
{
	for (int i = 0; i < TOOLS_UNKNOWN; i++)
		if (check_tool_allowed(c, (enum tools_tool)i) < 0)
			tools_leave_out(c->tools, (enum tools_tool)i);
}

int calls_open(struct calls **out, struct pool *pool, const struct config *cfg,
	struct log *log, struct err *e)
{
	struct calls *c = calloc(1, sizeof(*c));

	if (!c)
		return err_errno(e, "begin a session");
	*out = c;
	c->pool = pool;
	c->cfg = cfg;
	c->log = log;
	c->tools = tools_load(e);
	if (!c->tools)
		return -1;
	leave_out_tools(c);
	begin_session(c);
	return 0;
}

int calls_close(struct calls *c, struct err *e)
{
	int r;

	if (!c)
		return 0;
	end_session(c);
	r = c->failed.msg[0] ? -1 : 0;
	if (r < 0)
		*e = c->failed;
	request_fini(&c->q);
	free(c->path);
	json_decref(c->tools);
	free(c);
	return r;
}

void calls_add_tools(const struct calls *c, struct strbuf *b)
{
	tools_add(b, c->tools);
}

bool calls_is_ready(const struct calls *c)
{
	return !c->call && !c->awaited &&
	       (!c->cells || cells_is_up(c->cells) || cells_is_over(c->cells));
}

/* ---- the beginning of a call ---- */

/* Make a request of the session from its members (taken). */
static void make_request(struct calls *c, json_t *root)
{
	const struct request_rules rules = {
		.limits = &c->cfg->limits, .session = true};
	struct request_refusal why = {0};

	if (!root)
		err_set(&c->why, "out of memory");
	else if (request_take(&c->q, root, &rules, &why) < 0)
		err_set(&c->why, "%.500s",
			why.description.s ? why.description.s : why.title);
	strbuf_free(&why.description);
}

static const json_t *find_argument(const struct calls *c, const char *name)
{
	return json_object_get(
		message_param(&c->call->m, "arguments", JSON_OBJECT), name);
}

static int no_resource_code(const struct calls *c)
{
	return c->call->stateless ? MESSAGE_BAD_PARAMS : MESSAGE_NO_RESOURCE;
}

static void begin_undo(struct calls *c)
{
	const json_t *cells = find_argument(c, "cells");

	make_request(
		c, json_pack("{s:I}", "undo",
			   cells ? json_integer_value(cells) : (json_int_t)1));
}

/* Reset the session, or replace one that is over. */
static void begin_reset(struct calls *c)
{
	c->q.form = REQUEST_RESET;
	if (c->cells && !cells_is_over(c->cells))
		return;
	end_session(c);
	begin_session(c);
	c->q.form = REQUEST_SESSION;
}

static void begin_list(struct calls *c)
{
	const json_t *pattern = find_argument(c, "pattern");

	if (pattern)
		make_request(c, json_pack("{s:O}", "read", pattern));
	c->q.form = REQUEST_LIST;
}

static void begin_file(struct calls *c)
{
	c->path = resource_from_name(find_argument(c, "path"), &c->why);
	c->q.form = REQUEST_OPEN;
	c->q.path = c->path;
	if (c->path && c->tool == TOOLS_WRITE_FILE)
		resource_take(&c->q, c->path, find_argument(c, "text"),
			find_argument(c, "content"), &c->cfg->limits, &c->why);
}

/* resources/read */
static void begin_read(struct calls *c)
{
	const json_t *uri = message_param(&c->call->m, "uri", JSON_STRING);

	c->q.form = REQUEST_OPEN;
	if (!uri) {
		c->code = MESSAGE_BAD_PARAMS;
		err_set(&c->why, "Invalid params: uri is no string");
		return;
	}
	c->path = resource_from_uri(uri, &c->why);
	c->q.path = c->path;
	if (!c->path)
		c->code = no_resource_code(c);
}

static void begin_tool(struct calls *c, const struct message *m)
{
	const json_t *arguments = json_object_get(m->params, "arguments");
	const json_t *name = json_object_get(m->params, "name");

	c->tool = tools_find(name);
	if (c->tool == TOOLS_UNKNOWN) {
		c->code = MESSAGE_BAD_PARAMS;
		err_set(&c->why, "Unknown tool: %.100s",
			json_is_string(name) ? json_string_value(name) : "?");
	} else if (arguments && !json_is_object(arguments)) {
		c->code = MESSAGE_BAD_PARAMS;
		err_set(&c->why, "Invalid params: arguments is no object");
	} else if (check_tool_allowed(c, c->tool) < 0 ||
		   tools_check(c->tools, c->tool, arguments, &c->why) < 0) {
		return;
	} else if (json_object_get(arguments, "files") &&
		   check_tool_allowed(c, TOOLS_WRITE_FILE) < 0) {
		return;
	} else if (c->tool == TOOLS_RUN_CELL) {
		make_request(c, json_incref((json_t *)arguments));
	} else if (c->tool == TOOLS_UNDO) {
		begin_undo(c);
	} else if (c->tool == TOOLS_RESET) {
		begin_reset(c);
	} else if (c->tool == TOOLS_LIST_FILES) {
		begin_list(c);
	} else if (c->tool == TOOLS_READ_FILE || c->tool == TOOLS_WRITE_FILE) {
		begin_file(c);
	} else {
		c->q.form = REQUEST_LIST;
	}
	c->asks = c->tool == TOOLS_RUN_CELL || c->tool == TOOLS_UNDO ||
		  c->tool == TOOLS_RESET;
}

/* Serve the call. It fails if there is no session. */
static void begin_serving(struct calls *c)
{
	if (!c->why.msg[0] && !c->cells)
		err_set(&c->why,
			"there is no session: %.400s; reset begins one",
			c->failed.msg);
	if (c->why.msg[0])
		return;
	c->cells_before = cells_count(c->cells);
	cells_begin(c->cells, &c->q);
	c->begun = true;
}

void calls_begin(struct calls *c, const struct call *call)
{
	c->call = call;
	c->asks = c->begun = false;
	c->code = 0;
	c->why = (struct err){0};
	c->began_ms = c->told_ms = now_ms();
	if (call->kind == CALLS_TOOL)
		begin_tool(c, &call->m);
	else if (check_tool_allowed(c, call->kind == CALLS_READ
					       ? TOOLS_READ_FILE
					       : TOOLS_LIST_FILES) == 0) {
		if (call->kind == CALLS_READ)
			begin_read(c);
		else
			c->q.form = REQUEST_LIST;
	}
	if (!c->awaited)
		begin_serving(c);
}

/* ---- during a call ---- */

/* The client's token for progress of this call; NULL: it wants none. */
static const json_t *find_progress_token(const struct calls *c)
{
	const json_t *token =
		c->begun && !c->call->dropped
			? message_meta(&c->call->m, "progressToken")
			: NULL;

	return json_is_string(token) || json_is_integer(token) ? token : NULL;
}

int calls_polls(const struct calls *c, struct pollfd p[static CALLS_POLLS])
{
	int timeout_ms = -1, due;

	for (int i = 0; i < CALLS_POLLS; i++)
		p[i] = (struct pollfd){.fd = -1};
	if (c->cells)
		timeout_ms = cells_polls(c->cells, p);
	else if (c->awaited)
		timeout_ms = pool_timeout_ms(c->pool);
	if (!c->cells)
		pool_polls(c->pool, p + CELLS_POLLS, CALLS_POLLS - CELLS_POLLS);
	if (!find_progress_token(c))
		return timeout_ms;
	due = (int)(c->told_ms + PROGRESS_MS - now_ms());
	due = due < 0 ? 0 : due;
	return timeout_ms < 0 || due < timeout_ms ? due : timeout_ms;
}

void calls_turn(struct calls *c, const struct pollfd *p)
{
	if (c->cells)
		cells_turn(c->cells, p);
	if (!c->awaited)
		return;
	pool_turn(c->pool);
	take_session(c);
	if (!c->awaited && c->call)
		begin_serving(c);
}

bool calls_is_done(const struct calls *c)
{
	return !c->awaited && (!c->begun || cells_is_done(c->cells));
}

void calls_interrupt(struct calls *c)
{
	if (c->begun)
		cells_interrupt(c->cells);
}

static void add_seconds(struct strbuf *b, const char *key, int64_t ms)
{
	emit_key(b, key);
	strbuf_printf(b, "%.1f", (double)ms / 1000);
}

/* Append the last line of the cell's output. */
static void add_last_line(struct calls *c, struct strbuf *b)
{
	size_t n, start;
	const char *s = cells_output(c->cells, &n);

	if (c->q.form != REQUEST_CELL)
		return;
	while (n > 0 && (s[n - 1] == '\n' || s[n - 1] == '\r'))
		n--;
	for (start = n; start > 0 && n - start < LINE_MAX_BYTES; start--)
		if (s[start - 1] == '\n' || s[start - 1] == '\r')
			break;
	if (n == start)
		return;
	emit_bytes(b, "message", s + start, n - start);
}

void calls_add_progress(struct calls *c, struct strbuf *b)
{
	const json_t *token = find_progress_token(c);
	int64_t now = now_ms();

	if (!token || now - c->told_ms < PROGRESS_MS)
		return;
	c->told_ms = now;
	message_begin(b);
	emit_text(b, "method", "notifications/progress");
	emit_open(b, "params", '{');
	emit_value(b, "progressToken", token);
	add_seconds(b, "progress", now - c->began_ms);
	if (c->q.form == REQUEST_CELL && c->q.timeout_ms > 0)
		add_seconds(b, "total", c->q.timeout_ms);
	add_last_line(c, b);
	strbuf_puts(b, "}}");
}

/* ---- the answer of a tool ---- */

static void add_text(struct strbuf *b, const char *text, size_t n)
{
	emit_open(b, NULL, '{');
	emit_text(b, "type", "text");
	emit_bytes(b, "text", text, n);
	emit_close(b, '}');
}

/* Append a line of ours. It is a block of its own, so that no cell can write
 * one. */
static void add_line(struct strbuf *b, const char *text)
{
	struct strbuf line = {0};

	strbuf_printf(&line, "[%s]", text);
	if (!line.failed)
		add_text(b, line.s, line.n);
	strbuf_free(&line);
}

static void add_pictures(struct calls *c, struct strbuf *b, size_t room)
{
	size_t left_out = 0;
	char text[100];
	struct report r;

	cells_report(c->cells, &r);
	for (size_t i = 0; i < r.npng; i++) {
		if (!resource_is_png(r.png[i].p, r.png[i].n) ||
			b->n + r.png[i].n / 3 * 4 + 100 > room) {
			left_out++;
			continue;
		}
		resource_add_picture(b, r.png[i].p, r.png[i].n, "image/png");
	}
	snprintf(text, sizeof(text),
		"pictures left out, as too large or no PNG: %zu", left_out);
	if (left_out)
		add_line(b, text);
}

/* True if the cell ended well. */
static bool has_ended_well(const struct jail_done *d)
{
	return d->how == HOW_OK || (d->how == HOW_EXIT && d->status == 0);
}

static void add_exit(struct strbuf *b, const struct jail_done *d)
{
	char text[64];

	snprintf(text, sizeof(text), "exit status %d · variables kept",
		d->status);
	if (d->how == HOW_EXIT)
		add_line(b, text);
}

static void add_blocks(struct calls *c, struct strbuf *b, size_t room)
{
	const struct strlist *notices = cells_told(c->cells);
	const char *verdict = cells_verdict(c->cells), *output;
	char undo[VERDICT_MAX];
	size_t n, before = b->n;

	switch (c->q.form) {
	case REQUEST_CELL:
		output = cells_output(c->cells, &n);
		if (n)
			add_text(b, output, n);
		if (verdict[0])
			add_line(b, verdict);
		add_exit(b, cells_done(c->cells));
		add_pictures(c, b, room);
		break;
	case REQUEST_UNDO:
		add_line(
			b, verdict_undo(undo, cells_undone(c->cells), NULL, 0));
		break;
	case REQUEST_RESET:
		add_line(b, "a fresh Python");
		break;
	case REQUEST_SESSION:
		add_line(b, "a new session");
		break;
	case REQUEST_SNEKBOX:
	case REQUEST_PROGRAM:
	case REQUEST_OURS:
	case REQUEST_READ:
	case REQUEST_LIST:
	case REQUEST_OPEN:
	case REQUEST_WRITE:
	case REQUEST_REMOVE:
		break;
	}
	for (size_t i = 0; i < notices->n; i++)
		add_line(b, notices->items[i]);
	if (b->n == before)
		add_line(b, "no output");
}

static void add_failure(struct strbuf *b, const char *text)
{
	emit_open(b, "content", '[');
	add_text(b, text, strlen(text));
	emit_close(b, ']');
	emit_bool(b, "isError", true);
}

/* Append why cells.c refused the request, or how the session broke. */
static void add_refusal(struct calls *c, struct strbuf *b,
	enum answer_kind kind, const struct err *e)
{
	const char *title, *words = cells_refusal(c->cells, &title);
	char text[1400];

	if (kind == ANSWER_FAILED) {
		title = "The session is over";
		words = e->msg[0] ? e->msg : "it ended unexpectedly";
	}
	snprintf(text, sizeof(text), "%s: %.1200s%s", title, words,
		cells_is_over(c->cells) ? "; reset begins a new one" : "");
	add_failure(b, text);
}

/* Append the answer of cells.c. A new session has the members of a reset. */
static void add_structured(
	struct calls *c, struct strbuf *b, const struct strbuf *s)
{
	if (c->q.form == REQUEST_SESSION) {
		emit_open(b, "structuredContent", '{');
		emit_bool(b, "reset", true);
		emit_bool(b, "kept", false);
		emit_texts(b, "notices", cells_told(c->cells));
		emit_close(b, '}');
	} else {
		emit_key(b, "structuredContent");
		strbuf_add(b, s->s, s->n);
	}
}

static void add_cells_answer(struct calls *c, struct strbuf *b)
{
	struct strbuf s = {0};
	struct err e = {0};
	enum answer_kind kind;
	struct report r;

	emit_open(&s, NULL, '{');
	/* Many clients show a model only the structured content. */
	if (c->q.form == REQUEST_CELL) {
		cells_report(c->cells, &r);
		emit_int(&s, "pictures", (int64_t)r.npng);
	}
	kind = outcome_add(&s, c->cells, false, &e);
	emit_close(&s, '}');
	if (kind != ANSWER_RAN) {
		add_refusal(c, b, kind, &e);
	} else {
		emit_open(b, "content", '[');
		add_blocks(c, b, CALLS_ANSWER_MAX - s.n);
		emit_close(b, ']');
		add_structured(c, b, &s);
		emit_bool(b, "isError",
			c->q.form == REQUEST_CELL &&
				!has_ended_well(cells_done(c->cells)));
	}
	strbuf_free(&s);
}

static void add_file_list(
	struct calls *c, struct strbuf *b, struct strbuf *structured)
{
	struct strbuf text = {0};

	resource_add_files(
		structured, &text, cells_files(c->cells), c->q.pattern);
	if (text.n)
		add_text(b, text.s, text.n);
	else
		add_line(b, "no files");
	strbuf_free(&text);
}

static int add_file_content(struct calls *c, struct strbuf *b, struct err *e)
{
	auto_close int fd = cells_take_file(c->cells);

	return resource_add(
		b, fd, c->path, &c->cfg->limits, RESOURCE_AS_BLOCK, e);
}

static void add_written_file(struct calls *c, struct strbuf *b)
{
	char text[64];

	text_count(text, sizeof(text), c->q.files[0].n, "byte", NULL);
	add_line(b, strcat(text, " written"));
}

static void add_last_pictures(struct calls *c, struct strbuf *b)
{
	size_t before = b->n;

	add_pictures(c, b, CALLS_ANSWER_MAX);
	if (b->n == before)
		add_line(b, "the last cell has no pictures");
}

/* Answer a tool that runs no code: files, pictures. */
static int add_resource_answer(struct calls *c, struct strbuf *b, struct err *e)
{
	struct strbuf structured = {0};
	int r = 0;

	emit_open(b, "content", '[');
	if (c->tool == TOOLS_READ_FILE)
		r = add_file_content(c, b, e);
	else if (c->tool == TOOLS_LIST_FILES)
		add_file_list(c, b, &structured);
	else if (c->tool == TOOLS_WRITE_FILE)
		add_written_file(c, b);
	else
		add_last_pictures(c, b);
	emit_close(b, ']');
	if (structured.n) {
		emit_key(b, "structuredContent");
		strbuf_add(b, structured.s, structured.n);
	}
	emit_bool(b, "isError", false);
	strbuf_free(&structured);
	return r;
}

static void note_refusal(struct calls *c)
{
	const char *words = cells_refusal(c->cells, NULL);

	if (!words)
		return;
	err_set(&c->why, "%.480s", words);
	if (c->call->kind == CALLS_READ)
		c->code = no_resource_code(c);
}

/* Note why there is no answer: the session is over, or cells.c refused the
 * request. */
static void note_failure(struct calls *c)
{
	if (c->why.msg[0])
		return;
	if (cells_is_over(c->cells))
		err_set(&c->why,
			"The session is over: %.300s; reset begins a new one",
			cells_why_over(c->cells));
	else if (c->tool != TOOLS_SHOW_PICTURES || c->call->kind != CALLS_TOOL)
		note_refusal(c);
}

static void add_tool(struct calls *c, struct strbuf *b)
{
	size_t before = b->n;
	struct err e = {0};

	if (!c->asks)
		note_failure(c);
	if (c->why.msg[0]) {
		add_failure(b, c->why.msg);
	} else if (c->asks) {
		add_cells_answer(c, b);
	} else if (add_resource_answer(c, b, &e) < 0) {
		b->n = before;
		add_failure(b, e.msg);
	}
	if (b->n - before <= CALLS_ANSWER_MAX)
		return;
	b->n = before;
	add_failure(b, "the answer is longer than 8 MiB");
}

/* ---- resources ---- */

static int add_page(struct calls *c, struct strbuf *b, struct err *e)
{
	const json_t *cursor = json_object_get(c->call->m.params, "cursor");

	if (cursor)
		c->code = MESSAGE_BAD_PARAMS;
	if (cursor && !json_is_string(cursor))
		return err_set(e, "Invalid params: cursor is no string");
	return resource_add_page(
		b, cells_files(c->cells), json_string_value(cursor), e);
}

static int add_contents(struct calls *c, struct strbuf *b, struct err *e)
{
	auto_close int fd = cells_take_file(c->cells);

	c->code = no_resource_code(c);
	emit_open(b, "contents", '[');
	if (resource_add(b, fd, c->path, &c->cfg->limits, RESOURCE_AS_CONTENTS,
		    e) < 0)
		return -1;
	emit_close(b, ']');
	return 0;
}

/* ---- all answers ---- */

static int add_result(struct calls *c, struct strbuf *b)
{
	if (c->code)
		return -1;
	if (c->call->kind == CALLS_TOOL) {
		add_tool(c, b);
		return 0;
	}
	c->code = MESSAGE_FAILED;
	note_failure(c);
	if (c->why.msg[0])
		return -1;
	return c->call->kind == CALLS_READ ? add_contents(c, b, &c->why)
					   : add_page(c, b, &c->why);
}

/* A client that cancels a call gets no answer. Have the next answer say how the
 * cancelled cell ended. */
static void note_dropped(struct calls *c)
{
	const struct jail_done *d;
	char text[VERDICT_MAX + 64];

	if (!c->begun || c->q.form != REQUEST_CELL ||
		cells_count(c->cells) == c->cells_before)
		return;
	d = cells_done(c->cells);
	snprintf(text, sizeof(text), "cell %u was cancelled: %s", d->cell,
		cells_verdict(c->cells)[0] ? cells_verdict(c->cells)
		: d->how == HOW_OK	   ? "it had ended before"
					   : "variables kept");
	cells_note(c->cells, text);
}

void calls_answer(struct calls *c, struct strbuf *b)
{
	const struct message *m = &c->call->m;
	size_t before = b->n;

	if (c->call->dropped) {
		note_dropped(c);
	} else {
		message_add_result(b, m->id);
		if (add_result(c, b) < 0) {
			b->n = before;
			message_add_error(b, m->id, c->code, c->why.msg);
			strbuf_puts(b, "}}");
		} else {
			message_end(b, c->call->stateless,
				c->call->kind == CALLS_TOOL ? MESSAGE_FOR_ONCE
							    : MESSAGE_STALE);
		}
	}
	request_fini(&c->q);
	free(c->path);
	c->path = NULL;
	c->call = NULL;
	c->begun = false;
}
