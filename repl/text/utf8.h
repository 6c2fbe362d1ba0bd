/* SPDX-License-Identifier: MIT */
/*
 * utf8.h - UTF-8 in and out, and which characters a person can see
 *
 * Independent of the locale and the environment.
 */
#ifndef REPL_TEXT_UTF8_H
#define REPL_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Stands for bytes that are no character. */
#define UTF8_BAD 0xFFFD

/* Decode the character at `s`, of which `n` >= 1 bytes are there. Its length
 * and *c; 0 when the bytes begin a character that is cut short; -1 when they
 * cannot (overlong, surrogate, stray). */
int utf8_get(const void *s, size_t n, uint32_t *c);

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

/* True of a character that source may show as itself. */
bool utf8_is_visible(uint32_t c);

/* True of `n` bytes that are valid and hold such characters alone. */
bool utf8_is_visible_text(const char *s, size_t n);

#endif
