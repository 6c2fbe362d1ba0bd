/* SPDX-License-Identifier: MIT */
/* fuzz-sources: repl/edit/undo.c */
/*
 * fuzz_layout.c - rows of any text at any width, and undo
 *
 * The first four bytes are the shape, the rest is the text.
 */
#include "must.h"

#include <locale.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "repl/edit/editor.h"
#include "repl/edit/parts.h"
#include "repl/text/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_layout(
	const struct utf8_wide *t, size_t cursor, int cols, int prompt)
{
	struct layout_shape shape = {
		.cols = cols, .prompt = prompt, .prompt2 = prompt / 2};
	struct layout l = {0};
	size_t at = 0;

	must(layout_build(&l, t->s, t->n, cursor, &shape) == 0);
	for (size_t i = 0; i < l.n; i++) {
		if (i && l.rows[i].prompt)
			at++;
		must(l.rows[i].start == at && l.rows[i].end >= at);
		must(l.rows[i].width <= cols);
		at = l.rows[i].end;
	}
	must(at == t->n && l.cursor_row < l.n && l.cursor_col < cols);
	layout_free(&l);
}

/* The text grows character by character, then undo removes all of it, and redo
 * brings it back. */
static void try_undo(const struct utf8_wide *t)
{
	struct undo u = {0};
	size_t n = t->n < 300 ? t->n : 300;

	for (size_t i = 0; i <= n; i++)
		must(undo_note(&u, t->s + i / 2, i - i / 2, i / 3, i & 1) == 0);
	must(u.now.n == n - n / 2);
	while (undo_pop(&u))
		must(u.now.n <= n);
	must(n >= UNDO_MAX || u.now.n == 0);
	while (undo_redo(&u))
		must(u.now.n <= n);
	must(u.now.n == n - n / 2);
	must(!wmemcmp(u.now.s ? u.now.s : L"", t->s + n / 2, u.now.n));
	undo_free(&u);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct utf8_wide t = {0};
	int cols;

	setlocale(LC_CTYPE, "C.UTF-8");
	if (size < 4)
		return 0;
	cols = 1 + data[0] + (data[1] & 1) * 256;
	utf8_wide_decode(&t, (const char *)data + 4, size - 4);
	try_layout(&t, t.n ? data[3] * 7919u % (t.n + 1) : 0, cols,
		data[2] % cols);
	for (size_t at = 0; at < t.n;) {
		size_t next = layout_next(t.s, t.n, at);

		must(next > at && next <= t.n);
		must(layout_prev(t.s, next) <= at || next == at + 1);
		at = next;
	}
	try_undo(&t);
	utf8_wide_free(&t);
	return 0;
}
