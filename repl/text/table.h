/* SPDX-License-Identifier: MIT */
/*
 * table.h - rows of cells, laid out for a terminal of any width
 *
 * Pure. Where the columns do not fit side by side, those that do not go below,
 * indented; no word is broken. The text is taken to be safe for a terminal.
 */
#ifndef REPL_TEXT_TABLE_H
#define REPL_TEXT_TABLE_H

#include <stdbool.h>
#include <stddef.h>

struct strbuf;

#define TABLE_COLUMNS_MAX 5

/* Caller's storage; fill the first part. */
struct table {
	int width;	/* of the terminal; 0: there is none, nothing folds */
	int columns;	/* at most TABLE_COLUMNS_MAX */
	unsigned right; /* bit i: column i is aligned at its right */
	bool cut;	/* a last cell that is too long is cut, not wrapped */
	int below;	/* the column of what goes below; 0: the usual */

	char **cells; /* its own; behind each row, its note or NULL */
	size_t n, cap;
	bool failed;
};

/* Add a row: as many cells as there are columns, copied; NULL is empty. */
void table_add(struct table *t, const char *const *cells);

/* Put lines below the last row, indented and otherwise as they are: they are
 * there to be copied. NULL or "": none. */
void table_note(struct table *t, const char *text);

/* Write the rows and forget them. */
void table_write(struct table *t, struct strbuf *b);

/* Write `text` from column `at` on, where the cursor is, in lines of at most
 * `width` columns (0: one line), all beginning at `at`, and none with the dot
 * that joins two parts; then a newline. */
void table_wrap(struct strbuf *b, const char *text, int at, int width);

/* Columns that UTF-8 text takes on a terminal. */
int table_columns(const char *s);

#endif
