/* SPDX-License-Identifier: MIT */
/*
 * test_complete.c - a candidate continues the word before the cursor, or is
 * dropped
 */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "repl/edit/editor.h"

static void answer(const char *text, int result, size_t start, size_t count)
{
	struct complete_list c = {.start = 5};

	assert_int_equal(complete_answer(&c, text, strlen(text)), result);
	if (result == 0) {
		assert_int_equal(c.start, start);
		assert_int_equal(c.count, count);
	}
	complete_free(&c);
}

static void the_guests_answers_are_checked(void **state)
{
	(void)state;
	answer("2\nprint\nproperty\n", 0, 3, 2);
	answer("0\nx", 0, 5, 1);
	answer("0", 0, 5, 0);
	answer("5\nx", 0, 0, 1);
	answer("", -1, 0, 0);
	answer("-1\nx", -1, 0, 0);
	answer("6\nx", -1, 0, 0);
	answer("99999999999999999999999999\nx", -1, 0, 0);
	answer("1 x", -1, 0, 0);
	/* Escapes and the mark of our own lines are no candidates. */
	answer("0\n\x1b[31m\n\xc2\xa6 [killed]\nok", 0, 5, 1);
	/* Characters that cannot be seen, and invalid UTF-8, are none. */
	answer("0\na\xe2\x80\xae\na\xe2\x80\x8b\na\xff\n\xc3", 0, 5, 0);
}

static void an_answer_does_not_reach_back_over_where_python_begins(void **state)
{
	struct complete_list c = {.start = 8, .python = 6};

	(void)state;
	assert_int_equal(complete_answer(&c, "3\nx", 3), -1);
	complete_free(&c);
	c = (struct complete_list){.start = 8, .python = 6};
	assert_int_equal(complete_answer(&c, "2\nx", 3), 0);
	assert_int_equal(c.start, 6);
	complete_free(&c);
}

/* How many candidates of `items`, one a line, are left behind `text`, of which
 * `typed` bytes belong to the word. */
static size_t left(
	const char *text, size_t typed, const char *items, bool is_python)
{
	size_t cursor = strlen(text), kept;
	struct complete_list c = {
		.start = cursor - typed, .is_python = is_python};
	const char *nl;

	for (const char *p = items; *p; p = *nl ? nl + 1 : nl) {
		nl = strchrnul(p, '\n');
		assert_int_equal(complete_add(&c, p, (size_t)(nl - p)), 0);
	}
	complete_check(&c, text, cursor);
	for (size_t i = 0; is_python && i < c.count; i++)
		assert_memory_equal(c.items[i], text + c.start, typed);
	kept = c.count;
	complete_free(&c);
	return kept;
}

static void a_candidate_of_python_only_continues_the_word(void **state)
{
	static const struct {
		const char *text;
		size_t typed;
		const char *items;
		size_t left;
	} cases[] = {
		{"pri", 3, "print\nprivate\npri", 3},
		{"pri", 3, "Print\nprobe\nxpri\nint", 0},
		{"pri", 0, "print\nint", 2},
		{"pri", 3, "pri?\npri(\npri x\npri.x\npri:\npri#\npri;x", 0},
		{"pri", 3, "pri\xc3\xa9\nprin\xe2\x80\x8d\npri\xef\xb8\x8f", 1},
		{"a = pri", 7, "a = print\n:upload x\n    print", 1},
		{"x.", 0, "y\n_z\ny()", 2},
		{"from os import ", 0, "path\n*", 1},
		{"1", 1, "10", 0},
		{"f()", 0, "if", 0},
		{"'a'", 0, "if", 0},
		{"# a", 1, "ab", 0},
		{"", 0, "a", 0},
		/* strings */
		{"'a", 1, "a b\na:?~\na\\'b\na\\\\", 4},
		{"'a", 1, "a'\na\\\\'\na\\\nb", 0},
		{"\"a", 1, "a'b\na\"b", 1},
		{"'''a", 1, "ab\na'", 1},
		{"'a\\", 2, "a\\'b\na\\\\b\na\\\\\na\\n'", 3},
		{"r'a", 1, "ab\na\\'b\na{b}", 2},
		{"f'a", 1, "ab\na{b\na}b\na\\{b", 1},
		{"t'a", 1, "ab\na{b}", 1},
		{"f'{x", 1, "xy\nx'\nx}", 1},
		{"f'{d[\"k", 1, "key\nk'\nk\"\nk\\\\\nk{x}", 1},
		{"f'{f\"{d", 1, "dd", 1},
		{"f\"\"\"{f'{d[\"k", 1, "key\nk'", 1},
		{"'a\nb", 1, "bc\nb'", 1},
		/* what looks like the bar of our own lines */
		{"d['", 0, "| a\n\xc2\xa6 [a]\n\xe2\x94\x86 [a]\n\xe2\x81\x9e",
			1},
		/* keys */
		{"d[", 0, "'a b'\nb'x'\n\"it's\"\n12\n-12\na", 6},
		{"d[", 0, "'a'x\n'a\n''+''\nf'{x}'\n-\n-a\n1+1\n[]", 0},
		{"f'{d[", 0, "\"a\"\n'a'\n\"{x}\"\n\"\\\\\"\n3", 2},
		{"d[1", 1, "12\n1 + x", 1},
		{"x = [", 0, "'a'\nabc", 1},
		{"x = [1", 1, "12", 0},
		{"d['a'][", 0, "'b'\n-1\nx = 1", 2},
		{"f()[", 0, "'b'", 1},
		{"'a'[", 0, "'b'", 0},
		/* names of arguments */
		{"f(na", 2, "name=\nna=\nname==\nname= \nname=1\nna=e=", 2},
		{"f(", 0, "name=\n=\n=name", 1},
		{"f (1, na", 2, "name=", 1},
		{"f(x,\n  # a\n  na", 2, "name=", 1},
		{"f(g(1), ", 0, "name=", 1},
		{"f()(na", 2, "name=", 1},
		{"f([1, (2)], {}, na", 2, "name=", 1},
		{"na", 2, "name=", 0},
		{"f(1 + na", 2, "name=", 0},
		{"f(a=na", 2, "name=", 0},
		{"f((na", 2, "name=", 0},
		{"f([na", 2, "name=", 0},
		{"f(x), na", 2, "name=", 0},
		{"(na", 2, "name=", 0},
		{"if (na", 2, "name=", 0},
		{"f[na", 2, "name=", 0},
		{"'f(na", 2, "name=", 1}, /* a string holds what it likes */
		{"f'{g(na", 2, "name=", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		size_t got = left(
			cases[i].text, cases[i].typed, cases[i].items, true);

		if (got != cases[i].left)
			fail_msg("%s, case %zu: %zu candidates are left",
				cases[i].text, i, got);
	}
}

static void a_candidate_of_a_command_is_one_word_that_goes_on(void **state)
{
	(void)state;
	assert_int_equal(left("gr", 2, "grades\n'gr a'\n\"gr\\n\"", false), 3);
	assert_int_equal(left("'gr", 3, "'gr a'\ngrades", false), 2);
	assert_int_equal(left("g\\ r", 4, "'g r'\n'gr'", false), 1);
	assert_int_equal(left("up", 2, "upload ", false), 1);
	assert_int_equal(left("gr", 2, "other\ngr a\n'gr\ngr 'a'", false), 0);
	assert_int_equal(left("", 0, "'a b'\na b", false), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_guests_answers_are_checked),
		cmocka_unit_test(
			an_answer_does_not_reach_back_over_where_python_begins),
		cmocka_unit_test(a_candidate_of_python_only_continues_the_word),
		cmocka_unit_test(
			a_candidate_of_a_command_is_one_word_that_goes_on),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
