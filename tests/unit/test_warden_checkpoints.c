/* SPDX-License-Identifier: MIT */
/*
 * test_warden_checkpoints.c - the states that are kept: taken when the guest is
 * parked, lost, gone back to
 */
#include "warden_play.h"

static void park_after(uint32_t cell)
{
	warden_note_cell(W, cell);
	assert_int_equal(warden_park(W), 0);
}

/* ---- given up ---- */

/* An answer of the helper from before init has killed it counts it, too. */
static void one_that_is_given_up_goes_when_init_says_so(void **state)
{
	struct checkpoints *c = &W->checkpoints;
	int64_t before = now_ms();

	(void)state;
	assert_true(checkpoints_were_gone(c, before + 1));
	checkpoints_give_up(c, 0, NO_CHECKPOINT_MEMORY);
	assert_int_equal(c->n, 0);
	assert_false(checkpoints_were_gone(c, now_ms()));
	W->link.answered = c->ending;
	assert_false(checkpoints_were_gone(c, before));
	assert_true(checkpoints_were_gone(c, now_ms() + 1));
}

/* ---- parking ---- */

static void a_parked_session_is_stopped_and_has_a_checkpoint(void **state)
{
	(void)state;
	assert_int_equal(W->checkpoints.n, 1);
	assert_int_equal(P.count[INIT_STOP], 1);
	assert_int_equal(P.count[INIT_CHECKPOINTS], 1);
	assert_int_equal(P.pids.n, 1);
	assert_int_equal(P.pids.v[0], W->checkpoints.kept[0].pid);
}

#define WOULD_LOSE " · a crash would lose the variables"

static const struct {
	const char *park, *copy, *notice;
	int unhung;
} none_taken[] = {
	{"PARKED %u processes", NULL,
		"no checkpoint could be taken, there are too many "
		"processes" WOULD_LOSE,
		0},
	{"PARKED %u memory", NULL,
		"no checkpoint could be taken, there is too little "
		"memory" WOULD_LOSE,
		0},
	{"PARKED %u what", NULL, "no checkpoint could be taken" WOULD_LOSE, 0},
	{"PARKED %u ok", NULL, "no checkpoint could be taken" WOULD_LOSE, 1},
	{"PARKED %u ok", "!close", "no checkpoint could be taken" WOULD_LOSE,
		0},
	{"PARKED %u ok", "ASLEEP 1 0 0",
		"no checkpoint could be taken" WOULD_LOSE, 0},
	{"PARKED %u ok", "ASLEEP 40 0 0", /* the live guest itself */
		"no checkpoint could be taken" WOULD_LOSE, 0},
	{"PARKED %u ok", "AWAKE %p 0",
		"no checkpoint could be taken" WOULD_LOSE, 0},
};

static void a_failed_checkpoint_is_reported(void **state)
{
	for (size_t i = 0; i < sizeof(none_taken) / sizeof(none_taken[0]);
		i++) {
		play_open(state);
		P.park = none_taken[i].park;
		P.copy = none_taken[i].copy;
		play_start();
		expect_up(0);
		expect_notice(none_taken[i].notice);
		expect_parked(NO_CHECKPOINT_FAILED);
		assert_int_equal(P.count[INIT_KILL_FORK], none_taken[i].unhung);
		assert_int_equal(P.jails, 1);
		/* A second failure is not reported. */
		W->checkpoints.skip = 0;
		assert_int_equal(warden_park(W), 0);
		expect_parked(NO_CHECKPOINT_FAILED);
		play_close(state);
	}
}

static const struct {
	const char *park, *what;
} broken[] = {
	{NULL, "stopped answering"},
	{"PARKED 9 ok", "stopped answering"},
	{"PARKED %u \x1b[31m", "stopped answering"},
	{"DONE 1 ok 0 0 0 0", "stopped answering"},
	{"!fd|PARKED %u ok", "stopped answering"},
	{"!close", "stopped answering"},
	{"!died 11", "died"},
};

/* The guest and its copies are broken in the same way. The warden asks each for
 * a checkpoint, a limited number of times. */
static void a_guest_that_cannot_be_parked_is_replaced(void **state)
{
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		char text[256];

		play_up(state);
		warden_note_cell(W, 1);
		P.park = broken[i].park;
		assert_int_equal(warden_park(W), 0);
		snprintf(text, sizeof(text),
			"Python %s after cell 1 · back to the state before "
			"cell 1 (2 names)",
			broken[i].what);
		expect_notice(text);
		for (int again = 0; again < 2; again++) {
			snprintf(text, sizeof(text),
				"Python %s after cell 1, again · " RESTARTED,
				broken[i].what);
			expect_notice(text);
			expect_up(1);
		}
		expect_notice("no checkpoint could be taken" WOULD_LOSE);
		expect_parked(NO_CHECKPOINT_FAILED);
		assert_int_equal(P.jails, 3);
		/* A copy that hangs may keep the guest silent. */
		assert_int_equal(
			P.count[INIT_KILL_FORK], broken[i].park ? 0 : 3);
		play_close(state);
	}
}

static void undo_keeps_as_many_as_configured(void **state)
{
	(void)state;
	P.spec.limits.undo = 2;
	for (uint32_t cell = 1; cell < 6; cell++) {
		park_after(cell);
	}
	assert_int_equal(W->checkpoints.n, 3);
	assert_int_equal(W->checkpoints.kept[0].before, 4);
	assert_int_equal(P.count[INIT_DISCARD], 3);
}

/* Only what the live guest's own cell did not change is the same state. */
static void a_cell_that_changes_nothing_adds_no_state(void **state)
{
	struct jail_undone u;
	struct err e;

	(void)state;
	P.spec.limits.undo = 5;
	for (uint32_t cell = 1; cell < 5; cell++) {
		P.park = cell == 2 ? "PARKED %u ok" : "PARKED %u same";
		park_after(cell);
	}
	assert_int_equal(W->checkpoints.n, 2);
	assert_int_equal(W->checkpoints.kept[0].before, 2);
	assert_int_equal(W->checkpoints.kept[1].before, 5);
	/* No state was kept of cell 5, with which cell 6 could be the same. */
	W->checkpoints.skip = 1;
	W->checkpoints.skip_why = NO_CHECKPOINT_COST;
	park_after(5);
	park_after(6);
	assert_int_equal(W->checkpoints.n, 3);
	assert_int_equal(checkpoints_find(&W->checkpoints, 7, 1, &u, &e), 0);
	assert_int_equal(u.back_to, 5);
	assert_int_equal(u.next, 2);
	assert_int_equal(u.reset, 0);
}

static void a_reset_is_a_state_of_its_own(void **state)
{
	struct jail_undone u;
	struct err e;

	(void)state;
	P.spec.limits.undo = 5;
	park_after(1);
	assert_int_equal(warden_reset(W, 1), 0);
	assert_int_equal(P.jails, 1);
	assert_int_equal(warden_park(W), 0);
	assert_int_equal(W->checkpoints.n, 3);
	assert_int_equal(checkpoints_find(&W->checkpoints, 2, 1, &u, &e), 0);
	assert_int_equal(u.back_to, 2);
	assert_int_equal(u.reset, 1);
	assert_int_equal(u.next, 1);
	assert_int_equal(u.next_reset, 0);
	/* A look does not make a cell of it. */
	P.park = "PARKED %u same";
	park_after(2);
	assert_int_equal(checkpoints_find(&W->checkpoints, 3, 1, &u, &e), 0);
	assert_int_equal(u.reset, 1);
	assert_int_equal(warden_reset(W, 0), 0);
	assert_int_equal(P.jails, 2);
	assert_int_equal(W->checkpoints.n, 0);
}

/* A second one of the same state takes the first one's place. */
static void each_state_has_one_checkpoint(void **state)
{
	(void)state;
	assert_int_equal(warden_park(W), 0);
	assert_int_equal(W->checkpoints.n, 1);
	assert_int_equal(P.count[INIT_DISCARD], 1);
}

static void no_checkpoint_is_asked_for_when_disabled(void **state)
{
	(void)state;
	P.spec.limits.checkpoint = CHECKPOINT_NEVER;
	play_start();
	expect_up(0);
	expect_notice("checkpoints are off" WOULD_LOSE);
	expect_parked(NO_CHECKPOINT_OFF);
	assert_int_equal(P.nguests, 1);
}

/* ---- deaths ---- */

static void the_death_of_the_last_checkpoint_is_reported(void **state)
{
	struct jail_done d = {0};

	(void)state;
	guest_dies(1, SIGKILL);
	assert_int_equal(guest_await(&W->guest, W->guest.ctl,
				 &(struct guest_message){0}, P.now_ms + 10),
		0);
	expect_nothing(); /* its owner has not asked yet */
	checkpoints_note_deaths(&W->checkpoints);
	expect_notice("the checkpoint was killed from within · a crash would "
		      "now lose the variables");
	assert_true(guest_is_alive(&W->guest));
	assert_int_equal(warden_recover(W, &d), 0);
	assert_int_equal(d.after, AFTER_RESTARTED);
	assert_int_equal(d.no_checkpoint, NO_CHECKPOINT_KILLED);
}

static void the_death_of_an_older_checkpoint_is_not_reported(void **state)
{
	(void)state;
	park_after(1);
	expect_parked(NO_CHECKPOINT_NONE);
	guest_dies(1, SIGKILL);
	assert_int_equal(guest_await(&W->guest, W->guest.ctl,
				 &(struct guest_message){0}, P.now_ms + 10),
		0);
	checkpoints_note_deaths(&W->checkpoints);
	expect_nothing();
	assert_int_equal(W->checkpoints.n, 1);
	assert_int_equal(W->checkpoints.kept[0].before, 2);
}

/* Pids are reused: an old death must not strike a later process of the same
 * pid. */
static void an_old_death_is_forgotten(void **state)
{
	struct wire_init m = {
		.type = INIT_DIED, .npids = 1, .pids = {42}, .status = 9};
	struct wire_init got;

	(void)state;
	init_says(&m, NULL, 0);
	assert_int_equal(link_take(&W->link, &got, NULL, 0), 1);
	checkpoints_note_deaths(&W->checkpoints);
	park_after(1); /* its copy is 42 */
	checkpoints_note_deaths(&W->checkpoints);
	assert_int_equal(W->checkpoints.kept[1].pid, 42);
	assert_int_equal(W->checkpoints.n, 2);
}

static void more_deaths_than_the_queue_holds_do_not_overrun(void **state)
{
	struct wire_init got;

	(void)state;
	for (int i = 0; i < 3 * WIRE_PIDS_MAX; i++) {
		struct wire_init m = {.type = INIT_DIED,
			.npids = 1,
			.pids = {1000 + i},
			.status = 9};

		init_says(&m, NULL, 0);
		assert_int_equal(link_take(&W->link, &got, NULL, 0), 1);
	}
	guest_dies(P.live, 9);
	assert_int_equal(link_take(&W->link, &got, NULL, 0), 1);
	assert_in_range(W->link.ndeaths, 0, WIRE_PIDS_MAX);
	assert_false(guest_is_alive(&W->guest));
}

/* ---- going back ---- */

static const struct {
	const char *wake;
	enum jail_after after;
	enum jail_no_checkpoint none;
} wakes[] = {
	{"AWAKE %p 2", AFTER_ROLLED_BACK, NO_CHECKPOINT_NONE},
	{NULL, AFTER_RESTARTED, NO_CHECKPOINT_SILENT},
	{"!died 9", AFTER_RESTARTED, NO_CHECKPOINT_SILENT},
	{"!close", AFTER_RESTARTED, NO_CHECKPOINT_SILENT},
	{"ASLEEP %p 0 0", AFTER_RESTARTED, NO_CHECKPOINT_SILENT},
	{"garbage", AFTER_RESTARTED, NO_CHECKPOINT_SILENT},
	{"!jail", AFTER_RESTARTED, NO_CHECKPOINT_SILENT},
};

static void a_checkpoint_wakes_or_python_restarts(void **state)
{
	for (size_t i = 0; i < sizeof(wakes) / sizeof(wakes[0]); i++) {
		struct jail_done d = {0};
		ino_t theirs;

		play_up(state);
		theirs = W->checkpoints.kept[0].theirs;
		P.wake = wakes[i].wake;
		guest_dies(P.live, SIGSEGV);
		assert_int_equal(warden_recover(W, &d), 0);
		assert_int_equal(d.after, wakes[i].after);
		assert_int_equal(d.no_checkpoint, wakes[i].none);
		assert_int_equal(P.count[INIT_KILL],
			1 + (d.after == AFTER_RESTARTED && wakes[i].wake &&
				    strcmp(wakes[i].wake, "!jail")));
		if (d.after == AFTER_ROLLED_BACK) {
			assert_int_equal(d.names, 2);
			assert_false(W->jail.swept); /* the guest runs */
			assert_int_equal(d.back_to, 1);
			assert_int_equal(d.threads_gone, 1);
			assert_int_equal(W->guest.pid, 41);
			assert_true(theirs && W->jail.ctl == theirs);
			assert_int_equal(W->checkpoints.n, 0);
		}
		play_close(state);
	}
}

/* Only when all others are dead; init is asked five times. */
static void a_checkpoint_wakes_when_the_guest_has_been_killed(void **state)
{
	static const struct {
		const char *kill;
		enum jail_after after;
		int asked;
	} cases[] = {
		{NULL, AFTER_RESTARTED, 5},
		{"some", AFTER_RESTARTED, 5},
		{"late", AFTER_ROLLED_BACK, 2},
		{"silent", AFTER_ROLLED_BACK, 2},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int woken = cases[i].after == AFTER_ROLLED_BACK;
		struct jail_done d = {0};

		play_up(state);
		P.kill = cases[i].kill;
		assert_int_equal(warden_recover(W, &d), 0);
		assert_int_equal(d.after, cases[i].after);
		assert_int_equal(P.count[INIT_KILL], cases[i].asked);
		assert_int_equal(P.count[INIT_RESUME], woken);
		assert_int_equal(d.no_checkpoint,
			woken ? NO_CHECKPOINT_NONE : NO_CHECKPOINT_SILENT);
		play_close(state);
	}
}

static void the_front_end_may_go_while_a_checkpoint_wakes(void **state)
{
	struct jail_done d = {0};

	(void)state;
	P.wake = "!gone";
	assert_int_equal(warden_recover(W, &d), SESSION_OVER);
}

static void an_older_checkpoint_is_woken_where_the_newest_is_dead(void **state)
{
	struct jail_done d = {0};

	(void)state;
	park_after(1);
	fd_drop(&P.guest[2].sock); /* its link is closed, silently */
	assert_int_equal(warden_recover(W, &d), 0);
	assert_int_equal(d.after, AFTER_ROLLED_BACK);
	assert_int_equal(d.back_to, 1);
	assert_int_equal(W->guest.pid, 41);
}

static void undo_says_why_nothing_is_kept(void **state)
{
	static const struct {
		enum jail_no_checkpoint none;
		const char *why;
	} t[] = {
		{NO_CHECKPOINT_NONE, ""},
		{NO_CHECKPOINT_OFF, ": checkpoints are off"},
		{NO_CHECKPOINT_COST, ": copying memory for checkpoints costs "
				     "too much here"},
		{NO_CHECKPOINT_MEMORY,
			": the checkpoint was given up for memory"},
		{NO_CHECKPOINT_FAILED, ": no checkpoint could be taken"},
		{NO_CHECKPOINT_KILLED,
			": the checkpoint was killed from within"},
	};
	char said[200];
	struct jail_undone u;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		checkpoints_give_up(&W->checkpoints, 0, t[i].none);
		assert_int_equal(warden_undo(W, 1, &u, &e), -1);
		snprintf(said, sizeof(said),
			"undo: nothing is kept to go back to%s", t[i].why);
		assert_string_equal(e.msg, said);
	}
}

static void undo_goes_back_to_the_oldest_checkpoint(void **state)
{
	struct jail_undone u;
	struct err e;

	(void)state;
	assert_int_equal(warden_undo(W, 1, &u, &e), -1);
	assert_string_equal(e.msg, "undo: nothing is kept to go back to");
	park_after(1);
	assert_int_equal(warden_undo(W, 2, &u, &e), -1);
	assert_string_equal(e.msg, "undo: only 1 cell is kept");
	assert_int_equal(warden_undo(W, 0, &u, &e), -1);
	assert_int_equal(P.count[INIT_KILL], 0); /* nothing has changed */
	assert_int_equal(warden_undo(W, 1, &u, &e), 0);
	assert_int_equal(u.back_to, 1);
	assert_int_equal(u.next, 0);
	assert_int_equal(W->guest.pid, 41);
	assert_int_equal(P.jails, 1);
}

static void undo_to_a_silent_checkpoint_restarts_python(void **state)
{
	struct jail_undone u;
	struct err e;

	(void)state;
	park_after(1);
	P.wake = NULL;
	assert_int_equal(warden_undo(W, 1, &u, &e), 1);
	assert_string_equal(e.msg,
		"undo: the older state did not answer; Python was restarted, "
		"variables lost, home kept");
	assert_int_equal(P.jails, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_UP(one_that_is_given_up_goes_when_init_says_so),
		TEST_UP(a_parked_session_is_stopped_and_has_a_checkpoint),
		cmocka_unit_test(a_failed_checkpoint_is_reported),
		cmocka_unit_test(a_guest_that_cannot_be_parked_is_replaced),
		TEST_UP(undo_keeps_as_many_as_configured),
		TEST_UP(a_cell_that_changes_nothing_adds_no_state),
		TEST_UP(a_reset_is_a_state_of_its_own),
		TEST_UP(each_state_has_one_checkpoint),
		TEST(no_checkpoint_is_asked_for_when_disabled),
		TEST_UP(the_death_of_the_last_checkpoint_is_reported),
		TEST_UP(the_death_of_an_older_checkpoint_is_not_reported),
		TEST_UP(an_old_death_is_forgotten),
		TEST_UP(more_deaths_than_the_queue_holds_do_not_overrun),
		cmocka_unit_test(a_checkpoint_wakes_or_python_restarts),
		cmocka_unit_test(
			a_checkpoint_wakes_when_the_guest_has_been_killed),
		TEST_UP(the_front_end_may_go_while_a_checkpoint_wakes),
		TEST_UP(an_older_checkpoint_is_woken_where_the_newest_is_dead),
		TEST_UP(undo_goes_back_to_the_oldest_checkpoint),
		TEST_UP(undo_says_why_nothing_is_kept),
		TEST_UP(undo_to_a_silent_checkpoint_restarts_python),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
