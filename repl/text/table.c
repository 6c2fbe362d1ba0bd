/* SPDX-License-Identifier: MIT */
/*
 * table.c - rows of cells, laid out for a terminal of any width
 *
 * Runs in:   the front end
 * Holds:     copies of the cells until they are written
 * Trusts:    its caller to have made the cells safe for a terminal
 */
#include "table.h"

#include "jail/base/array.h"

#include "layout.h"
#include "strbuf.h"

#include <stdlib.h>
#include <string.h>

#define GAP 2
#define INDENT 2
/* A last cell is text: it stays beside the others when it has this many
 * columns. */
#define TEXT_MIN 24
/* A cell longer than this, and than half of the terminal, does not widen its
 * column: the next cell goes to the next line. */
#define CELL_MIN 16

struct place {
	int at, width;
	bool below; /* begins a line */
};

static int columns_of(const char *s)
{
	return layout_columns(s, strlen(s));
}

/* Cells of a row and its note. */
static size_t stride(const struct table *t)
{
	return (size_t)t->columns + 1;
}

void table_add(struct table *t, const char *const *cells)
{
	for (int i = 0; i <= t->columns && !t->failed; i++) {
		bool is_note = i == t->columns;
		char *copy = is_note ? NULL : strdup(cells[i] ? cells[i] : "");

		if (array_grow(&t->cells, t->n, sizeof(*t->cells)) < 0) {
			free(copy);
			t->failed = true;
		} else {
			t->cells[t->n++] = copy;
			t->failed = !is_note && !copy;
		}
	}
}

void table_note(struct table *t, const char *text)
{
	if (t->failed || !t->n || !text || !*text)
		return;
	t->cells[t->n - 1] = strdup(text);
	t->failed |= !t->cells[t->n - 1];
}

static int widest(const struct table *t, int column, int cap)
{
	int width = 0;

	for (size_t i = (size_t)column; i < t->n; i += stride(t)) {
		int w = columns_of(t->cells[i]);

		if (w <= cap && w > width)
			width = w;
	}
	return width;
}

static int column_below(const struct table *t)
{
	return t->below ? t->below : INDENT;
}

static void place_columns(const struct table *t, struct place *p)
{
	int cap = t->width ? t->width / 2 : 2 * TEXT_MIN, x = 0;

	cap = cap > CELL_MIN ? cap : CELL_MIN;
	for (int i = 0; i < t->columns; i++) {
		bool last = i + 1 == t->columns;
		int width = widest(t, i, last ? 1 << 20 : cap);
		int need = last && width > TEXT_MIN ? TEXT_MIN : width;
		bool below = i > 0 && t->width && x + need > t->width;

		x = below ? column_below(t) : x;
		p[i] = (struct place){.at = x, .width = width, .below = below};
		x += width + GAP;
	}
}

static void blanks(struct strbuf *b, int n)
{
	strbuf_printf(b, "%*s", n > 0 ? n : 0, "");
}

/* Bytes of a word and of the dot after it: no line begins with a dot. */
static size_t word_length(const char *s)
{
	static const char dot[] = " ·";
	size_t n = strcspn(s, " ");

	if (!strncmp(s + n, dot, sizeof(dot) - 1) &&
		strchr(" ", s[n + sizeof(dot) - 1]))
		n += sizeof(dot) - 1;
	return n;
}

void table_wrap(struct strbuf *b, const char *text, int at, int width)
{
	int x = at;

	for (const char *p = text; *p;) {
		int gap = (int)strspn(p, " ");
		size_t n = word_length(p + gap);
		int w = layout_columns(p + gap, n);

		if (x > at && width && x + gap + w > width) {
			strbuf_puts(b, "\n");
			blanks(b, at);
			x = at;
			gap = 0;
		}
		p += strspn(p, " ");
		blanks(b, gap);
		strbuf_add(b, p, n);
		x += gap + w;
		p += n;
	}
	strbuf_puts(b, "\n");
}

/* Columns of the longest word, which no line may break. */
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

/* Write the start of `s` that fits into `room` columns, with dots if cut. */
static void put_cut(struct strbuf *b, const char *s, int room)
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

/* The cursor is at column `x`; the cell belongs at column `at`. */
static void write_last(const struct table *t, struct strbuf *b,
	const char *cell, int x, int at)
{
	if (t->cut && t->width) {
		blanks(b, at - x);
		put_cut(b, cell, t->width - at);
		strbuf_puts(b, "\n");
		return;
	}
	if (t->width && at > column_below(t) &&
		longest_word(cell) > t->width - at) {
		strbuf_puts(b, x ? "\n" : "");
		x = 0;
		at = column_below(t) + INDENT;
	}
	blanks(b, at - x);
	table_wrap(b, cell, at, t->width);
}

static void write_row(const struct table *t, const struct place *p,
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
			at = column_below(t);
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
		blanks(b, at - x);
		strbuf_puts(b, cells[i]);
		x = at + width;
	}
	strbuf_puts(b, "\n");
}

static void write_note(struct strbuf *b, const char *note)
{
	while (note && *note) {
		size_t n = strcspn(note, "\n");

		blanks(b, 2 * INDENT);
		strbuf_add(b, note, n);
		strbuf_puts(b, "\n");
		note += n + (note[n] == '\n');
	}
}

void table_write(struct table *t, struct strbuf *b)
{
	struct place places[TABLE_COLUMNS_MAX];

	if (!t->failed)
		place_columns(t, places);
	for (size_t i = 0; !t->failed && i < t->n; i += stride(t)) {
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
