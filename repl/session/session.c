/* SPDX-License-Identifier: MIT */
/*
 * session.c - a session from banner to end; printing, asking, leaving
 *
 * Runs in:   front end, confined
 * Holds:     the terminal, the editor, the history
 * Trusts:    the person, as far as the configuration lets them; the warden
 * Leaves:    the terminal as it was
 */
#include "session.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/path.h"
#include "jail/jail.h"
#include "repl/config/config.h"
#include "repl/config/options.h"
#include "repl/edit/editor.h"
#include "repl/edit/history.h"
#include "repl/term/keys.h"
#include "repl/term/output.h"
#include "repl/term/relay.h"
#include "repl/term/terminal.h"
#include "repl/text/strbuf.h"
#include "repl/text/text.h"
#include "setup.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROMPT2 "... "
/* How long the first prompt waits for the jail. Most stand by then, and what
 * the host cannot enforce is said above the prompt. One that fails later ends
 * the session all the same. */
#define BUILT_MS 2

/* ---- printing ---- */

/* Add text for a terminal in raw mode. */
static void add_returning(struct strbuf *b, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (text[i] == '\n')
			strbuf_puts(b, "\r\n");
		else
			strbuf_add(b, &text[i], 1);
}

void session_print(struct session *s, const char *text, size_t n)
{
	struct strbuf b = {0};

	if (!s->relay) {
		editor_print_above(s->editor, text, n);
		return;
	}
	add_returning(&b, text, n);
	if (b.n && !b.failed)
		relay_put(s->relay, b.s, b.n);
	strbuf_free(&b);
}

void session_printf(struct session *s, const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	if (text)
		session_print(s, text, strlen(text));
	free(text);
}

/* Where output does not go to a terminal, lines of ours go to standard
 * error. */
void session_frame(struct session *s, const char *fmt, ...)
{
	struct output_look look = {.end = "\n"};
	struct strbuf b = {0};
	char text[2048];
	va_list ap;
	int rows;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (s->term->out_tty) {
		look.colour = s->term->colour;
		editor_size(s->editor, &rows, &look.columns);
	} else if (s->term->raw) {
		look.end = "\r\n";
	}
	output_frame(&b, text, &look);
	if (b.failed)
		;
	else if (s->term->out_tty)
		session_print(s, b.s, b.n);
	else
		io_write_full(STDERR_FILENO, b.s, b.n);
	strbuf_free(&b);
}

void session_refuse(struct session *s, const struct err *e)
{
	session_frame(s, "%s%s%s", e->msg, e->hint[0] ? " · " : "", e->hint);
}

void session_print_foreign(struct session *s, const char *text, size_t n)
{
	struct strbuf b = {0};

	text_lines(&b, text, n);
	if (b.s && !b.failed)
		session_print(s, b.s, b.n);
	strbuf_free(&b);
}

/* ---- asking ---- */

int session_wait_key(struct session *s)
{
	struct key out[KEYS_OUT_MAX];
	struct keys keys;
	unsigned char byte;

	keys_init(&keys);
	for (;;) {
		struct pollfd p[2] = {{.fd = s->term->in, .events = POLLIN},
			{.fd = s->signals->fd, .events = POLLIN}};
		int n = poll(p, 2, keys_wait_ms(&keys));

		if (n < 0 && errno != EINTR)
			return 0;
		terminal_signals_read(s->signals);
		if (s->signals->end)
			session_end_by(s, s->signals->end);
		if (s->over || s->signals->interrupt)
			return 0;
		if (n == 0) {
			n = keys_timeout(&keys, out);
		} else if (!p[0].revents) {
			continue;
		} else if (read(s->term->in, &byte, 1) != 1) {
			session_end_by(s, SIGHUP);
			return 0;
		} else {
			n = keys_feed(&keys, byte, out);
			if (n == 0 && keys_wait_ms(&keys) >= 0)
				continue; /* a key may send several bytes */
		}
		if (n > 0 && out[0].code != KEY_TEXT)
			return out[0].code;
		/* Others could be taken for the code of a key. */
		return n > 0 && out[0].c < 0x80 ? (int)out[0].c : -1;
	}
}

/* Write to whoever answers, in raw mode. */
static void put(const struct session *s, const char *text)
{
	if (s->term->out_tty)
		terminal_puts(s->term, text);
	else
		io_write_full(STDERR_FILENO, text, strlen(text));
}

/* Ask, folded where the question is longer than a line. */
static void ask(const struct session *s, const char *text)
{
	struct strbuf folded = {0}, b = {0};
	int rows, columns;

	editor_size(s->editor, &rows, &columns);
	text_wrap(&folded, text, 0, columns);
	if (folded.n) /* the answer stands behind it */
		add_returning(&b, folded.s, folded.n - 1);
	if (b.n && !b.failed)
		put(s, b.s);
	strbuf_free(&folded);
	strbuf_free(&b);
}

bool session_confirm(struct session *s, const char *question)
{
	char line[512];
	int key, n = snprintf(line, sizeof(line), "%s [y/N] ", question);
	bool yes;

	if (!s->term->in_tty || n < 0)
		return false;
	terminal_raw(s->term);
	ask(s, line);
	key = session_wait_key(s);
	yes = key == 'y' || key == 'Y';
	put(s, yes ? "y\r\n" : "n\r\n");
	terminal_restore(s->term);
	return yes;
}

/* ---- what the host lacks ---- */

void session_tell_limited(struct session *s)
{
	if (!s->limited[0] || s->told_limited || s->relay || s->opt->quiet)
		return;
	session_frame(s, "here %s · see cellblock --check", s->limited);
	s->told_limited = true;
}

void session_set_limited(struct session *s, const char *limited)
{
	snprintf(s->limited, sizeof(s->limited), "%s", limited);
	session_tell_limited(s);
}

/* ---- leaving ---- */

/* Whether files would be lost: then say which. */
static bool warn_unsaved(struct session *s)
{
	struct jail_files files = {0};
	size_t which[3], n;
	char names[600] = "", safe[160], count[64];

	if (!s->cell_no || jail_home_list(s->jail, &files, NULL) < 0)
		return false;
	n = transfer_ledger_unsaved(&s->ledger, &files, which, 3);
	for (size_t i = 0; i < n && i < 3; i++) {
		const char *path = files.v[which[i]].path;

		text_safe(safe, sizeof(safe), path, strlen(path));
		strcat(names, i ? ", " : "");
		strcat(names, safe);
	}
	jail_files_free(&files);
	if (!n)
		return false;
	session_frame(s,
		"home: %s %s never downloaded: %s%s · :quit again to leave",
		text_count(count, sizeof(count), n, "file", NULL),
		n == 1 ? "was" : "were", names, n > 3 ? ", …" : "");
	return true;
}

void session_end(struct session *s, int status)
{
	s->over = true;
	s->status = status;
}

void session_end_by(struct session *s, int sig)
{
	session_end(s, 128 + sig);
}

void session_fail(struct session *s, const struct err *e)
{
	s->over = true;
	s->why = *e;
}

void session_finish(struct session *s)
{
	terminal_restore(s->term);
	if (s->calls->finish(s) < 0 && !s->status)
		s->status = 1;
}

void session_leave(struct session *s, int status)
{
	s->status = status;
	session_finish(s);
	if (s->over)
		return;
	if (!s->warned && warn_unsaved(s)) {
		s->warned = true;
		s->status = 0;
		return;
	}
	s->over = s->finished = true;
}

void session_stay(struct session *s)
{
	s->warned = false;
}

/* ---- the banner ---- */

/* "Python 3.11", as far as the interpreter's file name tells the version:
 * nothing is run only to ask for it. */
static void python_name(const struct session *s, char *buf, size_t size)
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

static void banner(struct session *s, const char *limited)
{
	const struct limits *l = &s->cfg->limits;
	char python[64], memory[TEXT_HUMAN], wall[TEXT_HUMAN], home[TEXT_HUMAN],
		tasks[TEXT_HUMAN];
	char first[256], second[256];
	const char *net = "no network", *files = "no host files";
	struct strbuf b = {0};
	int rows, columns;

	if (!s->cfg->banner || s->opt->quiet || !s->term->out_tty)
		return;
	if (l->network == NETWORK_LOOPBACK)
		net = "no network but its own loopback";
	if (s->cfg->expose.n)
		files = "no host files but those exposed";
	python_name(s, python, sizeof(python));
	snprintf(first, sizeof(first), "cellblock %s · %s in a jail: %s, %s",
		CELLBLOCK_VERSION, python, net, files);
	snprintf(second, sizeof(second),
		"%s · %s · %s a cell · home %s, in memory only · :help",
		text_size(memory, (uint64_t)l->memory_bytes),
		text_count(tasks, sizeof(tasks), (uint64_t)l->processes,
			"process", "processes"),
		text_time(wall, l->cell_wall_ms),
		text_size(home, (uint64_t)l->home_bytes));
	editor_size(s->editor, &rows, &columns);
	text_wrap(&b, first, 0, columns);
	text_wrap(&b, second, 0, columns);
	if (!b.failed)
		session_print(s, b.s, b.n);
	strbuf_free(&b);
	session_set_limited(s, limited);
}

static void tell_no_history(struct session *s)
{
	if (s->no_history[0] && !s->opt->quiet)
		session_frame(s, "%s", s->no_history);
}

/* ---- a line ---- */

/* One line as if it had been typed: a command, or a cell. */
static void run_line(struct session *s, const char *src, size_t n)
{
	struct err e = {0};
	int r;

	screen_tell_background(s);
	r = s->calls->line(s, src, n, &e);
	if (r > 0)
		r = cell_run(s, src, n, &e);
	if (r < 0)
		session_refuse(s, &e);
	cell_take_events(s);
}

static int take_signals(void *arg)
{
	struct session *s = arg;
	struct signals *sig = s->signals;

	terminal_signals_read(sig);
	if (sig->resized)
		editor_resized(s->editor);
	if (sig->interrupt)
		editor_interrupt(s->editor);
	sig->resized = sig->interrupt = false;
	if (sig->end)
		session_end_by(s, sig->end);
	return s->over;
}

static int take_jail(void *arg)
{
	struct session *s = arg;

	cell_take_events(s);
	return s->over || cell_startup_is_due(s);
}

static bool is_blank(const char *src, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isspace((unsigned char)src[i]))
			return false;
	return true;
}

/* Keys are lines from now on. Those that came just before were not echoed:
 * they are shown behind the prompt. */
static void read_lines(struct session *s)
{
	struct pollfd p = {.fd = s->term->in, .events = POLLIN};
	char keys[RELAY_IN];
	ssize_t n = 0;

	if (!s->term->raw)
		return;
	terminal_restore(s->term);
	if (poll(&p, 1, 0) > 0)
		n = read(s->term->in, keys, sizeof(keys));
	if (n > 0)
		editor_prefill(s->editor, keys, (size_t)n);
}

static void read_and_run(struct session *s)
{
	auto_free char *src = NULL;
	struct err e = {0};
	size_t n = 0;

	if (editor_is_plain(s->editor))
		read_lines(s);
	else
		terminal_raw(s->term);
	switch (editor_read(s->editor, &src, &n, &e)) {
	case EDITOR_CELL:
		jail_touch(s->jail);
		if (is_blank(src, n))
			break;
		history_add(s->history, src, n, NULL);
		run_line(s, src, n);
		break;
	case EDITOR_INTERRUPT:
		jail_touch(s->jail);
		break;
	case EDITOR_EOF:
		if (s->term->in_tty)
			session_leave(s, 0);
		else
			session_end(s, s->status);
		break;
	case EDITOR_GO_ON:
	case EDITOR_EVENT:
		break;
	case EDITOR_HUP:
		session_end_by(s, SIGHUP);
		break;
	case EDITOR_ERROR:
		session_fail(s, &e);
		break;
	}
}

static void take_events(void *arg)
{
	struct session *s = arg;

	if (s->signals->end)
		session_end_by(s, s->signals->end);
	cell_take_events(s);
}

static int open_parts(struct session *s, struct err *e)
{
	struct editor_opts opts = {
		.prompt = s->cfg->prompt,
		.prompt2 = PROMPT2,
		.colour = s->term->colour,
		.max_bytes = (size_t)s->cfg->limits.source_bytes,
		.history = s->history,
		.in = STDIN_FILENO,
		.out = STDOUT_FILENO,
		.takes_cell = s->calls->takes_cell,
		.complete = s->calls->complete,
		.ctx = s,
	};

	s->record = record_new();
	if (!s->record)
		return err_errno(e, "open a session");
	if (cell_open(s, e) < 0 || screen_open(s, take_events, e) < 0 ||
		editor_open(&s->editor, &opts, e) < 0)
		return -1;
	editor_watch_fd(s->editor, jail_fd(s->jail), take_jail, s);
	editor_watch_fd(s->editor, s->signals->fd, take_signals, s);
	return 0;
}

static void close_parts(struct session *s)
{
	screen_close(s);
	editor_close(s->editor);
	cell_close(s);
	record_free(s->record);
	transfer_ledger_free(&s->ledger);
}

static int run(struct session *s, struct err *e)
{
	char limited[sizeof(s->limited)] = "";

	if (setup_wait_built(s->jail, BUILT_MS, limited, sizeof(limited), e) <
			0 ||
		s->calls->ready(s, e) < 0)
		return -1;
	banner(s, limited);
	tell_no_history(s);
	s->calls->start(s);
	while (!s->over) {
		cell_take_events(s);
		if (!s->over)
			cell_run_startup(s);
		if (!s->over)
			read_and_run(s);
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

int session_run(struct session *s, struct err *e)
{
	int r = open_parts(s, e);

	if (r == 0)
		r = run(s, e);
	close_parts(s);
	return r;
}
