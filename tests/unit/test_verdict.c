/* SPDX-License-Identifier: MIT */
/*
 * test_verdict.c - each end of a cell has its text
 */
#include "repl/session/session.h"

#include "tests/lib/defaults.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct limits limits;

static void expect(
	const struct jail_done *d, const char *source, const char *wanted)
{
	struct verdict_about about = {
		.limits = &limits, .memory_source = source};
	char line[VERDICT_MAX];

	assert_string_equal(verdict_line(line, d, &about), wanted);
}

static void a_successful_cell_has_no_verdict(void **state)
{
	static const enum jail_how quiet[] = {
		HOW_OK, HOW_RAISED, HOW_SYNTAX, HOW_INTERRUPTED, HOW_EXIT};

	(void)state;
	for (size_t i = 0; i < sizeof(quiet) / sizeof(quiet[0]); i++)
		expect(&(struct jail_done){.how = quiet[i]}, NULL, "");
}

static void an_interrupted_cell_names_the_time_limit(void **state)
{
	struct jail_done d = {.how = HOW_INTERRUPTED, .limit = LIMIT_WALL};

	(void)state;
	expect(&d, NULL, "time limit: 10 s · interrupted · variables kept");
	/* A cell that caught the interrupt and ended has the same verdict. */
	d.how = HOW_OK;
	expect(&d, NULL, "time limit: 10 s · interrupted · variables kept");
}

static void a_killed_cell_names_the_limit_it_reached(void **state)
{
	struct jail_done d = {.how = HOW_KILLED,
		.limit = LIMIT_WALL,
		.after = AFTER_ROLLED_BACK,
		.back_to = 7,
		.names = 23};

	(void)state;
	expect(&d, NULL,
		"time limit: 10 s · killed · back to the state before cell 7 "
		"(23 names) · home kept");
	d.limit = LIMIT_CPU;
	expect(&d, NULL,
		"CPU limit: 10 s · killed · back to the state before cell 7 "
		"(23 names) · home kept");
	d.limit = LIMIT_PERSON;
	expect(&d, NULL,
		"Ctrl-C three times · killed · back to the state before cell 7 "
		"(23 names) · home kept");
}

static void a_crash_names_its_signal(void **state)
{
	struct jail_done d = {.how = HOW_CRASHED,
		.signal = SIGSEGV,
		.after = AFTER_ROLLED_BACK,
		.back_to = 8,
		.names = 1};

	(void)state;
	expect(&d, NULL,
		"crashed: Segmentation fault · back to the state before cell 8 "
		"(1 name)");
}

static void a_roll_back_names_its_memory_limit_and_losses(void **state)
{
	struct jail_done d = {.how = HOW_KILLED,
		.limit = LIMIT_MEMORY,
		.after = AFTER_ROLLED_BACK,
		.back_to = 7,
		.names = 23,
		.threads_gone = 1};

	(void)state;
	expect(&d, NULL,
		"memory limit: 512 MiB · killed · back to the state before "
		"cell 7 (23 names) · 1 thread is gone");
	d.threads_gone = 0;
	d.peak_bytes = 511LL << 20;
	expect(&d, "/etc/cellblock/cellblock.conf:4",
		"memory limit: 512 MiB · killed · back to the state before "
		"cell 7 (23 names) · peak 511 MiB · limit set in "
		"/etc/cellblock/cellblock.conf:4");
}

static void a_restart_names_its_reason(void **state)
{
	struct jail_done d = {.how = HOW_KILLED,
		.limit = LIMIT_MEMORY,
		.after = AFTER_RESTARTED,
		.no_checkpoint = NO_CHECKPOINT_MEMORY,
		.home_files = 4};

	(void)state;
	expect(&d, NULL,
		"memory limit: 512 MiB · killed · Python restarted, variables "
		"lost: the checkpoint had been given up for memory · home kept "
		"(4 files)");
}

/* Each reason for a restart has a text of its own. */
static void every_restart_reason_has_its_own_text(void **state)
{
	char lines[NO_CHECKPOINT_SILENT + 1][VERDICT_MAX];
	struct verdict_about about = {.limits = &limits};

	(void)state;
	for (int i = 0; i <= NO_CHECKPOINT_SILENT; i++) {
		struct jail_done d = {.how = HOW_LOST,
			.after = AFTER_RESTARTED,
			.no_checkpoint = (enum jail_no_checkpoint)i};

		verdict_line(lines[i], &d, &about);
		assert_non_null(strstr(lines[i], "variables lost"));
		for (int k = 0; k < i; k++)
			assert_string_not_equal(lines[i], lines[k]);
	}
}

static void os_exit_and_a_lost_link_have_their_verdicts(void **state)
{
	struct jail_done d = {.how = HOW_EXITED,
		.status = 3,
		.after = AFTER_ROLLED_BACK,
		.back_to = 2,
		.names = 0};

	(void)state;
	expect(&d, NULL,
		"Python exited with status 3 · back to the state before "
		"cell 2 (0 names)");
	d.how = HOW_LOST;
	expect(&d, NULL,
		"Python's link to the session broke · killed · back to the "
		"state before cell 2 (0 names)");
}

static void the_process_limit_is_named_with_ended_leftovers(void **state)
{
	struct jail_done d = {.how = HOW_RAISED,
		.process_limit_hit = 1,
		.leftovers = 63,
		.leftovers_ended = 63};

	(void)state;
	expect(&d, NULL,
		"process limit: 64 · the cell's 63 leftover processes were "
		"ended");
	d.process_limit_hit = 0;
	d.leftovers = d.leftovers_ended = 1;
	expect(&d, NULL, "the cell's 1 leftover process was ended");
}

static void leftover_processes_are_counted(void **state)
{
	struct jail_done d = {.how = HOW_OK, .leftovers = 2};

	(void)state;
	expect(&d, NULL,
		"2 processes left behind, stopped until the next cell");
	d.leftovers_ended = 1;
	expect(&d, NULL,
		"1 process left behind, stopped until the next cell · 1 ended");
	d.leftovers = d.leftovers_ended = 0;
	d.background_ended = 2;
	expect(&d, NULL,
		"2 background processes could not be stopped and were ended");
}

static void threads_that_stand_still_are_counted(void **state)
{
	struct jail_done d = {.how = HOW_OK, .threads = 1};

	(void)state;
	expect(&d, NULL, "1 thread is stopped until the next cell");
	d.threads = 2;
	d.leftovers = 1;
	expect(&d, NULL,
		"1 process left behind, stopped until the next cell · "
		"2 threads are stopped until the next cell");
	/* The warden does not stop them. */
	limits.background = BACKGROUND_RUN;
	expect(&d, NULL, "1 process left behind, running on");
	limits.background = BACKGROUND_STOP;
}

static void a_refused_cell_names_its_reason(void **state)
{
	struct jail_done d = {.how = HOW_REFUSED};

	(void)state;
	strcpy(d.text, "the cell did not arrive whole");
	expect(&d, NULL, "not run: the cell did not arrive whole");
}

static void the_end_of_a_session_names_the_limit(void **state)
{
	char line[VERDICT_MAX];

	(void)state;
	assert_string_equal(verdict_session_end(line, LIMIT_IDLE, &limits),
		"idle limit: 30 min · the session is over");
	assert_string_equal(verdict_limit(line, LIMIT_NONE, &limits), "");
}

static const char *undo_words(
	char *line, struct jail_undone u, const char *source)
{
	return verdict_undo(line, &u, source, source ? strlen(source) : 0);
}

static void undo_says_what_it_took_back_and_what_is_next(void **state)
{
#define FILES " · files in the home are as they are · "
	char line[VERDICT_MAX];

	(void)state;
	assert_string_equal(
		undo_words(line,
			(struct jail_undone){.back_to = 13, .names = 15}, NULL),
		"back to the state before cell 13 (15 names)" FILES
		"nothing older is kept");
	assert_string_equal(
		undo_words(line,
			(struct jail_undone){
				.back_to = 13, .names = 1, .next = 9},
			"\n def f():\n  return 1\n"),
		"back to the state before cell 13 (1 name): def f(): …" FILES
		":undo again: cell 9");
	assert_string_equal(undo_words(line,
				    (struct jail_undone){.back_to = 13,
					    .names = 1,
					    .reset = 1,
					    .next = 9,
					    .next_reset = 1},
				    "x"),
		"back to the state before :reset (1 name)" FILES
		":undo again: :reset");
}

/* The longest possible line is cut and does not overrun. */
static void a_verdict_always_fits(void **state)
{
	char source[4 * VERDICT_MAX];
	struct verdict_about about = {
		.limits = &limits, .memory_source = source};
	struct jail_done d = {.how = HOW_KILLED,
		.limit = LIMIT_MEMORY,
		.after = AFTER_RESTARTED,
		.no_checkpoint = NO_CHECKPOINT_COST,
		.leftovers = 1};
	char line[VERDICT_MAX + 1];

	(void)state;
	memset(source, 'x', sizeof(source) - 1);
	source[sizeof(source) - 1] = '\0';
	d.peak_bytes = 1;
	line[VERDICT_MAX] = 'c';
	verdict_line(line, &d, &about);
	assert_int_equal(strlen(line), VERDICT_MAX - 1);
	assert_int_equal(line[VERDICT_MAX], 'c');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_successful_cell_has_no_verdict),
		cmocka_unit_test(an_interrupted_cell_names_the_time_limit),
		cmocka_unit_test(a_killed_cell_names_the_limit_it_reached),
		cmocka_unit_test(a_crash_names_its_signal),
		cmocka_unit_test(a_roll_back_names_its_memory_limit_and_losses),
		cmocka_unit_test(a_restart_names_its_reason),
		cmocka_unit_test(every_restart_reason_has_its_own_text),
		cmocka_unit_test(os_exit_and_a_lost_link_have_their_verdicts),
		cmocka_unit_test(
			the_process_limit_is_named_with_ended_leftovers),
		cmocka_unit_test(leftover_processes_are_counted),
		cmocka_unit_test(threads_that_stand_still_are_counted),
		cmocka_unit_test(a_refused_cell_names_its_reason),
		cmocka_unit_test(the_end_of_a_session_names_the_limit),
		cmocka_unit_test(undo_says_what_it_took_back_and_what_is_next),
		cmocka_unit_test(a_verdict_always_fits),
	};

	limits = default_limits();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
