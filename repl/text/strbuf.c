/* SPDX-License-Identifier: MIT */
/*
 * strbuf.c - bytes that grow
 *
 * Runs in:   the front end
 * Trusts:    its callers for the bounds of what they append
 * Leaves:    one allocation, NUL-terminated
 */
#include "strbuf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int strbuf_reserve(struct strbuf *b, size_t more)
{
	size_t cap = b->cap ? b->cap : 256;
	char *s;

	if (b->failed)
		return -1;
	if (b->n + more < b->cap)
		return 0;
	while (cap <= b->n + more)
		cap *= 2;
	s = realloc(b->s, cap);
	if (!s) {
		b->failed = true;
		return -1;
	}
	b->s = s;
	b->cap = cap;
	return 0;
}

void strbuf_add(struct strbuf *b, const void *p, size_t n)
{
	if (strbuf_reserve(b, n) < 0)
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
	if (n < 0 || strbuf_reserve(b, (size_t)n) < 0)
		return;
	va_start(ap, fmt);
	vsnprintf(b->s + b->n, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->n += (size_t)n;
}

void strbuf_free(struct strbuf *b)
{
	free(b->s);
	*b = (struct strbuf){0};
}
