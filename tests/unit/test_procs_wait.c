/* SPDX-License-Identifier: MIT */
/*
 * test_procs_wait.c - whether the jail waits for the person
 */
#include "small_jail.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/select.h>

static int waits(const struct procs_source *s, const struct jail *j)
{
	return procs_waits_for_tty(s, j->tty, NULL, 0);
}

/* Ask until the answer is the wanted one, or the deadline passes. */
static int waits_soon(
	const struct procs_source *s, const struct jail *j, int want)
{
	int64_t until = now_ms() + SOON_MS;
	int got;

	do {
		got = waits(s, j);
		if (got == want)
			break;
		usleep(1000);
	} while (now_ms() < until);
	return got;
}

static void read_line(struct guest *g)
{
	char c;

	say_ready(g);
	while (read(0, &c, 1) > 0)
		;
}

static void read_line_of_dev_tty(struct guest *g)
{
	char c;
	int fd = open("/dev/tty", O_RDONLY);

	say_ready(g);
	while (read(fd, &c, 1) > 0)
		;
}

static void select_then_read(struct guest *g)
{
	fd_set set;
	char c;

	say_ready(g);
	for (;;) {
		FD_ZERO(&set);
		FD_SET(0, &set);
		if (select(1, &set, NULL, NULL, NULL) == 1 &&
			read(0, &c, 1) != 1)
			break;
	}
}

static void poll_for_ever(struct guest *g)
{
	struct pollfd p = {.fd = 0, .events = POLLIN};

	say_ready(g);
	poll(&p, 1, -1);
}

static void do_sleep(struct guest *g)
{
	say_ready(g);
	for (;;)
		pause();
}

static void poll_with_timeout(struct guest *g)
{
	struct pollfd p = {.fd = 0, .events = POLLIN};

	say_ready(g);
	for (;;)
		poll(&p, 1, 100000);
}

/* As vim does, which listens for trouble too, and as top does. */
static void select_with_timeout(struct guest *g)
{
	struct timeval t = {.tv_sec = 1000};
	fd_set in, trouble;

	FD_ZERO(&in);
	FD_SET(0, &in);
	trouble = in;
	say_ready(g);
	select(1, &in, NULL, &trouble, &t);
}

/* As the loops of asyncio do. */
static void epoll_with_timeout(struct guest *g)
{
	struct epoll_event ev = {.events = EPOLLIN}, got;
	int e = epoll_create1(0), p[2];

	if (pipe(p) < 0 || epoll_ctl(e, EPOLL_CTL_ADD, p[0], &ev) < 0 ||
		epoll_ctl(e, EPOLL_CTL_ADD, 0, &ev) < 0)
		_exit(1);
	say_ready(g);
	epoll_wait(e, &got, 1, 1000000);
}

static void epoll_on_a_pipe(struct guest *g)
{
	struct epoll_event ev = {.events = EPOLLIN}, got;
	int e = epoll_create1(0), p[2];

	if (pipe(p) < 0 || epoll_ctl(e, EPOLL_CTL_ADD, p[0], &ev) < 0)
		_exit(1);
	ev.events = EPOLLPRI;
	if (epoll_ctl(e, EPOLL_CTL_ADD, 0, &ev) < 0)
		_exit(1);
	say_ready(g);
	epoll_wait(e, &got, 1, -1);
}

static void poll_on_a_pipe(struct guest *g)
{
	struct pollfd v[2] = {{.fd = 0, .events = POLLPRI}, {.events = POLLIN}};
	int p[2];

	if (pipe(p) < 0)
		_exit(1);
	v[1].fd = p[0];
	say_ready(g);
	poll(v, 2, -1);
}

static void select_on_a_pipe(struct guest *g)
{
	fd_set in, trouble;
	int p[2];

	if (pipe(p) < 0)
		_exit(1);
	FD_ZERO(&in);
	FD_SET(p[0], &in);
	FD_ZERO(&trouble);
	FD_SET(0, &trouble);
	say_ready(g);
	select(p[0] + 1, &in, NULL, &trouble, NULL);
}

static void read_a_pipe(struct guest *g)
{
	int p[2];
	char c;

	if (pipe(p) < 0)
		_exit(1);
	say_ready(g);
	while (read(p[0], &c, 1) > 0)
		;
}

static void *spin(void *arg)
{
	for (volatile unsigned long n = 0;; n++)
		;
	return arg;
}

static void read_while_a_thread_works(struct guest *g)
{
	pthread_t t;

	pthread_create(&t, NULL, spin, NULL);
	read_line(g);
}

static void read_while_a_child_works(struct guest *g)
{
	if (fork() == 0)
		spin(NULL);
	read_line(g);
}

static void read_in_the_background(struct guest *g)
{
	/* SIGTTIN is ignored, so the read fails with EIO: another group is in
	 * the foreground */
	signal(SIGTTIN, SIG_IGN);
	if (fork() == 0) {
		char c;

		setpgid(0, 0);
		say_ready(g);
		while (read(0, &c, 1) < 0)
			pause();
	}
	for (;;)
		pause();
}

struct wait_case {
	const char *name;
	void (*run)(struct guest *g);
	int want;
};

static int wait_case_run(void *arg)
{
	const struct wait_case *wc = arg;
	struct guest g = {.run = wc->run, .tty = ""};
	struct procs_source s[2];
	struct jail j;
	int n;

	jail_make(&j, &g);
	n = sources(&j, s);
	for (int i = 0; i < n; i++) {
		int got = waits_soon(&s[i], &j, wc->want);

		if (got < 0)
			_exit(253);
		CHILD_CHECK(got == wc->want, "%s: %d", wc->name, got);
		/* a negative answer must last */
		for (int k = 0; k < 20 && !wc->want; k++) {
			usleep(1000);
			CHILD_CHECK(
				waits(&s[i], &j) == 0, "%s: %d", wc->name, k);
		}
	}
	return 0;
}

static void a_process_that_reads_the_terminal_waits_for_the_person(void **state)
{
	struct wait_case cases[] = {
		{"read", read_line, 1},
		{"read of /dev/tty", read_line_of_dev_tty, 1},
		{"select, as readline does", select_then_read, 1},
		{"poll", poll_for_ever, 1},
		{"poll with a timeout", poll_with_timeout, 1},
		{"select with a timeout", select_with_timeout, 1},
		{"epoll on something else too", epoll_with_timeout, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		run_in_jail(wait_case_run, &cases[i]);
}

static void other_processes_do_not_wait_for_the_person(void **state)
{
	struct wait_case cases[] = {
		{"sleep", do_sleep, 0},
		{"poll on a pipe", poll_on_a_pipe, 0},
		{"select on a pipe", select_on_a_pipe, 0},
		{"epoll on a pipe", epoll_on_a_pipe, 0},
		{"read of a pipe", read_a_pipe, 0},
		{"a thread works", read_while_a_thread_works, 0},
		{"a child works", read_while_a_child_works, 0},
		{"in the background", read_in_the_background, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		run_in_jail(wait_case_run, &cases[i]);
}

/* Another terminal than the one asked about, and a skipped process. */
static int other_tty(void *arg)
{
	struct guest g = {.run = read_line, .tty = ""};
	struct procs_source s[2];
	pid_t skip = 2;
	struct jail j;

	(void)arg;
	jail_make(&j, &g);
	sources(&j, s);
	CHILD_CHECK(waits_soon(&s[0], &j, 1) != 0, "control");
	CHILD_CHECK(procs_waits_for_tty(&s[0], j.tty + 1, NULL, 0) == 0,
		"another terminal");
	CHILD_CHECK(procs_waits_for_tty(&s[0], j.tty, &skip, 1) == 0,
		"a process to skip");
	return 0;
}

static void only_this_terminal_and_these_processes_are_considered(void **state)
{
	(void)state;
	run_in_jail(other_tty, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_process_that_reads_the_terminal_waits_for_the_person),
		cmocka_unit_test(other_processes_do_not_wait_for_the_person),
		cmocka_unit_test(
			only_this_terminal_and_these_processes_are_considered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
