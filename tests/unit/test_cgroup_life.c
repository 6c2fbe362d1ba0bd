/* SPDX-License-Identifier: MIT */
/*
 * test_cgroup_life.c - entering, freezing, killing and removing a cgroup
 */
#include "cgroup_world.h"

#include "jail/apply/apply.h"
#include "jail/walls/walls.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* ---- stopping and killing ---- */

/* A child that was not killed would be waited for until the alarm. */
static int is_killed(pid_t pid)
{
	siginfo_t how = {0};

	alarm(SOON_MS / 1000);
	waitid(P_PID, (id_t)pid, &how, WEXITED | WNOWAIT);
	alarm(0);
	return how.si_code == CLD_KILLED && how.si_status == SIGKILL;
}

static int is_alive(pid_t pid)
{
	siginfo_t how = {0};

	waitid(P_PID, (id_t)pid, &how, WEXITED | WNOWAIT | WNOHANG);
	return how.si_pid == 0;
}

static int count_for_ever(void)
{
	volatile unsigned long *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (fork() == 0)
		for (;;)
			(*p)++;
	return p != MAP_FAILED;
}

static int64_t cpu_now(struct world *w)
{
	struct cgroup_usage u;

	cgroup_usage(&w->cg, &u);
	return u.cpu_ns;
}

static void frozen_processes_use_no_cpu_and_continue_when_thawed(void **state)
{
	struct world *w = *state;
	int64_t frozen, deadline;
	struct child c;
	struct err e;

	NEED(w, CGROUP_FREEZER, CGROUP_CPUACCT);
	open_ok(w);
	assert_true(cgroup_can_freeze(&w->cg));
	start_inside(w, &c, count_for_ever);
	assert_int_equal(child_result(&c), 1);
	if (cgroup_freeze(&w->cg, 1, SOON_MS, &e) < 0)
		fail_msg("%s", e.msg);
	frozen = cpu_now(w);
	/* A running process would use all of this time. A process uses a little
	 * until it is frozen. */
	usleep(100000);
	assert_true(cpu_now(w) - frozen < 10000000);
	/* control: it did run, and runs again */
	if (cgroup_freeze(&w->cg, 0, SOON_MS, &e) < 0)
		fail_msg("%s", e.msg);
	deadline = now_ms() + SOON_MS;
	while (cpu_now(w) < frozen + 20000000 && now_ms() < deadline)
		usleep(1000);
	assert_true(cpu_now(w) >= frozen + 20000000);
	if (cgroup_remove(&w->cg, SOON_MS, &e) < 0)
		fail_msg("%s", e.msg);
	child_end(&c);
}

static void a_frozen_cgroup_can_be_killed(void **state)
{
	struct world *w = *state;
	struct child c;
	struct err e;

	NEED(w, CGROUP_FREEZER);
	open_ok(w);
	start_inside(w, &c, count_for_ever);
	assert_int_equal(child_result(&c), 1);
	assert_int_equal(cgroup_freeze(&w->cg, 1, SOON_MS, &e), 0);
	if (cgroup_remove(&w->cg, SOON_MS, &e) < 0)
		fail_msg("%s", e.msg);
	assert_true(is_killed(c.pid));
	child_end(&c);
}

/* ---- without privilege ---- */

struct lesser {
	struct world *w;
	pid_t pid;
};

/* The unprivileged calls of the warden. All use descriptors that were opened
 * before. */
static int use_without_privilege(void *arg)
{
	struct lesser *l = arg;
	int pids = pids_open(&l->w->cg);
	struct err e;

	CHILD_CHECK(ident_become(2130600001, 2130600001, &e) == 0, "%s", e.msg);
	/* control: without privilege this open fails */
	CHILD_CHECK(open(l->w->cg.dirs[0], O_RDONLY) < 0 && errno == EACCES,
		"control: still privileged");
	move_in(&l->w->cg, l->pid);
	CHILD_CHECK(cgroup_freeze(&l->w->cg, 1, SOON_MS, &e) == 0, "%s", e.msg);
	CHILD_CHECK(cgroup_freeze(&l->w->cg, 0, SOON_MS, &e) == 0, "%s", e.msg);
	CHILD_CHECK(pids_read(pids) == 1, "%d processes", pids_read(pids));
	return 0;
}

static void an_open_cgroup_is_used_without_privilege(void **state)
{
	struct world *w = *state;
	struct child c;
	struct lesser l = {.w = w};

	if (geteuid() != 0)
		SKIP("only root gives up being root");
	NEED(w, CGROUP_FREEZER, CGROUP_PIDS);
	open_ok(w);
	c = child_start(do_nothing);
	l.pid = c.pid;
	assert_int_equal(forked(use_without_privilege, &l), 0);
	child_end(&c);
}

static int enter_by_itself(void *arg)
{
	struct world *w = arg;
	int pids = pids_open(&w->cg);
	struct err e;

	CHILD_CHECK(pids_read(pids) == 0, "control: %d inside before",
		pids_read(pids));
	CHILD_CHECK(ident_become(2130600001, 2130600001, &e) == 0, "%s", e.msg);
	CHILD_CHECK(cgroup_enter(&w->cg, 0, &e) == 0, "%s", e.msg);
	CHILD_CHECK(pids_read(pids) == 1, "%d processes", pids_read(pids));
	return 0;
}

static void a_process_can_enter_by_itself(void **state)
{
	struct world *w = *state;

	if (geteuid() != 0)
		SKIP("only root gives up being root");
	NEED(w, CGROUP_PIDS);
	open_ok(w);
	assert_int_equal(forked(enter_by_itself, w), 0);
}

/* ---- removal ---- */

static int dirs_exist(const struct cgroup *cg)
{
	int n = 0;

	for (int i = 0; i < cg->ndirs; i++)
		n += access(cg->dirs[i], F_OK) == 0;
	return n;
}

static void the_cgroup_of_a_dead_session_is_removed(void **state)
{
	struct world *w = *state;
	struct cgroup old, other;
	struct child c;
	struct err e;

	NEED(w, CGROUP_FREEZER);
	open_ok(w);
	start_inside(w, &c, count_for_ever);
	assert_int_equal(child_result(&c), 1);
	old = w->cg;
	/* control: no session of the same name may touch a living session */
	assert_int_equal(open_named(w, &w->cg, w->name, &e), -1);
	assert_non_null(strstr(e.msg, "busy"));
	assert_int_equal(cgroup_place(&other, &w->caps, w->name, &e), 0);
	assert_int_equal(cgroup_remove(&other, 0, &e), -1);
	assert_int_equal(dirs_exist(&old), old.ndirs);
	assert_true(is_alive(c.pid));
	cgroup_close(&old);
	open_ok(w);
	assert_true(is_killed(c.pid));
	assert_int_equal(dirs_exist(&w->cg), w->cg.ndirs);
	child_end(&c);
}

/* A throttled process dies late. */
static void the_cpu_limit_is_lifted_before_removal(void **state)
{
	struct world *w = *state;
	char path[CGROUP_PATH_MAX + 32], text[64];
	const char *dir, *file, *lifted;
	struct err e;

	NEED(w, CGROUP_CPU);
	file = w->caps.kind == CGROUP_V2 ? "cpu.max" : "cpu.cfs_quota_us";
	lifted = w->caps.kind == CGROUP_V2 ? "max 100000\n" : "-1\n";
	open_ok(w);
	dir = w->cg.dirs[w->cg.at[CGROUP_CPU]];
	snprintf(path, sizeof(path), "%s/%s", dir, file);
	/* control: there was a limit before */
	assert_true(io_read_small(AT_FDCWD, path, text, sizeof(text)) > 0);
	assert_string_not_equal(text, lifted);
	/* A subdirectory prevents the removal, so that the file can be read. */
	snprintf(path, sizeof(path), "%s/stays", dir);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(cgroup_remove(&w->cg, 0, &e), -1);
	snprintf(path, sizeof(path), "%s/%s", dir, file);
	assert_true(io_read_small(AT_FDCWD, path, text, sizeof(text)) > 0);
	assert_string_equal(text, lifted);
	snprintf(path, sizeof(path), "%s/stays", dir);
	assert_int_equal(rmdir(path), 0);
}

/* A janitor also removes the remains of sessions whose locks are free. The
 * locks of real sessions are in another directory, so the test uses a parent
 * directory that no real session has. */
static int init_helper_fork(void **state)
{
	struct world *w;

	world_make(state);
	w = *state;
	for (int i = 0; geteuid() == 0 && i < CGROUP_CONTROLLERS; i++)
		if (w->caps.usable & 1u << i)
			sprintf(strrchr(w->caps.dir[i], '/'), "/cellblock-%s",
				w->name);
	return 0;
}

static void the_janitor_kills_the_processes_and_removes_the_cgroup(void **state)
{
	struct world *w = *state;
	struct janitor_of of = {.cgroup = &w->cg};
	int hold, lock[2], done[2];
	struct pollfd p;
	struct child c;
	struct err e;
	pid_t janitor;
	int status;

	NEED(w, CGROUP_FREEZER);
	assert_int_equal(cgroup_place(&w->cg, &w->caps, w->name, &e), 0);
	assert_int_equal(pipe2(lock, O_CLOEXEC), 0);
	assert_int_equal(pipe2(done, O_CLOEXEC), 0);
	of.lock_fd = lock[1];
	of.done_fd = done[1];
	janitor = janitor_start(&of, &hold, &e);
	assert_true(janitor > 0);
	close(lock[1]);
	close(done[1]);
	if (cgroup_open(&w->cg, &w->caps, &w->limits, &e) < 0)
		fail_msg("%s", e.msg);
	start_inside(w, &c, count_for_ever);
	assert_int_equal(child_result(&c), 1);
	/* control: while a holder lives, nothing is removed, even after SIGTERM
	 */
	kill(janitor, SIGTERM);
	p = (struct pollfd){.fd = done[0], .events = POLLIN};
	assert_int_equal(poll(&p, 1, 50), 0);
	assert_int_equal(dirs_exist(&w->cg), w->cg.ndirs);

	/* The same happens when a session dies. */
	cgroup_close(&w->cg);
	close(hold);
	assert_int_equal(poll(&p, 1, SOON_MS), 1);
	assert_int_equal(dirs_exist(&w->cg), 0);
	p.fd = lock[0];
	assert_int_equal(poll(&p, 1, SOON_MS), 1);
	waitpid(janitor, &status, 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_true(is_killed(c.pid));
	close(lock[0]);
	close(done[0]);
	child_end(&c);
}

/* ---- the remains of others ---- */

/* Sessions of root: each has a allocated uid, a cgroup of that name, a process.
 */
enum { DEAD, LIVING, ENDED, ALLOCATED };

struct allocated {
	struct cgroup cg;
	struct child c;
	int lock;
};

struct allocated_world {
	struct world *w;
	struct allocated s[ALLOCATED];
	char locks[32];
};

static void allocated_start(struct allocated_world *sw, struct allocated *s)
{
	struct world *w = sw->w;
	char name[IDENT_NAME_MAX];
	struct err e;
	uid_t uid;

	if (ident_allocate(
		    sw->locks, 2130600100, 2130600109, &uid, &s->lock, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(ident_allocation_name(s->lock, uid, name, &e), 0);
	if (open_named(w, &s->cg, name, &e) < 0)
		fail_msg("%s", e.msg);
	s->c = child_start(do_nothing);
	move_in(&s->cg, s->c.pid);
	child_go(&s->c);
	assert_int_equal(child_result(&s->c), 1);
}

static int allocated_world_make(void **state)
{
	struct allocated_world *sw = calloc(1, sizeof(*sw));

	init_helper_fork((void **)&sw->w);
	strcpy(sw->locks, "/tmp/cellblock-locks-XXXXXX");
	*state = sw;
	return mkdtemp(sw->locks) ? 0 : -1;
}

static int allocated_world_end(void **state)
{
	struct allocated_world *sw = *state;
	char path[64];

	for (int i = 0; i < ALLOCATED; i++) {
		struct allocated *s = &sw->s[i];

		if (s->cg.kind == CGROUP_NONE)
			continue;
		cgroup_close(&s->cg);
		cgroup_remove(&s->cg, SOON_MS, NULL);
		child_end(&s->c);
		close(s->lock);
	}
	snprintf(path, sizeof(path), "%s/uids", sw->locks);
	unlink(path);
	rmdir(sw->locks);
	free(sw->w);
	free(sw);
	return 0;
}

static int is_free(const char *name, void *lock)
{
	return ident_allocation_is_free(*(int *)lock, name);
}

static void only_cgroups_of_dead_sessions_are_cleared(void **state)
{
	struct allocated_world *sw = *state;
	struct allocated *s = sw->s;
	char foreign[CGROUP_PATH_MAX + 16];

	if (geteuid() != 0)
		SKIP("only root allocations uids");
	NEED(sw->w, CGROUP_FREEZER, CGROUP_PIDS);
	for (int i = 0; i < ALLOCATED; i++)
		allocated_start(sw, &s[i]);
	snprintf(foreign, sizeof(foreign), "%s/other",
		sw->w->caps.dir[CGROUP_PIDS]);
	assert_int_equal(mkdir(foreign, 0755), 0);
	/* The state after a janitor and a warden were killed at a prompt. */
	assert_int_equal(cgroup_freeze(&s[DEAD].cg, 1, SOON_MS, NULL), 0);
	ident_allocation_release(s[DEAD].lock);
	cgroup_close(&s[DEAD].cg);

	assert_int_equal(cgroup_remove(&s[ENDED].cg, SOON_MS, NULL), 0);
	cgroup_clear_dead(&s[ENDED].cg, is_free, &s[ENDED].lock);
	assert_int_equal(access(foreign, F_OK), 0);
	assert_int_equal(rmdir(foreign), 0);
	assert_int_equal(dirs_exist(&s[DEAD].cg), 0);
	assert_true(is_killed(s[DEAD].c.pid));
	assert_int_equal(dirs_exist(&s[LIVING].cg), s[LIVING].cg.ndirs);
	assert_true(is_alive(s[LIVING].c.pid));

	/* control: either lock alone spares the session */
	ident_allocation_release(s[LIVING].lock);
	cgroup_clear_dead(&s[ENDED].cg, is_free, &s[ENDED].lock);
	assert_int_equal(dirs_exist(&s[LIVING].cg), s[LIVING].cg.ndirs);
	cgroup_close(&s[LIVING].cg);
	cgroup_clear_dead(&s[ENDED].cg, is_free, &s[ENDED].lock);
	assert_int_equal(dirs_exist(&s[LIVING].cg), 0);
	assert_int_equal(access(sw->w->caps.dir[CGROUP_PIDS], F_OK), -1);
}

/* ---- version 2 ---- */

static const char *v2_mount(void)
{
	static const char side_v1[] = "/sys/fs/cgroup/unified";
	char path[CGROUP_PATH_MAX];
	const char *mount = side_v1;

	snprintf(path, sizeof(path), "%s/cgroup.procs", mount);
	if (access(path, F_OK) < 0)
		mount = "/sys/fs/cgroup";
	snprintf(path, sizeof(path), "%s/cgroup.subtree_control", mount);
	return geteuid() == 0 && access(path, W_OK) == 0 ? mount : NULL;
}

/* An ordinary user has one cgroup, for sessions and everything else. */
static int delegated_make(void **state)
{
	const char *mount = v2_mount();
	struct world *w;

	world_make(state);
	w = *state;
	w->caps = (struct cgroup_caps){.kind = CGROUP_V2, .shared = 1};
	for (int i = 0; mount && i < CGROUP_CONTROLLERS; i++)
		snprintf(w->caps.dir[i], CGROUP_PATH_MAX, "%s/cbtest-%d", mount,
			(int)getpid());
	return mount ? mkdir(w->caps.dir[0], 0755) : 0;
}

static int delegated_end(void **state)
{
	char top[CGROUP_PATH_MAX];

	strcpy(top, ((struct world *)*state)->caps.dir[0]);
	world_end(state);
	return top[0] ? rmdir(top) : 0;
}

static void in_a_delegated_cgroup_only_dead_sessions_are_cleared(void **state)
{
	static const char *const foreign[] = {"cellblock-host",
		"cellblock-pid-", "cellblock-pid-1x", "pid-4"};
	struct world *w = *state;
	struct cgroup dead, living;
	struct child c;
	struct err e;

	if (!v2_mount())
		SKIP("no version 2 cgroup may be made here");
	assert_int_equal(open_named(w, &dead, "pid-1", &e), 0);
	assert_int_equal(open_named(w, &living, "pid-2", &e), 0);
	c = child_start(do_nothing);
	move_in(&dead, c.pid);
	child_go(&c);
	assert_int_equal(child_result(&c), 1);
	cgroup_close(&dead);
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
		char path[CGROUP_PATH_MAX + 32];

		snprintf(path, sizeof(path), "%s/%s", w->caps.dir[0],
			foreign[i]);
		assert_int_equal(mkdir(path, 0755), 0);
	}

	assert_int_equal(cgroup_place(&w->cg, &w->caps, NULL, &e), 0);
	cgroup_clear_dead(&w->cg, NULL, NULL);
	assert_int_equal(dirs_exist(&dead), 0);
	assert_true(is_killed(c.pid));
	/* No process is in it, as between two jails. */
	assert_int_equal(dirs_exist(&living), 1);
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
		char path[CGROUP_PATH_MAX + 32];

		snprintf(path, sizeof(path), "%s/%s", w->caps.dir[0],
			foreign[i]);
		assert_int_equal(rmdir(path), 0);
	}
	/* control: the lock alone spared the session */
	cgroup_close(&living);
	cgroup_clear_dead(&w->cg, NULL, NULL);
	assert_int_equal(dirs_exist(&living), 0);
	child_end(&c);
}

/* Freezing and killing need no controller, so they work wherever version 2 is
 * mounted, even where version 1 has all the controllers. */
static void version_2_freezes_and_kills(void **state)
{
	struct world *w = *state;
	const char *mount = v2_mount();
	struct child c;
	struct err e;

	if (!mount)
		SKIP("no version 2 cgroup may be made here");
	w->caps = (struct cgroup_caps){.kind = CGROUP_V2};
	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		snprintf(
			w->caps.dir[i], CGROUP_PATH_MAX, "%s/cellblock", mount);
	open_ok(w);
	/* control: no limit counts as enforced without its controller */
	assert_int_equal(w->cg.enforced, 0);
	start_inside(w, &c, count_for_ever);
	assert_int_equal(child_result(&c), 1);
	if (cgroup_freeze(&w->cg, 1, SOON_MS, &e) < 0)
		fail_msg("%s", e.msg);
	if (cgroup_freeze(&w->cg, 0, SOON_MS, &e) < 0)
		fail_msg("%s", e.msg);
	assert_true(cpu_now(w) > 0);
	assert_int_equal(cgroup_freeze(&w->cg, 1, SOON_MS, &e), 0);
	if (cgroup_remove(&w->cg, SOON_MS, &e) < 0)
		fail_msg("%s", e.msg);
	assert_true(is_killed(c.pid));
	child_end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(frozen_processes_use_no_cpu_and_continue_when_thawed),
		TEST(a_frozen_cgroup_can_be_killed),
		TEST(an_open_cgroup_is_used_without_privilege),
		TEST(a_process_can_enter_by_itself),
		TEST(the_cgroup_of_a_dead_session_is_removed),
		TEST(the_cpu_limit_is_lifted_before_removal),
		cmocka_unit_test_setup_teardown(
			the_janitor_kills_the_processes_and_removes_the_cgroup,
			init_helper_fork, world_end),
		cmocka_unit_test_setup_teardown(
			only_cgroups_of_dead_sessions_are_cleared,
			allocated_world_make, allocated_world_end),
		TEST(version_2_freezes_and_kills),
		cmocka_unit_test_setup_teardown(
			in_a_delegated_cgroup_only_dead_sessions_are_cleared,
			delegated_make, delegated_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
