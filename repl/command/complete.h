/* SPDX-License-Identifier: MIT */
/*
 * complete.h - what Tab offers
 */
#ifndef REPL_COMMAND_COMPLETE_H
#define REPL_COMMAND_COMPLETE_H

#include <stddef.h>

struct complete_list;

/* Candidates for the text before the cursor; `ctx` is the session. The
 * editor's callback: 0, or not 0 for none. */
int complete_cell(void *ctx, const char *text, size_t n, size_t cursor,
	struct complete_list *out);

/* Read a guest's answer: first line the bytes to replace, then a candidate a
 * line. Pure. 0, or -1: it makes no sense. */
int complete_parse_answer(
	const char *answer, size_t n, size_t cursor, struct complete_list *out);

#endif
