/* SPDX-License-Identifier: MIT */
/*
 * cells.c - a session for a stream of requests
 *
 * Runs in:   front end, confined
 * Holds:     the master of the session's tty
 * Trusts:    the warden for when a cell ended and how; nothing that comes from
 *            the tty. The end mark only says where a cell's output ends
 * Leaves:    the session as at a person's prompt after each request
 *
 * A cell has a terminal, as at the prompt. What it shows there is answered as
 * plain text. Nobody sits there: once what was sent as its standard input is
 * typed, every further read finds an end of file.
 */
#include "cells.h"

#include "attach.h"
#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "json_text.h"
#include "repl/config/config.h"
#include "repl/session/verdict.h"
#include "repl/term/output.h"
#include "request.h"
#include "run.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

/* Without a mark, this long without a byte ends a cell's output. */
#define SILENCE_MS 50
/* How much later than the warden we look at the same limit. */
#define AFTER_MS 500
/* Ends of file that are typed: as many reads as find one. */
#define ENDS 32
#define NOTICES_MAX 4096

struct cells {
	struct jail *jail; /* borrowed */
	const struct config *cfg;
	int tty; /* owned; -1: none */
	char python[64];
	struct output output;
	uint32_t no; /* of the last cell */
	bool up, over;
	struct err err;	       /* why it is over */
	enum jail_limit limit; /* or what ended it */
	struct strbuf notices; /* a list of JSON strings */
	/* the cell that runs */
	struct strbuf text, typed;
	size_t typed_at;
	bool running, took, ended, late;
	struct jail_done done;
	int64_t heard_ms;
};

/* ---- its output ---- */

static void sink(void *arg, const void *buf, size_t n)
{
	struct cells *c = arg;

	strbuf_add(&c->text, buf, n);
}

static void line(void *arg, const char *text)
{
	struct cells *c = arg;

	strbuf_printf(&c->text, "[%s]\n", text);
}

static uint8_t hex(char c)
{
	return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void begin(struct cells *c, const char *mark)
{
	uint8_t bytes[OUTPUT_MARK_BYTES];
	const struct output_opts opts = {
		.mode = VT_PLAIN,
		.alone = true,
		.head_bytes = (uint64_t)c->cfg->limits.output_bytes,
		.mark = bytes,
		.sink = sink,
		.line = line,
		.arg = c,
	};

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] =
			(uint8_t)(hex(mark[2 * i]) << 4 | hex(mark[2 * i + 1]));
	output_begin(&c->output, &opts);
	c->running = true;
}

/* What comes before a cell, or behind its mark, is no cell's output. */
static void hear(struct cells *c)
{
	char buf[64 << 10];
	ssize_t n = read(c->tty, buf, sizeof(buf));

	if (n > 0 && c->running)
		output_feed(&c->output, buf, (size_t)n);
	if (n > 0)
		c->heard_ms = now_ms();
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		fd_drop(&c->tty);
}

static void type(struct cells *c)
{
	ssize_t n = write(
		c->tty, c->typed.s + c->typed_at, c->typed.n - c->typed_at);

	if (n > 0)
		c->typed_at += (size_t)n;
	else if (errno != EAGAIN && errno != EINTR)
		c->typed_at = c->typed.n;
}

/* ---- what the warden says ---- */

static void take_tty(struct cells *c, struct jail_event *ev)
{
	fd_drop(&c->tty);
	c->tty = fd_take(&ev->fds[0]);
	io_set_nonblock(c->tty, 1);
	snprintf(c->python, sizeof(c->python), "%.60s", ev->text);
	c->up = true;
}

static void take_notice(struct cells *c, const char *text)
{
	if (c->notices.n > NOTICES_MAX)
		return;
	strbuf_puts(&c->notices, c->notices.n ? ", " : "");
	json_text_add(&c->notices, text, strlen(text));
}

static void take(struct cells *c, struct jail_event *ev)
{
	switch (ev->type) {
	case JAIL_UP:
		take_tty(c, ev);
		break;
	case JAIL_RUNNING:
		begin(c, ev->mark);
		break;
	case JAIL_DONE:
		c->done = ev->done;
		c->ended = true;
		c->heard_ms = now_ms();
		break;
	case JAIL_NOTICE:
		take_notice(c, ev->text);
		break;
	case JAIL_FAILED:
		c->err = ev->err;
		c->over = true;
		break;
	case JAIL_LIMIT:
		c->limit = ev->limit;
		c->over = true;
		break;
	case JAIL_TOOK:
		c->took = true;
		break;
	case JAIL_BUILT:
	case JAIL_TYPEAHEAD:
	case JAIL_STACK:
	case JAIL_PARKED:
	case JAIL_EXITED:
		break;
	}
	jail_event_close(ev);
}

static void take_events(struct cells *c)
{
	struct jail_event ev;
	int r = 0;

	while (!c->over && (r = jail_next(c->jail, &ev, &c->err)) > 0)
		take(c, &ev);
	c->over |= r < 0;
}

/* Wait once, for something or for so long. */
static void turn(struct cells *c, int64_t timeout_ms)
{
	bool types = c->took && c->typed_at < c->typed.n;
	struct pollfd p[2] = {{.fd = jail_fd(c->jail), .events = POLLIN},
		{.fd = c->tty,
			.events = (short)(POLLIN | (types ? POLLOUT : 0))}};

	if (poll(p, 2, (int)timeout_ms) < 0)
		return;
	/* The warden says that a cell runs before the cell can write. */
	if (p[0].revents || !c->running)
		take_events(c);
	if (p[1].fd == c->tty && p[1].revents & (POLLIN | POLLHUP | POLLERR))
		hear(c);
	if (p[1].fd == c->tty && types && p[1].revents & POLLOUT)
		type(c);
}

/* ---- one cell ---- */

static bool output_is_over(const struct cells *c)
{
	return !c->running || c->tty < 0 || output_is_marked(&c->output) ||
	       now_ms() - c->heard_ms >= SILENCE_MS;
}

/* Run it: at `timeout_ms` it is interrupted, and killed after the grace. The
 * warden does the same at cell.timeout, but its clock rests while a cell waits
 * for a person, and here is none. */
static void run(struct cells *c, const struct request *q)
{
	bool stricter = q->timeout_ms < c->cfg->limits.cell_wall_ms;
	int64_t due = now_ms() + q->timeout_ms + (stricter ? 0 : AFTER_MS);

	while (!c->over && !(c->ended && output_is_over(c))) {
		int64_t left = due - now_ms();

		if (c->ended)
			left = SILENCE_MS;
		turn(c, left < 0 ? 0 : left < 3600000 ? left : 3600000);
		if (c->ended || now_ms() < due)
			continue;
		if (c->late)
			jail_kill(c->jail, NULL);
		else
			jail_interrupt(c->jail, NULL);
		due = c->late ? INT64_MAX
			      : now_ms() + c->cfg->limits.cell_grace_ms;
		c->late = true;
	}
}

static void prepare(struct cells *c, const struct request *q)
{
	c->text.n = c->typed.n = c->typed_at = 0;
	c->running = c->took = c->ended = c->late = false;
	c->done = (struct jail_done){0};
	strbuf_add(&c->typed, q->input, q->input_n);
	/* A terminal has no other lines than those that are ended. */
	if (q->input_n && q->input[q->input_n - 1] != '\n')
		strbuf_puts(&c->typed, "\n");
	for (int i = 0; i < ENDS; i++)
		strbuf_puts(&c->typed, "\x04");
}

/* The filter has added a line end where the last line had none. */
static void finish(struct cells *c)
{
	struct output_report r;

	if (!c->running)
		return;
	output_end(&c->output, &r);
	if (r.newline_added && c->text.n >= 2)
		c->text.n -= 2;
	if (c->text.n)
		c->text.n = answer_unify_lines(c->text.s, c->text.n);
}

/* ---- answers ---- */

static const char *const hows[] = {
	[HOW_OK] = "ok",
	[HOW_RAISED] = "raised",
	[HOW_SYNTAX] = "syntax",
	[HOW_INTERRUPTED] = "interrupted",
	[HOW_EXIT] = "exit",
	[HOW_KILLED] = "killed",
	[HOW_CRASHED] = "crashed",
	[HOW_EXITED] = "exited",
	[HOW_LOST] = "lost",
	[HOW_REFUSED] = "refused",
};

static const char *const afters[] = {
	[AFTER_KEPT] = "kept",
	[AFTER_ROLLED_BACK] = "rolled back",
	[AFTER_RESTARTED] = "restarted",
	[AFTER_ENDED] = "ended",
};

static void add_key(struct strbuf *b, const char *key, const char *text)
{
	strbuf_printf(b, "\"%s\": ", key);
	json_text_add(b, text, strlen(text));
	strbuf_puts(b, ", ");
}

/* Notices since the last answer; the last key of each answer. */
static void add_notices(struct cells *c, struct strbuf *b)
{
	strbuf_puts(b, "\"notices\": [");
	strbuf_add(b, c->notices.s, c->notices.n);
	strbuf_puts(b, "]}");
	c->notices.n = 0;
}

static void add_verdict(
	struct cells *c, const struct request *q, struct strbuf *b)
{
	const char *source = config_source(c->cfg, "session.memory");
	struct limits limits = c->cfg->limits;
	struct verdict_about about = {.limits = &limits};
	struct jail_done *d = &c->done;
	char text[VERDICT_MAX];

	if (strcmp(source, CONFIG_BUILT_IN) != 0)
		about.memory_source = source;
	/* It was we who interrupted it, for the request's own limit. */
	if (c->late && (d->how == HOW_INTERRUPTED || d->how == HOW_KILLED) &&
		(d->limit == LIMIT_NONE || d->limit == LIMIT_PERSON)) {
		d->limit = LIMIT_WALL;
		limits.cell_wall_ms = q->timeout_ms;
	}
	verdict_line(text, d, &about);
	add_key(b, "verdict", text);
	answer_add_limit(b, q, d->limit, c->cfg);
}

static void add_done(struct cells *c, const struct request *q, struct strbuf *b)
{
	const struct jail_done *d = &c->done;
	bool exits = d->how == HOW_EXIT || d->how == HOW_EXITED;

	strbuf_printf(b, "{\"cell\": %u, \"output\": ", c->no);
	json_text_add(b, c->text.n ? c->text.s : "", c->text.n);
	strbuf_puts(b, ", ");
	add_key(b, "how", hows[d->how]);
	add_verdict(c, q, b);
	if (exits)
		strbuf_printf(b, "\"exit_code\": %d, ", d->status);
	else
		strbuf_puts(b, "\"exit_code\": null, ");
	add_key(b, "after", afters[d->after]);
	strbuf_printf(b,
		"\"names\": %u, \"duration_ms\": %lld, \"cpu_ms\": %lld, ",
		d->names, (long long)d->wall_ms, (long long)d->cpu_ms);
	if (d->peak_bytes > 0)
		strbuf_printf(b, "\"memory_peak_bytes\": %lld, ",
			(long long)d->peak_bytes);
	else
		strbuf_puts(b, "\"memory_peak_bytes\": null, ");
	add_notices(c, b);
}

/* ---- requests ---- */

static enum answer_kind refuse(
	struct strbuf *b, const char *title, const char *text)
{
	answer_add_refusal(b, title, text, strlen(text));
	return ANSWER_REFUSED;
}

static enum answer_kind serve_cell(struct cells *c, const struct request *q,
	struct strbuf *b, struct err *e)
{
	struct run files = {.in = -1};
	int put = run_put_files(&files, c->jail, q);
	struct jail_done *d = &c->done;

	free(files.files);
	if (put < 0)
		return refuse(b, "Request file is invalid", files.message);
	prepare(c, q);
	if (jail_run(c->jail, ++c->no, q->code, q->code_n, e) < 0)
		return ANSWER_FAILED;
	run(c, q);
	finish(c);
	if (!c->ended) {
		*e = c->err;
		return ANSWER_FAILED;
	}
	if ((unsigned)d->how > HOW_REFUSED || (unsigned)d->after > AFTER_ENDED)
		return ANSWER_FAILED;
	add_done(c, q, b);
	c->no -= d->how == HOW_REFUSED;
	c->over |= d->how == HOW_EXIT || d->after == AFTER_ENDED;
	return ANSWER_RAN;
}

static enum answer_kind serve_undo(
	struct cells *c, const struct request *q, struct strbuf *b)
{
	uint32_t back_to, names;
	struct err e = {0};

	if (jail_undo(c->jail, q->undo, &back_to, &names, &e) < 0)
		return refuse(b, "Nothing was undone", e.msg);
	take_events(c);
	strbuf_printf(b, "{\"undo\": %d, \"back_to\": %u, \"names\": %u, ",
		q->undo, back_to, names);
	add_notices(c, b);
	return ANSWER_RAN;
}

static enum answer_kind serve_reset(
	struct cells *c, struct strbuf *b, struct err *e)
{
	c->up = false;
	if (jail_reset(c->jail, e) < 0)
		return ANSWER_FAILED;
	while (!c->over && !c->up)
		turn(c, -1);
	if (c->over) {
		*e = c->err;
		return ANSWER_FAILED;
	}
	strbuf_puts(b, "{\"reset\": true, ");
	add_notices(c, b);
	return ANSWER_RAN;
}

static enum answer_kind serve_read(
	struct cells *c, const struct request *q, struct strbuf *b)
{
	const struct attach_rules rules = {
		.limits = &c->cfg->limits, .pattern = q->pattern};
	size_t before = b->n;
	const char *why;

	strbuf_puts(b, "{\"files\": [");
	why = attach_files(b, c->jail, &rules, true);
	if (why) {
		b->n = before;
		return refuse(b, "The files cannot be read", why);
	}
	strbuf_puts(b, "], ");
	add_notices(c, b);
	return ANSWER_RAN;
}

enum answer_kind cells_serve(struct cells *c, const struct request *q,
	struct strbuf *b, struct err *e)
{
	char text[VERDICT_MAX];

	take_events(c);
	if (c->over && c->limit != LIMIT_NONE)
		return refuse(b, "The session is over",
			verdict_session_end(text, c->limit, &c->cfg->limits));
	if (c->over)
		return refuse(b, "The session is over",
			c->err.msg[0] ? c->err.msg : "a cell left it");
	switch (q->form) {
	case REQUEST_CELL:
		return serve_cell(c, q, b, e);
	case REQUEST_UNDO:
		return serve_undo(c, q, b);
	case REQUEST_RESET:
		return serve_reset(c, b, e);
	case REQUEST_READ:
		return serve_read(c, q, b);
	case REQUEST_SNEKBOX:
	case REQUEST_OURS:
	case REQUEST_SESSION:
		break;
	}
	return ANSWER_FAILED;
}

/* ---- its life ---- */

int cells_open(struct cells **out, struct jail *j, const struct config *cfg,
	struct strbuf *b, struct err *e)
{
	struct cells *c = calloc(1, sizeof(*c));

	if (!c)
		return err_errno(e, "open a session");
	*out = c;
	c->jail = j;
	c->cfg = cfg;
	c->tty = -1;
	if (output_open(&c->output, (size_t)cfg->limits.tail_bytes, e) < 0)
		return -1;
	while (!c->over && !c->up)
		turn(c, -1);
	if (c->over) {
		*e = c->err;
		return e->kind == ERR_CONFIG ? -1 : err_kind_set(e, ERR_JAIL);
	}
	run_put_skeleton(j, cfg);
	strbuf_puts(b, "{\"session\": true, ");
	add_key(b, "python", c->python);
	add_notices(c, b);
	return 0;
}

void cells_close(struct cells *c)
{
	if (!c)
		return;
	output_close(&c->output);
	strbuf_free(&c->text);
	strbuf_free(&c->typed);
	strbuf_free(&c->notices);
	fd_drop(&c->tty);
	free(c);
}
