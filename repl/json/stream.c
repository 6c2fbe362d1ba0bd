/* SPDX-License-Identifier: MIT */
/*
 * stream.c - requests, one after the other, from a descriptor
 *
 * Runs in:   front end, confined
 * Trusts:    nobody: whatever the bytes are, a request is bounded, and where
 *            one ends does not depend on whether it is in order
 *
 * Parsed, a value of two bytes takes a hundred: hence a limit on their number.
 *
 * JSON has no line end in a string. One there ends the request, which is then
 * malformed, so that a forgotten quote does not take the next requests along.
 */
#include "repl/json/json.h"

#include "jail/base/array.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES (64 << 10)

void stream_open(
	struct stream *s, int fd, size_t max, int depth_max, int values_max)
{
	*s = (struct stream){.fd = fd,
		.max = max,
		.depth_max = depth_max,
		.values_max = values_max};
}

void stream_close(struct stream *s)
{
	free(s->buf);
	*s = (struct stream){.fd = -1};
}

/* Look at one character. True when the request ends before it. */
static bool look_at_character(struct stream *s, char c)
{
	if (c == '\n' && (s->lines || s->text || s->depth <= 0))
		return s->something;
	if (c != ' ' && c != '\t' && c != '\r' && c != '\n')
		s->something = true;
	if (s->text) {
		s->text = s->escaped || c != '"';
		s->escaped = !s->escaped && c == '\\';
		return false;
	}
	s->text = c == '"';
	if (c == '{' || c == '[' || c == ',')
		s->values += s->values <= s->values_max;
	/* Of one that is passed over, no count may overflow. */
	if (c == '{' || c == '[')
		s->depth += s->depth < INT_MAX;
	else if (c == '}' || c == ']')
		s->depth -= s->depth > INT_MIN;
	s->too_deep |= s->depth > s->depth_max;
	return false;
}

/* Look on. True when a request ends at s->at. */
static bool scan_request(struct stream *s)
{
	for (; s->at < s->n; s->at++)
		if (look_at_character(s, s->buf[s->at]))
			return true;
	return s->ended && s->something;
}

/* Forget what is behind us; and what nobody will ask for. */
static void compact_buffer(struct stream *s)
{
	if (s->at - s->used > s->max || s->long_) {
		s->long_ = true;
		s->used = s->at;
	}
	if (s->used == 0)
		return;
	memmove(s->buf, s->buf + s->used, s->n - s->used);
	s->n -= s->used;
	s->at -= s->used;
	s->used = 0;
}

int stream_read(struct stream *s)
{
	struct pollfd p = {.fd = s->fd, .events = POLLIN};
	ssize_t r = 0;

	compact_buffer(s);
	if (array_reserve(&s->buf, &s->room, s->n + READ_BYTES, 1) < 0)
		return -1;
	do {
		if (r < 0 && errno == EAGAIN)
			poll(&p, 1, -1);
		r = read(s->fd, s->buf + s->n, READ_BYTES);
	} while (r < 0 && (errno == EINTR || errno == EAGAIN));
	if (r < 0)
		return -1;
	s->n += (size_t)r;
	s->ended = r == 0;
	return 0;
}

bool stream_is_empty(const struct stream *s)
{
	return !s->ended &&
	       (s->at == s->n || !memchr(s->buf + s->at, '\n', s->n - s->at));
}

bool stream_may_go_on(struct stream *s)
{
	struct pollfd p = {.fd = s->fd, .events = POLLIN};

	/* Bytes that can be read without waiting may be the end of file. */
	if (stream_is_empty(s) && poll(&p, 1, 0) > 0 && stream_read(s) < 0)
		return false;
	return !s->ended || s->at < s->n;
}

/* A request ends here: the next begins. */
static enum stream_next finish_request(
	struct stream *s, const char **text, size_t *n)
{
	enum stream_next what = STREAM_REQUEST;

	*text = s->buf + s->used;
	*n = s->at - s->used;
	if (s->long_ || *n > s->max)
		what = STREAM_LONG;
	else if (s->too_deep)
		what = STREAM_DEEP;
	else if (s->values > s->values_max)
		what = STREAM_MANY;
	s->at += s->at < s->n; /* the line end */
	s->used = s->at;
	s->found = s->values;
	s->depth = s->values = 0;
	s->text = s->escaped = s->something = false;
	s->long_ = s->too_deep = false;
	return what;
}

enum stream_next stream_try(struct stream *s, const char **text, size_t *n)
{
	if (scan_request(s))
		return finish_request(s, text, n);
	return s->ended ? STREAM_END : STREAM_MORE;
}

enum stream_next stream_next(struct stream *s, const char **text, size_t *n)
{
	enum stream_next what;

	while ((what = stream_try(s, text, n)) == STREAM_MORE)
		if (stream_read(s) < 0)
			return STREAM_FAILED;
	return what;
}
