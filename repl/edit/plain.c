/* SPDX-License-Identifier: MIT */
/*
 * plain.c - cells from lines, where there is no terminal to draw on
 *
 * Runs in:   the front end, inside editor_read()
 * Holds:     one cell's lines
 * Trusts:    no byte of the input
 * Leaves:    the same cells that the drawn editor would give
 */
#include "impl.h"
#include "jail/base/err.h"
#include "repl/term/output.h"
#include "repl/text/utf8.h"

#include <stdio.h>

static void add_prompt(struct strbuf *b, const struct wide *p)
{
	char one[4];

	for (size_t i = 0; i < p->n; i++)
		strbuf_add(b, one, utf8_put(p->s[i], one));
}

/* A prompt, and text that the cell begins with: it can only be added to. In
 * one write, or the terminal's echo would get between. */
static void plain_prompt(
	struct editor *ed, const struct wide *p, const struct wide *cell)
{
	struct strbuf b = {0};

	add_prompt(&b, p);
	for (size_t i = 0; cell && i < cell->n; i++) {
		struct layout_glyph g = {.s = "\n", .n = 1};

		if (cell->s[i] != '\n')
			layout_glyph(cell->s[i], 0, 80, &g);
		strbuf_add(&b, g.s, (size_t)g.n);
		if (cell->s[i] == '\n')
			add_prompt(&b, &ed->prompt2);
	}
	if (ed->out_is_tty)
		view_write(ed, b.s, b.n);
	strbuf_free(&b);
	ed->asked = p;
	ed->unasked = false;
}

void plain_draw(struct editor *ed)
{
	if (ed->unasked)
		plain_prompt(ed, ed->asked, NULL);
}

/* Add a line, its end included, to the cell. 1, 0 at the end of the input,
 * -1: the result is set. *fits becomes false when the cell is too long. */
static int plain_line(struct editor *ed, struct wide *cell, bool *fits)
{
	for (;;) {
		while (ed->ready_at < ed->ready_end) {
			wchar_t c = ed->ready[ed->ready_at++].c;

			if (cell->n >= ed->max_bytes)
				*fits = false;
			if (c && *fits && wide_add(cell, &c, 1) < 0)
				return err_set(ed->err, "out of memory");
			if (c == '\n')
				return 1;
		}
		if (ed->queue_at == ed->queue_end) {
			int r = input_fill(ed, -1);

			if (r < 0)
				return ed->result == EDITOR_EOF ? 0 : -1;
		}
		/* As in a paste: text only, no keys, one kind of line end. */
		ed->keys.paste = true;
		ed->ready_at = 0;
		ed->ready_end = keys_feed(
			&ed->keys, ed->queue[ed->queue_at++], ed->ready);
	}
}

static enum editor_result plain_too_long(struct editor *ed, struct wide *cell)
{
	struct output_look look = {ed->colour, ed->view.cols, "\n"};
	struct strbuf b = {0};
	char text[80];

	snprintf(text, sizeof(text), "a cell has at most %zu bytes: not run",
		ed->max_bytes);
	output_frame(&b, text, &look);
	view_write(ed, b.s, b.n);
	strbuf_free(&b);
	cell->n = 0;
	return EDITOR_CELL;
}

enum editor_result plain_read(struct editor *ed, struct wide *cell)
{
	bool fits = true;
	int r;

	ed->result = EDITOR_ERROR;
	wide_set(cell, ed->kept.s, ed->kept.n);
	ed->kept.n = 0;
	plain_prompt(ed, &ed->prompt, cell);
	for (;;) {
		r = plain_line(ed, cell, &fits);
		if (r < 0)
			break;
		if (r == 0 && cell->n == 0) {
			if (ed->out_is_tty)
				view_write(ed, "\n", 1);
			return EDITOR_EOF;
		}
		if (!fits)
			return plain_too_long(ed, cell);
		if (r == 0 || enter_runs(ed, cell->s, cell->n - 1))
			return EDITOR_CELL;
		plain_prompt(ed, &ed->prompt2, NULL);
	}
	if (ed->result == EDITOR_EVENT)
		wide_set(&ed->kept, cell->s, cell->n);
	if (ed->result == EDITOR_INTERRUPT) {
		ed->queue_at = ed->queue_end;
		view_write(ed, "\n", 1);
	}
	return ed->result;
}
