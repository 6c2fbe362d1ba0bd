/* SPDX-License-Identifier: MIT */
/*
 * test_table.c - columns that fit, fold, wrap and are cut
 */
#include "repl/text/text.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const people[][3] = {
	{"name", "age", "what they do"},
	{"Ada", "36", "writes programs for an engine"},
	{"Łukasiewicz", "7", ""},
};

static void expect(struct text_table t, const char *want)
{
	struct strbuf b = {0};

	t.columns = 3;
	t.right = 1 << 1;
	for (size_t i = 0; i < sizeof(people) / sizeof(people[0]); i++)
		text_table_add(&t, people[i]);
	text_table_note(&t, "a note that is never wrapped\nnor joined");
	text_table_write(&t, &b);
	assert_string_equal(b.s, want);
	strbuf_free(&b);
}

static void columns_are_as_wide_as_their_text(void **state)
{
	(void)state;
	expect((struct text_table){.width = 0},
		"name         age  what they do\n"
		"Ada           36  writes programs for an engine\n"
		"Łukasiewicz    7\n"
		"    a note that is never wrapped\n"
		"    nor joined\n");
}

static void a_last_cell_is_wrapped_at_words(void **state)
{
	(void)state;
	expect((struct text_table){.width = 42},
		"name         age  what they do\n"
		"Ada           36  writes programs for an\n"
		"                  engine\n"
		"Łukasiewicz    7\n"
		"    a note that is never wrapped\n"
		"    nor joined\n");
}

static void a_last_cell_is_cut_on_request(void **state)
{
	(void)state;
	expect((struct text_table){.width = 42, .cut = true},
		"name         age  what they do\n"
		"Ada           36  writes programs for an…\n"
		"Łukasiewicz    7\n"
		"    a note that is never wrapped\n"
		"    nor joined\n");
}

static void a_column_that_does_not_fit_goes_below(void **state)
{
	(void)state;
	expect((struct text_table){.width = 20},
		"name         age\n"
		"  what they do\n"
		"Ada           36\n"
		"  writes programs\n"
		"  for an engine\n"
		"Łukasiewicz    7\n"
		"    a note that is never wrapped\n"
		"    nor joined\n");
	expect((struct text_table){.width = 14},
		"name\n"
		"  age\n"
		"  what they do\n"
		"Ada\n"
		"   36\n"
		"  writes\n"
		"  programs for\n"
		"  an engine\n"
		"Łukasiewicz\n"
		"    7\n"
		"    a note that is never wrapped\n"
		"    nor joined\n");
}

static void an_overlong_cell_moves_later_columns_below(void **state)
{
	struct text_table t = {.columns = 2, .width = 40};
	struct strbuf b = {0};

	(void)state;
	text_table_add(&t, (const char *[]){"short", "1"});
	text_table_add(
		&t, (const char *[]){"much-longer-than-half-of-it", "2"});
	text_table_write(&t, &b);
	assert_string_equal(b.s, "short  1\n"
				 "much-longer-than-half-of-it\n"
				 "       2\n");
	strbuf_free(&b);
}

static void a_last_cell_without_room_goes_below(void **state)
{
	struct text_table t = {.columns = 3, .width = 30, .below = 4};
	struct strbuf b = {0};

	(void)state;
	text_table_add(&t, (const char *[]){"kernel", "Linux 6.1", "yes"});
	text_table_add(
		&t, (const char *[]){"files", "mounts, as they are", ""});
	text_table_add(&t,
		(const char *[]){"system calls", "3 instructions more", "no"});
	text_table_write(&t, &b);
	assert_string_equal(b.s, "kernel        Linux 6.1  yes\n"
				 "files\n"
				 "    mounts, as they are\n"
				 "system calls\n"
				 "    3 instructions more  no\n");
	strbuf_free(&b);
}

static void an_overlong_word_has_its_own_line(void **state)
{
	struct text_table t = {.columns = 2, .width = 40};
	struct strbuf b = {0};

	(void)state;
	text_table_add(&t, (const char *[]){"a limit", "built in"});
	text_table_add(&t, (const char *[]){"another",
				   "/etc/cellblock/groups/students.conf:4"});
	text_table_write(&t, &b);
	assert_string_equal(b.s, "a limit  built in\n"
				 "another\n"
				 "    /etc/cellblock/groups/students.conf:4\n");
	strbuf_free(&b);
}

static void no_line_begins_with_a_dot(void **state)
{
	struct strbuf b = {0};

	(void)state;
	text_wrap(&b, "one · two · three  3 · ·x four ·", 2, 12);
	assert_string_equal(b.s, "one ·\n  two ·\n  three  3 ·\n  ·x four ·\n");
	strbuf_free(&b);
}

static void no_width_or_text_breaks_the_table(void **state)
{
	(void)state;
	for (int width = 0; width < 100; width++) {
		struct text_table t = {.columns = 3, .width = width};
		struct strbuf b = {0};

		t.cut = width & 1;
		text_table_add(&t, (const char *[]){NULL, NULL, NULL});
		text_table_add(
			&t, (const char *[]){"漢字漢字", " ", "漢 字 漢字"});
		text_table_add(&t, (const char *[]){"", "x", "  a  b  "});
		text_table_write(&t, &b);
		assert_false(b.failed);
		assert_non_null(strstr(b.s, "漢字漢字"));
		strbuf_free(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_as_wide_as_their_text),
		cmocka_unit_test(a_last_cell_is_wrapped_at_words),
		cmocka_unit_test(a_last_cell_is_cut_on_request),
		cmocka_unit_test(a_column_that_does_not_fit_goes_below),
		cmocka_unit_test(an_overlong_cell_moves_later_columns_below),
		cmocka_unit_test(a_last_cell_without_room_goes_below),
		cmocka_unit_test(an_overlong_word_has_its_own_line),
		cmocka_unit_test(no_line_begins_with_a_dot),
		cmocka_unit_test(no_width_or_text_breaks_the_table),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
