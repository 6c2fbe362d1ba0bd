/* SPDX-License-Identifier: MIT */
/*
 * recall.c - earlier cells: gone through, searched, suggested
 *
 * Runs in:   the front end, inside editor_read()
 * Holds:     the person's own text, while an entry of the history is shown
 * Trusts:    the history's entries to be UTF-8 without controls
 * Leaves:    the history as it is: a shown entry is a copy
 */
#include "jail/base/io.h"
#include "parts.h"

#define SEARCH_MAX 200
#define NO_ENTRY ((size_t)-1)

/* NO_ENTRY is the history's end: we do not read the file before a key needs
 * it. */
void recall_begin(struct editor *ed)
{
	ed->recall.entry = NO_ENTRY;
	ed->recall.recalled = false;
	ed->recall.searching = false;
	utf8_wide_free(&ed->recall.draft);
}

void recall_free(struct recall *re)
{
	utf8_wide_free(&re->draft);
	utf8_wide_free(&re->pattern);
	utf8_wide_free(&re->old);
	strbuf_free(&re->rest);
}

static size_t history_entries(const struct editor *ed)
{
	return ed->opts.history ? history_count(ed->opts.history) : 0;
}

static void show_entry(struct editor *ed, size_t entry, size_t cursor)
{
	struct recall *re = &ed->recall;
	struct engine_text t = engine_text(ed->engine);
	struct utf8_wide text = {0};
	const char *s;
	size_t n;

	if (re->entry == NO_ENTRY) {
		utf8_wide_set(&re->draft, t.s, t.n);
		re->draft_cursor = t.cursor;
	}
	s = history_get(ed->opts.history, entry, &n);
	if (!s || utf8_wide_decode(&text, s, n) < 0)
		return;
	re->entry = entry;
	re->recalled = true;
	engine_set(
		ed->engine, text.s, text.n, cursor < text.n ? cursor : text.n);
	utf8_wide_free(&text);
}

static void show_own(
	struct editor *ed, const struct utf8_wide *text, size_t cursor)
{
	ed->recall.entry = NO_ENTRY;
	ed->recall.recalled = false;
	engine_set(ed->engine, text->s, text->n, cursor);
}

void recall_step(struct editor *ed, bool back, bool any)
{
	struct recall *re = &ed->recall;
	struct engine_text t = engine_text(ed->engine);
	size_t count = history_entries(ed), at = re->entry, n, len;
	bool own = at == NO_ENTRY;
	auto_free char *shown = utf8_from_wide(t.s, t.n, &len);
	size_t begin = any   ? 0
		       : own ? utf8_size(t.s, t.cursor)
			     : utf8_size(re->draft.s, re->draft_cursor);
	auto_free char *prefix =
		own ? utf8_from_wide(t.s, t.n, &n)
		    : utf8_from_wide(re->draft.s, re->draft.n, &n);
	const char *s;

	if (!shown || !prefix || (own && !back))
		return;
	for (at = own ? count : at; back ? at > 0 : ++at < count;) {
		at -= back;
		s = history_get(ed->opts.history, at, &n);
		if (s && n >= begin && !memcmp(s, prefix, begin) &&
			(n != len || memcmp(s, shown, n))) {
			show_entry(ed, at, NO_ENTRY);
			return;
		}
	}
	if (!back)
		show_own(ed, &re->draft, re->draft_cursor);
}

void recall_suggest(struct editor *ed)
{
	struct recall *re = &ed->recall;
	struct engine_text t = engine_text(ed->engine);
	bool wanted = ed->view.notes && !re->searching &&
		      re->entry == NO_ENTRY && t.n && t.cursor == t.n;
	size_t n, len, at = wanted ? history_entries(ed) : 0;
	auto_free char *s = at ? utf8_from_wide(t.s, t.n, &n) : NULL;
	const char *entry, *rest;

	strbuf_free(&re->rest);
	while (s && !re->rest.n && at-- > 0) {
		entry = history_get(ed->opts.history, at, &len);
		if (entry && len > n && !memcmp(entry, s, n))
			strbuf_puts(&re->rest, entry + n);
	}
	rest = strbuf_text(&re->rest);
	view_hint(&ed->view, rest, strcspn(rest, "\n"));
}

bool recall_take_suggestion(struct editor *ed)
{
	struct utf8_wide text = {0};
	struct strbuf *rest = &ed->recall.rest;
	struct engine_text t = engine_text(ed->engine);

	if (!rest->n || t.cursor != t.n ||
		utf8_wide_decode(&text, rest->s, rest->n) < 0)
		return false;
	change_insert(ed, text.s, text.n);
	utf8_wide_free(&text);
	return true;
}

void recall_older(struct editor *ed)
{
	recall_step(ed, true, true);
}

void recall_newer(struct editor *ed)
{
	recall_step(ed, false, true);
}

/* The end of the string that begins at `s`, on the same line; NULL: none. */
static const char *string_end(const char *s, const char *end)
{
	char quote = *s;

	while (++s < end && *s != '\n') {
		if (*s == quote)
			return s + 1;
		s += *s == '\\' && s + 1 < end && s[1] != '\n';
	}
	return NULL;
}

/* Find the last word of a cell, between blanks; a string in quotes keeps its
 * blanks. Returns its length; the word begins at *word. */
static size_t find_last_word(const char *s, size_t n, const char **word)
{
	const char *end = s + n, *behind = s;

	*word = s;
	while (s < end) {
		const char *next =
			*s == '"' || *s == '\'' ? string_end(s, end) : NULL;

		if (text_is_blank(*s)) {
			s++;
			continue;
		}
		if (behind < s)
			*word = s;
		behind = s = next ? next : s + 1;
	}
	return (size_t)(behind - *word);
}

void recall_last_word(struct editor *ed, bool again)
{
	struct recall *re = &ed->recall;
	size_t at = engine_text(ed->engine).cursor;
	size_t count = history_entries(ed), n;
	size_t entry = again && re->word_entry ? re->word_entry : count;
	struct utf8_wide text = {0};
	const char *s =
		entry ? history_get(ed->opts.history, entry - 1, &n) : NULL;

	if (!again)
		re->word = 0;
	n = s ? find_last_word(s, n, &s) : 0;
	if (s && utf8_wide_decode(&text, s, n) == 0 &&
		change_replace(ed, at - re->word, at, text.s, text.n)) {
		re->word_entry = entry - 1;
		re->word = text.n;
	}
	utf8_wide_free(&text);
}

/* ---- the search ---- */

/* Show the newest match before entry `before`. Without a match the text
 * stays. */
static void search_step(struct editor *ed, size_t before)
{
	struct recall *re = &ed->recall;
	size_t n, len, hit = NO_ENTRY;
	auto_free char *s = utf8_from_wide(re->pattern.s, re->pattern.n, &n);
	const char *entry, *match;

	if (!s)
		return;
	if (n)
		hit = history_find(ed->opts.history, before, s, n);
	view_status(&ed->view, "%s: %s",
		n && hit == NO_ENTRY ? "no match" : "search", s);
	if (hit == NO_ENTRY)
		return;
	re->found = hit;
	entry = history_get(ed->opts.history, hit, &len);
	match = memmem(entry, len, s, n);
	show_entry(ed, hit, utf8_count(entry, (size_t)(match - entry)));
}

void recall_begin_search(struct editor *ed)
{
	struct recall *re = &ed->recall;
	struct engine_text t = engine_text(ed->engine);

	if (!ed->opts.history)
		return;
	utf8_wide_set(&re->old, t.s, t.n);
	re->old_cursor = t.cursor;
	re->pattern.n = 0;
	re->found = history_entries(ed);
	re->searching = true;
	view_status(&ed->view, "search: ");
}

bool recall_search_key(
	struct editor *ed, const struct key *key, enum editor_result *result)
{
	struct recall *re = &ed->recall;

	if (!re->searching)
		return false;
	switch (key->code) {
	case KEY_TEXT:
		if (re->pattern.n < SEARCH_MAX)
			utf8_wide_add(&re->pattern, &key->c, 1);
		/* The entry shown may match the longer pattern, too. */
		search_step(ed, re->found + (re->found < history_entries(ed)));
		return true;
	case 0x7F:
	case KEYS_CTRL('H'):
		if (re->pattern.n)
			re->pattern.s[--re->pattern.n] = 0;
		search_step(ed, history_entries(ed));
		return true;
	case KEYS_CTRL('R'):
		search_step(ed, re->found);
		return true;
	case '\r':
	case '\n':
		if (re->found < history_entries(ed))
			*result = EDITOR_CELL;
		break;
	}
	re->searching = false;
	if (key->code == KEYS_CTRL('C') || key->code == KEYS_CTRL('G'))
		show_own(ed, &re->old, re->old_cursor);
	utf8_wide_free(&re->old);
	return key->code == KEYS_CTRL('C') || key->code == KEYS_CTRL('G') ||
	       *result != EDITOR_GO_ON;
}
