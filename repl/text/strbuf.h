/* SPDX-License-Identifier: MIT */
/*
 * strbuf.h - bytes that grow, for building one write
 *
 * All zero is empty. After a failed allocation appends do nothing, so that the
 * caller checks `failed` once, before it uses the bytes.
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

/* Append `n` bytes. A NUL that `n` does not count always follows. */
void strbuf_add(struct strbuf *b, const void *p, size_t n);

/* Append a string. */
void strbuf_puts(struct strbuf *b, const char *s);

/* Append a formatted string. */
void strbuf_printf(struct strbuf *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Release the memory; `b` is empty and may be used again. */
void strbuf_free(struct strbuf *b);

#endif
