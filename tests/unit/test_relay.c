/* SPDX-License-Identifier: MIT */
/*
 * test_relay.c - when a cell's output and the keys pass through
 */
#include "repl/term/term.h"

#include "forked.h"
#include "jail/jail.h"

#include <poll.h>
#include <string.h>
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

	assert_in_range(n, 1, sizeof(s->seen) - s->seen_n);
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

/* Whoever sees output may answer it. The key is then the cell's, however late
 * the warden's word is that the cell has begun. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
