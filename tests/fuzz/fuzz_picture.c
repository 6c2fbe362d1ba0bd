/* SPDX-License-Identifier: MIT */
/* fuzz-sources: repl/picture/head.c repl/picture/picture.c
 * repl/picture/blocks.c repl/picture/encode.c repl/picture/sixels.c
 * repl/term/ask.c
 */
/* fuzz-libs: -lsixel -lz */
/*
 * fuzz_picture.c - any head and any pixels make a whole sequence or none
 *
 * The first bytes choose the terminal; a head follows, then pixels, over and
 * over. The same bytes are keys in which answers of the terminal are looked
 * for: bytes that are no answer come out unchanged.
 */
#include "must.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "jail/jail.h"
#include "repl/picture/picture.h"
#include "repl/term/term.h"

#define SMALL 20000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void draw(const struct picture_place *at, const struct picture_head *h,
	const uint8_t *data, size_t size)
{
	struct picture p = {.width = h->width, .height = h->height};
	size_t n = 3 * (size_t)p.width * (size_t)p.height;
	struct strbuf b = {0};

	p.rgb = malloc(n);
	for (size_t i = 0; i < n; i++)
		p.rgb[i] = size ? data[i % size] : 0;
	if (picture_add(&b, &p, at) == 0) {
		must(b.n > 2);
		must(b.s[b.n - 1] == (at->way <= PICTURE_BLOCKS ? '\n' : '\r'));
	}
	strbuf_free(&b);
	free(p.rgb);
}

static void ask(const uint8_t *data, size_t size)
{
	struct ask a = {.asked = 1};
	struct strbuf keys = {0};
	size_t escapes = 0;

	for (size_t i = 0; i < size; i++) {
		ask_filter(&a, (const char *)data + i, 1, &keys);
		escapes += data[i] == 0x1b;
	}
	must(keys.n + a.n <= size);
	must(escapes || keys.n == size);
	must(a.cell_width >= 0 && a.cell_height >= 0 && a.registers >= 0);
	strbuf_free(&keys);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct picture_place at;
	struct picture_head h;

	ask(data, size);
	if (size < 5 + JAIL_PICTURE_HEAD)
		return 0;
	at = (struct picture_place){.way = (enum picture_way)(data[0] % 5),
		.rows = data[1],
		.columns = data[2],
		.cell_width = data[3] % 30,
		.cell_height = data[4] % 50,
		.registers = 2 + data[3] % 255};
	data += 5;
	size -= 5;
	if (head_read(&h, (const char *)data) < 0)
		return 0;
	must(h.width > 0 && h.height > 0);
	must((int64_t)h.width * h.height <= PICTURE_PIXELS);
	if (h.width * h.height <= SMALL)
		draw(&at, &h, data + JAIL_PICTURE_HEAD,
			size - JAIL_PICTURE_HEAD);
	return 0;
}
