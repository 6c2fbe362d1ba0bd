/* SPDX-License-Identifier: MIT */
/*
 * test_text.c - foreign text is harmless on the program's lines; sizes and
 * times are readable
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "repl/text/text.h"

#define SAFE(in, want)                                                         \
	do {                                                                   \
		char out_[256];                                                \
		size_t n_ = text_safe(out_, sizeof(out_), in, sizeof(in) - 1); \
		assert_string_equal(out_, want);                               \
		assert_int_equal(n_, strlen(want));                            \
	} while (0)

static void ordinary_text_is_unchanged(void **state)
{
	(void)state;
	SAFE("", "");
	SAFE("grades (1).csv", "grades (1).csv");
	SAFE("näïve 数 🐍 e\xcc\x81", "näïve 数 🐍 e\xcc\x81");
	SAFE("C:\\dir", "C:\\dir");
}

static void controls_are_shown_as_escapes(void **state)
{
	(void)state;
	SAFE("a\nb\tc\rd", "a\\nb\\tc\\rd");
	SAFE("\x1b]0;x\x07", "\\x1b]0;x\\x07");
	SAFE("a\0b", "a\\x00b");
	SAFE("\x7f", "\\x7f");
	SAFE("\xc2\x9b"
	     "31m",
		"\\x9b31m");
}

static void invalid_utf8_is_shown_as_escapes(void **state)
{
	(void)state;
	SAFE("\xff\xfe", "\\xff\\xfe");
	SAFE("\x9b"
	     "0m",
		"\\x9b0m");
	SAFE("\xe2\x82", "\\xe2\\x82");
	SAFE("\xe2\x82z", "\\xe2\\x82z");
	SAFE("\xc0\x9b", "\\xc0\\x9b");
	SAFE("\xe0\x80\x9b", "\\xe0\\x80\\x9b");
	SAFE("\xed\xa0\x80", "\\xed\\xa0\\x80");
	SAFE("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
	SAFE("\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80");
}

static void invisible_characters_are_shown_as_escapes(void **state)
{
	(void)state;
	SAFE("a\xe2\x80\xae"
	     "b",
		"a\\u202eb");
	SAFE("\xe2\x81\xa6", "\\u2066");
	SAFE("\xe2\x80\x8b", "\\u200b");
	SAFE("\xe2\x80\xa8", "\\u2028");
	SAFE("\xef\xbb\xbf", "\\ufeff");
	SAFE("\xf3\xa0\x81\x81", "\\U000e0041");
}

static void the_bar_of_frame_lines_is_shown_as_an_escape(void **state)
{
	(void)state;
	SAFE("¦ [home kept]", "\\xa6 [home kept]");
	SAFE("┊￤", "\\u250a\\uffe4");
	SAFE("|│", "|│");
}

static void long_text_ends_in_an_ellipsis_within_bounds(void **state)
{
	char out[32], in[64];

	(void)state;
	memset(in, 'a', sizeof(in));
	for (size_t size = 8; size <= sizeof(out); size++) {
		memset(out, '#', sizeof(out));
		assert_int_equal(
			text_safe(out, size, in, sizeof(in)), size - 1);
		assert_string_equal(out + size - 4, "…");
		if (size < sizeof(out))
			assert_int_equal(out[size], '#');
	}
	assert_int_equal(text_safe(out, 9, "aaaaaaaa", 8), 8);
	assert_string_equal(out, "aaaaaaaa");
	/* Never in the middle of a character or of an escape. */
	text_safe(out, 8, "aaa\x1b\x1b", 5);
	assert_string_equal(out, "aaa…");
	text_safe(out, 8, "aa数数数", 11);
	assert_string_equal(out, "aa…");
}

static void sizes_read_well(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *want;
	} cases[] = {{0, "0 B"}, {1, "1 B"}, {1023, "1023 B"}, {1024, "1 KiB"},
		{12698, "12.4 KiB"}, {31754, "31.0 KiB"},
		{512 << 20, "512 MiB"}, {(1 << 20) - 1, "1.0 MiB"},
		{UINT64_C(3) << 29, "1.5 GiB"}, {UINT64_MAX, "16.0 EiB"}};
	char buf[TEXT_HUMAN];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_string_equal(
			text_size(buf, cases[i].bytes), cases[i].want);
}

static void times_read_well(void **state)
{
	static const struct {
		int64_t ms;
		const char *want;
	} cases[] = {{-5, "0 ms"}, {0, "0 ms"}, {250, "250 ms"}, {1000, "1 s"},
		{1500, "1.5 s"}, {10000, "10 s"}, {12345, "12.3 s"},
		{75000, "75 s"}, {90000, "1.5 min"}, {1800000, "30 min"},
		{5400000, "1.5 h"}, {43200000, "12 h"}, {3661000, "1.0 h"},
		{INT64_MAX, "2562047788015.2 h"}};
	char buf[TEXT_HUMAN];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_string_equal(text_time(buf, cases[i].ms), cases[i].want);
}

static void counts_agree_with_their_word(void **state)
{
	char buf[64];

	(void)state;
	assert_string_equal(
		text_count(buf, sizeof(buf), 1, "file", NULL), "1 file");
	assert_string_equal(
		text_count(buf, sizeof(buf), 0, "file", NULL), "0 files");
	assert_string_equal(
		text_count(buf, sizeof(buf), 2, "process", "processes"),
		"2 processes");
	assert_string_equal(
		text_count(buf, sizeof(buf), 1, "process", "processes"),
		"1 process");
}

static void ordinals_read_well(void **state)
{
	static const struct {
		uint64_t n;
		const char *want;
	} cases[] = {{1, "1st"}, {2, "2nd"}, {3, "3rd"}, {4, "4th"},
		{10, "10th"}, {11, "11th"}, {12, "12th"}, {13, "13th"},
		{21, "21st"}, {102, "102nd"}, {111, "111th"}};
	char buf[TEXT_HUMAN];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(
			text_ordinal(buf, cases[i].n), cases[i].want);
}

/* Local time, so that the test holds in any zone. */
static time_t moment(int year, int month, int day, int hour, int minute)
{
	struct tm tm = {.tm_year = year - 1900,
		.tm_mon = month - 1,
		.tm_mday = day,
		.tm_hour = hour,
		.tm_min = minute,
		.tm_isdst = -1};

	return mktime(&tm);
}

static void moments_read_well(void **state)
{
	const time_t now = moment(2026, 11, 27, 14, 30); /* a Friday */
	char buf[TEXT_HUMAN];

	(void)state;
#define READS(t, brief, want)                                                  \
	assert_string_equal(text_moment(buf, t, now, brief), want)
	READS(moment(2026, 11, 27, 18, 0), false, "today 18:00");
	READS(moment(2026, 11, 28, 9, 5), false, "Saturday 09:05");
	READS(moment(2026, 11, 26, 17, 12), true, "Thu 17:12");
	READS(moment(2026, 12, 4, 18, 0), false, "4 December 18:00");
	READS(moment(2026, 11, 20, 18, 0), true, "20 Nov 18:00");
	READS(moment(2027, 1, 4, 18, 0), false, "4 January 2027 18:00");
	READS(moment(2025, 9, 30, 23, 59), false, "30 September 2025 23:59");
}

static void lines_keep_their_tabs_and_whole_characters(void **state)
{
	struct strbuf b = {0};
	char text[1600];

	(void)state;
	text_lines(&b, "ab\tc\r\n\033[2J\n\nend", 15);
	assert_string_equal(b.s, "ab      c\n\\x1b[2J\n\nend\n");
	strbuf_free(&b);
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = "x\xc3\xa9"[i ? 1 + (i - 1) % 2 : 0];
	text_lines(&b, text, 1599);
	assert_int_equal(b.n, 1600);
	assert_memory_equal(b.s, text, 1599);
	strbuf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_keep_their_tabs_and_whole_characters),
		cmocka_unit_test(ordinary_text_is_unchanged),
		cmocka_unit_test(controls_are_shown_as_escapes),
		cmocka_unit_test(invalid_utf8_is_shown_as_escapes),
		cmocka_unit_test(invisible_characters_are_shown_as_escapes),
		cmocka_unit_test(the_bar_of_frame_lines_is_shown_as_an_escape),
		cmocka_unit_test(long_text_ends_in_an_ellipsis_within_bounds),
		cmocka_unit_test(sizes_read_well),
		cmocka_unit_test(times_read_well),
		cmocka_unit_test(counts_agree_with_their_word),
		cmocka_unit_test(ordinals_read_well),
		cmocka_unit_test(moments_read_well),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
