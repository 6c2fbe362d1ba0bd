/* SPDX-License-Identifier: MIT */
/*
 * watcher.c - the process that shows a session to a watcher
 *
 * Runs in:   a client
 * Holds:     the watcher's terminal, and a connection to the session
 * Trusts:    nobody: a guest wrote the output, and a planted process may send
 *            it. We filter all of it as the session filters for its own screen,
 *            and this process can open no file and no socket
 * Leaves:    the terminal as it was
 *
 * The session sends its output unfiltered: each watcher's terminal has its own
 * size, and its own filter. Frame lines and sources come as
 * messages of their own, so the output can neither imitate nor erase them.
 */
#include "attach.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "repl/term/term.h"
#include "repl/text/text.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* While more than this waits for the terminal, we read no message. */
#define BACKLOG (64u << 10)
/* The longest line of source; we cut the rest. */
#define LINE_MAX_BYTES 4096
#define LAST_MS 2000

struct watcher {
	int sock;
	struct terminal *term;
	struct signals sig;
	const char *name;
	bool keys;   /* we read those of the terminal */
	bool writes; /* a cell's output is open */
	bool over, ended, broken;
	char held; /* '\r' that may be part of a line's end; or '\0' */
	struct output output;
	struct strbuf out;
	size_t at;
};

/* ---- showing ---- */

/* In files and pipes a line ends with \n: drop the \r before it. */
static void put_plain(struct watcher *w, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (w->held && p[i] != '\n')
			strbuf_add(&w->out, &w->held, 1);
		w->held = p[i] == '\r' ? '\r' : '\0';
		if (!w->held)
			strbuf_add(&w->out, &p[i], 1);
	}
}

static void put(void *arg, const void *buf, size_t n)
{
	struct watcher *w = arg;

	if (w->term->out_tty)
		strbuf_add(&w->out, buf, n);
	else
		put_plain(w, buf, n);
}

static void begin(struct watcher *w)
{
	const struct terminal *t = w->term;
	const struct output_opts opts = {
		.mode = t->out_tty && !t->dumb ? VT_SAFE : VT_PLAIN,
		.colour = t->colour,
		.rows = t->rows,
		.columns = t->cols,
		.lf_returns = true,
		.head_bytes = UINT64_MAX / 2,
		.sink = put,
		.arg = w,
	};

	output_begin(&w->output, &opts);
}

/* End a cell's output, and the modes that it left on. */
static void end(struct watcher *w)
{
	struct output_report r;

	if (w->writes)
		output_end(&w->output, &r);
	w->writes = false;
}

static void say(struct watcher *w, const char *text)
{
	const struct output_look look = {
		w->term->colour, w->term->out_tty ? w->term->cols : 0, "\r\n"};
	struct strbuf b = {0};

	if (w->writes) {
		output_say(&w->output, text);
		return;
	}
	output_frame(&b, text, &look);
	if (!b.failed)
		put(w, b.s, b.n);
	strbuf_free(&b);
}

static void show_output(struct watcher *w, const struct watcher_head *h,
	const char *s, size_t n)
{
	if (!w->writes)
		begin(w);
	w->writes = true;
	if (h->flags & WATCHER_STEERS)
		output_steer(&w->output);
	if (h->kind == WATCHER_BREAK)
		output_break(&w->output);
	output_feed(&w->output, s, n);
}

static void show_background(struct watcher *w, const char *s, size_t n)
{
	struct output_report r;

	end(w);
	begin(w);
	output_background(&w->output, s, n, &r);
}

/* Show source behind the bar of frame lines, with the prompt's marks. */
static void show_source(struct watcher *w, const struct watcher_head *h,
	const char *s, size_t n)
{
	const char *faint = w->term->colour ? "\x1b[0;2m" : "";
	const char *plain = w->term->colour ? "\x1b[0m" : "";
	bool first = h->number == 0;
	char line[LINE_MAX_BYTES];
	struct strbuf b = {0};
	const char *nl;

	end(w);
	for (; n; first = false) {
		nl = memchr(s, '\n', n);
		text_safe(line, sizeof(line), s, nl ? (size_t)(nl - s) : n);
		strbuf_printf(&b, "%s¦ %s%s%s\r\n", faint,
			first ? ">>> " : "... ", plain, line);
		n -= nl ? (size_t)(nl + 1 - s) : n;
		s = nl ? nl + 1 : s;
	}
	if (b.n && !b.failed)
		put(w, b.s, b.n);
	strbuf_free(&b);
}

static void show_missed(struct watcher *w, uint64_t bytes)
{
	char text[96], size[TEXT_HUMAN];

	snprintf(text, sizeof(text), "missed: %s of what was shown there",
		text_size(size, bytes));
	say(w, text);
}

static void show_line(struct watcher *w, const char *s, size_t n)
{
	char text[WATCHER_DATA + 1];

	memcpy(text, s, n);
	text[n] = '\0';
	say(w, text);
}

static void show_over(struct watcher *w)
{
	char text[160];

	end(w);
	snprintf(text, sizeof(text), "session %s has ended", w->name);
	say(w, text);
	w->over = true;
}

static void show(struct watcher *w, const struct watcher_head *h, const char *s,
	size_t n)
{
	switch ((enum watcher_kind)h->kind) {
	case WATCHER_SOURCE:
		show_source(w, h, s, n);
		break;
	case WATCHER_OUTPUT:
	case WATCHER_BREAK:
		show_output(w, h, s, n);
		break;
	case WATCHER_END:
		end(w);
		break;
	case WATCHER_LINE:
		show_line(w, s, n);
		break;
	case WATCHER_BACKGROUND:
		show_background(w, s, n);
		break;
	case WATCHER_MISSED:
		show_missed(w, (uint64_t)h->number);
		break;
	case WATCHER_OVER:
		show_over(w);
		break;
	}
}

/* ---- taking ---- */

static void take_packet(struct watcher *w)
{
	char buf[sizeof(struct watcher_head) + WATCHER_DATA];
	struct watcher_head h;
	ssize_t n = io_recv_strange(w->sock, buf, sizeof(buf), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0 && query_packet(buf, (size_t)n, &h))
		show(w, &h, buf + sizeof(h), (size_t)n - sizeof(h));
	else
		w->ended = true;
}

static void take_key(struct watcher *w)
{
	char c;

	if (read(w->term->in, &c, 1) != 1)
		w->keys = false;
	else if (c == 'q' || c == 'Q' || c == 0x03 || c == 0x04)
		w->over = true;
}

/* The session drops what a stopped watcher does not read, and says so. */
static void stop(struct watcher *w)
{
	output_suspend(&w->output);
	terminal_write(w->term, w->out.s + w->at, w->out.n - w->at, LAST_MS);
	w->out.n = w->at = 0;
	terminal_restore(w->term);
	job_stop();
}

/* We were stopped: take the terminal back. */
static void go_on(struct watcher *w)
{
	job_await_front(w->term->in, -1);
	terminal_forget_modes(w->term);
	if (w->keys)
		terminal_keys(w->term);
}

static void take_signals(struct watcher *w)
{
	struct signals *sig = &w->sig;

	terminal_signals_read(sig);
	w->over |= sig->interrupt || sig->end;
	sig->suspend &= job_has_shell();
	if (sig->suspend)
		stop(w);
	if (sig->suspend || sig->continued)
		go_on(w);
	if ((sig->suspend || sig->continued || sig->resized) &&
		terminal_measure(w->term))
		output_resize(&w->output, w->term->rows, w->term->cols);
	sig->suspend = sig->continued = sig->resized = false;
}

static void write_some(struct watcher *w)
{
	ssize_t n = terminal_write_some(
		w->term, w->out.s + w->at, w->out.n - w->at);

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		w->broken = true;
	w->at += n > 0 ? (size_t)n : 0;
	if (w->at < w->out.n && w->at < BACKLOG)
		return;
	/* Drop the written part: the buffer of a slow terminal may never be
	 * empty. */
	strbuf_cut(&w->out, w->at);
	w->at = 0;
}

static void turn(struct watcher *w)
{
	size_t waits = w->out.n - w->at;
	struct pollfd p[] = {
		{.fd = waits < BACKLOG ? w->sock : -1, .events = POLLIN},
		{.fd = w->keys ? w->term->in : -1, .events = POLLIN},
		{.fd = w->sig.fd, .events = POLLIN},
		{.fd = w->term->out, .events = waits ? POLLOUT : 0},
	};

	if (poll(p, COUNT(p), -1) < 0)
		return;
	if (p[0].revents)
		take_packet(w);
	if (p[1].revents)
		take_key(w);
	if (p[2].revents)
		take_signals(w);
	if (p[3].revents & (POLLERR | POLLHUP))
		w->broken = true;
	else if (p[3].revents & POLLOUT)
		write_some(w);
	w->broken |= w->out.failed;
}

static void run(struct watcher *w)
{
	char text[160];

	snprintf(text, sizeof(text), "watching session %s · Ctrl-C%s ends it",
		w->name, w->keys ? " or q" : "");
	say(w, text);
	while (!w->over && !w->ended && !w->broken)
		turn(w);
	end(w);
	if (!w->over && w->ended)
		say(w, "the session does not say anything more");
	if (!w->broken && !w->out.failed && w->out.n > w->at)
		terminal_write(
			w->term, w->out.s + w->at, w->out.n - w->at, LAST_MS);
}

static int confine(struct err *e)
{
	const struct jail_sandbox sandbox = {0};

	return jail_sandbox_enter(&sandbox, e);
}

int watcher_run(int sock, const char *name, struct terminal *t, struct err *e)
{
	struct watcher *w = calloc(1, sizeof(*w));
	int status = -1;

	if (!w)
		return err_errno(e, "watch session %s", name);
	w->sock = sock;
	w->term = t;
	w->name = name;
	if (output_open(&w->output, 0, e) == 0 &&
		terminal_signals_open(&w->sig, true, e) == 0 &&
		confine(e) == 0) {
		w->keys = t->in_tty && t->out_tty && job_is_in_front(t->in);
		begin(w);
		if (w->keys)
			terminal_keys(t);
		run(w);
		terminal_restore(t);
		status = w->sig.end ? 128 + w->sig.end : w->ended && !w->over;
	}
	terminal_signals_close(&w->sig);
	output_close(&w->output);
	strbuf_free(&w->out);
	free(w);
	return status;
}
