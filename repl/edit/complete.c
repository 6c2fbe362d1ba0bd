/* SPDX-License-Identifier: MIT */
/*
 * complete.c - Tab behind a word
 *
 * Runs in:   the front end, inside editor_read()
 * Holds:     the candidates, for the time of one key
 * Trusts:    no candidate: the names come from the guest, which may call
 *            anything anything
 * Leaves:    only visible characters in the text and on the screen
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jail/base/array.h"
#include "jail/base/io.h"
#include "parts.h"
#include "repl/text/utf8.h"

#define CANDIDATE_BYTES_MAX 4096
#define LIST_ROWS_MAX 12

int complete_add(struct complete_list *c, const char *s, size_t n)
{
	char *copy;

	if (c->count >= COMPLETE_MAX || n == 0 || n > CANDIDATE_BYTES_MAX ||
		!utf8_is_visible_text(s, n)) {
		c->dropped++;
		return 0;
	}
	if (array_grow(&c->items, c->count, sizeof(*c->items)) < 0)
		return -1;
	copy = strndup(s, n);
	if (!copy)
		return -1;
	c->items[c->count++] = copy;
	return 0;
}

void complete_free(struct complete_list *c)
{
	for (size_t i = 0; i < c->count; i++)
		free(c->items[i]);
	free(c->items);
	*c = (struct complete_list){0};
}

/* Bytes that all candidates begin with, whole characters. */
static size_t common_prefix(const struct complete_list *c)
{
	const char *first = c->items[0];
	size_t n = strlen(first);

	for (size_t i = 1; i < c->count; i++) {
		size_t k = 0;

		while (k < n && c->items[i][k] == first[k])
			k++;
		n = k;
	}
	return utf8_start(first, n);
}

/* The candidates in columns, in at most half of the screen's rows. */
static void list(struct view *v, const struct complete_list *c)
{
	size_t rows_max = (size_t)v->rows / 2, per_row, shown;
	struct strbuf b = {0};
	int widest = 1;

	for (size_t i = 0; i < c->count; i++) {
		int width = layout_columns(c->items[i], strlen(c->items[i]));

		widest = width > widest ? width : widest;
	}
	per_row = (size_t)v->cols / ((size_t)widest + 2);
	per_row = per_row ? per_row : 1;
	rows_max = rows_max > LIST_ROWS_MAX ? LIST_ROWS_MAX : rows_max;
	rows_max = rows_max ? rows_max : 1;
	shown = rows_max * per_row < c->count ? rows_max * per_row : c->count;
	for (size_t i = 0; i < shown; i++) {
		bool last = (i + 1) % per_row == 0 || i + 1 == shown;
		int pad = widest + 2 -
			  layout_columns(c->items[i], strlen(c->items[i]));

		strbuf_puts(&b, c->items[i]);
		strbuf_printf(&b, "%*s", last ? 0 : pad, "");
		strbuf_puts(&b, last ? "\n" : "");
	}
	if (shown < c->count)
		strbuf_printf(&b, "[%zu more]\n", c->count - shown);
	if (c->dropped)
		strbuf_printf(&b,
			"[%zu not shown: unsafe names, or too many]\n",
			c->dropped);
	if (!b.failed)
		view_print(v, b.s, b.n);
	strbuf_free(&b);
}

/* Put `n` bytes of a candidate in place of [start, cursor). */
static void replace(struct engine *en, size_t start, const char *s, size_t n)
{
	struct utf8_wide w = {0};

	if (utf8_wide_decode(&w, s, n) == 0 && engine_fits(en, w.s, w.n))
		engine_replace(en, start, engine_text(en).cursor, w.s, w.n);
	utf8_wide_free(&w);
}

/* Put the only candidate there, and close what it stands in. */
static void replace_whole(
	struct engine *en, size_t start, const struct complete_list *c)
{
	struct engine_text t;

	replace(en, start, c->items[0], strlen(c->items[0]));
	t = engine_text(en);
	if (c->close[0] && (t.cursor == t.n || t.s[t.cursor] != c->close[0]))
		replace(en, t.cursor, c->close, strlen(c->close));
}

/* `text` up to the cursor is `before` bytes. */
static void apply(struct editor *ed, const struct complete_list *c,
	const char *text, size_t before)
{
	size_t typed = before - c->start, n = common_prefix(c);
	size_t start = utf8_count(text, c->start);
	bool extends =
		n > typed && !memcmp(c->items[0], text + c->start, typed);

	if (c->count == 1)
		replace_whole(ed->engine, start, c);
	else if (extends)
		replace(ed->engine, start, c->items[0], n);
	else
		list(&ed->view, c);
}

void complete_key(struct editor *ed)
{
	struct engine_text t = engine_text(ed->engine);
	size_t n, before = utf8_size(t.s, t.cursor);
	struct complete_list c = {.start = before};
	auto_free char *text = NULL;

	if (!ed->complete)
		return;
	text = utf8_from_wide(t.s, t.n, &n);
	if (text && ed->complete(ed->ctx, text, n, before, &c) == 0 &&
		c.count > 0 && c.start <= before)
		apply(ed, &c, text, before);
	else if (c.dropped)
		view_status(
			&ed->view, "[%zu names not shown: unsafe]", c.dropped);
	complete_free(&c);
}
