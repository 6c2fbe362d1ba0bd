/* SPDX-License-Identifier: MIT */
/*
 * pyblock.h - whether a cell of Python is complete, and how lines are indented
 *
 * Pure. It does not judge correctness: text that it cannot parse counts as
 * complete, so that Python itself reports the error.
 */
#ifndef REPL_EDIT_PYBLOCK_H
#define REPL_EDIT_PYBLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <wchar.h>

enum pyblock_state {
	PYBLOCK_EMPTY,	  /* blanks and comments only */
	PYBLOCK_COMPLETE, /* can run */
	PYBLOCK_BLOCK,	  /* can run, or go on: a blank line ends it */
	PYBLOCK_HEADER,	  /* a body, or a decorated definition, must follow */
	PYBLOCK_INSIDE,	  /* in brackets, in """, or behind a backslash */
};

struct pyblock {
	enum pyblock_state state;
	bool last_blank; /* the last of several lines is blank */
};

/* Look at a whole cell. */
struct pyblock pyblock_cell(const wchar_t *s, size_t n);

struct pyblock_indent {
	size_t start, n; /* blanks of the cell to repeat */
	int change;	 /* levels to add (1) or to take off (-1) */
};

/* How a line that begins after the first `n` characters is indented. */
struct pyblock_indent pyblock_indent(const wchar_t *s, size_t n);

/* Whether the row that the text ends with belongs further to the left: *in
 * says where. So it is behind the colon of a clause such as `else`, and behind
 * a bracket that closes and that the row begins with. */
bool pyblock_dedent(const wchar_t *s, size_t n, struct pyblock_indent *in);

/* The bracket at `at` and its other half, the opening one first. */
bool pyblock_match(const wchar_t *s, size_t n, size_t at, size_t pair[2]);

/* Whether the text ends inside the brackets of a call of a dotted name, which
 * is [*from, *to). */
bool pyblock_call(const wchar_t *s, size_t n, size_t *from, size_t *to);

#endif
