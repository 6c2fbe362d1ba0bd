/* SPDX-License-Identifier: MIT */
/*
 * text.c - text for people: foreign text made harmless, sizes, times, counts
 *
 * Runs in:   the front end
 * Trusts:    no text: a guest chooses the names of files and variables, the
 *            messages of errors and the candidates of a completion
 * Leaves:    bytes that a terminal shows and does not obey
 */
#include "text.h"

#include "layout.h"
#include "strbuf.h"
#include "utf8.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Write to `out` how one character, or one invalid byte, is shown. Returns the
 * bytes of `s` taken. */
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
	size_t used = 0, fits = 0; /* fits: up to here "…" still fits */
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

/* text_safe() makes at most four bytes of one. */
#define PART 512
#define TAB 8

/* Append the text between two tabs. Returns its columns. */
static int add_safe(struct strbuf *b, const char *s, size_t n)
{
	char safe[4 * PART + 8];
	int columns = 0;

	while (n) {
		size_t part = n < PART ? n : PART, len;

		if (part < n)
			part = utf8_start(s, part);
		len = text_safe(safe, sizeof(safe), s, part);
		strbuf_add(b, safe, len);
		columns += layout_columns(safe, len);
		s += part;
		n -= part;
	}
	return columns;
}

static void add_line(struct strbuf *b, const char *s, size_t n)
{
	int column = 0;

	for (;;) {
		const char *tab = memchr(s, '\t', n);
		size_t len = tab ? (size_t)(tab - s) : n;

		column = (column + add_safe(b, s, len)) % TAB;
		if (!tab)
			break;
		strbuf_printf(b, "%*s", TAB - column, "");
		column = 0;
		s += len + 1;
		n -= len + 1;
	}
	strbuf_puts(b, "\n");
}

void text_lines(struct strbuf *b, const char *text, size_t n)
{
	while (n) {
		const char *nl = memchr(text, '\n', n);
		size_t line = nl ? (size_t)(nl - text) : n;

		add_line(b, text, line - (line && text[line - 1] == '\r'));
		text += nl ? line + 1 : line;
		n -= nl ? line + 1 : line;
	}
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
	/* Ten times the value, rounded. The unit below keeps the product of
	 * the largest number in 64 bits. */
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
