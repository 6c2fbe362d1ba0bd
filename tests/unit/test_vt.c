/* SPDX-License-Identifier: MIT */
/*
 * test_vt.c - a guest's output makes the terminal do no more than show it
 *
 * Every case is fed whole, and again split at each of its bytes: the result
 * and the counts must be the same.
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

#include "repl/term/vt/vt.h"

enum { NO_DROP = -1 };

struct capture {
	char buf[1 << 16];
	size_t n;
};

static void capture_emit(void *arg, const void *buf, size_t n)
{
	struct capture *c = arg;

	assert_true(n < sizeof(c->buf) - c->n);
	memcpy(c->buf + c->n, buf, n);
	c->n += n;
	c->buf[c->n] = '\0';
}

static uint64_t total_dropped(const struct vt *v)
{
	uint64_t n = 0;

	for (int i = 0; i < VT_DROP_KINDS; i++)
		n += v->dropped[i];
	return n;
}

static void run(struct vt *v, struct capture *c, enum vt_mode mode,
	const char *in, size_t n, size_t split)
{
	c->n = 0;
	c->buf[0] = '\0';
	vt_init(v, mode, capture_emit, c);
	v->free = true;
	vt_feed(v, in, split);
	vt_pen_flush(v);
	vt_feed(v, in + split, n - split);
	vt_finish(v, false);
}

static void check(enum vt_mode mode, const char *in, size_t n, const char *want,
	int kind, unsigned count)
{
	static struct capture c;
	static struct vt v;

	for (size_t split = 0; split <= n; split++) {
		run(&v, &c, mode, in, n, split);
		assert_int_equal(c.n, strlen(want));
		assert_string_equal(c.buf, want);
		assert_int_equal(total_dropped(&v), count);
		if (kind != NO_DROP)
			assert_int_equal(v.dropped[kind], count);
	}
}

#define PASSES(in) check(VT_SAFE, in, sizeof(in) - 1, in, NO_DROP, 0)
#define BECOMES(in, want) check(VT_SAFE, in, sizeof(in) - 1, want, NO_DROP, 0)
#define DROPS_N(in, want, kind, n)                                             \
	check(VT_SAFE, in, sizeof(in) - 1, want, kind, n)
#define DROPS(in, want, kind) DROPS_N(in, want, kind, 1)
#define PLAIN(in, want, kind, n)                                               \
	check(VT_PLAIN, in, sizeof(in) - 1, want, kind, n)

/* A cell writes `in`; `want` restores the terminal after it. */
static void check_undo(enum vt_mode mode, const char *in, const char *want)
{
	static struct capture c;
	static struct vt v;

	run(&v, &c, mode, in, strlen(in), 0);
	c.n = 0;
	c.buf[0] = '\0';
	vt_undo(&v);
	assert_string_equal(c.buf, want);
	c.n = 0;
	vt_undo(&v);
	assert_int_equal(c.n, 0);
}

static int column_after(const char *in, int columns)
{
	static struct capture c;
	static struct vt v;

	c.n = 0;
	vt_init(&v, VT_SAFE, capture_emit, &c);
	v.columns = columns;
	vt_feed(&v, in, strlen(in));
	vt_finish(&v, false);
	return v.pen.column;
}

static void ordinary_text_passes(void **state)
{
	(void)state;
	PASSES("");
	PASSES("hello\r\n\tworld\r\n!!\b?");
	PASSES("näïve 数 🐍");
	PASSES("\xef\xbf\xbf \xf4\x8f\xbf\xbf");
}

static void colours_and_movement_pass(void **state)
{
	(void)state;
	PASSES("\x1b[m\x1b[0;10m\x1b[0;1;31mred\x1b[39;49m");
	PASSES("\x1b[38;5;208mx\x1b[48;2;1;2;3my\x1b[38:2::1:2:3;4:3mz");
	PASSES("\x1b[H\x1b[2J\x1b[3;4H\x1b[A\x1b[2B\x1b[C\x1b[2D\x1b[K\x1b[1K");
	PASSES("\x1b[2;10r\x1b[L\x1b[M\x1b[@\x1b[P\x1b[X\x1b[S\x1b[T\x1bM\n");
	PASSES("\0337\0338");
	PASSES("\x1b(0lqk\x1b(B\x1b)0\x0eq\x0f");
}

/* A sequence that a terminal ignores must not be counted as done. */
static void a_movement_goes_out_in_the_form_that_every_terminal_knows(
	void **state)
{
	(void)state;
	BECOMES("\x1b[5G\x1b[1G\x1b[G\x1b[3`", "\r\x1b[4C\r\r\r\x1b[2C");
	BECOMES("\x1b[2a\x1b[2e\x1b[E\x1b[3E\x1b[2F",
		"\x1b[2C\x1b[2B\r\x1b[B\r\x1b[3B\r\x1b[2A");
	BECOMES("\x1b[s\x1b[u\x1b[?1048h\x1b[?25;1048l",
		"\0337\0338\0337\0338\x1b[?25l");
	BECOMES("\033D\033E", "\n\r\n");
	BECOMES("abc\x1b[D\x1b[9D\x1b[D\b", "abc\b\r");
}

static void modes_of_a_full_screen_program_pass(void **state)
{
	(void)state;
	PASSES("\x1b[?1049h\x1b[?25l\x1b[?1h\x1b=\x1b[?7l");
	PASSES("\x1b[?1049h\x1b[?1049l\x1b[?25h\x1b[?1l\x1b>\x1b[?7h");
	PASSES("\x1b[?1000l\x1b[?1002;1006l");
	PASSES("\x1b[?2004h\x1b[?2004l\x1b[4h\x1b[4l");
	/* terminfo adds parameters that are safe to drop. */
	BECOMES("\x1b[?1049h\x1b[22;0;0t", "\x1b[?1049h");
	BECOMES("\x1b[?12l\x1b[?25h", "\x1b[?25h");
	BECOMES("\x1b[?12;25h", "\x1b[?25h");
	BECOMES("\x1b[?25h\x1b[?0c", "\x1b[?25h");
	BECOMES("\x1b[34h\x1b[?25h", "\x1b[?25h");
}

static void control_strings_are_dropped_and_counted_by_kind(void **state)
{
	(void)state;
	DROPS("a\x1b]0;owned\x07z", "az", VT_DROP_TITLE);
	DROPS("a\x1b]2;owned\x1b\\z", "az", VT_DROP_TITLE);
	DROPS("a\x1bkowned\x1b\\z", "az", VT_DROP_TITLE);
	DROPS("\x1b]52;c;cm0gLXJm\x07hello", "hello", VT_DROP_CLIPBOARD);
	DROPS_N("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link",
		VT_DROP_HYPERLINK, 2);
	DROPS("\x1b]1337;File=inline=1:QUJD\x07", "", VT_DROP_OSC);
	DROPS("\x1b]10;?\x07", "", VT_DROP_OSC);
	DROPS("\x1b]104\x1b\\", "", VT_DROP_OSC);
	DROPS("\x1b]P0ff0000\x07", "", VT_DROP_OSC);
	DROPS("\x1bP$qm\x1b\\z", "z", VT_DROP_DCS);
	DROPS("\x1bPq#0;2;0;0;0\r\n#0~~\x1b\\z", "z", VT_DROP_DCS);
	DROPS("\x1b_Gi=1,a=T;AAAA\x1b\\z", "z", VT_DROP_APC);
	DROPS("\x1b^pm\x1b\\z", "z", VT_DROP_PM);
	DROPS("\x1bXsos\x1b\\z", "z", VT_DROP_SOS);
}

static void queries_are_dropped(void **state)
{
	static const char *const queries[] = {"\x1b[c", "\x1b[0c", "\x1b[>c",
		"\x1b[=c", "\x1b[5n", "\x1b[6n", "\x1b[?6n", "\x1b[x", "\x1bZ",
		"\x1b[4$p", "\x1b[?25$p", "\x1b[>q", "\x1b[>0q", "\x1b[?u",
		"\x1b[?4m", "\x1b[?2;1;0S", "\x1b[1;1;1;1;1;1*y", "\x1b[1$w",
		"\x05"};

	(void)state;
	for (size_t i = 0; i < sizeof(queries) / sizeof(*queries); i++)
		check(VT_SAFE, queries[i], strlen(queries[i]), "",
			VT_DROP_QUERY, 1);
}

static void sequences_with_effects_beyond_the_cell_are_dropped(void **state)
{
	(void)state;
	DROPS("\x1b[8;1;1t", "", VT_DROP_WINDOW);
	DROPS("\x1b[21t", "", VT_DROP_WINDOW);
	DROPS("\x1b[t", "", VT_DROP_WINDOW);
	DROPS("\x1b[?1000h", "", VT_DROP_MOUSE);
	DROPS("\x1b[?1003;1006h", "", VT_DROP_MOUSE);
	DROPS("\x1b[?1004h", "", VT_DROP_MOUSE);
	DROPS("\x1b[?25;1000l\x1b[?25;1000h", "\x1b[?25;1000l\x1b[?25h",
		VT_DROP_MOUSE);
	DROPS("\x1b[3J", "", VT_DROP_SCROLLBACK);
	DROPS("\x1b"
	      "c",
		"", VT_DROP_MODE);
	DROPS("\x1b[!p", "", VT_DROP_MODE);
	DROPS("\x1b[4 q", "", VT_DROP_MODE);
	DROPS("\x1b[3g", "", VT_DROP_MODE);
	DROPS("\x1bH", "", VT_DROP_MODE);
	DROPS("\x1b[2h", "", VT_DROP_MODE);
	DROPS("\x1b[?69h", "", VT_DROP_MODE);
	DROPS("\x1b[>4;2m", "", VT_DROP_MODE);
	DROPS("\x1b(A", "", VT_DROP_UNKNOWN);
	DROPS("\x1b%@", "", VT_DROP_CHARSET);
	DROPS("\x1bn", "", VT_DROP_CHARSET);
	DROPS("\x1b#8", "", VT_DROP_UNKNOWN);
	DROPS("\x1b[5i", "", VT_DROP_UNKNOWN);
	DROPS("\x1b[1;1;2;2;1;3;3;1$v", "", VT_DROP_UNKNOWN);
	DROPS("\x1b[1;5s", "", VT_DROP_FORMAT);
}

static void c1_controls_are_shown_and_counted(void **state)
{
	(void)state;
	DROPS("\x9b"
	      "31m",
		"\\x9b31m", VT_DROP_C1);
	DROPS("\xc2\x9b"
	      "31m",
		"\\x9b31m", VT_DROP_C1);
	DROPS("\xc2\x9d"
	      "0;t",
		"\\x9d0;t", VT_DROP_C1);
	DROPS("\x90", "\\x90", VT_DROP_C1);
}

static void invalid_utf8_is_shown(void **state)
{
	(void)state;
	BECOMES("\xff\xfe", "\\xff\\xfe");
	BECOMES("\xe2\x82", "\\xe2\\x82");
	BECOMES("\xe2\x82z", "\\xe2\\x82z");
	BECOMES("\xe2\xe2\x82\xac", "\\xe2€");
	BECOMES("\xe2\x82\x1b[1m", "\\xe2\\x82\x1b[1m");
	BECOMES("\xc0\xaf", "\\xc0\\xaf");
	BECOMES("\xed\xa0\xa0", "\\xed\\xa0\\xa0");
	BECOMES("\xf8\xa8", "\\xf8\\xa8");
}

static void controls_are_shown_or_counted(void **state)
{
	(void)state;
	BECOMES("\x01\x0b\x0c\x1c\x7f\x18\x1a", "^A^K^L^\\^?^X^Z");
	DROPS_N("a\0b\0", "ab", VT_DROP_CONTROL, 2);
	DROPS_N("\a\a\a\a\a\a\a\a\a\a", "\a\a\a\a\a\a\a\a", VT_DROP_BELL, 2);
}

static void broken_sequences_are_not_passed_on(void **state)
{
	(void)state;
	DROPS("\x1b[31\n2J", "\n2J", VT_DROP_UNKNOWN);
	DROPS("\x1b[31\x18zz", "zz", VT_DROP_UNKNOWN);
	DROPS("\x1b[31\x1b[1mz", "\x1b[1mz", VT_DROP_UNKNOWN);
	DROPS("\x1b[31\xc3\xa9", "é", VT_DROP_UNKNOWN);
	DROPS("\x1b\x1b[1mz", "\x1b[1mz", VT_DROP_UNKNOWN);
	DROPS("\x1b[1?25h", "", VT_DROP_UNKNOWN);
	DROPS("\x1b[1$ p", "", VT_DROP_UNKNOWN);
	DROPS("\x1b]0;abc\x1b[1mz", "\x1b[1mz", VT_DROP_TITLE);
	DROPS("\x1b]0;abc\x18z", "z", VT_DROP_TITLE);
	DROPS("\x1b[38;2m", "", VT_DROP_FORMAT);
	DROPS("\x1b[1;38;2;1;1m", "\x1b[1m", VT_DROP_FORMAT);
	DROPS("\x1b[1:2H", "", VT_DROP_FORMAT);
	BECOMES("\x1b\\z", "z");
}

static void an_unfinished_sequence_is_counted_once(void **state)
{
	(void)state;
	DROPS("z\x1b", "z", VT_DROP_UNFINISHED);
	DROPS("z\x1b[31", "z", VT_DROP_UNFINISHED);
	DROPS("z\x1b]0;abc", "z", VT_DROP_UNFINISHED);
	DROPS("z\x1b]0;abc\x1b", "z", VT_DROP_UNFINISHED);
	DROPS("z\x1bPabc", "z", VT_DROP_UNFINISHED);
}

static void an_unterminated_string_does_not_swallow_the_output(void **state)
{
	static char in[10000];
	static struct capture c;
	static struct vt v;

	(void)state;
	DROPS("\x1b]0;abc\r\nnext", "\r\nnext", VT_DROP_TITLE);
	DROPS("\x1b_abc\nnext", "\nnext", VT_DROP_APC);
	memset(in, 'a', sizeof(in));
	memcpy(in, "\x1bP", 2);
	run(&v, &c, VT_SAFE, in, sizeof(in), 5000);
	assert_in_range(c.n, sizeof(in) - VT_SEQUENCE_MAX - 8, sizeof(in));
	assert_int_equal(v.dropped[VT_DROP_DCS], 1);
	assert_int_equal(total_dropped(&v), 1);
}

static void parameters_without_end_are_bounded(void **state)
{
	enum { N = 40000 };
	static char in[N];
	static struct capture c;
	static struct vt v;

	(void)state;
	for (int i = 2; i < N; i++)
		in[i] = i % 3 ? '1' : ';';
	memcpy(in, "\x1b[", 2);
	run(&v, &c, VT_SAFE, in, N, 7);
	assert_in_range(c.n, N - VT_SEQUENCE_MAX - 8, N);
	assert_int_equal(total_dropped(&v), 1);
	assert_null(memchr(c.buf, '\x1b', c.n));

	BECOMES("\x1b[99999999999999999999A", "\x1b[9999A");
	BECOMES("x\x1b[99999999b", "x\x1b[1024b");
	DROPS("\x1b[1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1"
	      ";1;1;1m",
		"", VT_DROP_UNKNOWN);
}

static void a_guest_cannot_write_a_broken_bar(void **state)
{
	(void)state;
	BECOMES("¦ [time limit: 10 s]", ": [time limit: 10 s]");
	BECOMES("\x1b[2m\xc2\xa6", "\x1b[2m:");
	BECOMES("┆┇┊┋╎╏⁞⦙⸽￤", "::::::::::");
	PLAIN("¦ x", ": x", NO_DROP, 0);
	PASSES("|│║§");
}

/* The output of a cell on a terminal of 10 columns and 3 rows, on which others'
 * rows stand above. */
static const char *bounded(const char *in)
{
	static struct capture c;
	static struct vt v;

	c.n = 0;
	c.buf[0] = '\0';
	vt_init(&v, VT_SAFE, capture_emit, &c);
	v.rows = 3;
	v.columns = 10;
	vt_feed(&v, in, strlen(in));
	vt_pen_flush(&v);
	return c.buf;
}

#define BOUNDED(in, want) assert_string_equal(bounded(in), want)
#define TEN "\n\n\n\n\n\n\n\n\n\n"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
/* Three rows, and a hundred that a higher window would bring back. */
#define CLAIMED "\x1b[9999;1H\n\n\n" HUNDRED "\x1b[H"

/* Where there is no alternate screen, the main one is scrolled away. */
#define ALTERNATE "\x1b[?1049h" CLAIMED

/* At the left edge a terminal may go on in the row above, but not while text
 * does not run on. */
static void a_step_to_the_left_stays_in_its_row(void **state)
{
	(void)state;
	BOUNDED("数\b\x1b[3D", "数\x1b[?7l\b\x1b[?7h\x1b[?7l\x1b[3D\x1b[?7h");
	BOUNDED("\tx\b\rx\b\b", "\tx\x1b[?7l\b\x1b[?7h\rx\r");
	BOUNDED("\x1b[8C\b\x1b[5D", "\x1b[8C\r\x1b[7C\r\x1b[2C");
	BOUNDED("\x1b[?7l数\b", "\x1b[?7l数\b");
	/* Some terminals restore with the cursor that text runs on. */
	BOUNDED("\x1b[?7l\x1b[?1049h\x1b[?1049l\b\x1b[2D",
		"\x1b[?7l" ALTERNATE "\x1b[?1049l\x1b[?7l\b\x1b[2D");
	/* A screen of the guest's own has no row above. */
	BOUNDED("\x1b[?1049h数\b", ALTERNATE "数\b");
	PLAIN("\tx\b\rxy\b\b\b", "\tx^H\rxy\b\r", NO_DROP, 0);
}

static void the_cursor_does_not_go_above_the_first_row(void **state)
{
	(void)state;
	BOUNDED("\x1b[9Ax", "x");
	BOUNDED("a\r\nb\r\n\x1b[9Ax", "a\r\nb\r\n\x1b[2Ax");
	BOUNDED("a\r\n\x1b[A\x1b[Ax", "a\r\n\x1b[Ax");
	BOUNDED("a\r\n\x1b[F\x1b[9Fx", "a\r\n\r\x1b[A\rx");
	BOUNDED("\x1bMa\r\n\x1bM\x1bMx", "a\r\n\x1bMx");
	BOUNDED("\033D\033E\x1b[9A", "\n\r\n\x1b[2A");
	/* Down is known as far as the cursor has been. */
	BOUNDED("\x1b[5B\x1b[A", "\x1b[5B");
	BOUNDED("\n\n\x1b[2A\x1b[9B\x1b[9A", "\n\n\x1b[2A\n\n\x1b[7B\x1b[2A");
	BOUNDED("\x1b[?1049h\n\n\x1b[?1049l\x1b[9B\x1b[9Ax",
		"\x1b[?1049h" CLAIMED "\n\n\x1b[?1049l\x1b[9Bx");
	/* Up goes to the top of the screen, from where down does not scroll. */
	BOUNDED("\n\n\n\n\x1b[9A\x1b[9B", "\n\n\n\n\x1b[2A\n\n\x1b[7B");
}

/* A place on the screen may be another row when the window is higher. */
static void a_cursor_is_saved_as_a_place_in_the_output(void **state)
{
	(void)state;
	BOUNDED("ab\0337\ncd\n\x1b[31m\033(0\x0e\0338x",
		"ab\ncd\n\x1b[31m\033(0\x0e\r\x1b[2A\x1b[2C\x1b[m\033(B\x0fx");
	BOUNDED("\n\n\0337\x1b[2Aab\0338x", "\n\n\x1b[2Aab\r\n\nx");
	BOUNDED("\n\0337\n\0338\x1b[9A", "\n\n\r\x1b[A\x1b[A");
	BOUNDED("\0338", CLAIMED);
	/* The whole screen is the guest's. */
	BOUNDED("a\0337\x1b[3;1H\0338\0337\0338",
		"a" CLAIMED "\0337\x1b[3;1H\0338\0337\0338");
}

/* Text that wraps may be one row when it is drawn, or later. */
static void a_wrap_counts_as_a_row_where_a_line_feed_makes_it(void **state)
{
	(void)state;
	BOUNDED("0123456789a\x1b[9A", "0123456789a");
	BOUNDED("\x1b[31m0123456789a\x1b[9A", "\x1b[31m0123456789a");
	BOUNDED("\x1b[K0123456789\x1b[9A", "\x1b[K0123456789");
	BOUNDED("\x1b[K0123456789a\x1b[9A", "\x1b[K0123456789\r\na\x1b[A");
	BOUNDED("\x1b[K0123456789\x1b[31ma\x1b[9A",
		"\x1b[K0123456789\x1b[31m\r\na\x1b[A");
	BOUNDED("\x1b[K0123456789éa\x1b[9A", "\x1b[K0123456789\r\néa\x1b[A");
	BOUNDED("\x1b[K0123456789\xff\x1b[9A",
		"\x1b[K0123456789\r\n\\xff\x1b[A");
	BOUNDED("\x1b[K数数数数数数\x1b[9A", "\x1b[K数数数数数数");
	BOUNDED("\x1b[K数\r0123456789a\x1b[9A",
		"\x1b[K数\r0123456789\r\na\x1b[A");
	BOUNDED("0123456789\x1b[Da\x1b[9A", "0123456789\x1b[?7l\b\x1b[?7ha");
	BOUNDED("0123456789\x1b[Ka\x1b[9A", "0123456789\x1b[Ka");
	BOUNDED("0123456789\na\x1b[9A", "0123456789\na\x1b[A");
	BOUNDED("x\x1b[30b\x1b[9A", "x\x1b[30b");
	BOUNDED("\x1b[?7l0123456789a\x1b[9A", "\x1b[?7l0123456789a");
	/* A dropped sequence leaves the cursor where it was. */
	BOUNDED("0123456789\x1b[Aa\x1b[9A", "0123456789\r\na\x1b[A");
	BOUNDED("0123456789\x1b[?1049la\x1b[9A", "0123456789\r\na\x1b[A");
	/* A screen of the guest's own may wrap as it likes. */
	BOUNDED("\x1b[H0123456789a", CLAIMED "\x1b[H0123456789a");
	BOUNDED("\x1b[?1049h0123456789a", "\x1b[?1049h" CLAIMED "0123456789a");
	BECOMES("\x1b[K012345678901234567890123",
		"\x1b[K012345678901234567890123");
}

static void rows_of_others_are_scrolled_away_before_they_are_drawn_on(
	void **state)
{
	static const char *const whole[] = {"\x1b[H", "\x1b[2;3H", "\x1b[2d",
		"\x1b[1J", "\x1b[2J", "\x1b[S", "\x1b[T", "\x1b[2;3r",
		"\x1b[2;3f"};
	char want[256];

	(void)state;
	for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++) {
		snprintf(want, sizeof(want), CLAIMED "%s", whole[i]);
		assert_string_equal(bounded(whole[i]), want);
	}
	BOUNDED("a\x1b[H\x1b[2J\x1b[9A", "a" CLAIMED "\x1b[H\x1b[2J\x1b[9A");
	BOUNDED("\x1b[J\x1b[K\x1b[L", "\x1b[J\x1b[K\x1b[L");
}

/* However it is called, it gives the main screen's cursor back. */
static void the_alternate_screen_is_free_and_left_as_it_was_entered(
	void **state)
{
	(void)state;
	BOUNDED("\x1b[?47h\x1b[H\x1b[9A\x1b[2J",
		ALTERNATE "\x1b[H\x1b[9A\x1b[2J");
	BOUNDED("\x1b[?1047h\x1b[?47l\x1b[9Ax", ALTERNATE "\x1b[?1049lx");
	BOUNDED("\x1b[?25;1049;1h", ALTERNATE "\x1b[?25;1h");
	BOUNDED("\x1b[?1049h\x1b[1;2r\x1b[?1049lx",
		ALTERNATE "\x1b[1;2r\x1b[r\x1b[?1049lx");
	BOUNDED("\x1b[?1049l\x1b[?47lx", "x");
	BOUNDED("\0337\x1b[?1049h\x1b[?1049l\0338",
		ALTERNATE "\x1b[?1049l" CLAIMED);
	BOUNDED("\x1b[?1049h\0337\x1b[?1049l\0338",
		ALTERNATE "\0337\x1b[?1049l" CLAIMED);
	/* Where it may be the main one, that is scrolled away already. */
	BOUNDED("\x1b[H\x1b[?1049h\x1b[?1049l",
		CLAIMED "\x1b[H\x1b[?1049h\x1b[?1049l");
}

static void late_output_is_text_and_colours(void **state)
{
	static struct capture c = {.n = 0};
	static struct vt v;
	static const char in[] = "\x1b[9A\x1b[J\x1b[31mred\x1b[m\b\x1b[H\x1b[2J"
				 "\x1b[?1049h\x1bM\x1b(0\x0e\x1b"
				 "8\rx\t\n";

	(void)state;
	vt_init(&v, VT_SAFE, capture_emit, &c);
	v.late = true;
	vt_feed(&v, in, sizeof(in) - 1);
	vt_finish(&v, false);
	assert_string_equal(c.buf, "\x1b[31mred\x1b[m^H\rx\t\n");
	assert_int_equal(total_dropped(&v), 9);
}

/* Rows that were scrolled away may be back. */
static void after_a_new_size_nothing_is_known(void **state)
{
	static const char in[] = "a\n\n\x1b[2;3r";
	static struct capture c = {.n = 0};
	static struct vt v;

	(void)state;
	vt_init(&v, VT_SAFE, capture_emit, &c);
	v.rows = 3;
	v.columns = 10;
	vt_feed(&v, in, sizeof(in) - 1);
	vt_pen_flush(&v);
	c.n = 0;
	vt_resize(&v, 3, 20);
	vt_feed(&v, "\x1b[9A\x1b[H\n", 8);
	vt_pen_flush(&v);
	assert_string_equal(c.buf, "\0337\x1b[r\0338" CLAIMED "\x1b[H\n");
	/* Where the alternate screen is the main one, its rows may, too. */
	c.n = 0;
	vt_feed(&v, "\x1b[?1049h\x1b[2;3r", 14);
	vt_pen_flush(&v);
	c.n = 0;
	vt_resize(&v, 3, 30);
	vt_feed(&v, "\x1b[?1049lx", 9);
	vt_pen_flush(&v);
	assert_string_equal(
		c.buf, "\x1b[r" CLAIMED "\x1b[?1049l\x1b[9999;1H\nx");
}

/* Output after a cell's end begins an empty row. */
static const char *row_after(const char *in)
{
	static struct capture c;
	static struct vt v;

	c.n = 0;
	c.buf[0] = '\0';
	vt_init(&v, VT_SAFE, capture_emit, &c);
	v.columns = 10;
	vt_feed(&v, in, strlen(in));
	vt_finish(&v, false);
	c.n = 0;
	c.buf[0] = '\0';
	vt_begin_row(&v);
	return c.buf;
}

static void a_row_begins_empty_and_with_nothing_below(void **state)
{
	(void)state;
	assert_string_equal(row_after(""), "");
	assert_string_equal(row_after("a\r\n"), "");
	assert_string_equal(row_after("a"), "\r\n");
	assert_string_equal(row_after("a\r"), "\r\n");
	assert_string_equal(row_after("0123456789"), "\r\n");
	assert_string_equal(row_after("a\r\x1b[K"), "");
	assert_string_equal(row_after("a\x1b[2K\r"), "");
	assert_string_equal(row_after("a\r\nb\r\n\x1b[2A"), "\r\n\x1b[J");
	assert_string_equal(row_after("a\r\nb\r\n\x1b[2A\x1b[2K"), "\r\x1b[J");
	assert_string_equal(row_after("\x1b[2;5H"), "\r\n\x1b[J");
	assert_string_equal(row_after("\x1b[?1049hx\x1b[?1049l"), "\r\x1b[J");
	assert_string_equal(
		row_after("a\r\n\x1b[?1049hx"), "\x1b[?1049l\r\x1b[J");
	assert_string_equal(
		row_after("a\x1b[?1049hx\x1b[H"), "\x1b[?1049l\r\n\x1b[J");
}

/* The row that the cursor is behind; NULL: not known. */
static const char *row_of(enum vt_mode mode, const char *in)
{
	static struct capture c;
	static struct vt v;
	static char row[VT_ROW + 1];
	const char *s;
	size_t n;

	c.n = 0;
	vt_init(&v, mode, capture_emit, &c);
	v.columns = 10;
	vt_feed(&v, in, strlen(in));
	s = vt_pen_row(&v, &n);
	if (s)
		snprintf(row, sizeof(row), "%.*s", (int)n, s);
	return s ? row : NULL;
}

static void the_cursor_s_row_is_known_while_it_is_only_written(void **state)
{
	static const char *const unknown[] = {"abc\rx", "a\nb", "a\x1b[K",
		"a\x1b[D", "a\0337", "\x1b[31ma", "\x1b[31m\r\na\x1b[m",
		"\x1b[?25l", "a\x0e\x0f", "\x1b[?1049h", "a\r\n\x1b[A",
		"a\x1b[", "\xe2\x82", "0123456789", "a\r\nb\x1b[A\r\n",
		"\x1b(0\r\na", "\x1b)0\r\na", "\x0e\r\na"};
	static struct vt v;
	static struct capture c;
	size_t n;

	(void)state;
	assert_string_equal(row_of(VT_SAFE, ""), "");
	assert_string_equal(row_of(VT_SAFE, "a\r\nb? "), "b? ");
	assert_string_equal(row_of(VT_PLAIN, "a\r\nb? "), "b? ");
	assert_string_equal(row_of(VT_SAFE, "abc\rx\r\n\ty"), "\ty");
	assert_string_equal(row_of(VT_SAFE, "0123456789ab"), "ab");
	assert_string_equal(row_of(VT_SAFE, "0123456789\xc3\xa9"), "\xc3\xa9");
	/* It is not where terminals disagree about how much has wrapped. */
	assert_null(row_of(VT_SAFE, "0\xe2\x82\xac"
				    "23456789ab"));
	assert_string_equal(
		row_of(VT_SAFE, "\xe2\x82\xac? "), "\xe2\x82\xac? ");
	assert_string_equal(
		row_of(VT_SAFE, "\x1b[31ma\x1b[m "), "\x1b[31ma\x1b[m ");
	assert_string_equal(
		row_of(VT_SAFE, "\x1b]0;t\a\x1b[6n\a\xc2\xa6 "), ": ");
	for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++)
		assert_null(row_of(VT_SAFE, unknown[i]));
	assert_null(row_of(VT_RAW, "a"));

	/* As a tty erases. */
	assert_string_equal(row_of(VT_SAFE, "? ab\b \b"), "? a");
	assert_string_equal(row_of(VT_SAFE, "? ab\b \b\b \bx"), "? x");
	assert_string_equal(row_of(VT_PLAIN, "? ab\b\b  \b\b"), "? ");
	assert_string_equal(row_of(VT_SAFE, "a\b\xc3\xa9"), "\xc3\xa9");
	assert_null(row_of(VT_SAFE, "ab\b"));
	assert_null(row_of(VT_SAFE, "abc\b\b "));
	assert_string_equal(row_of(VT_SAFE, "a\xc3\xa9\b \b"), "a");
	assert_null(row_of(VT_SAFE, "\xe2\x82\xac\b \b"));
	assert_null(row_of(VT_SAFE, "\xc2\xad\b \b"));
	assert_null(row_of(VT_SAFE, "a\x1b[m\b \b"));
	assert_null(row_of(VT_SAFE, "\b"));

	/* A row that has wrapped is wrapped anew by a new size. */
	vt_init(&v, VT_SAFE, capture_emit, &c);
	v.columns = 10;
	vt_feed(&v, "0123456789a", 11);
	assert_non_null(vt_pen_row(&v, &n));
	vt_resize(&v, 24, 20);
	assert_null(vt_pen_row(&v, &n));
	vt_feed(&v, "\r\nb", 3);
	vt_resize(&v, 24, 10);
	assert_non_null(vt_pen_row(&v, &n));
	assert_int_equal(n, 1);

	/* A row has any length where the width is not known. */
	vt_init(&v, VT_SAFE, capture_emit, &c);
	for (int i = 0; i < VT_ROW; i++)
		vt_feed(&v, "x", 1);
	assert_non_null(vt_pen_row(&v, &n));
	assert_int_equal(n, VT_ROW);
	vt_feed(&v, "x", 1);
	assert_null(vt_pen_row(&v, &n));
}

static void plain_passes_only_text(void **state)
{
	(void)state;
	PLAIN("a\r\n\tb\r\bcd\bé", "a\r\n\tb\rcd\bé", NO_DROP, 0);
	PLAIN("\x1b[31mred\x1b[m", "red", VT_DROP_FORMAT, 2);
	PLAIN("\x1b[?1049hx", "x", VT_DROP_MODE, 1);
	PLAIN("\x1b[6n", "", VT_DROP_QUERY, 1);
	PLAIN("\x1b]0;t\x1b\\x", "x", VT_DROP_TITLE, 1);
	PLAIN("\x1b(0\x0e", "", VT_DROP_CHARSET, 2);
	PLAIN("\x1b"
	      "7\x1bM",
		"", VT_DROP_FORMAT, 2);
	PLAIN("\a", "", VT_DROP_BELL, 1);
	PLAIN("\x1b\\", "", NO_DROP, 0);
}

static void raw_passes_every_byte(void **state)
{
	static const char in[] = "\x1b]0;t\x07\x9b\xff\0\x1b[6n\x1b[2m\x05z";

	(void)state;
	for (size_t split = 0; split < sizeof(in); split++) {
		static struct capture c;
		static struct vt v;

		run(&v, &c, VT_RAW, in, sizeof(in) - 1, split);
		assert_int_equal(c.n, sizeof(in) - 1);
		assert_memory_equal(c.buf, in, sizeof(in) - 1);
		assert_int_equal(total_dropped(&v), 0);
	}
	/* Raw mode also ends an unfinished sequence. */
	check(VT_RAW, "\x1b]0;t", 5, "\x1b]0;t\x18\x1b\\", NO_DROP, 0);
}

static void only_modes_left_on_are_undone(void **state)
{
	(void)state;
	check_undo(VT_SAFE, "text\r\n", "");
	check_undo(VT_SAFE, "\x1b[31mred\x1b[0m", "");
	check_undo(VT_SAFE, "\x1b[?25l\x1b[?25h\x1b[?1049h\x1b[?1049l", "");
	check_undo(VT_SAFE, "\x1b[31m", "\x1b[m");
	check_undo(VT_SAFE, "\x1b[0;31m", "\x1b[m");
	check_undo(VT_SAFE, "\x1b[?25l", "\x1b[?25h");
	check_undo(VT_SAFE, "\x1b[?7l", "\x1b[?7h");
	check_undo(VT_SAFE, "\x1b[?1049h\x1b[?25l\x1b[1m",
		"\x1b[?1049l\x1b[?25h\x1b[m");
	check_undo(VT_SAFE, "\x1b[?1049h\x1b[?47l", "");
	check_undo(VT_SAFE, "\x1b[2;5r",
		"\x1b"
		"7\x1b[r\x1b"
		"8");
	check_undo(VT_SAFE, "\x1b[2;5r\x1b[r", "");
	/* Some terminals restore with the cursor whether text runs on. */
	check_undo(VT_SAFE, "\x1b[?7l\0337\x1b[?7h\x1b[2;5r",
		"\0337\x1b[r\0338\x1b[?7h");
	check_undo(VT_SAFE, "\x1b(0\x1b)0\x0e", "\x1b(B\x1b)B\x0f");
	check_undo(VT_SAFE, "\x1b[?1h\x1b=", "\x1b[?1l\x1b>");
	check_undo(VT_SAFE, "\x1b[4h\x1b[?5h\x1b[?2004h",
		"\x1b[?5l\x1b[?2004l\x1b[4l");
	/* A restore after this cell's save, and a restore without a save. */
	check_undo(VT_SAFE,
		"\x1b"
		"7\x1b[31m\x1b"
		"8",
		"");
	check_undo(VT_SAFE,
		"\x1b"
		"8",
		"\x1b[?7h\x1b[m\x1b(B\x1b)B\x0f");
	/* Dropped sequences need no undo. */
	check_undo(VT_SAFE, "\x1b[?1000h\x1b[3J", "");
	check_undo(VT_PLAIN, "\x1b[31m\x1b[?1049h\x0e", "");
	check_undo(VT_RAW, "\x1b[?1002h\x1b[?1006h", "\x1b[?1002l\x1b[?1006l");
	check_undo(VT_RAW, "\x1b[6 q", "\x1b[!p\x1b[>4m\x1b[<8u\x1b[0 q");
}

static void the_column_is_known(void **state)
{
	(void)state;
	assert_int_equal(column_after("", 80), 0);
	assert_int_equal(column_after("abc", 80), 3);
	assert_int_equal(column_after("abc\r\n", 80), 0);
	assert_int_equal(column_after("abc\n", 80), 3);
	assert_int_equal(column_after("数é", 80), 3);
	assert_int_equal(column_after("e\xcc\x81", 80), 1);
	assert_int_equal(column_after("a\tb", 80), 9);
	assert_int_equal(column_after("\t\t", 12), 11);
	assert_int_equal(column_after("abc\b\b", 80), 1);
	assert_int_equal(column_after("\xff", 80), 4);
	/* A full line does not move the cursor to the next line yet. */
	assert_int_equal(column_after("0123456789", 10), 10);
	assert_int_equal(column_after("0123456789a", 10), 1);
	assert_int_equal(column_after("012345678数", 10), 2);
	assert_int_equal(column_after("\x1b[?7l0123456789a", 10), 10);
	assert_int_equal(column_after("0123456789a", 0), 11);
	assert_int_equal(column_after("\x1b[5;7H", 80), 6);
	assert_int_equal(column_after("abc\x1b[G", 80), 0);
	assert_int_equal(column_after("abc\x1b[2D\x1b[9C", 80), 10);
	assert_int_equal(column_after("abc\x1b[99D", 80), 0);
	assert_int_equal(column_after("abc\x1b[E", 80), 0);
	assert_int_equal(column_after("ab\x1b[?1049hxyz\x1b[?1049l", 80), 2);
	assert_int_equal(column_after("a\x1b[u", 80), 0);
	assert_int_equal(column_after("\x1b[?1049h\x1b[u", 80), -1);
	assert_int_equal(column_after("\x1b[u\r", 80), 0);
	assert_int_equal(column_after("a\x1b[31mb\x1b]0;t\x07", 80), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ordinary_text_passes),
		cmocka_unit_test(colours_and_movement_pass),
		cmocka_unit_test(
			a_movement_goes_out_in_the_form_that_every_terminal_knows),
		cmocka_unit_test(modes_of_a_full_screen_program_pass),
		cmocka_unit_test(
			control_strings_are_dropped_and_counted_by_kind),
		cmocka_unit_test(queries_are_dropped),
		cmocka_unit_test(
			sequences_with_effects_beyond_the_cell_are_dropped),
		cmocka_unit_test(c1_controls_are_shown_and_counted),
		cmocka_unit_test(invalid_utf8_is_shown),
		cmocka_unit_test(controls_are_shown_or_counted),
		cmocka_unit_test(broken_sequences_are_not_passed_on),
		cmocka_unit_test(an_unfinished_sequence_is_counted_once),
		cmocka_unit_test(
			an_unterminated_string_does_not_swallow_the_output),
		cmocka_unit_test(parameters_without_end_are_bounded),
		cmocka_unit_test(a_guest_cannot_write_a_broken_bar),
		cmocka_unit_test(a_step_to_the_left_stays_in_its_row),
		cmocka_unit_test(the_cursor_does_not_go_above_the_first_row),
		cmocka_unit_test(a_cursor_is_saved_as_a_place_in_the_output),
		cmocka_unit_test(
			a_wrap_counts_as_a_row_where_a_line_feed_makes_it),
		cmocka_unit_test(
			rows_of_others_are_scrolled_away_before_they_are_drawn_on),
		cmocka_unit_test(
			the_alternate_screen_is_free_and_left_as_it_was_entered),
		cmocka_unit_test(after_a_new_size_nothing_is_known),
		cmocka_unit_test(late_output_is_text_and_colours),
		cmocka_unit_test(a_row_begins_empty_and_with_nothing_below),
		cmocka_unit_test(
			the_cursor_s_row_is_known_while_it_is_only_written),
		cmocka_unit_test(plain_passes_only_text),
		cmocka_unit_test(raw_passes_every_byte),
		cmocka_unit_test(only_modes_left_on_are_undone),
		cmocka_unit_test(the_column_is_known),
	};

	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
