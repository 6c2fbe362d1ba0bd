/* SPDX-License-Identifier: MIT */
/*
 * test_picture.c - how large a picture is drawn, and as what; what a terminal
 * answers
 */
#include "forked.h"

#include "repl/picture/picture.h"
#include "repl/term/term.h"

#include <sixel/sixel.h>
#include <sys/resource.h>

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

/* The picture that a decoder makes of a sixel sequence. */
static void assert_decodes(
	const struct picture *p, const struct strbuf *b, int off_most)
{
	unsigned char *pixels = NULL, *palette = NULL;
	int width, height, colours;

	assert_true(SIXEL_SUCCEEDED(
		sixel_decode_raw((unsigned char *)b->s, (int)b->n, &pixels,
			&width, &height, &palette, &colours, NULL)));
	assert_int_equal(width, p->width);
	assert_in_range(height, p->height, p->height + 5);
	for (int i = 0; i < p->width * p->height; i++)
		for (int c = 0; c < 3; c++)
			assert_in_range(palette[3 * pixels[i] + c] + 256 -
						p->rgb[3 * i + c],
				256 - off_most, 256 + off_most);
	free(pixels);
	free(palette);
}

static void a_sixel_is_the_picture(void **state)
{
	static const int sizes[][2] = {
		{1, 1}, {35, 5}, {7, 6}, {50, 13}, {300, 60}};
	/* Its colours stay, but for what percent cannot say. */
	static const uint8_t colours[][3] = {{255, 255, 255}, {0, 0, 0},
		{255, 0, 0}, {33, 99, 165}, {8, 16, 24}};

	(void)state;
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		struct picture p = {
			.width = sizes[k][0], .height = sizes[k][1]};
		struct strbuf b = {0};

		p.rgb = malloc(3 * (size_t)p.width * (size_t)p.height);
		for (int i = 0; i < p.width * p.height; i++)
			memcpy(p.rgb + 3 * i,
				colours[(i % p.width / 5 + i / p.width) % 5],
				3);
		assert_int_equal(sixels_add(&b, &p, 16), 0);
		assert_decodes(&p, &b, 10);
		free(p.rgb);
		strbuf_free(&b);
	}
}

static void a_sixel_of_many_colours_has_their_mean(void **state)
{
	struct picture p = {.width = 120, .height = 120};
	struct strbuf b = {0};
	unsigned char *pixels, *palette;
	int width, height, colours;
	long sum = 0, got = 0;

	(void)state;
	p.rgb = malloc(3 * 120 * 120);
	for (int i = 0; i < 120 * 120; i++)
		for (int c = 0; c < 3; c++) {
			p.rgb[3 * i + c] = (uint8_t)(i % 120 + i / 120 + 7 * c);
			sum += p.rgb[3 * i + c];
		}
	assert_int_equal(sixels_add(&b, &p, 16), 0);
	assert_true(SIXEL_SUCCEEDED(sixel_decode_raw((unsigned char *)b.s,
		(int)b.n, &pixels, &width, &height, &palette, &colours, NULL)));
	for (int i = 0; i < 120 * 120; i++)
		for (int c = 0; c < 3; c++)
			got += palette[3 * pixels[i] + c];
	assert_in_range(got, sum - 3 * 120 * 120 * 4, sum + 3 * 120 * 120 * 4);
	free(pixels);
	free(palette);
	free(p.rgb);
	strbuf_free(&b);
}

/* Each colour in every place, and in each of six rows in another. */
static int draw_the_worst(void *arg)
{
	const struct rlimit seconds = {8, 8};
	struct picture p = {.width = 2000, .height = 138};
	struct strbuf b = {0};

	(void)arg;
	CHILD_CHECK(setrlimit(RLIMIT_CPU, &seconds) == 0, "setrlimit");
	p.rgb = malloc(3 * 2000 * 138);
	for (int i = 0; i < 2000 * 138; i++) {
		int k = (i % 2000 + i / 2000 % 6 * 12) % 72;

		p.rgb[3 * i] = (uint8_t)(k % 8 * 32);
		p.rgb[3 * i + 1] = (uint8_t)(k / 8 * 24);
		p.rgb[3 * i + 2] = 0;
	}
	CHILD_CHECK(sixels_add(&b, &p, 72) == 0, "encode");
	free(p.rgb);
	strbuf_free(&b);
	return 0;
}

static void no_picture_keeps_the_session_from_its_keys(void **state)
{
	(void)state;
	assert_int_equal(forked(draw_the_worst, NULL), 0);
}

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
		cmocka_unit_test(a_sixel_is_the_picture),
		cmocka_unit_test(a_sixel_of_many_colours_has_their_mean),
		cmocka_unit_test(no_picture_keeps_the_session_from_its_keys),
		cmocka_unit_test(keys_are_no_answers),
		cmocka_unit_test(answers_are_no_keys),
		cmocka_unit_test(an_answer_may_deny),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
