/* SPDX-License-Identifier: MIT */
/*
 * test_pager.c - a text, a size and keys: the rows that are shown
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "repl/term/term.h"
#include "repl/text/text.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

/* Press the keys of a string: controls are themselves, all else is text. */
static bool press(struct pager *p, const char *keys)
{
	const char *end = keys + strlen(keys);
	bool on = true;

	while (keys < end) {
		struct key k = {.code = KEY_TEXT};
		uint32_t c;

		utf8_next(&keys, end, &c);
		k.c = (wchar_t)c;
		if (c < 0x20 || c == 0x7F)
			k = (struct key){.code = (int)c};
		on = pager_press(p, &k);
	}
	return on;
}

static bool press_code(struct pager *p, int code)
{
	return pager_press(p, &(struct key){.code = code});
}

/* The rows of the screen, with { and } for reverse video, ( for the place that
 * was found last, a newline behind each. */
static void expect(struct pager *p, const char *want)
{
	struct strbuf b = {0};
	char got[1024] = "", *to = got;

	for (int i = 0; i < p->rows - 1; i++) {
		pager_add_row(p, i, &b);
		strbuf_puts(&b, "\n");
	}
	for (const char *s = b.s; *s; s++)
		if (*s != '\x1b')
			*to++ = *s;
		else if (!strncmp(s, "\x1b[m", 3))
			*to++ = '}', s += 2;
		else if (!strncmp(s, "\x1b[7m", 4))
			*to++ = '{', s += 3;
		else if (!strncmp(s, "\x1b[1;4;7m", 8))
			*to++ = '(', s += 7;
		else
			fail_msg("unknown sequence");
	*to = 0;
	assert_string_equal(got, want);
	strbuf_free(&b);
}

static void expect_status(struct pager *p, const char *part)
{
	struct strbuf b = {0};

	pager_add_status(p, &b);
	if (!strstr(b.s, part))
		fail_msg("%s is not in %s", part, b.s);
	strbuf_free(&b);
}

static void show(struct pager *p, const char *text, int rows, int columns)
{
	pager_open(p, text, strlen(text), rows, columns);
}

static const char ten[] = "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n";

static void keys_go_forward_and_back(void **state)
{
	static const struct {
		const char *keys;
		const char *shows;
	} t[] = {
		{"", "0\n1\n2\n3\n"}, {" ", "4\n5\n6\n7\n"},
		{"f", "6\n7\n8\n9\n"}, /* the last page is full */
		{"  j\r", "6\n7\n8\n9\n"}, {"b", "2\n3\n4\n5\n"},
		{"j", "3\n4\n5\n6\n"}, {"\r", "4\n5\n6\n7\n"},
		{"k", "3\n4\n5\n6\n"}, {"d", "5\n6\n7\n8\n"},
		{"u", "3\n4\n5\n6\n"}, {"G", "6\n7\n8\n9\n"},
		{"bb", "0\n1\n2\n3\n"}, {"kbu", "0\n1\n2\n3\n"},
		{"Gg", "0\n1\n2\n3\n"},
		{"xyz\t", "0\n1\n2\n3\n"}, /* other keys do nothing */
	};
	static const int codes[][2] = {
		{KEY_PAGE_DOWN, '4'},
		{KEY_DOWN, '5'},
		{KEY_UP, '4'},
		{KEY_PAGE_UP, '0'},
		{KEY_END, '6'},
		{KEY_HOME, '0'},
	};
	struct pager p;

	(void)state;
	show(&p, ten, 5, 20);
	assert_false(pager_fits(&p));
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		press(&p, t[i].keys);
		expect(&p, t[i].shows);
	}
	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
		assert_true(press_code(&p, codes[i][0]));
		assert_int_equal(p.text[p.starts[p.top]], codes[i][1]);
	}
	pager_close(&p);
}

static void some_keys_leave_and_no_other(void **state)
{
	struct pager p;

	(void)state;
	show(&p, ten, 5, 20);
	assert_true(press(&p, " Gbx\t"));
	assert_false(press(&p, "q"));
	assert_false(press(&p, "\x03"));
	assert_false(press_code(&p, KEY_ESCAPE));
	assert_true(press(&p, "/q"));
	assert_true(press_code(&p, KEY_ESCAPE)); /* only the search */
	assert_false(press_code(&p, KEY_ESCAPE));
	pager_close(&p);
}

static void text_that_fits_needs_no_pager(void **state)
{
	struct pager p;

	(void)state;
	show(&p, "1\n2\n3\n4\n", 5, 20);
	assert_true(pager_fits(&p));
	pager_close(&p);
	show(&p, "1\n2\n3\n4\n5\n", 5, 20);
	assert_false(pager_fits(&p));
	pager_close(&p);
	show(&p, "1\n2\n3\n123456789012345678901\n", 5, 20);
	assert_false(pager_fits(&p));
	pager_close(&p);
}

/* An e and a mark, which has no width. */
#define E "e\xcc\x81"

static void long_lines_and_wide_characters_are_wrapped(void **state)
{
	struct pager p;

	(void)state;
	show(&p, "abcdefgh\n\nx漢漢漢y\n" E E E E E E "\n", 9, 5);
	expect(&p, "abcde\nfgh\n\nx漢漢\n漢y\n" E E E E E "\n" E "\n\n");
	pager_resize(&p, 9, 1); /* a character that does not fit, either */
	press(&p, "GbG");
	pager_close(&p);
}

static void another_size_keeps_the_place(void **state)
{
	struct pager p;

	(void)state;
	show(&p, "aaaaaaaa\nbbbbbbbb\nccccdddd\neeeeeeee\nf\ng\nh\n", 3, 4);
	press(&p, "jjjjj");
	expect(&p, "dddd\neeee\n");
	pager_resize(&p, 4, 8);
	expect(&p, "ccccdddd\neeeeeeee\nf\n");
	pager_resize(&p, 9, 2); /* the rest fits: the last page */
	press(&p, "G");
	expect(&p, "dd\nee\nee\nee\nee\nf\ng\nh\n");
	pager_resize(&p, 20, 80);
	expect(&p, "aaaaaaaa\nbbbbbbbb\nccccdddd\neeeeeeee\nf\ng\nh\n"
		   "\n\n\n\n\n\n\n\n\n\n\n\n");
	pager_close(&p);
}

static void search_is_literal_and_minds_only_capitals(void **state)
{
	static const char text[] = "a.c abc\nABC\nabc Abc\nÄb äB\nend\nend\n";
	struct pager p;

	(void)state;
	show(&p, text, 3, 20);
	press(&p, "/a.c\r");
	expect(&p, "(a.c} abc\nABC\n");
	press(&p, "/abc\r");
	expect(&p, "a.c (abc}\n{ABC}\n");
	press(&p, "n");
	expect(&p, "(ABC}\n{abc} {Abc}\n");
	press(&p, "nn");
	expect(&p, "{abc} (Abc}\nÄb äB\n");
	press(&p, "n");
	expect_status(&p, "not found below");
	expect(&p, "{abc} (Abc}\nÄb äB\n");
	press(&p, "N");
	expect(&p, "(abc} {Abc}\nÄb äB\n");
	press(&p, "g/Abc\r");
	expect(&p, "abc (Abc}\nÄb äB\n");
	press(&p, "/äb\r");
	expect(&p, "(Äb} {äB}\nend\n");
	press(&p, "?b\r");
	expect(&p, "a{b}c A(b}c\nÄ{b} ä{B}\n");
	press(&p, "n"); /* goes on upwards */
	expect(&p, "a(b}c A{b}c\nÄ{b} ä{B}\n");
	press(&p, "N");
	expect(&p, "a{b}c A(b}c\nÄ{b} ä{B}\n");
	pager_close(&p);
}

static void the_next_match_begins_behind_a_whole_character(void **state)
{
	struct pager p;

	(void)state;
	show(&p, "a\uFFFDb\n2\n3\n\uFFFD\n5\n", 3, 20);
	press(&p, "/\uFFFD\r");
	expect(&p, "a(\uFFFD}b\n2\n");
	press(&p, "n");
	expect(&p, "(\uFFFD}\n5\n");
	press(&p, "n");
	expect_status(&p, "not found below");
	press(&p, "N");
	expect(&p, "a(\uFFFD}b\n2\n");
	pager_close(&p);
}

static void what_is_sought_is_found_across_rows(void **state)
{
	struct pager p;

	(void)state;
	show(&p, "0123456789abcdef\n1\n2\n3\n", 4, 5);
	press(&p, "/3456789a\r");
	expect(&p, "012(34}\n(56789}\n(a}bcde\n");
	press(&p, "j");
	expect(&p, "(56789}\n(a}bcde\nf\n");
	press(&p, "/aaa\r");
	expect_status(&p, "-- n");
	pager_close(&p);
}

static void the_line_of_a_search_can_be_edited(void **state)
{
	struct pager p;

	(void)state;
	show(&p, ten, 5, 20);
	press(&p, "/77\x7f");
	expect_status(&p, "/7");
	press(&p, "\r");
	expect(&p, "6\n(7}\n8\n9\n");
	press(&p, "?x\x15"
		  "3\r");
	expect(&p, "(3}\n4\n5\n6\n");
	press(&p, "/zz\x03"); /* forgets it; 3 is still what is sought */
	expect(&p, "(3}\n4\n5\n6\n");
	press(&p, "G/\x7f");
	expect_status(&p, "end");
	press(&p, "?\r"); /* nothing typed: the same again */
	expect(&p, "(3}\n4\n5\n6\n");
	pager_close(&p);
}

static void one_endless_line_is_shown_at_once(void **state)
{
	const size_t n = 8 << 20;
	char *text = malloc(n);
	struct strbuf b = {0};
	struct pager p;

	(void)state;
	memset(text, 'x', n);
	text[n - 1] = '\n';
	pager_open(&p, text, n, 24, 80);
	pager_draw(&p, &b);
	assert_true(p.nstarts < 30); /* what follows is not looked at */
	press(&p, "Gb");
	pager_resize(&p, 24, 20);
	press(&p, "G");
	assert_int_equal(p.nstarts, (n + 18) / 20);
	pager_close(&p);
	strbuf_free(&b);
	free(text);
}

/* Marks have no width: a row that took all of them would be drawn for ever. */
static void marks_without_end_are_no_endless_row(void **state)
{
	struct strbuf text = {0}, b = {0};
	struct pager p;

	(void)state;
	for (int i = 0; i < 100000; i++)
		strbuf_puts(&text, "\xcc\x81");
	strbuf_puts(&text, "\n");
	pager_open(&p, text.s, text.n, 24, 80);
	pager_draw(&p, &b);
	assert_true(b.n < 24 * 80 * 20);
	pager_close(&p);
	strbuf_free(&text);
	strbuf_free(&b);
}

static void only_new_rows_are_drawn(void **state)
{
	struct strbuf b = {0};
	struct pager p;

	(void)state;
	show(&p, ten, 5, 20);
	pager_draw(&p, &b);
	assert_non_null(strstr(b.s, "0\x1b[2;1H"));
	b.n = 0;
	press(&p, "j");
	pager_draw(&p, &b);
	assert_memory_equal(b.s, "\x1b[5;1H\x1b[K4\r\n", 12);
	b.n = 0;
	press(&p, "k");
	pager_draw(&p, &b);
	assert_memory_equal(b.s, "\x1b[H\x1bM0\x1b[5;1H", 12);
	strbuf_free(&b);
	pager_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_go_forward_and_back),
		cmocka_unit_test(some_keys_leave_and_no_other),
		cmocka_unit_test(text_that_fits_needs_no_pager),
		cmocka_unit_test(long_lines_and_wide_characters_are_wrapped),
		cmocka_unit_test(another_size_keeps_the_place),
		cmocka_unit_test(search_is_literal_and_minds_only_capitals),
		cmocka_unit_test(
			the_next_match_begins_behind_a_whole_character),
		cmocka_unit_test(what_is_sought_is_found_across_rows),
		cmocka_unit_test(the_line_of_a_search_can_be_edited),
		cmocka_unit_test(one_endless_line_is_shown_at_once),
		cmocka_unit_test(marks_without_end_are_no_endless_row),
		cmocka_unit_test(only_new_rows_are_drawn),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
