/* SPDX-License-Identifier: MIT */
/*
 * tab.c - Tab behind something
 *
 * Runs in:   the front end, inside editor_read()
 * Holds:     the candidates, for the time of one key
 * Trusts:    no candidate: names come from the guest, who may call anything
 *            anything
 * Leaves:    only visible characters in the text and on the screen
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "impl.h"
#include "jail/base/array.h"
#include "jail/base/io.h"
#include "repl/text/utf8.h"

#define CANDIDATE_BYTES_MAX 4096
#define LIST_ROWS_MAX 12

int completions_add(struct completions *c, const char *s, size_t n)
{
	char *copy;

	if (c->count >= COMPLETIONS_MAX || n == 0 || n > CANDIDATE_BYTES_MAX ||
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

void completions_free(struct completions *c)
{
	for (size_t i = 0; i < c->count; i++)
		free(c->items[i]);
	free(c->items);
	*c = (struct completions){0};
}

/* Bytes that all candidates begin with, whole characters. */
static size_t common_prefix(const struct completions *c)
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

/* The candidates in columns, as many rows as half the screen takes. */
static void list(struct editor *ed, const struct completions *c)
{
	size_t rows_max = (size_t)ed->view.rows / 2, per_row, shown;
	struct strbuf b = {0};
	int widest = 1;

	for (size_t i = 0; i < c->count; i++) {
		int width = layout_columns(c->items[i], strlen(c->items[i]));

		widest = width > widest ? width : widest;
	}
	per_row = (size_t)ed->view.cols / ((size_t)widest + 2);
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
		editor_print_above(ed, b.s, b.n);
	strbuf_free(&b);
}

/* Put `n` bytes of a candidate in place of [start, cursor). */
static void replace(struct editor *ed, size_t start, const char *s, size_t n)
{
	struct span t = engine_text(ed);
	struct wide w = {0};

	if (wide_add_utf8(&w, s, n) == 0 &&
		wide_utf8_size(t.s, t.n) + n <= ed->max_bytes)
		engine_replace(ed, start, t.cursor, w.s, w.n);
	wide_free(&w);
}

/* Put the only candidate there, and close what it stands in. */
static void replace_whole(
	struct editor *ed, size_t start, const struct completions *c)
{
	struct span t;
	wchar_t close[sizeof(c->close)];
	size_t n = strlen(c->close);

	replace(ed, start, c->items[0], strlen(c->items[0]));
	t = engine_text(ed);
	for (size_t i = 0; i < n; i++)
		close[i] = (wchar_t)c->close[i];
	if (n && (t.cursor == t.n || t.s[t.cursor] != close[0]))
		edit_insert(ed, close, n);
}

/* `text` up to the cursor is `before` bytes. */
static void apply(struct editor *ed, const struct completions *c,
	const char *text, size_t before)
{
	size_t typed = before - c->start, n = common_prefix(c);
	size_t start = utf8_count(text, c->start);
	bool extends =
		n > typed && !memcmp(c->items[0], text + c->start, typed);

	if (c->count == 1)
		replace_whole(ed, start, c);
	else if (extends)
		replace(ed, start, c->items[0], n);
	else
		list(ed, c);
}

static void complete(struct editor *ed)
{
	struct span t = engine_text(ed);
	size_t n, before = wide_utf8_size(t.s, t.cursor);
	auto_free char *text = wide_to_utf8(t.s, t.n, &n);
	struct completions c = {.start = before};

	if (text && ed->complete(ed->complete_ctx, text, n, before, &c) == 0 &&
		c.count > 0 && c.start <= before)
		apply(ed, &c, text, before);
	else if (c.dropped)
		edit_status(ed, "[%zu names not shown: unsafe]", c.dropped);
	completions_free(&c);
}

enum editor_step complete_key(struct editor *ed)
{
	struct span t = engine_text(ed);
	size_t at = edit_line_start(&t, t.cursor);

	while (at < t.cursor && (t.s[at] == ' ' || t.s[at] == '\t'))
		at++;
	if (at == t.cursor || (ed->burst && input_has_more(ed)))
		return enter_tab(ed);
	if (ed->complete)
		complete(ed);
	return STEP_GO_ON;
}
