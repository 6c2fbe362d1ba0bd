/* SPDX-License-Identifier: MIT */
/*
 * test_keys.c - bytes of a terminal to keys
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "repl/term/term.h"
#include "repl/text/text.h"

/* Show decoded keys: text as itself, keys as <code>, pasted text between { and
 * }. */
static void show(const struct key *k, int n, char *out)
{
	for (int i = 0; i < n; i++) {
		char c[5] = "";

		switch (k[i].code) {
		case KEY_TEXT:
		case KEY_PASTE_TEXT:
			utf8_put(k[i].c, c);
			strcat(out, c);
			break;
		case KEY_PASTE_BEGIN:
			strcat(out, "{");
			break;
		case KEY_PASTE_END:
			strcat(out, "}");
			break;
		case KEY_ESCAPE:
			strcat(out, "Esc");
			break;
		default:
			sprintf(out + strlen(out), "<%d>", k[i].code);
		}
	}
}

static void feed(struct keys *k, const char *s, size_t n, char *out)
{
	struct key keys[KEYS_OUT_MAX];

	for (size_t i = 0; i < n; i++)
		show(keys, keys_feed(k, (unsigned char)s[i], keys), out);
}

static void expect(const char *bytes, const char *want)
{
	struct keys k;
	char got[512] = "";

	keys_init(&k);
	feed(&k, bytes, strlen(bytes), got);
	assert_string_equal(got, want);
}

static void expect_key(const char *bytes, int code)
{
	char want[16];

	snprintf(want, sizeof(want), "<%d>", code);
	expect(bytes, want);
}

static void text_is_decoded(void **state)
{
	(void)state;
	expect("aé日🎉", "aé日🎉");
	expect("\x01\x1a\x7f", "<1><26><127>");
}

static void bad_utf8_becomes_one_mark_and_swallows_no_key(void **state)
{
	(void)state;
	expect("a\xC3z", "a\uFFFDz");
	expect("\xFF\x80z", "\uFFFD\uFFFDz");
	expect("\xE2\x82z", "\uFFFDz");
	expect("\xED\xA0\x80z", "\uFFFDz");
	expect("\xC2\x9B"
	       "2J",
		"\uFFFD2J"); /* C1 CSI in UTF-8 */
	expect("\xE2\x82\x03", "\uFFFD<3>");
}

static void sequences_become_keys(void **state)
{
	(void)state;
	expect_key("\033[A", KEY_UP);
	expect_key("\033OB", KEY_DOWN);
	expect_key("\033[1;5C", KEY_WORD_RIGHT);
	expect_key("\033[3~", KEY_DELETE);
	expect_key("\033[Z", KEY_BACK_TAB);
	expect_key("\033\r", KEY_ALT_ENTER);
	expect_key("\033\n", KEY_ALT_ENTER);
	expect_key("\033[13;2u", KEY_ALT_ENTER);
	expect_key("\033b", KEY_WORD_LEFT);
	expect_key("\033[1;5H", KEY_TOP);
	expect_key("\033\033[A", KEY_UP);
}

/* Of xterm, of those that count from 11, and of the Linux console. An answer
 * of the terminal that ends in the letter of F3 is no key. */
static void function_keys_are_the_same_on_every_terminal(void **state)
{
	(void)state;
	expect_key("\033OP", KEY_F1);
	expect_key("\033OQ", KEY_F2);
	expect_key("\033OR", KEY_F3);
	expect_key("\033[11~", KEY_F1);
	expect_key("\033[13~", KEY_F3);
	expect_key("\033[[A", KEY_F1);
	expect_key("\033[[C", KEY_F3);
	expect("\033OSz", "z");
	expect("\033[[Dz", "z");
	expect("\033[24;80Rz", "z");
	expect("\033[1;2Rz", "z");
	expect("\033[[\x03", "<3>");
}

static void ctrl_x_and_a_key_are_one_key(void **state)
{
	char got[64] = "";
	struct keys k;

	(void)state;
	expect_key("\x18\x05", KEY_CTRL_X_E);
	expect_key("\x18\x15", KEYS_CTRL('_'));
	expect_key("\x18\x18\x05", KEY_CTRL_X_E);
	expect("\x18z", "z");
	expect("\x18é\x18\033[A", "é<130>");
	expect("\x18\x03", "<3>");
	expect("\033[200~\x18\x05z\033[201~", "{z}");
	/* A person may be slow. */
	keys_init(&k);
	feed(&k, "\x18", 1, got);
	assert_int_equal(keys_wait_ms(&k), -1);
}

static void alt_and_a_letter_are_one_key(void **state)
{
	(void)state;
	expect_key("\033u", KEY_ALT_U);
	expect_key("\033.", KEY_ALT_DOT);
	expect_key("\033e", KEY_ALT_E);
	expect_key("\033\037", KEY_ALT_E);
}

static void a_terminals_reply_is_not_text(void **state)
{
	static const char *const answers[] = {"\033[?1;2c", "\033[24;80R",
		"\033[>0;276;0c", "\033]11;rgb:0000/0000/0000\033\\",
		"\033]52;c;cm0gLXJm\a", "\033P1$r0m\033\\", "\033[0n",
		"\033[8;24;80t", "\033_Gi=1;OK\033\\", "\033[M !!",
		"\033[<0;1;1M", "\033[[D", "\033[I", "\033Qx"};

	(void)state;
	for (size_t i = 0; i + 1 < sizeof(answers) / sizeof(*answers); i++) {
		expect(answers[i], "");
		char then[64];

		snprintf(then, sizeof(then), "%sz", answers[i]);
		expect(then, "z");
	}
	expect(answers[13], "x"); /* Alt with an unknown letter: nothing */
}

static void interrupt_works_inside_any_sequence(void **state)
{
	(void)state;
	expect("\033\x03", "<3>");
	expect("\033[\x03", "<3>");
	expect("\033[12;\x03", "<3>");
	expect("\033O\x03", "<3>");
	expect("\033]0;title\x03", "<3>");
	expect("\033P\x03", "<3>");
}

static void a_paste_is_text_and_only_text(void **state)
{
	(void)state;
	expect("\033[200~a\tb\033[201~c", "{a\tb}c");
	expect("\033[200~a\r\nb\rc\nd\033[201~", "{a\nb\nc\nd}");
	expect("\033[200~a\003\032\177b\033[201~", "{ab}");
	expect("\033[200~\033[A\033[201\033[201~", "{[A[201}");
	expect("\033[200~é\033[201~\033[A", "{é}<130>");
	expect("\033[200~\xC3\033[201~", "{\uFFFD}");
}

static void a_timeout_ends_an_unfinished_sequence(void **state)
{
	static const struct {
		const char *begun, *want;
	} cases[] = {{"\033", "Escz"}, {"\033[1;", "z"}, {"\033]0;a", "z"},
		{"\xE2\x82", "\uFFFDz"}, {"\033[200~a", "{a}{z"},
		{"\033[M!", "z"}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct key keys[KEYS_OUT_MAX];
		struct keys k;
		char got[64] = "";

		keys_init(&k);
		assert_int_equal(keys_wait_ms(&k), -1);
		feed(&k, cases[i].begun, strlen(cases[i].begun), got);
		assert_true(keys_wait_ms(&k) > 0);
		show(keys, keys_timeout(&k, keys), got);
		assert_int_equal(keys_wait_ms(&k), -1);
		feed(&k, "z", 1, got);
		assert_string_equal(got, cases[i].want);
	}
}

static void pause_paste(struct keys *k, char *out)
{
	struct key keys[KEYS_OUT_MAX];

	assert_true(keys_wait_ms(k) > 0);
	show(keys, keys_timeout(k, keys), out);
	assert_int_equal(keys_wait_ms(k), -1);
}

static void a_stalled_paste_stays_a_paste(void **state)
{
	char got[64] = "";
	struct keys k;

	(void)state;
	keys_init(&k);
	feed(&k, "\033[200~a\r", 8, got);
	pause_paste(&k, got);
	feed(&k, "b\r\033[20", 6, got);
	pause_paste(&k, got);
	feed(&k, "1~\r", 3, got);
	assert_string_equal(got, "{a\n}{b\n}{}<13>");
}

static void interrupt_ends_a_stalled_paste(void **state)
{
	char got[64] = "";
	struct keys k;

	(void)state;
	keys_init(&k);
	feed(&k, "\033[200~a\003b", 9, got);
	pause_paste(&k, got);
	feed(&k, "c\003", 2, got);
	pause_paste(&k, got);
	feed(&k, "\003z", 2, got);
	assert_string_equal(got, "{ab}{c}{}z");
}

static void huge_parameters_are_harmless(void **state)
{
	char s[5000];
	struct keys k;
	char got[64] = "";

	(void)state;
	keys_init(&k);
	memset(s, '9', sizeof(s));
	s[0] = '\033';
	s[1] = '[';
	s[2000] = ';';
	s[sizeof(s) - 1] = 'A';
	feed(&k, s, sizeof(s), got);
	assert_string_equal(got, "<130>");
	got[0] = 0;
	for (size_t i = 2; i + 1 < sizeof(s); i++)
		s[i] = ';';
	feed(&k, s, sizeof(s), got);
	assert_string_equal(got, "<130>");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_decoded),
		cmocka_unit_test(bad_utf8_becomes_one_mark_and_swallows_no_key),
		cmocka_unit_test(sequences_become_keys),
		cmocka_unit_test(function_keys_are_the_same_on_every_terminal),
		cmocka_unit_test(ctrl_x_and_a_key_are_one_key),
		cmocka_unit_test(alt_and_a_letter_are_one_key),
		cmocka_unit_test(a_terminals_reply_is_not_text),
		cmocka_unit_test(interrupt_works_inside_any_sequence),
		cmocka_unit_test(a_paste_is_text_and_only_text),
		cmocka_unit_test(a_stalled_paste_stays_a_paste),
		cmocka_unit_test(interrupt_ends_a_stalled_paste),
		cmocka_unit_test(a_timeout_ends_an_unfinished_sequence),
		cmocka_unit_test(huge_parameters_are_harmless),
	};

	return cmocka_run_group_tests_name("keys", tests, NULL, NULL);
}
