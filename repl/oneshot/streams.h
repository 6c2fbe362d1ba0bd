/* SPDX-License-Identifier: MIT */
/*
 * streams.h - what goes between a program and the caller's descriptors
 *
 *	channel.c	one direction of its input or output
 *	lines.c		a terminal that another program may read, too
 */
#ifndef REPL_ONESHOT_STREAMS_H
#define REPL_ONESHOT_STREAMS_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct log;
struct relay;
struct terminal;

/* ---- channel.c ---- */

#define CHANNEL_BYTES 65536
#define CHANNEL_POLLS 2

struct channel {
	int from, to; /* -1: that end is closed */
	bool own_from, own_to;
	bool copies; /* splice(2) does not work here */
	bool to_socket, to_terminal;
	int to_error; /* why we cannot write any more; EPIPE: the reader has
		       * gone */
	size_t at, n; /* bytes of buf that wait */
	uint64_t read;
	struct log *log; /* what goes through is written down; NULL: is not */
	bool is_input;	 /* for the log */
	char buf[CHANNEL_BYTES];
};

/* Begin. The channel closes the descriptors that it owns. At least one end is a
 * pipe of ours, which we make non-blocking. */
void channel_init(
	struct channel *c, int from, bool own_from, int to, bool own_to);
void channel_close(struct channel *c);
/* Read no more; what was read goes out. */
void channel_end_input(struct channel *c);
bool channel_is_over(const struct channel *c);

/* Fill in what to poll; unused entries have fd -1. Then move what poll(2) found
 * ready. */
void channel_poll(const struct channel *c, struct pollfd p[static 2]);
void channel_move(struct channel *c, const struct pollfd p[static 2]);

/* ---- lines.c ---- */

/* Most bytes of a line. */
#define LINES_READ 1024

/* All zero: off. */
struct lines {
	struct terminal *term; /* borrowed, as below; NULL: off */
	struct relay *relay;
	char echo[2 * LINES_READ]; /* what the jail's tty will echo */
	size_t echo_n;
};

bool lines_are_wanted(const struct terminal *t);
void lines_begin(struct lines *l, struct terminal *t, struct relay *relay);

/* Fill in what to poll; fd -1: do not read the terminal. Then read the line
 * that poll(2) found. */
void lines_poll(const struct lines *l, struct pollfd *p);
void lines_move(struct lines *l, const struct pollfd *p);

/* Before we show bytes of the tty: follow its modes, and find in `buf` the *n
 * bytes of echo that the terminal has shown already; NULL: none. */
const char *lines_find_echo(
	struct lines *l, const char *buf, size_t size, size_t *n);

#endif
