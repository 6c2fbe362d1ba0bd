/* SPDX-License-Identifier: MIT */
/*
 * recall.c - earlier cells: Up, Down, and the search
 *
 * Runs in:   the front end, inside editor_read()
 * Holds:     the person's own text while an entry is shown
 * Trusts:    the history's entries to be UTF-8 without controls
 * Leaves:    nothing
 */
#include <string.h>

#include "history.h"
#include "jail/base/io.h"
#include "parts.h"
#include "repl/text/utf8.h"

#define CTRL(c) ((c)&0x1F)
#define SEARCH_MAX 200
#define NO_ENTRY ((size_t)-1)

static size_t entries(const struct recall *re)
{
	return re->history ? history_count(re->history) : 0;
}

/* The history is not read before it is wanted: NO_ENTRY stands for its end. */
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
}

static void show_entry(struct editor *ed, size_t entry, size_t cursor)
{
	struct recall *re = &ed->recall;
	struct engine_text t = engine_text(ed->engine);
	struct utf8_wide text = {0};
	const char *s;
	size_t n;

	if (re->entry == NO_ENTRY)
		utf8_wide_set(&re->draft, t.s, t.n);
	s = history_get(re->history, entry, &n);
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

enum editor_result recall_older(struct editor *ed)
{
	const struct recall *re = &ed->recall;
	size_t at = re->entry == NO_ENTRY ? entries(re) : re->entry;

	if (at > 0)
		show_entry(ed, at - 1, NO_ENTRY);
	return EDITOR_GO_ON;
}

enum editor_result recall_newer(struct editor *ed)
{
	const struct recall *re = &ed->recall;

	if (re->entry == NO_ENTRY)
		return EDITOR_GO_ON;
	if (re->entry + 1 < entries(re))
		show_entry(ed, re->entry + 1, NO_ENTRY);
	else
		show_own(ed, &re->draft, re->draft.n);
	return EDITOR_GO_ON;
}

/* ---- the search ---- */

/* Show the newest match before `before`; where there is none, the text stays
 * as it is. */
static void search_step(struct editor *ed, size_t before)
{
	struct recall *re = &ed->recall;
	size_t n, len, hit = NO_ENTRY;
	auto_free char *s = utf8_from_wide(re->pattern.s, re->pattern.n, &n);
	const char *entry, *match;

	if (!s)
		return;
	if (n)
		hit = history_find(re->history, before, s, n);
	view_status(&ed->view, "%s: %s",
		n && hit == NO_ENTRY ? "no match" : "search", s);
	if (hit == NO_ENTRY)
		return;
	re->found = hit;
	entry = history_get(re->history, hit, &len);
	match = memmem(entry, len, s, n);
	show_entry(ed, hit, utf8_count(entry, (size_t)(match - entry)));
}

enum editor_result recall_search(struct editor *ed)
{
	struct recall *re = &ed->recall;
	struct engine_text t = engine_text(ed->engine);

	if (!re->history)
		return EDITOR_GO_ON;
	utf8_wide_set(&re->old, t.s, t.n);
	re->old_cursor = t.cursor;
	re->pattern.n = 0;
	re->found = entries(re);
	re->searching = true;
	view_status(&ed->view, "search: ");
	return EDITOR_GO_ON;
}

bool recall_search_key(struct editor *ed, const struct key *key)
{
	struct recall *re = &ed->recall;

	if (!re->searching)
		return false;
	switch (key->code) {
	case KEY_TEXT:
		if (re->pattern.n < SEARCH_MAX)
			utf8_wide_add(&re->pattern, &key->c, 1);
		/* The entry shown may match the longer pattern, too. */
		search_step(ed, re->found + (re->found < entries(re)));
		return true;
	case 0x7F:
	case CTRL('H'):
		if (re->pattern.n)
			re->pattern.s[--re->pattern.n] = 0;
		search_step(ed, entries(re));
		return true;
	case CTRL('R'):
		search_step(ed, re->found);
		return true;
	}
	re->searching = false;
	if (key->code == CTRL('C') || key->code == CTRL('G'))
		show_own(ed, &re->old, re->old_cursor);
	utf8_wide_free(&re->old);
	return key->code == CTRL('C') || key->code == CTRL('G');
}
