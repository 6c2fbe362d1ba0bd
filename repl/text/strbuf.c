/* SPDX-License-Identifier: MIT */
/*
 * strbuf.c - a growing byte string
 *
 * Runs in:   the front end
 * Trusts:    its callers for the bounds of what they append
 * Leaves:    one allocation, NUL-terminated
 */
#include "repl/text/text.h"

#include <stdarg.h>
#include <stdio.h>

/* Room for `more` bytes and a NUL. */
static int reserve_bytes(struct strbuf *b, size_t more)
{
	b->failed |= array_reserve(&b->s, &b->cap, b->n + more + 1, 1) < 0;
	return b->failed ? -1 : 0;
}

void strbuf_add(struct strbuf *b, const void *p, size_t n)
{
	if (reserve_bytes(b, n) < 0)
		return;
	if (n)
		memcpy(b->s + b->n, p, n);
	b->n += n;
	b->s[b->n] = 0;
}

void strbuf_puts(struct strbuf *b, const char *s)
{
	strbuf_add(b, s, strlen(s));
}

void strbuf_printf(struct strbuf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0 || reserve_bytes(b, (size_t)n) < 0)
		return;
	va_start(ap, fmt);
	vsnprintf(b->s + b->n, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->n += (size_t)n;
}

void strbuf_cut(struct strbuf *b, size_t n)
{
	b->n -= n;
	if (n)
		memmove(b->s, b->s + n, b->n);
}

void strbuf_free(struct strbuf *b)
{
	free(b->s);
	*b = (struct strbuf){0};
}
