/* SPDX-License-Identifier: MIT */
/*
 * test_stock.c - how many jails are made ahead, and when the next is begun
 */
#include "jail/prewarm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define REST 1000

/* One kind of jail, on a host. */
struct stock_case {
	const char *what;
	int cores, idle;
	int waited, ahead, have, making;
	bool rests; /* a jail was just taken */
	int kind;   /* -1: none is begun */
	bool for_waiting;
	int64_t when_ms;
};

static void check(const struct stock_case *c, size_t n)
{
	for (; n-- > 0; c++) {
		struct stock_kind kind = {.waited = c->waited,
			.ahead = c->ahead,
			.have = c->have,
			.making = c->making};
		const struct stock s = {.kinds = &kind,
			.n = 1,
			.room = 8,
			.at_once = c->cores,
			.idle = c->idle,
			.rest_ms = c->rests ? REST : 0};
		struct stock_next next = stock_next(&s);

		if (next.kind != c->kind ||
			(next.kind >= 0 && (next.waited != c->for_waiting ||
						   next.when_ms != c->when_ms)))
			fail_msg("%s: kind %d, waited %d, at %d", c->what,
				next.kind, next.waited, (int)next.when_ms);
	}
}

static void a_jail_is_made_beside_one_that_runs_where_a_core_is_idle(void **st)
{
	static const struct stock_case cases[] = {
		{"nobody knows which cores are idle", 2, 0, 0, 4, 0, 0, true, 0,
			false, REST},
		{"an idle core", 2, 2, 0, 4, 0, 0, true, 0, false, 0},
		{"an idle core, but others are ready", 2, 2, 0, 4, 3, 0, true,
			0, false, REST},
		{"the only idle core is for the one that was taken", 2, 1, 0, 4,
			0, 0, true, 0, false, REST},
		{"a single core", 1, 1, 0, 4, 0, 0, true, 0, false, REST},
		{"one in the making, which waits for the kernel", 2, 2, 0, 4, 1,
			1, true, 0, false, REST},
		{"one in the making, on four cores", 4, 4, 0, 4, 1, 1, true, 0,
			false, 0},
		{"three in the making, on four cores", 4, 4, 0, 8, 3, 3, true,
			0, false, REST},
		{"nothing is missing", 2, 2, 0, 4, 4, 0, true, -1, false, 0},
	};

	(void)st;
	check(cases, sizeof(cases) / sizeof(*cases));
}

static void jails_ahead_are_made_together_only_on_idle_cores(void **st)
{
	static const struct stock_case cases[] = {
		{"another is in the making", 2, 0, 0, 4, 1, 1, false, -1, false,
			0},
		{"and a core is idle", 2, 1, 0, 4, 1, 1, false, 0, false, 0},
		{"as many as cores are in the making", 2, 2, 0, 4, 2, 2, false,
			-1, false, 0},
		{"no core is idle", 4, 0, 0, 4, 1, 1, false, -1, false, 0},
	};

	(void)st;
	check(cases, sizeof(cases) / sizeof(*cases));
}

static void who_waits_comes_first_and_at_once(void **st)
{
	static const struct stock_case cases[] = {
		{"no core is idle", 2, 0, 1, 4, 0, 0, true, 0, true, 0},
		{"another is in the making", 2, 0, 2, 4, 1, 1, true, 0, true,
			0},
		{"as many as cores are in the making", 2, 2, 3, 4, 2, 2, false,
			-1, false, 0},
		{"the one in the making is for who waits", 2, 0, 1, 4, 1, 1,
			true, -1, false, 0},
	};

	(void)st;
	check(cases, sizeof(cases) / sizeof(*cases));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_jail_is_made_beside_one_that_runs_where_a_core_is_idle),
		cmocka_unit_test(
			jails_ahead_are_made_together_only_on_idle_cores),
		cmocka_unit_test(who_waits_comes_first_and_at_once),
	};

	return cmocka_run_group_tests_name("stock", tests, NULL, NULL);
}
