/* SPDX-License-Identifier: MIT */
/*
 * utf8.c - the one decoder of UTF-8, and wide strings
 *
 * Runs in:   the front end
 * Trusts:    nothing: any byte may come
 * Leaves:    characters that can be encoded again
 */
#include "repl/text/text.h"

int utf8_get(const void *bytes, size_t n, uint32_t *c)
{
	const uint8_t *s = bytes;
	uint8_t lead = s[0], lo = 0x80, hi = 0xbf;
	int need = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
	uint32_t u = lead & (0xff >> (need + 1));

	if (lead < 0x80) {
		*c = lead;
		return 1;
	}
	if (lead < 0xc2 || lead > 0xf4)
		return -1;
	/* Unicode, table 3-7: the range of the second byte excludes overlong
	 * forms, surrogates and characters beyond U+10FFFF. */
	if (lead == 0xe0)
		lo = 0xa0;
	else if (lead == 0xed)
		hi = 0x9f;
	else if (lead == 0xf0)
		lo = 0x90;
	else if (lead == 0xf4)
		hi = 0x8f;
	for (int i = 1; i < need; i++) {
		if ((size_t)i >= n)
			return 0;
		if (s[i] < lo || s[i] > hi)
			return -1;
		u = u << 6 | (s[i] & 0x3f);
		lo = 0x80;
		hi = 0xbf;
	}
	*c = u;
	return need;
}

bool utf8_next(const char **s, const char *end, uint32_t *c)
{
	int len = utf8_get(*s, (size_t)(end - *s), c);

	if (len <= 0)
		*c = UTF8_BAD;
	*s += len > 0 ? len : 1;
	return len > 0;
}

static bool is_character(uint32_t c)
{
	return c <= 0x10FFFF && (c < 0xD800 || c >= 0xE000);
}

size_t utf8_put(uint32_t c, char out[static 4])
{
	size_t more;

	if (!is_character(c))
		c = UTF8_BAD;
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
	out[0] = (char)(0xFF00u >> (more + 1) | c >> 6 * more);
	for (size_t i = 1; i <= more; i++)
		out[i] = (char)(0x80 | (c >> 6 * (more - i) & 0x3F));
	return more + 1;
}

size_t utf8_start(const char *s, size_t at)
{
	size_t back = 0;

	while (back < 3 && back < at && utf8_continues(s[at - back]))
		back++;
	return at - back;
}

size_t utf8_count(const char *s, size_t n)
{
	const char *end = s + n;
	size_t count = 0;
	uint32_t c;

	for (; s < end; count++)
		utf8_next(&s, end, &c);
	return count;
}

static bool is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0);
}

bool utf8_is_text(const char *s, size_t n, const char *controls)
{
	const char *end = s + n;
	uint32_t c;

	while (s < end)
		if (!utf8_next(&s, end, &c) ||
			(is_control(c) && (!c || !strchr(controls, (int)c))))
			return false;
	return true;
}

bool utf8_is_bar(uint32_t c)
{
	return c == 0xa6 || c == 0x205e || c == 0x2999 || c == 0x2e3d ||
	       c == 0xffe4 || (c >= 0x2506 && c <= 0x2507) ||
	       (c >= 0x250a && c <= 0x250b) || (c >= 0x254e && c <= 0x254f);
}

bool utf8_is_unseen(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} unseen[] = {
		{0x0000, 0x001f}, {0x007f, 0x009f},
		{0x00ad, 0x00ad}, /* soft hyphen */
		{0x034f, 0x034f}, /* combining grapheme joiner */
		{0x061c, 0x061c}, /* Arabic letter mark */
		{0x115f, 0x1160}, /* Hangul fillers */
		{0x17b4, 0x17b5}, /* Khmer inherent vowels */
		{0x180b, 0x180f}, /* Mongolian selectors and separator */
		{0x200b, 0x200f}, /* zero width, direction marks */
		{0x2028, 0x202e}, /* separators, embeddings, overrides */
		{0x2060, 0x206f}, /* joiner, isolates, deprecated format */
		{0x3164, 0x3164}, /* Hangul filler */
		{0xfe00, 0xfe0f}, /* variation selectors */
		{0xfeff, 0xfeff}, /* byte order mark */
		{0xffa0, 0xffa0}, {0xfff0, 0xfffb}, /* annotation */
		{0xfffe, 0xffff}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
		{0xe0000, 0xe0fff}, /* tags, more variation selectors */
	};

	for (size_t i = 0; i < COUNT(unseen); i++)
		if (c >= unseen[i].first && c <= unseen[i].last)
			return true;
	return false;
}

/* Unseen characters let source read otherwise than it runs (CVE-2021-42574).
 * The joiner U+200D and the variation selectors are allowed: emoji need
 * them. */
bool utf8_is_visible(uint32_t c)
{
	return is_character(c) && (c == 0x200D || (c >= 0xFE00 && c < 0xFE10) ||
					  !utf8_is_unseen(c));
}

bool utf8_is_visible_text(const char *s, size_t n)
{
	const char *end = s + n;
	uint32_t c;

	while (s < end)
		if (!utf8_next(&s, end, &c) || !utf8_is_visible(c))
			return false;
	return true;
}

/* ---- wide strings ---- */

int utf8_wide_add(struct utf8_wide *t, const wchar_t *s, size_t n)
{
	if (array_reserve(&t->s, &t->cap, t->n + n + 1, sizeof(*t->s)) < 0)
		return -1;
	if (n)
		wmemcpy(t->s + t->n, s, n);
	t->n += n;
	t->s[t->n] = 0;
	return 0;
}

int utf8_wide_set(struct utf8_wide *t, const wchar_t *s, size_t n)
{
	t->n = 0;
	return utf8_wide_add(t, s, n);
}

int utf8_wide_decode(struct utf8_wide *t, const char *s, size_t n)
{
	const char *end = s + n;
	uint32_t c;

	if (array_reserve(&t->s, &t->cap, t->n + n + 1, sizeof(*t->s)) < 0)
		return -1;
	while (s < end) {
		utf8_next(&s, end, &c);
		t->s[t->n++] = (wchar_t)c;
	}
	t->s[t->n] = 0;
	return 0;
}

void utf8_wide_free(struct utf8_wide *t)
{
	free(t->s);
	*t = (struct utf8_wide){0};
}

size_t utf8_size(const wchar_t *s, size_t n)
{
	size_t size = 0;
	char out[4];

	for (size_t i = 0; i < n; i++)
		size += utf8_put((uint32_t)s[i], out);
	return size;
}

char *utf8_from_wide(const wchar_t *s, size_t n, size_t *len)
{
	char *out = malloc(utf8_size(s, n) + 4);

	if (!out)
		return NULL;
	*len = 0;
	for (size_t i = 0; i < n; i++)
		*len += utf8_put((uint32_t)s[i], out + *len);
	out[*len] = 0;
	return out;
}
