/* SPDX-License-Identifier: MIT */
/*
 * test_ask.c - what the terminal is asked, what its answers say, and that none
 * of them, and nothing but them, is missing among the keys
 */
#include "repl/term/term.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define ST "\033\\"
#define FENCE "\033[?62;22c"

static void the_questions_suit_the_terminal(void **state)
{
	static const struct {
		const char *term, *depth;
		bool pictures, colour, known;
	} rows[] = {
		{"xterm-256color", NULL, true, true, false},
		{"xterm", "truecolor", true, true, true},
		{"screen.xterm", "24bit", true, false, true},
		{"linux", "8", false, false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct strbuf out = {0};
		struct ask a = {0};

		setenv("TERM", rows[i].term, 1);
		unsetenv("COLORTERM");
		if (rows[i].depth)
			setenv("COLORTERM", rows[i].depth, 1);
		assert_true(ask_is_due(&a));
		ask_write(&a, &out);
		assert_int_equal(
			!!strstr(out.s, "\033_Gi=31,"), rows[i].pictures);
		assert_int_equal(!!strstr(out.s, "[16t"), rows[i].pictures);
		assert_int_equal(!!strstr(out.s, "$qm"), rows[i].colour);
		assert_int_equal(a.true_colour, rows[i].known);
		assert_string_equal(out.s + out.n - strlen("\033[c\r\033[K"),
			"\033[c\r\033[K");
		strbuf_free(&out);
	}
}

static void it_is_asked_three_times_at_most(void **state)
{
	struct strbuf out = {0};
	struct ask a = {0};

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_true(ask_is_due(&a));
		ask_write(&a, &out);
	}
	assert_false(ask_is_due(&a));
	strbuf_free(&out);
}

/* What it knows after these bytes. The keys are compared. */
static struct ask after(const char *bytes, const char *keys)
{
	struct ask a = {.asked = 1};
	struct strbuf b = {0};

	ask_filter(&a, bytes, strlen(bytes), &b);
	assert_string_equal(strbuf_text(&b), keys);
	strbuf_free(&b);
	return a;
}

static void each_answer_says_what_the_terminal_has(void **state)
{
	struct ask a;

	(void)state;
	assert_true(after("\033_Gi=31;OK" ST, "").kitty);
	assert_false(after("\033_Gi=31;ENOENT" ST, "").kitty);
	a = after("\033]1337;ReportCellSize=18.0;8.0;2.0\a", "");
	assert_true(a.iterm2);
	assert_int_equal(a.cell_height, 36);
	assert_int_equal(a.cell_width, 16);
	assert_int_equal(
		after("\033]1337;ReportCellSize=0;8" ST, "").cell_width, 0);
	assert_true(after("\033P1$r48:2:1:2:3m" ST, "").true_colour);
	assert_false(after("\033P1$r48;5;16m" ST, "").true_colour);
	assert_false(after("\033P0$r48:2:1:2:3m" ST, "").true_colour);
	a = after("\033[6;20;10t", "");
	assert_int_equal(a.cell_height, 20);
	assert_int_equal(a.cell_width, 10);
	assert_int_equal(after("\033[?1;0;1024S", "").registers, 256);
	assert_int_equal(after("\033[?1;3;64S", "").registers, 0);
	a = after("\033[?62;4;22c", "");
	assert_true(a.sixel && a.answered);
	a = after("\033[?4;62c", "");
	assert_true(!a.sixel && a.answered);
	assert_false(after("\033[?1;0;64S", "").answered);
}

static void what_is_no_answer_is_a_key(void **state)
{
	(void)state;
	after("a\033[6;20;10tb", "ab");
	after("\033[A\033OP\033[6;20;10~x", "\033[A\033OP\033[6;20;10~x");
	after("\033\033[?62;4c", "\033");
	after("\033_Gi=31;\r", "\033_Gi=31;\r");
	after(FENCE "\033[6;1", "\033[6;1");
}

static void an_answer_may_come_in_pieces_and_a_key_may_not_wait(void **state)
{
	struct ask a = {.asked = 1};
	struct strbuf b = {0};

	(void)state;
	/* An arrow may begin so. */
	ask_filter(&a, "\033[", 2, &b);
	assert_string_equal(strbuf_text(&b), "\033[");
	b.n = 0;
	ask_filter(&a, "\033[?", 3, &b);
	ask_filter(&a, "62;4", 4, &b);
	assert_int_equal(b.n, 0);
	ask_filter(&a, "cx", 2, &b);
	assert_true(a.answered && a.sixel);
	assert_string_equal(strbuf_text(&b), "x");
	b.n = 0;
	/* All answers have come. */
	ask_filter(&a, "\033[?1", 4, &b);
	assert_string_equal(strbuf_text(&b), "\033[?1");
	strbuf_free(&b);
}

static void an_answer_that_does_not_end_is_given_back(void **state)
{
	char most[ASK_MAX + 1] = "\033_G";
	struct ask a = {.asked = 1};
	struct strbuf b = {0};

	(void)state;
	memset(most + 3, 'x', ASK_MAX - 3);
	ask_filter(&a, most, ASK_MAX, &b);
	assert_string_equal(strbuf_text(&b), most);
	b.n = 0;
	ask_filter(&a, most, 9, &b);
	assert_int_equal(b.n, 0);
	ask_give_back(&a, &b);
	assert_memory_equal(b.s, most, 9);
	strbuf_free(&b);
}

/* The keys of a terminal that sends these bytes, and is gone. */
static void waited(const char *bytes, bool answered, const char *keys)
{
	struct ask a = {.asked = 1};
	struct terminal t = {0};
	struct strbuf b = {0};
	int p[2];

	assert_int_equal(pipe(p), 0);
	assert_int_equal(
		write(p[1], bytes, strlen(bytes)), (ssize_t)strlen(bytes));
	close(p[1]);
	t.in = p[0];
	ask_wait(&a, &t, &b);
	close(p[0]);
	assert_int_equal(a.answered, answered);
	assert_string_equal(strbuf_text(&b), keys);
	strbuf_free(&b);
}

static void a_wait_ends_with_the_last_answer(void **state)
{
	(void)state;
	waited("a\033[6;20;10t" FENCE "b", true, "ab");
	waited("a\033[", false, "a\033[");
	waited("a\033[?62", false, "a");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_questions_suit_the_terminal),
		cmocka_unit_test(it_is_asked_three_times_at_most),
		cmocka_unit_test(each_answer_says_what_the_terminal_has),
		cmocka_unit_test(what_is_no_answer_is_a_key),
		cmocka_unit_test(
			an_answer_may_come_in_pieces_and_a_key_may_not_wait),
		cmocka_unit_test(an_answer_that_does_not_end_is_given_back),
		cmocka_unit_test(a_wait_ends_with_the_last_answer),
	};

	return cmocka_run_group_tests_name("ask", tests, NULL, NULL);
}
