/* SPDX-License-Identifier: MIT */
/*
 * test_cgroup.c - limits that the kernel enforces, and its counters
 */
#include "cgroup_world.h"
#include "jail/plan/plan.h"

#include <sys/mman.h>
#include <time.h>

/* ---- limits ---- */

static int fork_many(void)
{
	int n = 0;

	for (; n < 50; n++) {
		pid_t pid = fork();

		if (pid < 0)
			break;
		if (pid == 0)
			for (;;)
				pause();
	}
	return n;
}

static void the_process_limit_is_enforced(void **state)
{
	struct world *w = *state;
	struct cgroup_usage u;
	struct child c;
	struct err e;
	int most, fd;

	NEED(w, CGROUP_PIDS);
	w->limits.undo = 5;
	most = w->limits.processes + plan_spare_processes(&w->limits);
	open_ok(w);
	assert_true(w->cg.enforced & CGROUP_LIMIT_PIDS);
	fd = pids_open(&w->cg);
	start_inside(w, &c, fork_many);
	assert_int_equal(child_result(&c), most - 1);
	cgroup_usage(&w->cg, &u);
	assert_int_equal(pids_read(fd), most);
	close(fd);
	assert_true(u.fork_fails >= 1);
	if (cgroup_remove(&w->cg, SOON_MS, &e) < 0)
		fail_msg("%s", e.msg);
	child_end(&c);
}

static int touch(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return 2;
	memset(p, 1, bytes);
	return 1;
}

static int touch_32m(void)
{
	return touch(32 * MIB);
}

static int touch_128m(void)
{
	return touch(128 * MIB);
}

static void the_memory_limit_is_enforced_and_its_kills_are_counted(void **state)
{
	struct world *w = *state;
	struct cgroup_usage u;
	struct child c;
	int status;

	NEED(w, CGROUP_MEMORY);
	open_ok(w);
	assert_true(w->cg.enforced & CGROUP_LIMIT_MEMORY);
	/* control: half of the memory is granted and counted */
	start_inside(w, &c, touch_32m);
	assert_int_equal(child_result(&c), 1);
	cgroup_usage(&w->cg, &u);
	assert_in_range(cgroup_memory(&w->cg), 32 * MIB, 64 * MIB);
	assert_int_equal(u.oom_kills, 0);
	child_end(&c);

	start_inside(w, &c, touch_128m);
	assert_int_equal(child_result(&c), -1);
	status = child_end(&c);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	cgroup_usage(&w->cg, &u);
	assert_int_equal(u.oom_kills, 1);
	if (w->caps.kind == CGROUP_V1)
		assert_in_range(u.peak_bytes, 63 * MIB, 64 * MIB);
}

/* Touch memory in a child: its wait status. */
static int touch_in_child(size_t bytes, const struct cgroup *jail)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		if (jail && cgroup_enter(jail, 0, NULL) < 0)
			_exit(99);
		_exit(touch(bytes) == 1 ? 0 : 98);
	}
	waitpid(pid, &status, 0);
	return status;
}

static int is_killed(int status)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static int work_for_it(void *arg)
{
	struct world *w = arg;
	const size_t much = (size_t)1 << 30;
	struct cgroup_usage u;
	struct err e;

	CHILD_CHECK(cgroup_enter_warden(&w->cg, &e) == 0, "%s", e.msg);
	/* More than the jail may have: this is not counted as the jail's. */
	CHILD_CHECK(touch_in_child(80 * MIB, NULL) == 0, "80 MiB refused");
	CHILD_CHECK(cgroup_memory(&w->cg) < 8 * MIB, "counted as the jail's");
	/* The kernel kills a jail over its limit, and not its warden. */
	CHILD_CHECK(is_killed(touch_in_child(80 * MIB, &w->cg)), "no limit");
	cgroup_usage(&w->cg, &u);
	CHILD_CHECK(u.oom_kills == 1, "%d kills", (int)u.oom_kills);
	/* The kernel kills a warden over its limit, and not its jail. */
	CHILD_CHECK(is_killed(touch_in_child(much, NULL)), "no own limit");
	cgroup_usage(&w->cg, &u);
	CHILD_CHECK(u.oom_kills == 1, "%d kills", (int)u.oom_kills);
	return 0;
}

static void what_works_for_a_session_has_limits_of_its_own(void **state)
{
	struct world *w = *state;

	NEED(w, CGROUP_MEMORY, CGROUP_PIDS);
	open_ok(w);
	assert_int_equal(forked(work_for_it, w), 0);
}

static int burn_200ms(void)
{
	struct timespec t;

	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	while (t.tv_sec == 0 && t.tv_nsec < 200000000);
	return 1;
}

static void cpu_time_of_an_ended_process_is_counted(void **state)
{
	struct world *w = *state;
	struct cgroup_usage u;
	struct child c;

	NEED(w, CGROUP_CPUACCT);
	open_ok(w);
	cgroup_usage(&w->cg, &u);
	assert_in_range(u.cpu_ns, 0, 50000000);
	start_inside(w, &c, burn_200ms);
	assert_int_equal(child_result(&c), 1);
	child_end(&c);
	cgroup_usage(&w->cg, &u);
	/* the kernel may count the time a little late */
	assert_true(u.cpu_ns >= 150000000);
}

static void the_cpu_share_counts_as_enforced(void **state)
{
	struct world *w = *state;

	NEED(w, CGROUP_CPU);
	open_ok(w);
	assert_true(w->cg.enforced & CGROUP_LIMIT_CPU);
	/* and with it every other limit that has its controller */
	if (w->caps.usable & 1u << CGROUP_MEMORY) {
		assert_true(w->cg.enforced & CGROUP_LIMIT_MEMORY);
		assert_true(w->cg.enforced & CGROUP_LIMIT_SWAP);
	}
	if (w->caps.usable & 1u << CGROUP_PIDS)
		assert_true(w->cg.enforced & CGROUP_LIMIT_PIDS);
}

/* A limit that the kernel does not keep must not count as enforced. No kernel
 * keeps a negative limit. */
static void a_limit_that_the_kernel_does_not_keep_is_reported(void **state)
{
	struct world *w = *state;

	NEED(w, CGROUP_PIDS);
	w->limits.processes = -100;
	open_ok(w);
	assert_false(w->cg.enforced & CGROUP_LIMIT_PIDS);
	/* control: others are kept */
	if (w->caps.usable & 1u << CGROUP_MEMORY)
		assert_true(w->cg.enforced & CGROUP_LIMIT_MEMORY);
}

static void a_cgroup_name_cannot_leave_its_directory(void **state)
{
	static const char *const names[] = {"", ".", "..", "../x", "a/b"};
	struct world *w = *state;
	struct err e;

	w->caps = (struct cgroup_caps){.kind = CGROUP_V1};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(
			cgroup_place(&w->cg, &w->caps, names[i], &e), -1);
	/* control */
	assert_int_equal(cgroup_place(&w->cg, &w->caps, "a", &e), 0);
	w->cg.kind = CGROUP_NONE;
}

static void without_cgroups_nothing_is_enforced_or_measured(void **state)
{
	struct world *w = *state;
	struct cgroup_usage u;
	struct err e;

	w->caps = (struct cgroup_caps){.kind = CGROUP_NONE};
	open_ok(w);
	assert_int_equal(w->cg.enforced, 0);
	assert_false(cgroup_can_freeze(&w->cg));
	assert_int_equal(cgroup_freeze(&w->cg, 1, 0, &e), -1);
	cgroup_usage(&w->cg, &u);
	assert_int_equal(cgroup_memory(&w->cg), 0);
	assert_int_equal(u.cpu_ns, -1);
	assert_int_equal(cgroup_remove(&w->cg, 0, &e), 0);
}

static int is_offered(void *arg)
{
	struct cgroup_caps caps = {0};

	(void)arg;
	forked_as_user();
	cgroup_probe(&caps, 0, 0, NULL);
	if (caps.kind == CGROUP_NONE)
		CHILD_CHECK(strlen(caps.why) > 0, "it does not say why");
	return (int)caps.kind;
}

static void an_ordinary_user_is_offered_no_version_1(void **state)
{
	int kind = forked(is_offered, NULL);

	(void)state;
	if (kind == CGROUP_V2)
		SKIP("a version 2 cgroup is delegated to this user");
	assert_int_equal(kind, CGROUP_NONE);
}

/* ---- version 2, by its files alone ---- */

static int file_with(const char *text)
{
	int fd = memfd_create("cgroup", MFD_CLOEXEC);

	assert_int_equal(write(fd, text, strlen(text)), (int)strlen(text));
	return fd;
}

static void version_2_files_are_understood(void **state)
{
	struct world *w = *state;
	struct cgroup_usage u;

	w->caps = (struct cgroup_caps){.kind = CGROUP_NONE};
	open_ok(w);
	w->cg.kind = CGROUP_V2;
	w->cg.file[CGROUP_F_MEMORY] = file_with("10485760\n");
	w->cg.file[CGROUP_F_MEMORY_STAT] =
		file_with("anon 4096\nfile 2097152\nkernel 1\n"
			  "inactive_anon 7\ninactive_file 1048576\n"
			  "active_file 524288\nunevictable 0\n");
	w->cg.file[CGROUP_F_PEAK] = file_with("20971520\n");
	w->cg.file[CGROUP_F_OOM] = file_with(
		"low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n");
	w->cg.file[CGROUP_F_PIDS_EVENTS] = file_with("max 5\n");
	w->cg.file[CGROUP_F_CPU] =
		file_with("usage_usec 1234567\nuser_usec 1\nsystem_usec 2\n");
	cgroup_usage(&w->cg, &u);
	assert_int_equal(cgroup_memory(&w->cg), 10485760 - 1048576 - 524288);
	assert_int_equal(u.peak_bytes, 20971520);
	assert_int_equal(u.oom_kills, 2);
	assert_int_equal(u.fork_fails, 5);
	assert_int_equal(u.cpu_ns, 1234567000);
}

static void put(const char *dir, const char *name, const char *text)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* Plain files stand in for the kernel's: one keeps the newline that the kernel
 * would add, the other does not read back as it was written. */
static void a_written_limit_counts_only_if_it_reads_back(void **state)
{
	char dir[] = "/tmp/cellblock-test-XXXXXX";
	auto_close int fd = -1;

	(void)state;
	assert_non_null(mkdtemp(dir));
	fd = cgroup_dir_open(dir);
	assert_true(fd >= 0);
	put(dir, "kept", "max 100000\n");
	put(dir, "changed", "max 100000 more\n");
	assert_true(cgroup_dir_set_text(fd, "kept", "500 100000"));
	assert_false(cgroup_dir_set_text(fd, "changed", "500 100000"));
	assert_false(cgroup_dir_set_text(fd, "missing", "500 100000"));
	assert_int_equal(unlinkat(fd, "kept", 0), 0);
	assert_int_equal(unlinkat(fd, "changed", 0), 0);
	assert_int_equal(rmdir(dir), 0);
}

/* A cgroup that holds foreign processes is unusable, except the root cgroup,
 * which has no cgroup.events. A failure to read cgroup.events does not make a
 * cgroup the root. */
static void only_the_root_cgroup_may_hold_foreign_processes(void **state)
{
	static const char *const names[] = {"cgroup.controllers",
		"cgroup.subtree_control", "cgroup.procs", "cgroup.events"};
	struct cgroup_caps caps = {.kind = CGROUP_NONE};
	char at[] = "/tmp/cellblock-test-XXXXXX";
	const struct mntent m = {.mnt_dir = at};
	char path[64];

	(void)state;
	if (geteuid() != 0)
		SKIP("only the sessions of root go below the mount");
	assert_non_null(mkdtemp(at));
	put(at, names[0], "cpu memory pids\n");
	put(at, names[1], "\n");
	put(at, names[2], "1\n");
	assert_int_equal(cgroup_v2.probe(&caps, &m), 1);
	assert_int_equal(caps.kind, CGROUP_V2);

	caps = (struct cgroup_caps){.kind = CGROUP_NONE};
	put(at, names[3], "populated 1\n");
	assert_int_equal(cgroup_v2.probe(&caps, &m), 0);
	assert_non_null(strstr(caps.why, "processes are in the cgroup"));

	/* a circle: ELOOP */
	caps = (struct cgroup_caps){.kind = CGROUP_NONE};
	snprintf(path, sizeof(path), "%.40s/%s", at, names[3]);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(names[3], path), 0);
	assert_int_equal(cgroup_v2.probe(&caps, &m), 0);
	assert_int_equal(caps.kind, CGROUP_NONE);
	for (int i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%.40s/%s", at, names[i]);
		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(rmdir(at), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_process_limit_is_enforced),
		TEST(the_memory_limit_is_enforced_and_its_kills_are_counted),
		TEST(what_works_for_a_session_has_limits_of_its_own),
		TEST(cpu_time_of_an_ended_process_is_counted),
		TEST(the_cpu_share_counts_as_enforced),
		TEST(a_limit_that_the_kernel_does_not_keep_is_reported),
		TEST(a_cgroup_name_cannot_leave_its_directory),
		TEST(without_cgroups_nothing_is_enforced_or_measured),
		TEST(an_ordinary_user_is_offered_no_version_1),
		TEST(version_2_files_are_understood),
		TEST(a_written_limit_counts_only_if_it_reads_back),
		TEST(only_the_root_cgroup_may_hold_foreign_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
