/* SPDX-License-Identifier: MIT */
/*
 * table.c - rows of cells, laid out for a terminal of any width
 *
 * Runs in:   the front end
 * Holds:     copies of the cells until they are written
 * Trusts:    its caller about what is in them
 * Leaves:    nothing
 */
#include "table.h"

#include "layout.h"
#include "strbuf.h"
#include "utf8.h"
#include "wide.h"

#include <stdlib.h>
#include <string.h>

#define GAP 2
#define INDENT 2
/* A last cell is text: it goes on beside the others from this many columns. */
#define TEXT_MIN 24
/* A cell longer than this, and than half of the terminal, does not make
 * its column wider: what follows it begins on the next line. */
#define CELL_MIN 16

struct place {
	int at, width;
	bool below; /* begins a line of its own */
};

static int columns_of(const char *s, size_t n)
{
	struct wide w = {0};
	int width = 0;

	if (wide_add_utf8(&w, s, n) == 0)
		width = layout_width(w.s, w.n, 0);
	wide_free(&w);
	return width;
}

int table_columns(const char *s)
{
	return columns_of(s, strlen(s));
}

/* Cells of a row, with its note. */
static size_t stride(const struct table *t)
{
	return (size_t)t->columns + 1;
}

void table_add(struct table *t, const char *const *cells)
{
	if (t->n + stride(t) > t->cap) {
		size_t cap = t->cap ? 2 * t->cap : 64;
		void *v = reallocarray(t->cells, cap, sizeof(*t->cells));

		if (!v) {
			t->failed = true;
			return;
		}
		t->cells = v;
		t->cap = cap;
	}
	for (int i = 0; i < t->columns; i++) {
		char *copy = strdup(cells[i] ? cells[i] : "");

		t->failed |= !copy;
		t->cells[t->n++] = copy;
	}
	t->cells[t->n++] = NULL;
}

void table_note(struct table *t, const char *text)
{
	if (!t->n || !text || !*text)
		return;
	t->cells[t->n - 1] = strdup(text);
	t->failed |= !t->cells[t->n - 1];
}

static int widest(const struct table *t, int column, int cap)
{
	int width = 0;

	for (size_t i = (size_t)column; i < t->n; i += stride(t)) {
		int w = table_columns(t->cells[i]);

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

/* The bytes of a word, and of the dot behind it: no line begins with one. */
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
		int w = columns_of(p + gap, n);

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

/* The longest word, which no line may break. */
static int longest_word(const char *s)
{
	int longest = 0;

	while (*s) {
		size_t n = strcspn(s, " ");
		char *word = strndup(s, n);
		int w = word ? table_columns(word) : 0;

		longest = w > longest ? w : longest;
		free(word);
		s += n + (s[n] == ' ');
	}
	return longest;
}

/* As much of `s` as fits into `room` columns, with dots where it is cut. */
static void put_cut(struct strbuf *b, const char *s, int room)
{
	struct wide w = {0};
	char one[4];

	if (table_columns(s) <= room || wide_add_utf8(&w, s, strlen(s)) < 0) {
		strbuf_puts(b, s);
		return;
	}
	while (w.n &&
		(layout_width(w.s, w.n, 0) > room - 1 || w.s[w.n - 1] == ' '))
		w.n--;
	for (size_t i = 0; i < w.n; i++)
		strbuf_add(b, one, utf8_put(w.s[i], one));
	strbuf_puts(b, "…");
	wide_free(&w);
}

/* The cursor is at column `x`, and the cell's place begins at `at`. */
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
		int width = table_columns(cells[i]), at = p[i].at;

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
	t->n = t->cap = 0;
}
