/* SPDX-License-Identifier: MIT */
/*
 * question.c - keys for a command: the answer to a question, the pager's keys
 *
 * Runs in:   front end, between cells
 * Holds:     the terminal, in raw mode
 * Trusts:    the person
 * Leaves:    the terminal in terminal_lines(), after a question
 */
#include "repl/session/session.h"

#include "jail/base/io.h"
#include "repl/edit/editor.h"
#include "repl/term/term.h"
#include "repl/text/text.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A signal that stops or continues us, as the key that has the same effect
 * here: Ctrl-Z, or Ctrl-L, which draws anew. 0: none has come. */
static int take_job_signals(struct session *s)
{
	struct signals *sig = s->signals;
	bool back = sig->continued;

	if (back)
		terminals_continue(s);
	if (sig->suspend || detached_is_gone(s)) {
		sig->suspend = false;
		return KEYS_CTRL('Z');
	}
	return back ? KEYS_CTRL('L') : 0;
}

int question_keys(struct session *s, struct keys *keys, struct key *out)
{
	unsigned char byte;

	for (;;) {
		struct pollfd p[2] = {{.fd = s->term->in, .events = POLLIN},
			{.fd = s->signals->fd, .events = POLLIN}};
		int n;

		terminal_raw(s->term);
		n = poll(p, 2, keys_wait_ms(keys));
		if (n < 0 && errno != EINTR)
			return -1;
		terminal_signals_read(s->signals);
		if (s->signals->end)
			session_end_by(s, s->signals->end);
		detached_answer(s, false);
		watchers_send(s);
		if (s->over || s->signals->interrupt || detached_is_due(s))
			return -1;
		out[0] = (struct key){.code = take_job_signals(s)};
		if (out[0].code)
			return 1;
		if (s->signals->resized) {
			s->signals->resized = false;
			editor_resized(s->editor);
			return 0;
		}
		if (n == 0) {
			n = keys_timeout(keys, out);
		} else if (!p[0].revents || !io_is_readable(s->term->in)) {
			continue;
		} else if (read(s->term->in, &byte, 1) != 1) {
			if (terminals_fall_behind(s))
				continue;
			terminal_signals_take(s->signals, SIGHUP);
			if (s->signals->end)
				session_end_by(s, SIGHUP);
			return -1;
		} else {
			detached_keyed(s);
			n = keys_feed(keys, byte, out);
		}
		if (n > 0)
			return n;
	}
}

bool question_stop(struct session *s)
{
	terminals_stop(s);
	while (!s->over && detached_is_gone(s)) {
		editor_wait(s->editor);
		cell_take_events(s);
		terminals_turn(s, true);
	}
	return !s->over;
}

/* Wait for a key: its code, or the character of a text key in ASCII; -1 for any
 * other key; 0: stop waiting. */
static int wait_key(struct session *s)
{
	struct key out[KEYS_OUT_MAX];
	struct keys keys;
	int n;

	keys_init(&keys);
	do
		n = question_keys(s, &keys, out);
	while (n == 0);
	if (n < 0)
		return 0;
	if (out[0].code != KEY_TEXT)
		return out[0].code;
	/* The caller could take other characters for the code of a key. */
	return out[0].c < 0x80 ? (int)out[0].c : -1;
}

static void print_text(const struct session *s, const char *text)
{
	if (s->term->out_tty)
		terminal_puts(s->term, text);
	else
		io_write_full(STDERR_FILENO, text, strlen(text));
}

/* Write a question, folded at the width of the terminal; the answer stands
 * behind it. A person who sees the question may answer at once: the terminal
 * echoes no key any more. */
static void print_question(struct session *s, const char *text)
{
	struct strbuf b = {0};
	char *rest, *row;
	int rows, columns;

	terminal_raw(s->term);
	editor_size(s->editor, &rows, &columns);
	text_wrap(&b, text, 0, columns);
	rest = b.failed ? NULL : b.s;
	while ((row = strsep(&rest, "\n")) != NULL) {
		print_text(s, row);
		if (rest && *rest)
			print_text(s, "\r\n");
	}
	strbuf_free(&b);
}

bool question_confirm(struct session *s, const char *question)
{
	char line[512];
	int key, n = snprintf(line, sizeof(line), "%s [y/N] ", question);
	bool yes;

	if (!s->term->in_tty || n < 0)
		return false;
	do {
		print_question(s, line);
		key = wait_key(s);
		if (key == KEYS_CTRL('Z') && !detached_is_gone(s))
			print_text(s, "^Z\r\n");
	} while (key == KEYS_CTRL('L') ||
		 (key == KEYS_CTRL('Z') && question_stop(s)));
	yes = key == 'y' || key == 'Y';
	print_text(s, yes ? "y\r\n" : "n\r\n");
	terminal_lines(s->term);
	return yes;
}
