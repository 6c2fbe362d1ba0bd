/* SPDX-License-Identifier: MIT */
/*
 * channel.h - one direction of a program's input or output
 *
 * Binary clean, and without copying where the kernel can splice. The program
 * only ever holds a pipe of ours, never a descriptor of the caller's.
 */
#ifndef REPL_ONESHOT_CHANNEL_H
#define REPL_ONESHOT_CHANNEL_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#define CHANNEL_BYTES 65536
#define CHANNEL_POLLS 2

/* Caller's storage. */
struct channel {
	int from, to; /* -1: that end is closed */
	bool own_from, own_to;
	bool copies; /* splice(2) does not work here */
	bool to_socket, to_terminal;
	int to_error; /* why nothing can be written any more; EPIPE: nobody
		       * reads it */
	size_t at, n; /* bytes of buf that wait */
	char buf[CHANNEL_BYTES];
};

/* Begin; owned descriptors are closed by the channel. One end at least is a
 * pipe of ours, and is made non-blocking. */
void channel_init(
	struct channel *c, int from, bool own_from, int to, bool own_to);

/* Close what is owned. */
void channel_close(struct channel *c);

/* Nothing will move any more. */
bool channel_is_over(const struct channel *c);

/* What to wait for; entries that do not matter have fd -1. */
void channel_poll(const struct channel *c, struct pollfd p[static 2]);

/* Move what poll(2) found ready. */
void channel_move(struct channel *c, const struct pollfd p[static 2]);

#endif
