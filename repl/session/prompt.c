/* SPDX-License-Identifier: MIT */
/*
 * prompt.c - a session from banner to end
 *
 * Runs in:   front end, confined
 * Holds:     the terminal, the editor, the history
 * Trusts:    the person, as far as the configuration lets them; the warden
 * Leaves:    the terminal as it was
 */
#include "repl/session/session.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/path.h"
#include "jail/jail.h"
#include "repl/attach/attach.h"
#include "repl/config/config.h"
#include "repl/config/options.h"
#include "repl/edit/editor.h"
#include "repl/lab/lab.h"
#include "repl/term/term.h"
#include "repl/text/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PROMPT2 "... "
/* How long the first prompt waits for the jail. Most jails are built by then,
 * so that we can say above the prompt what the host cannot enforce. A jail that
 * fails later still ends the session. */
#define BUILT_MS 2
/* How long a plain prompt waits for Python. */
#define UP_MS 1000

/* ---- the banner ---- */

/* Write "Python 3.11", or "Python" if the interpreter's file name does not tell
 * the version: we do not run Python only to ask for it. */
static void write_python_name(const struct session *s, char *buf, size_t size)
{
	char real[PATH_MAX];
	const char *base;

	snprintf(buf, size, "Python");
	if (!s->python || !realpath(s->python, real))
		return;
	base = path_last(real);
	if (!strncmp(base, "python", 6) && isdigit((unsigned char)base[6]) &&
		strspn(base + 6, "0123456789.") == strlen(base + 6))
		snprintf(buf, size, "Python %.16s", base + 6);
}

/* Write when the session ends by session.until; in an exam, or without one,
 * nothing. */
static void write_until(const struct session *s, char *buf, size_t size)
{
	struct limits day = {.until_s = s->cfg->limits.until_s};
	char moment[TEXT_HUMAN];

	exam_end_day(s->cfg, &day);
	*buf = '\0';
	if (day.until_daily)
		snprintf(buf, size, " · until %s",
			text_moment(moment, day.until_s, time(NULL), false));
}

static void print_banner(struct session *s)
{
	const struct limits *l = &s->cfg->limits;
	const struct config_lab *lab = &s->cfg->lab;
	char python[64], memory[TEXT_HUMAN], wall[TEXT_HUMAN], home[TEXT_HUMAN],
		tasks[TEXT_HUMAN];
	char first[256], second[256], until[TEXT_HUMAN + 16] = "";
	const char *net = "no network", *files = "no host files";
	struct strbuf b = {0}, due = {0};
	int rows, columns;

	if (!s->cfg->banner || s->opt->quiet || !s->term->out_tty)
		return;
	if (l->network == NETWORK_LOOPBACK)
		net = "no network but its own loopback";
	if (s->cfg->expose.n)
		files = "no host files but those exposed";
	write_python_name(s, python, sizeof(python));
	snprintf(first, sizeof(first), "cellblock %s · %s in a jail: %s, %s",
		CELLBLOCK_VERSION, python, net, files);
	write_until(s, until, sizeof(until));
	snprintf(second, sizeof(second),
		"%s · %s · %s a cell · home %s, in memory only%s · :help",
		text_size(memory, (uint64_t)l->memory_bytes),
		text_count(tasks, sizeof(tasks), (uint64_t)l->processes,
			"process", "processes"),
		text_time(wall, l->cell_wall_ms),
		text_size(home, (uint64_t)l->home_bytes), until);
	editor_size(s->editor, &rows, &columns);
	text_wrap(&b, first, 0, columns);
	text_wrap(&b, second, 0, columns);
	hand_due(&due, lab->course, lab->exercise, lab->due_s);
	if (due.n && lab->submit)
		strbuf_puts(&due, " · :submit FILE");
	if (due.n && !due.failed)
		text_wrap(&b, due.s, 0, columns);
	strbuf_free(&due);
	if (!b.failed)
		session_print(s, b.s, b.n);
	strbuf_free(&b);
	session_tell_limited(s);
}

/* Write the time left of an exam, in minutes, of which the last may have begun
 * by up to 5 s: at a notice of 10 minutes it is 10. Without an exam, nothing.
 */
static void write_left(const struct session *s, char left[TEXT_HUMAN])
{
	int64_t seconds = s->cfg->limits.until_s - time(NULL);

	*left = '\0';
	if (exam_is_set(s->cfg) && seconds > 0)
		snprintf(left, TEXT_HUMAN, "%" PRId64 " min",
			1 + (seconds - 6) / 60);
}

static const char *hand_in_words(const struct config *cfg)
{
	if (exam_is_late(cfg, cfg->limits.until_s))
		return " · no files are handed in then: they are due before";
	return exam_hands_in(cfg)
		       ? " · the files of the home are handed in then"
		       : "";
}

/* The first line of an exam, also of a quiet one. */
static void tell_exam(struct session *s)
{
	char left[TEXT_HUMAN], end[TEXT_HUMAN];

	write_left(s, left);
	if (*left)
		session_frame(s, "exam: %s left, until %s%s%s", left,
			text_minute(end, s->cfg->limits.until_s),
			s->cfg->transcript ? " · all that you type is recorded"
					   : "",
			hand_in_words(s->cfg));
}

static void tell_no_history(struct session *s)
{
	if (s->no_history[0] && !s->opt->quiet)
		session_frame(s, "%s", s->no_history);
}

/* ---- a line ---- */

/* Run a line that the person typed: a command, or a cell. */
static void run_line(struct session *s, const char *src, size_t n)
{
	struct err e = {0};
	int r;

	s->signals->interrupt = false; /* not for this line */
	watchers_add(s, WATCHER_SOURCE, 0, src, n);
	s->typed = src;
	s->typed_n = n;
	r = s->calls->line(s, src, n, &e);
	if (r > 0)
		r = cell_run(s, src, n, &e);
	s->typed = NULL;
	if (r < 0)
		session_refuse(s, &e);
	/* A Ctrl-C was for this line, and for those that wait behind it. */
	if (s->signals->interrupt)
		editor_interrupt(s->editor);
	s->signals->interrupt = false;
	cell_take_events(s);
	expressions_expire(s);
}

static int take_signals(void *arg)
{
	struct session *s = arg;
	struct signals *sig = s->signals;
	bool back;

	terminal_signals_read(sig);
	back = sig->continued;
	/* Before the read ends, and sets modes of the terminal. */
	if (back) {
		editor_overdrawn(s->editor);
		terminals_continue(s);
	}
	if (sig->behind)
		terminals_stop(s);
	if (sig->resized)
		editor_resized(s->editor);
	if (sig->interrupt)
		editor_interrupt(s->editor);
	sig->resized = sig->interrupt = false;
	if (sig->end)
		session_end_by(s, sig->end);
	detached_answer(s, true);
	terminals_watched(s);
	return s->over || sig->suspend || back || detached_is_gone(s) ||
	       detached_is_due(s);
}

static void note_key(void *arg)
{
	detached_keyed(arg);
}

static bool note_loss(void *arg)
{
	return terminals_fall_behind(arg);
}

/* Write the prompt of the next cell. */
static int write_prompt(struct session *s, struct err *e)
{
	char left[TEXT_HUMAN];
	struct strbuf b = {0};
	int r;

	write_left(s, left);
	r = config_value_prompt(&b, s->cfg->prompt, s->cell_no + 1, left, e);
	if (r == 0)
		r = editor_set_prompt(s->editor, strbuf_text(&b));
	strbuf_free(&b);
	return r;
}

static int take_jail_events(void *arg)
{
	struct session *s = arg;
	struct err e = {0};

	cell_take_events(s);
	/* A notice stands above a prompt that says the same: the next read
	 * would write it, and the person may wait for long. */
	write_prompt(s, &e);
	return s->over || cell_startup_is_due(s);
}

static bool is_blank(const char *src, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isspace((unsigned char)src[i]))
			return false;
	return true;
}

/* Have the terminal read lines. It did not echo keys that came before, in raw
 * mode: the editor gets those, and echoes them. */
static void set_line_mode(struct session *s)
{
	char keys[4096];
	bool raw = s->term->raw;
	ssize_t n = 0;

	terminal_restore(s->term);
	if (raw && io_is_readable(s->term->in))
		n = read(s->term->in, keys, sizeof(keys));
	if (n > 0)
		editor_type(s->editor, keys, (size_t)n);
}

/* Have a program in the jail edit the text that the editor has kept. */
static void edit_elsewhere(struct session *s, const char *text, size_t n)
{
	struct strbuf edited = {0};
	struct err e = {0};
	int r;

	s->signals->interrupt = false; /* not for the program */
	screen_tell_background(s);
	r = cell_edit(s, text, n, &edited, &e);
	if (r > 0 && editor_change(s->editor, edited.s, edited.n) < 0)
		r = err_set(&e,
			"the text is as it was: a cell has at most "
			"%" PRId64 " bytes",
			s->cfg->limits.source_bytes);
	if (r < 0)
		session_refuse(s, &e);
	strbuf_free(&edited);
	s->signals->interrupt = false;
	cell_take_events(s);
}

static void read_and_run(struct session *s)
{
	auto_free char *src = NULL;
	struct err e = {0};
	enum editor_result r;
	size_t n = 0;

	if (write_prompt(s, &e) < 0) {
		session_fail(s, &e);
		return;
	}
	if (editor_is_plain(s->editor))
		set_line_mode(s);
	else
		terminal_raw(s->term);
	r = editor_read(s->editor, &src, &n, &e);
	/* Output from here on stands below the line that the person left. */
	screen_tell_background(s);
	switch (r) {
	case EDITOR_CELL:
		jail_touch(s->jail);
		if (is_blank(src, n))
			break;
		history_add(s->history, src, n, NULL);
		run_line(s, src, n);
		break;
	case EDITOR_HELP:
		jail_touch(s->jail);
		run_line(s, ":help", 5);
		break;
	case EDITOR_HISTORY:
		jail_touch(s->jail);
		run_line(s, ":history -a", 11);
		break;
	case EDITOR_PROGRAM:
		jail_touch(s->jail);
		edit_elsewhere(s, src, n);
		break;
	case EDITOR_INTERRUPT:
		jail_touch(s->jail);
		break;
	case EDITOR_EOF:
		if (s->term->in_tty)
			session_leave(s, 0, SESSION_CTRL_D);
		else if (s->unseen)
			terminals_lose(s);
		else
			session_end(s, s->status);
		break;
	case EDITOR_SUSPEND:
		jail_touch(s->jail);
		terminal_signals_take(s->signals, SIGTSTP);
		break;
	case EDITOR_GO_ON:
	case EDITOR_EVENT:
		break;
	case EDITOR_HUP:
		terminals_lose(s);
		break;
	case EDITOR_ERROR:
		session_fail(s, &e);
		break;
	}
}

static void serve_next(struct session *s)
{
	if (detached_is_gone(s))
		editor_wait(s->editor);
	else if (s->leaves)
		session_leave(s, s->status, "exit");
	else
		read_and_run(s);
}

/* For jail_watch_interrupt(): true if a signal interrupts a request. */
static int is_interrupted(void *arg)
{
	struct session *s = arg;

	terminal_signals_read(s->signals);
	detached_answer(s, false);
	watchers_send(s);
	return s->signals->interrupt || s->signals->end;
}

static void take_events(void *arg)
{
	struct session *s = arg;

	if (s->signals->end)
		session_end_by(s, s->signals->end);
	cell_take_events(s);
	if (!s->over)
		terminals_turn(s, !cell_done(s));
	/* Events that came while we asked the warden for the usage. */
	cell_take_events(s);
}

static int open_parts(struct session *s, struct err *e)
{
	struct editor_opts opts = {
		.prompt = "", /* write_prompt() */
		.prompt2 = PROMPT2,
		.colour = s->term->colour,
		.vi = s->cfg->keys == KEYS_VI,
		.suggest = s->cfg->suggest,
		.max_bytes = (size_t)s->cfg->limits.source_bytes,
		.history = s->history,
		.in = STDIN_FILENO,
		.out = STDOUT_FILENO,
		.takes_cell = s->calls->takes_cell,
		.complete = s->calls->complete,
		.signature = s->calls->signature,
		.keyed = note_key,
		.lost = note_loss,
		.ctx = s,
	};

	s->record = record_new();
	if (!s->record)
		return err_errno(e, "open a session");
	if (detached_open(s, e) < 0 || cell_open(s, e) < 0 ||
		pictures_open(s, e) < 0 || screen_open(s, take_events, e) < 0 ||
		line_open(s, note_loss, e) < 0 ||
		editor_open(&s->editor, &opts, e) < 0)
		return -1;
	/* Signals first: another job may have the terminal. */
	editor_watch_fd(s->editor, s->signals->fd, take_signals, s);
	editor_watch_fd(s->editor, jail_fd(s->jail), take_jail_events, s);
	jail_watch_interrupt(s->jail, s->signals->fd, is_interrupted, s);
	return 0;
}

static void close_parts(struct session *s)
{
	watchers_close(s);
	expressions_close(s);
	session_side_close(s);
	detached_close(s);
	screen_close(s);
	pictures_close(s);
	editor_close(s->editor);
	line_close(s);
	cell_close(s);
	record_free(s->record);
	ledger_free(&s->ledger);
}

/* Wait for Python before the first plain prompt: we cannot move such a prompt,
 * and frame lines that come with Python must stand above it. */
static void await_python(struct session *s)
{
	struct pollfd p[2] = {{.fd = jail_fd(s->jail), .events = POLLIN},
		{.fd = s->signals->fd, .events = POLLIN}};
	int64_t now = now_ms(), end = now + UP_MS;

	if (!s->term->out_tty || !editor_is_plain(s->editor))
		return;
	for (; !s->over && !s->drive.up && now < end; now = now_ms()) {
		if (poll(p, 2, (int)(end - now)) > 0 && p[1].revents)
			break;
		cell_take_events(s);
	}
}

static int run_session(struct session *s, struct err *e)
{
	if (drive_wait_built(&s->drive, BUILT_MS, e) < 0 ||
		s->calls->ready(s, e) < 0)
		return -1;
	print_banner(s);
	tell_exam(s);
	tell_no_history(s);
	await_python(s);
	s->calls->start(s);
	while (!s->over) {
		take_events(s); /* a signal may have ended a command, too */
		if (!s->over)
			cell_run_startup(s);
		if (!s->over)
			expressions_show(s);
		if (!s->over)
			terminals_turn(s, true);
		if (!s->over)
			serve_next(s);
	}
	screen_tell_background(s);
	if (s->why.msg[0]) {
		*e = s->why;
		return -1;
	}
	if (!s->finished)
		session_finish(s);
	return s->status;
}

int prompt_run(struct session *s, struct err *e)
{
	int r = open_parts(s, e);

	if (r == 0)
		r = run_session(s, e);
	close_parts(s);
	return r;
}
