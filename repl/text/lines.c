/* SPDX-License-Identifier: MIT */
/*
 * lines.c - foreign text of many lines, made harmless
 *
 * Runs in:   the front end
 * Trusts:    nothing in the text
 * Leaves:    lines that a terminal shows and does not obey
 */
#include "lines.h"

#include "strbuf.h"
#include "table.h"
#include "text.h"
#include "utf8.h"

#include <string.h>

/* So many foreign bytes fit, made safe, into four times as many and more. */
#define PART 512
#define TAB 8

/* What stands between two tabs; the columns it takes. */
static int add_safe(struct strbuf *b, const char *s, size_t n)
{
	char safe[8 * PART];
	int columns = 0;

	while (n) {
		size_t part = n < PART ? n : PART;

		if (part < n)
			part = utf8_start(s, part);
		strbuf_add(b, safe, text_safe(safe, sizeof(safe), s, part));
		columns += table_columns(safe);
		s += part;
		n -= part;
	}
	return columns;
}

static void add_line(struct strbuf *b, const char *s, size_t n)
{
	int column = 0;

	for (;;) {
		const char *tab = memchr(s, '\t', n);
		size_t len = tab ? (size_t)(tab - s) : n;

		column = (column + add_safe(b, s, len)) % TAB;
		if (!tab)
			break;
		strbuf_printf(b, "%*s", TAB - column, "");
		column = 0;
		s += len + 1;
		n -= len + 1;
	}
	strbuf_puts(b, "\n");
}

void text_lines(struct strbuf *b, const char *text, size_t n)
{
	while (n) {
		const char *nl = memchr(text, '\n', n);
		size_t line = nl ? (size_t)(nl - text) : n;

		add_line(b, text, line - (line && text[line - 1] == '\r'));
		text += nl ? line + 1 : line;
		n -= nl ? line + 1 : line;
	}
}
