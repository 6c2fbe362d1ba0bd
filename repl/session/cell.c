/* SPDX-License-Identifier: MIT */
/*
 * cell.c - a cell from hand-over to verdict, and the warden's events
 *
 * Runs in:   front end
 * Trusts:    the warden about when and how a cell ended. The guest writes the
 *            end mark: we stop waiting for it when the tty falls silent. Text
 *            of the guest that the warden passes on (type-ahead, a stack) is
 *            cleaned before a terminal sees it
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

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIGNATURE_MAX (4u << 10)

struct view_cell {
	struct record_cell running; /* borrowed; all zero: none */
	struct strbuf stack;	    /* where it was; shown after the verdict */
	bool startup_due; /* this Python has not run python.startup yet */
	bool restarting;  /* we know of a restart; JAIL_UP will follow */
};

/* ---- the warden's events ---- */

static void take_built(void *session, struct jail_event *ev)
{
	struct session *s = session;

	snprintf(s->limited, sizeof(s->limited), "%s", ev->limited);
}

static void take_failure(void *session, struct jail_event *ev)
{
	struct session *s = session;

	(void)ev;
	session_fail(s, &s->drive.err);
}

static void take_up(void *session, struct jail_event *ev)
{
	struct session *s = session;
	struct view_cell *c = s->cell;

	screen_replace(s, fd_take(&ev->fds[0]));
	/* cell_restarted() has noted a restart by a cell or a command. */
	if (ev->restarted && !c->restarting)
		c->startup_due = true;
	c->restarting = false;
	session_set_limited(s, ev->limited);
}

static void take_running(void *session, struct jail_event *ev)
{
	struct session *s = session;

	if (s->relay)
		screen_run(s, ev->mark);
}

static void take_beginning(void *session, struct jail_event *ev)
{
	struct session *s = session;

	(void)ev;
	if (s->relay)
		relay_release(s->relay);
}

static void take_waits(void *session, struct jail_event *ev)
{
	struct session *s = session;

	(void)ev;
	if (s->relay && !line_begin(s))
		relay_waits(s->relay);
}

/* Keys from now on are for the next prompt. */
static void take_done(void *session, struct jail_event *ev)
{
	struct session *s = session;

	(void)ev;
	if (s->relay)
		relay_hold(s->relay);
}

static void take_keys(void *session, struct jail_event *ev)
{
	if (ev->bytes)
		screen_take_keys(session, ev->bytes, ev->nbytes);
}

static void show_stack(struct session *s)
{
	struct strbuf *stack = &s->cell->stack;

	if (stack->n && !stack->failed)
		session_print_foreign(s, stack->s, stack->n);
	strbuf_free(stack);
}

static void take_stack(void *session, struct jail_event *ev)
{
	struct session *s = session;

	if (!ev->bytes)
		return;
	stack_add(&s->cell->stack, ev->bytes, ev->nbytes, s->record,
		&s->cell->running);
	if (!s->relay)
		show_stack(s);
}

static void take_notice(void *session, struct jail_event *ev)
{
	session_frame(session, "%s", ev->text);
}

static void take_limit(void *session, struct jail_event *ev)
{
	struct session *s = session;
	char text[VERDICT_MAX];

	log_limit(s->log, ev->limit);
	session_frame(
		s, "%s", verdict_session_end(text, ev->limit, &s->cfg->limits));
	session_end(s, s->status);
}

static void take_side(void *session, struct jail_event *ev)
{
	session_side_take(session, ev);
}

static void take_signature(void *session, struct jail_event *ev)
{
	struct session *s = session;
	size_t n = ev->nbytes < SIGNATURE_MAX ? ev->nbytes : SIGNATURE_MAX;

	if (ev->ok && ev->bytes && s->editor)
		editor_signature(s->editor, ev->bytes, n);
}

static drive_handler *const handlers[DRIVE_HANDLERS] = {
	[JAIL_BUILT] = take_built,
	[JAIL_FAILED] = take_failure,
	[JAIL_UP] = take_up,
	[JAIL_RUNNING] = take_running,
	[JAIL_TOOK] = take_beginning,
	[JAIL_DONE] = take_done,
	[JAIL_WAITS] = take_waits,
	[JAIL_TYPEAHEAD] = take_keys,
	[JAIL_STACK] = take_stack,
	[JAIL_NOTICE] = take_notice,
	[JAIL_LIMIT] = take_limit,
	[JAIL_SIDE] = take_side,
	[JAIL_REPLY] = take_signature,
};

void cell_take_events(struct session *s)
{
	struct err e;

	drive_take(&s->drive);
	if (s->over || !s->drive.over)
		return;
	e = s->drive.err;
	err_wrap(&e, "the session ended unexpectedly");
	session_fail(s, &e);
}

int cell_open(struct session *s, struct err *e)
{
	s->cell = calloc(1, sizeof(*s->cell));
	if (!s->cell)
		return err_errno(e, "open a session");
	s->cell->startup_due = true;
	drive_open(&s->drive, s->jail, s->cfg, s->log, handlers, s);
	return 0;
}

void cell_close(struct session *s)
{
	if (!s->cell)
		return;
	strbuf_free(&s->cell->stack);
	free(s->cell);
	s->cell = NULL;
	drive_forget(&s->drive);
}

/* ---- running a cell ---- */

static void wait_for_end(struct session *s)
{
	const struct drive *d = &s->drive;

	while (!s->over && !(d->ended && screen_is_over(s)))
		screen_turn(s, d->ended ? drive_silence_ms(d) : -1);
	while (!s->over && !screen_is_flushed(s))
		screen_turn(s, -1);
}

static void show_verdict(struct session *s)
{
	char text[VERDICT_MAX];
	const struct record_output *out =
		record_find_output(s->record, s->cell_no);
	struct err e = {0};
	int r = drive_end_cell(&s->drive, text, &e);

	if (!s->aside && out && out->cut)
		session_frame(s,
			"the first 1,000 items are shown · :out %" PRIu32
			" for all",
			s->cell_no);
	if (s->hint[0] && s->drive.done.how == HOW_RAISED &&
		s->drive.done.limit == LIMIT_NONE)
		session_frame(s, "%s", s->hint);
	if (text[0])
		session_frame(s, "%s", text);
	if (r < 0)
		session_frame(s, "%s", e.msg);
	show_stack(s);
}

/* Do what the end of the cell `src` asks for: a fresh Python, leaving, the end.
 * Only exit or quit leaves, typed alone: sys.exit() ends the code that calls
 * it. */
static void apply_end(struct session *s, const char *src)
{
	const struct jail_done *done = &s->drive.done;
	bool exits = done->how == HOW_EXIT;
	bool leaves = exits && done->leaves && src == s->typed;

	if (done->after == AFTER_RESTARTED)
		cell_restarted(s);
	if (!leaves)
		session_stay(s);
	if (exits && !leaves && done->after == AFTER_KEPT)
		session_frame(s,
			"the cell ended with exit status %d · the session goes "
			"on · exit or Ctrl-D leaves",
			done->status);
	if (done->after == AFTER_ENDED)
		session_end(s, leaves ? done->status : 1);
	else if (leaves)
		session_leave(s, done->status, "exit");
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

/* Run cell s->cell_no, from hand-over to verdict. `image`: the name that a
 * CELL_IMAGE is shown under. 0, or -1 with e: the cell was not sent. */
static int run_numbered_cell(struct session *s, const char *src, size_t n,
	enum jail_cell kind, const char *image, struct err *e)
{
	struct view_cell *c = s->cell;
	auto_close int report = pictures_begin(s, image);
	const struct jail_run run = {.cell = s->cell_no,
		.src = src,
		.n = n,
		.kind = kind,
		.report = report};

	s->hint[0] = '\0';
	s->drive.error_is_other = true;
	if (drive_run(&s->drive, &run, e) < 0)
		return -1;
	fd_drop(&report);
	c->running = (struct record_cell){
		.no = s->cell_no, .src = (char *)src, .n = n};
	detached_cell(s, true);
	if (!s->typed && kind != CELL_EDIT)
		watchers_add(s, WATCHER_SOURCE, 0, src, n);
	screen_begin(s);
	wait_for_end(s);
	screen_end_output(s);
	if (s->drive.ended)
		show_verdict(s);
	screen_end(s);
	detached_cell(s, false);
	c->running = (struct record_cell){0};
	session_tell_limited(s);
	apply_end(s, src);
	return 0;
}

/* Run the next cell, and before it python.startup if that is due. 1; 0: the
 * cell did not run; -1 with e. */
static int run_next_cell(struct session *s, const char *src, size_t n,
	enum jail_cell kind, const char *image, struct err *e)
{
	int r;

	cell_run_startup(s);
	if (s->over)
		return 0;
	/* The cell may ask at once how large the window is. */
	screen_follow_window(s);
	s->cell_no++;
	r = run_numbered_cell(s, src, n, kind, image, e);
	if (r == 0 && s->drive.done.how != HOW_REFUSED)
		return 1;
	s->cell_no--;
	return r;
}

static int run_recorded_cell(struct session *s, const char *src, size_t n,
	enum jail_cell kind, struct err *e)
{
	struct record_cell c = {
		.src = (char *)src, .n = n, .habit = kind == CELL_HABIT};
	int r = run_next_cell(s, src, n, kind, NULL, e);

	c.no = s->cell_no;
	c.ok = s->drive.done.how == HOW_OK;
	if (r > 0)
		record_add(s->record, &c);
	return r < 0 ? -1 : 0;
}

int cell_run(struct session *s, const char *src, size_t n, struct err *e)
{
	return run_recorded_cell(s, src, n, CELL_PROMPT, e);
}

int cell_run_habit(struct session *s, const char *text, size_t n, struct err *e)
{
	return run_recorded_cell(s, text, n, CELL_HABIT, e);
}

int cell_show_image(
	struct session *s, const char *path, const char *name, struct err *e)
{
	char file[JAIL_PATH_MAX + 8];
	int n = snprintf(file, sizeof(file), "/home/%s", path);

	return run_next_cell(s, file, (size_t)n, CELL_IMAGE, name, e) < 0 ? -1
									  : 0;
}

int cell_take_value(
	struct session *s, uint32_t no, struct strbuf *b, struct err *e)
{
	char src[32];
	int r, n = snprintf(src, sizeof(src), "print(Out[%" PRIu32 "])", no);

	s->aside = b;
	r = run_next_cell(s, src, (size_t)n, CELL_PROMPT, NULL, e);
	s->aside = NULL;
	if (r <= 0)
		return r;
	s->cell_no--;
	return s->drive.done.how == HOW_OK;
}

int cell_edit(struct session *s, const char *text, size_t n, struct strbuf *b,
	struct err *e)
{
	const char *editor = getenv("VISUAL");
	struct strbuf src = {0};
	int r;

	if (!editor || !*editor)
		editor = getenv("EDITOR");
	/* A line for the name, then the text. */
	if (editor && !strchr(editor, '\n'))
		strbuf_puts(&src, editor);
	strbuf_puts(&src, "\n");
	strbuf_add(&src, text, n);
	s->edited = b;
	r = src.failed ? err_set(e, "out of memory")
		       : run_next_cell(s, src.s, src.n, CELL_EDIT, NULL, e);
	s->edited = NULL;
	strbuf_free(&src);
	s->cell_no -= r > 0;
	return r > 0 ? b->n > 0 && !b->failed : r;
}

const struct jail_done *cell_done(const struct session *s)
{
	return s->drive.ended ? &s->drive.done : NULL;
}

/* ---- python.startup ---- */

void cell_restarted(struct session *s)
{
	s->cell->startup_due = s->cell->restarting = true;
}

bool cell_startup_is_due(const struct session *s)
{
	return s->cell->startup_due;
}

/* We do not run a python.startup again after it has ended Python. */
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
	/* Forget a Ctrl-C of before: it was not for the startup. */
	terminal_signals_cancelled(s->signals);
	/* A fresh session's first cell is 1 with and without a startup. */
	s->cell_no += s->cell_no > 0;
	s->typed = NULL;
	r = run_numbered_cell(s, src, strlen(src), CELL_PROMPT, NULL, &e);
	s->typed = typed;
	c->startup_due = false;
	if (r == 0 && s->drive.done.how == HOW_OK)
		return;
	session_frame(s, "python.startup did not end well: it is set in %s",
		config_source(s->cfg, "python.startup"));
}
