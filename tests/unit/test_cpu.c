/* SPDX-License-Identifier: MIT */
/*
 * test_cpu.c - a child that starts on one CPU may run on every CPU
 */
#include "jail/base/sys.h"

#include "forked.h"

#include <sched.h>

/* The CPUs of a child that started on this CPU. */
static cpu_set_t of_child(void)
{
	cpu_set_t set;
	int pair[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(pair), 0);
	pid = fork();
	if (pid == 0) {
		close(pair[1]);
		_exit(read(pair[0], &c, 1) != 0);
	}
	close(pair[0]);
	sys_run_side(pid);
	assert_int_equal(sched_getaffinity(pid, sizeof(set), &set), 0);
	close(pair[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return set;
}

static void a_child_may_run_on_every_cpu_of_its_parent(void **state)
{
	cpu_set_t ours, its = of_child();

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(ours), &ours), 0);
	assert_true(CPU_EQUAL(&ours, &its));
}

static void a_child_runs_on_no_other_cpu(void **state)
{
	cpu_set_t all, one, its;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	its = of_child();
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	assert_true(CPU_EQUAL(&one, &its));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_may_run_on_every_cpu_of_its_parent),
		cmocka_unit_test(a_child_runs_on_no_other_cpu),
	};

	return cmocka_run_group_tests_name("cpu", tests, NULL, NULL);
}
