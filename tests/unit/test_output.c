/* SPDX-License-Identifier: MIT */
/*
 * test_output.c - a cell's output ends at its mark, is bounded, restores
 *                 the terminal, and names what was dropped
 */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "repl/term/term.h"
#include "repl/text/text.h"

#define MARK "\x1b_000102030405060708090a0b0c0d0e0f\x1b\\"

static const char mark[] = "000102030405060708090a0b0c0d0e0f";

struct screen {
	char buf[1 << 16];
	size_t n;
	uint64_t all; /* may exceed buf */
	uint64_t tapped;
};

static void screen_add(void *arg, const void *buf, size_t n)
{
	struct screen *s = arg;

	s->all += n;
	if (n >= sizeof(s->buf) - s->n)
		return;
	memcpy(s->buf + s->n, buf, n);
	s->n += n;
	s->buf[s->n] = '\0';
}

static void screen_tap(void *arg, const void *buf, size_t n)
{
	struct screen *s = arg;

	(void)buf;
	s->tapped += n;
}

static void screen_line(void *arg, const char *text)
{
	screen_add(arg, "<", 1);
	screen_add(arg, text, strlen(text));
	screen_add(arg, ">", 1);
}

struct fixture {
	struct output o;
	struct output_opts opts;
	struct output_report r;
	struct screen s;
};

static struct fixture *fixture_new(uint64_t head, size_t tail)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(output_open(&f->o, tail, NULL), 0);
	f->opts = (struct output_opts){.mode = VT_SAFE,
		.colour = true,
		.columns = 80,
		.head_bytes = head,
		.mark = mark,
		.cell = 12,
		.sink = screen_add,
		.tap = screen_tap,
		.line = screen_line,
		.arg = &f->s};
	return f;
}

static void fixture_free(struct fixture *f)
{
	output_close(&f->o);
	free(f);
}

static void begin(struct fixture *f)
{
	f->s.n = f->s.all = f->s.tapped = 0;
	f->s.buf[0] = '\0';
	output_begin(&f->o, &f->opts);
}

/* Show `in`, read in two parts; the bytes after the mark must be left over. */
static void show(struct fixture *f, const char *in, size_t n, size_t split,
	size_t want_used)
{
	size_t used;

	begin(f);
	used = output_feed(&f->o, in, split);
	if (used == split)
		used += output_feed(&f->o, in + split, n - split);
	assert_int_equal(used, want_used);
	output_end(&f->o, &f->r);
}

static void shows(enum vt_mode mode, const char *before, const char *after,
	const char *want)
{
	struct fixture *f = fixture_new(1000, 100);
	size_t n = strlen(before), end = n + OUTPUT_MARK_LENGTH;
	char in[512];

	f->opts.mode = mode;
	snprintf(in, sizeof(in), "%s%s%s", before, MARK, after);
	for (size_t split = 0; split <= strlen(in); split++) {
		show(f, in, strlen(in), split, end);
		assert_true(output_is_marked(&f->o));
		assert_true(output_is_marked(&f->o));
		assert_string_equal(f->s.buf, want);
		assert_int_equal(f->r.shown + f->r.cut, n);
		assert_int_equal(f->s.tapped, n);
	}
	fixture_free(f);
}

static void the_mark_ends_the_cell_wherever_it_is_split(void **state)
{
	(void)state;
	shows(VT_SAFE, "", "", "");
	shows(VT_SAFE, "hello\r\n", "", "hello\r\n");
	shows(VT_SAFE, "hello\r\n", "background\r\n", "hello\r\n");
	shows(VT_SAFE, "hello\r\n", MARK, "hello\r\n");
}

static void the_mark_is_found_after_anything(void **state)
{
	(void)state;
	shows(VT_SAFE, "a\x1b]0;abc", "z", "a\r\n");
	shows(VT_SAFE, "a\x1b", "z", "a\r\n");
	shows(VT_SAFE, "a\x1b[31", "z", "a\r\n");
	shows(VT_SAFE, "a\x1bPq", "z", "a\r\n");
	shows(VT_SAFE, "a\xe2\x82", "z", "a\\xe2\\x82\r\n");
	shows(VT_SAFE, "a\x1b_0001020304", "z", "a\r\n");
	shows(VT_SAFE, "a\x1b_000102030405060708090a0b0c0d0e0f\x1b", "z",
		"a\r\n");
	shows(VT_SAFE, "a\x1b_000102030405060708090a0b0c0d0e0f", "z", "a\r\n");
	shows(VT_PLAIN, "a\x1b]0;abc", "z", "a\r\n");
	shows(VT_RAW, "a\x1b]0;abc", "z", "a\x1b]0;abc\x18\x1b\\\r\n");
}

static void a_wrong_mark_is_treated_as_any_apc(void **state)
{
	static const char other[] =
		"a\x1b_ff0102030405060708090a0b0c0d0e0f\x1b\\b\r\n";
	struct fixture *f = fixture_new(1000, 100);

	(void)state;
	for (size_t split = 0; split < sizeof(other); split++) {
		show(f, other, sizeof(other) - 1, split, sizeof(other) - 1);
		assert_false(output_is_marked(&f->o));
		assert_string_equal(f->s.buf, "ab\r\n");
		assert_int_equal(f->r.dropped[VT_DROP_APC], 1);
	}
	fixture_free(f);
}

static void the_mark_of_one_cell_does_not_end_the_next(void **state)
{
	static const char next[] = "aa000000000000000000000000000000";
	struct fixture *f = fixture_new(1000, 100);

	(void)state;
	show(f, MARK, OUTPUT_MARK_LENGTH, 3, OUTPUT_MARK_LENGTH);
	f->opts.mark = next;
	show(f, "a" MARK "b", OUTPUT_MARK_LENGTH + 2, 3,
		OUTPUT_MARK_LENGTH + 2);
	assert_false(output_is_marked(&f->o));
	assert_string_equal(f->s.buf, "ab\r\n");
	fixture_free(f);
}

static void a_mark_with_a_bell_begins_a_line(void **state)
{
	static const struct {
		const char *before, *want;
		bool alone;
	} t[] = {
		{"", "b\r\n", false},
		{"a\r\n", "a\r\nb\r\n", false},
		{"a", "a\r\nb\r\n", false},
		{"a\x1b[31m\r", "a\x1b[31m\r\x1b[m\r\nb\r\n", false},
		{"a", "ab\r\n", true},
	};
	struct fixture *f = fixture_new(1000, 100);
	char in[128];

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		size_t n = (size_t)snprintf(in, sizeof(in), "%s%.*s\ab",
			t[i].before, OUTPUT_MARK_STEM, MARK);

		f->opts.alone = t[i].alone;
		for (size_t split = 0; split <= n; split++) {
			show(f, in, n, split, n);
			assert_false(output_is_marked(&f->o));
			assert_string_equal(f->s.buf, t[i].want);
			assert_int_equal(f->s.tapped, strlen(t[i].before) + 1);
		}
	}
	fixture_free(f);
}

static void held_bytes_without_a_mark_belong_to_the_cell(void **state)
{
	struct fixture *f = fixture_new(1000, 100);

	(void)state;
	show(f, "a\x1b_0001", 7, 4, 7);
	assert_false(output_is_marked(&f->o));
	assert_int_equal(f->r.shown + f->r.cut, 7);
	assert_string_equal(f->s.buf, "a\r\n");
	assert_int_equal(f->r.dropped[VT_DROP_UNFINISHED], 1);
	fixture_free(f);
}

static void output_is_shown_at_once(void **state)
{
	struct fixture *f = fixture_new(1000, 100);

	(void)state;
	begin(f);
	output_feed(&f->o, "name? ", 6);
	assert_string_equal(f->s.buf, "name? ");
	output_feed(&f->o, "x\x1b", 2);
	assert_string_equal(f->s.buf, "name? x");
	output_feed(&f->o, "[1my", 4);
	assert_string_equal(f->s.buf, "name? x\x1b[1my");
	output_end(&f->o, &f->r);
	fixture_free(f);
}

/* A hundred lines of ten bytes. */
static void feed_lines(struct fixture *f)
{
	begin(f);
	for (int i = 0; i < 100; i++) {
		char line[16];

		snprintf(line, sizeof(line), "line %03u\r\n",
			(unsigned)i % 1000);
		output_feed(&f->o, line, 10);
	}
	output_feed(&f->o, MARK, OUTPUT_MARK_LENGTH);
	output_end(&f->o, &f->r);
}

static void past_the_limit_the_last_lines_are_shown(void **state)
{
	struct fixture *f = fixture_new(25, 25);

	(void)state;
	feed_lines(f);
	assert_string_equal(f->s.buf,
		"line 000\r\nline 001\r\nline \r\n"
		"<output limit: 25 B shown, 955 B not · last lines follow"
		" · :out 12 for more>"
		"line 098\r\nline 099\r\n");
	assert_int_equal(f->r.shown + f->r.cut, 1000);
	assert_int_equal(f->r.head, 25);
	assert_int_equal(f->r.shown, 45);
	assert_int_equal(f->r.cut, 955);
	assert_int_equal(f->s.tapped, 1000);
	assert_true(output_is_marked(&f->o));
	assert_false(f->r.newline_added);
	fixture_free(f);
}

static void output_that_fits_head_and_tail_is_shown_whole(void **state)
{
	struct fixture *f = fixture_new(25, 975);
	static char whole[1001];

	(void)state;
	for (int i = 0; i < 100; i++)
		snprintf(whole + (size_t)10 * (size_t)i, 11, "line %03u\r\n",
			(unsigned)i % 1000);
	feed_lines(f);
	assert_string_equal(f->s.buf, whole);
	assert_int_equal(f->r.cut, 0);
	assert_int_equal(f->r.shown, 1000);
	fixture_free(f);

	/* One byte less: output is dropped, and the drop is reported. */
	f = fixture_new(25, 974);
	feed_lines(f);
	assert_int_equal(f->r.shown + f->r.cut, 1000);
	assert_true(f->r.cut > 0);
	assert_non_null(strstr(f->s.buf, "<output limit: 25 B shown"));
	fixture_free(f);
}

static void a_tail_or_a_head_may_be_zero(void **state)
{
	struct fixture *f = fixture_new(20, 0);

	(void)state;
	f->opts.cell = 0;
	feed_lines(f);
	assert_string_equal(f->s.buf, "line 000\r\nline 001\r\n"
				      "<output limit: 20 B shown, 980 B not>");
	fixture_free(f);

	f = fixture_new(0, 20);
	f->opts.cell = 0;
	feed_lines(f);
	assert_string_equal(f->s.buf,
		"<output limit: 0 B shown, 990 B not · last lines follow>"
		"line 099\r\n");
	fixture_free(f);
}

static void a_cut_leaves_no_sequence_or_character_open(void **state)
{
	static const char in[] = "\x1b[31mab\x1b[1mcdefghijklmnopqrstuvwxyz"
				 "數數數數數數";

	(void)state;
	for (size_t head = 0; head < 12; head++) {
		for (size_t tail = 0; tail < 12; tail++) {
			struct fixture *f = fixture_new(head, tail);

			show(f, in, sizeof(in) - 1, 0, sizeof(in) - 1);
			/* Head and tail hold whole characters of `in`. */
			assert_null(strstr(f->s.buf, "\\x"));
			assert_null(strstr(f->s.buf, "\x1b[<"));
			assert_int_equal(f->r.shown + f->r.cut, sizeof(in) - 1);
			if (head >= 5)
				assert_non_null(strstr(f->s.buf, "\x1b[m"));
			fixture_free(f);
		}
	}
}

static void a_gigabyte_without_a_newline_is_counted(void **state)
{
	enum { CHUNK = 1 << 16, CHUNKS = 1 << 14 };
	struct fixture *f = fixture_new(1 << 12, 1 << 12);
	static char chunk[CHUNK];

	(void)state;
	memset(chunk, 'x', sizeof(chunk));
	begin(f);
	for (int i = 0; i < CHUNKS; i++)
		assert_int_equal(output_feed(&f->o, chunk, CHUNK), CHUNK);
	output_end(&f->o, &f->r);
	assert_int_equal(f->r.shown + f->r.cut, UINT64_C(1) << 30);
	assert_int_equal(f->r.shown, 1 << 13);
	assert_true(f->r.newline_added);
	assert_true(f->s.all < (1 << 13) + 200);
	fixture_free(f);
}

static void the_terminal_is_restored_after_a_cell(void **state)
{
	struct fixture *f = fixture_new(1000, 100);

	(void)state;
	show(f, "\x1b[?25l\x1b[31mred", 14, 0, 14);
	assert_string_equal(
		f->s.buf, "\x1b[?25l\x1b[31mred\x1b[?25h\x1b[m\r\n");
	assert_true(f->r.newline_added);
	show(f, "\x1b[?1049hscreen", 14, 0, 14);
	assert_non_null(strstr(f->s.buf, "\x1b[Hscreen\x1b[?1049l\r\x1b[J"));
	assert_false(f->r.newline_added);
	fixture_free(f);
}

static void the_width_may_change_while_a_cell_runs(void **state)
{
	struct fixture *f = fixture_new(1000, 100);

	(void)state;
	f->opts.columns = 10;
	begin(f);
	output_feed(&f->o, "0123456789a", 11);
	assert_int_equal(f->o.vt.pen.column, 1);
	output_resize(&f->o, 24, 20);
	output_feed(&f->o, "0123456789", 10);
	assert_int_equal(f->o.vt.pen.column, 11);
	output_end(&f->o, &f->r);
	fixture_free(f);
}

static void background_output_is_bounded_until_the_next_cell(void **state)
{
	struct fixture *f = fixture_new(10, 10);

	(void)state;
	show(f, "a\r\n" MARK, 3 + OUTPUT_MARK_LENGTH, 0,
		3 + OUTPUT_MARK_LENGTH);
	f->s.n = 0;
	output_background(&f->o, "\x1b[31mtick", 9, &f->r);
	assert_string_equal(f->s.buf, "\x1b[31mtick\x1b[m\r\n");
	assert_int_equal(f->r.cut, 0);
	assert_false(output_background_is_over(&f->o));
	f->s.n = 0;
	output_background(&f->o, "tock", 4, &f->r);
	assert_string_equal(f->s.buf, "t\r\n");
	assert_int_equal(f->r.cut, 3);
	f->s.n = 0;
	f->s.buf[0] = '\0';
	output_background(&f->o, "tick", 4, &f->r);
	assert_string_equal(f->s.buf, "");
	assert_int_equal(f->r.cut, 4);
	assert_true(output_background_is_over(&f->o));
	begin(f);
	output_background(&f->o, "tick", 4, &f->r);
	assert_string_equal(f->s.buf, "tick\r\n");
	fixture_free(f);
}

static void the_summary_names_dropped_output(void **state)
{
	struct fixture *f = fixture_new(1000, 100);
	static const char clip[] = "\x1b]52;c;cm0gLXJm\x07hello\r\n";
	static const char three[] = "\x1b]0;a\x07\x1b]2;b\x07\x1b]52;c;Yg\x07";

	(void)state;
	show(f, "hello\r\n", 7, 0, 7);
	f->s.n = 0;
	f->s.buf[0] = '\0';
	output_summary(&f->r, screen_line, &f->s);
	assert_string_equal(f->s.buf, "");

	show(f, clip, sizeof(clip) - 1, 0, sizeof(clip) - 1);
	output_summary(&f->r, screen_line, &f->s);
	assert_string_equal(
		f->s.buf, "hello\r\n<1 terminal sequence dropped: clipboard>");

	show(f, three, sizeof(three) - 1, 0, sizeof(three) - 1);
	output_summary(&f->r, screen_line, &f->s);
	assert_string_equal(f->s.buf,
		"<3 terminal sequences dropped: 2 title, 1 clipboard>");

	for (int i = 0; i < VT_DROP_KINDS; i++)
		f->r.dropped[i] = UINT64_MAX / VT_DROP_KINDS;
	f->s.n = 0;
	output_summary(&f->r, screen_line, &f->s);
	assert_non_null(strstr(f->s.buf, " unfinished>"));
	fixture_free(f);
}

/* A frame line as a string; the caller frees. */
static char *frame(const char *text, bool colour, int columns)
{
	struct output_look look = {colour, columns, "\n"};
	struct strbuf b = {0};

	output_frame(&b, text, &look);
	assert_false(b.failed);
	return b.s;
}

#define FRAME(text, colour, columns, want)                                     \
	do {                                                                   \
		char *frame_ = frame(text, colour, columns);                   \
		assert_string_equal(frame_, want);                             \
		free(frame_);                                                  \
	} while (0)

static void a_guest_cannot_write_a_frame_line(void **state)
{
	static const char text[] = "time limit: 10 s · killed";

	(void)state;
	for (int colour = 0; colour <= 1; colour++) {
		struct fixture *f = fixture_new(1000, 100);
		char *line = frame(text, colour, 0);
		size_t n = strlen(line);

		f->opts.colour = colour;
		show(f, line, n, 0, n);
		assert_non_null(strstr(f->s.buf, text));
		assert_null(strstr(f->s.buf, line));
		/* control: a raw cell can */
		f->opts.mode = VT_RAW;
		show(f, line, n, 0, n);
		assert_non_null(strstr(f->s.buf, line));
		fixture_free(f);
		free(line);
	}
}

static void frame_lines_are_in_brackets_and_safe(void **state)
{
	char text[10000], *line;

	(void)state;
	FRAME("home kept", true, 80, "\x1b[0;2m¦ [home kept]\x1b[0m\n");
	FRAME("home kept", false, 80, "¦ [home kept]\n");
	FRAME("file \x1b]0;x\x07\n", false, 80, "¦ [file \\x1b]0;x\\x07\\n]\n");
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	line = frame(text, true, 80);
	assert_non_null(strstr(line, "x…]\x1b[0m\n"));
	free(line);
}

static void frame_lines_are_folded_at_words(void **state)
{
	static const char text[] = "CPU limit: 10 s · killed · home kept";

	(void)state;
	FRAME(text, true, 0,
		"\x1b[0;2m¦ [CPU limit: 10 s · killed · home kept]\x1b[0m\n");
	FRAME(text, true, 40,
		"\x1b[0;2m¦ [CPU limit: 10 s · killed · home kept]\x1b[0m\n");
	FRAME(text, true, 39,
		"\x1b[0;2m¦ [CPU limit: 10 s · killed · home\x1b[0m\n"
		"\x1b[0;2m¦  kept]\x1b[0m\n");
	FRAME(text, true, 20,
		"\x1b[0;2m¦ [CPU limit: 10 s ·\x1b[0m\n"
		"\x1b[0;2m¦  killed · home\x1b[0m\n"
		"\x1b[0;2m¦  kept]\x1b[0m\n");
	FRAME(text, false, 20,
		"¦ [CPU limit: 10 s ·\n"
		"¦  killed · home\n"
		"¦  kept]\n");
	FRAME("one  two", false, 80, "¦ [one  two]\n");
	FRAME("/a/word/that/has/no/room here", false, 12,
		"¦ [/a/word/that/has/no/room\n¦  here]\n");
}

static void without_a_line_function_the_sink_gets_the_frame(void **state)
{
	struct fixture *f = fixture_new(3, 0);

	(void)state;
	f->opts.line = NULL;
	show(f, "abcdef", 6, 0, 6);
	assert_string_equal(f->s.buf,
		"abc\r\n\x1b[0;2m¦ [output limit: 3 B shown, 3 B not"
		" · :out 12 for more]\x1b[0m\r\n");
	f->opts.columns = 40;
	show(f, "abcdef", 6, 0, 6);
	assert_string_equal(f->s.buf,
		"abc\r\n\x1b[0;2m¦ [output limit: 3 B shown, 3 B not ·"
		"\x1b[0m\r\n\x1b[0;2m¦  :out 12 for more]\x1b[0m\r\n");
	fixture_free(f);
}

/* True if the text is written to an alternate screen of 20 columns. */
static bool is_said_there(const char *text)
{
	struct fixture *f = fixture_new(100, 0);
	bool said;

	f->opts.columns = 20;
	output_begin(&f->o, &f->opts);
	output_feed(&f->o, "\x1b[?1049h", 8);
	f->s.n = 0;
	output_say(&f->o, text);
	said = f->s.n > 0;
	fixture_free(f);
	return said;
}

static void what_is_said_on_the_alternate_screen_fits_as_it_is_shown(
	void **state)
{
	(void)state;
	assert_true(is_said_there("17 columns ······"));
	assert_false(is_said_there("18 columns ·······"));
	assert_true(is_said_there("17 columns xxxxxx"));
	assert_false(is_said_there("18 columns xxxxxxx"));
	/* A control takes more columns than bytes. */
	assert_false(is_said_there("\x1b\x1b\x1b\x1b\x1b\x1b\x1b\x1b\x1b\x1b"));
}

/* Note the parts for watchers: bytes as they are, others by a letter each. */
static void screen_copy(
	void *arg, enum output_copied what, const void *buf, size_t n)
{
	if (what == OUTPUT_BYTES)
		screen_add(arg, buf, n);
	else
		screen_add(arg, what == OUTPUT_LINE ? "L" : "B", 1);
}

static void sink_nothing(void *arg, const void *buf, size_t n)
{
	(void)arg;
	(void)buf;
	(void)n;
}

/* Their terminals may have other sizes than ours, and draw no picture. */
static void watchers_are_told_that_a_line_begins(void **state)
{
	struct fixture *f = fixture_new(100, 0);

	(void)state;
	f->opts.copy = screen_copy;
	f->opts.sink = sink_nothing;
	f->opts.line = NULL;
	begin(f);
	output_feed(&f->o, "one", 3);
	assert_true(output_draw(&f->o, "picture", 7));
	output_feed(&f->o, "two", 3);
	output_break(&f->o);
	output_feed(&f->o, "three", 5);
	output_say(&f->o, "a line of ours");
	assert_string_equal(f->s.buf, "oneBtwoBthreeL");
	fixture_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(watchers_are_told_that_a_line_begins),
		cmocka_unit_test(the_mark_ends_the_cell_wherever_it_is_split),
		cmocka_unit_test(the_mark_is_found_after_anything),
		cmocka_unit_test(a_wrong_mark_is_treated_as_any_apc),
		cmocka_unit_test(a_mark_with_a_bell_begins_a_line),
		cmocka_unit_test(the_mark_of_one_cell_does_not_end_the_next),
		cmocka_unit_test(held_bytes_without_a_mark_belong_to_the_cell),
		cmocka_unit_test(output_is_shown_at_once),
		cmocka_unit_test(past_the_limit_the_last_lines_are_shown),
		cmocka_unit_test(output_that_fits_head_and_tail_is_shown_whole),
		cmocka_unit_test(a_tail_or_a_head_may_be_zero),
		cmocka_unit_test(a_cut_leaves_no_sequence_or_character_open),
		cmocka_unit_test(a_gigabyte_without_a_newline_is_counted),
		cmocka_unit_test(the_terminal_is_restored_after_a_cell),
		cmocka_unit_test(the_width_may_change_while_a_cell_runs),
		cmocka_unit_test(
			background_output_is_bounded_until_the_next_cell),
		cmocka_unit_test(the_summary_names_dropped_output),
		cmocka_unit_test(a_guest_cannot_write_a_frame_line),
		cmocka_unit_test(frame_lines_are_in_brackets_and_safe),
		cmocka_unit_test(frame_lines_are_folded_at_words),
		cmocka_unit_test(
			what_is_said_on_the_alternate_screen_fits_as_it_is_shown),
		cmocka_unit_test(
			without_a_line_function_the_sink_gets_the_frame),
	};

	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
