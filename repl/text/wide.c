/* SPDX-License-Identifier: MIT */
/*
 * wide.c - wide strings, and UTF-8 in and out
 *
 * Runs in:   the front end
 * Holds:     nothing
 * Trusts:    nothing: any byte may come
 * Leaves:    characters that can be encoded again
 */
#include "wide.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

static int wide_reserve(struct wide *t, size_t n)
{
	size_t cap = t->cap ? t->cap : 64;
	wchar_t *s;

	if (n < t->cap)
		return 0;
	while (cap <= n)
		cap *= 2;
	s = reallocarray(t->s, cap, sizeof(*s));
	if (!s)
		return -1;
	t->s = s;
	t->cap = cap;
	return 0;
}

int wide_add(struct wide *t, const wchar_t *s, size_t n)
{
	if (wide_reserve(t, t->n + n) < 0)
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
	if (wide_reserve(t, t->n + n) < 0)
		return -1;
	for (size_t i = 0; i < n;) {
		wchar_t c;
		size_t k = utf8_get(s + i, n - i, &c);

		t->s[t->n++] = k ? c : WIDE_BAD_CHAR;
		i += k ? k : 1;
	}
	t->s[t->n] = 0;
	return 0;
}

void wide_free(struct wide *t)
{
	free(t->s);
	*t = (struct wide){0};
}

size_t utf8_put(wchar_t c, char out[4])
{
	uint32_t u = (uint32_t)c;
	size_t more;

	if (u > 0x10FFFF || (u >= 0xD800 && u < 0xE000))
		u = (uint32_t)WIDE_BAD_CHAR;
	if (u < 0x80) {
		out[0] = (char)u;
		return 1;
	}
	more = u < 0x800 ? 1 : u < 0x10000 ? 2 : 3;
	out[0] = (char)(0xFF00u >> (more + 1) | u >> 6 * more);
	for (size_t i = 1; i <= more; i++)
		out[i] = (char)(0x80 | (u >> 6 * (more - i) & 0x3F));
	return more + 1;
}

size_t utf8_get(const char *s, size_t n, wchar_t *c)
{
	uint32_t cp;
	int len = text_utf8((const uint8_t *)s, n, &cp);

	if (len <= 0)
		return 0;
	*c = (wchar_t)cp;
	return (size_t)len;
}

size_t utf8_size(const wchar_t *s, size_t n)
{
	size_t size = 0;
	char out[4];

	for (size_t i = 0; i < n; i++)
		size += utf8_put(s[i], out);
	return size;
}

size_t utf8_count(const char *s, size_t n)
{
	size_t count = 0;
	wchar_t c;

	for (size_t i = 0; i < n; count++) {
		size_t k = utf8_get(s + i, n - i, &c);

		i += k ? k : 1;
	}
	return count;
}

char *utf8_from(const wchar_t *s, size_t n, size_t *len)
{
	size_t at = 0;
	char *out = malloc(utf8_size(s, n) + 1), one[4];

	if (!out)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		size_t k = utf8_put(s[i], one);

		memcpy(out + at, one, k);
		at += k;
	}
	out[at] = 0;
	*len = at;
	return out;
}

/* What cannot be seen makes source read otherwise than it runs
 * (CVE-2021-42574). The joiner U+200D and the variation selectors stay: emoji
 * are made with them. */
bool wide_is_visible(wchar_t c)
{
	uint32_t u = (uint32_t)c;

	if (u > 0x10FFFF || (u >= 0xD800 && u < 0xE000))
		return false;
	return u == 0x200D || (u >= 0xFE00 && u < 0xFE10) || !text_is_unseen(u);
}

bool utf8_is_visible(const char *s, size_t n)
{
	for (size_t i = 0; i < n;) {
		wchar_t c;
		size_t k = utf8_get(s + i, n - i, &c);

		if (!k || !wide_is_visible(c))
			return false;
		i += k;
	}
	return true;
}
