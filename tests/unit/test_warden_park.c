/* SPDX-License-Identifier: MIT */
/*
 * test_warden_park.c - a guest that hangs while it is parked: how long it is
 * waited for, and what the person does meanwhile
 */
#include "warden_play.h"

#define BACK                                                                   \
	"Python stopped answering after cell 1 · back to the state before "   \
	"cell 1 (2 names)"
#define EARLY "interrupted before it began"
/* All the clocks of parking together, and one that was interrupted. */
#define BOUND_MS 6000
#define HURRIED_MS 1000
/* Requests, as !front names them. */
#define RUN "!front 0|"
#define INTERRUPT "!front 1|"
#define KILL "!front 2|"

/* Park after cell 1, and return how long that takes. */
static int64_t park(void)
{
	int64_t began = P.now_ms;

	warden_continue(W);
	warden_note_cell(W, 1);
	assert_int_equal(warden_park(W), 0);
	return P.now_ms - began;
}

static void expect_refused(const char *why)
{
	struct wire_event m;

	expect_event(JAIL_DONE, &m);
	assert_int_equal(m.event.done.how, HOW_REFUSED);
	assert_string_equal(m.event.done.text, why);
}

static void expect_no_reply(const char *why)
{
	struct wire_event m;

	expect_event(JAIL_REPLY, &m);
	assert_int_equal(m.reply.ok, 0);
	assert_string_equal(m.reply.err.msg, why);
}

/* A session whose guest shows this state, waits there, and never answers. */
static void play_silent(void **state, char shows, const char *wchan)
{
	play_up(state);
	proc_is(950, 0, 0);
	proc_shows(950, shows, 0);
	proc_write(950, "wchan", "%s", wchan);
	P.park = "";
}

/* A process that waits in the kernel for its child, as after vfork(), is no
 * sign that the host keeps the jail from running. */
static void a_guest_that_hangs_is_not_waited_for(void **state)
{
	static const char state_of[] = "SDT";

	for (size_t i = 0; i < sizeof(state_of) - 1; i++) {
		play_silent(state, state_of[i], "kernel_clone");
		assert_true(park() < BOUND_MS);
		expect_notice(BACK);
		play_close(state);
	}
}

/* One that wants a CPU and gets none, and one that the kernel keeps waiting: it
 * is given time, and then goes without a checkpoint. Its answer may come in a
 * later cell. */
static void a_guest_that_the_host_holds_back_keeps_its_variables(void **state)
{
	static const char state_of[] = "RD";
	struct wire_event m;

	for (size_t i = 0; i < sizeof(state_of) - 1; i++) {
		play_silent(state, state_of[i], "dup_mmap");
		assert_true(park() > BOUND_MS);
		expect_notice("no checkpoint could be taken in time, the host "
			      "is busy · a crash would go back to the state "
			      "before cell 1");
		expect_event(JAIL_PARKED, &m);
		assert_int_equal(guest_is_alive(&W->guest), 1);
		play_close(state);
	}
}

/* The rest of the cell's clocks, within bounds. */
static void parking_is_part_of_the_cell(void **state)
{
	static const struct {
		int64_t left_ms;
		const char *park;
		int taken;
	} t[] = {
		{10000, "!wait 1400|PARKED %u ok", 1},
		{10000, "!wait 1900|PARKED %u ok", 0},
		{-5, "!wait 600|PARKED %u ok", 1},
		{-5, "!wait 1400|PARKED %u ok", 0},
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		play_up(state);
		warden_note_end(W, t[i].left_ms);
		P.park = t[i].park;
		park();
		assert_int_equal(guest_is_alive(&W->guest), 1);
		assert_int_equal(P.guest[0].sock >= 0, t[i].taken);
		play_close(state);
	}
}

static void memory_is_looked_at_meanwhile(void **state)
{
	(void)state;
	P.park = "!wait 200|!grown 600|!wait 1000|PARKED %u ok";
	assert_true(park() < BOUND_MS);
	expect_notice("Python used too much memory after cell 1 · back to the "
		      "state before cell 1 (2 names)");
}

static void what_waits_for_parking_can_be_given_up(void **state)
{
	struct wire_event m;

	(void)state;
	P.park = "!wait 50|" RUN "!wait 50|" INTERRUPT INTERRUPT KILL
		 "!wait 100|" RUN;
	assert_true(park() < BOUND_MS);
	expect_refused(EARLY);
	expect_notice(BACK);
	/* Later interrupts are spent; the next cell waits untouched. */
	while (next_event(&m))
		assert_int_not_equal(m.event.type, JAIL_DONE);
	assert_int_equal(link_request_peek(&W->link), FRONT_RUN);
	assert_int_equal(P.interrupts, 0);
}

static void a_command_that_waits_can_be_given_up(void **state)
{
	char text[64];

	(void)state;
	snprintf(text, sizeof(text), "!wait 50|!front %d|!wait 50|" INTERRUPT,
		FRONT_HOME_LIST);
	P.park = text;
	assert_true(park() < BOUND_MS);
	expect_no_reply(EARLY);
	assert_int_equal(link_request_peek(&W->link), -1);
}

/* And the guest then has only a moment more. */
static void an_interrupt_hurries_what_it_waits_for(void **state)
{
	(void)state;
	P.boot = "READY %p 3.11.2";
	P.park = "!wait 20|" RUN INTERRUPT "!wait 900|PARKED %u ok";
	P.wake = "AWAKE %p 2|!wait 1|";
	park();
	expect_refused(EARLY);
	expect_notice(BACK);
}

/* A guest that takes its time is no guest that hangs. */
static void an_interrupt_costs_no_variables(void **state)
{
	struct wire_event m;

	(void)state;
	P.park = "!wait 20|" RUN INTERRUPT "!wait 200|PARKED %u ok";
	assert_true(park() < HURRIED_MS);
	expect_refused(EARLY);
	expect_event(JAIL_PARKED, &m);
	assert_int_equal(m.event.done.no_checkpoint, NO_CHECKPOINT_NONE);
	assert_int_equal(W->checkpoints.n, 2);
}

/* Of the cell that has just ended, or of nothing at all. */
static void an_interrupt_that_comes_late_counts_for_nothing(void **state)
{
	struct wire_event m;

	(void)state;
	P.park = "!wait 20|" INTERRUPT KILL RUN "!late|!wait 1000|PARKED %u ok";
	park();
	expect_event(JAIL_PARKED, &m);
	assert_int_equal(m.event.done.no_checkpoint, NO_CHECKPOINT_NONE);
	assert_int_equal(link_request_peek(&W->link), FRONT_RUN);
}

/* A window's new size, and keys that come back, do not wait. */
static void what_needs_no_guest_is_served_meanwhile(void **state)
{
	char text[64];
	struct wire_event m;

	(void)state;
	link_serve_aside(&W->link, front_serve_aside, W);
	snprintf(text, sizeof(text), "!wait 50|!front %d|!front %d|!front %d",
		FRONT_RESIZE, FRONT_TOUCH, FRONT_KEYS);
	P.park = text;
	park();
	expect_event(JAIL_REPLY, &m);
	assert_int_equal(m.reply.ok, 1);
	expect_notice(BACK);
}

static void a_reset_does_not_wait_for_what_it_ends(void **state)
{
	char text[32];
	struct wire_event m;

	(void)state;
	snprintf(text, sizeof(text), "!wait 50|!front %d", FRONT_RESET);
	P.park = text;
	assert_true(park() < HURRIED_MS);
	expect_nothing();
	P.park = "PARKED %u ok";
	assert_int_equal(front_serve(W), 0);
	expect_event(JAIL_REPLY, &m);
	assert_int_equal(m.reply.ok, 1);
	expect_event(JAIL_UP, &m);
	expect_event(JAIL_PARKED, &m);
	assert_int_equal(P.jails, 2);
}

static void an_undo_does_not_add_to_a_rollback(void **state)
{
	char text[32];

	(void)state;
	snprintf(text, sizeof(text), "!wait 50|!front %d", FRONT_UNDO);
	P.park = text;
	park();
	expect_no_reply(
		"undo: Python has just been replaced · nothing was undone");
	expect_notice(BACK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_guest_that_hangs_is_not_waited_for),
		cmocka_unit_test(
			a_guest_that_the_host_holds_back_keeps_its_variables),
		cmocka_unit_test(parking_is_part_of_the_cell),
		TEST_UP(memory_is_looked_at_meanwhile),
		TEST_UP(what_waits_for_parking_can_be_given_up),
		TEST_UP(a_command_that_waits_can_be_given_up),
		TEST_UP(an_interrupt_hurries_what_it_waits_for),
		TEST_UP(an_interrupt_costs_no_variables),
		TEST_UP(an_interrupt_that_comes_late_counts_for_nothing),
		TEST_UP(what_needs_no_guest_is_served_meanwhile),
		TEST_UP(a_reset_does_not_wait_for_what_it_ends),
		TEST_UP(an_undo_does_not_add_to_a_rollback),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
