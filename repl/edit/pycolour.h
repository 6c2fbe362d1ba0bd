/* SPDX-License-Identifier: MIT */
/*
 * pycolour.h - a cell in colours
 *
 * Pure, and a help for reading only: nothing rests on it.
 */
#ifndef REPL_EDIT_PYCOLOUR_H
#define REPL_EDIT_PYCOLOUR_H

#include <stddef.h>
#include <wchar.h>

enum pycolour {
	PYCOLOUR_NONE,
	PYCOLOUR_KEYWORD, /* match, case, type and _ only where they are ones */
	PYCOLOUR_STRING,  /* without the fields of an f-string */
	PYCOLOUR_COMMENT,
	PYCOLOUR_NUMBER,
	PYCOLOUR_COMMAND, /* the name of a session command */
	PYCOLOUR_MATCH,	  /* a bracket and its other half: set elsewhere */
	PYCOLOUR_BUILTIN,
};

/* Fill colours[0..n) with an enum pycolour for each character. */
void pycolour_fill(const wchar_t *s, size_t n, unsigned char *colours);

#endif
