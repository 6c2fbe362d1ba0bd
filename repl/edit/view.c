/* SPDX-License-Identifier: MIT */
/*
 * view.c - the drawing of a cell
 *
 * Runs in:   the front end
 * Holds:     the rows of the terminal that the cell takes
 * Trusts:    the terminal to know CSI A, C, H, J, K, m and ?25; not its size,
 *            which editor_read() asks for each time
 * Leaves:    the cursor below the cell
 *
 * One write draws everything: it goes up to the first row, draws the rows, and
 * goes back to the cursor. If a cell is taller than the screen, the view
 * draws a window of it that follows the cursor.
 */
#include <stdarg.h>
#include <sys/ioctl.h>

#include "jail/base/io.h"
#include "parts.h"
#include "repl/edit/python.h"

/* A terminal with fewer rows shows no note. */
#define NOTE_ROWS 5
/* Every terminal shows a character below this one as layout_glyph() says. */
#define WIDTH_SURE_MAX 0xad
#define SGR_PROMPT "\033[32m"
#define SGR_STATUS "\033[2m"
#define SGR_END "\033[0m"

/* The first sequence ends all others. */
static const char *const sgr[] = {
	[PYCOLOUR_NONE] = SGR_END,
	[PYCOLOUR_KEYWORD] = "\033[34m",
	[PYCOLOUR_STRING] = "\033[32m",
	[PYCOLOUR_COMMENT] = "\033[90m",
	[PYCOLOUR_NUMBER] = "\033[36m",
	[PYCOLOUR_COMMAND] = "\033[35m",
	[PYCOLOUR_BUILTIN] = "\033[35m",
	[PYCOLOUR_MATCH] = "\033[1;4m",
};

int view_set_prompt(struct utf8_wide *prompt, const char *text)
{
	prompt->n = 0;
	return utf8_wide_decode(prompt, text, strlen(text));
}

/* A character whose width terminals disagree about takes two columns at most.
 * The text begins in the column that we say, so that all terminals have as many
 * rows as we count: we never go up into a row that is not ours. */
int view_set_lead(struct view *v, const char *s, size_t n)
{
	const char *end = s + n, *m;
	struct layout_glyph g;
	int width = 0, most = 0;
	uint32_t c;

	v->lead.n = 0;
	view_size(v, &v->rows, &v->cols);
	while (s < end && most < v->cols) {
		if (*s == '\033') {
			m = memchr(s, 'm', (size_t)(end - s));
			if (!m)
				return -1;
			strbuf_add(&v->lead, s, (size_t)(m + 1 - s));
			s = m + 1;
			continue;
		}
		utf8_next(&s, end, &c);
		layout_glyph((wchar_t)c, width, v->cols, &g);
		strbuf_add(&v->lead, g.s, (size_t)g.n);
		width += g.width;
		most += c < WIDTH_SURE_MAX || g.width > 2 ? g.width : 2;
	}
	if (width > 0)
		strbuf_printf(&v->lead, SGR_END "\r\033[%dC", width);
	v->lead_width = width;
	return v->lead.failed || most >= v->cols ? -1 : 0;
}

void view_free(struct view *v)
{
	strbuf_free(&v->lead);
	utf8_wide_free(&v->prompt);
	utf8_wide_free(&v->prompt2);
	utf8_wide_free(&v->paste_prompt);
	utf8_wide_free(&v->hint);
	utf8_wide_free(&v->note);
	layout_free(&v->layout);
	strbuf_free(&v->frame);
	free(v->widths);
	free(v->colours);
}

void view_write(struct view *v, const char *s, size_t n)
{
	/* read_bytes() notices a terminal that is gone. */
	(void)!io_write_full(v->out, s, n);
}

void view_size(const struct view *v, int *rows, int *cols)
{
	struct winsize w = {0};

	if (ioctl(v->out, TIOCGWINSZ, &w) < 0)
		w = (struct winsize){0};
	*rows = w.ws_row ? w.ws_row : 24;
	*cols = w.ws_col ? w.ws_col : 80;
}

void view_status(struct view *v, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(v->status, sizeof(v->status), fmt, ap);
	va_end(ap);
}

void view_hint(struct view *v, const char *s, size_t n)
{
	v->hint.n = 0;
	utf8_wide_decode(&v->hint, s, n);
}

void view_note(struct view *v, const wchar_t *s, size_t n)
{
	utf8_wide_set(&v->note, s, n);
}

void view_pair(struct view *v, const size_t *pair)
{
	v->paired = pair != NULL;
	if (pair)
		memcpy(v->pair, pair, sizeof(v->pair));
}

/* ---- the parts of a frame ---- */

/* Append the characters that fit into `limit` columns (b NULL: none). Returns
 * their columns. */
static int add_glyphs(
	struct strbuf *b, const struct utf8_wide *text, int limit, int cols)
{
	struct layout_glyph g;
	int col = 0;

	for (size_t i = 0; i < text->n; i++) {
		layout_glyph(text->s[i], col, cols, &g);
		if (col + g.width > limit)
			break;
		if (b)
			strbuf_add(b, g.s, (size_t)g.n);
		col += g.width;
	}
	return col;
}

/* As add_glyphs(), with "…" at the end of a text that is wider than `limit`. */
static int add_clipped(
	struct strbuf *b, const struct utf8_wide *text, int limit, int cols)
{
	static wchar_t more[] = L"\u2026";
	const struct utf8_wide end = {.s = more, .n = 1};
	int col;

	/* Two columns more: a wide character may not fit in one. */
	if (limit < 1 || add_glyphs(NULL, text, limit + 2, cols) <= limit)
		return add_glyphs(b, text, limit, cols);
	col = add_glyphs(b, text, limit - 1, cols);
	return col + add_glyphs(b, &end, 1, cols);
}

/* Append the prompt of the first line, or of a later one (b NULL: none). We cut
 * it at half of the terminal's width. Returns its columns. */
static int add_prompt(const struct view *v, struct strbuf *b, bool first)
{
	return add_glyphs(b,
		v->pastes ? &v->paste_prompt
		: first	  ? &v->prompt
			  : &v->prompt2,
		v->cols / 2, v->cols);
}

static void add_sgr(const struct view *v, struct strbuf *b, const char *escape)
{
	if (v->colour)
		strbuf_puts(b, escape);
}

/* Append one row of the layout without a line end, and behind the last row the
 * hint. Returns its columns. */
static int add_row(const struct view *v, struct strbuf *b,
	const struct engine_text *t, size_t row)
{
	const struct layout_row *r = &v->layout.rows[row];
	unsigned char now = PYCOLOUR_NONE;
	struct layout_glyph g;
	int col = 0;

	if (row == 0 && v->lead.n) {
		strbuf_add(b, v->lead.s, v->lead.n);
		col = v->lead_width;
	} else if (r->prompt) {
		add_sgr(v, b, SGR_PROMPT);
		col = add_prompt(v, b, row == 0);
		add_sgr(v, b, SGR_END);
	}
	for (size_t i = r->start; i < r->end; i++) {
		if (v->colour && v->colours[i] != now) {
			now = v->colours[i];
			strbuf_puts(b, SGR_END);
			if (now != PYCOLOUR_NONE)
				strbuf_puts(b, sgr[now]);
		}
		layout_glyph(t->s[i], col, v->cols, &g);
		strbuf_add(b, g.s, (size_t)g.n);
		col += g.width;
	}
	if (now != PYCOLOUR_NONE)
		strbuf_puts(b, SGR_END);
	if (v->hint.n && row == v->layout.n - 1) {
		strbuf_puts(b, SGR_STATUS);
		col += add_glyphs(b, &v->hint, v->cols - 1 - col, v->cols);
		strbuf_puts(b, SGR_END);
	}
	if (col < v->cols)
		strbuf_puts(b, "\033[K");
	return col;
}

/* Append our line below the cell. Returns its columns. */
static int add_status(const struct view *v, struct strbuf *b)
{
	struct utf8_wide line = {0};
	int col;

	utf8_wide_decode(&line, v->status, strlen(v->status));
	add_sgr(v, b, SGR_STATUS);
	col = add_clipped(b, line.n ? &line : &v->note, v->cols - 1, v->cols);
	add_sgr(v, b, SGR_END);
	strbuf_puts(b, "\033[K");
	utf8_wide_free(&line);
	return col;
}

static int lay_out(struct view *v, const struct engine_text *t)
{
	struct layout_shape shape = {.cols = v->cols,
		.prompt = v->lead.n ? v->lead_width : add_prompt(v, NULL, true),
		.prompt2 = add_prompt(v, NULL, false)};

	if (layout_build(&v->layout, t->s, t->n, t->cursor, &shape) < 0)
		return -1;
	if (array_reserve(&v->colours, &v->colours_cap, t->n, 1) < 0)
		return -1;
	if (v->colour && t->n)
		pycolour_fill(t->s, t->n, v->colours);
	for (int i = 0; v->colour && v->paired && i < 2; i++)
		v->colours[v->pair[i]] = PYCOLOUR_MATCH;
	return 0;
}

/* Choose rows [*from, return) of the layout: at most `height`, with the
 * cursor's. */
static size_t fit_window(struct view *v, size_t height, size_t *from)
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

/* Go to the first painted row. */
static void add_top(const struct view *v, struct strbuf *b)
{
	if (v->painted && v->cursor_row > 0)
		strbuf_printf(b, "\033[%dA", v->cursor_row);
	strbuf_puts(b, "\r");
}

/* Draw rows [from, to) and, if asked, the status; clear older rows below. */
static int paint_rows(struct view *v, struct strbuf *b,
	const struct engine_text *t, size_t from, size_t to, bool status)
{
	size_t was = v->painted ? v->n : 0;
	size_t n = to - from + (status ? 1 : 0);

	if (array_reserve(&v->widths, &v->widths_cap, n, sizeof(*v->widths)) <
		0)
		return -1;
	v->n = n;
	strbuf_puts(b, "\033[?25l");
	add_top(v, b);
	for (size_t i = 0; i < n; i++) {
		strbuf_puts(b, i ? "\r\n" : "");
		v->widths[i] = from + i < to ? add_row(v, b, t, from + i)
					     : add_status(v, b);
	}
	if (was > v->n)
		strbuf_puts(b, "\r\n\033[J\033[A");
	return 0;
}

/* ---- the cell ---- */

void view_draw(struct view *v, const struct engine_text *t)
{
	bool status = v->rows > 1 &&
		      (v->status[0] || (v->notes && v->rows >= NOTE_ROWS));
	struct strbuf b = {0};
	size_t from, to, up;

	if (lay_out(v, t) < 0)
		return;
	to = fit_window(v, (size_t)v->rows - (status ? 1 : 0), &from);
	if (paint_rows(v, &b, t, from, to, status) < 0) {
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
		view_write(v, b.s, b.n);
	strbuf_free(&v->frame);
	v->frame = b;
	v->cursor_row = (int)(v->layout.cursor_row - from);
	v->painted = true;
}

void view_forget(struct view *v)
{
	v->painted = false;
	v->cursor_row = 0;
	v->n = 0;
	v->top = 0;
	strbuf_free(&v->frame);
}

void view_finish(struct view *v, const struct engine_text *t, const char *tail)
{
	const struct layout_row *last;
	struct strbuf b = {0};
	size_t rows = 0;

	view_hint(v, "", 0);
	v->paired = false;
	if (lay_out(v, t) == 0) {
		/* Leave out a last row that holds only the cursor. */
		rows = v->layout.n;
		last = &v->layout.rows[rows - 1];
		rows -= !last->prompt && last->start == last->end;
	}
	if (rows && paint_rows(v, &b, t, 0, rows, false) == 0) {
		int col = v->widths[v->n - 1];

		if (*tail && col + (int)strlen(tail) >= v->cols)
			strbuf_puts(&b, "\r\n");
		else if (*tail && col > 0) /* clearing may move the cursor */
			strbuf_printf(&b, "\r\033[%dC", col);
		strbuf_puts(&b, tail);
	}
	strbuf_puts(&b, "\r\n\033[?25h");
	view_write(v, b.s, b.n);
	strbuf_free(&b);
	view_forget(v);
}

void view_erase(struct view *v)
{
	struct strbuf b = {0};

	if (v->painted) {
		add_top(v, &b);
		strbuf_puts(&b, "\033[J");
		view_write(v, b.s, b.n);
		strbuf_free(&b);
	}
	view_forget(v);
}

/* The terminal has wrapped our rows anew: count the rows above the cursor. */
void view_resized(struct view *v)
{
	size_t top = v->top;
	int above = 0;

	view_size(v, &v->rows, &v->cols);
	if (!v->painted)
		return;
	for (int r = 0; r < v->cursor_row; r++)
		above += v->widths[r] > v->cols
				 ? (v->widths[r] + v->cols - 1) / v->cols
				 : 1;
	above += v->layout.cursor_col / v->cols;
	v->cursor_row = above < v->rows ? above : v->rows - 1;
	view_erase(v);
	v->top = top;
}

void view_clear_screen(struct view *v)
{
	static const char clear[] = "\033[H\033[2J";

	view_write(v, clear, sizeof(clear) - 1);
	view_forget(v);
}

/* ---- lines ---- */

void view_print(struct view *v, const char *s, size_t n)
{
	struct termios modes;
	bool raw = v->out_is_tty && tcgetattr(v->out, &modes) == 0 &&
		   !(modes.c_oflag & OPOST);
	const char *end = raw ? "\r\n" : "\n";
	struct strbuf b = {0};

	if (n == 0)
		return;
	if (v->painted)
		view_erase(v);
	else if (v->asked && v->out_is_tty)
		strbuf_puts(&b, end);
	while (n) {
		const char *nl = memchr(s, '\n', n);
		size_t line = nl ? (size_t)(nl - s) : n;

		strbuf_add(&b, s, line);
		strbuf_puts(&b, end);
		s += nl ? line + 1 : line;
		n -= nl ? line + 1 : line;
	}
	view_write(v, b.s, b.n);
	strbuf_free(&b);
	v->covered = v->asked != NULL;
}

static void add_plain_prompt(struct strbuf *b, const struct utf8_wide *prompt)
{
	char one[4];

	for (size_t i = 0; i < prompt->n; i++)
		strbuf_add(b, one, utf8_put(prompt->s[i], one));
}

/* Write once, or the terminal's echo would come between prompt and text. A
 * person at a cooked terminal can only append to this text. */
void view_ask(struct view *v, const struct utf8_wide *prompt,
	const struct utf8_wide *t)
{
	struct strbuf b = {0};

	add_plain_prompt(&b, prompt);
	for (size_t i = 0; t && i < t->n; i++) {
		struct layout_glyph g = {.s = "\n", .n = 1};

		if (t->s[i] != '\n')
			layout_glyph(t->s[i], 0, 80, &g);
		strbuf_add(&b, g.s, (size_t)g.n);
		if (t->s[i] == '\n')
			add_plain_prompt(&b, &v->prompt2);
	}
	if (v->out_is_tty)
		view_write(v, b.s, b.n);
	strbuf_free(&b);
	v->asked = prompt;
	v->covered = false;
}

void view_ask_again(struct view *v)
{
	if (v->covered)
		view_ask(v, v->asked, NULL);
}

void view_asked(struct view *v)
{
	v->asked = NULL;
	v->covered = false;
}
