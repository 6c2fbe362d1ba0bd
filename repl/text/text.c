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

#include "utf8.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* One character, or one byte that is none, as it will be shown. Returns how
 * many bytes of `s` it took. */
static size_t text_show(char out[static 16], const uint8_t *s, size_t n)
{
	uint32_t cp = 0;
	int len = utf8_get(s, n, &cp);

	if (len <= 0) {
		snprintf(out, 16, "\\x%02x", s[0]);
		return 1;
	}
	if (!utf8_is_unseen(cp)) {
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
