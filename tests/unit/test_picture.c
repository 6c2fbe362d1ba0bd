/* SPDX-License-Identifier: MIT */
/*
 * test_picture.c - how large a picture is drawn; what a terminal answers
 */
#include "repl/picture/picture.h"
#include "repl/term/ask.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Rows of half blocks, and characters in the first. */
static void size_of(const struct strbuf *b, int *rows, int *columns)
{
	*rows = *columns = 0;
	for (size_t i = 0; i < b->n; i++) {
		*rows += b->s[i] == '\n';
		*columns += *rows == 0 && b->s[i] == '\x96';
	}
}

static void in_blocks(
	int width, int height, int rows, int columns, int *r, int *c)
{
	struct picture p = {
		width, height, calloc(3, (size_t)width * (size_t)height)};
	struct picture_place at = {PICTURE_BLOCKS, rows, columns, 0, 0, 256};
	struct strbuf b = {0};

	assert_int_equal(picture_add(&b, &p, &at), 0);
	size_of(&b, r, c);
	strbuf_free(&b);
	free(p.rgb);
}

static void a_picture_fits_and_keeps_its_shape(void **state)
{
	static const struct {
		int width, height, rows, columns, r, c;
	} t[] = {
		{640, 480, 60, 200, 30, 80}, /* as large as it is */
		{640, 480, 24, 80, 22, 59},  /* the height decides */
		{640, 480, 60, 41, 15, 40},  /* the width decides */
		{4000, 8, 24, 80, 1, 79},    /* less than a row */
		{8, 4000, 24, 80, 22, 1},
		{1, 1, 24, 80, 1, 1},
		{640, 480, 1, 2, 1, 1},
		{640, 480, 2, 80, 1, 3},
	};
	int r, c;

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		in_blocks(t[i].width, t[i].height, t[i].rows, t[i].columns, &r,
			&c);
		assert_int_equal(r, t[i].r);
		assert_int_equal(c, t[i].c);
	}
}

static void the_mean_of_its_pixels_becomes_one(void **state)
{
	uint8_t rgb[] = {0, 0, 0, 255, 100, 1, 255, 200, 1, 0, 100, 2};
	struct picture from = {2, 2, rgb}, to = {1, 1, NULL};

	(void)state;
	assert_int_equal(picture_scale(&to, &from), 0);
	assert_int_equal(to.rgb[0], 128);
	assert_int_equal(to.rgb[1], 100);
	assert_int_equal(to.rgb[2], 1);
	free(to.rgb);
}

/* What is left of the bytes, as text. */
static void left_of(struct ask *a, const char *s, const char *left)
{
	struct strbuf keys = {0};

	for (size_t i = 0; s[i]; i++)
		ask_filter(a, s + i, 1, &keys);
	strbuf_add(&keys, "", 0);
	assert_string_equal(keys.s, left);
	strbuf_free(&keys);
}

static void keys_are_no_answers(void **state)
{
	static const char *const keys[] = {"hello", "\033", "\033\033[A",
		"\033[6~", "\033[1;5C", "\033OP", "\033[200~x\033[201~",
		"\033_x", "\033]x", "\033Px", "\303\274"};

	(void)state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		struct ask a = {.asked = 1};

		left_of(&a, keys[i], keys[i]);
	}
}

static void answers_are_no_keys(void **state)
{
	struct ask a = {.asked = 1};
	struct strbuf keys = {0};
	const char *all = "a\033_Gi=31;OK\033\\b"
			  "\033]1337;ReportCellSize=15.0;7.5;2.0\033\\"
			  "\033P1$r0;48:2::1:2:3m\033\\\033[?1;0;64Sc"
			  "\033[?62;4;22cd";

	(void)state;
	ask_filter(&a, all, strlen(all), &keys);
	assert_true(a.kitty && a.iterm2 && a.sixel && a.true_colour);
	assert_true(a.answered);
	assert_int_equal(a.registers, 64);
	assert_int_equal(a.cell_width, 15);
	assert_int_equal(a.cell_height, 30);
	assert_string_equal(keys.s, "abcd");
	/* Behind the last answer everything is a key. */
	ask_filter(&a, "\033[?c", 4, &keys);
	assert_string_equal(keys.s, "abcd\033[?c");
	strbuf_free(&keys);
}

static void an_answer_may_deny(void **state)
{
	struct ask a = {.asked = 1};
	struct strbuf keys = {0};
	const char *all = "\033_Gi=31;ENOTSUP:no\033\\\033P0$r\033\\"
			  "\033P1$r0;48:5:16m\033\\\033[?1;3;0S\033[?62;22c";

	(void)state;
	ask_filter(&a, all, strlen(all), &keys);
	assert_false(a.kitty || a.iterm2 || a.sixel || a.true_colour);
	assert_true(a.answered);
	assert_int_equal(a.registers, 0);
	assert_int_equal(keys.n, 0);
	strbuf_free(&keys);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_picture_fits_and_keeps_its_shape),
		cmocka_unit_test(the_mean_of_its_pixels_becomes_one),
		cmocka_unit_test(keys_are_no_answers),
		cmocka_unit_test(answers_are_no_keys),
		cmocka_unit_test(an_answer_may_deny),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
