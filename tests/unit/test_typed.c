/* SPDX-License-Identifier: MIT */
/*
 * test_typed.c - which of the keys typed ahead come back
 */
#include "repl/term/term.h"

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

/* `sent` of them went to the tty. */
static struct came_back type(const char *typed, size_t typed_n, size_t sent,
	const char *left, size_t left_n)
{
	struct came_back c = {0};
	struct strbuf copy = {0};
	struct typed t = {0};
	const char *keys;

	/* One key after the other, as they come. */
	for (size_t i = 0; i < typed_n; i++) {
		typed_add(&t, typed + i, 1);
		if (i < sent)
			t.sent = t.keys.n;
	}
	strbuf_add(&copy, left, left_n);
	c.fits = !typed_unread(&t, copy.s, copy.n, &keys, &c.n);
	assert_in_range(c.n, 0, sizeof(c.keys));
	if (c.n)
		memcpy(c.keys, keys, c.n);
	typed_forget(&t);
	strbuf_free(&copy);
	return c;
}

static void check(const char *typed, size_t typed_n, size_t sent,
	const char *left, size_t left_n, const char *want, size_t want_n)
{
	struct came_back c = type(typed, typed_n, sent, left, left_n);

	assert_int_equal(c.fits, want != NULL);
	assert_int_equal(c.n, want_n);
	assert_memory_equal(c.keys, want ? want : "", want_n);
}

/* All of them were sent, or the first ones. */
#define GIVES(typed, left, want)                                               \
	check(typed, sizeof(typed) - 1, SIZE_MAX, left, sizeof(left) - 1,      \
		want, sizeof(want) - 1)
#define UNSENT(typed, sent, left, want)                                        \
	check(typed, sizeof(typed) - 1, sent, left, sizeof(left) - 1, want,    \
		sizeof(want) - 1)
#define FITS_NOT(typed, left)                                                  \
	check(typed, sizeof(typed) - 1, SIZE_MAX, left, sizeof(left) - 1,      \
		NULL, 0)

static void test_what_was_not_read_comes_back(void **state)
{
	(void)state;
	GIVES("x = 1\rx = 2", "x = 1\nx = 2", "x = 1\rx = 2");
	GIVES("yes\rx = 2\rx", "x = 2\nx", "x = 2\rx");
	GIVES("yes\r", "", "");
	GIVES("abc", "bc", "bc");
	GIVES("", "", "");
	GIVES("a\r\033[A\r", "\033[A\n", "\033[A\r");
	GIVES("a\r\033\rb\r", "b\n", "b\r");
	/* No cell read the keys that were not sent. */
	UNSENT("abc\r:quit\r", 0, "", "abc\r:quit\r");
	UNSENT("abc\r:quit\r", 4, "", ":quit\r");
	UNSENT("abc\r:quit\r", 6, ":q", ":quit\r");
	UNSENT("xx\x7fyz\x7f", 3, "x", "xx\x7fyz\x7f");
	UNSENT("xx\x7fyz\x7f", 4, "xy", "xx\x7fyz\x7f");
}

/* Of a line that was begun nothing runs: neither the rest of it, nor what
 * stands behind it and may be meant to follow it. */
static void test_a_line_that_was_begun_does_not_run(void **state)
{
	(void)state;
	FITS_NOT("abc:quit\r", ":quit\n");
	FITS_NOT("abc :quit\rx", " :quit\nx");
	FITS_NOT("abc:quit\r", "c:quit\n");
	FITS_NOT("abc6 * 7\r:q\r", "6 * 7\n:q\n");
	FITS_NOT("ab\rx:", ":");
	FITS_NOT("abc\033[D:quit\r", "\033[D:quit\n");
	FITS_NOT("n %save x", " %save x");
	FITS_NOT("n!ls", "!ls");
	FITS_NOT("n save x\001%", "save x\001%");
	FITS_NOT("ab\r\033[A:", "b\n\033[A:");
	FITS_NOT("xx\033[A", "\033[A");
	/* The keys that were not sent may be the rest of it. */
	check("abc:quit\r", 9, 3, "", 0, NULL, 0);
	check("abc:quit\r", 9, 4, ":", 1, NULL, 0);
	UNSENT("abc6 * 7", 5, "6 ", "6 * 7");
	/* The controls: whole lines. */
	GIVES("abc\r:quit\r", ":quit\n", ":quit\r");
	GIVES(":quit\r", ":quit\n", ":quit\r");
	GIVES("abc:quit\r:q\r", ":q\n", ":q\r");
	GIVES("abc6 * 7", "6 * 7", "6 * 7");
}

/* A line begins where the editor and the tty see one end. */
static void test_an_enter_that_is_text_begins_no_line(void **state)
{
	(void)state;
	FITS_NOT("a\x16\r:quit\r", ":quit\n");
	FITS_NOT("\x1b[200~a\r:quit\r\x1b[201~\r", ":quit\n\x1b[201~\n");
	GIVES("\x1b[200~a\r:quit\r\x1b[201~\r",
		"\x1b[200~a\n:quit\n\x1b[201~\n",
		"\x1b[200~a\r:quit\r\x1b[201~\r");
}

/* A cell that reads key by key may have read what these keys erase. */
static void test_keys_that_erase_begin_no_line(void **state)
{
	(void)state;
	FITS_NOT("abc\x15:quit\r", "\x15:quit\r");
	FITS_NOT("abc\x15:quit\r", "bc\x15:quit\r");
	FITS_NOT("a\x7f:quit\r", "\x7f:quit\r");
	FITS_NOT("a\x17:quit\r", "\x17:quit\n");
	FITS_NOT("a\x7f:quit\r", ":quit\n");
	FITS_NOT("\x12:quit\r", ":quit\n");
	FITS_NOT("never\x15once\r", "once\n");
	FITS_NOT("a\r\x15:quit\r", ":quit\n");
	GIVES("a\r:quitt\x7f\r", ":quit\n", ":quitt\x7f\r");
}

static void test_keys_that_erase_take_others_with_them(void **state)
{
	(void)state;
	GIVES("xx\x7fy", "xy", "xx\x7fy");
	GIVES("s = '\xc3\xa4\x7f'", "s = ''", "s = '\xc3\xa4\x7f'");
	GIVES("one two\x17three", "one three", "one two\x17three");
	GIVES("one \xe6\xbc\xa2  \x17x", "one x", "one \xe6\xbc\xa2  \x17x");
	GIVES("never\x15once", "once", "once");
	GIVES("yes\rxx\x7fy\r", "xy\n", "xx\x7fy\r");
	GIVES("a\r\x7f\x7f\x7f"
	      "b",
		"a\nb",
		"a\r\x7f\x7f\x7f"
		"b");
	GIVES("\x7f"
	      "b",
		"b", "b");
	GIVES("a\x12"
	      "b",
		"ab",
		"a\x12"
		"b");
}

static void test_keys_are_edited_as_a_tty_does(void **state)
{
	static const struct {
		const char *keys, *want;
	} t[] = {
		{"xx\x7fy", "xy"},
		{"one \xe6\xbc\xa2  \x17x", "one x"},
		{"never\x15once\r", "once\n"},
		{"a\x16\tb", "a\tb"},
		{"never\x03xy", "xy"},
		{"12\x7f\x7f\x04", "\x04"},
		{"a\r\x7f\x04", "a\n\x04"},
	};
	char s[32];

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		strcpy(s, t[i].keys);
		assert_int_equal(typed_edit(s, strlen(s)), strlen(t[i].want));
		assert_memory_equal(s, t[i].want, strlen(t[i].want));
	}
}

static void test_ctrl_c_drops_what_came_before_it(void **state)
{
	struct typed t = {0};
	const char *keys;
	size_t n;

	(void)state;
	GIVES("never\x03xy", "neverxy", "xy");
	GIVES("never\x03xy", "never\x03xy", "xy");
	GIVES("never\x03xy", "y", "y");
	GIVES("never\x03", "never", "");
	GIVES("a\rnever\x03:q\r", "never:q\n", ":q\r");
	FITS_NOT("never\x03x:q\r", ":q\n");
	typed_add(&t, "never\r", 6);
	t.sent = 3;
	typed_drop(&t);
	typed_add(&t, ":q\r", 3);
	assert_null(typed_unread(&t, (char[]){"nev"}, 3, &keys, &n));
	assert_int_equal(n, 3);
	assert_memory_equal(keys, ":q\r", 3);
	typed_forget(&t);
}

static void test_ctrl_d_counts_only_on_an_empty_line(void **state)
{
	(void)state;
	GIVES("\x04", "\0", "\x04");
	GIVES("\x04", "\x04", "\x04");
	GIVES("yes\r\x04", "\0", "\x04");
	GIVES("12\x04", "12\0", "12\x04");
	/* It ends what the cell reads, as Enter does. */
	GIVES("yes\r\x04:q\r", ":q\n", ":q\r");
	/* The cell has read the text before it, and chose to. */
	GIVES("12\x04", "\0", "\0");
	GIVES("12\x04\x04", "\0", "\0");
	GIVES("12\x04x\x7f\x04", "\0", "\0");
	FITS_NOT("12\x04:q\r", ":q\n");
	GIVES("a\x16\x04", "a\0", "a\x16\x04");
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
	FITS_NOT("a\r:quit\r", "a:quit\n"); /* IGNCR */
	FITS_NOT("abx:quit\r", ":quit\n");  /* VEOL, VKILL */
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
	c = type(many, MANY, MANY, many + MANY - LEFT, LEFT);
	assert_true(c.fits);
	assert_int_equal(c.n, LEFT);
	assert_memory_equal(c.keys, many + MANY - LEFT, LEFT);
	/* Too many that nobody has read are none. */
	assert_false(type(many, MANY, 0, "", 0).fits);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_was_not_read_comes_back),
		cmocka_unit_test(test_a_line_that_was_begun_does_not_run),
		cmocka_unit_test(test_an_enter_that_is_text_begins_no_line),
		cmocka_unit_test(test_keys_that_erase_begin_no_line),
		cmocka_unit_test(test_keys_that_erase_take_others_with_them),
		cmocka_unit_test(test_keys_are_edited_as_a_tty_does),
		cmocka_unit_test(test_ctrl_c_drops_what_came_before_it),
		cmocka_unit_test(test_ctrl_d_counts_only_on_an_empty_line),
		cmocka_unit_test(test_the_cell_cannot_change_a_key),
		cmocka_unit_test(test_part_of_a_key_does_not_come_back),
		cmocka_unit_test(test_the_last_of_many_keys_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
