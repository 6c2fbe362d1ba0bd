/* SPDX-License-Identifier: MIT */
/*
 * layout.c - text to rows
 *
 * Runs in:   the front end
 * Trusts:    wcwidth(3) of the C.UTF-8 locale for the width of a character
 * Leaves:    glyphs that no terminal takes for a command
 */
#include "repl/text/text.h"

#include <limits.h>
#include <stdio.h>

#define LAYOUT_TAB 8

static void glyph_set(struct layout_glyph *g, const char *s)
{
	g->n = snprintf(g->s, sizeof(g->s), "%s", s);
	g->width = g->n;
}

/* True of a mark or joiner, which terminals draw on the character before. */
static bool is_mark(wchar_t c)
{
	return c >= 0x300 && utf8_is_visible(c) && wcwidth(c) == 0;
}

void layout_glyph(wchar_t c, int col, int cols, struct layout_glyph *g)
{
	char caret[3] = {'^', (char)((c & 0x7F) ^ 0x40), 0};

	/* We lay the cell out at each key, and nearly all text is ASCII. */
	if (c == '\t') {
		int width = LAYOUT_TAB - col % LAYOUT_TAB;

		glyph_set(g, &"        "[LAYOUT_TAB - width]);
	} else if ((unsigned)c < 0x20 || c == 0x7F) {
		glyph_set(g, caret);
	} else if ((unsigned)c < 0x7F) {
		*g = (struct layout_glyph){.s = {(char)c}, .n = 1, .width = 1};
	} else {
		bool shown = utf8_is_visible((uint32_t)c) &&
			     !utf8_is_bar((uint32_t)c);

		g->width = shown ? wcwidth(c) : -1;
		g->n = (int)utf8_put((uint32_t)c, g->s);
		g->s[g->n] = 0;
		if (g->width < 0)
			g->width = g->n = snprintf(
				g->s, sizeof(g->s), "<%04X>", (unsigned)c);
	}
	if (g->width > cols)
		glyph_set(g, c == '\t' ? " " : "?");
}

static struct layout_row *row_new(
	struct layout *l, size_t at, int col, bool prompt)
{
	if (array_grow(&l->rows, l->n, sizeof(*l->rows)) < 0)
		return NULL;
	l->rows[l->n] = (struct layout_row){
		.start = at, .end = at, .width = col, .prompt = prompt};
	return &l->rows[l->n++];
}

int layout_build(struct layout *l, const wchar_t *s, size_t n, size_t cursor,
	const struct layout_shape *shape)
{
	struct layout_row *r;
	struct layout_glyph g;

	l->n = 0;
	r = row_new(l, 0, shape->prompt, true);
	for (size_t i = 0; r && i <= n; i++) {
		if (i < n && s[i] != '\n') {
			layout_glyph(s[i], r->width, shape->cols, &g);
			if (r->width + g.width > shape->cols) {
				r = row_new(l, i, 0, false);
				layout_glyph(s[i], 0, shape->cols, &g);
			}
		}
		if (r && i == cursor) {
			if (r->width >= shape->cols)
				r = row_new(l, i, 0, false);
			l->cursor_row = l->n - 1;
			l->cursor_col = r ? r->width : 0;
		}
		if (!r || i == n)
			break;
		if (s[i] == '\n') {
			r = row_new(l, i + 1, shape->prompt2, true);
			continue;
		}
		/* `r` may be a new row: a mark can follow the cursor. */
		r->width += g.width;
		r->end = i + 1;
	}
	return r ? 0 : -1;
}

int layout_width(const wchar_t *s, size_t n, int col)
{
	int at = col;
	struct layout_glyph g;

	for (size_t i = 0; i < n && at < INT_MAX - 64; i++) {
		layout_glyph(s[i], at, INT_MAX, &g);
		at += g.width;
	}
	return at - col;
}

/* Step over the bytes that fit into `room` columns. Returns their columns. */
static int take_columns(const char **s, size_t n, int room)
{
	const char *end = *s + n;
	struct layout_glyph g;
	int col = 0;

	for (const char *p = *s; p < end; *s = p) {
		uint32_t c;

		utf8_next(&p, end, &c);
		layout_glyph((wchar_t)c, col, INT_MAX, &g);
		if (g.width > room - col)
			break;
		col += g.width;
	}
	return col;
}

int layout_columns(const char *s, size_t n)
{
	return take_columns(&s, n, INT_MAX);
}

size_t layout_fit(const char *s, size_t n, int room)
{
	const char *end = s;

	take_columns(&end, n, room);
	return (size_t)(end - s);
}

void layout_free(struct layout *l)
{
	free(l->rows);
	*l = (struct layout){0};
}

/* True of a regional indicator: two of them are one flag. */
static bool is_flag_half(wchar_t c)
{
	return c >= 0x1F1E6 && c <= 0x1F1FF;
}

/* True if s[at] is the second half of a flag. */
static bool ends_flag(const wchar_t *s, size_t at)
{
	bool second = false;

	if (!is_flag_half(s[at]))
		return false;
	for (; at > 0 && is_flag_half(s[at - 1]); at--)
		second = !second;
	return second;
}

size_t layout_prev(const wchar_t *s, size_t at)
{
	if (at > 0)
		at--;
	while (at > 0 && is_mark(s[at]) && s[at - 1] != '\n')
		at--;
	return at - ends_flag(s, at);
}

size_t layout_next(const wchar_t *s, size_t n, size_t at)
{
	bool line_end = at < n && s[at] == '\n';
	bool flag = at + 1 < n && is_flag_half(s[at]) &&
		    is_flag_half(s[at + 1]) && !ends_flag(s, at);

	if (at < n)
		at += flag ? 2 : 1;
	while (at < n && !line_end && is_mark(s[at]))
		at++;
	return at;
}
