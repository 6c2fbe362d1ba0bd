/* SPDX-License-Identifier: MIT */
/*
 * channel.c - one direction of a program's input or output
 *
 * Runs in:   front end, while a program runs
 * Holds:     at most CHANNEL_BYTES that have been read and not yet written
 * Trusts:    nothing: the bytes are not looked at
 *
 * The caller's descriptors may be blocking. Other processes share that flag, so
 * it stays as it is: one write is never larger than the room that poll(2)
 * promises.
 */
#include "channel.h"

#include "jail/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

void channel_init(
	struct channel *c, int from, bool own_from, int to, bool own_to)
{
	struct stat st;

	c->from = from;
	c->to = to;
	c->own_from = own_from;
	c->own_to = own_to;
	c->to_error = 0;
	c->at = c->n = 0;
	c->to_socket = to >= 0 && fstat(to, &st) == 0 && S_ISSOCK(st.st_mode);
	c->to_terminal = to >= 0 && isatty(to);
	/* Splicing to a blocking one of these may block. */
	c->copies = c->to_socket || c->to_terminal;
	if (own_from && from >= 0)
		io_set_nonblock(from, 1);
	if (own_to && to >= 0)
		io_set_nonblock(to, 1);
}

static void end_from(struct channel *c)
{
	if (c->own_from)
		fd_drop(&c->from);
	c->from = -1;
}

static void end_to(struct channel *c)
{
	if (c->own_to)
		fd_drop(&c->to);
	c->to = -1;
}

void channel_close(struct channel *c)
{
	end_from(c);
	end_to(c);
}

bool channel_is_over(const struct channel *c)
{
	return c->to < 0 || (c->from < 0 && !c->n);
}

void channel_poll(const struct channel *c, struct pollfd p[static 2])
{
	bool over = channel_is_over(c);

	p[0] = (struct pollfd){
		.fd = over || c->n ? -1 : c->from, .events = POLLIN};
	/* Without events a reader that went away is still reported. */
	p[1] = (struct pollfd){
		.fd = over ? -1 : c->to, .events = (short)(c->n ? POLLOUT : 0)};
}

/* Nothing can be written any more. */
static void broken(struct channel *c, int error)
{
	c->to_error = error;
	c->n = 0;
	channel_close(c);
}

static ssize_t write_some(struct channel *c)
{
	const char *p = c->buf + c->at;

	if (c->to_socket)
		return send(c->to, p, c->n, MSG_DONTWAIT | MSG_NOSIGNAL);
	/* A writable pipe has room for PIPE_BUF, a writable terminal only for
	 * 256. */
	if (c->to_terminal && c->n > 256)
		return write(c->to, p, 256);
	return write(c->to, p, c->n < PIPE_BUF ? c->n : PIPE_BUF);
}

static void move_out(struct channel *c)
{
	ssize_t w = write_some(c);

	if (w < 0 && errno != EAGAIN && errno != EINTR) {
		broken(c, errno);
		return;
	}
	if (w > 0) {
		c->at += (size_t)w;
		c->n -= (size_t)w;
	}
	if (!c->n) {
		c->at = 0;
		if (c->from < 0)
			end_to(c);
	}
}

static void at_end(struct channel *c)
{
	end_from(c);
	if (!c->n)
		end_to(c);
}

/* 1: done, or nothing to do now; 0: the caller must copy. */
static int move_spliced(struct channel *c)
{
	ssize_t n;

	if (c->copies)
		return 0;
	n = splice(c->from, NULL, c->to, NULL, CHANNEL_BYTES,
		SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
	if (n > 0)
		return 1;
	if (n == 0) {
		at_end(c);
		return 1;
	}
	if (errno == EPIPE) {
		broken(c, EPIPE);
		return 1;
	}
	/* EAGAIN may come from either end; a copy finds out which. Other
	 * errors, such as EINVAL: these two cannot be spliced. */
	if (errno != EAGAIN && errno != EINTR)
		c->copies = true;
	return 0;
}

static void move_in(struct channel *c)
{
	ssize_t n;

	if (move_spliced(c))
		return;
	n = read(c->from, c->buf, sizeof(c->buf));
	if (n > 0) {
		c->at = 0;
		c->n = (size_t)n;
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		at_end(c);
	}
}

void channel_move(struct channel *c, const struct pollfd p[static 2])
{
	if (p[1].fd >= 0 && (p[1].revents & (POLLERR | POLLNVAL))) {
		broken(c, EPIPE);
		return;
	}
	if (p[1].fd >= 0 && c->n && (p[1].revents & POLLOUT))
		move_out(c);
	if (p[0].fd >= 0 && !c->n && p[0].revents)
		move_in(c);
}
