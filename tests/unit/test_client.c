/* SPDX-License-Identifier: MIT */
/*
 * test_client.c - what a front end takes from its warden, message by message
 */
#include "forked.h"

#include "jail/base/io.h"
#include "jail/jail.h"
#include "jail/wire/wire.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG (2 * WIRE_PIECE + 1000)

struct world {
	struct jail *jail;
	int warden; /* the other end of its socket */
	char text[LONG];
};

static int make(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	int pair[2];

	*state = w;
	for (size_t i = 0; i < LONG; i++)
		w->text[i] = (char)('a' + i % 26);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	w->warden = pair[1];
	return jail_adopt(&w->jail, pair[0], NULL);
}

static int end(void **state)
{
	struct world *w = *state;

	fd_drop(&w->warden);
	jail_close(w->jail, NULL);
	free(w);
	return 0;
}

static void say(struct world *w, uint32_t nbytes)
{
	struct wire_event m = {
		.event = {.type = JAIL_STACK, .fd = -1, .nbytes = nbytes}};

	/* A pointer of the warden's means nothing here. */
	m.event.bytes = w->text;
	memset(m.event.fds, -1, sizeof(m.event.fds));
	assert_int_equal(send(w->warden, &m, sizeof(m), 0), (int)sizeof(m));
}

/* A part of the text, as one message. */
static void say_part(struct world *w, size_t at, size_t n)
{
	char piece[WIRE_PIECE + 2] = "";

	memcpy(piece, w->text + at, n);
	assert_int_equal(send(w->warden, piece, n + 1, 0), (int)n + 1);
}

static void bytes_come_with_their_event_when_all_are_there(void **state)
{
	struct world *w = *state;
	struct jail_event ev;
	struct err e;

	say(w, LONG);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(jail_next(w->jail, &ev, &e), 0);
		say_part(w, (size_t)i * WIRE_PIECE, WIRE_PIECE);
	}
	assert_int_equal(jail_next(w->jail, &ev, &e), 0);
	say_part(w, LONG - 1000, 1000);
	assert_int_equal(jail_next(w->jail, &ev, &e), 1);
	assert_int_equal(ev.type, JAIL_STACK);
	assert_int_equal(ev.nbytes, LONG);
	assert_memory_equal(ev.bytes, w->text, LONG);
	assert_int_equal(ev.bytes[LONG], '\0');
	jail_event_close(&ev);
	assert_null(ev.bytes);
	/* control: the next event has none */
	say(w, 0);
	assert_int_equal(jail_next(w->jail, &ev, &e), 1);
	assert_null(ev.bytes);
	assert_int_equal(jail_next(w->jail, &ev, &e), 0);
}

static void a_session_may_end_in_the_middle_of_them(void **state)
{
	struct world *w = *state;
	struct jail_event ev;
	struct err e;

	say(w, LONG);
	say_part(w, 0, WIRE_PIECE);
	assert_int_equal(jail_next(w->jail, &ev, &e), 0);
	fd_drop(&w->warden);
	assert_int_equal(jail_next(w->jail, &ev, &e), -1);
}

static void other_bytes_than_were_announced_are_an_error(void **state)
{
	static const size_t sizes[] = {1, 999, 1001};
	struct world *w = *state;
	struct jail_event ev;
	struct err e;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		say(w, 1000);
		say_part(w, 0, sizes[i]);
		assert_int_equal(jail_next(w->jail, &ev, &e), -1);
		assert_string_equal(e.msg, "malformed answer");
		end(state);
		assert_int_equal(make(state), 0);
		w = *state;
	}
	say(w, WIRE_BYTES_MAX + 1);
	assert_int_equal(jail_next(w->jail, &ev, &e), -1);
	assert_string_equal(e.msg, "malformed event");
}

/* A warden that a guest has taken over may say anything. */
static void who_has_no_bytes_to_say_announces_none(void **state)
{
	struct world *w = *state;
	struct wire_event m = {.event = {.type = JAIL_NOTICE, .nbytes = 1}};
	struct jail_event ev;
	struct err e;

	send(w->warden, &m, sizeof(m), 0);
	assert_int_equal(jail_next(w->jail, &ev, &e), -1);
	assert_string_equal(e.msg, "malformed event");
	say(w, WIRE_SAID_MAX + 1);
	assert_int_equal(jail_next(w->jail, &ev, &e), -1);
	assert_string_equal(e.msg, "malformed event");
}

/* It is kept, for who takes events, but not all that somebody can say. */
static void what_is_said_before_a_reply_is_bounded(void **state)
{
	const struct wire_event said = {.event = {.type = JAIL_NOTICE}};
	const struct wire_event reply = {
		.event = {.type = JAIL_REPLY}, .reply = {.seq = 1, .ok = 1}};
	struct world *w = *state;
	struct jail_usage u;
	struct err e;
	pid_t pid = fork();

	if (pid == 0) {
		for (int i = 0; i < 5000; i++)
			send(w->warden, &said, sizeof(said), MSG_NOSIGNAL);
		send(w->warden, &reply, sizeof(reply), MSG_NOSIGNAL);
		_exit(0);
	}
	assert_int_equal(jail_usage(w->jail, &u, &e), -1);
	assert_string_equal(e.msg, "the session says more than can be kept");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void reply(struct world *w, uint32_t seq, int ok)
{
	const struct wire_event m = {.event = {.type = JAIL_REPLY, .fd = -1},
		.reply = {.seq = seq, .ok = ok}};

	assert_int_equal(send(w->warden, &m, sizeof(m), 0), (int)sizeof(m));
}

/* Of the answer that came while another call waited, too. */
static void a_later_question_takes_the_answer_of_an_earlier_one(void **state)
{
	struct world *w = *state;
	struct jail_event ev;
	struct jail_usage u;
	struct err e;

	for (int later = 0; later < 2; later++) {
		uint32_t seq = later ? 3 : 1;

		jail_ask_later(w->jail, ASK_SIGNATURE, "f", 1, &e);
		reply(w, seq, 0);
		reply(w, seq + 1, 1);
		assert_int_equal(jail_usage(w->jail, &u, &e), 0);
		if (later) {
			jail_ask_later(w->jail, ASK_SIGNATURE, "g", 1, &e);
			reply(w, seq + 2, 1);
		}
		assert_int_equal(jail_next(w->jail, &ev, &e), 1);
		assert_int_equal(ev.type, JAIL_REPLY);
		assert_int_equal(ev.ok, later); /* 0 is the control */
		assert_int_equal(jail_next(w->jail, &ev, &e), 0);
	}
}

/* It may have sent anything before. */
static void a_session_is_over_when_its_warden_has_closed(void **state)
{
	struct world *w = *state;

	assert_false(jail_is_over(w->jail));
	for (int i = 0; i < 5; i++)
		say(w, 0);
	assert_false(jail_is_over(w->jail)); /* control */
	for (int i = 0; i < 5; i++)
		say(w, 0);
	fd_drop(&w->warden);
	assert_true(jail_is_over(w->jail));
	assert_int_equal(jail_close(w->jail, NULL), 0);
	w->jail = NULL;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(bytes_come_with_their_event_when_all_are_there),
		TEST(a_session_may_end_in_the_middle_of_them),
		TEST(other_bytes_than_were_announced_are_an_error),
		TEST(who_has_no_bytes_to_say_announces_none),
		TEST(what_is_said_before_a_reply_is_bounded),
		TEST(a_later_question_takes_the_answer_of_an_earlier_one),
		TEST(a_session_is_over_when_its_warden_has_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
