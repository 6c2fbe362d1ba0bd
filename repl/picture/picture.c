/* SPDX-License-Identifier: MIT */
/*
 * picture.c - fits a picture to a terminal, and writes a protocol's sequence
 *
 * Runs in:   front end
 * Trusts:    the size, which the caller has bounded; nothing about the pixels
 */
#include "picture.h"

#include "repl/text/text.h"

#include <stdlib.h>
#include <string.h>

/* The size of a cell, in pixels, for a terminal that does not report it, and
 * for half blocks. */
#define CELL_WIDTH 8
#define CELL_HEIGHT 16
/* Rows that we leave free for the line below the picture, and the prompt. */
#define ROWS_FREE 2
/* Most bytes of one piece in kitty's protocol. */
#define PIECE 4096

/* The size of the drawn picture, in cells and in pixels. */
struct fit {
	int rows, columns;
	int width, height, cell_height;
	bool by_columns; /* less than a row high: we tell the width */
};

/* The whole part of `v`, which rounding may have made a little too small. */
static int clamp_whole(double v, int most)
{
	v += 0.001;
	return v < 1 ? 1 : v > most ? most : (int)v;
}

/* Make the picture a whole number of rows high, unless it is less than one. */
static struct fit fit_picture(
	const struct picture *p, const struct picture_place *at)
{
	bool known = at->way > PICTURE_BLOCKS && at->cell_width > 0 &&
		     at->cell_height > 0;
	int cw = known ? at->cell_width : CELL_WIDTH;
	int ch = known ? at->cell_height : CELL_HEIGHT;
	int rows = clamp_whole(at->rows - ROWS_FREE, 1000);
	int columns = clamp_whole(at->columns - 1, 1000);
	double x = (double)columns * cw / p->width;
	double y = (double)rows * ch / p->height;
	double by = x < y ? x : y;
	struct fit f = {.cell_height = ch};

	if (by > 1)
		by = 1;
	f.rows = clamp_whole(p->height * by / ch, rows);
	f.by_columns = p->height * by < ch;
	if (!f.by_columns)
		by = (double)f.rows * ch / p->height;
	f.height = clamp_whole(p->height * by, f.rows * ch);
	f.width = clamp_whole(p->width * by, columns * cw);
	f.columns = (f.width + cw - 1) / cw;
	return f;
}

/* ---- size ---- */

/* Make each pixel the mean of the rectangle of pixels that it replaces. */
static void shrink_row(
	uint8_t *to, int width, const struct picture *from, int top, int bottom)
{
	for (int x = 0; x < width; x++) {
		int left = (int)((int64_t)x * from->width / width);
		int right = (int)((int64_t)(x + 1) * from->width / width);
		uint64_t sum[3] = {0}, n;

		if (right <= left)
			right = left + 1;
		for (int i = top; i < bottom; i++) {
			const uint8_t *p =
				from->rgb +
				3 * ((size_t)i * (size_t)from->width +
					    (size_t)left);

			for (int j = left; j < right; j++, p += 3) {
				sum[0] += p[0];
				sum[1] += p[1];
				sum[2] += p[2];
			}
		}
		n = (uint64_t)(bottom - top) * (uint64_t)(right - left);
		for (int c = 0; c < 3; c++)
			*to++ = (uint8_t)((sum[c] + n / 2) / n);
	}
}

int picture_scale(struct picture *to, const struct picture *from)
{
	size_t row = 3 * (size_t)to->width;

	to->rgb = malloc(row * (size_t)to->height);
	if (!to->rgb)
		return -1;
	for (int y = 0; y < to->height; y++) {
		int top = (int)((int64_t)y * from->height / to->height);
		int bottom =
			(int)((int64_t)(y + 1) * from->height / to->height);

		shrink_row(to->rgb + row * (size_t)y, to->width, from, top,
			bottom > top ? bottom : top + 1);
	}
	return 0;
}

/* ---- protocols ---- */

/* Make the rows before the terminal draws: then the screen does not scroll
 * while it draws, and the saved cursor stays in the picture's first row. */
static void begin_rows(struct strbuf *b, int rows)
{
	for (int i = 0; i < rows; i++)
		strbuf_puts(b, "\r\n");
	strbuf_printf(b, "\033[%dA\0337", rows);
}

static void end_rows(struct strbuf *b, int rows)
{
	strbuf_printf(b, "\0338\033[%dB\r", rows);
}

/* q=2: the terminal sends no answer. */
static void add_kitty(
	struct strbuf *b, const struct strbuf *png, const struct fit *f)
{
	struct strbuf text = {0};

	base64_add(&text, png->s, png->n);
	b->failed |= text.failed;
	strbuf_printf(b, "\033_Ga=T,f=100,q=2,C=1,%c=%d,",
		f->by_columns ? 'c' : 'r',
		f->by_columns ? f->columns : f->rows);
	for (size_t at = 0; at < text.n; at += PIECE) {
		bool more = text.n - at > PIECE;

		if (at > 0)
			strbuf_puts(b, "\033_G");
		strbuf_printf(b, "m=%d;", more);
		strbuf_add(b, text.s + at, more ? PIECE : text.n - at);
		strbuf_puts(b, "\033\\");
	}
	strbuf_free(&text);
}

static void add_iterm2(
	struct strbuf *b, const struct strbuf *png, const struct fit *f)
{
	strbuf_printf(b, "\033]1337;File=inline=1;size=%zu;", png->n);
	if (f->by_columns)
		strbuf_printf(b, "width=%d;height=auto", f->columns);
	else
		strbuf_printf(b, "width=auto;height=%d", f->rows);
	strbuf_puts(b, ":");
	base64_add(b, png->s, png->n);
	strbuf_puts(b, "\a");
}

/* Bound on pixels times colours. A picture of noise takes about a sixth of this
 * in bytes. With too many pixels for 16 colours, a picture still has 16. */
#define SIXEL_WORK 20000000
#define SIXEL_COLOURS_LEAST 16

static int colours_for(const struct picture *p, int registers)
{
	int most = clamp_whole((double)SIXEL_WORK / p->width / p->height, 256);

	if (most < SIXEL_COLOURS_LEAST)
		most = SIXEL_COLOURS_LEAST;
	return most < registers ? most : registers;
}

/* A row of sixels is six pixels high. The last one must not reach into the row
 * below the picture, so we cut the height to a multiple of six. */
static int add_sixel(struct strbuf *b, const struct picture *p,
	const struct fit *f, int colours)
{
	struct picture small = {.width = f->width, .height = f->height};
	int r;

	if (small.height > 6)
		small.height -= small.height % 6;
	if (picture_scale(&small, p) < 0)
		return -1;
	r = sixels_add(b, &small, colours_for(&small, colours));
	free(small.rgb);
	return r;
}

static int add_file(struct strbuf *b, const struct picture *p,
	const struct fit *f, enum picture_way way)
{
	struct picture small = {.width = f->width, .height = f->height};
	bool smaller = small.width < p->width && small.height < p->height;
	struct strbuf png = {0};
	int r = smaller ? picture_scale(&small, p) : 0;

	if (r == 0)
		r = encode_png(&png, smaller ? &small : p);
	if (r == 0 && way == PICTURE_KITTY)
		add_kitty(b, &png, f);
	else if (r == 0)
		add_iterm2(b, &png, f);
	strbuf_free(&png);
	free(small.rgb);
	return r;
}

static int add_blocks(struct strbuf *b, const struct picture *p,
	const struct fit *f, bool true_colour)
{
	struct picture small = {.width = f->columns,
		.height = clamp_whole(
			2.0 * f->height / f->cell_height, 2 * f->rows)};

	if (picture_scale(&small, p) < 0)
		return -1;
	blocks_add(b, &small, true_colour);
	free(small.rgb);
	return 0;
}

int picture_add(struct strbuf *b, const struct picture *p,
	const struct picture_place *at)
{
	struct fit f = fit_picture(p, at);
	int r = 0;

	if (at->way <= PICTURE_BLOCKS)
		return add_blocks(b, p, &f, at->way == PICTURE_BLOCKS);
	begin_rows(b, f.rows);
	if (at->way == PICTURE_SIXEL)
		r = add_sixel(b, p, &f, at->registers);
	else
		r = add_file(b, p, &f, at->way);
	end_rows(b, f.rows);
	return r < 0 || b->failed ? -1 : 0;
}
