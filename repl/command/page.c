/* SPDX-License-Identifier: MIT */
/*
 * page.c - tables, and long text a screenful at a time
 *
 * Runs in:   front end, between cells
 * Trusts:    nothing in the text, which is made safe before it is counted
 */
#include "command.h"

#include "repl/edit/editor.h"
#include "repl/session/session.h"
#include "repl/term/keys.h"
#include "repl/term/terminal.h"
#include "repl/text/layout.h"
#include "repl/text/strbuf.h"
#include "repl/text/text.h"

#include <limits.h>
#include <string.h>
#include <termios.h>

/* How many rows a key asks for: 0 to stop, -1 when it means nothing. */
static int rows_for(int key, int page)
{
	switch (key) {
	case ' ':
	case 'f':
	case CTRL('F'):
	case CTRL('V'):
	case KEY_PAGE_DOWN:
		return page;
	case '\r':
	case '\n':
	case 'j':
	case CTRL('N'):
	case KEY_DOWN:
		return 1;
	case 'G':
	case KEY_END:
	case KEY_BOTTOM:
		return INT_MAX;
	case 0:
	case 'q':
	case 'Q':
	case CTRL('C'):
	case CTRL('D'):
		return 0;
	}
	return -1;
}

/* Ask for the next page; rows to show, 0 to stop. */
static int more(struct session *s, int page)
{
	static const char prompt[] = "-- more: Space, Enter, q --";
	int rows;

	terminal_raw(s->term);
	terminal_write(s->term, prompt, sizeof(prompt) - 1, 2000);
	do
		rows = rows_for(session_wait_key(s), page);
	while (rows < 0);
	terminal_puts(s->term, "\r\x1b[K");
	terminal_restore(s->term);
	return rows;
}

/* The end of the first `rows` rows of the text, which ends with a newline. */
static size_t take_rows(const char *text, size_t n, int rows, int columns)
{
	size_t at = 0;

	while (rows > 0 && at < n) {
		const char *nl = strchr(text + at, '\n');
		size_t line = (size_t)(nl - text) - at;
		int width = layout_columns(text + at, line);

		rows -= width > columns ? (width + columns - 1) / columns : 1;
		at = (size_t)(nl - text) + 1;
	}
	return at;
}

static void page_lines(struct session *s, char *text, size_t n)
{
	int page, rows, columns;

	/* The terminal may have another size since the last cell. */
	editor_size(s->editor, &rows, &columns);
	page = s->term->rows && rows > 2 ? rows - 1 : 0;
	if (!page || !s->term->in_tty || !s->term->out_tty || s->term->dumb) {
		session_print(s, text, n);
		return;
	}
	rows = page;
	while (n && rows && !s->over) {
		size_t take = take_rows(text, n, rows, columns);

		session_print(s, text, take);
		text += take;
		n -= take;
		if (n)
			rows = more(s, page);
	}
}

void page_text(struct session *s, const char *text, size_t n)
{
	struct strbuf b = {0};

	text_lines(&b, text, n);
	if (b.n && !b.failed)
		page_lines(s, b.s, b.n);
	strbuf_free(&b);
}

void page_table(struct session *s, struct text_table *t)
{
	struct strbuf b = {0};
	int rows;

	editor_size(s->editor, &rows, &t->width);
	text_table_write(t, &b);
	if (!b.failed)
		session_print(s, b.s, b.n);
	strbuf_free(&b);
}
