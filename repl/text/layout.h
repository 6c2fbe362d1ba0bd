/* SPDX-License-Identifier: MIT */
/*
 * layout.h - text as the rows and columns of a terminal
 *
 * Pure: takes characters and a width, gives rows and the cursor's place.
 */
#ifndef REPL_TEXT_LAYOUT_H
#define REPL_TEXT_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <wchar.h>

/* How one character is shown. */
struct layout_glyph {
	char s[40]; /* UTF-8, NUL-terminated; printable characters only */
	int n;	    /* bytes */
	int width;  /* columns; 0 joins the character before */
};

/* How `c` is shown at column `col` (tabs depend on it) of a terminal `cols`
 * wide. A control becomes ^X, a character that cannot be shown, would reorder
 * the line or looks like the bar of frame lines <XXXX>, one wider than the
 * terminal a question mark. */
void layout_glyph(wchar_t c, int col, int cols, struct layout_glyph *g);

struct layout_row {
	size_t start, end; /* characters of the text on it */
	int width;	   /* columns used, the prompt's included */
	bool prompt;	   /* begins a line of the text, after a prompt */
};

struct layout {
	struct layout_row *rows; /* at least one after layout_build() */
	size_t n;
	size_t cursor_row;
	int cursor_col; /* less than the terminal's width */
};

struct layout_shape {
	int cols;    /* at least 1 */
	int prompt;  /* columns of the first prompt, less than cols */
	int prompt2; /* columns of the prompt before every further line */
};

/* Lay out `n` characters with the cursor before s[cursor]. `l` is all zero, or
 * from an earlier call. 0, or -1 when there is no memory. */
int layout_build(struct layout *l, const wchar_t *s, size_t n, size_t cursor,
	const struct layout_shape *shape);

/* Columns that `n` characters take on a line that starts at column `col`. */
int layout_width(const wchar_t *s, size_t n, int col);

/* Columns that `n` bytes of UTF-8 take. */
int layout_columns(const char *s, size_t n);

/* Of `n` bytes of UTF-8, those that fit into `room` columns. */
size_t layout_fit(const char *s, size_t n, int room);

/* Release the memory. */
void layout_free(struct layout *l);

/* The start of the user's character (a base and its marks) before `at`, and
 * the end of the one at `at`. */
size_t layout_prev(const wchar_t *s, size_t at);
size_t layout_next(const wchar_t *s, size_t n, size_t at);

#endif
