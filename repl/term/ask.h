/* SPDX-License-Identifier: MIT */
/*
 * ask.h - what the person's terminal can draw
 *
 * The terminal is asked once, when the first picture is to be drawn. Every
 * terminal answers the last question (DA1), and answers come in order: with
 * that answer all have come. Keys that are typed meanwhile stay keys. A
 * terminal that answers late is heard late: its answers never become keys.
 */
#ifndef REPL_TERM_ASK_H
#define REPL_TERM_ASK_H

#include "repl/text/strbuf.h"

#include <stdbool.h>
#include <stddef.h>

struct terminal;

/* Longest answer. */
#define ASK_MAX 256
/* How long the answers may take: a slow line's way there and back. */
#define ASK_WAIT_MS 500

/* Caller's storage; all zero has not asked. Only ask.c writes it. */
struct ask {
	int asked;		   /* how often */
	bool answered;		   /* all of it */
	bool kitty, iterm2, sixel; /* protocols that the terminal has */
	bool true_colour;	   /* 24 bits */
	int registers;		   /* colours of a sixel picture; 0: unknown */
	int cell_width, cell_height; /* in pixels; 0: unknown */
	size_t n;		     /* of an answer that has begun */
	char begun[ASK_MAX];
};

/* What to write, at the beginning of an empty row, before ask_wait(): the
 * questions, and what erases the row, where a terminal prints what it does not
 * know. */
void ask_write(struct ask *a, struct strbuf *out);

/* Wait for the answers. Other keys that came are added to `keys`. */
void ask_wait(struct ask *a, const struct terminal *t, struct strbuf *keys);

/* Add to `keys` what of these bytes is no late answer. */
void ask_filter(struct ask *a, const char *s, size_t n, struct strbuf *keys);

/* Add to `keys` what is held as a beginning of an answer: somebody else reads
 * the terminal from now on. */
void ask_give_back(struct ask *a, struct strbuf *keys);

/* Whether the terminal is to be asked, because it never was, or was too slow to
 * be heard. */
bool ask_is_due(const struct ask *a);

#endif
