/* SPDX-License-Identifier: MIT */
/*
 * test_warden.c - the session between cells: built, stopped, restarted, asked,
 * ended
 */
#include "warden_play.h"

static void expect_limit(enum jail_limit limit)
{
	struct wire_event m;

	expect_event(JAIL_LIMIT, &m);
	assert_int_equal(m.event.limit, limit);
}

static void expect_failed(const char *why)
{
	struct wire_event m;

	expect_event(JAIL_FAILED, &m);
	assert_string_equal(m.event.err.msg, why);
}

static void expect_reply(int ok, const char *why)
{
	struct wire_event m;

	expect_event(JAIL_REPLY, &m);
	assert_int_equal(m.reply.seq, P.seq);
	assert_int_equal(m.reply.ok, ok);
	assert_string_equal(m.reply.err.msg, why);
}

/* ---- the start ---- */

static const struct {
	const char *build, *spawn, *boot, *why;
} starts[] = {
	{"error", "ok", "READY %p 3.11.2", "mount the root: no"},
	{"die", "ok", "READY %p 3.11.2",
		"build the jail: its first process died"},
	{"odd", "ok", "READY %p 3.11.2", "build the jail: unexpected message"},
	{NULL, "ok", "READY %p 3.11.2",
		"build the jail: its first process died"},
	{"ok", "error", "READY %p 3.11.2", "execute python3: no"},
	{"ok", "die", "READY %p 3.11.2", "start Python: no answer"},
	{"ok", NULL, "READY %p 3.11.2", "start Python: no answer"},
	{"ok", "ok", NULL, "start /usr/bin/python3: it did not answer"},
	{"ok", "ok", "!close", "start /usr/bin/python3: it ended at once"},
	{"ok", "ok", "!died 0", "start /usr/bin/python3: it ended at once"},
	{"ok", "ok", "!jail", "start /usr/bin/python3: it ended at once"},
	{"ok", "ok", "DONE 1 ok 1 0 0 0",
		"start /usr/bin/python3: it ended at once"},
	{"ok", "ok", "\x01\x02", "start /usr/bin/python3: it ended at once"},
	{"ok", "ok", "!fd|READY %p 3",
		"start /usr/bin/python3: it ended at "
		"once"},
};

static void a_session_that_cannot_start_says_why(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		struct err e = {0};

		play_open(state);
		P.build = starts[i].build;
		P.spawn = starts[i].spawn;
		P.boot = starts[i].boot;
		assert_int_equal(warden_loop_serve(W, &e), -1);
		assert_string_equal(e.msg, starts[i].why);
		play_close(state);
	}
}

/* The step at which the front end goes. */
static void gone_at_build(void)
{
	P.build = NULL;
	P.later[P.nlater++] = (struct later){P.now_ms + 5, 0, 0, "!gone"};
}

static void gone_at_boot(void)
{
	P.boot = "!gone";
}

static void gone_at_park(void)
{
	P.park = "!gone";
}

static void gone_at_copy(void)
{
	P.copy = "!gone";
}

static void gone_at_stop(void)
{
	P.stop = NULL;
	P.later[P.nlater++] = (struct later){P.now_ms + 25, 0, 0, "!gone"};
}

static void the_session_is_over_when_the_front_end_goes(void **state)
{
	static void (*const at[])(void) = {gone_at_build, gone_at_boot,
		gone_at_park, gone_at_copy, gone_at_stop};

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		struct err e = {0};
		int64_t began;

		play_open(state);
		began = P.now_ms;
		at[i]();
		assert_int_equal(warden_loop_serve(W, &e), SESSION_OVER);
		assert_int_equal(P.jails, 1);
		assert_true(P.now_ms - began < 100);
		play_close(state);
	}
}

/* ---- stopping and restarting ---- */

static void a_waiting_cell_starts_without_a_stop(void **state)
{
	(void)state;
	front_sends((struct wire_front){.type = FRONT_RUN, .a = 2});
	warden_note_cell(W, 1);
	assert_int_equal(warden_park(W), 0);
	assert_int_equal(P.count[INIT_STOP], 1);
	assert_int_equal(W->checkpoints.n, 2);
}

/* When its first cell comes, and whether there is a checkpoint before it. */
static void a_first_cell_that_comes_soon_waits_for_no_checkpoint(void **state)
{
	static const struct {
		const char *boot;
		int before;
	} t[] = {
		{"READY %p 3.11.2|!wait 10|!run", 0},
		{"READY %p 3.11.2|!wait 100|!run", 1},
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct wire_event m;
		struct err e = {0};

		play_open(state);
		P.boot = t[i].boot;
		assert_int_equal(warden_loop_serve(W, &e), SESSION_OVER);
		expect_event(JAIL_BUILT, &m);
		expect_up(0);
		if (t[i].before)
			expect_parked(NO_CHECKPOINT_NONE);
		expect_event(JAIL_RUNNING, &m);
		expect_event(JAIL_DONE, &m);
		expect_parked(NO_CHECKPOINT_NONE);
		play_close(state);
	}
}

static void a_jail_that_does_not_stop_is_replaced(void **state)
{
	static const char *const how[] = {NULL, "unseen", "die"};

	for (size_t i = 0; i < 3; i++) {
		play_up(state);
		warden_note_cell(W, 1);
		P.stop = how[i];
		/* The new jail does not stop either: the session is over. */
		assert_int_equal(warden_park(W), SESSION_OVER);
		expect_notice("the jail could not be stopped · " RESTARTED);
		expect_up(1);
		expect_nothing();
		assert_int_equal(P.jails, 2);
		play_close(state);
	}
}

static void a_late_answer_is_ignored(void **state)
{
	const struct wire_init late = {
		.type = INIT_STOPPED, .seq = W->link.seq, .unseen = 1};
	int32_t killed;

	(void)state;
	init_says(&late, NULL, 0);
	assert_int_equal(warden_stop(W, &killed), 0);
	assert_int_equal(P.jails, 1);
}

static void a_jail_that_runs_in_the_background_is_not_stopped(void **state)
{
	int32_t killed;

	(void)state;
	P.spec.limits.background = BACKGROUND_RUN;
	assert_int_equal(warden_stop(W, &killed), 0);
	assert_int_equal(P.count[INIT_STOP], 1);
}

static void a_restart_that_fails_ends_the_session(void **state)
{
	(void)state;
	P.build = "error";
	assert_int_equal(warden_restart(W), SESSION_OVER);
	expect_failed("mount the root: no");
	expect_nothing();
	assert_int_equal(W->jail.init, 0);
}

/* The death of a large jail takes long, and is no hang of the warden's. */
static void no_alarm_cuts_the_death_of_a_jail_short(void **state)
{
	struct itimerval t = {0};

	(void)state;
	P.alarmed = 0;
	assert_int_equal(warden_restart(W), 0);
	assert_int_equal(P.jails, 2);
	assert_int_equal(P.alarmed, 0);
	getitimer(ITIMER_REAL, &t);
	assert_true(t.it_value.tv_sec > 0); /* of its other work */
}

/* ---- between cells ---- */

static void serve(void)
{
	struct wire_event m;
	struct err e = {0};

	assert_int_equal(warden_loop_serve(W, &e), SESSION_OVER);
	expect_event(JAIL_BUILT, &m);
	expect_up(0);
	expect_parked(NO_CHECKPOINT_NONE);
}

/* Ten minutes pass, and then the guest does it. */
static void then(const char *what)
{
	static char text[100];

	snprintf(text, sizeof(text), "READY %%p 3.11.2|!wait 600000|%s", what);
	P.boot = text;
}

static void events_between_cells_are_reported(void **state)
{
	static const struct {
		const char *what, *notice, *before;
	} t[] = {
		{"DONE 1 ok 0 0 0 0",
			"Python spoke out of turn and was killed"},
		{"!close", "Python spoke out of turn and was killed"},
		{"\x02", "Python spoke out of turn and was killed"},
		{"!died 9", "Python died between cells"},
		{"!orphan 9", "Python died between cells"},
		{"!dying|!wait 100|!died 9", "Python died between cells"},
		{"!oom 1|!died 9", "Python died between cells",
			"memory limit: "
			"1 process of the session was killed"},
		{"!jail", "the jail died"},
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		int died = strstr(t[i].notice, "Python died") != NULL;
		char text[256];

		play_open(state);
		then(t[i].what);
		serve();
		/* The copy of a silent guest is as broken as the guest. The
		 * copy of a dead guest is not. */
		snprintf(text, sizeof(text), "%s · %s", t[i].notice,
			died ? "back to the state before cell 1 (2 names)"
			     : RESTARTED);
		if (t[i].before)
			expect_notice(t[i].before);
		expect_notice(text);
		if (!died)
			expect_up(1);
		expect_parked(NO_CHECKPOINT_NONE);
		play_close(state);
	}
}

static void the_idle_limit_is_announced_and_strikes(void **state)
{
	int64_t began = P.now_ms;

	(void)state;
	serve();
	expect_notice("the session ends in 60 s: idle limit");
	expect_limit(LIMIT_IDLE);
	assert_int_equal(P.now_ms - began, P.spec.limits.idle_ms);
}

static void activity_of_the_person_postpones_the_idle_limit(void **state)
{
	char touch[40];
	int64_t began = P.now_ms;

	(void)state;
	snprintf(touch, sizeof(touch), "!front %d", FRONT_TOUCH);
	then(touch);
	serve();
	expect_notice("the session ends in 60 s: idle limit");
	expect_limit(LIMIT_IDLE);
	assert_int_equal(P.now_ms - began, P.spec.limits.idle_ms + 600000);
}

static void the_lifetime_limit_strikes_an_active_person_too(void **state)
{
	(void)state;
	P.spec.limits.lifetime_ms = 60100;
	serve();
	expect_notice("the session ends in 60 s: lifetime limit");
	expect_limit(LIMIT_LIFETIME);
}

static void the_end_of_an_exam_is_announced_twice_and_strikes(void **state)
{
	int64_t began = P.now_ms;

	(void)state;
	P.spec.limits.until_s = P.now_ms / 1000 + 1200;
	serve();
	expect_notice("the exam ends in 10 min");
	expect_notice("the exam ends in 60 s, and this session with it");
	expect_limit(LIMIT_EXAM);
	assert_int_equal(P.now_ms - began, 1200000);
}

static void the_end_of_the_day_is_announced_and_strikes(void **state)
{
	(void)state;
	P.spec.limits.until_s = P.now_ms / 1000 + 1200;
	P.spec.limits.until_daily = 1;
	serve();
	expect_notice("the session ends in 10 min, as all do at that time of "
		      "day");
	expect_notice(
		"the session ends in 60 s, as all do at that time of day");
	expect_limit(LIMIT_UNTIL);
}

static void an_exam_ends_by_the_clock_of_the_host_which_may_be_set(void **state)
{
	int64_t began = P.now_ms;

	(void)state;
	P.spec.limits.until_s = P.now_ms / 1000 + 7200;
	P.set_at_ms = began + 300000;
	P.set_by_ms = 7200000;
	serve();
	expect_limit(LIMIT_EXAM);
	assert_in_range(P.now_ms - began, 300000, 305000);
}

static void what_runs_between_cells_is_stopped_again_and_then_killed(
	void **state)
{
	(void)state;
	P.boot = "READY %p 3.11.2|!wait 5000|!busy 100|!wait 16000|!busy 200|"
		 "!wait 9000|!gone";
	serve();
	expect_notice(
		"the jail ran on between cells and was killed · " RESTARTED);
	expect_up(1);
	expect_parked(NO_CHECKPOINT_NONE);
	expect_nothing();
	assert_int_equal(P.count[INIT_STOP], 3); /* parked, again, parked */
}

static void a_dead_guest_is_not_mistaken_for_background_work(void **state)
{
	(void)state;
	P.boot = "READY %p 3.11.2|!wait 5000|!busy 20|!wait 5000|!gone";
	serve();
	expect_nothing();
	assert_int_equal(P.count[INIT_STOP], 1);
}

/* ---- requests ---- */

static void request(enum wire_front_type type, int64_t a, int fd)
{
	struct wire_front m = {.type = type, .a = a, .seq = ++P.seq};

	assert_int_equal(
		io_send_fds(P.front, &m, sizeof(m), &fd, fd >= 0, 0), 0);
	if (fd >= 0)
		close(fd);
}

static void each_request_has_one_reply(void **state)
{
	static const struct {
		enum wire_front_type type;
		int64_t a;
		int ok;
		const char *why;
	} t[] = {
		{FRONT_KEYS, 0, 1, ""},
		{FRONT_USAGE, 0, 1, ""},
		{FRONT_UNDO, 1, 0, "undo: nothing is kept to go back to"},
		{FRONT_ASK, ASK_WHO, 0, "malformed question"},
		{FRONT_HOME_ABORT, 99, 0, "no such upload"},
		{FRONT_HOME_OPEN, 0, 1, ""},
		{FRONT_HOME_CREATE, -1, 1, ""},
		{FRONT_HOME_COMMIT, 99, 1, "no such upload"},
		{FRONT_HOME_MKDIR, INT64_MIN, 1, ""},
		{FRONT_RESET, 0, 1, ""},
	};
	struct wire_event m;

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		request(t[i].type, t[i].a, -1);
		assert_int_equal(front_serve(W), 0);
		expect_event(JAIL_REPLY, &m);
		assert_int_equal(m.reply.seq, P.seq);
		assert_int_equal(m.reply.ok, t[i].ok);
		/* An interrupt that comes now is too late. */
		assert_false(link_is_served(
			&W->link, &(struct wire_front){.a = P.seq}));
		if (t[i].type != FRONT_HOME_ABORT)
			assert_string_equal(m.reply.err.msg, t[i].why);
	}
	expect_up(1);
	expect_parked(NO_CHECKPOINT_NONE);
	expect_nothing();
	/* These requests have no reply. */
	request(FRONT_INTERRUPT, 0, -1);
	assert_int_equal(front_serve(W), 0);
	request(FRONT_TOUCH, 0, -1);
	assert_int_equal(front_serve(W), 0);
	request(FRONT_RESIZE, 24, -1);
	assert_int_equal(front_serve(W), 0);
	expect_nothing();
	/* The usage comes as an event. */
	request(FRONT_TELL_USAGE, 0, -1);
	assert_int_equal(front_serve(W), 0);
	expect_event(JAIL_USAGE, &m);
	expect_nothing();
}

static void undo_works_by_request(void **state)
{
	struct wire_event m;

	(void)state;
	warden_note_cell(W, 1);
	assert_int_equal(warden_park(W), 0);
	expect_parked(NO_CHECKPOINT_NONE);
	request(FRONT_UNDO, 1, -1);
	assert_int_equal(front_serve(W), 0);
	expect_event(JAIL_REPLY, &m);
	assert_int_equal(m.reply.ok, 1);
	assert_int_equal(m.reply.undone.back_to, 1);
	assert_int_equal(m.reply.undone.names, 2);
	expect_parked(NO_CHECKPOINT_NONE);
}

static void a_malformed_request_ends_the_session(void **state)
{
	(void)state;
	assert_int_equal(send(P.front, "x", 1, 0), 1);
	assert_int_equal(front_serve(W), SESSION_OVER);
}

#define HUNG "a question to Python hung · killed"
#define ENDED "a question to Python was its end"

static const struct {
	const char *ask, *notice;
	int interrupts;
} questions[] = {
	{"ANSWER %u 2\nok", NULL, 0},
	{"!wait 900|ANSWER %u 0\n", NULL, 0},
	{"!wait 1200|ANSWER %u 0\n", NULL, 1},
	{NULL, HUNG, 1},
	{"!wait 5000|ANSWER %u 0\n", HUNG, 1},
	{"ANSWER 99 2\nok", ENDED, 0},
	{"ANSWER %u 3\nok", ENDED, 0},
	{"DONE 1 ok 0 0 0 0", ENDED, 0},
	{"!died 0", ENDED, 0},
	{"!orphan 0", ENDED, 0},
	{"!close", ENDED, 0},
	{"!jail", ENDED, 0},
	{"!fd|ANSWER %u 2\nok", ENDED, 0},
};

static void a_guest_answers_a_question_or_is_replaced(void **state)
{
	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
		const char *notice = questions[i].notice;
		char text[256];

		play_up(state);
		P.ask = questions[i].ask;
		request(FRONT_ASK, ASK_WHO, io_sealed_memfd("q", "x", 1));
		assert_int_equal(front_serve(W), 0);
		assert_int_equal(P.interrupts, questions[i].interrupts);
		if (notice) {
			int back = !P.ask || strcmp(P.ask, "!jail") != 0;

			snprintf(text, sizeof(text), "%s · %s", notice,
				back ? "back to the state before cell 1 "
				       "(2 names)"
				     : RESTARTED);
			expect_notice(text);
			if (!back)
				expect_up(1);
			expect_parked(NO_CHECKPOINT_NONE);
		}
		expect_reply(
			!notice, notice ? "Python did not answer in time" : "");
		expect_nothing();
		assert_true(W->jail.swept);
		P.nlater = 0;
		play_close(state);
	}
}

/* A process that wants a CPU and gets none, and one that the kernel keeps
 * waiting. */
static void a_question_costs_nothing_where_the_host_holds_python_back(
	void **state)
{
	static const struct {
		char shows;
		const char *ask;
		int answered;
	} t[] = {
		{'R', "!wait 5000|ANSWER %u 0\n", 1},
		{'D', "!wait 5000|ANSWER %u 0\n", 1},
		{'R', "!wait 30000|ANSWER %u 0\n", 0}, /* control */
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		play_up(state);
		proc_is(950, 0, 0);
		proc_shows(950, t[i].shows, 0);
		proc_write(950, "wchan", "dup_mmap");
		P.ask = t[i].ask;
		request(FRONT_ASK, ASK_WHO, io_sealed_memfd("q", "x", 1));
		assert_int_equal(front_serve(W), 0);
		if (!t[i].answered) {
			expect_notice(HUNG " · back to the state before cell 1 "
					   "(2 names)");
			expect_parked(NO_CHECKPOINT_NONE);
		}
		expect_reply(t[i].answered,
			t[i].answered ? "" : "Python did not answer in time");
		expect_nothing();
		P.nlater = 0;
		play_close(state);
	}
}

/* No person typed this question, and a thread may keep Python from answering.
 */
static void a_watch_asks_threads_only_where_there_is_a_checkpoint(void **state)
{
	(void)state;
	P.ask = "ANSWER %u 0\n";
	W->guest.threads = 1;
	for (int checkpoint = 1; checkpoint >= 0; checkpoint--) {
		W->checkpoints.n = checkpoint;
		request(FRONT_ASK, ASK_WATCH, io_sealed_memfd("q", "x", 1));
		assert_int_equal(front_serve(W), 0);
		expect_reply(checkpoint,
			checkpoint ? ""
				   : "Python has threads, and no checkpoint");
	}
	W->guest.threads = 0; /* control */
	request(FRONT_ASK, ASK_WATCH, io_sealed_memfd("q", "x", 1));
	assert_int_equal(front_serve(W), 0);
	expect_reply(1, "");
}

/* It is not in a pid namespace of ours; the socket's peer is somebody else. */
static void a_front_end_without_a_pid_is_not_charged(void **state)
{
	struct jail_spec spec = P.spec;
	struct warden w;

	(void)state;
	spec.parent = getppid();
	warden_init(&w, &spec, P.front);
	assert_int_equal(w.link.front_cpu, -1);
	/* control */
	spec.front = getpid();
	warden_init(&w, &spec, P.front);
	assert_int_not_equal(w.link.front_cpu, -1);
}

/* A file that somebody else may change, or keep from being read. */
static void a_question_that_is_not_sealed_is_malformed(void **state)
{
	int fd = memfd_create("q", MFD_ALLOW_SEALING);

	(void)state;
	assert_int_equal(write(fd, "x", 1), 1);
	request(FRONT_ASK, ASK_WHO, fd);
	assert_int_equal(front_serve(W), 0);
	expect_reply(0, "malformed question");
	request(FRONT_ASK, ASK_WHO, -1);
	assert_int_equal(front_serve(W), 0);
	expect_reply(0, "malformed question");
	expect_nothing();
}

static void the_front_end_may_go_while_python_is_asked(void **state)
{
	(void)state;
	P.ask = "!gone";
	request(FRONT_ASK, ASK_WHO, io_sealed_memfd("q", "x", 1));
	assert_int_equal(front_serve(W), SESSION_OVER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_session_that_cannot_start_says_why),
		cmocka_unit_test(the_session_is_over_when_the_front_end_goes),
		TEST_UP(a_waiting_cell_starts_without_a_stop),
		cmocka_unit_test(a_jail_that_does_not_stop_is_replaced),
		TEST_UP(a_late_answer_is_ignored),
		TEST_UP(a_jail_that_runs_in_the_background_is_not_stopped),
		TEST_UP(a_restart_that_fails_ends_the_session),
		TEST_UP(no_alarm_cuts_the_death_of_a_jail_short),
		cmocka_unit_test(events_between_cells_are_reported),
		TEST(the_idle_limit_is_announced_and_strikes),
		TEST(activity_of_the_person_postpones_the_idle_limit),
		TEST(the_lifetime_limit_strikes_an_active_person_too),
		TEST(the_end_of_an_exam_is_announced_twice_and_strikes),
		TEST(the_end_of_the_day_is_announced_and_strikes),
		TEST(an_exam_ends_by_the_clock_of_the_host_which_may_be_set),
		TEST(what_runs_between_cells_is_stopped_again_and_then_killed),
		TEST(a_dead_guest_is_not_mistaken_for_background_work),
		TEST_UP(each_request_has_one_reply),
		TEST_UP(undo_works_by_request),
		TEST_UP(a_malformed_request_ends_the_session),
		cmocka_unit_test(a_guest_answers_a_question_or_is_replaced),
		cmocka_unit_test(
			a_question_costs_nothing_where_the_host_holds_python_back),
		TEST_UP(a_watch_asks_threads_only_where_there_is_a_checkpoint),
		cmocka_unit_test(
			a_first_cell_that_comes_soon_waits_for_no_checkpoint),
		TEST_UP(a_front_end_without_a_pid_is_not_charged),
		TEST_UP(a_question_that_is_not_sealed_is_malformed),
		TEST_UP(the_front_end_may_go_while_python_is_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
