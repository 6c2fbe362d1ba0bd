/* SPDX-License-Identifier: MIT */
/*
 * test_apply.c - plans that the kernel does not carry out as they are
 */
#include "jail/apply/apply.h"
#include "jail/base/sys.h"

#include "own_ns.h"

#include <sys/stat.h>

/* A root over /tmp, with a /proc of these options: its descriptor, or -1. */
static int with_proc(const char *options, int number, struct err *e)
{
	struct plan_op ops[] = {
		{.type = PLAN_ROOT,
			.stage = PLAN_JAIL,
			.source = "/tmp",
			.options = "size=65536"},
		{.type = PLAN_PROC,
			.stage = PLAN_JAIL,
			.target = "/proc",
			.options = options,
			.attrs = SYS_ATTR_NOSUID | SYS_ATTR_NODEV,
			.number = number},
	};
	const struct plan plan = {.ops = ops, .n = 2};
	struct apply_ctx ctx = {.home_fd = -1};

	if (apply_stage(&plan, PLAN_JAIL, &ctx, e) < 0)
		return -2;
	return ctx.proc_fd;
}

static int is_there(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0;
}

/* Only pid 1 of a pid namespace can mount a new /proc. */
static int child_proc(void *arg)
{
	struct err e = {0};

	(void)arg;
	CHILD_CHECK(with_proc("subset=no-such", 1, &e) == -2, "required");
	CHILD_CHECK(with_proc("subset=no-such", 0, &e) == -1, "not required");
	CHILD_CHECK(!is_there("/tmp/proc/meminfo"), "a whole /proc is there");
	CHILD_CHECK(!is_there("/tmp/proc/1"), "another /proc is there");
	if (with_proc("subset=pid", 0, &e) < 0)
		return OWN_NS_NONE;
	CHILD_CHECK(is_there("/tmp/proc/1"), "control");
	CHILD_CHECK(!is_there("/tmp/proc/meminfo"), "more than processes");
	return 0;
}

static int child_enter(void *arg)
{
	own_ns_enter(CLONE_NEWPID);
	return forked(child_proc, arg);
}

static void a_jail_has_no_proc_where_subset_is_missing(void **state)
{
	(void)state;
	own_ns_run(child_enter, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_jail_has_no_proc_where_subset_is_missing),
	};

	return cmocka_run_group_tests_name("apply", tests, NULL, NULL);
}
