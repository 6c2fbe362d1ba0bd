/* SPDX-License-Identifier: MIT */
/*
 * recall.c - cells of before: Up, Down, and the search
 *
 * Runs in:   the front end, inside editor_read()
 * Holds:     the person's own text while an entry is shown
 * Trusts:    the history's entries to be UTF-8 without controls
 * Leaves:    nothing
 */
#include <stdlib.h>
#include <string.h>

#include "history.h"
#include "impl.h"
#include "jail/base/io.h"
#include "repl/text/utf8.h"

#define CTRL(c) ((c)&0x1F)
#define SEARCH_MAX 200
#define NO_ENTRY ((size_t)-1)

static size_t entries(const struct editor *ed)
{
	return ed->history ? history_count(ed->history) : 0;
}

/* The history is not read before it is wanted: NO_ENTRY stands for its end. */
void recall_reset(struct editor *ed)
{
	ed->entry = NO_ENTRY;
	ed->recalled = false;
	ed->search.active = false;
	wide_free(&ed->draft);
}

static void show_entry(struct editor *ed, size_t entry, size_t cursor)
{
	struct wide text = {0};
	struct span t = engine_text(ed);
	const char *s;
	size_t n;

	if (ed->entry == NO_ENTRY)
		wide_set(&ed->draft, t.s, t.n);
	s = history_get(ed->history, entry, &n);
	if (!s || wide_add_utf8(&text, s, n) < 0)
		return;
	ed->entry = entry;
	edit_set(ed, text.s, text.n, cursor < text.n ? cursor : text.n);
	ed->recalled = true;
	wide_free(&text);
}

enum editor_step recall_older(struct editor *ed)
{
	size_t at = ed->entry == NO_ENTRY ? entries(ed) : ed->entry;

	if (at > 0)
		show_entry(ed, at - 1, NO_ENTRY);
	return STEP_GO_ON;
}

enum editor_step recall_newer(struct editor *ed)
{
	if (ed->entry == NO_ENTRY)
		return STEP_GO_ON;
	if (ed->entry + 1 < entries(ed)) {
		show_entry(ed, ed->entry + 1, NO_ENTRY);
		return STEP_GO_ON;
	}
	ed->entry = NO_ENTRY;
	ed->recalled = false;
	edit_set(ed, ed->draft.s, ed->draft.n, ed->draft.n);
	return STEP_GO_ON;
}

/* Show the newest match before `before`; the one shown stays if there is
 * none. */
static void search_step(struct editor *ed, size_t before)
{
	struct search *se = &ed->search;
	size_t n, len, hit;
	auto_free char *s = wide_to_utf8(se->pattern.s, se->pattern.n, &n);
	const char *entry, *in;

	hit = s && n ? history_find(ed->history, before, s, n) : NO_ENTRY;
	se->failed = n > 0 && hit == NO_ENTRY;
	if (hit == NO_ENTRY)
		return;
	se->at = hit;
	entry = history_get(ed->history, hit, &len);
	in = memmem(entry, len, s, n);
	show_entry(ed, hit, utf8_count(entry, (size_t)(in - entry)));
}

enum editor_step recall_search(struct editor *ed)
{
	struct search *se = &ed->search;
	struct span t = engine_text(ed);

	if (!ed->history)
		return STEP_GO_ON;
	wide_set(&se->old, t.s, t.n);
	se->old_cursor = t.cursor;
	se->pattern.n = 0;
	se->at = entries(ed);
	se->failed = false;
	se->active = true;
	return STEP_GO_ON;
}

static void search_end(struct editor *ed, bool restore)
{
	struct search *se = &ed->search;

	if (restore) {
		edit_set(ed, se->old.s, se->old.n, se->old_cursor);
		ed->entry = NO_ENTRY;
		ed->recalled = false;
	}
	se->active = false;
	wide_free(&se->old);
}

bool recall_search_key(struct editor *ed, struct key key)
{
	struct search *se = &ed->search;

	if (!se->active)
		return false;
	switch (key.code) {
	case KEY_TEXT:
		if (se->pattern.n < SEARCH_MAX)
			wide_add(&se->pattern, &key.c, 1);
		search_step(ed, se->at < entries(ed) ? se->at + 1 : se->at);
		return true;
	case 0x7F:
	case CTRL('H'):
		if (se->pattern.n)
			se->pattern.s[--se->pattern.n] = 0;
		search_step(ed, entries(ed));
		return true;
	case CTRL('R'):
		search_step(ed, se->at);
		return true;
	case CTRL('C'):
	case CTRL('G'):
		search_end(ed, true);
		return true;
	}
	search_end(ed, false);
	return false;
}
