/* SPDX-License-Identifier: MIT */
/*
 * test_pool.c - what a pool does while somebody waits, with a supplier of the
 * test's own
 */
#include "jail/prewarm.h"

#include "forked.h"
#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/broker/broker.h"
#include "jail/jail.h"
#include "jail/wire/wire.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define MOST 8
/* A look at each session for each thing that happens is a few dozen. */
#define FEW 200
#define BUSY_MS 100

static struct {
	int asks;	   /* the supplier's end of its socket */
	int wardens[MOST]; /* the wardens' ends of theirs */
	int fronts[MOST];
	size_t n, answered;
	long received;
} S;

/* ---- the supplier, and a count ---- */

pid_t supplier_start(
	const struct supplier_offer *offer, int *sock, struct err *e)
{
	int pair[2];
	pid_t pid;

	(void)offer;
	(void)e;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	S.asks = pair[1];
	*sock = pair[0];
	pid = fork();
	if (pid == 0)
		_exit(0);
	return pid;
}

int supplier_ask(int sock, const struct supplier_question *q, struct err *e)
{
	int pair[2];

	(void)sock;
	(void)q;
	(void)e;
	assert_true(S.n < MOST);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	S.fronts[S.n] = pair[0];
	S.wardens[S.n++] = pair[1];
	return (int)send(S.asks, "", 1, 0) - 1;
}

int start_hand_over(int asked, int sock)
{
	(void)asked;
	(void)sock;
	abort();
}

int start_apart(const int *keep, size_t n, const char *name, struct err *e)
{
	(void)keep;
	(void)n;
	(void)name;
	(void)e;
	abort();
}

int start_receive(int sock, struct err *e)
{
	char byte;

	(void)e;
	assert_int_equal(recv(sock, &byte, 1, 0), 1);
	return S.fronts[S.answered++];
}

pid_t start_warden(const struct jail_spec *spec, int *sock, struct err *e)
{
	(void)spec;
	(void)sock;
	return err_set(e, "not here");
}

_Noreturn void start_become(int asked, const struct jail_spec *spec)
{
	(void)asked;
	(void)spec;
	abort();
}

void start_refuse(int asked, const struct err *e)
{
	(void)asked;
	(void)e;
}

ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	S.received++;
	return syscall(SYS_recvmsg, fd, m, flags);
}

/* ---- */

static void say(int warden, enum jail_event_type type)
{
	struct wire_event m = {.event = {.type = type, .fd = -1}};

	memset(m.event.fds, -1, sizeof(m.event.fds));
	send(warden, &m, sizeof(m), MSG_NOSIGNAL);
}

static int make(void **pool)
{
	static const char *const python = "";
	const struct pool_offer offer = {
		.pythons = &python, .npythons = 1, .most = MOST};

	memset(&S, 0, sizeof(S));
	return pool_open((struct pool **)pool, &offer, NULL);
}

static int end(void **pool)
{
	int r;

	for (size_t i = 0; i < S.n; i++)
		fd_drop(&S.wardens[i]);
	r = pool_close(*pool, NULL);
	close(S.asks);
	return r;
}

static void who_waits_while_others_are_made_only_waits(void **pool)
{
	int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
	struct pool *p = *pool;
	struct jail *j = NULL;
	struct err e = {0};
	pid_t pid;

	if (cores >= MOST)
		skip(); /* nothing keeps the next one waiting */
	pool_want(p, 0, SPEC_SESSION, cores, 0);
	pool_turn(p);
	assert_int_equal(S.answered, cores);
	pid = fork();
	if (pid == 0) {
		poll(NULL, 0, BUSY_MS);
		for (int i = 0; i < cores; i++)
			say(S.wardens[i], JAIL_UP);
		_exit(0);
	}
	S.received = 0;
	assert_int_equal(pool_await(p, 0, SPEC_CELL, &j, &e), 0);
	assert_int_equal(S.answered, cores + 1);
	assert_in_range(S.received, 1, FEW);
	waitpid(pid, NULL, 0);
	pool_end(p, j);
}

static void who_waits_gets_another_for_one_that_died(void **pool)
{
	struct pool *p = *pool;
	struct jail *j = NULL;
	struct pool_count c;
	struct err e = {0};

	pool_want(p, 0, SPEC_SESSION, 1, 0);
	pool_turn(p);
	say(S.wardens[0], JAIL_UP);
	pool_turn(p);
	pool_count(p, &c);
	assert_int_equal(c.ready, 1); /* the control */
	fd_drop(&S.wardens[0]);
	assert_int_equal(pool_await(p, 0, SPEC_SESSION, &j, &e), 0);
	assert_int_equal(S.answered, 2);
	pool_end(p, j);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_waits_while_others_are_made_only_waits),
		TEST(who_waits_gets_another_for_one_that_died),
	};

	alarm(60);
	return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
