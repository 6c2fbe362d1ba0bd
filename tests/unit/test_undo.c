/* SPDX-License-Identifier: MIT */
/*
 * test_undo.c - earlier versions of a text, and later ones again
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "repl/edit/parts.h"

static void note(struct undo *u, const wchar_t *s)
{
	assert_int_equal(undo_note(u, s, wcslen(s), wcslen(s), false), 0);
}

static void expect(const struct undo *u, const wchar_t *s, size_t cursor)
{
	assert_int_equal(u->now.n, wcslen(s));
	assert_memory_equal(
		u->now.s ? u->now.s : L"", s, wcslen(s) * sizeof(*s));
	assert_int_equal(u->cursor, cursor);
}

static void undo_reverts_one_change_at_a_time(void **state)
{
	struct undo u = {0};

	(void)state;
	assert_false(undo_pop(&u));
	assert_int_equal(undo_note(&u, L"a", 1, 1, true), 0);
	/* The same word is one step. */
	assert_int_equal(undo_note(&u, L"ab", 2, 2, true), 0);
	note(&u, L"ab ");
	note(&u, L"ab XYZ def");
	note(&u, L"ab def");
	note(&u, L"");
	assert_true(undo_pop(&u));
	assert_int_equal(wcscmp(u.now.s, L"ab def"), 0);
	assert_int_equal(u.cursor, 6);
	assert_true(undo_pop(&u));
	assert_int_equal(wcscmp(u.now.s, L"ab XYZ def"), 0);
	assert_true(undo_pop(&u));
	assert_int_equal(wcscmp(u.now.s, L"ab "), 0);
	assert_true(undo_pop(&u));
	assert_int_equal(wcscmp(u.now.s, L"ab"), 0);
	assert_true(undo_pop(&u));
	assert_int_equal(u.now.n, 0);
	assert_false(undo_pop(&u));
	undo_free(&u);
}

static void undo_keeps_a_bounded_history(void **state)
{
	struct undo u = {0};
	wchar_t s[2] = {0};

	(void)state;
	for (int i = 0; i < 3 * UNDO_MAX; i++) {
		s[0] = i % 2 ? '+' : '-';
		note(&u, s);
	}
	assert_int_equal(u.n, UNDO_MAX);
	for (int i = 0; i < UNDO_MAX; i++)
		assert_true(undo_pop(&u));
	assert_false(undo_pop(&u));
	for (int i = 0; i < UNDO_MAX; i++)
		assert_true(undo_redo(&u));
	assert_false(undo_redo(&u));
	undo_free(&u);
}

static void a_change_is_taken_back_and_done_again(void **state)
{
	struct undo u = {0};

	(void)state;
	note(&u, L"one");
	note(&u, L"one two");
	note(&u, L"ONE two");
	assert_true(undo_pop(&u));
	expect(&u, L"one two", 7);
	assert_true(undo_pop(&u));
	expect(&u, L"one", 3);
	assert_true(undo_redo(&u));
	expect(&u, L"one two", 7);
	assert_true(undo_redo(&u));
	expect(&u, L"ONE two", 3);
	assert_false(undo_redo(&u));
	for (int i = 0; i < 3; i++)
		assert_true(undo_pop(&u));
	expect(&u, L"", 0);
	assert_false(undo_pop(&u));
	undo_free(&u);
}

static void another_change_ends_the_way_to_later_texts(void **state)
{
	struct undo u = {0};

	(void)state;
	note(&u, L"one");
	note(&u, L"one two");
	assert_true(undo_pop(&u));
	note(&u, L"one"); /* only the cursor moves */
	assert_true(undo_redo(&u));
	assert_true(undo_pop(&u));
	note(&u, L"one three");
	assert_false(undo_redo(&u));
	assert_true(undo_pop(&u));
	expect(&u, L"one", 3);
	undo_free(&u);
}

static void a_word_is_one_step_both_ways(void **state)
{
	static const wchar_t text[] = L"ab cd";
	struct undo u = {0};

	(void)state;
	for (size_t n = 1; n <= 5; n++)
		assert_int_equal(undo_note(&u, text, n, n, true), 0);
	assert_true(undo_pop(&u));
	expect(&u, L"ab", 2);
	assert_true(undo_pop(&u));
	expect(&u, L"", 0);
	assert_true(undo_redo(&u));
	expect(&u, L"ab", 2);
	assert_int_equal(undo_note(&u, L"abe", 3, 3, true), 0);
	assert_false(undo_redo(&u));
	assert_true(undo_pop(&u));
	expect(&u, L"", 0);
	/* A character that a key put in, and did not type, is a step. */
	assert_int_equal(undo_note(&u, L"a", 1, 1, true), 0);
	assert_int_equal(undo_note(&u, L"ab", 2, 2, false), 0);
	assert_true(undo_pop(&u));
	expect(&u, L"a", 1);
	undo_free(&u);
}

/* The bytes held are bounded also where taking back holds more than the change
 * did: a text of many characters that was inserted. */
static void undone_changes_are_given_up_rather_than_the_bound(void **state)
{
	size_t n = UNDO_CHARS_MAX + 1;
	wchar_t *s = calloc(n, sizeof(*s));
	struct undo u = {0};

	(void)state;
	assert_non_null(s);
	wmemset(s, L'x', n);
	note(&u, L"a");
	assert_int_equal(undo_note(&u, s, n, n, false), 0);
	assert_true(undo_pop(&u));
	expect(&u, L"a", 1);
	assert_true(u.chars <= UNDO_CHARS_MAX);
	assert_false(undo_redo(&u));
	assert_true(undo_pop(&u));
	expect(&u, L"", 0);
	assert_true(undo_redo(&u));
	undo_free(&u);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(undo_reverts_one_change_at_a_time),
		cmocka_unit_test(undo_keeps_a_bounded_history),
		cmocka_unit_test(a_change_is_taken_back_and_done_again),
		cmocka_unit_test(another_change_ends_the_way_to_later_texts),
		cmocka_unit_test(a_word_is_one_step_both_ways),
		cmocka_unit_test(
			undone_changes_are_given_up_rather_than_the_bound),
	};

	return cmocka_run_group_tests_name("undo", tests, NULL, NULL);
}
