/* SPDX-License-Identifier: MIT */
/*
 * text.c - text for people: foreign text made safe, numbers, tables
 *
 * Runs in:   the front end
 * Trusts:    no text: a guest chooses the names of files and variables, the
 *            messages of errors and the candidates of a completion
 * Leaves:    bytes that a terminal shows and does not obey
 */
#include "repl/text/text.h"

#include <inttypes.h>
#include <stdio.h>

/* Write one character, or one invalid byte, to `out` as we show it. Returns the
 * bytes of `s` taken. */
static size_t text_show(char out[static 16], const uint8_t *s, size_t n)
{
	uint32_t cp = 0;
	int len = utf8_get(s, n, &cp);

	if (len <= 0) {
		snprintf(out, 16, "\\x%02x", s[0]);
		return 1;
	}
	if (!utf8_is_unseen(cp) && !utf8_is_bar(cp)) {
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
	size_t used = 0, fits = 0; /* fits: "…" still fits at this offset */
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

/* Bytes for one text_safe(), which makes at most four of each. */
#define PART 512
#define TAB 8

/* Append text without tabs, made safe. Returns its columns. */
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

/* Write tenths of a unit, without the decimal if `whole`. */
static const char *show_tenths(char buf[static TEXT_HUMAN], uint64_t tenths,
	bool whole, const char *unit)
{
	if (whole)
		snprintf(buf, TEXT_HUMAN, "%" PRIu64 " %s", tenths / 10, unit);
	else
		snprintf(buf, TEXT_HUMAN, "%" PRIu64 ".%" PRIu64 " %s",
			tenths / 10, tenths % 10, unit);
	return buf;
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
	if (!(bytes & ((UINT64_C(1) << shift) - 1)))
		return show_tenths(
			buf, (bytes >> shift) * 10, true, units[unit]);
	/* Ten times the value, rounded. We count in the unit below, because ten
	 * times the bytes may exceed 64 bits. */
	tenths = ((bytes >> (shift - 10)) * 10 + 512) >> 10;
	if (tenths >= 10240 && unit < 6) {
		tenths = 10;
		unit++;
	}
	return show_tenths(buf, tenths, false, units[unit]);
}

const char *text_time(char buf[static TEXT_HUMAN], int64_t ms)
{
	static const struct unit {
		uint64_t ms;
		const char *name;
	} units[] = {{3600000, "h"}, {60000, "min"}, {1000, "s"}, {1, "ms"}};
	const struct unit *near = units, *last = units + 3;
	uint64_t v = ms < 0 ? 0 : (uint64_t)ms;

	while (near < last && v < near->ms)
		near++;
	for (const struct unit *u = near; u <= last; u++) {
		uint64_t whole = v / u->ms, rest = v % u->ms;

		if (u > near && whole >= 600)
			break;
		if (rest * 10 % u->ms == 0)
			return show_tenths(buf, whole * 10 + rest * 10 / u->ms,
				rest == 0, u->name);
	}
	return show_tenths(buf,
		v / near->ms * 10 +
			(v % near->ms * 10 + near->ms / 2) / near->ms,
		false, near->name);
}

const char *text_count(
	char *buf, size_t size, uint64_t n, const char *one, const char *many)
{
	snprintf(buf, size, "%" PRIu64 " %s%s", n, n != 1 && many ? many : one,
		n != 1 && !many ? "s" : "");
	return buf;
}

const char *text_ordinal(char buf[static TEXT_HUMAN], uint64_t n)
{
	static const char *const ends[] = {"th", "st", "nd", "rd"};
	bool teens = n / 10 % 10 == 1;

	snprintf(buf, TEXT_HUMAN, "%" PRIu64 "%s", n,
		teens || n % 10 > 3 ? "th" : ends[n % 10]);
	return buf;
}

const char *text_moment(
	char buf[static TEXT_HUMAN], time_t t, time_t now, bool brief)
{
	static const time_t week = 6 * 24 * 3600;
	struct tm then, today;
	char date[TEXT_HUMAN] = "today", clock[16];

	if (!localtime_r(&t, &then) || !localtime_r(&now, &today)) {
		snprintf(buf, TEXT_HUMAN, "%lld", (long long)t);
		return buf;
	}
	if (then.tm_year == today.tm_year && then.tm_yday == today.tm_yday)
		;
	else if (t > now - week && t < now + week)
		strftime(date, sizeof(date), brief ? "%a" : "%A", &then);
	else if (then.tm_year == today.tm_year)
		strftime(
			date, sizeof(date), brief ? "%-d %b" : "%-d %B", &then);
	else
		strftime(date, sizeof(date), brief ? "%-d %b %Y" : "%-d %B %Y",
			&then);
	strftime(clock, sizeof(clock), "%H:%M", &then);
	snprintf(buf, TEXT_HUMAN, "%.30s %s", date, clock);
	return buf;
}

const char *text_minute(char buf[static TEXT_HUMAN], time_t t)
{
	struct tm tm;

	buf[0] = '\0';
	if (localtime_r(&t, &tm))
		strftime(buf, TEXT_HUMAN,
			tm.tm_sec ? "%Y-%m-%d %H:%M:%S" : "%Y-%m-%d %H:%M",
			&tm);
	return buf;
}

const char *text_since(char buf[static TEXT_HUMAN], time_t t)
{
	time_t now = time(NULL);
	struct tm tm;

	buf[0] = '\0';
	if (localtime_r(&t, &tm))
		strftime(buf, TEXT_HUMAN,
			now - t < 20 * 3600 ? "%H:%M" : "%Y-%m-%d", &tm);
	return buf;
}

/* ---- tables ---- */

#define GAP 2
#define INDENT 2
/* The last column holds prose: it stays beside the others if this many columns
 * are left. */
#define TEXT_MIN 24
/* A cell longer than this, and than half of the terminal, does not widen its
 * column: the next cell goes to the next line. */
#define CELL_MIN 16

struct text_place {
	int at, width;
	bool below; /* the column begins a new line */
};

static int columns_of(const char *s)
{
	return layout_columns(s, strlen(s));
}

/* Cells of a row, and its note. */
static size_t row_stride(const struct text_table *t)
{
	return (size_t)t->columns + 1;
}

void text_table_add(struct text_table *t, const char *const *cells)
{
	for (int i = 0; i <= t->columns && !t->failed; i++) {
		bool empty = i == t->columns || !cells[i];
		char *copy = strdup(empty ? "" : cells[i]);

		t->failed = !copy ||
			    array_grow(&t->cells, t->n, sizeof(*t->cells)) < 0;
		if (t->failed)
			free(copy);
		else
			t->cells[t->n++] = copy;
	}
}

void text_table_note(struct text_table *t, const char *text)
{
	if (t->failed || !t->n || !text)
		return;
	free(t->cells[t->n - 1]);
	t->cells[t->n - 1] = strdup(text);
	t->failed = !t->cells[t->n - 1];
}

static int widest_cell(const struct text_table *t, int column, int cap)
{
	int width = 0;

	for (size_t i = (size_t)column; i < t->n; i += row_stride(t)) {
		int w = columns_of(t->cells[i]);

		if (w <= cap && w > width)
			width = w;
	}
	return width;
}

static void place_columns(const struct text_table *t, struct text_place *p)
{
	int cap = t->width ? t->width / 2 : 2 * TEXT_MIN, x = 0;

	cap = cap > CELL_MIN ? cap : CELL_MIN;
	for (int i = 0; i < t->columns; i++) {
		bool last = i + 1 == t->columns;
		int width = widest_cell(t, i, last ? 1 << 20 : cap);
		int need = last && width > TEXT_MIN ? TEXT_MIN : width;
		bool below = i > 0 && t->width && x + need > t->width;

		x = below ? t->below : x;
		p[i] = (struct text_place){
			.at = x, .width = width, .below = below};
		x += width + GAP;
	}
}

static void add_blanks(struct strbuf *b, int n)
{
	strbuf_printf(b, "%*s", n > 0 ? n : 0, "");
}

/* Bytes of a word, and of a dot after it: no line begins with a dot. */
static size_t word_length(const char *s)
{
	static const char dot[] = " ·";
	size_t n = strcspn(s, " ");

	if (!strncmp(s + n, dot, sizeof(dot) - 1) &&
		strchr(" ", s[n + sizeof(dot) - 1]))
		n += sizeof(dot) - 1;
	return n;
}

void text_wrap(struct strbuf *b, const char *text, int at, int width)
{
	int x = at;

	for (const char *p = text; *p;) {
		int gap = (int)strspn(p, " ");
		size_t n = word_length(p + gap);
		int w = layout_columns(p + gap, n);

		if (x > at && width && x + gap + w > width) {
			strbuf_puts(b, "\n");
			add_blanks(b, at);
			x = at;
			gap = 0;
		}
		p += strspn(p, " ");
		add_blanks(b, gap);
		strbuf_add(b, p, n);
		x += gap + w;
		p += n;
	}
	strbuf_puts(b, "\n");
}

/* Columns of the longest word: no line breaks it. */
static int longest_word(const char *s)
{
	int longest = 0;

	while (*s) {
		size_t n = strcspn(s, " ");
		int w = layout_columns(s, n);

		longest = w > longest ? w : longest;
		s += n + (s[n] == ' ');
	}
	return longest;
}

void text_cut(struct strbuf *b, const char *s, int room)
{
	size_t all = strlen(s), n = layout_fit(s, all, room);

	if (n < all) {
		n = layout_fit(s, all, room - 1);
		while (n && s[n - 1] == ' ')
			n--;
	}
	strbuf_add(b, s, n);
	strbuf_puts(b, n < all ? "…" : "");
}

/* Append a last cell at column `at`; the cursor is at column `x`. */
static void write_last(const struct text_table *t, struct strbuf *b,
	const char *cell, int x, int at)
{
	if (t->cut && t->width) {
		add_blanks(b, at - x);
		text_cut(b, cell, t->width - at);
		strbuf_puts(b, "\n");
		return;
	}
	if (t->width && at > t->below && longest_word(cell) > t->width - at) {
		strbuf_puts(b, x ? "\n" : "");
		x = 0;
		at = t->below + INDENT;
	}
	add_blanks(b, at - x);
	text_wrap(b, cell, at, t->width);
}

static void write_row(const struct text_table *t, const struct text_place *p,
	char *const *cells, struct strbuf *b)
{
	bool below = false;
	int x = 0;

	for (int i = 0; i < t->columns; i++) {
		int width = columns_of(cells[i]), at = p[i].at;

		below |= p[i].below;
		if (!cells[i][0])
			continue;
		if (x && i + 1 < t->columns && t->width &&
			at + width > t->width) {
			at = t->below;
			below = true;
		}
		if (x && (below || x > at - GAP)) {
			strbuf_puts(b, "\n");
			x = 0;
		}
		below = false;
		if (t->right >> i & 1 && width < p[i].width)
			at += p[i].width - width;
		if (i + 1 == t->columns) {
			write_last(t, b, cells[i], x, at);
			return;
		}
		add_blanks(b, at - x);
		strbuf_puts(b, cells[i]);
		x = at + width;
	}
	strbuf_puts(b, "\n");
}

static void write_note(struct strbuf *b, const char *note)
{
	while (*note) {
		size_t n = strcspn(note, "\n");

		add_blanks(b, 2 * INDENT);
		strbuf_add(b, note, n);
		strbuf_puts(b, "\n");
		note += n + (note[n] == '\n');
	}
}

void text_table_write(struct text_table *t, struct strbuf *b)
{
	struct text_place places[TEXT_COLUMNS_MAX];

	t->below = t->below ? t->below : INDENT;
	if (!t->failed)
		place_columns(t, places);
	for (size_t i = 0; !t->failed && i < t->n; i += row_stride(t)) {
		write_row(t, places, t->cells + i, b);
		write_note(b, t->cells[i + (size_t)t->columns]);
	}
	b->failed |= t->failed;
	for (size_t i = 0; i < t->n; i++)
		free(t->cells[i]);
	free(t->cells);
	t->cells = NULL;
	t->n = 0;
}
