/* SPDX-License-Identifier: MIT */
/*
 * picture.h - pixels to the sequence that a terminal draws
 *
 *	picture.c	how large it is, and what stands around it
 *	blocks.c	two pixels a character
 *	head.c		what a cell says about its pixels
 *	encode.c	PNG, by zlib
 *	sixels.c	sixel, in colours that libsixel chooses
 *
 * Pure: pixels and a terminal's properties go in, bytes come out. A sequence
 * begins in column 0 of an empty row and ends in column 0 of the row below the
 * picture, whatever the terminal does with the cursor as it draws: the rows
 * are there before it does, and its cursor is put back.
 */
#ifndef REPL_PICTURE_PICTURE_H
#define REPL_PICTURE_PICTURE_H

#include "repl/text/text.h"

#include <stdbool.h>
#include <stdint.h>

/* Better ones last. */
enum picture_way {
	PICTURE_BLOCKS_256, /* half blocks, 256 colours */
	PICTURE_BLOCKS,	    /* half blocks, 24 bits */
	PICTURE_SIXEL,
	PICTURE_ITERM2,
	PICTURE_KITTY,
};

/* Three bytes a pixel: red, green, blue. */
struct picture {
	int width, height;
	uint8_t *rgb;
};

struct picture_place {
	enum picture_way way;
	int rows, columns;	     /* of the terminal */
	int cell_width, cell_height; /* in pixels; 0: not known */
	int registers;		     /* colours of a sixel picture, 2 to 256 */
};

/* Append the sequence for a picture, which is made smaller where it would not
 * fit, and never larger. 0, or -1: out of memory. */
int picture_add(struct strbuf *b, const struct picture *p,
	const struct picture_place *at);

/* The picture in another size: *to has the size, and gets pixels, which the
 * caller frees. 0, or -1: out of memory. */
int picture_scale(struct picture *to, const struct picture *from);

/* ---- head.c: what stands before a picture in a cell's pipe ---- */

/* The most pixels of a picture; PIXELS in pictures.py. */
#define PICTURE_PIXELS (1 << 22)

struct picture_head {
	int width, height;
	int whole_width, whole_height; /* of what it was made from */
	unsigned number;	       /* of the file in the home; 0: none */
};

/* Read a head of JAIL_PICTURE_HEAD bytes, which may be anything. 0, or -1. */
int head_read(struct picture_head *h, const char *bytes);

/* ---- what picture.c uses of the other files ---- */

/* Append a picture of two pixels a character, row by row. */
void blocks_add(struct strbuf *b, const struct picture *p, bool true_colour);

/* Append it as a PNG file, or as a sixel sequence of at most so many colours.
 * 0, or -1. */
int encode_png(struct strbuf *b, const struct picture *p);
int sixels_add(struct strbuf *b, const struct picture *p, int colours);

#endif
