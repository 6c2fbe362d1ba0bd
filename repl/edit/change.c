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

enum letters { UPPER, LOWER, TITLE };

/* Change the letters from the cursor to the end of a word. TITLE: a letter
 * behind any other character becomes a capital, the other letters small ones,
 * as by str.title() of Python. */
static void change_letters(struct editor *ed, enum letters to)
{
	struct engine_text t = engine_text(ed->engine);
	size_t end = change_word_right(&t);
	struct utf8_wide word = {0};
	bool inside = false;

	if (utf8_wide_set(&word, t.s + t.cursor, end - t.cursor) < 0)
		return;
	for (size_t i = 0; i < word.n; i++) {
		wint_t c = (wint_t)word.s[i];

		word.s[i] = (wchar_t)(to == UPPER || (to == TITLE && !inside)
					      ? towupper(c)
					      : towlower(c));
		inside = iswalpha(c) || (inside && edit_is_mark(word.s[i]));
	}
	change_replace(ed, t.cursor, end, word.s, word.n);
	utf8_wide_free(&word);
}

void change_to_upper(struct editor *ed)
{
	change_letters(ed, UPPER);
}

void change_to_lower(struct editor *ed)
{
	change_letters(ed, LOWER);
}

void change_to_title(struct editor *ed)
{
	change_letters(ed, TITLE);
}

void change_swap_case(struct editor *ed)
{
	struct engine_text t = engine_text(ed->engine);
	wint_t c = t.cursor < t.n ? (wint_t)t.s[t.cursor] : L'\n';
	wchar_t other = (wchar_t)(iswupper(c) ? towlower(c) : towupper(c));

	if (c != L'\n' &&
		change_replace(ed, t.cursor, t.cursor + 1, &other, 1)) {
		t = engine_text(ed->engine);
		engine_move(ed->engine, layout_next(t.s, t.n, t.cursor - 1));
	}
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

void change_swap_words(struct editor *ed)
{
	struct engine_text t = engine_text(ed->engine);
	struct engine_text at = t;
	size_t first, middle, second;

	at.cursor = change_word_right(&at);
	second = at.cursor = change_word_left(&at);
	first = at.cursor = change_word_left(&at);
	middle = change_word_right(&at);
	at.cursor = second;
	if (middle <= second && first < second && edit_is_word(t.s[first]))
		swap_parts(ed, first, middle, second, change_word_right(&at));
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
