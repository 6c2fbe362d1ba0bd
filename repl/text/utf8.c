/* SPDX-License-Identifier: MIT */
/*
 * utf8.c - the one decoder of UTF-8
 *
 * Runs in:   the front end
 * Trusts:    nothing: any byte may come
 * Leaves:    characters that can be encoded again
 */
#include "utf8.h"

#include <string.h>

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
	/* Unicode, table 3-7: the second byte keeps out overlong forms,
	 * surrogates and what lies beyond U+10FFFF. */
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
	size_t count = 0;
	uint32_t c;

	for (; n; count++) {
		int len = utf8_get(s, n, &c);

		len = len > 0 ? len : 1;
		s += len;
		n -= (size_t)len;
	}
	return count;
}

static bool is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0);
}

bool utf8_is_text(const char *s, size_t n, const char *controls)
{
	while (n) {
		uint32_t c;
		int len = utf8_get(s, n, &c);

		if (len <= 0 ||
			(is_control(c) && (!*s || !strchr(controls, *s))))
			return false;
		s += len;
		n -= (size_t)len;
	}
	return true;
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

	for (size_t i = 0; i < sizeof(unseen) / sizeof(*unseen); i++)
		if (c >= unseen[i].first && c <= unseen[i].last)
			return true;
	return false;
}

/* Characters that cannot be seen make source read otherwise than it runs
 * (CVE-2021-42574). The joiner U+200D and the variation selectors stay: emoji
 * are made with them. */
bool utf8_is_visible(uint32_t c)
{
	return is_character(c) && (c == 0x200D || (c >= 0xFE00 && c < 0xFE10) ||
					  !utf8_is_unseen(c));
}

bool utf8_is_visible_text(const char *s, size_t n)
{
	while (n) {
		uint32_t c;
		int len = utf8_get(s, n, &c);

		if (len <= 0 || !utf8_is_visible(c))
			return false;
		s += len;
		n -= (size_t)len;
	}
	return true;
}
