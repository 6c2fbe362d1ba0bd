/* SPDX-License-Identifier: MIT */
/*
 * picture.h - makes of pixels the sequence that a terminal draws
 *
 *	picture.c	fits a picture to a terminal; the protocols
 *	blocks.c	two pixels a character
 *	head.c		reads the header that a cell sends before its pixels
 *	encode.c	PNG, by zlib
 *	sixels.c	sixel, in colours that libsixel chooses
 *
 * Pure: takes pixels and a terminal's properties, gives bytes. A sequence
 * begins in column 0 of an empty row and ends in column 0 of the row below the
 * picture. Terminals leave the cursor in different places after drawing, so the
 * sequence makes the rows first, saves the cursor and restores it.
 */
#ifndef REPL_PICTURE_PICTURE_H
#define REPL_PICTURE_PICTURE_H

#include "repl/text/text.h"

#include <stdbool.h>
#include <stdint.h>

/* The ways to draw a picture, the best last. */
enum picture_way {
	PICTURE_BLOCKS_256, /* half blocks, 256 colours */
	PICTURE_BLOCKS,	    /* half blocks, 24 bits */
	PICTURE_SIXEL,
	PICTURE_ITERM2,
	PICTURE_KITTY,
};

/* Sizes in pixels; three bytes a pixel: red, green, blue. */
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

/* Append the sequence for a picture, which we shrink if it does not fit. 0, or
 * -1 with a part of the sequence in `b`: out of memory. */
int picture_add(struct strbuf *b, const struct picture *p,
	const struct picture_place *at);

/* Scale a picture to the size in *to, and set to->rgb, which the caller frees.
 * 0, or -1: out of memory. */
int picture_scale(struct picture *to, const struct picture *from);

/* ---- head.c: the header of a picture in a cell's pipe ---- */

/* Most pixels of a picture; PIXELS in jail/guest/pictures.py. */
#define PICTURE_PIXELS (1 << 22)

struct picture_head {
	int width, height;
	int whole_width, whole_height; /* before the guest scaled it down */
	unsigned number;	       /* of the file in the home; 0: none */
};

/* Read a header of JAIL_PICTURE_HEAD bytes (jail/jail.h). 0, or -1: invalid. */
int head_read(struct picture_head *h, const char *bytes);

/* ---- functions of the other files, for picture.c ---- */

/* Append a picture, two pixels a character; its size is in such pixels. */
void blocks_add(struct strbuf *b, const struct picture *p, bool true_colour);

/* Append a picture as a PNG file, or as a sixel sequence of at most `colours`
 * colours. 0, or -1: out of memory, or the library failed. */
int encode_png(struct strbuf *b, const struct picture *p);
int sixels_add(struct strbuf *b, const struct picture *p, int colours);

#endif
