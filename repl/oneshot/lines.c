/* SPDX-License-Identifier: MIT */
/*
 * lines.c - a terminal that another program may read, too
 *
 * Runs in:   front end, while a program runs whose output goes elsewhere
 * Trusts:    nothing: the program sets the modes of the tty
 * Leaves:    the terminal to whoever has changed its modes
 */
#include "lines.h"

#include "repl/term/relay.h"
#include "repl/term/terminal.h"

#include <string.h>
#include <termios.h>
#include <unistd.h>

#define CTRL_D '\x04'

bool lines_are_wanted(const struct terminal *t)
{
	return t->in_tty && t->saved && !t->out_tty;
}

static bool has_lines(int fd, tcflag_t flags)
{
	struct termios now;

	return tcgetattr(fd, &now) == 0 && (now.c_lflag & flags) == flags;
}

/* Whether nobody else is reading keys from the terminal. */
static bool is_free(const struct terminal *t)
{
	return terminal_is_in_front(t) && has_lines(t->in, ICANON);
}

/* Take the terminal while the program wants keys, not lines. */
static void follow(struct lines *l)
{
	bool lines = has_lines(l->relay->tty, ICANON | ECHO);

	if (l->relay->tty < 0)
		return;
	if (lines && l->term->raw)
		terminal_restore(l->term);
	else if (!lines && !l->term->raw && is_free(l->term))
		terminal_raw(l->term);
	l->relay->keys = l->term->raw;
}

void lines_begin(struct lines *l, struct terminal *t, struct relay *relay)
{
	*l = (struct lines){.term = t, .relay = relay};
	follow(l);
}

void lines_poll(const struct lines *l, struct pollfd *p)
{
	bool reads = l->term && !l->term->raw && l->relay->tty >= 0 &&
		     !l->relay->keys_ended && is_free(l->term);

	*p = (struct pollfd){.fd = reads ? l->term->in : -1, .events = POLLIN};
}

/* Note the echo that the tty will repeat: the terminal has shown it. */
static void note_echo(struct lines *l, const char *s, size_t n)
{
	l->echo_n = 0;
	if (!has_lines(l->relay->tty, ICANON | ECHO))
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

	if (p->fd < 0 || !p->revents || !is_free(l->term))
		return;
	n = read(l->term->in, line, sizeof(line));
	if (n < 0 || (n == 0 && p->revents & POLLHUP)) {
		l->relay->keys_ended = true;
		return;
	}
	if (n == 0)
		line[n++] = CTRL_D;
	else
		note_echo(l, line, (size_t)n);
	relay_type(l->relay, line, (size_t)n);
}

const char *lines_said(struct lines *l, const char *buf, size_t size, size_t *n)
{
	const char *echo = NULL;

	if (!l->term)
		return NULL;
	follow(l);
	if (l->echo_n)
		echo = memmem(buf, size, l->echo, l->echo_n);
	*n = l->echo_n;
	if (echo)
		l->echo_n = 0;
	return echo;
}
