/* SPDX-License-Identifier: MIT */
/*
 * wide.h - text as the editor holds it: wide characters, UTF-8 outside
 *
 * Independent of the locale: the same bytes mean the same characters whatever
 * the environment says.
 */
#ifndef REPL_TEXT_WIDE_H
#define REPL_TEXT_WIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <wchar.h>

#define WIDE_BAD_CHAR ((wchar_t)0xFFFD)

/* A growing string. All zero is empty; `s` is NUL-terminated once set. */
struct wide {
	wchar_t *s;
	size_t n;
	size_t cap;
};

/* Replace the contents by, or append, `n` characters. 0, or -1 (ENOMEM). */
int wide_set(struct wide *t, const wchar_t *s, size_t n);
int wide_add(struct wide *t, const wchar_t *s, size_t n);

/* Append UTF-8; every byte that is not valid becomes U+FFFD. 0, or -1. */
int wide_add_utf8(struct wide *t, const char *s, size_t n);

/* Release the memory; the text is empty and usable again. */
void wide_free(struct wide *t);

/* Encode one character; bytes written. What is not a character, U+FFFD. */
size_t utf8_put(wchar_t c, char out[4]);

/* Decode one character from `n` > 0 bytes. Bytes taken, or 0 when they are
 * not valid UTF-8 (overlong, surrogate, cut short). */
size_t utf8_get(const char *s, size_t n, wchar_t *c);

/* Bytes that `n` characters take in UTF-8. */
size_t utf8_size(const wchar_t *s, size_t n);

/* Characters in `n` bytes of UTF-8, a bad byte counting as one. */
size_t utf8_count(const char *s, size_t n);

/* `n` characters as a new NUL-terminated UTF-8 string (caller frees) of *len
 * bytes; NULL when there is no memory. */
char *utf8_from(const wchar_t *s, size_t n, size_t *len);

/* Whether a character may be shown as itself: not a control, a line
 * separator, a surrogate, nor one that hides or reorders what is near it. */
bool wide_is_visible(wchar_t c);

/* Whether `n` bytes are UTF-8 of visible characters only. */
bool utf8_is_visible(const char *s, size_t n);

#endif
