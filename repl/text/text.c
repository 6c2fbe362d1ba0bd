/* SPDX-License-Identifier: MIT */
/*
 * text.c - text for people: foreign text made harmless, sizes, times, counts
 *
 * Runs in:   the front end
 * Trusts:    nothing in the text it is given: file names, variable names,
 *            error messages and candidates are whatever a guest made them
 * Leaves:    bytes that a terminal shows and does not obey, on one line
 */
#include "text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

int text_utf8(const uint8_t *s, size_t n, uint32_t *cp)
{
	uint8_t lead = s[0], lo = 0x80, hi = 0xbf;
	int need = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
	uint32_t c = lead & (0xff >> (need + 1));

	if (lead < 0x80) {
		*cp = lead;
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
		c = c << 6 | (s[i] & 0x3f);
		lo = 0x80;
		hi = 0xbf;
	}
	*cp = c;
	return need;
}

int text_is_unseen(uint32_t cp)
{
	static const struct {
		uint32_t first, last;
	} unseen[] = {
		{0x0000, 0x001f}, {0x007f, 0x009f},
		{0x00ad, 0x00ad}, /* soft hyphen */
		{0x034f, 0x034f}, /* combining grapheme joiner */
		{0x061c, 0x061c}, /* Arabic letter mark */
		{0x115f, 0x1160}, /* Hangul fillers */
		{0x17b4, 0x17b5},
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
		if (cp >= unseen[i].first && cp <= unseen[i].last)
			return 1;
	return 0;
}

/* One character, or one byte that is none, as it will be shown. Returns how
 * many bytes of `s` it took. */
static size_t text_show(char out[static 16], const uint8_t *s, size_t n)
{
	uint32_t cp = 0;
	int len = text_utf8(s, n, &cp);

	if (len <= 0) {
		snprintf(out, 16, "\\x%02x", s[0]);
		return 1;
	}
	if (!text_is_unseen(cp)) {
		memcpy(out, s, (size_t)len);
		out[len] = '\0';
	} else if (cp == '\n' || cp == '\t' || cp == '\r') {
		snprintf(out, 16, "\\%c",
			cp == '\n'   ? 'n'
			: cp == '\t' ? 't'
				     : 'r');
	} else if (cp < 0x100) {
		snprintf(out, 16, "\\x%02" PRIx32, cp);
	} else if (cp < 0x10000) {
		snprintf(out, 16, "\\u%04" PRIx32, cp);
	} else {
		snprintf(out, 16, "\\U%08" PRIx32, cp);
	}
	return (size_t)len;
}

size_t text_safe(char *buf, size_t size, const char *s, size_t n)
{
	static const char more[] = "…";
	const uint8_t *p = (const uint8_t *)s, *end = p + n;
	size_t used = 0, fits = 0; /* fits: where "…" can still go */
	char one[16];

	while (p < end) {
		size_t len;

		p += text_show(one, p, (size_t)(end - p));
		len = strlen(one);
		if (used + len >= size) {
			memcpy(buf + fits, more, sizeof(more));
			return fits + sizeof(more) - 1;
		}
		memcpy(buf + used, one, len);
		used += len;
		if (used + sizeof(more) <= size)
			fits = used;
	}
	buf[used] = '\0';
	return used;
}

const char *text_size(char buf[static TEXT_HUMAN], uint64_t bytes)
{
	static const char *const units[] = {
		"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	unsigned unit = 0, shift;
	uint64_t tenths;

	while (unit < 6 && bytes >> (10 * (unit + 1)))
		unit++;
	shift = 10 * unit;
	if (!(bytes & ((UINT64_C(1) << shift) - 1))) {
		snprintf(buf, TEXT_HUMAN, "%" PRIu64 " %s", bytes >> shift,
			units[unit]);
		return buf;
	}
	/* Ten times the value, rounded; through the unit below, so that ten
	 * times the largest number still fits. */
	tenths = ((bytes >> (shift - 10)) * 10 + 512) >> 10;
	if (tenths >= 10240 && unit < 6) {
		tenths = 10;
		unit++;
	}
	snprintf(buf, TEXT_HUMAN, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10,
		tenths % 10, units[unit]);
	return buf;
}

const char *text_time(char buf[static TEXT_HUMAN], int64_t ms)
{
	static const struct {
		int64_t ms;
		const char *name;
	} units[] = {{3600000, "h"}, {60000, "min"}, {1000, "s"}, {1, "ms"}};
	enum { UNITS = sizeof(units) / sizeof(*units) };
	int64_t v = ms < 0 ? 0 : ms, tenths;
	int near = 0;

	while (near < UNITS - 1 && v < units[near].ms)
		near++;
	for (int i = near; i < UNITS; i++) {
		int64_t whole = v / units[i].ms, rest = v % units[i].ms;

		if (i > near && whole >= 600)
			break;
		if (rest == 0) {
			snprintf(buf, TEXT_HUMAN, "%" PRId64 " %s", whole,
				units[i].name);
			return buf;
		}
		if (rest * 10 % units[i].ms == 0) {
			snprintf(buf, TEXT_HUMAN, "%" PRId64 ".%" PRId64 " %s",
				whole, rest * 10 / units[i].ms, units[i].name);
			return buf;
		}
	}
	tenths =
		v / units[near].ms * 10 +
		(v % units[near].ms * 10 + units[near].ms / 2) / units[near].ms;
	snprintf(buf, TEXT_HUMAN, "%" PRId64 ".%" PRId64 " %s", tenths / 10,
		tenths % 10, units[near].name);
	return buf;
}

const char *text_count(
	char *buf, size_t size, uint64_t n, const char *one, const char *many)
{
	bool s = n != 1 && !many;

	snprintf(buf, size, "%" PRIu64 " %s%s", n, n != 1 && many ? many : one,
		s ? "s" : "");
	return buf;
}
