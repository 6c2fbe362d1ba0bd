/* SPDX-License-Identifier: MIT */
/*
 * encode.c - writes a picture as PNG, by zlib
 *
 * Runs in:   front end
 * Trusts:    zlib with pixels of a known size. zlib never reads a file of the
 *            guest's
 *
 * A PNG file is three chunks; one holds zlib's output. libpng would write the
 * file too, but needs the mathematical library. A program linked to that loads
 * it at each start, which takes longer than to load all of the front end.
 */
#include "picture.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static void put_32(uint8_t *to, size_t v)
{
	for (int i = 3; i >= 0; i--, v >>= 8)
		to[i] = (uint8_t)v;
}

static void add_chunk(
	struct strbuf *b, const char *kind, const void *body, size_t n)
{
	uint8_t word[4];
	uLong crc = crc32(0, (const Bytef *)kind, 4);

	put_32(word, n);
	strbuf_add(b, word, 4);
	strbuf_puts(b, kind);
	strbuf_add(b, body, n);
	put_32(word, crc32(crc, body, (uInt)n));
	strbuf_add(b, word, 4);
}

/* Write each row as its difference from the row above: filter 2. */
static uint8_t *filter_rows(const struct picture *p, size_t row)
{
	uint8_t *rows = malloc((row + 1) * (size_t)p->height), *to = rows;

	for (int y = 0; rows && y < p->height; y++) {
		const uint8_t *from = p->rgb + row * (size_t)y;
		const uint8_t *above = y > 0 ? from - row : NULL;

		*to++ = above ? 2 : 0;
		for (size_t i = 0; i < row; i++)
			*to++ = (uint8_t)(from[i] - (above ? above[i] : 0));
	}
	return rows;
}

int encode_png(struct strbuf *b, const struct picture *p)
{
	/* 8 bits a sample; colour type 2 is RGB; the other methods are 0. */
	uint8_t head[13] = {[8] = 8, 2};
	size_t row = 3 * (size_t)p->width;
	uLong n = (uLong)((row + 1) * (size_t)p->height), packed_n;
	uint8_t *rows = filter_rows(p, row), *packed;
	int r = -1;

	packed_n = compressBound(n);
	packed = malloc(packed_n);
	if (rows && packed &&
		compress2(packed, &packed_n, rows, n, 4) == Z_OK) {
		put_32(head, (size_t)p->width);
		put_32(head + 4, (size_t)p->height);
		strbuf_add(b, "\x89PNG\r\n\x1a\n", 8);
		add_chunk(b, "IHDR", head, sizeof(head));
		add_chunk(b, "IDAT", packed, packed_n);
		add_chunk(b, "IEND", "", 0);
		r = b->failed ? -1 : 0;
	}
	free(rows);
	free(packed);
	return r;
}
