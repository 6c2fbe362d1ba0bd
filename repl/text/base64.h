/* SPDX-License-Identifier: MIT */
/*
 * base64.h - bytes as text
 */
#ifndef REPL_TEXT_BASE64_H
#define REPL_TEXT_BASE64_H

#include <stddef.h>

struct strbuf;

/* Append `n` bytes, encoded with padding and without line ends. */
void base64_add(struct strbuf *b, const void *p, size_t n);

/* Room that base64_decode() needs for `n` characters. */
#define BASE64_ROOM(n) ((n) / 4 * 3 + 3)

/* Decode `n` characters into `out`. Blanks and line ends are passed over, and
 * everything else must be as base64_add() writes it. The length in *out_n; -1
 * for anything else. */
int base64_decode(const char *s, size_t n, char *out, size_t *out_n);

#endif
