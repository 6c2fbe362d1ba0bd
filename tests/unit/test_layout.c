/* SPDX-License-Identifier: MIT */
/*
 * test_layout.c - text to rows, wide characters
 */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "repl/edit/editor.h"
#include "repl/edit/parts.h"
#include "repl/text/text.h"

static const struct layout_shape ten = {.cols = 10, .prompt = 4, .prompt2 = 4};

static int set_locale(void **state)
{
	(void)state;
	return setlocale(LC_CTYPE, "C.UTF-8") ? 0 : -1;
}

static void expect(
	const wchar_t *s, size_t cursor, size_t rows, size_t row, int col)
{
	struct layout l = {0};

	assert_int_equal(layout_build(&l, s, wcslen(s), cursor, &ten), 0);
	assert_int_equal(l.n, rows);
	assert_int_equal(l.cursor_row, row);
	assert_int_equal(l.cursor_col, col);
	for (size_t i = 0; i < l.n; i++)
		assert_true(l.rows[i].width <= ten.cols);
	layout_free(&l);
}

static void the_cursor_is_where_the_text_is(void **state)
{
	(void)state;
	expect(L"", 0, 1, 0, 4);
	expect(L"abc", 3, 1, 0, 7);
	expect(L"abc\ndef", 5, 2, 1, 5);
	expect(L"\n\n", 2, 3, 2, 4);
}

static void a_full_row_puts_the_cursor_on_the_next_row(void **state)
{
	(void)state;
	expect(L"abcdef", 5, 1, 0, 9);
	expect(L"abcdef", 6, 2, 1, 0);
	expect(L"abcdefg", 6, 2, 1, 0);
	expect(L"abcdefg", 7, 2, 1, 1);
	/* Before the line's end too, not over the next prompt. */
	expect(L"abcdef\nx", 6, 3, 1, 0);
	expect(L"abcdef\nx", 7, 2, 1, 4);
}

static void wide_characters_do_not_straddle_the_margin(void **state)
{
	(void)state;
	expect(L"abcde日", 6, 2, 1, 2);
	expect(L"abcd日", 5, 2, 1, 0);
	expect(L"abcde日", 5, 2, 1, 0);
}

static void combining_marks_stay_with_their_letter(void **state)
{
	static const wchar_t s[] = L"abcdee\x301";

	(void)state;
	expect(s, 6, 2, 1, 0);
	assert_int_equal(layout_prev(s, 7), 5);
	assert_int_equal(layout_next(s, 7, 5), 7);
	assert_int_equal(layout_next(L"\n\x301", 2, 0), 1);
	assert_int_equal(layout_prev(L"\n\x301", 2), 1);
	assert_int_equal(layout_prev(L"a", 0), 0);
}

static void the_cursor_steps_over_a_whole_flag(void **state)
{
	/* Two flags, and half of a third. */
	static const wchar_t s[] = L"\x1F1E9\x1F1EA\x1F1EB\x1F1F7\x1F1E9";

	(void)state;
	assert_int_equal(layout_next(s, 5, 0), 2);
	assert_int_equal(layout_next(s, 5, 2), 4);
	assert_int_equal(layout_next(s, 5, 4), 5);
	assert_int_equal(layout_prev(s, 5), 4);
	assert_int_equal(layout_prev(s, 4), 2);
	assert_int_equal(layout_prev(s, 2), 0);
	assert_int_equal(layout_next(L"a", 1, 1), 1);
}

static void control_characters_are_shown_not_sent(void **state)
{
	static const struct {
		wchar_t c;
		const char *want;
	} cases[] = {
		{'\033', "^["},
		{0x7F, "^?"},
		{0x9B, "<009B>"},
		{0x202E, "<202E>"},
		{0x200B, "<200B>"},
		{0xE0041, "<E0041>"},
		{'\t', "    "},
		{'a', "a"},
		{L'é', "é"},
	};
	struct layout_glyph g;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		layout_glyph(cases[i].c, 4, 80, &g);
		assert_string_equal(g.s, cases[i].want);
		assert_int_equal(g.n, strlen(g.s));
	}
	layout_glyph(0x202E, 0, 5, &g);
	assert_string_equal(g.s, "?");
	layout_glyph(L'日', 0, 1, &g);
	assert_int_equal(g.width, 1);
}

static void rows_cover_the_text_once_and_in_order(void **state)
{
	static const wchar_t s[] = L"abcdefghij日本語日本語\n\tx\n\ny\x301\033";

	(void)state;
	for (int cols = 1; cols < 30; cols++) {
		struct layout_shape shape = {
			.cols = cols, .prompt = cols / 3, .prompt2 = cols / 2};
		struct layout l = {0};
		size_t at = 0;

		assert_int_equal(layout_build(&l, s, wcslen(s), 3, &shape), 0);
		for (size_t i = 0; i < l.n; i++) {
			if (i && l.rows[i].prompt)
				at++; /* the newline */
			assert_int_equal(l.rows[i].start, at);
			at = l.rows[i].end;
			assert_true(l.rows[i].width <= cols);
		}
		assert_int_equal(at, wcslen(s));
		assert_true(l.cursor_col < cols);
		layout_free(&l);
	}
}

static void utf8_is_strict_and_round_trips(void **state)
{
	static const char *const bad[] = {"\xC0\x80", "\xE0\x80\x80",
		"\xED\xA0\x80", "\xF4\x90\x80\x80", "\xFF", "\x80", "\xC3",
		"\xE2\x82"};
	static const uint32_t all[] = {
		'a', 0x7FF, 0x800, 0xFFFF, 0x10000, 0x10FFFF};
	uint32_t c;
	char out[4];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_true(utf8_get(bad[i], strlen(bad[i]), &c) <= 0);
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		size_t n = utf8_put(all[i], out);

		assert_int_equal(utf8_get(out, n, &c), n);
		assert_int_equal(c, all[i]);
	}
	assert_int_equal(utf8_put(0xD800, out), 3);
	assert_memory_equal(out, "\xEF\xBF\xBD", 3);
	assert_false(utf8_is_visible_text("a\033", 2));
	assert_false(utf8_is_visible_text("a\xE2\x80\xAE", 4));
	assert_true(utf8_is_visible_text("日本", 6));
	assert_int_equal(utf8_get("\xE2\x82", 2, &c), 0);
	assert_int_equal(utf8_get("\xE2\x28", 2, &c), -1);
	assert_int_equal(utf8_count("a\xFF日", 5), 3);
	assert_int_equal(utf8_start("a日", 3), 1);
	assert_int_equal(utf8_start("\x80\x80", 1), 0);
	assert_true(utf8_is_text("a\té", 4, "\t"));
	assert_false(utf8_is_text("a\té", 4, "\n"));
	assert_false(utf8_is_text("a\0b", 3, "\t"));
	assert_false(utf8_is_text("\xC2\x9B", 2, "\t"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_cursor_is_where_the_text_is),
		cmocka_unit_test(a_full_row_puts_the_cursor_on_the_next_row),
		cmocka_unit_test(wide_characters_do_not_straddle_the_margin),
		cmocka_unit_test(combining_marks_stay_with_their_letter),
		cmocka_unit_test(the_cursor_steps_over_a_whole_flag),
		cmocka_unit_test(control_characters_are_shown_not_sent),
		cmocka_unit_test(rows_cover_the_text_once_and_in_order),
		cmocka_unit_test(utf8_is_strict_and_round_trips),
	};

	return cmocka_run_group_tests_name("layout", tests, set_locale, NULL);
}
