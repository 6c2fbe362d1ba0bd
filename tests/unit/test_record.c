/* SPDX-License-Identifier: MIT */
/*
 * test_record.c - what a session keeps of its cells, and for how long
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "jail/base/err.h"
#include "repl/command/command.h"
#include "repl/config/config.h"
#include "repl/session/session.h"

#include <stdlib.h>
#include <string.h>

static size_t kept_bytes(const struct record *r)
{
	size_t n, sum = 0;
	const struct record_cell *c = record_cells(r, &n);

	while (n-- > 0)
		sum += c++->n;
	return sum;
}

static int add(struct record *r, uint32_t no, const char *src, size_t n)
{
	const struct record_cell c = {
		.no = no, .src = (char *)src, .n = n, .ok = true};

	return record_add(r, &c);
}

static void the_oldest_cells_go_first(void **state)
{
	struct record *r = record_new();
	const size_t n = 1 << 20;
	char *src = calloc(1, n);
	size_t count;

	(void)state;
	assert_non_null(src);
	memset(src, '#', n);
	for (uint32_t no = 1; no <= 100; no++)
		assert_int_equal(add(r, no, src, n), 0);
	assert_in_range(kept_bytes(r), RECORD_BYTES / 8 * 7 - n, RECORD_BYTES);
	assert_in_range(record_gone(r), 85, 88);
	assert_null(record_find(r, record_gone(r)));
	assert_non_null(record_find(r, record_gone(r) + 1));
	assert_int_equal(record_find(r, 0)->no, 100);
	/* Short ones take more than their source. */
	for (uint32_t no = 101; no <= 600101; no++)
		assert_int_equal(add(r, no, "1", 1), 0);
	record_cells(r, &count);
	assert_in_range(count, 100000, RECORD_BYTES / 32);
	record_free(r);
	free(src);
}

static void a_cell_longer_than_all_that_is_kept_is_kept_alone(void **state)
{
	struct record *r = record_new();
	char *src = calloc(1, RECORD_BYTES);
	size_t n;

	(void)state;
	assert_non_null(src);
	assert_int_equal(add(r, 1, "1", 1), 0);
	assert_int_equal(record_gone(r), 0);
	assert_int_equal(add(r, 2, src, RECORD_BYTES), 0);
	assert_int_equal(record_cells(r, &n)->no, 2);
	assert_int_equal(n, 1);
	record_free(r);
	free(src);
}

static void who_asks_for_a_cell_that_is_gone_is_told_so(void **state)
{
	struct config cfg = {0};
	struct session s = {.cfg = &cfg, .record = record_new()};
	char *src = calloc(1, RECORD_BYTES);
	struct err e = {0};

	(void)state;
	assert_non_null(src);
	assert_int_equal(config_init(&cfg), 0);
	add(s.record, 1, "1", 1);
	add(s.record, 2, src, RECORD_BYTES);
	assert_int_equal(named_run_line(&s, ":edit 1", 7, &e), -1);
	assert_string_equal(e.msg, "cell 1 is not kept any more");
	assert_int_equal(named_run_line(&s, ":edit 3", 7, &e), -1);
	assert_string_equal(e.msg, "there is no cell 3");
	record_free(s.record);
	config_fini(&cfg);
	free(src);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_oldest_cells_go_first),
		cmocka_unit_test(
			a_cell_longer_than_all_that_is_kept_is_kept_alone),
		cmocka_unit_test(who_asks_for_a_cell_that_is_gone_is_told_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
