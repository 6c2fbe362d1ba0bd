/* SPDX-License-Identifier: MIT */
/*
 * test_side.c - programs beside a session, in real jails
 */
#include "jail/jail.h"

#include "jail/base/io.h"
#include "jail/warden/parts.h"
#include "tests/lib/defaults.h"

#include "forked.h"

#include <poll.h>
#include <sys/socket.h>
#include <time.h>

/* Far more than anything here takes. */
#define LONG_MS 60000

static struct session {
	struct jail_spec spec;
	struct jail *jail;
	uint32_t cell, asked;
	struct jail_done done;
	char out[4096]; /* of the last cell */
	int tty;
} S;

static void fail_with(const struct err *e)
{
	fail_msg("%s", e->msg);
}

/* Read what the cell has written, so that it never waits for us. */
static void drain(void)
{
	size_t n = strlen(S.out);
	struct pollfd p = {.fd = S.tty, .events = POLLIN};

	while (S.tty >= 0 && poll(&p, 1, 0) > 0) {
		ssize_t r = read(S.tty, S.out + n, sizeof(S.out) - 1 - n);

		if (r <= 0)
			break;
		n += (size_t)r;
		S.out[n] = '\0';
	}
}

/* Wait for an event of the session. */
static struct jail_event await(enum jail_event_type type)
{
	int64_t end = now_ms() + LONG_MS;
	struct jail_event ev;
	struct err e = {0};
	int r;

	while ((r = jail_wait(S.jail, &ev, 20, &e)) >= 0) {
		drain();
		if (r > 0 && ev.type == JAIL_UP) {
			fd_drop(&S.tty);
			S.tty = fd_take(&ev.fds[0]);
		}
		if (r > 0 && ev.type == JAIL_DONE)
			S.done = ev.done;
		if (r > 0 && ev.type == JAIL_FAILED)
			fail_with(&ev.err);
		if (r > 0 && ev.type == type)
			return ev;
		if (r > 0)
			jail_event_close(&ev);
		if (now_ms() > end)
			fail_msg("no event %d came", (int)type);
	}
	fail_with(&e);
	return ev;
}

static void open_session(void)
{
	struct err e = {0};
	struct jail_event ev;

	S.tty = -1;
	if (jail_open(&S.jail, &S.spec, &e) < 0)
		fail_with(&e);
	ev = await(JAIL_PARKED);
	jail_event_close(&ev);
}

static int setup(void **state)
{
	(void)state;
	S = (struct session){.spec = {.mode = SPEC_SESSION,
				     .python = "/usr/bin/python3",
				     .term = "dumb",
				     .uid_lo = 2130706432,
				     .uid_hi = 2130771967},
		.tty = -1};
	S.spec.limits = default_limits();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (S.jail)
		jail_close(S.jail, NULL);
	S.jail = NULL;
	fd_drop(&S.tty);
	return 0;
}

static void begin_cell(const char *source)
{
	const struct jail_run run = {.cell = ++S.cell,
		.src = source,
		.n = strlen(source),
		.report = -1};
	struct err e = {0};

	memset(S.out, 0, sizeof(S.out));
	if (jail_run(S.jail, &run, &e) < 0)
		fail_with(&e);
}

static void run_cell(const char *source)
{
	begin_cell(source);
	await(JAIL_PARKED);
	drain();
}

/* The socket of a program beside the session, or -1 with e. */
static int ask(struct err *e)
{
	struct jail_event ev;

	if (jail_start_side(S.jail, ++S.asked, 0, e) < 0)
		fail_with(e);
	ev = await(JAIL_SIDE);
	assert_int_equal(ev.cell, S.asked);
	*e = ev.err;
	return ev.fd;
}

/* The same, when there is room: when the process of one that ran is gone. */
static int ask_for_room(void)
{
	int64_t end = now_ms() + LONG_MS;
	struct err e = {0};
	int fd;

	while ((fd = ask(&e)) < 0) {
		assert_true(now_ms() < end);
		poll(NULL, 0, 20);
	}
	return fd;
}

/* A program beside the session. */
struct side_program {
	struct jail *jail;
	int in, out;
	int status, limit, over, failed;
	char text[8192]; /* standard output and standard error */
};

static void begin(struct side_program *b, const char *command)
{
	const char *const argv[] = {"-c", command, NULL};
	struct err e = {0};
	int fd = ask(&e);

	*b = (struct side_program){.in = -1, .out = -1, .status = -1};
	if (fd < 0 || jail_adopt(&b->jail, fd, &e) < 0 ||
		jail_start_program(b->jail,
			&(struct jail_start){.argv = argv, .merged = 1},
			&e) < 0)
		fail_with(&e);
}

static void take(struct side_program *b, struct jail_event *ev)
{
	struct err e = ev->err;

	switch ((int)ev->type) {
	case JAIL_UP:
		b->in = fd_take(&ev->fds[1]);
		b->out = fd_take(&ev->fds[2]);
		break;
	case JAIL_EXITED:
		b->status = ev->program.status;
		b->limit = (int)ev->program.limit;
		b->over = 1;
		break;
	case JAIL_FAILED:
		snprintf(b->text, sizeof(b->text), "%s", e.msg);
		b->over = b->failed = 1;
		break;
	}
	jail_event_close(ev);
}

/* Go on until it is over, or `until` is in what it wrote. */
static void follow(struct side_program *b, const char *until)
{
	int64_t end = now_ms() + LONG_MS;
	struct jail_event ev;
	int r;

	while (now_ms() < end) {
		struct pollfd p = {.fd = b->out, .events = POLLIN};
		size_t n = strlen(b->text);
		ssize_t got = 0;

		if (!b->over && (r = jail_wait(b->jail, &ev, 20, NULL)) != 0) {
			if (r < 0)
				b->over = b->failed = 1;
			else
				take(b, &ev);
		}
		if (b->out >= 0 && poll(&p, 1, 20) > 0) {
			got = read(
				b->out, b->text + n, sizeof(b->text) - 1 - n);
			if (got <= 0)
				fd_drop(&b->out);
		}
		if (until ? strstr(b->text, until) != NULL
			  : b->over && b->out < 0)
			return;
		if (until && b->over && b->out < 0)
			break;
	}
	fail_msg("it is not over; it said: %s", b->text);
}

static void finish(struct side_program *b)
{
	fd_drop(&b->in);
	fd_drop(&b->out);
	jail_close(b->jail, NULL);
}

static void run(struct side_program *b, const char *command)
{
	begin(b, command);
	follow(b, NULL);
	finish(b);
}

/* ---- the promises ---- */

static void a_file_goes_in_and_comes_out(void **state)
{
	struct side_program b;

	(void)state;
	open_session();
	run(&b, "pwd; printf a,b > new.csv; echo $?");
	assert_string_equal(b.text, "/home\n0\n");
	assert_int_equal(b.status, 0);
	run_cell("print(open('/home/new.csv').read())\n"
		 "open('/home/back', 'w').write('again')");
	assert_non_null(strstr(S.out, "a,b"));
	run(&b, "cat back");
	assert_string_equal(b.text, "again");
}

/* Both go on: the cell ends when it sees the file, and nothing else ends it. */
static void it_works_while_a_cell_runs(void **state)
{
	struct side_program b;

	(void)state;
	S.spec.limits.cell_wall_ms = LONG_MS;
	open_session();
	begin_cell("import os, time\nx = 5\n"
		   "while not os.path.exists('/home/go'): time.sleep(.01)\n"
		   "open('/home/went', 'w').write('yes')");
	await(JAIL_TOOK);
	run(&b, "touch go; while ! [ -s went ]; do sleep .1; done; cat went");
	assert_string_equal(b.text, "yes");
	await(JAIL_PARKED);
	assert_int_equal(S.done.how, HOW_OK);
	assert_int_equal(S.done.after, AFTER_KEPT);
}

/* Between cells all of the session is stopped, and it runs on. */
static void it_outlives_a_cell_and_a_reset(void **state)
{
	struct side_program b;
	struct err e = {0};
	int kept;

	(void)state;
	open_session();
	begin(&b, "echo up; read x; echo got $x");
	follow(&b, "up");
	run_cell("1");
	run_cell("import os; os.kill(os.getpid(), 9)");
	assert_int_equal(jail_reset(S.jail, &kept, &e), 0);
	await(JAIL_PARKED);
	assert_int_equal(write(b.in, "it\n", 3), 3);
	follow(&b, NULL);
	assert_string_equal(b.text, "up\ngot it\n");
	finish(&b);
}

/* It reaches no process of the session, and frees none that is stopped. */
static void it_sees_and_ends_nothing_of_the_session(void **state)
{
	struct side_program b;

	(void)state;
	open_session();
	run_cell("import threading, time\nx = [0]\n"
		 "def count():\n"
		 "  while True: x[0] += 1; time.sleep(.001)\n"
		 "threading.Thread(target=count, daemon=True).start()\n"
		 "t = x[0]");
	run(&b, "for p in /proc/[0-9]*; do cat $p/comm; done; "
		"i=2; while [ $i -lt 64 ]; do [ $i = $$ ] || "
		"kill -9 $i 2>/dev/null; kill -CONT $i 2>/dev/null; "
		"i=$((i+1)); done; echo done");
	assert_null(strstr(b.text, "python"));
	assert_non_null(strstr(b.text, "done"));
	run_cell("print('same' if x[0] - t < 1000 else 'ran on')");
	assert_non_null(strstr(S.out, "same"));
	assert_int_equal(S.done.after, AFTER_KEPT);
}

static void its_end_leaves_no_process(void **state)
{
	struct side_program b;

	(void)state;
	open_session();
	run(&b, "touch grows; (while :; do echo x >> /home/grows; sleep .05; "
		"done) "
		">/dev/null 2>&1 & echo left");
	assert_string_equal(b.text, "left\n");
	run_cell("import os, time\na = os.path.getsize('/home/grows')\n"
		 "time.sleep(.5)\n"
		 "print('gone' if a == os.path.getsize('/home/grows') else "
		 "'runs')");
	assert_non_null(strstr(S.out, "gone"));
}

static void its_clocks_are_its_own(void **state)
{
	struct side_program b;

	(void)state;
	S.spec.limits.cell_wall_ms = 1000;
	S.spec.limits.cell_cpu_ms = 1000;
	open_session();
	run(&b, "sleep 2; echo late");
	assert_string_equal(b.text, "late\n");
	run(&b, "while :; do :; done");
	assert_int_equal(b.limit, LIMIT_CPU);
	/* The cell is not charged with it. */
	run_cell("1");
	assert_int_equal(S.done.how, HOW_OK);
}

static void one_that_does_nothing_ends(void **state)
{
	struct side_program b;

	(void)state;
	S.spec.limits.idle_ms = 2000;
	open_session();
	run(&b, "read x");
	assert_int_equal(b.limit, LIMIT_IDLE);
}

static void a_fork_bomb_stays_its_own(void **state)
{
	struct side_program b;

	(void)state;
	S.spec.limits.cell_cpu_ms = 3000;
	open_session();
	run_cell("x = 7");
	run(&b, "f() { f | f & }; f; sleep 1; while :; do f; done");
	assert_true(b.over);
	run_cell("import subprocess\n"
		 "print(x, subprocess.run(['/bin/echo', 'fine'], "
		 "capture_output=True).stdout)");
	assert_non_null(strstr(S.out, "7 b'fine"));
}

/* Memory is the session's, but it is not the session that pays. */
static void what_takes_too_much_memory_is_ended(void **state)
{
	struct side_program b;

	(void)state;
	S.spec.limits.memory_bytes = 128 << 20;
	open_session();
	run_cell("x = bytearray(40 << 20)");
	run(&b, "exec /usr/bin/python3 -c \"x = [bytearray(4 << 20) for i in "
		"range(1000)]; print('kept')\"");
	assert_null(strstr(b.text, "kept"));
	assert_int_not_equal(b.status, 0);
	run_cell("print(len(x))");
	assert_non_null(strstr(S.out, "41943040"));
	assert_int_equal(S.done.after, AFTER_KEPT);
}

static void the_home_has_its_limits(void **state)
{
	struct side_program b;

	(void)state;
	S.spec.limits.home_bytes = 1 << 20;
	S.spec.limits.max_file_bytes = 256 << 10;
	open_session();
	run(&b, "trap '' XFSZ; head -c 300000 /dev/zero > big; "
		"for i in 1 2 3 4 5 6 7 8; do head -c 200000 /dev/zero > $i; "
		"done");
	assert_non_null(strstr(b.text, "File too large"));
	assert_non_null(strstr(b.text, "No space left on device"));
	run_cell("print(1)");
	assert_int_equal(S.done.how, HOW_OK);
}

static void outside_the_home_nothing_is_written(void **state)
{
	struct side_program b;

	(void)state;
	open_session();
	run(&b, "for f in /x /tmp/x /etc/x /usr/x /home/ok; do echo > $f; "
		"done; ls /home");
	assert_int_equal(b.status, 0);
	assert_non_null(strstr(b.text, "/tmp/x: Read-only file system"));
	assert_non_null(strstr(b.text, "/etc/x: Read-only file system"));
	assert_non_null(strstr(b.text, "ok\n"));
}

static void there_are_four_at_most(void **state)
{
	struct side_program b[SIDE_MAX];
	struct err e = {0};

	(void)state;
	open_session();
	for (int i = 0; i < SIDE_MAX; i++) {
		begin(&b[i], "echo up; read x");
		follow(&b[i], "up");
	}
	assert_int_equal(ask(&e), -1);
	assert_non_null(strstr(e.msg, "4 programs run beside it already"));
	fd_drop(&b[0].in);
	follow(&b[0], NULL);
	finish(&b[0]);
	close(ask_for_room());
	for (int i = 1; i < SIDE_MAX; i++)
		finish(&b[i]);
}

static void it_ends_with_the_session(void **state)
{
	struct side_program b;

	(void)state;
	open_session();
	begin(&b, "echo up; while :; do sleep 1; done");
	follow(&b, "up");
	assert_int_equal(jail_close(S.jail, NULL), 0);
	S.jail = NULL;
	follow(&b, NULL);
	assert_true(b.failed);
	finish(&b);
}

static void who_asks_and_goes_leaves_nothing(void **state)
{
	(void)state;
	open_session();
	for (int i = 0; i < 3 * SIDE_MAX; i++)
		close(ask_for_room());
	run_cell("print(1)");
	assert_int_equal(S.done.how, HOW_OK);
}

/* Its lock of a file is gone with it. */
static void its_locks_end_with_it(void **state)
{
	struct side_program b;

	(void)state;
	open_session();
	begin(&b, "exec 9> lock; flock -n 9 && echo held; read x");
	follow(&b, "held");
	run_cell("import fcntl\nf = open('lock')\n"
		 "try: fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
		 "except OSError: print('is held')");
	assert_non_null(strstr(S.out, "is held"));
	fd_drop(&b.in);
	follow(&b, NULL);
	finish(&b);
	run_cell("print(fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB))");
	assert_non_null(strstr(S.out, "None"));
}

/* A program that copies files asks to be undumpable; the warden must look. */
static void it_may_ask_to_be_undumpable(void **state)
{
	struct side_program b;

	(void)state;
	open_session();
	run(&b, "/usr/bin/python3 -c 'import ctypes; c = ctypes.CDLL(None); "
		"print(c.prctl(4, 0, 0, 0, 0), c.prctl(3, 0, 0, 0, 0), "
		"c.prctl(4, 1, 0, 0, 0))'");
	assert_string_equal(b.text, "0 1 -1\n");
}

/* It begins at once, also where its session was made ahead and leased. */
static void it_is_neither_counted_nor_leased(void **state)
{
	const struct spec_made made = {.ahead = 3, .most_of_person = 1};
	struct jail_spec spec = {.made = &made};

	(void)state;
	side_make_spec(&spec, 0);
	assert_null(spec.made);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(a_file_goes_in_and_comes_out),
		test(it_works_while_a_cell_runs),
		test(it_outlives_a_cell_and_a_reset),
		test(it_sees_and_ends_nothing_of_the_session),
		test(its_end_leaves_no_process),
		test(its_clocks_are_its_own),
		test(one_that_does_nothing_ends),
		test(a_fork_bomb_stays_its_own),
		test(what_takes_too_much_memory_is_ended),
		test(the_home_has_its_limits),
		test(outside_the_home_nothing_is_written),
		test(there_are_four_at_most),
		test(it_ends_with_the_session),
		test(who_asks_and_goes_leaves_nothing),
		test(its_locks_end_with_it),
		test(it_may_ask_to_be_undumpable),
		cmocka_unit_test(it_is_neither_counted_nor_leased),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
