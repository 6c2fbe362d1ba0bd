/* SPDX-License-Identifier: MIT */
/*
 * test_copycost.c - what a page costs that a checkpoint makes the guest copy
 */
#include "jail/warden/look/look.h"

#include "forked.h"

#include <errno.h>
#include <sys/wait.h>

static void a_page_costs_what_it_did_before_and_no_child_is_left(void **state)
{
	int64_t ns = copycost_page_ns();

	(void)state;
	assert_in_range(ns, 100, 1000000);
	assert_int_equal(copycost_page_ns(), ns);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_page_costs_what_it_did_before_and_no_child_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
