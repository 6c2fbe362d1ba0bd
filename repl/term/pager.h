/* SPDX-License-Identifier: MIT */
/*
 * pager.h - a long text, a screenful at a time
 *
 * Pure: takes a text, a size and keys, gives rows and what draws them. The
 * terminal's last row is the pager's own.
 */
#ifndef REPL_TERM_PAGER_H
#define REPL_TERM_PAGER_H

#include "repl/text/utf8.h"

#include <stdbool.h>
#include <stddef.h>

struct key;
struct strbuf;

/* Caller's storage; all of it is the pager's own. */
struct pager {
	const char *text;
	size_t n;
	int rows, columns;

	size_t *starts; /* where rows of the text begin, as far as is known */
	size_t nstarts;
	bool whole; /* all of them are known */
	size_t top; /* the first row on the screen */

	struct utf8_wide sought; /* what n and N search for */
	bool exact;		 /* it holds a capital */
	bool upwards;		 /* it was searched for with ? */
	size_t found;		 /* where it was found last */
	struct utf8_wide typed;	 /* what is being typed behind / or ? */
	char asked;		 /* that character; 0: nothing is typed */
	const char *note;	 /* in place of the usual last row; or NULL */

	bool drawn; /* the screen shows rows from `drawn_top` on */
	size_t drawn_top;
};

/* Begin at the top of `n` bytes (borrowed), at least one, that text_lines()
 * made, on a terminal of that size. */
void pager_open(
	struct pager *p, const char *text, size_t n, int rows, int columns);
void pager_close(struct pager *p);

/* Whether the text and the last row fit on the screen. */
bool pager_fits(struct pager *p);

/* The terminal has another size. */
void pager_resize(struct pager *p, int rows, int columns);

/* A key was pressed. False: the pager is to be left. */
bool pager_press(struct pager *p, const struct key *key);

/* Append row `i` of the screen, what is sought in reverse video. */
void pager_add_row(struct pager *p, int i, struct strbuf *b);

/* Append the last row. */
void pager_add_status(struct pager *p, struct strbuf *b);

/* Append what brings the terminal from the last drawing to this one. */
void pager_draw(struct pager *p, struct strbuf *b);

#endif
