/* SPDX-License-Identifier: MIT */
/*
 * pyscan.h - Python's tokens, as far as an editor needs them
 *
 * For colours (pycolour.h), lines and blocks (pyblock.h), pastes (pypaste.h),
 * and for what may stand behind a text. Pure. Nothing here judges correctness.
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

/* Whether the `n` characters are one of the words, whose list ends with
 * NULL. */
bool pyscan_is_word(const wchar_t *const *words, const wchar_t *s, size_t n);

/* Whether they are a word that Python never takes for a name. */
bool pyscan_is_keyword(const wchar_t *s, size_t n);

/* What a text ends with, for what may be put behind it. */
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

/* Whether `rest`, put behind the text of this tail, only continues its last
 * word: a name goes on with characters of names, a string with what neither
 * ends it nor opens a brace. Behind NAME[ the rest may be a whole string or
 * number, and the name of an argument ends with an equals sign. */
bool pyscan_continues(const struct pyscan_tail *t, const wchar_t *s, size_t n,
	const wchar_t *rest, size_t rest_n);

/* Find what is still missing behind a key or a file name that the text ends
 * with: the quote of an open string, and the bracket if the string or number
 * stands right behind NAME[. Behind a directory nothing is missing. */
#define PYSCAN_CLOSER 5
void pyscan_closer(const wchar_t *s, size_t n, char out[static PYSCAN_CLOSER]);

#endif
