/* SPDX-License-Identifier: MIT */
/*
 * change.c - changes to the text: within a cell's limit, and word by word
 *
 * Runs in:   the front end, inside editor_read()
 * Holds:     nothing
 * Trusts:    nothing in the text
 * Leaves:    a text no longer than a cell may be
 */
#include "jail/base/io.h"
#include "parts.h"

void change_say_full(struct editor *ed, const char *what)
{
	view_status(&ed->view, "[a %s has at most %zu bytes: not %s]",
		ed->opts.line ? "line" : "cell", ed->opts.max_bytes, what);
}

bool change_replace(
	struct editor *ed, size_t from, size_t to, const wchar_t *s, size_t n)
{
	if (!engine_fits(ed->engine, from, to, s, n))
		change_say_full(ed, "inserted");
	else if (engine_replace(ed->engine, from, to, s, n) < 0)
		view_status(&ed->view, "[no memory: not inserted]");
	else
		return true;
	return false;
}

bool change_insert(struct editor *ed, const wchar_t *s, size_t n)
{
	size_t at = engine_text(ed->engine).cursor;

	return change_replace(ed, at, at, s, n);
}

/* ---- words ---- */

size_t change_word_left(const struct engine_text *t)
{
	size_t at = t->cursor;

	while (at > 0 && !edit_is_word(t->s[at - 1]))
		at--;
	while (at > 0 && edit_is_word(t->s[at - 1]))
		at--;
	return at;
}

size_t change_word_right(const struct engine_text *t)
{
	size_t at = t->cursor;

	while (at < t->n && !edit_is_word(t->s[at]))
		at++;
	while (at < t->n && edit_is_word(t->s[at]))
		at++;
	return at;
}

/* Exchange [from, middle) and [behind, to); the cursor goes behind both. */
static void swap_parts(
	struct editor *ed, size_t from, size_t middle, size_t behind, size_t to)
{
	const wchar_t *s = engine_text(ed->engine).s;
	struct utf8_wide swapped = {0};

	if (utf8_wide_add(&swapped, s + behind, to - behind) == 0 &&
		utf8_wide_add(&swapped, s + middle, behind - middle) == 0 &&
		utf8_wide_add(&swapped, s + from, middle - from) == 0)
		change_replace(ed, from, to, swapped.s, swapped.n);
	utf8_wide_free(&swapped);
}

void change_swap_characters(struct editor *ed)
{
	struct engine_text t = engine_text(ed->engine);
	size_t start = engine_line_start(&t, t.cursor), at = t.cursor;

	if (at == engine_line_end(&t, at))
		at = layout_prev(t.s, at);
	if (t.cursor > start && at > start)
		swap_parts(ed, layout_prev(t.s, at), at, at,
			layout_next(t.s, t.n, at));
}
