/* SPDX-License-Identifier: MIT */
/*
 * blocks.c - draws a picture in half blocks, two pixels a character
 *
 * Runs in:   front end
 * Trusts:    nothing about the pixels
 */
#include "picture.h"

#include <stdio.h>
#include <string.h>

#define UPPER_HALF "\xe2\x96\x80"

/* The levels of red, green and blue in the cube of 6x6x6 colours. */
static const uint8_t steps[] = {0, 95, 135, 175, 215, 255};

static int nearest_step(int v)
{
	return v < 48 ? 0 : v < 115 ? 1 : (v - 35) / 40;
}

static int colour_distance(const uint8_t *a, int r, int g, int b)
{
	return (a[0] - r) * (a[0] - r) + (a[1] - g) * (a[1] - g) +
	       (a[2] - b) * (a[2] - b);
}

static int of_256(const uint8_t *p)
{
	int r = nearest_step(p[0]), g = nearest_step(p[1]),
	    b = nearest_step(p[2]);
	int grey = ((p[0] + p[1] + p[2]) / 3 - 3) / 10;

	grey = grey < 0 ? 0 : grey > 23 ? 23 : grey;
	if (colour_distance(p, 8 + 10 * grey, 8 + 10 * grey, 8 + 10 * grey) <
		colour_distance(p, steps[r], steps[g], steps[b]))
		return 232 + grey;
	return 16 + 36 * r + 6 * g + b;
}

/* Set the colour of the foreground (38) or the background (48). */
static char *add_colour(char *s, int what, const uint8_t *p, bool true_colour)
{
	if (true_colour)
		return s + sprintf(s, "\033[%d;2;%d;%d;%dm", what, p[0], p[1],
				   p[2]);
	return s + sprintf(s, "\033[%d;5;%dm", what, of_256(p));
}

static void add_row(struct strbuf *b, const uint8_t *above,
	const uint8_t *below, int width, bool true_colour)
{
	const uint8_t *was_above = NULL, *was_below = NULL;

	for (int x = 0; x < width; x++, above += 3) {
		char cell[64], *s = cell;

		if (!was_above || memcmp(above, was_above, 3) != 0)
			s = add_colour(s, 38, above, true_colour);
		if (below && (!was_below || memcmp(below, was_below, 3) != 0))
			s = add_colour(s, 48, below, true_colour);
		was_above = above;
		was_below = below;
		if (below)
			below += 3;
		memcpy(s, UPPER_HALF, 3);
		strbuf_add(b, cell, (size_t)(s + 3 - cell));
	}
	strbuf_puts(b, "\033[m\r\n");
}

void blocks_add(struct strbuf *b, const struct picture *p, bool true_colour)
{
	size_t row = 3 * (size_t)p->width;

	for (int y = 0; y < p->height; y += 2)
		add_row(b, p->rgb + row * (size_t)y,
			y + 1 < p->height ? p->rgb + row * (size_t)(y + 1)
					  : NULL,
			p->width, true_colour);
}
