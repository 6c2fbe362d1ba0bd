/* SPDX-License-Identifier: MIT */
/*
 * highlight.h - which characters of a cell have which colour
 */
#ifndef REPL_EDIT_HIGHLIGHT_H
#define REPL_EDIT_HIGHLIGHT_H

#include <stddef.h>
#include <wchar.h>

enum highlight {
	HIGHLIGHT_NONE,
	HIGHLIGHT_KEYWORD,
	HIGHLIGHT_STRING,
	HIGHLIGHT_COMMENT,
	HIGHLIGHT_NUMBER,
	HIGHLIGHT_COMMAND,
};

/* Fill attr[0..n) with a value of enum highlight for each character. */
void highlight_cell(const wchar_t *s, size_t n, unsigned char *attr);

/* The escape sequence that begins a colour (the one of NONE ends them all). */
const char *highlight_sgr(enum highlight h);

#endif
