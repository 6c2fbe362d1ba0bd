/* SPDX-License-Identifier: MIT */
/*
 * text.h - text: characters, layout, buffers
 *
 *	base64.c	bytes as text
 *	layout.c	text as the rows and columns of a terminal
 *	lexer.c		the words of a command line
 *	strbuf.c	a growing byte string
 *	text.c		text for people: foreign text made safe, numbers, tables
 *	utf8.c		UTF-8, wide characters, and which of them are visible
 */
#ifndef REPL_TEXT_TEXT_H
#define REPL_TEXT_TEXT_H

#include "jail/base/array.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wchar.h>

struct err;
struct strbuf;

/* ---- base64.c ---- */

/* Append `n` bytes, encoded with padding and without line ends. */
void base64_add(struct strbuf *b, const void *p, size_t n);

/* Bytes that base64_decode() may write for `n` characters. */
#define BASE64_ROOM(n) ((n) / 4 * 3 + 3)

/* Decode `n` characters into `out`, which holds BASE64_ROOM(n) bytes. Blanks
 * and line ends are skipped; the rest must be as base64_add() writes it. 0 and
 * the length in *out_n, or -1. */
int base64_decode(const char *s, size_t n, char *out, size_t *out_n);

/* ---- layout.c: pure ---- */

/* A character as a terminal shows it. */
struct layout_glyph {
	char s[40]; /* UTF-8, NUL-terminated; printable characters only */
	int n;	    /* bytes */
	int width;  /* columns; 0: drawn on the character before */
};

/* Find how to show `c` at column `col` (tabs depend on it) of a terminal `cols`
 * wide. A control becomes ^X. A character becomes <XXXX> if it cannot be shown,
 * would reorder the line or looks like the bar of frame lines, and a question
 * mark if it is wider than the terminal. */
void layout_glyph(wchar_t c, int col, int cols, struct layout_glyph *g);

struct layout_row {
	size_t start, end; /* its characters: offsets in the text */
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
/* How many of `n` bytes of UTF-8 fit into `room` columns. */
size_t layout_fit(const char *s, size_t n, int room);
void layout_free(struct layout *l);

/* The start of the user's character (a base and its marks) before `at`, and
 * the end of the one at `at`. */
size_t layout_prev(const wchar_t *s, size_t at);
size_t layout_next(const wchar_t *s, size_t n, size_t at);

/* ---- lexer.c ---- */

/*
 * Blanks separate words. Characters in '…' stay as they are, "…" knows the
 * escapes \" \\ \n \t, and outside quotes a backslash makes the next character
 * an ordinary one. Pure: no globbing, no expansion, no environment.
 */

#define LEXER_WORDS_MAX 256
#define LEXER_BYTES_MAX (1 << 20)

struct lexer_word {
	char *s;       /* the word without its quotes */
	char *pattern; /* as a pattern for fnmatch(3): quoted * ? [ \ escaped */
	bool is_pattern;   /* has an unquoted * ? or [ */
	size_t start, end; /* its place in the line, with its quotes */
};

struct lexer_words {
	struct lexer_word *v;
	int n;
	char open; /* a quote or backslash open at the end, or 0 */
};

/* Split `n` bytes. 0, or -1 with e: an open quote, a control character, too
 * many words or bytes, no memory. After an open quote all words are filled in
 * (completion needs them). The caller always ends with lexer_words_free(). */
int lexer_split(
	const char *s, size_t n, struct lexer_words *words, struct err *e);
/* Safe on all zero. */
void lexer_words_free(struct lexer_words *words);

/* Quote `s` so that lexer_split() returns it as one word (caller frees): with
 * the quote `open` if the person has typed one, else with the least quoting.
 * NULL: no memory, or no quoting can hold the bytes. */
char *lexer_quote(const char *s, char open);

/* True if the text is a command: a colon is its first non-blank. */
bool lexer_is_command(const char *s, size_t n);

/* ---- strbuf.c ---- */

/*
 * All zero is empty. After a failed allocation appends do nothing, so that the
 * caller checks `failed` once, before using the bytes.
 */

struct strbuf {
	char *s;
	size_t n;
	size_t cap;
	bool failed;
};

/* Append `n` bytes, a string, a formatted string. A NUL always follows. */
void strbuf_add(struct strbuf *b, const void *p, size_t n);
void strbuf_puts(struct strbuf *b, const char *s);
void strbuf_printf(struct strbuf *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Drop the first `n` bytes, at most b->n. */
void strbuf_cut(struct strbuf *b, size_t n);
/* Release the memory; `b` is empty and may be used again. */
void strbuf_free(struct strbuf *b);

/* The bytes, borrowed from `b`; "" where there are none. */
static inline const char *strbuf_text(const struct strbuf *b)
{
	return b->n ? b->s : "";
}

/* ---- lists of strings: all in this header ---- */

/* Owned strings. All zero is empty. */
struct strlist {
	char **items;
	size_t n;
};

/* Append a copy. 0, or -1 with errno. */
static inline int strlist_add(struct strlist *l, const char *s)
{
	if (array_grow(&l->items, l->n, sizeof(*l->items)) < 0)
		return -1;
	l->items[l->n] = strdup(s);
	if (!l->items[l->n])
		return -1;
	l->n++;
	return 0;
}

static inline bool strlist_has(const struct strlist *l, const char *s)
{
	size_t i = 0;

	while (i < l->n && strcmp(l->items[i], s) != 0)
		i++;
	return i < l->n;
}

/* For qsort(): the order of two strings, by bytes in any locale. */
static inline int strlist_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static inline void strlist_sort(struct strlist *l)
{
	if (l->n)
		qsort(l->items, l->n, sizeof(*l->items), strlist_compare);
}

/* Free the items and empty the list. */
static inline void strlist_fini(struct strlist *l)
{
	while (l->n)
		free(l->items[--l->n]);
	free(l->items);
	l->items = NULL;
}

/* ---- text.c: pure; only the columns of a character depend on the locale ----
 */

static inline bool text_is_blank(wchar_t c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

/* Enough for any text_size() or text_time(). */
#define TEXT_HUMAN 48

/* Write `n` bytes of foreign text into `buf` as part of one line of ours.
 * Controls, unseen characters and those like the bar of frame lines become \n,
 * \t, \r, \x1b, \xa6, \u202e, \U000e0041; an invalid byte \xNN. Text that does
 * not fit ends in "…". `buf` is always terminated; `size` is at least 8.
 * Returns the bytes written. */
size_t text_safe(char *buf, size_t size, const char *s, size_t n);

/* Append `n` bytes of foreign text as lines, safe as those of text_safe(), with
 * blanks for tabs and no \r at an end. The last line ends in a newline, too. */
void text_lines(struct strbuf *b, const char *text, size_t n);

/* "12 B", "12.4 KiB", "512 MiB": whole if that is exact, else with one decimal.
 * Returns `buf`. */
const char *text_size(char buf[static TEXT_HUMAN], uint64_t bytes);

/* "250 ms", "10 s", "1.5 h", "75 s": in the largest unit that is exact to one
 * decimal; rounded if the exact number would be long. Returns `buf`. */
const char *text_time(char buf[static TEXT_HUMAN], int64_t ms);

/* "1 file", "3 files"; `many` is an irregular plural of `one`, or NULL. Returns
 * `buf`. */
const char *text_count(
	char *buf, size_t size, uint64_t n, const char *one, const char *many);

/* Write the moment `t`, seen from `now`, in local time: "today 18:00", "Friday
 * 18:00" within six days, "4 December 18:00", "4 December 2027 18:00"; `brief`
 * has "Fri" and "4 Dec". Returns `buf`. */
const char *text_moment(
	char buf[static TEXT_HUMAN], time_t t, time_t now, bool brief);

/* "2026-12-04 18:00", with the seconds if there are some. Returns `buf`. */
const char *text_minute(char buf[static TEXT_HUMAN], time_t t);

/* "14:02" within the last twenty hours, before that "2026-12-04". Returns
 * `buf`.
 */
const char *text_since(char buf[static TEXT_HUMAN], time_t t);

/* "1st", "2nd", "11th". Returns `buf`. */
const char *text_ordinal(char buf[static TEXT_HUMAN], uint64_t n);

#define TEXT_COLUMNS_MAX 9

/* Rows of cells for a terminal of any width. A column that does not fit beside
 * the others goes below them, indented; no word is broken. The caller fills the
 * first part with cells that are safe for a terminal; all else is zero at the
 * start. */
struct text_table {
	int width;	/* columns of the terminal; 0: none, no line folds */
	int columns;	/* at most TEXT_COLUMNS_MAX */
	unsigned right; /* bit i: column i is aligned to the right */
	bool cut;	/* cut a too long last cell; else wrap it */
	int below;	/* indent of cells that go below; 0: 2 */

	char **cells; /* owned; the last of each row is its note */
	size_t n;
	bool failed;
};

/* Add a row of t->columns cells (copied); NULL is empty. */
void text_table_add(struct text_table *t, const char *const *cells);
/* Put lines (copied) below the last row, indented but not folded, so that a
 * person can copy them. NULL or "": none. */
void text_table_note(struct text_table *t, const char *text);
/* Append the rows to `b` and free them; b->failed if memory ran out. */
void text_table_write(struct text_table *t, struct strbuf *b);

/* Append the start of `s` that fits into `room` columns, with "…" if cut. */
void text_cut(struct strbuf *b, const char *s, int room);

/* Append `text` and a newline in lines of at most `width` columns (0: one
 * line). The cursor is at column `at`, where further lines begin. No line
 * begins with the dot that joins two parts. */
void text_wrap(struct strbuf *b, const char *text, int at, int width);

/* ---- utf8.c: independent of the locale and the environment ---- */

/* Replaces bytes that are no character. */
#define UTF8_BAD 0xFFFD

/* Decode the character at `s`, where `n` >= 1 bytes are. Returns its length,
 * and *c; 0: the bytes begin a character but are cut short; -1: they are no
 * UTF-8 (overlong, surrogate, stray). */
int utf8_get(const void *s, size_t n, uint32_t *c);

/* Decode the character at *s, which is before `end`, and step over it. For a
 * byte that is no character: false, and *c is UTF8_BAD. */
bool utf8_next(const char **s, const char *end, uint32_t *c);

/* Encode `c`, or UTF8_BAD if `c` is no character. Returns the bytes written. */
size_t utf8_put(uint32_t c, char out[static 4]);

/* True if the byte continues a character. */
static inline bool utf8_continues(char byte)
{
	return ((unsigned char)byte & 0xC0) == 0x80;
}

/* `at`, or if s[at] is inside a character, that character's start. */
size_t utf8_start(const char *s, size_t at);
/* Characters in `n` bytes; a bad byte counts as one. */
size_t utf8_count(const char *s, size_t n);

/* True if the `n` bytes are valid and hold no control character, C1 included,
 * except those in `controls`. */
bool utf8_is_text(const char *s, size_t n, const char *controls);
/* True if a person cannot see `c`, or `c` changes how the text around it is
 * shown: controls, C1, bidi marks and overrides, zero-width, line and paragraph
 * separators, tags. */
bool utf8_is_unseen(uint32_t c);
/* True if `c` is the broken bar that begins frame lines, or looks like it. */
bool utf8_is_bar(uint32_t c);
/* True if source code may show `c` as itself. */
bool utf8_is_visible(uint32_t c);
/* True if the `n` bytes are valid, and every character is visible. */
bool utf8_is_visible_text(const char *s, size_t n);

/* A growing string of wide characters. All zero is empty; `s` is
 * NUL-terminated once set. */
struct utf8_wide {
	wchar_t *s;
	size_t n;
	size_t cap;
};

/* Replace the contents by `n` characters, or append them. 0, or -1 (ENOMEM). */
int utf8_wide_set(struct utf8_wide *t, const wchar_t *s, size_t n);
int utf8_wide_add(struct utf8_wide *t, const wchar_t *s, size_t n);

/* Append `n` bytes of UTF-8; each invalid byte becomes UTF8_BAD. 0, or -1. */
int utf8_wide_decode(struct utf8_wide *t, const char *s, size_t n);
/* Release the memory; the text is empty and usable again. */
void utf8_wide_free(struct utf8_wide *t);

/* Bytes that `n` characters take in UTF-8. */
size_t utf8_size(const wchar_t *s, size_t n);

/* `n` characters as a new NUL-terminated UTF-8 string (caller frees) of *len
 * bytes; NULL when there is no memory. */
char *utf8_from_wide(const wchar_t *s, size_t n, size_t *len);

#endif
