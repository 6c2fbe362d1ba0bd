/* SPDX-License-Identifier: MIT */
/*
 * test_warden_cell.c - one cell under its clocks, and its verdict
 */
#include "warden_play.h"

#include "jail/warden/parts.h"

#define SOURCE "print(1)\n"
#define DYING_MS 3000 /* how long cell.c waits for a death */

static int run_cell(uint32_t cell)
{
	auto_close int fd = io_sealed_memfd("c", SOURCE, sizeof(SOURCE) - 1);
	const struct wire_front m = {
		.type = FRONT_RUN, .seq = ++P.seq, .a = cell};

	P.last = m.seq;
	link_serve(&W->link, &m);
	return warden_cell_run(W, &m, fd, -1);
}

/* Events until the verdict. Counts the stacks that were shown. */
static struct jail_done verdict(int *stacks)
{
	struct wire_event m;

	*stacks = 0;
	expect_event(JAIL_RUNNING, &m);
	assert_int_equal(strlen(m.event.mark), JAIL_MARK_LEN);
	do {
		assert_true(next_event(&m));
		*stacks += m.event.type == JAIL_STACK;
	} while (m.event.type != JAIL_DONE);
	return m.event.done;
}

/* ---- every message and every death ---- */

#define KEPT AFTER_KEPT
#define BACK AFTER_ROLLED_BACK
#define FRESH AFTER_RESTARTED

static const struct {
	const char *cell;
	enum jail_how how;
	enum jail_after after;
	int code; /* status or signal */
} ends[] = {
	{"TOOK %u|DONE %u ok 3 0 0 1", HOW_OK, KEPT, 0},
	{"TOOK %u|DONE %u raised 3 0 0 1", HOW_RAISED, KEPT, 0},
	{"TOOK %u|DONE %u syntax 3 0 0 0", HOW_SYNTAX, KEPT, 0},
	{"TOOK %u|DONE %u interrupted 3 0 0 0", HOW_INTERRUPTED, KEPT, 0},
	{"TOOK %u|DONE %u exit 3 0 7 0", HOW_EXIT, KEPT, 7},
	{"TOOK %u|!wait 500|DONE %u ok 3 0 0 1", HOW_OK, KEPT, 0},
	{"BAD %u crc", HOW_REFUSED, KEPT, 0},
	/* DONE counts; the death after it falls between cells. */
	{"TOOK %u|!wait 20|DONE %u ok 3 0 0 1|!died 9", HOW_OK, KEPT, 0},
	{"!died 0", HOW_EXITED, BACK, 0},
	{"TOOK %u|!died 768", HOW_EXITED, BACK, 3},
	{"TOOK %u|!died 11", HOW_CRASHED, BACK, 11},
	{"TOOK %u|!died 9", HOW_CRASHED, BACK, 9},
	{"TOOK %u|!orphan 11", HOW_CRASHED, BACK, 11},
	{"TOOK %u|!wait 200|!died 6", HOW_CRASHED, BACK, 6},
	{"TOOK %u|!died 64", HOW_LOST, BACK, 64}, /* WIRE_STACK_SIGNAL */
	{"TOOK %u|!close", HOW_LOST, BACK, 0},
	{"TOOK %u|!close|!wait 100|!died 11", HOW_LOST, BACK, 0},
	{"DONE %u ok 3 0 0 1", HOW_LOST, BACK, 0},
	{"TOOK %u|TOOK %u", HOW_LOST, BACK, 0},
	{"TOOK %u|BAD %u crc", HOW_LOST, BACK, 0},
	{"TOOK 99", HOW_LOST, BACK, 0},
	{"TOOK %u|DONE 99 ok 3 0 0 1", HOW_LOST, BACK, 0},
	{"TOOK %u|DONE %u killed 3 0 0 1", HOW_LOST, BACK, 0},
	{"TOOK %u|DONE %u ok 3 0 256 1", HOW_LOST, BACK, 0},
	{"TOOK %u|PARKED %u ok", HOW_LOST, BACK, 0},
	{"TOOK %u|READY %p 3.11.2", HOW_LOST, BACK, 0},
	{"TOOK %u|ANSWER %u 0\n", HOW_LOST, BACK, 0},
	{"TOOK %u|\x1b]0;x\x07", HOW_LOST, BACK, 0},
	{"TOOK %u|!fd|DONE %u ok 3 0 0 1", HOW_LOST, BACK, 0},
	{"TOOK %u|!jail", HOW_LOST, FRESH, 0},
};

static void each_end_of_a_cell_has_its_verdict(void **state)
{
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct jail_done d;
		int stacks;

		play_up(state);
		P.cell = ends[i].cell;
		assert_int_equal(run_cell(1), 0);
		d = verdict(&stacks);
		if (d.how != ends[i].how || d.after != ends[i].after)
			fail_msg("%s: how %d, after %d", ends[i].cell, d.how,
				d.after);
		assert_int_equal(d.cell, 1);
		assert_int_equal(d.limit, LIMIT_NONE);
		assert_int_equal(stacks, 0);
		assert_int_equal(d.status + d.signal, ends[i].code);
		assert_int_equal(P.jails, 1 + (d.after == FRESH));
		assert_int_equal(d.back_to, d.after == BACK);
		if (d.after == BACK) {
			assert_int_equal(d.names, 2);
			assert_int_equal(d.threads_gone, 1);
		}
		/* A live guest runs the next cell in every case. */
		P.cell = DONE_OK;
		assert_int_equal(run_cell(2), 0);
		P.nlater = 0;
		play_close(state);
	}
}

/* How the cell ends. */
static enum jail_how how_of(uint32_t cell)
{
	enum jail_how how = HOW_REFUSED;
	struct wire_event m;

	assert_int_equal(run_cell(cell), 0);
	while (next_event(&m))
		if (m.event.type == JAIL_DONE)
			how = m.event.done.how;
	return how;
}

/* A guest that the host held back answers PARK in a later cell: once. */
static void a_late_answer_is_heard_once(void **state)
{
	(void)state;
	proc_is(950, 0, 0);
	proc_shows(950, 'R', 0);
	P.park = "";
	assert_int_equal(how_of(1), HOW_OK);
	proc_shows(950, 'S', 0);
	P.park = "PARKED %u ok";
	P.cell = "PARKED 2 ok|" DONE_OK;
	assert_int_equal(how_of(2), HOW_OK);
	assert_int_equal(how_of(3), HOW_LOST);
}

/* A flooding guest is lost at its second message, whatever else is pending. */
static void a_flood_ends_with_its_second_message(void **state)
{
	char text[900] = "TOOK %u";
	int stacks;

	(void)state;
	for (int i = 0; i < 60; i++)
		strcat(text, "|TOOK %u");
	P.cell = text;
	assert_int_equal(run_cell(1), 0);
	assert_int_equal(verdict(&stacks).how, HOW_LOST);
}

static void a_dying_guest_is_waited_for(void **state)
{
	struct jail_done d;
	int stacks;

	(void)state;
	P.cell = "TOOK %u|!dying|!wait 100|!died 11";
	assert_int_equal(run_cell(1), 0);
	d = verdict(&stacks);
	assert_int_equal(d.how, HOW_CRASHED);
	assert_int_equal(d.signal, 11);
}

static void a_guest_that_does_not_die_is_not_waited_for(void **state)
{
	int64_t began = P.now_ms;
	int stacks;

	(void)state;
	P.cell = "TOOK %u|!dying";
	assert_int_equal(run_cell(1), 0);
	assert_int_equal(verdict(&stacks).how, HOW_LOST);
	assert_true(P.now_ms - began >= DYING_MS);
	assert_true(P.now_ms - began < DYING_MS + 1000);
}

static void a_person_need_not_wait_for_a_death(void **state)
{
	int64_t began = P.now_ms;
	int stacks;

	(void)state;
	P.cell = "TOOK %u|!dying|!wait 100|!front 2";
	assert_int_equal(run_cell(1), 0);
	assert_int_equal(verdict(&stacks).how, HOW_LOST);
	assert_true(P.now_ms - began < DYING_MS);
}

static void a_source_that_cannot_be_run_is_refused(void **state)
{
	const struct wire_front first = {.type = FRONT_RUN, .a = 1};
	struct wire_event m;
	auto_close int null = open("/dev/null", O_RDONLY);
	auto_close int unsealed = memfd_create("c", MFD_ALLOW_SEALING);

	(void)state;
	assert_int_equal(warden_cell_run(W, &first, -1, -1), 0);
	expect_event(JAIL_DONE, &m);
	assert_int_equal(m.event.done.how, HOW_REFUSED);
	assert_string_equal(m.event.done.text, "its source is missing");
	assert_int_equal(warden_cell_run(W, &first, null, -1), 0);
	expect_event(JAIL_DONE, &m);
	assert_string_equal(m.event.done.text, "its source is missing");
	assert_int_equal(warden_cell_run(W, &first, unsealed, -1), 0);
	expect_event(JAIL_DONE, &m);
	assert_string_equal(m.event.done.text, "its source is missing");
	P.spec.limits.source_bytes = 3;
	assert_int_equal(run_cell(1), 0);
	expect_event(JAIL_DONE, &m);
	assert_string_equal(m.event.done.text,
		"the cell has 9 bytes, more than cell.source = 3");
	assert_int_equal(W->next_cell, 1);
	assert_int_equal(W->cells, 0);
}

static void a_damaged_source_keeps_its_cell_number(void **state)
{
	int stacks;

	(void)state;
	P.cell = "BAD %u crc";
	assert_int_equal(run_cell(1), 0);
	assert_string_equal(
		verdict(&stacks).text, "its source did not arrive whole");
	assert_int_equal(W->next_cell, 1);
}

/* ---- limits ---- */

static const struct {
	const char *cell;
	enum jail_how how;
	enum jail_limit limit;
	int interrupts, stacks;
	int64_t wall_ms; /* at least; at most 100 more */
} strikes[] = {
	/* The cell ends after the interrupt, or is killed. */
	{"TOOK %u|!wait 10100|DONE %u interrupted 3 0 0 1", HOW_INTERRUPTED,
		LIMIT_WALL, 1, 0, 10100},
	{"TOOK %u|!wait 10100|DONE %u ok 3 0 0 1", HOW_OK, LIMIT_WALL, 1, 0,
		10100},
	{"TOOK %u", HOW_KILLED, LIMIT_WALL, 1, 0, 11000},
	/* Before it begins it would ignore the interrupt. */
	{NULL, HOW_KILLED, LIMIT_WALL, 0, 0, 11000},
	{"!wait 10100|TOOK %u|!wait 100|DONE %u interrupted 3 0 0 1",
		HOW_INTERRUPTED, LIMIT_WALL, 1, 0, 10200},
	{"TOOK %u|!wait 10100|!died 9", HOW_CRASHED, LIMIT_WALL, 1, 0, 10100},
	{"TOOK %u|!wait 1000|!busy 10500|!wait 500|DONE %u interrupted 3 0 0 1",
		HOW_INTERRUPTED, LIMIT_CPU, 1, 0, 1500},
	{"TOOK %u|!wait 1000|!busy 10500", HOW_KILLED, LIMIT_CPU, 1, 0, 2000},
	/* The front end's work for the cell is the cell's work. */
	{"TOOK %u|!wait 1000|!drawn 10500", HOW_KILLED, LIMIT_CPU, 1, 0, 2000},
	{"TOOK %u|!wait 1000|!busy 6000|!drawn 6000", HOW_KILLED, LIMIT_CPU, 1,
		0, 2000},
	{"TOOK %u|!wait 1000|!grown 600", HOW_KILLED, LIMIT_MEMORY, 0, 0, 1000},
	{"TOOK %u|!wait 1000|!front 2", HOW_KILLED, LIMIT_PERSON, 0, 0, 1000},
	/* The kernel killed Python, unless Python has outlived the kill. */
	{"TOOK %u|!wait 300|!oom 1|!died 9", HOW_KILLED, LIMIT_MEMORY, 0, 0,
		300},
	{"TOOK %u|!oom 1|!wait 300|!died 9", HOW_CRASHED, LIMIT_NONE, 0, 0,
		300},
	{"TOOK %u|!oom 1|!killed|!wait 300|!died 9", HOW_KILLED, LIMIT_MEMORY,
		0, 0, 300},
	{"TOOK %u|!oom 1|!wait 300|!oom 2|!died 9", HOW_KILLED, LIMIT_MEMORY, 0,
		0, 300},
};

/* The verdict of the cell tells the kill, and no notice repeats it. */
static void a_kill_for_memory_is_told_once(void **state)
{
	int stacks;

	(void)state;
	P.cell = "TOOK %u|!wait 300|!oom 1|!died 9";
	assert_int_equal(run_cell(1), 0);
	assert_int_equal(verdict(&stacks).limit, LIMIT_MEMORY);
	expect_parked(NO_CHECKPOINT_NONE);
	assert_int_equal(warden_replace_broken(W, "Python broke"), 0);
	expect_notice("Python broke · " RESTARTED);
}

static void each_limit_strikes_in_time(void **state)
{
	assert_int_equal(FRONT_KILL, 2); /* in the table */
	for (size_t i = 0; i < sizeof(strikes) / sizeof(strikes[0]); i++) {
		struct jail_done d;
		int stacks;

		play_up(state);
		P.cell = strikes[i].cell;
		assert_int_equal(run_cell(1), 0);
		d = verdict(&stacks);
		if (d.how != strikes[i].how || d.limit != strikes[i].limit)
			fail_msg("%zu: how %d, limit %d", i, d.how, d.limit);
		assert_int_equal(P.interrupts, strikes[i].interrupts);
		assert_true(d.wall_ms >= strikes[i].wall_ms);
		assert_true(d.wall_ms <= strikes[i].wall_ms + 100);
		assert_int_equal(
			d.after, d.how == HOW_KILLED || d.how == HOW_CRASHED
					 ? AFTER_ROLLED_BACK
					 : AFTER_KEPT);
		/* A stuck cell is asked for its stack. A cell over the memory
		 * limit is killed at once. */
		assert_int_equal(P.count[INIT_WRITE_STACK],
			d.how == HOW_KILLED && d.limit != LIMIT_MEMORY);
		play_close(state);
	}
}

/* Page tables, which no fork shares, count although nobody has weighed. */
static void what_no_fork_shares_is_memory_at_once(void **state)
{
	struct jail_done d;
	int stacks;

	(void)state;
	P.resting = 1;
	P.cell = "TOOK %u|!wait 1000|!grown 600";
	assert_int_equal(run_cell(1), 0);
	d = verdict(&stacks);
	assert_int_equal(d.limit, LIMIT_MEMORY);
	assert_true(d.wall_ms <= 1100);
}

#define ASKED "!front 12|!wait 8|"
#define ASKED_8 ASKED ASKED ASKED ASKED ASKED ASKED ASKED ASKED

/* Each question has the memory weighed, and the answer is more than there may
 * be. */
static void who_asks_how_it_is_does_not_keep_it_from_its_limit(void **state)
{
	struct jail_done d;
	int stacks;

	(void)state;
	assert_int_equal(FRONT_TELL_USAGE, 12);
	link_serve_aside(&W->link, front_serve_aside, W);
	P.cell = "TOOK %u|!wait 1000|!added 600|" ASKED_8 ASKED_8 ASKED_8
		 "DONE %u ok 3 0 0 1";
	assert_int_equal(run_cell(1), 0);
	d = verdict(&stacks);
	assert_int_equal(d.how, HOW_KILLED);
	assert_int_equal(d.limit, LIMIT_MEMORY);
	assert_true(d.wall_ms <= 1100);
}

/* There is room without the checkpoint. */
static void nor_does_the_cell_end_before_its_checkpoint(void **state)
{
	struct jail_done d;
	int stacks;

	(void)state;
	link_serve_aside(&W->link, front_serve_aside, W);
	P.spec.limits.checkpoint = CHECKPOINT_ALWAYS;
	P.cell = "TOOK %u|!wait 1000|!copied 100|!holds 300|" ASKED_8 ASKED_8
		 "DONE %u ok 3 0 0 1";
	proc_holds(W->checkpoints.kept[0].pid, 250);
	assert_int_equal(run_cell(1), 0);
	d = verdict(&stacks);
	assert_int_equal(d.how, HOW_OK);
	assert_int_equal(P.count[INIT_DISCARD], 1);
}

/* As a child that burns, and whose parent ignores that it dies. */
static void cpu_time_that_no_process_shows_any_more_counts(void **state)
{
	struct jail_done d;
	int stacks;

	(void)state;
	P.cell = "TOOK %u|!busy 6000|!wait 500|!busy 0|!wait 500|!busy 6000";
	assert_int_equal(run_cell(1), 0);
	d = verdict(&stacks);
	assert_int_equal(d.limit, LIMIT_CPU);
	assert_true(d.wall_ms <= 2100);
}

/* As a child that a sample sees both alive and taken over by its parent, or
 * neither. */
static void cpu_time_that_one_sample_shows_differently_does_not_count(
	void **state)
{
	struct jail_done d;
	int stacks;

	(void)state;
	/* 14 ms: less than there are between two samples. */
	P.cell = "TOOK %u|!busy 4000|!wait 500|!busy 8000|!wait 14|!busy 4000|"
		 "!wait 500|!busy 100|!wait 14|!busy 4000|!wait 500|"
		 "DONE %u ok 3 0 0 1";
	assert_int_equal(run_cell(1), 0);
	d = verdict(&stacks);
	assert_int_equal(d.limit, LIMIT_NONE);
	assert_true(d.cpu_ms <= 4100);
}

static void the_lifetime_limit_ends_the_cell_and_the_session(void **state)
{
	struct wire_event m;

	(void)state;
	P.spec.limits.lifetime_ms = P.now_ms - W->clocks.started_ms + 1000;
	P.cell = "TOOK %u";
	assert_int_equal(run_cell(1), SESSION_OVER);
	expect_event(JAIL_RUNNING, &m);
	expect_notice("the session ends in 1 s: lifetime limit");
	expect_event(JAIL_DONE, &m);
	assert_int_equal(m.event.done.after, AFTER_ENDED);
	assert_int_equal(m.event.done.limit, LIMIT_LIFETIME);
}

static void the_front_end_may_go_while_a_cell_runs(void **state)
{
	(void)state;
	P.cell = "TOOK %u|!wait 100|!gone";
	assert_int_equal(run_cell(1), SESSION_OVER);
}

static void the_front_end_may_go_before_it_reads_the_verdict(void **state)
{
	(void)state;
	P.cell = "!gone|TOOK %u|DONE %u ok 3 0 0 1";
	assert_int_equal(run_cell(1), SESSION_OVER);
}

static void a_person_may_interrupt_as_often_as_they_like(void **state)
{
	struct jail_done d;
	int stacks;

	(void)state;
	assert_int_equal(FRONT_INTERRUPT, 1);
	P.cell = "TOOK %u|!front 1|!wait 100|!front 1|!wait 100|"
		 "DONE %u interrupted 3 0 0 1";
	assert_int_equal(run_cell(1), 0);
	d = verdict(&stacks);
	assert_int_equal(P.interrupts, 2);
	assert_int_equal(d.how, HOW_INTERRUPTED);
	assert_int_equal(d.limit, LIMIT_NONE);
	assert_int_equal(P.took, 1);
}

/* The driver ignores SIGINT until the cell begins. */
static void an_interrupt_waits_until_the_cell_begins(void **state)
{
	struct jail_done d;
	int stacks;

	(void)state;
	P.cell = "!wait 20|!front 1|!front 1|!wait 200|TOOK %u|"
		 "!wait 5000|DONE %u interrupted 3 0 0 1";
	assert_int_equal(run_cell(1), 0);
	d = verdict(&stacks);
	assert_int_equal(P.interrupts, 1);
	assert_int_equal(d.how, HOW_INTERRUPTED);
	assert_int_equal(d.limit, LIMIT_NONE);
}

static void a_guest_that_does_not_begin_is_not_waited_for(void **state)
{
	struct jail_done d;
	int stacks;

	(void)state;
	P.cell = "!wait 20|!front 1";
	assert_int_equal(run_cell(1), 0);
	d = verdict(&stacks);
	assert_int_equal(d.how, HOW_KILLED);
	assert_int_equal(d.limit, LIMIT_PERSON);
	assert_int_equal(d.after, AFTER_ROLLED_BACK);
	assert_true(d.wall_ms < 1000);
	assert_int_equal(P.took, 0);
}

/* An interrupt for an earlier cell, or for one that never ran. */
static void an_interrupt_of_another_cell_counts_for_nothing(void **state)
{
	struct wire_event m;
	struct jail_done d;
	int stacks;

	(void)state;
	assert_int_equal(run_cell(1), 0);
	verdict(&stacks);
	expect_event(JAIL_PARKED, &m);
	P.cell = "TOOK %u|!wait 10|!late|!wait 100|DONE %u ok 3 0 0 1";
	assert_int_equal(run_cell(2), 0);
	d = verdict(&stacks);
	assert_int_equal(P.interrupts, 0);
	assert_int_equal(d.how, HOW_OK);
}

/* Each request is refused in its own way while a cell runs. */
static void requests_are_refused_while_a_cell_runs(void **state)
{
	struct wire_event m;
	char text[200];

	(void)state;
	snprintf(text, sizeof(text),
		"TOOK %%u|!front %d|!wait 10|!front %d|!wait 10|!front %d|"
		"!wait 10|DONE %%u ok 3 0 0 1",
		FRONT_RUN, FRONT_RESET, FRONT_HOME_LIST);
	P.cell = text;
	assert_int_equal(run_cell(1), 0);
	expect_event(JAIL_RUNNING, &m);
	expect_event(JAIL_DONE, &m);
	assert_int_equal(m.event.done.how, HOW_REFUSED);
	assert_string_equal(m.event.done.text, "a cell is running");
	for (int i = 0; i < 2; i++) {
		expect_event(JAIL_REPLY, &m);
		assert_int_equal(m.reply.ok, 0);
		assert_string_equal(m.reply.err.msg, "a cell is running");
	}
	expect_event(JAIL_DONE, &m);
	assert_int_equal(m.event.done.how, HOW_OK);
	assert_int_equal(P.jails, 1);
}

/* ---- checkpoints ---- */

static void without_a_checkpoint_a_killed_cell_loses_the_variables(void **state)
{
	struct wire_event m;
	struct jail_done d;
	int stacks;

	(void)state;
	checkpoints_give_up(&W->checkpoints, 0, NO_CHECKPOINT_MEMORY);
	P.cell = "TOOK %u|!died 11";
	assert_int_equal(run_cell(1), 0);
	d = verdict(&stacks);
	assert_int_equal(d.after, AFTER_RESTARTED);
	assert_int_equal(d.no_checkpoint, NO_CHECKPOINT_MEMORY);
	assert_int_equal(P.jails, 2);
	expect_event(JAIL_UP, &m);
	assert_int_equal(m.event.restarted, 1);
	expect_event(JAIL_PARKED, &m);
}

static void a_cell_that_kills_its_checkpoint_is_reported(void **state)
{
	struct wire_event m;
	struct jail_done d;

	(void)state;
	P.cell = "TOOK %u|!wait 100|DONE %u ok 3 0 0 1";
	P.later[P.nlater++] = (struct later){P.now_ms + 50, 1, 0, "!died 9"};
	assert_int_equal(run_cell(1), 0);
	expect_event(JAIL_RUNNING, &m);
	expect_notice("the checkpoint was killed from within · a crash would "
		      "now lose the variables");
	expect_event(JAIL_DONE, &m);
	d = m.event.done;
	assert_int_equal(d.how, HOW_OK);
	expect_event(JAIL_PARKED, &m); /* and there is a new one */
	assert_int_equal(m.event.done.no_checkpoint, NO_CHECKPOINT_NONE);
	assert_int_equal(W->checkpoints.n, 1);
}

static void checkpoints_are_skipped_when_copying_costs_too_much(void **state)
{
	struct wire_event m;

	(void)state;
	P.cell = "TOOK %u|!copied 350|!wait 200|DONE %u ok 3 0 0 1";
	assert_int_equal(run_cell(1), 0);
	expect_event(JAIL_RUNNING, &m);
	expect_notice("copying memory for checkpoints costs more than it is "
		      "worth here: some cells go without · a crash in one "
		      "would lose the variables");
	expect_event(JAIL_DONE, &m);
	expect_event(JAIL_PARKED, &m);
	assert_int_equal(m.event.done.no_checkpoint, NO_CHECKPOINT_COST);
	/* Eight cells run without a checkpoint; the next attempt follows. */
	P.cell = DONE_OK;
	for (uint32_t cell = 2; cell < 9; cell++)
		assert_int_equal(run_cell(cell), 0);
	assert_int_equal(W->checkpoints.n, 0);
	assert_int_equal(run_cell(9), 0);
	assert_int_equal(W->checkpoints.n, 1);
}

/* Also when the cell came before anybody could look at the guest. */
static void what_a_cell_adds_is_no_copy(void **state)
{
	static const char cell[] = "TOOK %u|!added 350|!wait 100|!added 400|"
				   "!wait 100|DONE %u ok 3 0 0 1";

	(void)state;
	P.cell = cell;
	assert_int_equal(run_cell(1), 0);
	assert_int_equal(W->checkpoints.n, 2);
	for (uint32_t no = 2; no < 4; no++) {
		proc_added(P.guest[0].pid, 0);
		warden_continue(W);
		assert_int_equal(run_cell(no), 0);
		assert_int_equal(W->checkpoints.n, 2);
	}
}

static void near_the_memory_limit_the_checkpoint_is_dropped_first(void **state)
{
	struct wire_event m;

	(void)state;
	P.spec.limits.checkpoint = CHECKPOINT_ALWAYS;
	P.cell = "TOOK %u|!copied 100|!grown 400|!wait 200|DONE %u ok 3 0 0 1";
	assert_int_equal(run_cell(1), 0);
	expect_event(JAIL_RUNNING, &m);
	expect_notice("memory is nearly used up: the checkpoint was given up "
		      "· a crash would now lose the variables");
	expect_event(JAIL_DONE, &m);
	assert_int_equal(m.event.done.how, HOW_OK);
	assert_int_equal(m.event.done.limit, LIMIT_NONE);
	assert_int_equal(P.count[INIT_DISCARD], 1);
}

static void a_restart_that_fails_after_a_cell_ends_the_session(void **state)
{
	struct wire_event m;
	int stacks;

	(void)state;
	P.cell = "TOOK %u|!jail";
	P.build = "error";
	assert_int_equal(run_cell(1), SESSION_OVER);
	assert_int_equal(verdict(&stacks).after, AFTER_RESTARTED);
	expect_event(JAIL_FAILED, &m);
}

/* ---- leftovers of a cell ---- */

static void leftover_processes_are_reported_once(void **state)
{
	int stacks;

	(void)state;
	P.cell = "TOOK %u|!left 2|DONE %u ok 3 0 0 1";
	assert_int_equal(run_cell(1), 0);
	assert_int_equal(verdict(&stacks).leftovers, 2);
	P.cell = DONE_OK;
	while (next_event(&(struct wire_event){0}))
		;
	assert_int_equal(run_cell(2), 0);
	assert_int_equal(verdict(&stacks).leftovers, 0);
	P.cell = "TOOK %u|!left 3|DONE %u ok 3 0 0 1";
	while (next_event(&(struct wire_event){0}))
		;
	assert_int_equal(run_cell(3), 0);
	assert_int_equal(verdict(&stacks).leftovers, 1);
	assert_int_equal(P.count[INIT_KILL], 0);
}

static void threads_that_a_cell_adds_are_reported(void **state)
{
	static const struct {
		const char *cell;
		uint32_t more;
	} cells[] = {
		{"TOOK %u|DONE %u ok 3 2 0 1", 2},
		{"TOOK %u|DONE %u ok 3 2 0 1", 0},
		{"TOOK %u|DONE %u raised 3 3 0 1", 1},
		{"TOOK %u|DONE %u ok 3 1 0 1", 0},
	};

	(void)state;
	for (uint32_t i = 0; i < sizeof(cells) / sizeof(*cells); i++) {
		int stacks;

		P.cell = cells[i].cell;
		assert_int_equal(run_cell(i + 1), 0);
		assert_int_equal(verdict(&stacks).threads, cells[i].more);
		while (next_event(&(struct wire_event){0}))
			;
	}
}

/* On a busy host an exit takes a while: the process that a checkpoint was
 * forked by may still be there, without its memory. */
static void a_process_on_its_way_out_is_no_leftover(void **state)
{
	int stacks;

	(void)state;
	P.cell = "TOOK %u|!left 2|!leaving 901|DONE %u ok 3 0 0 1";
	assert_int_equal(run_cell(1), 0);
	assert_int_equal(verdict(&stacks).leftovers, 1);
}

static void processes_of_a_killed_cell_are_ended(void **state)
{
	struct jail_done d;
	int stacks;

	(void)state;
	P.cell = "TOOK %u|!left 2|!wait 100|!front 2";
	assert_int_equal(run_cell(1), 0);
	d = verdict(&stacks);
	assert_int_equal(d.how, HOW_KILLED);
	assert_int_equal(d.leftovers_ended, 2);
}

static void leftover_processes_are_ended_when_configured(void **state)
{
	struct jail_done d;
	int stacks;

	(void)state;
	P.spec.limits.background = BACKGROUND_KILL;
	P.cell = "TOOK %u|!left 2|DONE %u ok 3 0 0 1";
	assert_int_equal(run_cell(1), 0);
	d = verdict(&stacks);
	assert_int_equal(d.leftovers, 2);
	assert_int_equal(P.count[INIT_KILL], 1);
	assert_int_equal(P.pids.n, 2); /* the guest and its new checkpoint */
	assert_int_equal(d.after, AFTER_KEPT);
}

static void the_cpu_time_of_a_cell_is_its_own(void **state)
{
	int stacks;

	(void)state;
	P.cell = "TOOK %u|!busy 500|DONE %u ok 3 0 0 1";
	assert_int_equal(run_cell(1), 0);
	assert_int_equal(verdict(&stacks).cpu_ms, 500);
	P.cell = DONE_OK;
	while (next_event(&(struct wire_event){0}))
		;
	assert_int_equal(run_cell(2), 0);
	assert_int_equal(verdict(&stacks).cpu_ms, 0);
}

static void unread_keys_return_to_the_prompt(void **state)
{
	struct wire_event m;
	int found = 0;

	(void)state;
	assert_int_equal(write(W->jail.tty_master, "abc", 3), 3);
	assert_int_equal(run_cell(1), 0);
	while (next_event(&m))
		found += m.event.type == JAIL_TYPEAHEAD;
	assert_int_equal(found, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_end_of_a_cell_has_its_verdict),
		TEST_UP(a_late_answer_is_heard_once),
		TEST_UP(a_flood_ends_with_its_second_message),
		TEST_UP(a_dying_guest_is_waited_for),
		TEST_UP(a_guest_that_does_not_die_is_not_waited_for),
		TEST_UP(a_person_need_not_wait_for_a_death),
		TEST_UP(a_kill_for_memory_is_told_once),
		TEST_UP(a_source_that_cannot_be_run_is_refused),
		TEST_UP(a_damaged_source_keeps_its_cell_number),
		cmocka_unit_test(each_limit_strikes_in_time),
		TEST_UP(the_lifetime_limit_ends_the_cell_and_the_session),
		TEST_UP(cpu_time_that_one_sample_shows_differently_does_not_count),
		TEST_UP(cpu_time_that_no_process_shows_any_more_counts),
		TEST_UP(what_no_fork_shares_is_memory_at_once),
		TEST_UP(who_asks_how_it_is_does_not_keep_it_from_its_limit),
		TEST_UP(nor_does_the_cell_end_before_its_checkpoint),
		TEST_UP(the_front_end_may_go_while_a_cell_runs),
		TEST_UP(the_front_end_may_go_before_it_reads_the_verdict),
		TEST_UP(a_person_may_interrupt_as_often_as_they_like),
		TEST_UP(an_interrupt_waits_until_the_cell_begins),
		TEST_UP(a_guest_that_does_not_begin_is_not_waited_for),
		TEST_UP(an_interrupt_of_another_cell_counts_for_nothing),
		TEST_UP(requests_are_refused_while_a_cell_runs),
		TEST_UP(without_a_checkpoint_a_killed_cell_loses_the_variables),
		TEST_UP(a_cell_that_kills_its_checkpoint_is_reported),
		TEST_UP(checkpoints_are_skipped_when_copying_costs_too_much),
		TEST_UP(what_a_cell_adds_is_no_copy),
		TEST_UP(near_the_memory_limit_the_checkpoint_is_dropped_first),
		TEST_UP(a_restart_that_fails_after_a_cell_ends_the_session),
		TEST_UP(leftover_processes_are_reported_once),
		TEST_UP(threads_that_a_cell_adds_are_reported),
		TEST_UP(a_process_on_its_way_out_is_no_leftover),
		TEST_UP(processes_of_a_killed_cell_are_ended),
		TEST_UP(leftover_processes_are_ended_when_configured),
		TEST_UP(the_cpu_time_of_a_cell_is_its_own),
		TEST_UP(unread_keys_return_to_the_prompt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
