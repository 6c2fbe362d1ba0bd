/* SPDX-License-Identifier: MIT */
/*
 * strbuf.h - bytes that grow, for building one write
 *
 * All zero is empty. A failed allocation sticks: further appends do nothing,
 * and whoever uses the bytes looks at `failed` once.
 */
#ifndef REPL_TEXT_STRBUF_H
#define REPL_TEXT_STRBUF_H

#include <stdbool.h>
#include <stddef.h>

struct strbuf {
	char *s;
	size_t n;
	size_t cap;
	bool failed;
};

/* Append `n` bytes; a NUL follows them, uncounted. */
void strbuf_add(struct strbuf *b, const void *p, size_t n);

/* Append a string. */
void strbuf_puts(struct strbuf *b, const char *s);

/* Append a formatted string. */
void strbuf_printf(struct strbuf *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Release the memory; empty and usable again. */
void strbuf_free(struct strbuf *b);

#endif
