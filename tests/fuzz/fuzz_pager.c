/* SPDX-License-Identifier: MIT */
/* fuzz-sources: repl/term/pager.c repl/term/keys.c */
/*
 * fuzz_pager.c - any text in the pager, any keys, any size
 *
 * Two bytes are the size, then keys up to a NUL, then the text. A key 0xFE is
 * another size.
 */
#include "must.h"

#include <locale.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "repl/term/term.h"
#include "repl/text/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The columns of a row, without our own sequences; nothing else may be a
 * control. */
static int columns_of(struct strbuf *b)
{
	char *to = b->s;

	for (char *s = b->s; b->n && *s; s++)
		if (*s == '\x1b') {
			must(s[1] == '[');
			s += 2 + strspn(s + 2, "0123456789;");
			must(*s == 'm');
		} else {
			must((unsigned char)*s >= 0x20 && *s != 0x7F);
			*to++ = *s;
		}
	return b->n ? layout_columns(b->s, (size_t)(to - b->s)) : 0;
}

/* Fewer columns than this do not hold each character's name, "<10FFFF>", which
 * is what one counts for that has no width of its own. */
#define NAME_COLUMNS 8

/* No row is wider than the terminal, the last one narrower. */
static void look(struct pager *p)
{
	struct strbuf b = {0};

	for (int i = 0; i < p->rows - 1; i++) {
		b.n = 0;
		pager_add_row(p, i, &b);
		must(columns_of(&b) <= p->columns || p->columns < NAME_COLUMNS);
	}
	b.n = 0;
	pager_add_status(p, &b);
	must(columns_of(&b) < p->columns || p->columns == 1);
	pager_draw(p, &b);
	must(p->top < p->nstarts || !p->nstarts);
	strbuf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct key out[KEYS_OUT_MAX];
	struct strbuf text = {0};
	const uint8_t *end;
	struct keys k;
	struct pager p;

	setlocale(LC_CTYPE, "C.UTF-8");
	end = size > 2 ? memchr(data + 2, 0, size - 2) : NULL;
	if (!end || end == data + size - 1)
		return 0;
	text_lines(
		&text, (const char *)end + 1, size - (size_t)(end + 1 - data));
	pager_open(&p, text.s, text.n, data[0] % 40 + 1, data[1] % 100 + 1);
	keys_init(&k);
	look(&p);
	for (const uint8_t *s = data + 2; s < end; s++) {
		int n = keys_feed(&k, *s, out);

		if (*s == 0xFE)
			pager_resize(&p, s[1] % 40 + 1, *data % 100 + 1);
		for (int i = 0; i < n && *s != 0xFE; i++)
			pager_press(&p, &out[i]);
		look(&p);
	}
	pager_close(&p);
	strbuf_free(&text);
	return 0;
}
