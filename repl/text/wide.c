/* SPDX-License-Identifier: MIT */
/*
 * wide.c - wide strings, from UTF-8 and back
 *
 * Runs in:   the front end
 * Trusts:    nothing: any byte may come
 * Leaves:    characters that can be encoded again
 */
#include "wide.h"

#include <stdlib.h>
#include <string.h>

#include "jail/base/array.h"
#include "utf8.h"

/* Room for `n` characters and a NUL. */
static int reserve(struct wide *t, size_t n)
{
	return array_reserve(&t->s, &t->cap, n + 1, sizeof(*t->s));
}

int wide_add(struct wide *t, const wchar_t *s, size_t n)
{
	if (reserve(t, t->n + n) < 0)
		return -1;
	if (n)
		wmemcpy(t->s + t->n, s, n);
	t->n += n;
	t->s[t->n] = 0;
	return 0;
}

int wide_set(struct wide *t, const wchar_t *s, size_t n)
{
	t->n = 0;
	return wide_add(t, s, n);
}

int wide_add_utf8(struct wide *t, const char *s, size_t n)
{
	if (reserve(t, t->n + n) < 0)
		return -1;
	while (n) {
		uint32_t c = UTF8_BAD;
		int len = utf8_get(s, n, &c);

		t->s[t->n++] = (wchar_t)(len > 0 ? c : UTF8_BAD);
		len = len > 0 ? len : 1;
		s += len;
		n -= (size_t)len;
	}
	t->s[t->n] = 0;
	return 0;
}

void wide_free(struct wide *t)
{
	free(t->s);
	*t = (struct wide){0};
}

size_t wide_utf8_size(const wchar_t *s, size_t n)
{
	size_t size = 0;
	char out[4];

	for (size_t i = 0; i < n; i++)
		size += utf8_put((uint32_t)s[i], out);
	return size;
}

char *wide_to_utf8(const wchar_t *s, size_t n, size_t *len)
{
	char *out = malloc(wide_utf8_size(s, n) + 1), one[4];
	size_t at = 0;

	if (!out)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		size_t k = utf8_put((uint32_t)s[i], one);

		memcpy(out + at, one, k);
		at += k;
	}
	out[at] = 0;
	*len = at;
	return out;
}
