/* SPDX-License-Identifier: MIT */
/*
 * lines.h - a terminal that is not only ours
 *
 * "cellblock prog.py | less": less draws on the terminal and reads its keys. So
 * while standard output goes elsewhere the terminal keeps its modes, and lines
 * are what is read of it. Only while the program wants keys, or no echo, is it
 * taken, as it is all the time where output goes there.
 */
#ifndef REPL_ONESHOT_LINES_H
#define REPL_ONESHOT_LINES_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

struct relay;
struct terminal;

/* A line, and its echo. */
#define LINES_READ 1024

/* Caller's storage, all zero: off. */
struct lines {
	struct terminal *term; /* borrowed, as below; NULL: off */
	struct relay *relay;
	char echo[2 * LINES_READ]; /* that the jail's tty owes for a line */
	size_t echo_n;
};

/* Whether the terminal may be another program's, too. */
bool lines_are_wanted(const struct terminal *t);

/* Begin, with the tty that the relay has. */
void lines_begin(struct lines *l, struct terminal *t, struct relay *relay);

/* Fill in what to wait for; fd -1 where nothing is to be read. */
void lines_poll(const struct lines *l, struct pollfd *p);

/* Read the line that poll(2) found. */
void lines_move(struct lines *l, const struct pollfd *p);

/* What the tty says is about to be shown: follow its modes, and find the echo
 * that the terminal has shown already: *n bytes of `buf`, NULL for none. */
const char *lines_said(
	struct lines *l, const char *buf, size_t size, size_t *n);

#endif
