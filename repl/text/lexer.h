/* SPDX-License-Identifier: MIT */
/*
 * lexer.h - the words of a command line
 *
 * Words are separated by blanks. '…' keeps everything as it is, "…" knows the
 * escapes \" \\ \n \t, and outside quotes a backslash keeps the next
 * character. Pure: no globbing, no expansion, no environment.
 */
#ifndef REPL_TEXT_LEXER_H
#define REPL_TEXT_LEXER_H

#include <stdbool.h>
#include <stddef.h>

struct err;

#define LEXER_WORDS_MAX 256
#define LEXER_BYTES_MAX (1 << 20)

struct lexer_word {
	char *s;	   /* the word without its quotes */
	char *pattern;	   /* the same for fnmatch(3): quoted * ? [ \ escaped */
	bool is_pattern;   /* has an unquoted * ? or [ */
	size_t start, end; /* its place in the line, with its quotes */
};

struct lexer_words {
	struct lexer_word *v;
	int n;
	char open; /* a quote (or backslash) left open at the end, or 0 */
};

/* Split `n` bytes. 0, or -1: an open quote, a control character, too many
 * words. Either way the words up to there are filled in (completion needs
 * them), and the caller ends with lexer_words_free(). */
int lexer_split(
	const char *s, size_t n, struct lexer_words *words, struct err *e);

/* Free the words; safe on all zero. */
void lexer_words_free(struct lexer_words *words);

/* `s` quoted so that lexer_split() returns it as one word (caller frees): with
 * the quote `open` if the person has typed one, else with the least that
 * works. NULL when there is no memory, or no quoting can hold the bytes. */
char *lexer_quote(const char *s, char open);

/* True of a session command: the first character that is not a blank is a
 * colon. */
bool lexer_is_command(const char *s, size_t n);

#endif
