/* SPDX-License-Identifier: MIT */
/*
 * python.h - what the editor knows of Python's text
 *
 *	pyblock.c	whether a cell of Python is complete, and how lines are
 *			indented
 *	pycolour.c	a cell in colours
 *	pypaste.c	what pasted Python means
 *	pyscan.c	Python's tokens, as far as an editor needs them
 */
#ifndef REPL_EDIT_PYTHON_H
#define REPL_EDIT_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <wchar.h>

struct utf8_wide;

/* ---- pyblock.c ---- */

/* Pure. Text that cannot be parsed counts as complete, so that Python itself
 * reports the error. */

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

/* The indentation of a line that begins after the first `n` characters. */
struct pyblock_indent pyblock_indent(const wchar_t *s, size_t n);

/* True if the last row belongs further to the left, where *in says: behind the
 * colon of a clause such as `else`, or behind a closing bracket that the row
 * begins with. */
bool pyblock_dedent(const wchar_t *s, size_t n, struct pyblock_indent *in);

/* The bracket at `at` and its other half, the opening one first. */
bool pyblock_match(const wchar_t *s, size_t n, size_t at, size_t pair[2]);

/* True if the text ends inside the brackets of a call of a dotted name, which
 * is [*from, *to). */
bool pyblock_call(const wchar_t *s, size_t n, size_t *from, size_t *to);

/* ---- pycolour.c: pure; only readers rely on it ---- */

enum pycolour {
	PYCOLOUR_NONE,
	PYCOLOUR_KEYWORD, /* match, case, type and _ only where they are ones */
	PYCOLOUR_STRING,  /* without the fields of an f-string */
	PYCOLOUR_COMMENT,
	PYCOLOUR_NUMBER,
	PYCOLOUR_COMMAND, /* the name of a session command */
	PYCOLOUR_MATCH,	  /* a bracket and its other half: set elsewhere */
	PYCOLOUR_BUILTIN,
};

/* Fill colours[0..n) with an enum pycolour for each character. */
void pycolour_fill(const wchar_t *s, size_t n, unsigned char *colours);

/* ---- pypaste.c: pure ---- */

enum pypaste {
	PYPASTE_PLAIN,	    /* itself */
	PYPASTE_TRANSCRIPT, /* the code behind its prompts */
	PYPASTE_INDENTED,   /* itself, further to the left */
};

/* Look at a paste. Where it begins with a prompt, `>>> ` or `In [1]: `, *out
 * gets the lines behind such prompts and behind those that continue them; all
 * other lines are output. Where all its lines are indented evenly, *out gets
 * them without that; what stands in strings is not touched. Otherwise, and
 * without memory: PYPASTE_PLAIN, and *out is empty. */
enum pypaste pypaste_read(const wchar_t *s, size_t n, struct utf8_wide *out);

/* ---- pyscan.c ---- */

/* Pure. The scanner checks no syntax. */

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

/* True if the `n` characters are one of the words, whose list ends with
 * NULL. */
bool pyscan_is_word(const wchar_t *const *words, const wchar_t *s, size_t n);

/* True if they are a keyword in every place. */
bool pyscan_is_keyword(const wchar_t *s, size_t n);

/* The end of a text, which says what may follow. */
struct pyscan_tail {
	struct pyscan_token last, before;
	bool is_key;	  /* it stands right behind NAME[ or )[ */
	bool is_argument; /* an argument of a call begins with it, or behind */
	bool is_open;	  /* it is a string without an end */
	size_t quote;	  /* where its quotes begin */
	/* In the braces of an f-string: the quotes that stand before them. */
	wchar_t outer[3];
};

/* Look at the end of a text, and into the braces of an f-string. */
struct pyscan_tail pyscan_tail(const wchar_t *s, size_t n);

/* True if `rest`, behind the text of this tail, only continues its last word: a
 * name goes on with characters of names, a string with characters that neither
 * end it nor open a brace. Behind NAME[ the rest may be a whole string or
 * number, and the name of an argument ends with an equals sign. */
bool pyscan_continues(const struct pyscan_tail *t, const wchar_t *s, size_t n,
	const wchar_t *rest, size_t rest_n);

/* Write the characters still missing behind a key or a file name that the text
 * ends with: the quote of an open string, and the bracket if the string or
 * number stands right behind NAME[. Behind a directory none is missing. */
#define PYSCAN_CLOSER 5
void pyscan_closer(const wchar_t *s, size_t n, char out[static PYSCAN_CLOSER]);

#endif
