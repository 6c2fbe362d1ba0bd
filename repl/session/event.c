/* SPDX-License-Identifier: MIT */
/*
 * event.c - what the warden says, and what comes from the tty
 *
 * Runs in:   front end
 * Trusts:    the warden. Text of the guest's that it passes on (type-ahead,
 *            a stack) is cleaned before a terminal sees it
 */
#include "session.h"

#include "jail/base/io.h"
#include "log.h"
#include "repl/config/config.h"
#include "repl/edit/editor.h"
#include "repl/text/text.h"
#include "setup.h"
#include "verdict.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TYPEAHEAD_MAX (64u << 10)
#define STACK_MAX (16u << 10)
#define LATE_MAX (256u << 10)
#define CTRL_D 0x04

/* What the output filter lets through: to the terminal while a cell has it,
 * else to what will be printed above the prompt. */
void session_sink(void *arg, const void *buf, size_t n)
{
	struct session *s = arg;

	if (s->in_cell && s->running)
		relay_put(&s->relay, buf, n);
	else if (s->in_cell) /* between cells the tty makes no new lines */
		session_print(s, buf, n);
	else
		strbuf_add(&s->above, buf, n);
}

static struct session_out *out_begin(struct session *s)
{
	struct session_out *o = &s->outs[s->cell % SESSION_OUTS];

	strbuf_free(&o->bytes);
	o->no = s->cell;
	o->total = 0;
	return o;
}

/* Keep a cell's own bytes for :out. */
static void tap(void *arg, const void *buf, size_t n)
{
	struct session *s = arg;
	struct session_out *o = &s->outs[s->cell % SESSION_OUTS];
	size_t room = SESSION_OUT_MAX - o->bytes.n;

	o->total += n;
	log_output(s->log, buf, n);
	strbuf_add(&o->bytes, buf, n < room ? n : room);
}

static enum vt_mode filter_mode(const struct config *cfg)
{
	switch (cfg->escapes) {
	case ESCAPES_SAFE:
		return VT_SAFE;
	case ESCAPES_PLAIN:
		return VT_PLAIN;
	case ESCAPES_RAW:
		return VT_RAW;
	}
	return VT_SAFE;
}

void session_begin_output(struct session *s, const uint8_t *mark, bool cell)
{
	struct output_opts opts = {
		.mode = filter_mode(s->cfg),
		.colour = s->term->colour,
		.columns = s->term->cols,
		.head_bytes = (uint64_t)s->cfg->limits.output_bytes,
		.mark = mark,
		.cell = cell ? s->cell : 0,
		.sink = session_sink,
		.tap = cell ? tap : NULL,
		.arg = s,
	};

	s->line_ended = false;
	if (cell)
		out_begin(s);
	output_begin(&s->output, &opts);
}

/* Bytes of a line's end that a piece of output begins with. */
static size_t line_end(const char *buf, size_t n)
{
	if (n > 1 && buf[0] == '\r' && buf[1] == '\n')
		return 2;
	return n > 0 && buf[0] == '\n';
}

/* A piece that does not end its line is ended by us, for the prompt stands
 * below it. When its own end comes, it has been shown. */
static void show_behind(struct session *s, const char *buf, size_t n)
{
	size_t shown = s->line_ended ? line_end(buf, n) : 0;
	struct output_report r;

	output_background(&s->output, buf + shown, n - shown, &r);
	output_background_add(&s->behind, &r);
	s->line_ended = r.newline_added;
}

static void frame(void *arg, const char *text)
{
	session_frame(arg, "%s", text);
}

void session_tell_background(struct session *s)
{
	if (s->late.n)
		show_behind(s, s->late.s, s->late.n);
	s->late.n = 0;
	output_background_summary(&s->behind, frame, s);
	s->behind = (struct output_report){0};
}

void session_tty_bytes(void *arg, const char *buf, size_t n)
{
	struct session *s = arg;
	size_t own = 0;

	if (s->running)
		own = output_feed(&s->output, buf, n);
	/* What is typed from now on is for the next prompt. */
	if (s->running && output_is_marked(&s->output))
		relay_hold(&s->relay);
	if (own == n)
		return;
	if (!s->running)
		show_behind(s, buf, n);
	else if (s->late.n < LATE_MAX)
		strbuf_add(&s->late, buf + own, n - own);
	else
		s->behind.cut += n - own;
}

/* Background output while the person edits. */
static int tty_at_prompt(void *arg)
{
	struct session *s = arg;
	char buf[RELAY_READ];
	ssize_t n = read(s->tty, buf, sizeof(buf));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		session_set_tty(s, -1);
		return 0;
	}
	show_behind(s, buf, (size_t)n);
	if (s->above.n)
		editor_print_above(s->editor, s->above.s, s->above.n);
	s->above.n = 0;
	return 0;
}

void session_set_tty(struct session *s, int tty)
{
	if (s->tty >= 0)
		editor_unwatch_fd(s->editor, s->tty);
	fd_drop(&s->tty);
	s->tty = tty;
	relay_set_tty(&s->relay, tty);
	if (tty >= 0)
		editor_watch_fd(s->editor, tty, tty_at_prompt, s);
}

static void take_up(struct session *s, struct jail_event *ev)
{
	/* The old tty may still hold the end of a cell's output. */
	if (s->running && s->tty >= 0) {
		fd_drop(&s->next_tty);
		s->next_tty = fd_take(&ev->fds[0]);
	} else {
		session_set_tty(s, fd_take(&ev->fds[0]));
	}
	/* Those that a cell or a command brought about are known already. */
	if (ev->restarted && !s->restarting)
		s->startup_due = true;
	s->restarting = false;
	text_safe(s->version, sizeof(s->version), ev->text, strlen(ev->text));
	snprintf(s->limited, sizeof(s->limited), "%s", ev->limited);
	session_tell_limited(s);
}

static int hex(char c)
{
	return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

static void take_running(struct session *s, const struct jail_event *ev)
{
	uint8_t mark[OUTPUT_MARK_BYTES];

	for (size_t i = 0; i < sizeof(mark); i++)
		mark[i] = (uint8_t)(hex(ev->mark[2 * i]) << 4 |
				    hex(ev->mark[2 * i + 1]));
	session_begin_output(s, mark, true);
	s->running = true;
	/* Typed any sooner, they would be what was typed before the cell. */
	relay_release(&s->relay);
}

/* Read a descriptor of the warden's to its end, at most `max` bytes. */
static char *slurp(int fd, size_t max, size_t *n)
{
	char *buf = malloc(max);
	ssize_t r = buf ? io_read_full(fd, buf, max) : -1;

	if (r < 0) {
		free(buf);
		return NULL;
	}
	*n = (size_t)r;
	return buf;
}

/* An end of file that nobody read comes back as a NUL: where the person typed
 * no NUL, it is the Ctrl-D that it was. */
static void take_typeahead(struct session *s, int fd)
{
	size_t n;
	auto_free char *keys = slurp(fd, TYPEAHEAD_MAX, &n);

	for (size_t i = 0; keys && i < n && !s->relay.nul; i++)
		keys[i] = keys[i] ? keys[i] : CTRL_D;
	if (keys && n)
		strbuf_add(&s->ahead, keys, n);
}

/* The frames below the cell's own are the driver's: leave them out. */
static size_t cut_stack(const char *text, size_t n)
{
	static const char cell[] = "File \"<cell ";
	const char *last = NULL, *p = text, *nl;

	while ((p = memmem(p, n - (size_t)(p - text), cell,
			sizeof(cell) - 1)) != NULL)
		last = p++;
	if (!last)
		return 0;
	nl = memchr(last, '\n', n - (size_t)(last - text));
	return nl ? (size_t)(nl + 1 - text) : n;
}

static void take_stack(struct session *s, int fd)
{
	size_t n;
	auto_free char *text = slurp(fd, STACK_MAX, &n);

	if (!text || !n)
		return;
	n = cut_stack(text, n);
	if (s->in_cell)
		strbuf_add(&s->stack, text, n);
	else
		session_print_foreign(s, text, n);
}

static void take_done(struct session *s, const struct jail_event *ev)
{
	s->done = ev->done;
	s->ended = true;
	s->ended_ms = s->quiet_since_ms = now_ms();
}

static void take_limit(struct session *s, enum jail_limit limit)
{
	char text[VERDICT_MAX];

	log_limit(s->log, limit);
	session_frame(
		s, "%s", verdict_session_end(text, limit, &s->cfg->limits));
	s->over = true;
}

static void take(struct session *s, struct jail_event *ev)
{
	switch (ev->type) {
	case JAIL_BUILT:
	case JAIL_PARKED:
	case JAIL_EXITED:
		break;
	case JAIL_FAILED:
		setup_failed(&s->why, &ev->err);
		s->over = true;
		break;
	case JAIL_UP:
		take_up(s, ev);
		break;
	case JAIL_RUNNING:
		if (s->in_cell)
			take_running(s, ev);
		break;
	case JAIL_DONE:
		if (s->in_cell)
			take_done(s, ev);
		break;
	case JAIL_TYPEAHEAD:
		take_typeahead(s, ev->fd);
		break;
	case JAIL_STACK:
		take_stack(s, ev->fd);
		break;
	case JAIL_NOTICE:
		session_frame(s, "%s", ev->text);
		break;
	case JAIL_LIMIT:
		take_limit(s, ev->limit);
		break;
	}
	jail_event_close(ev);
}

void session_take_events(struct session *s)
{
	struct jail_event ev;
	struct err e = {0};
	int r;

	while ((r = jail_next(s->jail, &ev, &e)) > 0)
		take(s, &ev);
	if (r == 0 || s->over)
		return;
	s->over = true;
	s->why = e;
	err_wrap(&s->why, "the session ended unexpectedly");
}
