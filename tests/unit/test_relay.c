/* SPDX-License-Identifier: MIT */
/*
 * test_relay.c - when a cell's output and the keys pass through
 */
#include "repl/term/term.h"

#include "forked.h"
#include "jail/jail.h"

#include <poll.h>
#include <pty.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* The test plays the warden on `warden`, and the cell on `cell`. */
struct scene {
	struct terminal term;
	struct signals signals;
	struct relay relay;
	int warden, cell;
	bool begins; /* the next events say that the cell has begun */
	char seen[64];
	size_t seen_n;
};

static void take_bytes(void *arg, const char *buf, size_t n)
{
	struct scene *s = arg;

	assert_true(n > 0);
	if (n > sizeof(s->seen) - s->seen_n)
		n = sizeof(s->seen) - s->seen_n;
	memcpy(s->seen + s->seen_n, buf, n);
	s->seen_n += n;
}

static void take_events(void *arg)
{
	struct scene *s = arg;

	if (s->begins)
		relay_hand_over(&s->relay);
}

static int set_up(void **state)
{
	static struct scene s;
	struct relay_opts with = {.term = &s.term,
		.signals = &s.signals,
		.bytes = take_bytes,
		.events = take_events,
		.arg = &s};
	struct err e = {0};
	int jail[2], tty[2];

	s = (struct scene){
		.term = {.in = -1, .out = -1}, .signals = {.fd = -1}};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, jail) < 0 ||
		socketpair(AF_UNIX, SOCK_STREAM, 0, tty) < 0 ||
		jail_adopt(&with.jail, jail[0], &e) < 0)
		return -1;
	s.warden = jail[1];
	s.cell = tty[1];
	relay_init(&s.relay, &with);
	relay_set_tty(&s.relay, tty[0]);
	relay_begin(&s.relay);
	*state = &s;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *s = *state;

	close(s->relay.tty);
	relay_free(&s->relay);
	close(s->warden);
	jail_close(s->relay.with.jail, NULL);
	close(s->cell);
	return 0;
}

static void turn(struct scene *s)
{
	struct pollfd p[RELAY_POLLS];

	relay_turn(&s->relay, p, RELAY_POLLS, 0);
}

static void write_all(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

/* A person who sees output may answer it. The key is then the cell's, however
 * late the warden says that the cell has begun. */
static void test_output_waits_until_keys_reach_the_cell(void **state)
{
	struct scene *s = *state;
	char key;

	relay_hand_over(&s->relay);
	write_all(s->cell, "go");
	turn(s);
	assert_int_equal(s->seen_n, 0);
	relay_release(&s->relay);
	turn(s);
	assert_int_equal(s->seen_n, 2);
	relay_type(&s->relay, "\x03", 1);
	assert_int_equal(read(s->cell, &key, 1), 1);
	assert_int_equal(key, '\x03');
}

/* A front end that was not scheduled finds both at once. */
static void test_output_that_comes_with_the_word_of_the_cell_waits(void **state)
{
	struct scene *s = *state;

	write_all(s->cell, "go");
	s->begins = true;
	turn(s);
	assert_int_equal(s->seen_n, 0);
	turn(s);
	assert_int_equal(s->seen_n, 0);
	relay_release(&s->relay);
	turn(s);
	assert_int_equal(s->seen_n, 2);
}

/* A cell that is over takes no more keys, whatever is heard late. */
static void test_keys_behind_a_cell_wait_for_the_next(void **state)
{
	struct scene *s = *state;
	char key;

	relay_hold(&s->relay);
	relay_hand_over(&s->relay);
	relay_release(&s->relay);
	relay_type(&s->relay, "k", 1);
	assert_int_equal(recv(s->cell, &key, 1, MSG_DONTWAIT), -1);
	relay_begin(&s->relay);
	relay_release(&s->relay);
	relay_type(&s->relay, "l", 1);
	assert_int_equal(recv(s->cell, &key, 1, MSG_DONTWAIT), 1);
	assert_int_equal(key, 'l');
}

/* It belongs to what ran before: the cell must not be held for its author. */
static void test_output_before_a_cell_does_not_wait_for_it(void **state)
{
	struct scene *s = *state;

	write_all(s->cell, "go");
	turn(s);
	assert_int_equal(s->seen_n, 2);
}

static void test_output_of_a_cell_that_never_begins_is_shown(void **state)
{
	struct scene *s = *state;

	relay_hand_over(&s->relay);
	write_all(s->cell, "go");
	relay_hold(&s->relay);
	turn(s);
	assert_int_equal(s->seen_n, 2);
}

static void test_ctrl_c_behind_enter_interrupts_the_cell(void **state)
{
	struct scene *s = *state;
	char message[4096];

	relay_type_ahead(&s->relay, "new\r", 4);
	assert_int_equal(
		recv(s->warden, message, sizeof(message), MSG_DONTWAIT), -1);
	relay_type_ahead(&s->relay, "old\x03new", 7);
	assert_true(
		recv(s->warden, message, sizeof(message), MSG_DONTWAIT) > 0);
	assert_int_equal(s->relay.typed.keys.n, 3);
}

/* ---- lines that the owner edits ---- */

/* A cell that runs, on a tty that reads lines. */
static int set_up_lines(void **state)
{
	struct scene *s;
	int master;

	if (set_up(state) < 0)
		return -1;
	s = *state;
	close(s->relay.tty);
	close(s->cell);
	if (openpty(&master, &s->cell, NULL, NULL, NULL) < 0)
		return -1;
	relay_set_tty(&s->relay, master);
	relay_begin(&s->relay);
	s->relay.edits = true;
	relay_hand_over(&s->relay);
	relay_release(&s->relay);
	return 0;
}

static void change_modes(int fd, tcflag_t off)
{
	struct termios t;

	assert_int_equal(tcgetattr(fd, &t), 0);
	t.c_lflag &= ~off;
	assert_int_equal(tcsetattr(fd, TCSANOW, &t), 0);
}

static void check_keys(struct scene *s, const char *want)
{
	struct strbuf keys = {0};

	relay_take_keys(&s->relay, &keys);
	assert_int_equal(keys.n, strlen(want));
	assert_memory_equal(keys.n ? keys.s : "", want, keys.n);
	strbuf_free(&keys);
}

/* The tty's own word about the line that it has. */
static void check_line(struct scene *s, const char *want)
{
	struct pollfd p = {.fd = s->cell, .events = POLLIN};
	char line[64];

	assert_int_equal(poll(&p, 1, 10000), 1);
	assert_int_equal(read(s->cell, line, sizeof(line)), strlen(want));
	assert_memory_equal(line, want, strlen(want));
}

static void test_keys_wait_while_the_owner_edits(void **state)
{
	struct scene *s = *state;

	assert_true(relay_edit(&s->relay));
	relay_type(&s->relay, "ab", 2);
	relay_type(&s->relay, "c", 1);
	turn(s);
	assert_int_equal(s->relay.typed.sent, 0);
	check_keys(s, "abc");
	relay_send_line(&s->relay, "xyz", 3);
	assert_false(s->relay.editing);
	check_line(s, "xyz\n");
}

static void test_a_line_that_the_tty_has_begun_is_taken_back(void **state)
{
	struct scene *s = *state;

	relay_type(&s->relay, "one\rtw", 6);
	relay_type(&s->relay, "o", 1);
	assert_int_equal(s->relay.typed.sent, 7);
	check_line(s, "one\n");
	assert_true(relay_edit(&s->relay));
	check_keys(s, "");
	assert_int_equal(s->relay.begun, 3);
	/* The cell has written behind the echo. */
	assert_false(relay_take_begun(&s->relay, "two? ", 5));
	assert_false(relay_take_begun(&s->relay, "wo", 2));
	assert_true(relay_take_begun(&s->relay, "? two", 5));
	check_keys(s, "two");
	relay_send_line(&s->relay, "2", 1);
	check_line(s, "2\n");

	/* Arrow keys are echoed as ^[[A. */
	relay_type(&s->relay, "\x1b[A", 3);
	assert_true(relay_edit(&s->relay));
	assert_true(relay_take_begun(&s->relay, "^[[A", 4));
	check_keys(s, "\x1b[A");
	relay_send(&s->relay, "", 0);

	/* The tty would take Ctrl-U for text. */
	relay_type(&s->relay, "a\x16", 2);
	assert_true(relay_edit(&s->relay));
	assert_false(relay_take_begun(&s->relay, "a^", 2));
	relay_send(&s->relay, "b\r", 2);
	check_line(s, "ab\n");
	assert_int_equal(s->relay.begun, 0);
}

static void test_a_password_and_single_keys_go_to_the_tty(void **state)
{
	static const tcflag_t off[] = {ECHO, ICANON};
	struct scene *s = *state;

	for (size_t i = 0; i < 2; i++) {
		change_modes(s->cell, off[i]);
		relay_type(&s->relay, "s", 1);
		assert_int_equal(s->relay.typed.sent, i + 1);
		assert_false(relay_edit(&s->relay));
	}
}

static void test_ctrl_c_ends_the_editing(void **state)
{
	struct scene *s = *state;

	assert_true(relay_edit(&s->relay));
	relay_type(&s->relay, "never\x03later", 11);
	assert_false(s->relay.editing);
	assert_int_equal(s->relay.typed.sent, 6);
	assert_memory_equal(s->relay.typed.keys.s, "\x03later", 6);
}

static void test_a_line_of_any_length_arrives_whole(void **state)
{
	static char line[20000], got[sizeof(line) + 2];
	struct scene *s = *state;

	memset(line, 'x', sizeof(line));
	for (size_t n = sizeof(line); n > 4090; n -= 1021) {
		size_t at = 0;

		assert_true(relay_edit(&s->relay));
		relay_send_line(&s->relay, line, n);
		while (at < n + 1) {
			ssize_t r;
			struct pollfd p = {.fd = s->cell, .events = POLLIN};

			s->seen_n = 0;
			turn(s);
			if (poll(&p, 1, 10) == 0)
				continue;
			r = read(s->cell, got + at,
				at % 2 ? 1024 : sizeof(got) - at);
			assert_true(r > 0);
			at += (size_t)r;
		}
		assert_int_equal(at, n + 1);
		assert_memory_equal(got, line, n);
		assert_int_equal(got[n], '\n');
	}
}

static void no_signal_stays_blocked_without_a_descriptor(void **state)
{
	struct rlimit all, none;
	struct signals sig;
	sigset_t blocked;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = all.rlim_max};
	setrlimit(RLIMIT_NOFILE, &none);
	assert_int_equal(terminal_signals_open(&sig, false, NULL), -1);
	setrlimit(RLIMIT_NOFILE, &all);
	sigprocmask(SIG_BLOCK, NULL, &blocked);
	assert_false(sigismember(&blocked, SIGINT));
	/* The control. */
	assert_int_equal(terminal_signals_open(&sig, false, NULL), 0);
	sigprocmask(SIG_BLOCK, NULL, &blocked);
	assert_true(sigismember(&blocked, SIGINT));
	terminal_signals_close(&sig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_signal_stays_blocked_without_a_descriptor),
		cmocka_unit_test_setup_teardown(
			test_output_waits_until_keys_reach_the_cell, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_output_that_comes_with_the_word_of_the_cell_waits,
			set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_keys_behind_a_cell_wait_for_the_next, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_output_before_a_cell_does_not_wait_for_it, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_ctrl_c_behind_enter_interrupts_the_cell, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_output_of_a_cell_that_never_begins_is_shown,
			set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_keys_wait_while_the_owner_edits, set_up_lines,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_line_that_the_tty_has_begun_is_taken_back,
			set_up_lines, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_password_and_single_keys_go_to_the_tty,
			set_up_lines, tear_down),
		cmocka_unit_test_setup_teardown(
			test_ctrl_c_ends_the_editing, set_up_lines, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_line_of_any_length_arrives_whole, set_up_lines,
			tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
