/* SPDX-License-Identifier: MIT */
/*
 * undo.h - what a text was before each change
 *
 * Told the text after every command, it keeps the differences.
 */
#ifndef REPL_EDIT_UNDO_H
#define REPL_EDIT_UNDO_H

#include <stdbool.h>

#include "repl/text/wide.h"

#define UNDO_MAX 200
#define UNDO_CHARS_MAX (4u << 20) /* removed characters kept, in all */

struct undo_edit {
	size_t at;
	struct wide removed; /* what was there */
	size_t inserted;     /* how many characters replaced it */
	size_t cursor;	     /* where the cursor was before */
	bool typed;	     /* letters of one word, which go back together */
};

/* All zero is an empty text with no past. */
struct undo {
	struct undo_edit edits[UNDO_MAX];
	size_t n;
	size_t chars;
	struct wide now;
	size_t cursor;
};

/* The text after a command. 0, or -1 (no memory). */
int undo_note(struct undo *u, const wchar_t *s, size_t n, size_t cursor);

/* Take back the last change: true, and the text is u->now, the cursor
 * u->cursor; false when there is none (or no memory for it). */
bool undo_pop(struct undo *u);

/* Forget the past and release the memory. */
void undo_free(struct undo *u);

#endif
