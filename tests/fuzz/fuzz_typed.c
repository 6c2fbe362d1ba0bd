/* SPDX-License-Identifier: MIT */
/* fuzz-sources: repl/term/typed.c repl/term/keys.c */
/*
 * fuzz_typed.c - keys typed ahead, and anything that comes back from the tty
 *
 * The first two bytes say how many of the others were typed, the third how many
 * of these were sent; the rest comes back. For all input, no key is handed over
 * that was not typed, and a line that may run was typed as that line.
 */
#include "must.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "repl/term/term.h"

#define CTRL_D 0x04

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whether each of these keys was typed, in this order. */
static int were_typed(const char *keys, size_t n, const char *typed, size_t all)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++, at++) {
		char c = keys[i];

		/* Line ends are \n, and what means nothing is 0. */
		while (at < all && typed[at] != c &&
			!(c == '\n' && typed[at] == '\r') &&
			!(c == 0 && ((unsigned char)typed[at] < 0x20 ||
					    typed[at] == 0x7f)))
			at++;
		if (at == all)
			return 0;
	}
	return 1;
}

/* Whether the keys are the last that were typed, and a line begins there. */
static int are_lines(const char *keys, size_t n, const char *typed, size_t all)
{
	const char *begin = typed + all - n;

	return n <= all && !memcmp(begin, keys, n) &&
	       (n == all || strchr("\r\n\3\4", begin[-1]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct strbuf left = {0};
	struct typed t = {0};
	const char *keys, *typed;
	size_t n, all;

	if (size < 3)
		return 0;
	all = (size_t)data[0] << 8 | data[1];
	size -= 3;
	all = all < size ? all : size;
	typed = (const char *)data + 3;
	typed_add(&t, typed, all);
	t.sent = t.keys.n * data[2] / 255;
	strbuf_add(&left, typed + all, size - all);
	must(!typed_unread(&t, left.s, left.n, &keys, &n) || n == 0);
	must(n <= all && were_typed(keys, n, typed, all));
	if (n && (memchr(keys, '\r', n) || memchr(keys, '\n', n)))
		must(are_lines(keys, n, typed, all));
	must(!n || !memchr(keys, CTRL_D, n) || memchr(typed, CTRL_D, all));
	typed_forget(&t);
	strbuf_free(&left);
	return 0;
}
