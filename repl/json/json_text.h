/* SPDX-License-Identifier: MIT */
/*
 * json_text.h - any bytes as a JSON string
 */
#ifndef REPL_JSON_JSON_TEXT_H
#define REPL_JSON_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct strbuf;

/* Whether these bytes are characters. */
bool json_text_is_valid(const char *s, size_t n);

/* Append a string with its quotes, in ASCII: it can be shown on a terminal.
 * Bytes that are no character become U+FFFD. */
void json_text_add(struct strbuf *b, const char *s, size_t n);

#endif
