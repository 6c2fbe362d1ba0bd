/* SPDX-License-Identifier: MIT */
/*
 * channel.c - one direction of a program's input or output
 *
 * Runs in:   front end
 * Holds:     both ends, as the caller gives them
 * Trusts:    nothing of the bytes
 *
 * A channel changes no byte, and copies none if the kernel can splice. The
 * caller's descriptors may be blocking. Other processes share that flag, so we
 * do not change it: one write is never larger than the room that poll(2)
 * promises.
 */
#include "repl/oneshot/streams.h"

#include "jail/base/io.h"
#include "repl/drive/drive.h"

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
	c->read = 0;
	c->to_socket = to >= 0 && fstat(to, &st) == 0 && S_ISSOCK(st.st_mode);
	c->to_terminal = to >= 0 && isatty(to);
	/* splice(2) to a blocking socket or terminal may block. */
	c->copies = c->to_socket || c->to_terminal || c->log;
	if (own_from && from >= 0)
		io_set_nonblock(from, 1);
	if (own_to && to >= 0)
		io_set_nonblock(to, 1);
}

static void close_from(struct channel *c)
{
	if (c->own_from)
		fd_drop(&c->from);
	c->from = -1;
}

static void close_to(struct channel *c)
{
	if (c->own_to)
		fd_drop(&c->to);
	c->to = -1;
}

void channel_close(struct channel *c)
{
	close_from(c);
	close_to(c);
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
	/* Even without events poll(2) reports a reader that went away. */
	p[1] = (struct pollfd){
		.fd = over ? -1 : c->to, .events = (short)(c->n ? POLLOUT : 0)};
}

/* Close the channel, because we cannot write any more. */
static void break_channel(struct channel *c, int error)
{
	c->to_error = error;
	c->n = 0;
	channel_close(c);
}

static ssize_t write_chunk(struct channel *c)
{
	const char *p = c->buf + c->at;

	if (c->to_socket)
		return send(c->to, p, c->n, MSG_DONTWAIT | MSG_NOSIGNAL);
	/* A writable pipe has room for PIPE_BUF bytes, a writable terminal only
	 * for 256. */
	if (c->to_terminal && c->n > 256)
		return write(c->to, p, 256);
	return write(c->to, p, c->n < PIPE_BUF ? c->n : PIPE_BUF);
}

static void write_buffer(struct channel *c)
{
	ssize_t w = write_chunk(c);

	if (w < 0 && errno != EAGAIN && errno != EINTR) {
		break_channel(c, errno);
		return;
	}
	if (w > 0) {
		c->at += (size_t)w;
		c->n -= (size_t)w;
	}
	if (!c->n) {
		c->at = 0;
		if (c->from < 0)
			close_to(c);
	}
}

void channel_end_input(struct channel *c)
{
	close_from(c);
	if (!c->n)
		close_to(c);
}

/* Move bytes by splice(2). 1: done; 0: the caller must copy. */
static int splice_input(struct channel *c)
{
	ssize_t n;

	if (c->copies)
		return 0;
	n = splice(c->from, NULL, c->to, NULL, CHANNEL_BYTES,
		SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
	if (n > 0) {
		c->read += (uint64_t)n;
		return 1;
	}
	if (n == 0) {
		channel_end_input(c);
		return 1;
	}
	if (errno == EPIPE) {
		break_channel(c, EPIPE);
		return 1;
	}
	/* EAGAIN may come from either end; a copy finds out which. After other
	 * errors, such as EINVAL, splice(2) cannot join these two. */
	if (errno != EAGAIN && errno != EINTR)
		c->copies = true;
	return 0;
}

static void move_input(struct channel *c)
{
	ssize_t n;

	if (splice_input(c))
		return;
	n = read(c->from, c->buf, sizeof(c->buf));
	if (n > 0) {
		c->at = 0;
		c->n = (size_t)n;
		c->read += (uint64_t)n;
		if (c->log && c->is_input)
			log_input(c->log, c->buf, c->n);
		else if (c->log)
			log_output(c->log, c->buf, c->n);
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		channel_end_input(c);
	}
}

void channel_move(struct channel *c, const struct pollfd p[static 2])
{
	if (p[1].fd >= 0 && (p[1].revents & (POLLERR | POLLNVAL))) {
		break_channel(c, EPIPE);
		return;
	}
	if (p[1].fd >= 0 && c->n && (p[1].revents & POLLOUT))
		write_buffer(c);
	if (p[0].fd >= 0 && !c->n && p[0].revents)
		move_input(c);
}
