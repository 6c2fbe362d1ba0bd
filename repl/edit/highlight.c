/* SPDX-License-Identifier: MIT */
/*
 * highlight.c - the colours of a cell
 *
 * Runs in:   the front end
 * Holds:     nothing
 * Trusts:    nothing: any text may be in the cell
 * Leaves:    nothing
 */
#include "highlight.h"

#include <string.h>

#include "pyscan.h"

static enum highlight token_colour(
	const wchar_t *s, const struct pyscan_token *t)
{
	switch (t->kind) {
	case PYSCAN_NAME:
		return pyscan_is_keyword(s + t->start, t->end - t->start)
			       ? HIGHLIGHT_KEYWORD
			       : HIGHLIGHT_NONE;
	case PYSCAN_STRING:
		return HIGHLIGHT_STRING;
	case PYSCAN_COMMENT:
		return HIGHLIGHT_COMMENT;
	case PYSCAN_NUMBER:
		return HIGHLIGHT_NUMBER;
	case PYSCAN_END:
	case PYSCAN_NEWLINE:
	case PYSCAN_SPACE:
	case PYSCAN_JOIN:
	case PYSCAN_OPEN:
	case PYSCAN_CLOSE:
	case PYSCAN_OPERATOR:
		break;
	}
	return HIGHLIGHT_NONE;
}

/* A session command: its name, and nothing of the rest. */
static void highlight_command(const wchar_t *s, size_t n, unsigned char *attr)
{
	memset(attr, HIGHLIGHT_NONE, n);
	for (size_t i = 0; i < n && s[i] != ' ' && s[i] != '\n'; i++)
		attr[i] = HIGHLIGHT_COMMAND;
}

void highlight_cell(const wchar_t *s, size_t n, unsigned char *attr)
{
	if (n && s[0] == ':') {
		highlight_command(s, n, attr);
		return;
	}
	for (size_t at = 0; at < n;) {
		struct pyscan_token t = pyscan_next(s, n, at);

		memset(attr + at, (int)token_colour(s, &t), t.end - at);
		at = t.end;
	}
}

const char *highlight_sgr(enum highlight h)
{
	static const char *const sgr[] = {
		[HIGHLIGHT_NONE] = "\033[0m",
		[HIGHLIGHT_KEYWORD] = "\033[34m",
		[HIGHLIGHT_STRING] = "\033[32m",
		[HIGHLIGHT_COMMENT] = "\033[90m",
		[HIGHLIGHT_NUMBER] = "\033[36m",
		[HIGHLIGHT_COMMAND] = "\033[35m",
	};

	return sgr[h];
}
