/* SPDX-License-Identifier: MIT */
/*
 * lines.c - a terminal that another program may read, too
 *
 * Runs in:   front end
 * Trusts:    the caller's terminal
 * Leaves:    the modes of the terminal as they were
 *
 * In "cellblock prog.py | less", less draws on the terminal and reads its keys.
 * So while standard output goes elsewhere, we leave the terminal its modes and
 * read it line by line. We put it into raw mode only while the program wants
 * single keys, or no echo, and leave it alone after another program has changed
 * its modes.
 */
#include "repl/oneshot/streams.h"

#include "repl/term/term.h"

#include <string.h>
#include <termios.h>
#include <unistd.h>

bool lines_are_wanted(const struct terminal *t)
{
	return t->in_tty && t->saved && !t->out_tty;
}

static bool has_modes(int fd, tcflag_t flags)
{
	struct termios now;

	return tcgetattr(fd, &now) == 0 && (now.c_lflag & flags) == flags;
}

/* True if no other program reads keys from the terminal. */
static bool terminal_is_free(const struct terminal *t)
{
	return job_is_in_front(t->in) && has_modes(t->in, ICANON);
}

/* Put the terminal into raw mode while the program wants keys, not lines. */
static void follow_modes(struct lines *l)
{
	bool lines = has_modes(l->relay->tty, ICANON | ECHO);

	if (l->relay->tty < 0)
		return;
	if (lines && l->term->raw)
		terminal_restore(l->term);
	else if (!lines && !l->term->raw && terminal_is_free(l->term))
		terminal_raw(l->term);
	l->relay->keys = l->term->raw;
}

void lines_begin(struct lines *l, struct terminal *t, struct relay *relay)
{
	*l = (struct lines){.term = t, .relay = relay};
	follow_modes(l);
}

void lines_poll(const struct lines *l, struct pollfd *p)
{
	bool reads = l->term && !l->term->raw && l->relay->tty >= 0 &&
		     !l->relay->keys_ended && terminal_is_free(l->term);

	*p = (struct pollfd){.fd = reads ? l->term->in : -1, .events = POLLIN};
}

/* Note the echo that the jail's tty will write: the terminal has shown the same
 * already. */
static void note_echo(struct lines *l, const char *s, size_t n)
{
	l->echo_n = 0;
	if (!has_modes(l->relay->tty, ICANON | ECHO))
		return;
	for (size_t i = 0; i < n; i++) {
		bool control = (unsigned char)s[i] < 0x20 || s[i] == 0x7f;

		if (s[i] == '\n')
			l->echo[l->echo_n++] = '\r';
		else if (control && s[i] != '\t')
			l->echo[l->echo_n++] = '^';
		l->echo[l->echo_n++] = control && s[i] != '\n' && s[i] != '\t'
					       ? (char)(s[i] ^ 0x40)
					       : s[i];
	}
}

void lines_move(struct lines *l, const struct pollfd *p)
{
	char line[LINES_READ];
	ssize_t n;

	if (p->fd < 0 || !p->revents || !terminal_is_free(l->term))
		return;
	n = read(l->term->in, line, sizeof(line));
	if (n < 0 || (n == 0 && p->revents & POLLHUP)) {
		l->relay->keys_ended = true;
		return;
	}
	if (n == 0)
		line[n++] = KEYS_CTRL('D');
	else
		note_echo(l, line, (size_t)n);
	relay_type(l->relay, line, (size_t)n);
}

const char *lines_find_echo(
	struct lines *l, const char *buf, size_t size, size_t *n)
{
	const char *echo = NULL;

	if (!l->term)
		return NULL;
	follow_modes(l);
	if (l->echo_n)
		echo = memmem(buf, size, l->echo, l->echo_n);
	*n = l->echo_n;
	if (echo)
		l->echo_n = 0;
	return echo;
}
