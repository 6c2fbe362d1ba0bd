/* SPDX-License-Identifier: MIT */
/*
 * python.h - Python's text, as an editor sees it
 *
 *	pyblock.c	the state of a cell, and the indentation of its lines
 *	pycolour.c	a cell in colours
 *	pypaste.c	the code in pasted Python
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
	PYBLOCK_INSIDE,	  /* ends in brackets, in """, or behind a backslash */
};

struct pyblock {
	enum pyblock_state state;
	bool last_blank; /* the last of several lines is blank */
};

/* Find the state of a whole cell. */
struct pyblock pyblock_cell(const wchar_t *s, size_t n);

struct pyblock_indent {
	size_t start, n; /* characters of the cell: blanks to repeat */
	int change;	 /* levels to add (1) or to take off (-1) */
};

/* The indentation of a line that begins after the first `n` characters. */
struct pyblock_indent pyblock_indent(const wchar_t *s, size_t n);

/* True if the text ends with the colon of a clause such as `else`, or with a
 * closing bracket that begins its row, and that row belongs further to the
 * left. *in is the indentation it should have. */
bool pyblock_dedent(const wchar_t *s, size_t n, struct pyblock_indent *in);

/* Find the bracket at `at` and its match, the opening one first. False:
 * none. */
bool pyblock_match(const wchar_t *s, size_t n, size_t at, size_t pair[2]);

/* True if the text ends inside the brackets of a call. Its callable, an
 * expression of names, calls and items, is [*from, *to). */
bool pyblock_call(const wchar_t *s, size_t n, size_t *from, size_t *to);

/* ---- pycolour.c: pure; a mistake only misleads the eye ---- */

enum pycolour {
	PYCOLOUR_NONE,
	PYCOLOUR_KEYWORD, /* match, case, type and _ only as keywords */
	PYCOLOUR_STRING,  /* without the fields of an f-string */
	PYCOLOUR_COMMENT,
	PYCOLOUR_NUMBER,
	PYCOLOUR_COMMAND, /* the name of a session command */
	PYCOLOUR_MATCH,	  /* a bracket and its match: view.c sets it */
	PYCOLOUR_BUILTIN,
};

/* Fill colours[0..n) with an enum pycolour for each character. */
void pycolour_fill(const wchar_t *s, size_t n, unsigned char *colours);

/* ---- pypaste.c: pure ---- */

enum pypaste {
	PYPASTE_PLAIN,	    /* the paste itself; *out is empty */
	PYPASTE_TRANSCRIPT, /* *out: the code behind its prompts */
	PYPASTE_INDENTED,   /* *out: the paste without its common indentation */
};

/* Find the code in a paste. If it begins with a prompt, `>>> ` or `In [1]: `,
 * *out (caller frees) gets the lines behind such prompts and behind their
 * continuation prompts; all other lines are output. If all lines share an
 * indentation, *out gets them without it; text in strings stays as it is.
 * Otherwise, and without memory: PYPASTE_PLAIN, and *out is empty. */
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
	bool open;   /* the text ends in it: triple quotes, a join */
	bool broken; /* a one-line string without an end */
};

/* The token at `at`, never empty; PYSCAN_END at the end. */
struct pyscan_token pyscan_next(const wchar_t *s, size_t n, size_t at);

/* True if the `n` characters are one of `words`; NULL ends the list. */
bool pyscan_is_word(const wchar_t *const *words, const wchar_t *s, size_t n);

/* True if the `n` characters are a keyword in every context. */
bool pyscan_is_keyword(const wchar_t *s, size_t n);

/* The last token of a text, the one before, and their context. */
struct pyscan_tail {
	struct pyscan_token last, before;
	bool is_key;	  /* `last` stands right behind NAME[ or )[ */
	bool is_argument; /* a call's argument begins with or behind `last` */
	bool is_open;	  /* `last` is a string without an end */
	size_t quote;	  /* offset of its quotes */
	/* In the braces of an f-string: the quotes of the strings around. */
	wchar_t outer[3];
};

/* Find the end of a text; in the braces of an f-string, of their expression. */
struct pyscan_tail pyscan_tail(const wchar_t *s, size_t n);

/* True if `rest`, behind the text of this tail, only continues its last word: a
 * name with characters of names, a string with characters that neither end it
 * nor open a brace. Behind NAME[ the rest may be a whole string or negative
 * number, and the name of an argument may end with an equals sign. */
bool pyscan_continues(const struct pyscan_tail *t, const wchar_t *s, size_t n,
	const wchar_t *rest, size_t rest_n);

/* Write the characters that close the key or file name at the text's end: the
 * quote of an open string, and the bracket if the string or number stands right
 * behind NAME[. A string that ends with / and is no key stays open. */
#define PYSCAN_CLOSER 5
void pyscan_closer(const wchar_t *s, size_t n, char out[static PYSCAN_CLOSER]);

#endif
