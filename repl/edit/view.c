/* SPDX-License-Identifier: MIT */
/*
 * view.c - drawing the cell
 *
 * Runs in:   the front end, inside editor_read()
 * Holds:     the rows of the terminal that the cell takes
 * Trusts:    the terminal to know CSI A, C, J, K and ?25; not its size, which
 *            is asked for each time
 * Leaves:    the cursor below the cell
 *
 * One write draws everything: up to the first row, the rows, back to the
 * cursor. A cell taller than the screen is shown through a window that
 * follows the cursor.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "highlight.h"
#include "impl.h"
#include "jail/base/io.h"

#define SGR_PROMPT "\033[32m"
#define SGR_STATUS "\033[2m"
#define SGR_END "\033[0m"

void view_write(struct editor *ed, const char *s, size_t n)
{
	/* A terminal that is gone is noticed where it is read. */
	(void)!io_write_full(ed->out, s, n);
}

void editor_size(const struct editor *ed, int *rows, int *cols)
{
	struct winsize w = {0};

	*rows = 24;
	*cols = 80;
	if (ioctl(ed->out, TIOCGWINSZ, &w) < 0)
		return;
	if (w.ws_row)
		*rows = w.ws_row;
	if (w.ws_col)
		*cols = w.ws_col;
}

void view_size(struct editor *ed)
{
	editor_size(ed, &ed->view.rows, &ed->view.cols);
}

/* A prompt takes at most half of the width, and is cut there. */
static size_t prompt_cut(const struct wide *p, int cols, int *width)
{
	struct layout_glyph g;
	size_t n = 0;

	*width = 0;
	for (; n < p->n; n++) {
		layout_glyph(p->s[n], *width, cols, &g);
		if (*width + g.width > cols / 2)
			break;
		*width += g.width;
	}
	return n;
}

static void add_prompt(
	struct editor *ed, struct strbuf *b, const struct wide *p)
{
	struct layout_glyph g;
	int width, col = 0;
	size_t n = prompt_cut(p, ed->view.cols, &width);

	if (ed->colour)
		strbuf_puts(b, SGR_PROMPT);
	for (size_t i = 0; i < n; i++) {
		layout_glyph(p->s[i], col, ed->view.cols, &g);
		strbuf_add(b, g.s, (size_t)g.n);
		col += g.width;
	}
	if (ed->colour)
		strbuf_puts(b, SGR_END);
}

/* One row of the layout, without its line end. */
static void add_row(
	struct editor *ed, struct strbuf *b, const struct span *t, size_t row)
{
	const struct view *v = &ed->view;
	const struct layout_row *r = &v->layout.rows[row];
	enum highlight now = HIGHLIGHT_NONE;
	struct layout_glyph g;
	int col = 0;

	if (r->prompt) {
		const struct wide *p = row ? &ed->prompt2 : &ed->prompt;

		add_prompt(ed, b, p);
		prompt_cut(p, v->cols, &col);
	}
	for (size_t i = r->start; i < r->end; i++) {
		if (ed->colour && v->attr[i] != now) {
			now = v->attr[i];
			strbuf_puts(b, SGR_END);
			if (now != HIGHLIGHT_NONE)
				strbuf_puts(b, highlight_sgr(now));
		}
		layout_glyph(t->s[i], col, v->cols, &g);
		strbuf_add(b, g.s, (size_t)g.n);
		col += g.width;
	}
	if (now != HIGHLIGHT_NONE)
		strbuf_puts(b, SGR_END);
	if (col < v->cols)
		strbuf_puts(b, "\033[K");
}

/* The line of ours below the cell; its columns. */
static int add_status(struct editor *ed, struct strbuf *b)
{
	struct wide line = {0};
	struct layout_glyph g;
	int col = 0;

	if (ed->search.active) {
		wide_add_utf8(&line,
			ed->search.failed ? "no match: " : "search: ",
			ed->search.failed ? 10 : 8);
		wide_add(&line, ed->search.pattern.s, ed->search.pattern.n);
	} else {
		wide_add_utf8(&line, ed->status, strlen(ed->status));
	}
	strbuf_puts(b, ed->colour ? SGR_STATUS : "");
	for (size_t i = 0; i < line.n; i++) {
		layout_glyph(line.s[i], col, ed->view.cols, &g);
		if (col + g.width >= ed->view.cols)
			break;
		strbuf_add(b, g.s, (size_t)g.n);
		col += g.width;
	}
	strbuf_puts(b, ed->colour ? SGR_END "\033[K" : "\033[K");
	wide_free(&line);
	return col;
}

static bool has_status(const struct editor *ed)
{
	return (ed->search.active || ed->status[0]) && ed->view.rows > 1;
}

static int view_layout(struct editor *ed, const struct span *t)
{
	struct view *v = &ed->view;
	struct layout_shape shape = {.cols = v->cols};

	prompt_cut(&ed->prompt, v->cols, &shape.prompt);
	prompt_cut(&ed->prompt2, v->cols, &shape.prompt2);
	if (layout_build(&v->layout, t->s, t->n, t->cursor, &shape) < 0)
		return -1;
	if (t->n > v->attr_cap) {
		unsigned char *attr = realloc(v->attr, t->n * 2);

		if (!attr)
			return -1;
		v->attr = attr;
		v->attr_cap = t->n * 2;
	}
	if (ed->colour && t->n)
		highlight_cell(t->s, t->n, v->attr);
	return 0;
}

/* The rows [*from, return) of the layout that fit on `height` of the screen
 * and hold the cursor. */
static size_t view_window(struct view *v, size_t height, size_t *from)
{
	size_t n = v->layout.n, cursor = v->layout.cursor_row, top = v->top;

	if (n <= height) {
		*from = v->top = 0;
		return n;
	}
	if (cursor < top)
		top = cursor;
	if (cursor >= top + height)
		top = cursor - height + 1;
	if (top + height > n)
		top = n - height;
	*from = v->top = top;
	return top + height;
}

static int view_note_widths(
	struct editor *ed, size_t from, size_t to, int status)
{
	struct view *v = &ed->view;
	size_t n = to - from + (status >= 0 ? 1 : 0);

	if (n > v->widths_cap) {
		int *w = reallocarray(v->widths, n * 2, sizeof(*w));

		if (!w)
			return -1;
		v->widths = w;
		v->widths_cap = n * 2;
	}
	for (size_t r = from; r < to; r++)
		v->widths[r - from] = v->layout.rows[r].width;
	if (status >= 0)
		v->widths[n - 1] = status;
	v->n = n;
	return 0;
}

/* To the first row of what is painted. */
static void add_top(const struct view *v, struct strbuf *b)
{
	if (v->painted && v->cursor_row > 0)
		strbuf_printf(b, "\033[%dA", v->cursor_row);
	strbuf_puts(b, "\r");
}

/* Draw rows [from, to) and, where there is one, the status; then clear what
 * was painted below. */
static int view_paint(struct editor *ed, struct strbuf *b, const struct span *t,
	size_t from, size_t to, bool status)
{
	struct view *v = &ed->view;
	size_t was = v->painted ? v->n : 0;
	int status_width = -1;

	strbuf_puts(b, "\033[?25l");
	add_top(v, b);
	for (size_t r = from; r < to; r++) {
		add_row(ed, b, t, r);
		if (r + 1 < to || status)
			strbuf_puts(b, "\r\n");
	}
	if (status)
		status_width = add_status(ed, b);
	if (view_note_widths(ed, from, to, status_width) < 0)
		return -1;
	if (was > v->n)
		strbuf_puts(b, "\r\n\033[J\033[A");
	return 0;
}

void view_draw(struct editor *ed)
{
	struct view *v = &ed->view;
	struct span t = engine_text(ed);
	bool status = has_status(ed);
	struct strbuf b = {0};
	size_t from, to, up;

	if (view_layout(ed, &t) < 0)
		return;
	to = view_window(v, (size_t)v->rows - (status ? 1 : 0), &from);
	if (view_paint(ed, &b, &t, from, to, status) < 0) {
		strbuf_free(&b);
		return;
	}
	up = v->n - 1 - (v->layout.cursor_row - from);
	if (up > 0)
		strbuf_printf(&b, "\033[%zuA", up);
	strbuf_puts(&b, "\r");
	if (v->layout.cursor_col > 0)
		strbuf_printf(&b, "\033[%dC", v->layout.cursor_col);
	strbuf_puts(&b, "\033[?25h");
	if (!v->painted || b.n != v->frame.n ||
		(b.n && memcmp(b.s, v->frame.s, b.n)))
		view_write(ed, b.s, b.n);
	strbuf_free(&v->frame);
	v->frame = b;
	v->cursor_row = (int)(v->layout.cursor_row - from);
	v->painted = true;
}

static void view_forget(struct view *v)
{
	v->painted = false;
	v->cursor_row = 0;
	v->n = 0;
	v->top = 0;
	strbuf_free(&v->frame);
}

/* Without the one that only the cursor needed, behind a row that is full. */
static size_t rows_of_text(const struct layout *l)
{
	const struct layout_row *last = &l->rows[l->n - 1];

	return last->prompt || last->start < last->end ? l->n : l->n - 1;
}

void view_finish(struct editor *ed, const char *tail)
{
	struct view *v = &ed->view;
	struct span t = engine_text(ed);
	struct strbuf b = {0};

	if (view_layout(ed, &t) == 0 &&
		view_paint(ed, &b, &t, 0, rows_of_text(&v->layout), false) ==
			0) {
		int col = v->widths[v->n - 1];

		if (*tail && col + (int)strlen(tail) >= v->cols)
			strbuf_puts(&b, "\r\n");
		else if (*tail && col > 0) /* where clearing may have left */
			strbuf_printf(&b, "\r\033[%dC", col);
		strbuf_puts(&b, tail);
	}
	strbuf_puts(&b, "\r\n\033[?25h");
	view_write(ed, b.s, b.n);
	strbuf_free(&b);
	view_forget(v);
}

void view_erase(struct editor *ed)
{
	struct strbuf b = {0};

	if (ed->view.painted) {
		add_top(&ed->view, &b);
		strbuf_puts(&b, "\033[J");
		view_write(ed, b.s, b.n);
		strbuf_free(&b);
	}
	view_forget(&ed->view);
}

/* The terminal has wrapped our rows anew; go up as many as there are now. */
void view_resized(struct editor *ed)
{
	struct view *v = &ed->view;
	size_t top = v->top;
	int above = 0;

	view_size(ed);
	if (!v->painted)
		return;
	for (int r = 0; r < v->cursor_row; r++)
		above += v->widths[r] > v->cols
				 ? (v->widths[r] + v->cols - 1) / v->cols
				 : 1;
	above += v->layout.cursor_col / v->cols;
	v->cursor_row = above < v->rows ? above : v->rows - 1;
	view_erase(ed);
	v->top = top;
}

void view_clear_screen(struct editor *ed)
{
	static const char clear[] = "\033[H\033[2J";

	view_write(ed, clear, sizeof(clear) - 1);
	view_forget(&ed->view);
}

void view_free(struct editor *ed)
{
	struct view *v = &ed->view;

	layout_free(&v->layout);
	strbuf_free(&v->frame);
	free(v->widths);
	free(v->attr);
}
