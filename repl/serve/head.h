/* SPDX-License-Identifier: MIT */
/*
 * head.h - where a request begins and ends, beyond doubt
 */
#ifndef REPL_SERVE_HEAD_H
#define REPL_SERVE_HEAD_H

#include "repl/text/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum head_state {
	HEAD_START, /* the first line */
	HEAD_FIELDS,
	HEAD_LENGTH, /* a body of a known length */
	HEAD_CHUNK_SIZE,
	HEAD_CHUNK,
	HEAD_CHUNK_END,
	HEAD_TRAILER,
	HEAD_OVER,  /* what follows is another request's */
	HEAD_WRONG, /* `status` and `words` say why */
};

/* Zero at first; only head.c writes it, but for what is taken from `text`. */
struct head {
	enum head_state state;
	struct strbuf text; /* the request, written anew */
	char *path;	    /* NULL before the first line is whole */
	char *host;	    /* what stands before the path; NULL: nothing */
	int status;
	const char *words;
	/* while it is read */
	struct strbuf line;
	size_t bytes, lines;
	unsigned seen; /* a bit for each field of the table */
	bool old;      /* HTTP/1.0 */
	uint64_t left; /* bytes of the body, or of a chunk */
};

/* Read on. Returns how many of the bytes belong to this request. */
size_t head_take(struct head *h, const char *p, size_t n);

/* Whether the head is whole. */
bool head_is_whole(const struct head *h);

/* The next request, and no further. */
void head_reset(struct head *h);

#endif
