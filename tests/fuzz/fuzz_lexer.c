/* SPDX-License-Identifier: MIT */
/* fuzz-sources: repl/edit/pyscan.c repl/edit/pycolour.c repl/edit/pypaste.c repl/edit/pyblock.c repl/command/coding.c */
/*
 * fuzz_lexer.c - command words and Python cells from any bytes
 */
#include "must.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "repl/command/command.h"
#include "repl/edit/python.h"
#include "repl/text/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_words(const char *s, size_t n)
{
	struct lexer_words w, again;

	if (lexer_split(s, n, &w, NULL) == 0)
		for (int i = 0; i < w.n; i++) {
			char *q = lexer_quote(w.v[i].s, 0);

			must(w.v[i].start < w.v[i].end && w.v[i].end <= n);
			if (q) {
				must(lexer_split(q, strlen(q), &again, NULL) ==
						0 &&
					again.n == 1);
				must(!strcmp(again.v[0].s, w.v[i].s));
				lexer_words_free(&again);
			}
			free(q);
		}
	lexer_words_free(&w);
}

static void try_cell(const wchar_t *s, size_t n)
{
	unsigned char *attr = malloc(n + 1);
	char close[PYSCAN_CLOSER];
	struct utf8_wide paste = {0};
	size_t pair[2];
	size_t at = 0;

	while (at < n) {
		struct pyscan_token t = pyscan_next(s, n, at);

		must(t.start == at && t.end > at && t.end <= n);
		at = t.end;
	}
	pyblock_cell(s, n);
	for (size_t i = 0; i <= n; i += n / 8 + 1) {
		struct pyblock_indent in = pyblock_indent(s, i);

		must(in.start + in.n <= i);
		if (pyblock_dedent(s, i, &in))
			must(in.start + in.n <= i);
		if (pyblock_match(s, n, i, pair))
			must(pair[0] < pair[1] && pair[1] < n);
		if (pyblock_call(s, i, &pair[0], &pair[1]))
			must(pair[0] < pair[1] && pair[1] < i);
	}
	pyscan_closer(s, n, close);
	must(strlen(close) < sizeof(close));
	pycolour_fill(s, n, attr);
	/* No more than what was pasted, and nothing else. */
	if (pypaste_read(s, n, &paste) == PYPASTE_PLAIN)
		must(paste.n == 0);
	must(paste.n <= n);
	for (size_t i = 0; i < paste.n; i++)
		must(wmemchr(s, paste.s[i], n) != NULL);
	utf8_wide_free(&paste);
	free(attr);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Copies of the exact size, so that AddressSanitizer sees a read past
	 * the end. */
	char *bytes = malloc(size + 1);
	struct utf8_wide text = {0};
	wchar_t *cell;

	memcpy(bytes, data, size);
	bytes[size] = 0;
	try_words(bytes, size);
	coding_check((const char *)data, size, "script", NULL);
	utf8_wide_decode(&text, bytes, size);
	cell = malloc((text.n + 1) * sizeof(*cell));
	wmemcpy(cell, text.s, text.n);
	cell = reallocarray(cell, text.n ? text.n : 1, sizeof(*cell));
	try_cell(cell, text.n);
	free(cell);
	utf8_wide_free(&text);
	free(bytes);
	return 0;
}
