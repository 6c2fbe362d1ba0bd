/* SPDX-License-Identifier: MIT */
/*
 * coding.h - the encoding that a script says it is in
 *
 * Python reads a file in the encoding that one of its first two lines declares
 * (PEP 263). Cells are UTF-8. Pure.
 */
#ifndef REPL_COMMAND_CODING_H
#define REPL_COMMAND_CODING_H

#include <stddef.h>

struct err;

/* Whether Python would read the `n` bytes of a script as UTF-8, to the same
 * text. 0, or -1 with an error that says which `name` it is, and where. */
int coding_check(const char *s, size_t n, const char *name, struct err *e);

#endif
