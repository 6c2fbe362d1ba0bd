/* SPDX-License-Identifier: MIT */
/*
 * wide.h - text as the editor holds it: wide characters, UTF-8 outside
 */
#ifndef REPL_TEXT_WIDE_H
#define REPL_TEXT_WIDE_H

#include <stddef.h>
#include <wchar.h>

/* A growing string. All zero is empty; `s` is NUL-terminated once set. */
struct wide {
	wchar_t *s;
	size_t n;
	size_t cap;
};

/* Replace the contents by, or append, `n` characters. 0, or -1 (ENOMEM). */
int wide_set(struct wide *t, const wchar_t *s, size_t n);
int wide_add(struct wide *t, const wchar_t *s, size_t n);

/* Append UTF-8; each byte that is not valid becomes UTF8_BAD. 0, or -1. */
int wide_add_utf8(struct wide *t, const char *s, size_t n);

/* Release the memory; the text is empty and usable again. */
void wide_free(struct wide *t);

/* Bytes that `n` characters take in UTF-8. */
size_t wide_utf8_size(const wchar_t *s, size_t n);

/* `n` characters as a new NUL-terminated UTF-8 string (caller frees) of *len
 * bytes; NULL when there is no memory. */
char *wide_to_utf8(const wchar_t *s, size_t n, size_t *len);

#endif
