/* SPDX-License-Identifier: MIT */
/*
 * test_sweep.c - pid 1 stops and kills every process of the jail
 *
 * Each test is pid 1 of a pid namespace of its own and sweeps the processes
 * that it has forked.
 */
#include "own_ns.h"

#include "jail/base/io.h"
#include "jail/init/init.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>

/* A generous deadline; it measures nothing. */
#define SOON_MS 10000

struct trial {
	int (*run)(int proc);
};

/* Runs as pid 1 of the namespace. */
static int trial_inside(void *arg)
{
	struct trial *t = arg;
	int proc;

	CHILD_CHECK(getpid() == 1, "not pid 1");
	if (mount("proc", "/proc", "proc", 0, NULL) < 0)
		return OWN_NS_NONE;
	proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHILD_CHECK(proc >= 0, "/proc");
	return t->run(proc);
}

static int trial_enter(void *arg)
{
	own_ns_enter(CLONE_NEWPID);
	return forked(trial_inside, arg);
}

static void trial_run(int (*run)(int proc))
{
	struct trial t = {run};

	own_ns_run(trial_enter, &t);
}

/* The states of a process and of its threads, in a line. */
static const char *states(int proc, pid_t pid, char *buf)
{
	char path[300], stat[512], *p = buf;
	struct dirent *de;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	while (d && (de = readdir(d))) {
		ssize_t n;
		int fd;

		snprintf(path, sizeof(path), "%d/task/%.20s/stat", (int)pid,
			de->d_name);
		fd = de->d_name[0] == '.' ? -1 : openat(proc, path, O_RDONLY);
		n = fd < 0 ? 0 : read(fd, stat, sizeof(stat) - 1);
		stat[n < 0 ? 0 : n] = '\0';
		if (n > 0)
			*p++ = strrchr(stat, ')')[2];
		close(fd);
	}
	if (d)
		closedir(d);
	*p = '\0';
	return buf;
}

static void wait_for(int proc, pid_t pid, const char *want)
{
	int64_t end = now_ms() + SOON_MS;
	char buf[64];

	while (strcmp(states(proc, pid, buf), want) != 0) {
		CHILD_CHECK(now_ms() < end, "%s, not %s", buf, want);
		usleep(1000);
	}
}

static void *spin(void *arg)
{
	for (;;)
		;
	return arg;
}

/* Its first thread ends; the others go on. */
static pid_t headless(void)
{
	pid_t pid = fork();
	pthread_t t;

	if (pid != 0)
		return pid;
	for (int i = 0; i < 2; i++)
		pthread_create(&t, NULL, spin, NULL);
	syscall(SYS_exit, 0);
	return 0;
}

static int sweep_headless(int proc)
{
	struct sweep s = {.proc_fd = proc};
	int32_t seen = 0, killed = 0;
	pid_t pid = headless();

	wait_for(proc, pid, "ZRR");
	CHILD_CHECK(sweep_stop(&s, 1, &seen, &killed) == 0, "stop");
	CHILD_CHECK(seen == 1 && killed == 0, "%d, %d", seen, killed);
	/* A thread that gets no CPU stops when it has one. */
	wait_for(proc, pid, "ZTT");
	sweep_continue();
	wait_for(proc, pid, "ZRR");
	CHILD_CHECK(sweep_kill(&s, NULL, 0, &killed) == 1, "kill");
	CHILD_CHECK(killed == 1, "%d", killed);
	CHILD_CHECK(
		kill(pid, 0) < 0 && errno == ESRCH, "the process still exists");
	return 0;
}

static void a_process_without_its_first_thread_is_stopped_and_killed(
	void **state)
{
	(void)state;
	trial_run(sweep_headless);
}

static int sweep_dead(int proc)
{
	struct sweep s = {.proc_fd = proc};
	int32_t seen = 1, killed = 1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	wait_for(proc, pid, "Z");
	CHILD_CHECK(sweep_stop(&s, 1, &seen, &killed) == 0, "stop");
	CHILD_CHECK(seen == 0 && killed == 0, "%d, %d", seen, killed);
	CHILD_CHECK(sweep_kill(&s, NULL, 0, &killed) == 1, "kill");
	CHILD_CHECK(killed == 0, "%d", killed);
	return 0;
}

static void a_zombie_does_not_count_as_running(void **state)
{
	(void)state;
	trial_run(sweep_dead);
}

/* The parent waits in the kernel for the exec of a child that is stopped first.
 */
static int sweep_vfork(int proc)
{
	struct sweep s = {.proc_fd = proc};
	int32_t seen = 0, killed = 0;
	pid_t pid = fork();

	if (pid == 0) {
		if (syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0) == 0)
			for (;;)
				pause();
		_exit(0);
	}
	wait_for(proc, pid, "D");
	CHILD_CHECK(sweep_stop(&s, 1, &seen, &killed) == 0, "stop");
	CHILD_CHECK(seen == 2 && killed == 0, "%d, %d", seen, killed);
	CHILD_CHECK(sweep_kill(&s, NULL, 0, &killed) == 1, "kill");
	return 0;
}

static void a_process_blocked_in_the_kernel_is_not_killed(void **state)
{
	(void)state;
	trial_run(sweep_vfork);
}

/* An unreadable /proc, as when no descriptor is left. */
static int sweep_blind(int proc)
{
	struct sweep s = {.proc_fd = open("/dev/null", O_RDONLY)};
	int32_t seen = 0, killed = 0;
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	wait_for(proc, pid, "S");
	CHILD_CHECK(sweep_stop(&s, 1, &seen, &killed) < 0,
		"an unreadable /proc counts as stopped");
	CHILD_CHECK(sweep_kill(&s, NULL, 0, &killed) == 0,
		"an unreadable /proc counts as killed");
	s.proc_fd = proc;
	CHILD_CHECK(sweep_stop(&s, 1, &seen, &killed) == 0, "control");
	CHILD_CHECK(sweep_kill(&s, NULL, 0, &killed) == 1, "control");
	return 0;
}

static void an_unreadable_proc_does_not_count_as_stopped(void **state)
{
	(void)state;
	trial_run(sweep_blind);
}

/* More processes than there are CPUs for them: none has had one to stop. */
#define MANY 150

/* 0: the caller. */
static void pin_to(pid_t pid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(pid, sizeof(set), &set);
}

static int sweep_starved(int proc)
{
	const struct sched_param none = {0};
	struct sweep s = {.proc_fd = proc};
	int32_t seen = 0, killed = 0;
	pid_t pids[MANY];

	pin_to(0, 1);
	for (int i = 0; i < MANY; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			for (;;)
				pause();
		wait_for(proc, pids[i], "S");
		pin_to(pids[i], 0);
		sched_setscheduler(pids[i], SCHED_IDLE, &none);
	}
	CHILD_CHECK(sweep_stop(&s, 1, &seen, &killed) == 0, "stop");
	CHILD_CHECK(seen == MANY && killed == 0, "%d, %d", seen, killed);
	/* To die they need a CPU. */
	for (int i = 0; i < MANY; i++) {
		pin_to(pids[i], 1);
		sched_setscheduler(pids[i], SCHED_OTHER, &none);
	}
	CHILD_CHECK(sweep_kill(&s, NULL, 0, &killed) == 1, "kill");
	return 0;
}

/* They burn the one CPU that the others may have. */
static void processes_that_have_no_cpu_are_not_killed(void **state)
{
	pid_t burners[3];

	(void)state;
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		skip();
	for (int i = 0; i < 3; i++) {
		burners[i] = fork();
		if (burners[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
			pin_to(0, 0);
			spin(NULL);
		}
	}
	trial_run(sweep_starved);
	for (int i = 0; i < 3; i++) {
		kill(burners[i], SIGKILL);
		waitpid(burners[i], NULL, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_process_without_its_first_thread_is_stopped_and_killed),
		cmocka_unit_test(a_zombie_does_not_count_as_running),
		cmocka_unit_test(a_process_blocked_in_the_kernel_is_not_killed),
		cmocka_unit_test(an_unreadable_proc_does_not_count_as_stopped),
		cmocka_unit_test(processes_that_have_no_cpu_are_not_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
