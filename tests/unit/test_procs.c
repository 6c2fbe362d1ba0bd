/* SPDX-License-Identifier: MIT */
/*
 * test_procs.c - what the jail's processes are doing, as the warden sees it
 *
 * Against a small jail: a user namespace for the warden, another with a pid
 * namespace and its own /proc below it, and a real pty.
 */
#include "forked.h"

#include "jail/ident.h"
#include "jail/io.h"
#include "jail/procs.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#define MIB (1024 * 1024)
/* Patience for what happens soon: a deadline, not a measure. */
#define SOON_MS 10000

/* ---- stat ---- */

#define REST                                                                   \
	" S 1 7 7 34816 9 4194304 100 0 0 0 150 50 20 30 20 0 3 0 100 1000 "   \
	"2 18446744073709551615 0 0"

static void a_name_can_hold_anything(void **state)
{
	static const char *const lines[] = {
		"7 (python3)" REST,
		"7 (a) S 1 1 (b)" REST,
		"7 (x\n9 (y) R 0)" REST,
		"7 ())" REST,
		"7 ()" REST,
		"7 (\xff\xfe)" REST,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct procs_stat st;

		assert_int_equal(
			procs_parse_stat(lines[i], strlen(lines[i]), &st), 0);
		assert_int_equal(st.pid, 7);
		assert_int_equal(st.ppid, 1);
		assert_int_equal(st.pgrp, 7);
		assert_int_equal(st.tpgid, 9);
		assert_int_equal(st.state, 'S');
		assert_int_equal(st.threads, 3);
		assert_int_equal(st.cpu_ticks, 200);
		assert_int_equal(st.dead_ticks, 50);
		assert_true(st.tty == makedev(136, 0));
		assert_int_equal(st.rss_bytes, 2 * sysconf(_SC_PAGESIZE));
	}
}

static void half_a_line_is_refused(void **state)
{
	static const char *const lines[] = {
		"", "7", "7 (x", "(x)" REST, "7 (x) S 1 7", "7 (x)"};
	struct procs_stat st;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_int_equal(
			procs_parse_stat(lines[i], strlen(lines[i]), &st), -1);
}

/* ---- a small jail ---- */

/* What the guest does, after it said (by a byte on `ready`) that it starts. */
struct guest {
	void (*run)(struct guest *g);
	int ready;
	const char *tty; /* name of the slave, NULL for no terminal */
};

struct jail {
	pid_t init; /* as seen from the warden */
	int proc;   /* its /proc, -1 if it may not have one */
	int master;
	dev_t tty;
	int alive; /* closing it ends the jail */
};

static void guest_start(struct guest *g)
{
	pid_t pid = fork();

	if (pid != 0)
		return;
	if (g->tty) {
		int fd;

		setsid();
		fd = open(g->tty, O_RDWR);
		if (fd < 0 || ioctl(fd, TIOCSCTTY, 0) < 0 || dup2(fd, 0) < 0)
			_exit(1);
	}
	g->run(g);
	_exit(0);
}

/* Pid 1: its own /proc, handed to the warden; then the guest; then reap until
 * the warden is gone. */
static void init_run(struct guest *g, int sock, int alive)
{
	struct pollfd p = {.fd = alive};
	int fd = -1;

	/* the mount namespace already belongs to this user namespace */
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		    NULL) == 0)
		fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (io_send_fds(sock, "x", 1, &fd, fd >= 0, 0) < 0)
		_exit(1);
	guest_start(g);
	while (!(p.revents & (POLLHUP | POLLERR))) {
		poll(&p, 1, 100);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	_exit(0);
}

/* Make the warden's namespace (once, in this process) and the jail in it. */
static void jail_make(struct jail *j, struct guest *g)
{
	int sock[2], alive[2], ready[2], number[2], slave;
	uid_t uid = geteuid();
	gid_t gid = getegid();
	char name[64], c;
	struct stat st;
	struct err e;
	pid_t outer;

	CHILD_CHECK(openpty(&j->master, &slave, name, NULL, NULL) == 0, "pty");
	CHILD_CHECK(fstat(slave, &st) == 0, "stat");
	j->tty = st.st_rdev;
	if (g->tty)
		g->tty = name;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		_exit(254);
	CHILD_CHECK(ident_map_self(1000, uid, 1000, gid, &e) == 0, "%s", e.msg);
	CHILD_CHECK(!pipe2(alive, O_CLOEXEC) && !pipe2(ready, O_CLOEXEC) &&
			    !pipe2(number, O_CLOEXEC) &&
			    !socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC,
				    0, sock),
		"pipes");
	g->ready = ready[1];
	outer = fork();
	if (outer == 0) {
		pid_t init;

		close(alive[1]);
		CHILD_CHECK(unshare(CLONE_NEWUSER | CLONE_NEWNS |
				    CLONE_NEWPID) == 0,
			"namespaces");
		CHILD_CHECK(ident_map_self(1000, 1000, 1000, 1000, &e) == 0,
			"%s", e.msg);
		init = fork();
		if (init == 0)
			init_run(g, sock[1], alive[0]);
		CHILD_CHECK(write(number[1], &init, sizeof(init)) > 0, "write");
		waitpid(init, NULL, 0);
		_exit(0);
	}
	j->alive = alive[1];
	CHILD_CHECK(io_recv_fds(sock[0], &c, 1, &j->proc, 1, 0) == 1, "init");
	CHILD_CHECK(io_read_full(number[0], &j->init, sizeof(j->init)) ==
			    sizeof(j->init),
		"init's pid");
	close(ready[1]);
	CHILD_CHECK(read(ready[0], &c, 1) == 1, "the guest did not start");
}

static void say_ready(const struct guest *g)
{
	if (write(g->ready, "x", 1) != 1)
		_exit(1);
}

/* Both ways of looking: the jail's own /proc, and the warden's. */
static int sources(const struct jail *j, struct procs_source *s)
{
	int n = 0, host = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char path[32];
	struct stat ns;

	if (j->proc >= 0)
		procs_source_jail(&s[n++], j->proc);
	snprintf(path, sizeof(path), "%d/ns/pid", (int)j->init);
	CHILD_CHECK(fstatat(host, path, &ns, 0) == 0, "%s", path);
	procs_source_host(&s[n++], host, j->init, ns.st_dev, ns.st_ino);
	return n;
}

static int waits(const struct procs_source *s, const struct jail *j)
{
	return procs_waits_for_tty(s, j->tty, NULL, 0);
}

/* Ask until the answer is as wanted, or time is up. */
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

static void run_in_jail(int (*fn)(void *), void *arg)
{
	int got = forked(fn, arg);

	if (got == 254)
		SKIP("no user namespaces here");
	if (got == 253)
		SKIP("this kernel does not tell what a process waits for");
	assert_int_equal(got, 0);
}

/* ---- sums ---- */

static void hold_memory(struct guest *g)
{
	char *p = mmap(NULL, 32 * MIB, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct timespec t;

	memset(p, 1, 32 * MIB);
	prctl(PR_SET_NAME, "a) R 9 (\n");
	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	while (t.tv_sec == 0 && t.tv_nsec < 100000000);
	/* shared by two: each has half of it */
	if (fork() == 0)
		for (;;)
			pause();
	say_ready(g);
	for (;;)
		pause();
}

static int sum_up(void *arg)
{
	struct guest g = {.run = hold_memory};
	struct procs_source s[2];
	struct procs_stat st;
	struct procs p;
	struct jail j;
	struct err e;
	int64_t private, pss;
	int n;

	(void)arg;
	jail_make(&j, &g);
	n = sources(&j, s);
	for (int i = 0; i < n; i++) {
		CHILD_CHECK(procs_sample(&s[i], PROCS_MEMORY, &p, &e) == 0,
			"%s", e.msg);
		CHILD_CHECK(p.n == 2 && p.threads == 2, "%d processes", p.n);
		CHILD_CHECK(p.bytes >= 32 * MIB && p.bytes < 48 * MIB,
			"%lld bytes", (long long)p.bytes);
		CHILD_CHECK(p.cpu_ms >= 80 && p.cpu_ms < 5000, "%lld ms",
			(long long)p.cpu_ms);
		CHILD_CHECK(procs_memory(&s[i], 2, &private, &pss) == 0,
			"memory of the guest");
		CHILD_CHECK(pss >= 16 * MIB && pss < 24 * MIB, "%lld",
			(long long)pss);
		CHILD_CHECK(private < 8 * MIB, "%lld", (long long)private);
		CHILD_CHECK(procs_stat(&s[i], 2, &st) == 0, "stat");
		CHILD_CHECK(procs_stat(&s[i], 99, &st) < 0, "there is no 99");
		CHILD_CHECK(procs_memory(&s[i], 99, NULL, NULL) < 0, "nor 99");
	}
	CHILD_CHECK(n == 2 || j.proc < 0, "sources");
	return 0;
}

static void memory_and_cpu_are_summed(void **state)
{
	(void)state;
	run_in_jail(sum_up, NULL);
}

static void *hold_and_sleep(void *arg)
{
	char *p = mmap(NULL, 32 * MIB, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(p, 1, 32 * MIB);
	say_ready(arg);
	for (;;)
		pause();
	return NULL;
}

/* The first thread ends, another holds the memory. */
static void lose_its_head(struct guest *g)
{
	pthread_t t;

	pthread_create(&t, NULL, hold_and_sleep, g);
	syscall(SYS_exit, 0);
}

static int look_at_headless(void *arg)
{
	struct guest g = {.run = lose_its_head};
	int64_t end = now_ms() + SOON_MS;
	const unsigned all = PROCS_MEMORY | PROCS_RUNNING;
	struct procs_source s[2];
	struct procs_stat st;
	struct procs p;
	struct jail j;
	struct err e;
	int n;

	(void)arg;
	jail_make(&j, &g);
	n = sources(&j, s);
	do
		CHILD_CHECK(procs_stat(&s[0], 2, &st) == 0 && now_ms() < end,
			"its first thread lives");
	while (st.state != 'Z');
	for (int i = 0; i < n; i++) {
		CHILD_CHECK(procs_sample(&s[i], all, &p, &e) == 0, "%s", e.msg);
		CHILD_CHECK(p.n == 1 && p.zombies == 0 && p.running == 1,
			"%d, %d, %d", p.n, p.zombies, p.running);
		CHILD_CHECK(p.bytes >= 32 * MIB && p.bytes < 48 * MIB,
			"%lld bytes", (long long)p.bytes);
	}
	return 0;
}

static void a_process_lives_in_any_of_its_threads(void **state)
{
	(void)state;
	run_in_jail(look_at_headless, NULL);
}

/* Nothing is resident but the tables: 16 MiB of them, for 8 GiB of zeros. */
static void hold_tables(struct guest *g)
{
	const size_t size = (size_t)8192 * MIB;
	volatile char *p = mmap(NULL, size, PROT_READ,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	madvise((void *)p, size, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < size; i += 2 * MIB)
		(void)p[i];
	say_ready(g);
	for (;;)
		pause();
}

static int count_tables(void *arg)
{
	struct guest g = {.run = hold_tables};
	struct procs_source s[2];
	struct procs p;
	struct jail j;
	struct err e;
	int n;

	(void)arg;
	jail_make(&j, &g);
	n = sources(&j, s);
	for (int i = 0; i < n; i++) {
		CHILD_CHECK(procs_sample(&s[i], PROCS_MEMORY, &p, &e) == 0,
			"%s", e.msg);
		CHILD_CHECK(p.bytes >= 16 * MIB && p.bytes < 32 * MIB,
			"%lld bytes", (long long)p.bytes);
	}
	return 0;
}

static void the_tables_that_map_memory_count(void **state)
{
	(void)state;
	run_in_jail(count_tables, NULL);
}

/* ---- waiting ---- */

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

static void select_on_a_pipe_too(struct guest *g)
{
	fd_set set;
	int p[2];

	if (pipe(p) < 0)
		_exit(1);
	FD_ZERO(&set);
	FD_SET(0, &set);
	FD_SET(p[0], &set);
	say_ready(g);
	select(p[0] + 1, &set, NULL, NULL, NULL);
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
	/* ignored, so that the read is not answered by SIGTTIN; it fails, and
	 * the group that has the terminal is another */
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
		/* a refusal has to last */
		for (int k = 0; k < 20 && !wc->want; k++) {
			usleep(1000);
			CHILD_CHECK(
				waits(&s[i], &j) == 0, "%s: %d", wc->name, k);
		}
	}
	return 0;
}

static void waiting_for_the_person_is_seen(void **state)
{
	struct wait_case cases[] = {
		{"read", read_line, 1},
		{"read of /dev/tty", read_line_of_dev_tty, 1},
		{"select, as readline does", select_then_read, 1},
		{"poll", poll_for_ever, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		run_in_jail(wait_case_run, &cases[i]);
}

static void anything_else_is_not_waiting(void **state)
{
	struct wait_case cases[] = {
		{"sleep", do_sleep, 0},
		{"poll with a timeout", poll_with_timeout, 0},
		{"select on something else too", select_on_a_pipe_too, 0},
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

static void it_is_this_terminal_and_these_processes(void **state)
{
	(void)state;
	run_in_jail(other_tty, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_can_hold_anything),
		cmocka_unit_test(half_a_line_is_refused),
		cmocka_unit_test(memory_and_cpu_are_summed),
		cmocka_unit_test(a_process_lives_in_any_of_its_threads),
		cmocka_unit_test(the_tables_that_map_memory_count),
		cmocka_unit_test(waiting_for_the_person_is_seen),
		cmocka_unit_test(anything_else_is_not_waiting),
		cmocka_unit_test(it_is_this_terminal_and_these_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
