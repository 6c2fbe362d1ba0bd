/* SPDX-License-Identifier: MIT */
/* fuzz-sources: repl/term/vt/vt.c repl/term/vt/sequence.c */
/*
 * fuzz_vt.c - the terminal gets only allowed sequences from any output
 *
 * The first byte chooses the mode, the reserved characters and the split. Then
 * the output is checked:
 *
 *	- a small checker that shares no code with the parser finds only text
 *	  and sequences of the kinds that may pass;
 *	- filtering it again changes nothing and drops nothing;
 *	- the place of the split makes no difference;
 *	- a second undo is empty.
 */
#include <locale.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "repl/term/vt/vt.h"
#include "repl/text/utf8.h"

struct bytes {
	uint8_t *p;
	size_t n, size;
};

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int claim)
{
	if (!claim)
		abort();
}

static void bytes_add(void *arg, const void *buf, size_t n)
{
	struct bytes *b = arg;

	if (b->n + n > b->size) {
		b->size = 2 * (b->n + n);
		b->p = realloc(b->p, b->size);
		must(b->p != NULL);
	}
	if (n)
		memcpy(b->p + b->n, buf, n);
	b->n += n;
}

static uint64_t dropped(const struct vt *v)
{
	uint64_t n = 0;

	for (int i = 0; i < VT_DROP_KINDS; i++)
		n += v->dropped[i];
	return n;
}

static void filter(struct vt *v, struct bytes *out, enum vt_mode mode,
	enum vt_reserve reserve, const uint8_t *in, size_t n, size_t step)
{
	vt_init(v, mode, bytes_add, out);
	v->reserve = reserve;
	v->columns = 80;
	for (size_t i = 0; i < n; i += step)
		vt_feed(v, in + i, n - i < step ? n - i : step);
	vt_finish(v, false);
}

/* The length of an allowed sequence at `p`. */
static size_t check_sequence(const uint8_t *p, size_t n, enum vt_reserve r)
{
	size_t i = 2;

	must(n >= 2);
	if (strchr("78DME=>", p[1]))
		return 2;
	if (p[1] == '(' || p[1] == ')') {
		must(n >= 3 && (p[2] == 'B' || p[2] == '0'));
		return 3;
	}
	must(p[1] == '[');
	while (i < n && ((p[i] >= '0' && p[i] <= ';') || p[i] == '?'))
		i++;
	must(i < n && p[i] != '\0');
	if (p[2] == '?')
		must(p[i] == 'h' || p[i] == 'l');
	else
		must(strchr("mABCDEFGHIZfade`JKLM@PXSTbrsuhl", p[i]) != NULL);
	if (p[i] == 'm' && r == VT_RESERVE_FAINT)
		must(i != 3 || p[2] != '2');
	return i + 1;
}

static void check_output(
	const uint8_t *p, size_t n, enum vt_mode mode, enum vt_reserve r)
{
	const char *controls =
		mode == VT_SAFE ? "\n\t\r\b\a\x0e\x0f" : "\n\t\r\b";
	size_t i = 0;

	while (i < n) {
		uint32_t cp;
		int len = utf8_get(p + i, n - i, &cp);

		must(len > 0);
		must(cp < 0x7f || cp > 0x9f);
		must(r != VT_RESERVE_BAR || cp != 0xa6);
		if (cp == 0x1b) {
			must(mode == VT_SAFE);
			i += check_sequence(p + i, n - i, r);
		} else {
			must(cp >= 0x20 || (cp && strchr(controls, (int)cp)));
			i += (size_t)len;
		}
	}
}

/* A second parser reads output and undo: no mode may stay on. */
static void check_undo(struct vt *v, struct bytes *out, enum vt_mode mode)
{
	static struct vt again;
	struct bytes none = {NULL, 0, 0};

	if (out->n)
		vt_undo(v);
	filter(&again, &none, mode, VT_RESERVE_NOTHING, out->p, out->n,
		out->n + 1);
	none.n = 0;
	vt_undo(&again);
	must(none.n == 0);
	free(none.p);
}

static void fuzz_raw(const uint8_t *in, size_t n, size_t step)
{
	static struct vt v;
	struct bytes out = {NULL, 0, 0};

	filter(&v, &out, VT_RAW, VT_RESERVE_FAINT, in, n, step);
	must(out.n == n || out.n == n + 3);
	must(n == 0 || memcmp(out.p, in, n) == 0);
	must(dropped(&v) == 0);
	vt_undo(&v);
	free(out.p);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	setlocale(LC_CTYPE, "C.UTF-8");
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct vt v, whole, again;
	struct bytes out = {NULL, 0, 0}, one = {NULL, 0, 0}, two = {NULL, 0, 0};
	enum vt_mode mode;
	enum vt_reserve reserve;
	size_t step;

	if (!size)
		return 0;
	mode = data[0] & 1 ? VT_PLAIN : VT_SAFE;
	reserve = data[0] & 2 ? VT_RESERVE_BAR : VT_RESERVE_FAINT;
	step = (size_t)(data[0] >> 4) + 1;
	data++;
	size--;
	fuzz_raw(data, size, step);

	filter(&v, &out, mode, reserve, data, size, step);
	check_output(out.p, out.n, mode, reserve);

	filter(&whole, &one, mode, reserve, data, size, size + 1);
	must(out.n == one.n && (!one.n || !memcmp(out.p, one.p, one.n)));
	must(!memcmp(v.dropped, whole.dropped, sizeof(v.dropped)));

	filter(&again, &two, mode, reserve, out.p, out.n, out.n + 1);
	must(two.n == out.n && (!out.n || !memcmp(out.p, two.p, out.n)));
	must(dropped(&again) == 0 && again.faint == 0);
	must(again.pen.column == v.pen.column);

	check_undo(&v, &out, mode);
	free(out.p);
	free(one.p);
	free(two.p);
	return 0;
}
