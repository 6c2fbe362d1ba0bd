/* SPDX-License-Identifier: MIT */
/*
 * lines.h - foreign text of many lines, made harmless
 */
#ifndef REPL_TEXT_LINES_H
#define REPL_TEXT_LINES_H

#include <stddef.h>

struct strbuf;

/* Append `n` bytes of foreign text, each line as text_safe() shows it, but
 * with blanks for a tab, up to the next of the terminal's stops. The last line
 * gets its newline, too. */
void text_lines(struct strbuf *b, const char *text, size_t n);

#endif
