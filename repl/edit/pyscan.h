/* SPDX-License-Identifier: MIT */
/*
 * pyscan.h - as much of Python's grammar as an editor needs
 *
 * Tokens for colouring, whether a cell is complete, and how far a new line is
 * indented. Pure. The scanner does not judge correctness: text that it cannot
 * parse counts as complete, so that Python itself reports the error.
 */
#ifndef REPL_EDIT_PYSCAN_H
#define REPL_EDIT_PYSCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <wchar.h>

enum pyscan_kind {
	PYSCAN_END,
	PYSCAN_NEWLINE,
	PYSCAN_SPACE,
	PYSCAN_COMMENT,
	PYSCAN_NAME,
	PYSCAN_NUMBER,
	PYSCAN_STRING,	 /* with its prefix */
	PYSCAN_JOIN,	 /* a backslash and the end of its line */
	PYSCAN_OPEN,	 /* ( [ { */
	PYSCAN_CLOSE,	 /* ) ] } */
	PYSCAN_OPERATOR, /* any other character */
};

struct pyscan_token {
	enum pyscan_kind kind;
	size_t start, end;
	bool open;   /* the text ends inside it (triple quotes, a join) */
	bool broken; /* a one-line string without an end */
};

/* The token at `at`, never empty; PYSCAN_END at the end. */
struct pyscan_token pyscan_next(const wchar_t *s, size_t n, size_t at);

enum pyscan_colour {
	PYSCAN_COLOUR_NONE,
	PYSCAN_COLOUR_KEYWORD,
	PYSCAN_COLOUR_STRING,
	PYSCAN_COLOUR_COMMENT,
	PYSCAN_COLOUR_NUMBER,
	PYSCAN_COLOUR_COMMAND, /* the name of a session command */
};

/* Fill colours[0..n) with an enum pyscan_colour for each character. */
void pyscan_colours(const wchar_t *s, size_t n, unsigned char *colours);

enum pyscan_state {
	PYSCAN_EMPTY,	 /* blanks and comments only */
	PYSCAN_COMPLETE, /* can run */
	PYSCAN_BLOCK,	 /* can run, or go on: a blank line ends it */
	PYSCAN_HEADER,	 /* a body, or a decorated definition, must follow */
	PYSCAN_INSIDE,	 /* in brackets, in """, or behind a backslash */
};

struct pyscan {
	enum pyscan_state state;
	bool last_blank; /* the last of several lines is blank */
};

/* Look at a whole cell. */
struct pyscan pyscan_cell(const wchar_t *s, size_t n);

/* What a text ends with, for what may be put behind it. */
struct pyscan_tail {
	struct pyscan_token last, before;
	bool is_key;  /* it stands right behind NAME[ */
	bool is_open; /* it is a string without an end */
	size_t quote; /* where its quotes begin */
	/* In the braces of an f-string: the quotes that stand before them. */
	wchar_t outer[3];
};

/* Look at the end of a text, and into the braces of an f-string. */
struct pyscan_tail pyscan_tail(const wchar_t *s, size_t n);

/* Whether `rest`, put behind the text of this tail, only continues its last
 * word: a name goes on with characters of names, a string with what neither
 * ends it nor opens a brace. Behind NAME[ the rest may be a whole string or
 * number. */
bool pyscan_continues(const struct pyscan_tail *t, const wchar_t *s, size_t n,
	const wchar_t *rest, size_t rest_n);

/* Find what is still missing behind a key or a file name that the text ends
 * with: the quote of an open string, and the bracket if the string or number
 * stands right behind NAME[. Behind a directory nothing is missing. */
#define PYSCAN_CLOSER 5
void pyscan_closer(const wchar_t *s, size_t n, char out[static PYSCAN_CLOSER]);

struct pyscan_indent {
	size_t start, n; /* blanks of the cell to repeat */
	int change;	 /* levels to add (1) or to take off (-1) */
};

/* How a line that begins after the first `n` characters is indented. */
struct pyscan_indent pyscan_indent(const wchar_t *s, size_t n);

#endif
