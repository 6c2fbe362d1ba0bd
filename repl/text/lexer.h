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
	char *s;	   /* the word, quotes taken off */
	char *pattern;	   /* the same for fnmatch(3): quoted * ? [ \ escaped */
	bool is_pattern;   /* an unquoted * ? or [ is in it */
	size_t start, end; /* where it stands in the line, quotes included */
};

struct lexer_words {
	struct lexer_word *v;
	int n;
	char open; /* the quote (or backslash) left open at the end, or 0 */
};

/* Split `n` bytes. 0, or -1: a quote left open, a NUL or another control
 * character, too many words. The words up to there are filled in either way
 * (completion wants them); lexer_words_free() always. */
int lexer_split(
	const char *s, size_t n, struct lexer_words *words, struct err *e);

/* Free the words; safe on all zero. */
void lexer_words_free(struct lexer_words *words);

/* `s` quoted so that lexer_split() gives it back as one word, in the quote
 * `open` where the person has begun one, else as it needs (caller frees).
 * NULL when there is no memory, or no quoting can hold its bytes. */
char *lexer_quote(const char *s, char open);

/* Whether a cell is a session command: its first character that is not a
 * blank is a colon. */
bool lexer_is_command(const char *s, size_t n);

#endif
