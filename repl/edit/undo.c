/* SPDX-License-Identifier: MIT */
/*
 * undo.c - earlier versions of a text, and the way back to later ones
 *
 * Runs in:   the front end
 * Holds:     nothing
 * Trusts:    neither the size of the text nor how it changes
 * Leaves:    at most UNDO_MAX differences
 */
#include "parts.h"

static void drop_oldest(struct undo *u)
{
	u->chars -= u->edits[0].removed.n;
	utf8_wide_free(&u->edits[0].removed);
	ARRAY_REMOVE(u->edits, u->n, 0);
}

static void drop_undone(struct undo *u)
{
	for (; u->undone; u->undone--) {
		struct utf8_wide *text =
			&u->edits[u->n + u->undone - 1].removed;

		u->chars -= text->n;
		utf8_wide_free(text);
	}
}

static bool undo_merge(struct undo *u, const struct undo_edit *e, wchar_t c)
{
	struct undo_edit *last = u->n ? &u->edits[u->n - 1] : NULL;

	if (!last || !e->typed || !last->typed || !edit_is_word(c) ||
		last->at + last->inserted != e->at)
		return false;
	last->inserted++;
	return true;
}

static int undo_push(struct undo *u, struct undo_edit *e, size_t removed)
{
	if (removed > UNDO_CHARS_MAX)
		return -1;
	if (utf8_wide_set(&e->removed, removed ? u->now.s + e->at : NULL,
		    removed) < 0)
		return -1;
	while (u->n &&
		(u->n == UNDO_MAX || u->chars + removed > UNDO_CHARS_MAX))
		drop_oldest(u);
	u->chars += removed;
	u->edits[u->n++] = *e;
	return 0;
}

int undo_note(
	struct undo *u, const wchar_t *s, size_t n, size_t cursor, bool typed)
{
	const struct utf8_wide *old = &u->now;
	struct undo_edit e = {.cursor = u->cursor};
	size_t tail = 0, least = n < old->n ? n : old->n;

	u->cursor = cursor;
	if (n == old->n && (!n || !wmemcmp(s, old->s, n)))
		return 0;
	while (e.at < least && s[e.at] == old->s[e.at])
		e.at++;
	while (tail < least - e.at &&
		s[n - 1 - tail] == old->s[old->n - 1 - tail])
		tail++;
	drop_undone(u);
	e.inserted = n - tail - e.at;
	e.typed = typed && e.inserted == 1 && old->n - tail == e.at;
	if (!undo_merge(u, &e, e.typed ? s[e.at] : 0) &&
		undo_push(u, &e, old->n - tail - e.at) < 0)
		return -1;
	return utf8_wide_set(&u->now, s, n);
}

int undo_begin(struct undo *u, const wchar_t *s, size_t n, size_t cursor)
{
	if (n != u->now.n || (n && wmemcmp(s, u->now.s, n)))
		undo_free(u);
	u->cursor = cursor;
	return utf8_wide_set(&u->now, s, n);
}

/* Exchange the characters that an edit holds and those in their place. */
static bool swap_edit(struct undo *u, struct undo_edit *e)
{
	size_t rest = e->at + e->inserted;
	struct utf8_wide t = {0}, taken = {0};

	if (utf8_wide_add(&t, u->now.s, e->at) < 0 ||
		utf8_wide_add(&t, e->removed.s, e->removed.n) < 0 ||
		utf8_wide_add(&t, u->now.s + rest, u->now.n - rest) < 0 ||
		utf8_wide_add(&taken, u->now.s + e->at, e->inserted) < 0) {
		utf8_wide_free(&t);
		utf8_wide_free(&taken);
		return false;
	}
	utf8_wide_free(&u->now);
	u->now = t;
	u->chars += taken.n - e->removed.n;
	e->inserted = e->removed.n;
	utf8_wide_free(&e->removed);
	e->removed = taken;
	return true;
}

bool undo_pop(struct undo *u)
{
	if (!u->n || !swap_edit(u, &u->edits[u->n - 1]))
		return false;
	u->cursor = u->edits[--u->n].cursor;
	u->undone++;
	if (u->chars > UNDO_CHARS_MAX)
		drop_undone(u);
	return true;
}

bool undo_redo(struct undo *u)
{
	const struct undo_edit *e = &u->edits[u->n];

	if (!u->undone || !swap_edit(u, &u->edits[u->n]))
		return false;
	u->cursor = e->at + e->inserted;
	u->n++;
	u->undone--;
	return true;
}

void undo_free(struct undo *u)
{
	drop_undone(u);
	while (u->n)
		drop_oldest(u);
	utf8_wide_free(&u->now);
	u->cursor = 0;
}
