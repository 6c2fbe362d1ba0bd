/* SPDX-License-Identifier: MIT */
/*
 * stream.c - requests, one after the other, from a descriptor
 *
 * Runs in:   front end, confined
 * Trusts:    nobody: every request is bounded, and its end does not depend on
 *            whether it is valid
 *
 * A value of two bytes takes a hundred once it is parsed: so we limit the
 * number of values.
 *
 * A string of JSON holds no line end. If one does, we end the request there,
 * and it is malformed: a forgotten quote does not take the next requests along.
 * A forgotten bracket does not, either, if the next line begins with a bracket
 * where JSON allows none.
 */
#include "repl/json/json.h"

#include "jail/base/array.h"
#include "jail/base/io.h"

#include <errno.h>
#include <limits.h>
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

/* True if c begins another request, though brackets of this one are open. */
static bool begins_request(const struct stream *s, char c)
{
	return s->first && s->depth > 0 && (c == '{' || c == '[') &&
	       !strchr(":,[", s->last);
}

/* Scan one character. True when the request ends before it. */
static bool scan_character(struct stream *s, char c)
{
	if (c == '\n' && (s->lines || s->text || s->depth <= 0))
		return s->something;
	if (begins_request(s, c))
		return true;
	s->first = c == '\n';
	if (c != ' ' && c != '\t' && c != '\r' && c != '\n') {
		s->something = true;
		s->last = c;
	}
	if (s->text) {
		s->text = s->escaped || c != '"';
		s->escaped = !s->escaped && c == '\\';
		return false;
	}
	s->text = c == '"';
	if (c == '{' || c == '[' || c == ',')
		s->values += s->values <= s->values_max;
	/* A request that is skipped may be of any length: no count may
	 * overflow. */
	if (c == '{' || c == '[')
		s->depth += s->depth < INT_MAX;
	else if (c == '}' || c == ']')
		s->depth -= s->depth > INT_MIN;
	s->too_deep |= s->depth > s->depth_max;
	return false;
}

/* Scan the next bytes. True when a request ends at s->at. */
static bool scan_request(struct stream *s)
{
	for (; s->at < s->n; s->at++)
		if (scan_character(s, s->buf[s->at]))
			return true;
	return s->ended && s->something;
}

/* Drop the bytes of earlier requests, and of a request that is too long. */
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
	ssize_t r = 0;

	compact_buffer(s);
	if (array_reserve(&s->buf, &s->room, s->n + READ_BYTES, 1) < 0)
		return -1;
	do {
		if (r < 0 && errno == EAGAIN)
			io_await(s->fd, -1);
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
	/* Bytes that can be read without waiting may be the end of file. */
	if (stream_is_empty(s) && io_is_readable(s->fd) && stream_read(s) < 0)
		return false;
	return !s->ended || s->at < s->n;
}

/* Give out the request that ends at s->at, and begin the next. */
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
	s->at += s->at < s->n && s->buf[s->at] == '\n';
	s->used = s->at;
	s->found = s->values;
	s->depth = s->values = 0;
	s->text = s->escaped = s->something = s->first = false;
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
