/* SPDX-License-Identifier: MIT */
/*
 * test_dbus.c - messages that come whole, in pieces, broken or not at all
 */
#include "jail/base/dbus.h"
#include "jail/base/err.h"
#include "jail/base/io.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define OK_LINE "OK 0123456789abcdef0123456789abcdef\r\n"

/* A return, as a bus sends it: to question 7, with the body (v) of a boolean
 * that is true. The fields are not in the order of their codes. */
static const unsigned char answer[] = {'l', 2, 1, 1, 8, 0, 0, 0, 3, 0, 0, 0, 45,
	0, 0, 0,						  /* */
	6, 1, 's', 0, 4, 0, 0, 0, ':', '1', '.', '9', 0, 0, 0, 0, /* to */
	8, 1, 'g', 0, 1, 'v', 0, 0, /* the signature */
	5, 1, 'u', 0, 7, 0, 0, 0,   /* which question */
	7, 1, 's', 0, 4, 0, 0, 0, ':', '1', '.', '2', 0, 0, 0, 0, /* from */
	1, 'b', 0, 0, 1, 0, 0, 0};

struct line {
	struct dbus d;
	int far;
};

static int setup(void **state)
{
	static struct line l;
	int ends[2];

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0, ends),
		0);
	l = (struct line){.d.fd = ends[0], .far = ends[1]};
	*state = &l;
	return 0;
}

static int teardown(void **state)
{
	struct line *l = *state;

	dbus_close(&l->d);
	fd_drop(&l->far);
	return 0;
}

static void say(struct line *l, const void *text, size_t n)
{
	assert_int_equal(io_write_full(l->far, text, n), 0);
	assert_int_equal(dbus_read(&l->d), 0);
}

static void an_answer_is_read_in_any_pieces(void **state)
{
	struct line *l = *state;
	unsigned char all[sizeof(OK_LINE) - 1 + 2 * sizeof(answer)];
	struct dbus_answer a;
	uint32_t v = 0;
	int taken = 0;

	if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
		skip();
	memcpy(all, OK_LINE, sizeof(OK_LINE) - 1);
	memcpy(all + sizeof(OK_LINE) - 1, answer, sizeof(answer));
	memcpy(all + sizeof(all) - sizeof(answer), answer, sizeof(answer));
	for (size_t i = 0; i < sizeof(all); i++) {
		int r;

		say(l, all + i, 1);
		r = dbus_take(&l->d, &a);
		assert_true(r >= 0);
		taken += r;
		if (!r)
			continue;
		assert_int_equal(a.type, DBUS_RETURN);
		assert_int_equal(a.to, 7);
		assert_true(dbus_get_signature(&a, "b"));
		assert_true(dbus_get_u32(&a, &v));
		assert_int_equal(v, 1);
		assert_false(dbus_get_u32(&a, &v));
	}
	assert_int_equal(taken, 2);
}

static void another_type_is_not_read(void **state)
{
	struct line *l = *state;
	struct dbus_answer a;
	const char *s;

	if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
		skip();
	say(l, OK_LINE, strlen(OK_LINE));
	say(l, answer, sizeof(answer));
	assert_int_equal(dbus_take(&l->d, &a), 1);
	assert_false(dbus_get_signature(&a, "as"));
	a.at = a.body;
	assert_true(dbus_get_signature(&a, "b"));
	/* Its length would lead beyond the message. */
	assert_false(dbus_get_string(&a, &s));
}

/* Each byte of it changed: nothing is read that is not there. */
static void a_broken_answer_is_refused_or_harmless(void **state)
{
	struct line *l = *state;
	struct dbus_answer a;
	const char *s;
	uint32_t v;

	for (size_t i = 0; i < sizeof(answer); i++) {
		for (int to = 0; to < 256; to += 15) {
			l->d.is_in = true;
			l->d.taken = 0;
			l->d.n = sizeof(answer);
			memcpy(l->d.b, answer, sizeof(answer));
			l->d.b[i] = (unsigned char)to;
			if (dbus_take(&l->d, &a) <= 0)
				continue;
			assert_true(a.n <= sizeof(answer) && a.body <= a.n);
			if (dbus_get_signature(&a, "b"))
				dbus_get_u32(&a, &v);
			if (dbus_get_string(&a, &s))
				assert_true(strlen(s) < a.n);
			assert_true(a.at <= a.n);
		}
	}
}

static void who_is_not_let_in_knows(void **state)
{
	struct line *l = *state;
	struct dbus_answer a;

	say(l, "REJECTED EXTERNAL\r\n", 19);
	assert_int_equal(dbus_take(&l->d, &a), -1);
	assert_int_equal(errno, EACCES);
}

static void a_greeting_without_an_end_is_none(void **state)
{
	struct line *l = *state;
	struct dbus_answer a;
	char text[300];

	memset(text, 'O', sizeof(text));
	say(l, text, 200);
	assert_int_equal(dbus_take(&l->d, &a), 0);
	say(l, text, 100);
	assert_int_equal(dbus_take(&l->d, &a), -1);
}

static void a_message_that_fills_the_room_ends_the_connection(void **state)
{
	static const unsigned char zeros[DBUS_MAX + 1];
	struct line *l = *state;
	struct dbus_answer a;
	unsigned char head[16] = {'l', 2, 0, 1};
	uint32_t n = DBUS_MAX - 15;

	memcpy(head + 4, &n, sizeof(n));
	say(l, OK_LINE, strlen(OK_LINE));
	say(l, head, sizeof(head));
	assert_int_equal(dbus_take(&l->d, &a), -1);
	assert_int_equal(errno, EPROTO);
	/* Nobody took what came. */
	l->d.n = 0;
	assert_int_equal(io_write_full(l->far, zeros, sizeof(zeros)), 0);
	while (l->d.n < DBUS_MAX)
		assert_int_equal(dbus_read(&l->d), 0);
	assert_int_equal(dbus_read(&l->d), -1);
}

static void waiting_ends(void **state)
{
	struct line *l = *state;
	struct dbus_answer a;

	assert_int_equal(dbus_await(&l->d, &a, now_ms() + 20), -1);
	assert_int_equal(errno, ETIMEDOUT);
	fd_drop(&l->far);
	assert_int_equal(dbus_await(&l->d, &a, now_ms() + 60000), -1);
	assert_int_equal(errno, ECONNRESET);
}

static void a_question_that_does_not_fit_is_not_sent(void **state)
{
	static const struct dbus_method method = {
		.to = "a.b", .path = "/", .interface = "a.b", .member = "C"};
	struct line *l = *state;
	struct dbus_message m;
	struct err e = {0};
	char heard[2048];

	dbus_begin(&m, 1, &method);
	for (int i = 0; i < 300; i++)
		dbus_put_string(&m, "too much");
	dbus_end(&m);
	assert_int_equal(dbus_ask(&l->d, &m, &e), -1);
	assert_int_equal(read(l->far, heard, sizeof(heard)), -1);
	dbus_begin(&m, 1, &method);
	dbus_put_string(&m, "that fits");
	dbus_end(&m);
	assert_int_equal(dbus_ask(&l->d, &m, &e), 0);
	assert_int_equal(read(l->far, heard, sizeof(heard)), m.n);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_answer_is_read_in_any_pieces),
		TEST(another_type_is_not_read),
		TEST(a_broken_answer_is_refused_or_harmless),
		TEST(who_is_not_let_in_knows),
		TEST(a_greeting_without_an_end_is_none),
		TEST(a_message_that_fills_the_room_ends_the_connection),
		TEST(waiting_ends),
		TEST(a_question_that_does_not_fit_is_not_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
