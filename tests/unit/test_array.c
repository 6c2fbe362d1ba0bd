/* SPDX-License-Identifier: MIT */
/*
 * test_array.c - arrays that grow
 */
#include "jail/base/array.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void an_array_holds_everything_added(void **state)
{
	int *v = NULL;

	(void)state;
	for (size_t n = 0; n < 5000; n++) {
		assert_int_equal(array_grow(&v, n, sizeof(*v)), 0);
		v[n] = (int)n;
	}
	for (size_t n = 0; n < 5000; n++)
		assert_int_equal(v[n], n);
	free(v);
}

/* Lengths go up and down; AddressSanitizer sees a write without room. */
static void a_shortened_array_grows_again(void **state)
{
	static const size_t lengths[] = {100, 5, 17, 16, 40, 0, 9, 8, 64, 63};
	long *v = NULL;
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		if (n > lengths[i])
			n = lengths[i];
		for (; n < lengths[i]; n++) {
			assert_int_equal(array_grow(&v, n, sizeof(*v)), 0);
			v[n] = (long)n;
		}
		for (size_t k = 0; k < n; k++)
			assert_int_equal(v[k], k);
	}
	free(v);
}

static void a_size_that_overflows_is_refused_and_the_array_stays(void **state)
{
	char *v = NULL, *was;

	(void)state;
	assert_int_equal(array_grow(&v, 0, 1), 0);
	was = v;
	assert_int_equal(array_grow(&v, 8, SIZE_MAX / 8), -1);
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(array_grow(&v, SIZE_MAX / 2 + 1, 4), -1);
	assert_int_equal(errno, ENOMEM);
	assert_ptr_equal(v, was);
	free(v);
}

static void an_array_grows_by_many_at_once(void **state)
{
	static const size_t wanted[] = {0, 1, 64, 65, 1000, 3, 100000};
	size_t room = 0;
	char *v = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		assert_int_equal(array_reserve(&v, &room, wanted[i], 1), 0);
		assert_true(room >= wanted[i]);
		if (v)
			memset(v, 'x', room);
	}
	assert_int_equal(array_reserve(&v, &room, SIZE_MAX, 2), -1);
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(array_reserve(&v, &room, 1 << 20, SIZE_MAX / 8), -1);
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(v[0], 'x');
	free(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_array_holds_everything_added),
		cmocka_unit_test(a_shortened_array_grows_again),
		cmocka_unit_test(an_array_grows_by_many_at_once),
		cmocka_unit_test(
			a_size_that_overflows_is_refused_and_the_array_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
