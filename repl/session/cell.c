/* SPDX-License-Identifier: MIT */
/*
 * cell.c - a cell from hand-over to verdict, and what the warden says
 *
 * Runs in:   front end
 * Trusts:    the warden for when a cell ended and how. The end mark is the
 *            guest's: it is waited for no longer than the tty says something.
 *            Text of the guest's that the warden passes on (type-ahead, a
 *            stack) is cleaned before a terminal sees it
 */
#include "repl/session/session.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "repl/attach/attach.h"
#include "repl/config/config.h"
#include "repl/edit/editor.h"
#include "repl/term/term.h"
#include "repl/text/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIGNATURE_MAX (4u << 10)

struct view_cell {
	bool ended; /* JAIL_DONE has come: `done` */
	struct jail_done done;
	int64_t ended_ms;
	struct record_cell running; /* borrowed; all zero: none */
	struct strbuf stack;	    /* where it was stuck, until the verdict */
	bool startup_due; /* this Python has not run python.startup yet */
	bool up;	  /* a Python has answered */
	bool restarting;  /* it was announced; JAIL_UP will follow */
};

int cell_open(struct session *s, struct err *e)
{
	s->cell = calloc(1, sizeof(*s->cell));
	if (!s->cell)
		return err_errno(e, "open a session");
	s->cell->startup_due = true;
	return 0;
}

void cell_close(struct session *s)
{
	if (s->cell)
		strbuf_free(&s->cell->stack);
	free(s->cell);
	s->cell = NULL;
}

/* ---- what the warden says ---- */

static void take_up(struct session *s, struct jail_event *ev)
{
	struct view_cell *c = s->cell;

	screen_replace(s, fd_take(&ev->fds[0]));
	/* A restart that a cell or a command brought about is known already. */
	if (ev->restarted && !c->restarting)
		c->startup_due = true;
	c->restarting = false;
	c->up = true;
	session_set_limited(s, ev->limited);
}

static void show_stack(struct session *s)
{
	struct strbuf *stack = &s->cell->stack;

	if (stack->n && !stack->failed)
		session_print_foreign(s, stack->s, stack->n);
	strbuf_free(stack);
}

static void take_stack(struct session *s, const struct jail_event *ev)
{
	if (!ev->bytes)
		return;
	stack_add(&s->cell->stack, ev->bytes, ev->nbytes, s->record,
		&s->cell->running);
	if (!s->relay)
		show_stack(s);
}

/* What is typed from now on is for the next prompt. */
static void take_done(struct session *s, const struct jail_done *done)
{
	struct view_cell *c = s->cell;

	relay_hold(s->relay);
	c->done = *done;
	c->ended = true;
	c->ended_ms = now_ms();
}

static void take_limit(struct session *s, enum jail_limit limit)
{
	char text[VERDICT_MAX];

	log_limit(s->log, limit);
	session_frame(
		s, "%s", verdict_session_end(text, limit, &s->cfg->limits));
	session_end(s, s->status);
}

static void take_signature(struct session *s, const struct jail_event *ev)
{
	size_t n = ev->nbytes < SIGNATURE_MAX ? ev->nbytes : SIGNATURE_MAX;

	if (ev->ok && ev->bytes && s->editor)
		editor_signature(s->editor, ev->bytes, n);
}

static void take_event(struct session *s, struct jail_event *ev)
{
	struct err e = {0};

	switch (ev->type) {
	case JAIL_BUILT:
	case JAIL_PARKED:
	case JAIL_EXITED:
		break;
	case JAIL_BESIDE:
		visit_take(s, ev);
		break;
	case JAIL_REPLY:
		take_signature(s, ev);
		break;
	case JAIL_FAILED:
		setup_failed(&e, &ev->err);
		session_fail(s, &e);
		break;
	case JAIL_UP:
		take_up(s, ev);
		break;
	case JAIL_RUNNING:
		if (s->relay)
			screen_run(s, ev->mark);
		break;
	case JAIL_TOOK:
		if (s->relay)
			relay_release(s->relay);
		break;
	case JAIL_WAITS:
		if (s->relay)
			relay_waits(s->relay);
		break;
	case JAIL_DONE:
		if (s->relay)
			take_done(s, &ev->done);
		break;
	case JAIL_TYPEAHEAD:
		if (ev->bytes)
			screen_take_keys(s, ev->bytes, ev->nbytes);
		break;
	case JAIL_STACK:
		take_stack(s, ev);
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

void cell_take_events(struct session *s)
{
	struct jail_event ev;
	struct err e = {0};
	int r;

	while ((r = jail_next(s->jail, &ev, &e)) > 0)
		take_event(s, &ev);
	if (r == 0 || s->over)
		return;
	err_wrap(&e, "the session ended unexpectedly");
	session_fail(s, &e);
}

/* ---- running one ---- */

static bool writers_are_dead(const struct view_cell *c)
{
	return c->done.after != AFTER_KEPT;
}

static void wait_for_end(struct session *s)
{
	const struct view_cell *c = s->cell;

	while (!s->over && !(c->ended && screen_is_over(s, c->ended_ms,
						 writers_are_dead(c))))
		screen_turn(s,
			c->ended ? output_silence_ms(writers_are_dead(c)) : -1);
	while (!s->over && !screen_is_flushed(s))
		screen_turn(s, -1);
}

static void show_verdict(struct session *s)
{
	struct view_cell *c = s->cell;
	const struct verdict_about about = {.limits = &s->cfg->limits,
		.memory_source = config_set_in(s->cfg, "session.memory")};
	char text[VERDICT_MAX];
	struct err e = {0};

	verdict_line(text, &c->done, &about);
	log_limit(s->log, c->done.limit);
	if (text[0])
		session_frame(s, "%s", text);
	if (log_cell_end(s->log, text, &e) < 0)
		session_frame(s, "%s", e.msg);
	show_stack(s);
}

/* Whether the session goes on after this cell. */
static void follow_up(struct session *s)
{
	const struct jail_done *done = &s->cell->done;
	bool leaves = done->how == HOW_EXIT;

	if (done->after == AFTER_RESTARTED)
		cell_restarted(s);
	if (!leaves)
		session_stay(s);
	if (done->after == AFTER_ENDED)
		session_end(s, leaves ? done->status : 1);
	else if (leaves)
		session_leave(s, done->status);
}

struct record_cell cell_running(const struct session *s)
{
	struct record_cell c = s->cell->running;

	if (!c.src || !s->typed)
		return c;
	c.src = (char *)s->typed;
	c.n = s->typed_n;
	return c;
}

/* Cell s->cell_no, from hand-over to verdict. */
static int run_handed_over(struct session *s, const char *src, size_t n,
	const char *image, struct err *e)
{
	struct view_cell *c = s->cell;
	auto_close int report = pictures_begin(s, image);

	if (jail_run(s->jail, s->cell_no, src, n,
		    image ? CELL_IMAGE : CELL_PROMPT, report, e) < 0)
		return -1;
	fd_drop(&report);
	log_cell(s->log, s->cell_no, src, n);
	c->ended = false;
	c->done = (struct jail_done){0};
	c->running = (struct record_cell){s->cell_no, (char *)src, n, false};
	away_cell(s, true);
	if (!s->typed)
		watchers_add(s, WATCHER_SOURCE, 0, src, n);
	screen_begin(s);
	wait_for_end(s);
	screen_end_output(s);
	if (c->ended)
		show_verdict(s);
	screen_end(s);
	away_cell(s, false);
	c->running = (struct record_cell){0};
	session_tell_limited(s);
	follow_up(s);
	return 0;
}

/* The next cell, which somebody waits for. 1; 0: it did not run; -1 with e. */
static int run_next(struct session *s, const char *src, size_t n,
	const char *image, struct err *e)
{
	int r;

	cell_run_startup(s);
	if (s->over)
		return 0;
	/* The cell may ask at once how large the window is. */
	screen_follow_window(s);
	s->cell_no++;
	r = run_handed_over(s, src, n, image, e);
	if (r == 0 && s->cell->done.how != HOW_REFUSED)
		return 1;
	s->cell_no--;
	return r;
}

int cell_run(struct session *s, const char *src, size_t n, struct err *e)
{
	int r = run_next(s, src, n, NULL, e);

	if (r > 0)
		record_add(s->record, s->cell_no, src, n,
			s->cell->done.how == HOW_OK);
	return r < 0 ? -1 : 0;
}

int cell_show_image(
	struct session *s, const char *path, const char *name, struct err *e)
{
	char file[JAIL_PATH_MAX + 8];
	int n = snprintf(file, sizeof(file), "/home/%s", path);

	return run_next(s, file, (size_t)n, name, e) < 0 ? -1 : 0;
}

const struct jail_done *cell_done(const struct session *s)
{
	return s->cell->ended ? &s->cell->done : NULL;
}

/* ---- python.startup ---- */

void cell_restarted(struct session *s)
{
	s->cell->startup_due = s->cell->restarting = true;
}

bool cell_is_up(const struct session *s)
{
	return s->cell->up;
}

bool cell_startup_is_due(const struct session *s)
{
	return s->cell->startup_due;
}

/* A startup that costs Python its life is not tried again. */
void cell_run_startup(struct session *s)
{
	struct view_cell *c = s->cell;
	const char *src = s->cfg->startup;
	struct err e = {0};
	const char *typed = s->typed;
	bool due = c->startup_due;
	int r;

	c->startup_due = false;
	if (!due || !src || !*src)
		return;
	/* Ctrl-C so far was for something before. */
	terminal_signals_cancelled(s->signals);
	/* A fresh session's first cell is 1 with and without a startup. */
	s->cell_no += s->cell_no > 0;
	s->typed = NULL;
	r = run_handed_over(s, src, strlen(src), NULL, &e);
	s->typed = typed;
	c->startup_due = false;
	if (r == 0 && c->done.how == HOW_OK)
		return;
	session_frame(s, "python.startup did not end well: it is set in %s",
		config_source(s->cfg, "python.startup"));
}
