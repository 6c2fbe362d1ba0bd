/* SPDX-License-Identifier: MIT */
/*
 * test_warden_program.c - one program under its clocks, and its verdict
 */
#include "warden_play.h"

#include "jail/warden/parts.h"

static void serve_program_within(int64_t wall_ms)
{
	const struct wire_front m = {
		.type = FRONT_START, .a = wall_ms, .seq = ++P.seq};
	const char *const argv[] = {"-c", "pass", NULL};
	struct err e = {0};
	int fd = wire_start_seal(&(struct jail_start){.argv = argv}, &e);

	assert_true(fd >= 0);
	P.last = m.seq;
	P.spec.mode = SPEC_PROGRAM;
	clocks_start(&W->clocks, &W->link, &P.spec);
	assert_int_equal(
		io_send_fds(P.front, &m, sizeof(m), &fd, 1, MSG_DONTWAIT), 0);
	close(fd);
	assert_int_equal(warden_loop_serve(W, &e), SESSION_OVER);
}

static void serve_program(void)
{
	serve_program_within(0);
}

static void a_program_has_a_verdict(void **state)
{
	static const struct {
		const char *boot;
		int status;
		enum jail_limit limit;
		int64_t wall_ms;
	} t[] = {
		{"!wait 100|!died 0", 0, LIMIT_NONE, 100},
		{"!wait 100|!died 768", 768, LIMIT_NONE, 100},
		{"!died 11", 11, LIMIT_NONE, 0},
		{NULL, SIGKILL, LIMIT_WALL, 10000},
		{"!wait 100|!busy 10500", SIGKILL, LIMIT_CPU, 100},
		{"!wait 100|!grown 600", SIGKILL, LIMIT_MEMORY, 100},
		{"!wait 100|!front 2", SIGKILL, LIMIT_PERSON, 100},
		{"!wait 100|!jail", SIGKILL, LIMIT_NONE, 100},
		{"!wait 100|!oom 1|!died 9", SIGKILL, LIMIT_MEMORY, 100},
		{"!oom 1|!wait 300|!died 9", SIGKILL, LIMIT_NONE, 300},
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct wire_event m;

		play_open(state);
		P.boot = t[i].boot;
		serve_program();
		expect_event(JAIL_BUILT, &m);
		expect_event(JAIL_UP, &m);
		expect_event(JAIL_EXITED, &m);
		assert_int_equal(m.event.program.status, t[i].status);
		assert_int_equal(m.event.program.limit, t[i].limit);
		assert_true(m.event.program.wall_ms >= t[i].wall_ms);
		assert_true(m.event.program.wall_ms <= t[i].wall_ms + 100);
		expect_nothing();
		play_close(state);
	}
}

/* The front end may shorten the clock, never lengthen it. */
static void a_start_may_only_be_stricter(void **state)
{
	static const int64_t asked[] = {300, 20000}, is[] = {300, 10000};

	for (size_t i = 0; i < 2; i++) {
		struct wire_event m;

		play_open(state);
		P.boot = NULL;
		serve_program_within(asked[i]);
		expect_event(JAIL_BUILT, &m);
		expect_event(JAIL_UP, &m);
		expect_event(JAIL_EXITED, &m);
		assert_int_equal(m.event.program.limit, LIMIT_WALL);
		assert_in_range(m.event.program.wall_ms, is[i], is[i] + 100);
		play_close(state);
	}
}

static void a_start_without_arguments_is_refused(void **state)
{
	struct wire_event m;
	struct err e = {0};

	(void)state;
	P.spec.mode = SPEC_PROGRAM;
	front_sends((struct wire_front){.type = FRONT_START});
	assert_int_equal(warden_loop_serve(W, &e), SESSION_OVER);
	expect_event(JAIL_FAILED, &m);
	assert_string_equal(m.event.err.msg, "malformed start");
}

/* A start that waits already is asked for while init builds, but for this. */
static void nothing_starts_before_what_is_required_is_seen(void **state)
{
	static const char *const words[] = {"cgroup", NULL};
	const char *const *const require[] = {NULL, words};

	for (int i = 0; i < 2; i++) {
		struct wire_event m;

		play_open(state);
		P.boot = "!died 0";
		P.spec.require = require[i];
		serve_program();
		assert_int_equal(P.count[INIT_SPAWN], i == 0);
		if (i == 0)
			expect_event(JAIL_BUILT, &m);
		expect_event(i == 0 ? JAIL_UP : JAIL_FAILED, &m);
		play_close(state);
	}
}

static void a_program_that_cannot_start_says_why(void **state)
{
	struct wire_event m;

	(void)state;
	P.spawn = "error";
	serve_program();
	expect_event(JAIL_BUILT, &m);
	expect_event(JAIL_FAILED, &m);
	assert_string_equal(m.event.err.msg, "execute python3: no");
}

/* Near the lifetime limit nothing is printed: the output belongs to the
 * program. */
static void a_program_prints_no_lifetime_notice(void **state)
{
	struct wire_event m;

	(void)state;
	P.spec.limits.lifetime_ms = 1000;
	P.boot = NULL;
	serve_program();
	expect_event(JAIL_BUILT, &m);
	expect_event(JAIL_UP, &m);
	expect_event(JAIL_EXITED, &m);
	assert_int_equal(m.event.program.limit, LIMIT_LIFETIME);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_has_a_verdict),
		cmocka_unit_test(a_start_may_only_be_stricter),
		TEST(a_start_without_arguments_is_refused),
		cmocka_unit_test(
			nothing_starts_before_what_is_required_is_seen),
		TEST(a_program_that_cannot_start_says_why),
		TEST(a_program_prints_no_lifetime_notice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
