/* SPDX-License-Identifier: MIT */
/*
 * utf8.h - UTF-8, wide characters, and which of them a person can see
 *
 * Independent of the locale and the environment.
 */
#ifndef REPL_TEXT_UTF8_H
#define REPL_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

/* Stands for bytes that are no character. */
#define UTF8_BAD 0xFFFD

/* Decode the character at `s`, of which `n` >= 1 bytes are there. Its length
 * and *c; 0 when the bytes begin a character that is cut short; -1 when they
 * cannot (overlong, surrogate, stray). */
int utf8_get(const void *s, size_t n, uint32_t *c);

/* Decode the character at *s, which is before `end`, and step over it. False,
 * and *c is UTF8_BAD, for one byte that is no character. */
bool utf8_next(const char **s, const char *end, uint32_t *c);

/* Encode one character, or UTF8_BAD if `c` is none. Returns the bytes
 * written. */
size_t utf8_put(uint32_t c, char out[static 4]);

/* True of a byte that continues a character. */
static inline bool utf8_continues(char byte)
{
	return ((unsigned char)byte & 0xC0) == 0x80;
}

/* `at`, or the start of the character in whose middle s[at] stands. */
size_t utf8_start(const char *s, size_t at);

/* Characters in `n` bytes; a bad byte counts as one. */
size_t utf8_count(const char *s, size_t n);

/* True of `n` bytes that are valid and hold no control character, C1 included,
 * but those in `controls`. */
bool utf8_is_text(const char *s, size_t n, const char *controls);

/* True of characters that change how the text around them is shown, or cannot
 * be seen: controls, C1, bidi marks and overrides, zero-width, line and
 * paragraph separators, tags. */
bool utf8_is_unseen(uint32_t c);

/* True of the broken bar, with which frame lines begin, and of what looks like
 * it. */
bool utf8_is_bar(uint32_t c);

/* True of a character that source may show as itself. */
bool utf8_is_visible(uint32_t c);

/* True of `n` bytes that are valid and hold such characters alone. */
bool utf8_is_visible_text(const char *s, size_t n);

/* A growing string of wide characters. All zero is empty; `s` is
 * NUL-terminated once set. */
struct utf8_wide {
	wchar_t *s;
	size_t n;
	size_t cap;
};

/* Replace the contents by, or append, `n` characters. 0, or -1 (ENOMEM). */
int utf8_wide_set(struct utf8_wide *t, const wchar_t *s, size_t n);
int utf8_wide_add(struct utf8_wide *t, const wchar_t *s, size_t n);

/* Append UTF-8; each byte that is not valid becomes UTF8_BAD. 0, or -1. */
int utf8_wide_decode(struct utf8_wide *t, const char *s, size_t n);

/* Release the memory; the text is empty and usable again. */
void utf8_wide_free(struct utf8_wide *t);

/* Bytes that `n` characters take in UTF-8. */
size_t utf8_size(const wchar_t *s, size_t n);

/* `n` characters as a new NUL-terminated UTF-8 string (caller frees) of *len
 * bytes; NULL when there is no memory. */
char *utf8_from_wide(const wchar_t *s, size_t n, size_t *len);

#endif
