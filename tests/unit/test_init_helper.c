/* SPDX-License-Identifier: MIT */
/*
 * test_init_helper.c - work that a child of init does: its answer, and what
 * becomes of it where a guest stops or kills that child, or keeps it waiting
 */
#include "jail/init/init.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

/* Longer than any test may take. */
#define LONG_MS 3600000

static int64_t answers(void *arg)
{
	return *(int *)arg + 1;
}

static int64_t is_hit(void *arg)
{
	kill(getpid(), *(int *)arg);
	return pause();
}

static int64_t waits(void *arg)
{
	(void)arg;
	return pause();
}

static void what_the_child_finds_is_the_answer(void **state)
{
	int n = 41;

	(void)state;
	assert_int_equal(init_helper_run(answers, &n, LONG_MS), 42);
}

static void a_child_that_is_stopped_or_killed_fails_at_once(void **state)
{
	int signals[] = {SIGSTOP, SIGKILL};

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			init_helper_run(is_hit, &signals[i], LONG_MS), -1);
}

static void a_child_that_waits_fails_in_time(void **state)
{
	(void)state;
	assert_int_equal(init_helper_run(waits, NULL, 20), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_child_finds_is_the_answer),
		cmocka_unit_test(
			a_child_that_is_stopped_or_killed_fails_at_once),
		cmocka_unit_test(a_child_that_waits_fails_in_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
