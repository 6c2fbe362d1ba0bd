/* SPDX-License-Identifier: MIT */
/*
 * test_procs.c - CPU and memory of the jail's processes, as the warden counts
 * them
 */
#include "small_jail.h"

#include "jail/warden/look/look.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#define MIB (1024 * 1024)

/* ---- status ---- */

static void an_exiting_process_is_recognised(void **state)
{
	auto_close int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct procs_source s;
	struct procstatus st;
	siginfo_t si;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(0);
	procs_source_jail(&s, proc);
	assert_int_equal(procs_status(&s, getpid(), &st), 0);
	assert_true(st.has_memory);
	assert_int_equal(waitid(P_PID, pid, &si, WEXITED | WNOWAIT), 0);
	assert_int_equal(procs_status(&s, pid, &st), 0);
	assert_false(st.has_memory);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
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
	/* shared by two: it counts for each, and by weight for both together */
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
	struct procstat st;
	struct procs p;
	struct jail j;
	struct err e;
	struct procs_pages pages;
	int n;

	(void)arg;
	jail_make(&j, &g);
	n = sources(&j, s);
	for (int i = 0; i < n; i++) {
		CHILD_CHECK(procs_sample(&s[i], PROCS_MEMORY | PROCS_CPU, &p,
				    &e) == 0,
			"%s", e.msg);
		CHILD_CHECK(p.n == 2 && p.threads == 2, "%d processes", p.n);
		CHILD_CHECK(p.bytes >= 64 * MIB && p.bytes < 80 * MIB,
			"%lld bytes", (long long)p.bytes);
		CHILD_CHECK(procs_sample(&s[i], PROCS_WEIGHT | PROCS_CPU, &p,
				    &e) == 0,
			"%s", e.msg);
		CHILD_CHECK(p.bytes >= 32 * MIB && p.bytes < 48 * MIB,
			"%lld bytes by weight", (long long)p.bytes);
		CHILD_CHECK(p.cpu_ms >= 80 && p.cpu_ms < 5000, "%lld ms",
			(long long)p.cpu_ms);
		CHILD_CHECK(procs_pages(&s[i], 2, &pages) == 0 &&
				    pages.all >= 32 * MIB &&
				    pages.private >= 0 &&
				    pages.private < 8 * MIB,
			"%lld of %lld private", (long long)pages.private,
			(long long)pages.all);
		CHILD_CHECK(procs_stat(&s[i], 2, &st) == 0, "stat");
		CHILD_CHECK(procs_stat(&s[i], 99, &st) < 0, "there is no 99");
		CHILD_CHECK(procs_pages(&s[i], 99, &pages) < 0,
			"memory of 99, which does not exist");
	}
	CHILD_CHECK(n == 2 || j.proc < 0, "sources");
	return 0;
}

static void memory_and_cpu_are_summed(void **state)
{
	(void)state;
	run_in_jail(sum_up, NULL);
}

static void come_and_go(struct guest *g)
{
	say_ready(g);
	for (;;) {
		char *p = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		memset(p, 1, 64 * MIB);
		munmap(p, 64 * MIB);
	}
}

/* As one that the kernel kills for its memory gives it back. */
static int count_private_of_what_comes_and_goes(void *arg)
{
	struct guest g = {.run = come_and_go};
	const struct work q = {.what = WORK_PRIVATE, .pid = 2};
	static struct work_result r;
	struct work_place place = {0};
	struct procs_source s[2];
	int64_t end, seen = 0;
	struct jail j;
	int n;

	(void)arg;
	jail_make(&j, &g);
	n = sources(&j, s);
	for (int i = 0; i < n; i++) {
		place.procs = s[i];
		for (end = now_ms() + 700; now_ms() < end;) {
			work_do(&place, &q, &r);
			CHILD_CHECK(r.what == WORK_PRIVATE, "not counted");
			CHILD_CHECK(r.private_bytes <= r.size_bytes,
				"%lld bytes more are private than there are",
				(long long)(r.private_bytes - r.size_bytes));
			seen = r.size_bytes > seen ? r.size_bytes : seen;
		}
	}
	CHILD_CHECK(seen > 32 * MIB, "only %lld bytes", (long long)seen);
	return 0;
}

static void what_a_guest_frees_was_not_copied(void **state)
{
	(void)state;
	run_in_jail(count_private_of_what_comes_and_goes, NULL);
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
	struct procstat st;
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

static void spin_and_sleep(struct guest *g)
{
	say_ready(g);
	if (fork() == 0)
		for (;;)
			pause();
	for (;;)
		;
}

static void wait_for_a_child(struct guest *g)
{
	say_ready(g);
	if (vfork() == 0)
		for (;;)
			pause();
	_exit(0);
}

static int look_until(void (*run)(struct guest *), int ready)
{
	struct guest g = {.run = run};
	const unsigned all = PROCS_READY | PROCS_RUNNING;
	int64_t end = now_ms() + SOON_MS;
	struct procs_source s[2];
	struct procs p = {0};
	struct jail j;
	int n;

	jail_make(&j, &g);
	n = sources(&j, s);
	for (int i = 0; i < n; i++) {
		do
			CHILD_CHECK(procs_sample(&s[i], all, &p, NULL) == 0 &&
					    now_ms() < end,
				"%d, %d", p.running, p.ready);
		while (p.running != 2 || p.ready != ready);
	}
	return 0;
}

static int look_at_one_of_two(void *arg)
{
	(void)arg;
	return look_until(spin_and_sleep, 1);
}

static int look_at_a_waiter(void *arg)
{
	(void)arg;
	return look_until(wait_for_a_child, 0);
}

static void a_sleeping_process_is_not_ready(void **state)
{
	(void)state;
	run_in_jail(look_at_one_of_two, NULL);
}

/* It waits in the kernel, by its own doing. */
static void a_process_that_waits_for_its_child_is_not_ready(void **state)
{
	(void)state;
	run_in_jail(look_at_a_waiter, NULL);
}

static void a_process_lives_while_any_thread_lives(void **state)
{
	(void)state;
	run_in_jail(look_at_headless, NULL);
}

/* Whether a page that is only read is a page of its own, as in some virtual
 * machines: nobody else maps it, as everybody does the kernel's page of zeros.
 */
static int zeros_take_pages(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	volatile char *p = mmap(NULL, page, PROT_READ,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t entry = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	(void)p[0];
	if (fd >= 0)
		(void)!pread(fd, &entry, sizeof(entry),
			(off_t)((uintptr_t)p / page * sizeof(entry)));
	close(fd);
	munmap((void *)p, page);
	return entry >> 56 & 1; /* mapped by nobody else */
}

/* Only page tables are resident: 16 MiB, with 8 bytes for each page of
 * zeros. */
static void hold_tables(struct guest *g)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t span = page / 8 * page, size = 16 * MIB / page * span;
	volatile char *p = mmap(NULL, size, PROT_READ,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	madvise((void *)p, size, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < size; i += span)
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
	int64_t least = (zeros_take_pages() ? 32 : 16) * MIB;
	struct jail j;
	struct err e;
	int n;

	(void)arg;
	jail_make(&j, &g);
	n = sources(&j, s);
	for (int i = 0; i < n; i++) {
		CHILD_CHECK(procs_sample(&s[i], PROCS_MEMORY, &p, &e) == 0,
			"%s", e.msg);
		CHILD_CHECK(p.bytes >= least && p.bytes < 2 * least,
			"%lld bytes", (long long)p.bytes);
	}
	return 0;
}

static void page_tables_count_as_memory(void **state)
{
	(void)state;
	run_in_jail(count_tables, NULL);
}

/* The kernel's text for a file of /proc stays until the file is closed. */
static _Noreturn void hold(struct guest *g, const char *path)
{
	open(path, O_RDONLY | O_CLOEXEC);
	say_ready(g);
	for (;;)
		pause();
}

static void hold_a_directory(struct guest *g)
{
	hold(g, "/proc/self");
}

static void hold_a_short_file(struct guest *g)
{
	hold(g, "/proc/self/status");
}

static void hold_a_file(struct guest *g)
{
	hold(g, "/proc/self/fdinfo/0");
}

/* Much text, but no file of /proc is open. */
static void hold_many_watches(struct guest *g)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), event = eventfd(0, 0);
	struct epoll_event in = {.events = EPOLLIN};

	for (int i = 0; i < 2000; i++) {
		dup2(event, 200 + i % 100);
		epoll_ctl(epoll, EPOLL_CTL_ADD, 200 + i % 100, &in);
		if (i % 100 == 99)
			event = eventfd(0, 0); /* the last one stays, too */
	}
	say_ready(g);
	for (;;)
		pause();
}

/* A descriptor waits in the second; we cannot see its kind. */
static int waits[2];

static void hold_a_descriptor(struct guest *g)
{
	int event = eventfd(0, 0);

	if (io_send_fds(waits[0], "x", 1, &event, 1, 0) < 0)
		_exit(1);
	say_ready(g);
	for (;;)
		pause();
}

struct holder {
	void (*run)(struct guest *g);
	int hidden;
	int64_t least, most; /* what the kernel keeps */
	int ctl;	     /* the socket is the warden's */
};

static int look_at_holder(void *arg)
{
	const struct holder *h = arg;
	struct guest g = {.run = h->run};
	struct procs_source s[2];
	struct procs p;
	struct jail j;
	struct stat st;
	struct err e;

	CHILD_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, waits) == 0 &&
			    fstat(waits[1], &st) == 0,
		"%s", strerror(errno));
	jail_make(&j, &g);
	sources(&j, s);
	s[0].ctl = h->ctl ? st.st_ino : 0;
	CHILD_CHECK(
		procs_sample(&s[0], PROCS_WEIGHT, &p, &e) == 0, "%s", e.msg);
	CHILD_CHECK(p.hidden == h->hidden, "%d", p.hidden);
	CHILD_CHECK(p.kernel_bytes >= h->least && p.kernel_bytes < h->most,
		"%lld bytes", (long long)p.kernel_bytes);
	return 0;
}

static void buffers_of_proc_may_be_where_nobody_sees_them(void **state)
{
	/* 2000 watches of 256 bytes, and twice what is printed of them. */
	struct holder holders[] = {{hold_a_directory, 0, 0, MIB},
		{hold_a_short_file, 0, 0, MIB}, {hold_a_file, 1, 0, MIB},
		{hold_many_watches, 0, 2000 * 256 + 2 * 2000 * 64, 2 * MIB},
		{hold_a_descriptor, 1, 0, MIB},
		{hold_a_descriptor, 0, 0, MIB, .ctl = 1}};

	(void)state;
	for (size_t i = 0; i < sizeof(holders) / sizeof(holders[0]); i++)
		run_in_jail(look_at_holder, &holders[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_exiting_process_is_recognised),
		cmocka_unit_test(memory_and_cpu_are_summed),
		cmocka_unit_test(what_a_guest_frees_was_not_copied),
		cmocka_unit_test(a_process_lives_while_any_thread_lives),
		cmocka_unit_test(a_sleeping_process_is_not_ready),
		cmocka_unit_test(
			a_process_that_waits_for_its_child_is_not_ready),
		cmocka_unit_test(page_tables_count_as_memory),
		cmocka_unit_test(buffers_of_proc_may_be_where_nobody_sees_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
