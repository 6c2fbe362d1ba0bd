/* SPDX-License-Identifier: MIT */
/*
 * text.h - text for people: foreign text made harmless, numbers, tables
 *
 * Pure. Only the columns of a character depend on the locale.
 */
#ifndef REPL_TEXT_TEXT_H
#define REPL_TEXT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct strbuf;

/* Enough for any text_size() or text_time(). */
#define TEXT_HUMAN 48

/* Write `n` bytes of foreign text into `buf` as part of one line of ours.
 * Controls, unseen characters and those like the bar of frame lines become \n,
 * \t, \x1b, \xa6, \u202e, \U000e0041; invalid bytes \xNN. Text that does not
 * fit ends in "…"; always terminated. `size` is at least 8. Returns the length
 * written. */
size_t text_safe(char *buf, size_t size, const char *s, size_t n);

/* Append `n` bytes of foreign text, each line as text_safe() shows it, but
 * with blanks up to the terminal's next stop in place of a tab. The last line
 * ends in a newline, too. */
void text_lines(struct strbuf *b, const char *text, size_t n);

/* "12 B", "12.4 KiB", "512 MiB": whole when it is exact, else one decimal.
 * Returns `buf`. */
const char *text_size(char buf[static TEXT_HUMAN], uint64_t bytes);

/* "250 ms", "10 s", "1.5 h", "75 s": in the largest unit that is exact to one
 * decimal, or rounded where the exact number would be long. Returns `buf`. */
const char *text_time(char buf[static TEXT_HUMAN], int64_t ms);

/* "1 file", "3 files"; `many` is the plural that is not `one` with an s, or
 * NULL. Returns `buf`. */
const char *text_count(
	char *buf, size_t size, uint64_t n, const char *one, const char *many);

#define TEXT_COLUMNS_MAX 9

/* Rows of cells, laid out for a terminal of any width. A column that does not
 * fit beside the others goes below them, indented; no word is broken. The cells
 * are safe for a terminal. Caller's storage; the caller fills the first part,
 * all else is zero. */
struct text_table {
	int width;	/* of the terminal; 0: no terminal, nothing folds */
	int columns;	/* at most TEXT_COLUMNS_MAX */
	unsigned right; /* bit i: column i is aligned to the right */
	bool cut;	/* cut a last cell that is too long; else wrap it */
	int below;	/* indent of cells that go below; 0: the usual */

	char **cells; /* owned; the last of each row is its note */
	size_t n;
	bool failed;
};

/* Add a row: as many cells as there are columns, copied; NULL is empty. */
void text_table_add(struct text_table *t, const char *const *cells);

/* Put lines below the last row, indented but not folded, so that a person can
 * copy them. NULL or "": none. */
void text_table_note(struct text_table *t, const char *text);

/* Write the rows and free them. */
void text_table_write(struct text_table *t, struct strbuf *b);

/* Write `text` and a newline in lines of at most `width` columns (0: one
 * line). The cursor is at column `at`, where every line begins. No line begins
 * with the dot that joins two parts. */
void text_wrap(struct strbuf *b, const char *text, int at, int width);

#endif
