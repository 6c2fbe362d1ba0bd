/* SPDX-License-Identifier: MIT */
/*
 * sixels.c - writes a picture as sixel, in colours that libsixel chooses
 *
 * Runs in:   front end
 * Trusts:    nothing about the pixels; libsixel with pixels of a known size.
 *            libsixel reads no file of the guest's
 * Leaves:    a sequence, after a time that depends only on the numbers of
 *            pixels and colours
 *
 * Libsixel's own writer keeps a sorted list of the runs of one colour in six
 * rows of pixels, and searches the list from its beginning for each run. Some
 * pictures take it a hundred times as long as noise does: 13 s for 2000 × 138
 * pixels in 72 colours. So the library only chooses the colours, from a sample
 * of the pixels; this file gives each pixel its colour and writes the sequence.
 */
#include "picture.h"

#include <sixel/sixel.h>
#include <stdlib.h>
#include <string.h>

#define COLOURS_MAX 256
/* The height of a sixel, which is one pixel wide. */
#define HIGH 6
/* colour_of() looks colours up by 5 bits of red, green and blue each. */
#define KINDS (1 << 15)
#define UNKNOWN UINT16_MAX
/* From this length on we write a run as "!", its length and the character. */
#define RUN_LEAST 4

struct sixels {
	const struct picture *p;
	uint8_t palette[3 * COLOURS_MAX];
	int n;
	bool exact;	    /* every colour of the picture is in the palette */
	uint16_t *nearest;  /* palette's index by 15 bits, or UNKNOWN */
	int16_t *errors[2]; /* of this row and the next, times 16 */
	uint8_t *bits;	    /* a row of sixels for each colour */
	bool used[COLOURS_MAX]; /* in this row of sixels */
};

/* ---- colours ---- */

/* The library rounds colours down to 5 bits. Map 31 of these to 255, or we
 * would dither white. */
static uint8_t widen_level(uint8_t v)
{
	return (uint8_t)(v | v >> 5);
}

static int choose_colours(struct sixels *s, int colours)
{
	const struct picture *p = s->p;
	sixel_dither_t *dither = NULL;
	const uint8_t *from = NULL;

	if (SIXEL_SUCCEEDED(sixel_dither_new(&dither, colours, NULL)) &&
		SIXEL_SUCCEEDED(sixel_dither_initialize(dither, p->rgb,
			p->width, p->height, SIXEL_PIXELFORMAT_RGB888,
			SIXEL_LARGE_AUTO, SIXEL_REP_AUTO, SIXEL_QUALITY_AUTO)))
		from = sixel_dither_get_palette(dither);
	if (from) {
		s->n = sixel_dither_get_num_of_palette_colors(dither);
		s->n = s->n > COLOURS_MAX ? COLOURS_MAX : s->n;
		s->exact = sixel_dither_get_num_of_histogram_colors(dither) <=
			   s->n;
		for (int i = 0; i < 3 * s->n; i++)
			s->palette[i] = widen_level(from[i]);
	}
	if (dither)
		sixel_dither_unref(dither);
	return from && s->n > 0 ? 0 : -1;
}

static int find_nearest(const struct sixels *s, const int rgb[static 3])
{
	int best = 0, least = INT32_MAX;

	for (int i = 0; i < s->n; i++) {
		int sum = 0;

		for (int c = 0; c < 3; c++) {
			int by = rgb[c] - s->palette[3 * i + c];

			sum += by * by;
		}
		if (sum < least) {
			least = sum;
			best = i;
		}
	}
	return best;
}

static int colour_of(struct sixels *s, const int rgb[static 3])
{
	uint16_t *known = &s->nearest[(rgb[0] >> 3) << 10 | (rgb[1] >> 3) << 5 |
				      rgb[2] >> 3];
	int kind[3];

	if (*known == UNKNOWN) {
		for (int c = 0; c < 3; c++)
			kind[c] = widen_level((uint8_t)(rgb[c] & ~7));
		*known = (uint16_t)find_nearest(s, kind);
	}
	return *known;
}

/* Floyd and Steinberg: spread the error of a pixel's colour over the pixels to
 * its right and below it. */
static void spread_error(struct sixels *s, size_t at, int by)
{
	int16_t *here = s->errors[0] + at, *below = s->errors[1] + at;

	here[3] = (int16_t)(here[3] + 7 * by);
	below[-3] = (int16_t)(below[-3] + 3 * by);
	below[0] = (int16_t)(below[0] + 5 * by);
	below[3] = (int16_t)(below[3] + by);
}

static int take_pixel(struct sixels *s, const uint8_t *from, size_t at)
{
	int rgb[3], colour;

	for (size_t c = 0; c < 3; c++) {
		int v = from[c] + s->errors[0][at + c] / 16;

		rgb[c] = v < 0 ? 0 : v > 255 ? 255 : v;
	}
	colour = colour_of(s, rgb);
	for (size_t c = 0; c < 3 && !s->exact; c++)
		spread_error(
			s, at + c, rgb[c] - s->palette[3 * colour + (int)c]);
	return colour;
}

/* ---- writing ---- */

static void add_run(struct strbuf *b, char c, size_t n)
{
	char few[RUN_LEAST];

	if (n >= RUN_LEAST) {
		strbuf_printf(b, "!%zu%c", n, c);
		return;
	}
	memset(few, c, n);
	strbuf_add(b, few, n);
}

static void add_colour(struct strbuf *b, const uint8_t *bits, size_t width)
{
	size_t at = 0;

	while (width > 0 && !bits[width - 1])
		width--;
	while (at < width) {
		size_t start = at;

		while (at < width && bits[at] == bits[start])
			at++;
		add_run(b, (char)('?' + bits[start]), at - start);
	}
}

static void add_palette(struct strbuf *b, const struct sixels *s)
{
	for (int i = 0; i < s->n; i++) {
		const uint8_t *v = s->palette + 3 * i;

		strbuf_printf(b, "#%d;2;%d;%d;%d", i, (v[0] * 100 + 127) / 255,
			(v[1] * 100 + 127) / 255, (v[2] * 100 + 127) / 255);
	}
}

static void take_row(struct sixels *s, int y)
{
	size_t width = (size_t)s->p->width;
	const uint8_t *from = s->p->rgb + 3 * width * (size_t)y;
	int16_t *done = s->errors[0];

	for (size_t x = 0; x < width; x++) {
		/* A row of errors begins with a pixel left of the picture. */
		int colour = take_pixel(s, from + 3 * x, 3 * (x + 1));

		s->bits[(size_t)colour * width + x] |= (uint8_t)(1 << y % HIGH);
		s->used[colour] = true;
	}
	s->errors[0] = s->errors[1];
	s->errors[1] = done;
	memset(done, 0, 3 * (width + 2) * sizeof(*done));
}

static void add_rows(struct strbuf *b, struct sixels *s)
{
	size_t width = (size_t)s->p->width;
	bool any = false;

	for (int i = 0; i < s->n; i++) {
		uint8_t *bits = s->bits + (size_t)i * width;

		if (!s->used[i])
			continue;
		strbuf_printf(b, "%s#%d", any ? "$" : "", i);
		add_colour(b, bits, width);
		memset(bits, 0, width);
		s->used[i] = false;
		any = true;
	}
}

static int prepare_sixels(struct sixels *s, int colours)
{
	size_t row = 3 * ((size_t)s->p->width + 2);

	if (choose_colours(s, colours) < 0)
		return -1;
	s->nearest = malloc(KINDS * sizeof(*s->nearest));
	s->errors[0] = calloc(row, sizeof(*s->errors[0]));
	s->errors[1] = calloc(row, sizeof(*s->errors[1]));
	s->bits = calloc((size_t)s->n, (size_t)s->p->width);
	if (!s->nearest || !s->errors[0] || !s->errors[1] || !s->bits)
		return -1;
	memset(s->nearest, 0xff, KINDS * sizeof(*s->nearest));
	return 0;
}

static void add_picture(struct strbuf *b, struct sixels *s)
{
	strbuf_printf(b, "\033Pq\"1;1;%d;%d", s->p->width, s->p->height);
	add_palette(b, s);
	for (int y = 0; y < s->p->height; y++) {
		take_row(s, y);
		if (y % HIGH < HIGH - 1 && y < s->p->height - 1)
			continue;
		strbuf_puts(b, y < HIGH ? "" : "-");
		add_rows(b, s);
	}
	strbuf_puts(b, "\033\\");
}

int sixels_add(struct strbuf *b, const struct picture *p, int colours)
{
	struct sixels s = {.p = p};
	int r = prepare_sixels(&s, colours);

	if (r == 0)
		add_picture(b, &s);
	free(s.nearest);
	free(s.errors[0]);
	free(s.errors[1]);
	free(s.bits);
	return r < 0 || b->failed ? -1 : 0;
}
