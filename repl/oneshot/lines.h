/* SPDX-License-Identifier: MIT */
/*
 * lines.h - a terminal that another program may read, too
 *
 * In "cellblock prog.py | less", less draws on the terminal and reads its keys.
 * So while standard output goes elsewhere, the terminal keeps its modes and is
 * read line by line. It is put into raw mode only while the program wants
 * single keys, or no echo.
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
	char echo[2 * LINES_READ]; /* what the jail's tty will echo */
	size_t echo_n;
};

/* Whether another program may read the terminal, too. */
bool lines_are_wanted(const struct terminal *t);

/* Begin, with the tty that the relay has. */
void lines_begin(struct lines *l, struct terminal *t, struct relay *relay);

/* Fill in what to wait for; fd -1 where nothing is to be read. */
void lines_poll(const struct lines *l, struct pollfd *p);

/* Read the line that poll(2) found. */
void lines_move(struct lines *l, const struct pollfd *p);

/* Before bytes of the tty are shown: follow its modes, and find the echo that
 * the terminal has shown already: *n bytes of `buf`, NULL for none. */
const char *lines_said(
	struct lines *l, const char *buf, size_t size, size_t *n);

#endif
