/* SPDX-License-Identifier: MIT */
/*
 * stream.h - requests, one after the other, from a descriptor
 *
 * A request ends with the line on which its brackets close. A line without a
 * bracket is a request of its own.
 */
#ifndef REPL_JSON_STREAM_H
#define REPL_JSON_STREAM_H

#include <stdbool.h>
#include <stddef.h>

/* Caller's storage; only stream.c writes it. */
struct stream {
	int fd;		 /* borrowed */
	size_t max;	 /* longest request that is kept */
	int depth_max;	 /* deepest nesting */
	int values_max;	 /* most values */
	bool lines;	 /* a request is a line, whatever it holds */
	char *buf;	 /* owned */
	size_t n, room;	 /* bytes that were read */
	size_t at, used; /* up to here looked at; taken by earlier requests */
	int depth, values;
	int found;	    /* values of the last request */
	bool text, escaped; /* within a string, after a backslash */
	bool something;	    /* a character that is no blank */
	bool long_;	    /* what is wrong with it */
	bool too_deep;
	bool ended;
};

enum stream_next {
	STREAM_END,	/* no more */
	STREAM_REQUEST, /* *text, *n: borrowed until the next call */
	STREAM_LONG,	/* one that is too long was passed over */
	STREAM_DEEP,	/* one that is nested too deep */
	STREAM_MANY,	/* one with too many values */
	STREAM_MORE,	/* (stream_try) none yet: stream_read() first */
	STREAM_FAILED,	/* errno */
};

void stream_open(
	struct stream *s, int fd, size_t max, int depth_max, int values_max);
void stream_close(struct stream *s);

/* Whether stream_next() would have to read first. */
bool stream_is_empty(const struct stream *s);

/* Whether another request may come, as far as can be said without waiting. What
 * stream_next() gave is no longer valid then. */
bool stream_may_go_on(struct stream *s);

/* Read what is there, or wait until something is. 0, or -1 with errno. */
int stream_read(struct stream *s);

/* The next request of what was read. */
enum stream_next stream_try(struct stream *s, const char **text, size_t *n);

/* The next request; blocks until there is one. */
enum stream_next stream_next(struct stream *s, const char **text, size_t *n);

#endif
