/* SPDX-License-Identifier: MIT */
/*
 * table.h - rows of cells, laid out for a terminal of any width
 *
 * Pure. A column that does not fit beside the others goes below them,
 * indented; no word is broken. The caller makes the text safe for a terminal.
 */
#ifndef REPL_TEXT_TABLE_H
#define REPL_TEXT_TABLE_H

#include <stdbool.h>
#include <stddef.h>

struct strbuf;

#define TABLE_COLUMNS_MAX 5

/* Caller's storage; the caller fills the first part, all else is zero. */
struct table {
	int width;	/* of the terminal; 0: no terminal, nothing folds */
	int columns;	/* at most TABLE_COLUMNS_MAX */
	unsigned right; /* bit i: column i is aligned to the right */
	bool cut;	/* cut a last cell that is too long; else wrap it */
	int below;	/* indent of cells that go below; 0: the usual */

	char **cells; /* owned; the last of each row is its note or NULL */
	size_t n;
	bool failed;
};

/* Add a row: as many cells as there are columns, copied; NULL is empty. */
void table_add(struct table *t, const char *const *cells);

/* Put lines below the last row, indented but not folded, so that a person can
 * copy them. NULL or "": none. */
void table_note(struct table *t, const char *text);

/* Write the rows and free them. */
void table_write(struct table *t, struct strbuf *b);

/* Write `text` and a newline in lines of at most `width` columns (0: one
 * line). The cursor is at column `at`, where every line begins. No line begins
 * with the dot that joins two parts. */
void table_wrap(struct strbuf *b, const char *text, int at, int width);

#endif
