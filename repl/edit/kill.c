/* SPDX-License-Identifier: MIT */
/*
 * kill.c - the texts that were cut, for Ctrl-Y and Alt-Y
 *
 * Runs in:   the front end, inside editor_read()
 * Holds:     the last texts that were cut, of all cells
 * Trusts:    nothing in them
 * Leaves:    at most KILL_CHARS_MAX characters, and the text cut last
 */
#include "parts.h"

static void drop_last(struct kills *k)
{
	k->chars -= k->ring[--k->n].n;
	utf8_wide_free(&k->ring[k->n]);
}

/* Put `text` (taken) before the others. */
static void push_first(struct kills *k, struct utf8_wide text)
{
	while (k->n &&
		(k->n == KILLS_MAX || k->chars + text.n > KILL_CHARS_MAX))
		drop_last(k);
	memmove(k->ring + 1, k->ring, k->n++ * sizeof(*k->ring));
	k->ring[0] = text;
	k->chars += text.n;
}

void kill_keep(struct kills *k, const wchar_t *s, size_t n, enum kill_where to)
{
	struct utf8_wide now = {0}, last = {0};

	if (!n)
		return;
	if (to != KILL_ALONE && k->n) {
		last = k->ring[0];
		k->chars -= last.n;
		ARRAY_REMOVE(k->ring, k->n, 0);
	}
	if (to == KILL_BEHIND)
		utf8_wide_add(&now, last.s, last.n);
	utf8_wide_add(&now, s, n);
	if (to == KILL_BEFORE)
		utf8_wide_add(&now, last.s, last.n);
	utf8_wide_free(&last);
	push_first(k, now);
}

void kill_yank(struct editor *ed)
{
	struct kills *k = &ed->kills;

	k->yanked = k->n && change_insert(ed, k->ring[0].s, k->ring[0].n)
			    ? k->ring[0].n
			    : 0;
}

void kill_yank_older(struct editor *ed)
{
	struct kills *k = &ed->kills;
	size_t at = engine_text(ed->engine).cursor;
	struct utf8_wide first, *older = &k->ring[1];

	if (k->n < 2 || !k->yanked ||
		!change_replace(ed, at - k->yanked, at, older->s, older->n))
		return;
	k->yanked = older->n;
	first = k->ring[0];
	memmove(k->ring, older, (k->n - 1) * sizeof(*k->ring));
	k->ring[k->n - 1] = first;
}

void kill_free(struct kills *k)
{
	while (k->n)
		drop_last(k);
}
