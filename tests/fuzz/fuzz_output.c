/* SPDX-License-Identifier: MIT */
/* fuzz-sources: repl/term/output.c repl/term/vt/vt.c
 * repl/term/vt/pen.c repl/term/vt/sequence.c */
/*
 * fuzz_output.c - the end mark is found anywhere, and every byte before it is
 *                 accounted for
 *
 * Four bytes choose mode, limits, where the mark goes and where the input is
 * split. A 'M' in the input stands for the first 35 bytes of the mark, which
 * a fuzzer would not guess.
 */
#include "must.h"

#include <locale.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "repl/term/term.h"

#define MARK "\x1b_000102030405060708090a0b0c0d0e0f\x1b\\"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char mark[] = "000102030405060708090a0b0c0d0e0f";

struct seen {
	uint64_t shown, tapped;
	int lines;
};

static void seen_sink(void *arg, const void *buf, size_t n)
{
	const volatile uint8_t *p = buf;
	struct seen *s = arg;

	for (size_t i = 0; i < n; i++)
		(void)p[i]; /* every byte must be there to be read */
	s->shown += n;
}

static void seen_tap(void *arg, const void *buf, size_t n)
{
	struct seen *s = arg;

	(void)buf;
	s->tapped += n;
}

static void seen_line(void *arg, const char *text)
{
	struct seen *s = arg;

	must(text[0] != '\0' && !strpbrk(text, "\x1b\r\n"));
	s->lines++;
}

/* The cell's bytes, its mark, and the background's; in `in`. Returns where
 * the mark begins, by looking for it the plain way. */
static size_t assemble(
	const uint8_t *data, size_t size, size_t at, uint8_t *in, size_t *n)
{
	size_t end = 0;

	*n = 0;
	for (size_t i = 0; i <= size; i++) {
		if (i == at) {
			memcpy(in + *n, MARK, OUTPUT_MARK_LENGTH);
			*n += OUTPUT_MARK_LENGTH;
		}
		if (i == size)
			break;
		if (data[i] == 'M') {
			memcpy(in + *n, MARK, OUTPUT_MARK_LENGTH - 1);
			*n += OUTPUT_MARK_LENGTH - 1;
		} else {
			in[(*n)++] = data[i];
		}
	}
	while (memcmp(in + end, MARK, OUTPUT_MARK_LENGTH) != 0)
		end++;
	return end;
}

/* Marks with the other end in the cell's bytes: they count as no output. */
static size_t count_rows(const uint8_t *in, size_t n)
{
	static const char row[] = "\033_000102030405060708090a0b0c0d0e0f\a";
	const uint8_t *p = in;
	size_t rows = 0;

	while ((p = memmem(p, n - (size_t)(p - in), row, sizeof(row) - 1))) {
		p += sizeof(row) - 1;
		rows++;
	}
	return rows;
}

static void check_report(const struct output_report *r, const struct seen *s,
	uint64_t head, uint64_t tail, size_t cell, size_t rows)
{
	cell -= rows * (OUTPUT_MARK_STEM + 1);
	must(r->shown + r->cut == cell && s->tapped == cell);
	must(r->head <= head && r->shown <= head + tail);
	must(r->cut > 0 || r->shown == cell);
	must((r->cut > 0) == (s->lines > 0));
	/* A step to the left that may reach the edge goes out between two
	 * modes: ESC[?7l, the step, ESC[?7h. The filter also adds the undo,
	 * newlines and a screen; so it does where a row begins. */
	must(s->shown <= 16 * r->shown + 600 * (rows + 1));
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
	struct seen s = {0, 0, 0};
	struct output_opts opts = {.colour = true,
		.columns = 80,
		.mark = mark,
		.cell = 1,
		.sink = seen_sink,
		.tap = seen_tap,
		.line = seen_line,
		.arg = &s};
	static struct output o;
	struct output_report r;
	size_t n, end, step, tail, done = 0;
	uint8_t *in;

	if (size < 4 || size > 4096)
		return 0;
	opts.mode = (enum vt_mode)(data[0] % 3);
	opts.head_bytes = data[1];
	tail = data[2];
	step = (data[0] >> 2) + 1u;
	in = malloc(OUTPUT_MARK_LENGTH * (size + 1));
	must(in != NULL);
	end = assemble(data + 4, size - 4, data[3] * (size - 4) / 255, in, &n);

	must(output_open(&o, tail, NULL) == 0);
	output_begin(&o, &opts);
	while (done < n) {
		size_t want = n - done < step ? n - done : step;
		size_t used = output_feed(&o, in + done, want);

		done += used;
		must(used == want || output_is_marked(&o));
		if (used < want)
			break;
	}
	must(done == end + OUTPUT_MARK_LENGTH || done == n);
	must(output_feed(&o, "x", 1) == 0);
	must(output_is_marked(&o));
	output_end(&o, &r);
	check_report(&r, &s, opts.head_bytes, tail, end, count_rows(in, end));
	output_summary(&r, seen_line, &s);
	output_background(&o, in + end, n - end, &r);
	must(r.shown + r.cut == n - end);
	output_close(&o);
	free(in);
	return 0;
}
