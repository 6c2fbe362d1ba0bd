/* SPDX-License-Identifier: MIT */
/*
 * test_typed.c - which of the keys typed ahead come back
 */
#include "repl/term/typed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct came_back {
	bool fits;
	char keys[8192];
	size_t n;
};

static struct came_back type(
	const char *typed, size_t typed_n, const char *left, size_t left_n)
{
	struct came_back c = {0};
	struct strbuf copy = {0};
	struct typed t = {0};
	const char *keys;

	/* One key after the other, as they come. */
	for (size_t i = 0; i < typed_n; i++)
		typed_add(&t, typed + i, 1);
	strbuf_add(&copy, left, left_n);
	c.fits = !typed_unread(&t, copy.s, copy.n, &keys, &c.n);
	assert_in_range(c.n, 0, sizeof(c.keys));
	if (c.n)
		memcpy(c.keys, keys, c.n);
	typed_forget(&t);
	strbuf_free(&copy);
	return c;
}

static void check(const char *typed, size_t typed_n, const char *left,
	size_t left_n, const char *want, size_t want_n)
{
	struct came_back c = type(typed, typed_n, left, left_n);

	assert_int_equal(c.fits, want != NULL);
	assert_int_equal(c.n, want_n);
	assert_memory_equal(c.keys, want ? want : "", want_n);
}

#define GIVES(typed, left, want)                                               \
	check(typed, sizeof(typed) - 1, left, sizeof(left) - 1, want,          \
		sizeof(want) - 1)
#define FITS_NOT(typed, left)                                                  \
	check(typed, sizeof(typed) - 1, left, sizeof(left) - 1, NULL, 0)

static void test_what_was_not_read_comes_back(void **state)
{
	(void)state;
	GIVES("x = 1\rx = 2", "x = 1\nx = 2", "x = 1\nx = 2");
	GIVES("yes\rx = 2", "x = 2", "x = 2");
	GIVES("yes\r", "", "");
	GIVES("abc", "bc", "bc");
	GIVES("", "", "");
}

static void test_the_rest_of_a_line_is_no_command(void **state)
{
	(void)state;
	FITS_NOT("abc:quit\r", ":quit\n");
	FITS_NOT("abc :quit\rx", " :quit\nx");
	FITS_NOT("ab\rx:", ":");
	FITS_NOT("abc\033[D:quit\r", "\033[D:quit\n");
	FITS_NOT("n %save x\r", " %save x\n");
	FITS_NOT("n!ls\r", "!ls\n");
	FITS_NOT("n save x\001%\r", "save x\001%\n");
	FITS_NOT("\033[A\033[A\r", "\033[A\n");
	FITS_NOT("ab\r\033[A:", "b\n\033[A:");
	GIVES("a\r\033[A\r", "\033[A\n", "\033[A\n");
	GIVES("abc\r:quit\r", ":quit\n", ":quit\n");
	GIVES(":quit\r", ":quit\n", ":quit\n");
	GIVES("abc:quit\r:q\r", ":q\n", ":q\n");
	GIVES("abc:quit\r", "c:quit\n", "c:quit\n");
}

static void test_keys_that_erase_take_others_with_them(void **state)
{
	(void)state;
	GIVES("xx\x7fy", "xy", "xy");
	GIVES("s = '\xc3\xa4\x7f'", "s = ''", "s = ''");
	GIVES("one two\x17three", "one three", "one three");
	GIVES("one \xe6\xbc\xa2  \x17x", "one x", "one x");
	GIVES("never\x15once", "once", "once");
	GIVES("a\r\x7f\x7f\x7f"
	      "b",
		"a\nb", "a\nb");
	GIVES("a\x16\tb", "a\tb", "a\tb");
	GIVES("a\x12"
	      "b",
		"ab", "ab");
	/* Not all of them have been through the tty. */
	GIVES("xx\x7fyz\x7f", "xyz\x7f", "xy");
	GIVES("xx\x7fyz\x7f", "xx\x7fyz\x7f", "xy");
	GIVES("yes\rxx\x7fy\r", "x\x7fy\r", "y\n");
	GIVES("a\x16\x15", "a\x16\x15", "a\0");
}

static void test_ctrl_c_drops_what_came_before_it(void **state)
{
	(void)state;
	GIVES("never\x03xy", "neverxy", "xy");
	GIVES("never\x03xy", "never\x03xy", "xy");
	GIVES("never\x03xy", "y", "y");
	GIVES("never\x03", "never", "");
}

static void test_ctrl_d_counts_only_on_an_empty_line(void **state)
{
	(void)state;
	GIVES("\x04", "\0", "\x04");
	GIVES("\x04", "\x04", "\x04");
	GIVES("yes\r\x04", "\0", "\x04");
	GIVES("12\x7f\x7f\x04", "\0", "\x04");
	GIVES("12\x04", "12\0", "12\0");
	/* The cell has read the text before it, and chose to. */
	GIVES("12\x04", "\0", "\0");
	GIVES("12\x04\x04", "\0", "\0");
	GIVES("12\x04x\x7f\x04", "\0", "\0");
	GIVES("a\x16\x04", "a\0", "a\0");
	/* Ctrl-Space is none. */
	GIVES("\0", "\0", "\0");
}

static void test_the_cell_cannot_change_a_key(void **state)
{
	(void)state;
	FITS_NOT("x", "\0");	      /* VEOF */
	FITS_NOT("x", "\x04");	      /* ... */
	FITS_NOT("\xc5\x84", "\x04"); /* ISTRIP: a part of a character */
	FITS_NOT("ABC", "abc");	      /* IUCLC */
	FITS_NOT("abxc", "ac");	      /* VERASE */
	FITS_NOT("x = 1", "x = 2");
	FITS_NOT("x = 1", "x = 1\0");
	/* Those at the end are the person's all the same. */
	GIVES("x", "\xff\0x", "x"); /* PARMRK */
	GIVES("", ":quit\r", "");
}

static void test_part_of_a_key_does_not_come_back(void **state)
{
	(void)state;
	GIVES("\xc3\xa4x", "\xa4x", "x");
	GIVES("\x1b[Dx", "[Dx", "x");
	GIVES("\x1b[Dx", "Dx", "x");
	GIVES("\x1b[1;5Dx", "5Dx", "x");
	GIVES("\x1bOPx", "Px", "x");
	GIVES("\x1b[Dx", "\x1b[Dx", "\x1b[Dx");
	GIVES("\x1b[Dxy", "y", "y");
	GIVES("\x1b]xy", "xy", "xy");
	GIVES("\x1bx", "x", "x");
	GIVES("\x1b[200~rm\x1b[201~x", "00~rm\x1b[201~x", "x");
}

static void test_the_last_of_many_keys_are_kept(void **state)
{
	enum { MANY = 200000, LEFT = 5000 };
	static char many[MANY];
	struct came_back c;

	(void)state;
	for (size_t i = 0; i < MANY; i++)
		many[i] = (char)('a' + i % 26);
	c = type(many, MANY, many + MANY - LEFT, LEFT);
	assert_true(c.fits);
	assert_int_equal(c.n, LEFT);
	assert_memory_equal(c.keys, many + MANY - LEFT, LEFT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_was_not_read_comes_back),
		cmocka_unit_test(test_the_rest_of_a_line_is_no_command),
		cmocka_unit_test(test_keys_that_erase_take_others_with_them),
		cmocka_unit_test(test_ctrl_c_drops_what_came_before_it),
		cmocka_unit_test(test_ctrl_d_counts_only_on_an_empty_line),
		cmocka_unit_test(test_the_cell_cannot_change_a_key),
		cmocka_unit_test(test_part_of_a_key_does_not_come_back),
		cmocka_unit_test(test_the_last_of_many_keys_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
