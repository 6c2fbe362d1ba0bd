/* SPDX-License-Identifier: MIT */
/*
 * sweep.c - stop, continue and kill everything in the jail, from pid 1
 *
 * Runs in:   init
 * Trusts:    the kernel's view in /proc, not a process's own word
 *
 * A single kill(-1, SIGSTOP) is no wall: processes that send each other
 * SIGCONT escape it. So it is repeated until two whole passes over /proc see
 * nothing that could run (during one, a process that was not looked at yet
 * may have continued one that was), and what still runs after STOP_MS and many
 * more of them is killed.
 *
 * A process is its threads: the first of them may have stopped, or ended,
 * before the others. What cannot be looked at is taken to run.
 *
 * Without a /proc nothing is seen: every number that was ever given out is
 * tried, and the warden, who has a /proc, does the looking.
 */
#include "sweep.h"

#include "jail/base/io.h"
#include "jail/base/procstat.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What runs on for so long, and for so many passes more, is killed: who is to
 * stop must have had the CPU for it, and so must who looks. */
#define STOP_MS 250
#define STOP_LOOKS 20
/* Nobody refuses to be killed: who has not gone yet has had no CPU to go with,
 * and those who look should not be what takes it. */
#define KILL_MS 20000
#define KILL_SOON_MS 100
#define KILL_LATER_MS 20
/* Unseen, the dead cannot be told from the living: look less long. */
#define BLIND_MS 100
#define UNREADABLE_MS 2000
/* No process has a higher number (PID_MAX_LIMIT). */
#define PID_LAST 4194304

static int stat_of_pid(int proc_fd, pid_t pid, struct procstat *st)
{
	char path[32];

	snprintf(path, sizeof(path), "%d/stat", (int)pid);
	return procstat_read(proc_fd, path, st);
}

/* What one process, or one thread of it, can do, least first. */
enum life {
	DEAD,
	STILL, /* stopped, or a thread that has ended */
	WAITS, /* in the kernel: it stops when it comes out */
	RUNS,
};

static enum life life_of(char state)
{
	if (strchr("XxZ", state))
		return DEAD;
	if (strchr("Tt", state))
		return STILL;
	return state == 'D' ? WAITS : RUNS;
}

/* Nothing to see: gone, or out of our sight and up to anything. */
static enum life life_unseen(void)
{
	return errno == ENOENT || errno == ESRCH ? DEAD : RUNS;
}

/* The most that any thread of a process can do. */
static enum life life_of_threads(int proc_fd, pid_t pid)
{
	char path[64];
	enum life most = STILL, life;
	struct dirent *de;
	DIR *d;
	int fd;

	snprintf(path, sizeof(path), "%d/task", (int)pid);
	fd = openat(proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		life = life_unseen();
		if (fd >= 0)
			close(fd);
		return life;
	}
	while (most < RUNS && (errno = 0, de = readdir(d))) {
		struct procstat st;

		if (!isdigit((unsigned char)de->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "%.16s/stat", de->d_name);
		life = procstat_read(fd, path, &st) < 0 ? life_unseen()
							: life_of(st.state);
		most = life > most ? life : most;
	}
	if (!de && errno)
		most = RUNS;
	closedir(d);
	return most;
}

/* A process whose first thread has ended shows Z, and lives for as long as
 * it has other threads. */
static enum life life_of_process(int proc_fd, pid_t pid)
{
	struct procstat st;
	enum life life;

	if (stat_of_pid(proc_fd, pid, &st) < 0)
		return life_unseen();
	life = life_of(st.state);
	return st.threads > 1 && life < RUNS ? life_of_threads(proc_fd, pid)
					     : life;
}

static int is_kept(pid_t pid, const int32_t *keep, int nkeep)
{
	for (int i = 0; i < nkeep; i++)
		if (keep[i] == pid)
			return 1;
	return 0;
}

/* The highest number a process may have by now: a new one's, unless they
 * have started over. */
static pid_t last_pid(struct sweep *s)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	s->last = pid > s->last ? pid : PID_LAST;
	return s->last;
}

static int each_number(struct sweep *s, int (*visit)(pid_t, void *), void *arg)
{
	pid_t last = last_pid(s);
	int r = 0;

	for (pid_t pid = 2; !r && pid <= last; pid++)
		if (kill(pid, 0) == 0)
			r = visit(pid, arg);
	return r;
}

/* Call `visit` for every process but pid 1; stops when it returns non-zero.
 * -1 when not all of them could be seen. */
static int each(struct sweep *s, int (*visit)(pid_t, void *), void *arg)
{
	struct dirent *de;
	DIR *d;
	int fd, r = 0;

	if (s->proc_fd < 0)
		return each_number(s, visit, arg);
	fd = openat(s->proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	while (!r && (errno = 0, de = readdir(d))) {
		pid_t pid = isdigit((unsigned char)de->d_name[0])
				    ? atoi(de->d_name)
				    : 0;

		if (pid > 1)
			r = visit(pid, arg);
	}
	if (!r && errno)
		r = -1;
	closedir(d);
	return r;
}

struct look {
	int proc_fd;
	int seen, killed;
	int awake; /* neither stopped nor dead */
	int kill;
};

/* What waits in the kernel is not killed for it: it may wait for the exec of
 * its child, which is stopped. */
static int look_at(pid_t pid, void *arg)
{
	struct look *l = arg;
	enum life life = life_of_process(l->proc_fd, pid);

	l->seen += life != DEAD;
	l->awake += life > STILL;
	if (life == RUNS && l->kill && kill(pid, SIGKILL) == 0)
		l->killed++;
	return 0;
}

int sweep_stop(struct sweep *s, int32_t *seen, int32_t *killed)
{
	int64_t end = now_ms() + STOP_MS;
	struct look l = {.proc_fd = s->proc_fd};
	int calm = 0, looks = 0, blind, most = 0;

	do {
		kill(-1, SIGSTOP);
		if (s->proc_fd < 0)
			return 0;
		l.seen = l.awake = l.killed = 0;
		l.kill = now_ms() >= end && looks++ >= STOP_LOOKS;
		blind = each(s, look_at, &l) < 0;
		calm = blind || l.awake ? 0 : calm + 1;
		/* Those that take a while to die are killed more than once. */
		most = l.killed > most ? l.killed : most;
		if (!calm)
			poll(NULL, 0, 1);
	} while (calm < 2 &&
		 (now_ms() < end + STOP_MS || looks < 2 * STOP_LOOKS));
	*seen = l.seen;
	*killed = most;
	return blind ? -1 : 0;
}

void sweep_continue(void)
{
	kill(-1, SIGCONT);
}

struct cull {
	int proc_fd;
	const int32_t *keep;
	int nkeep;
	int left; /* alive, not kept */
};

static int cull_one(pid_t pid, void *arg)
{
	struct cull *c = arg;

	if (is_kept(pid, c->keep, c->nkeep))
		return 0;
	/* A dead child of a kept process stays until that one buries it. */
	if (c->proc_fd >= 0 && life_of_process(c->proc_fd, pid) == DEAD)
		return 0;
	if (kill(pid, SIGKILL) == 0)
		c->left++;
	return 0;
}

/* Bury what is not kept; a kept one that died stays for reap() to tell. */
static int bury(const int32_t *keep, int nkeep)
{
	int buried = 0;
	siginfo_t si = {0};

	while (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) == 0 &&
		si.si_pid > 0) {
		if (is_kept(si.si_pid, keep, nkeep))
			break;
		if (waitpid(si.si_pid, NULL, WNOHANG) > 0)
			buried++;
		si.si_pid = 0;
	}
	return buried;
}

int sweep_kill(struct sweep *s, const int32_t *keep, int nkeep, int32_t *killed)
{
	int64_t began = now_ms(), most, now;
	struct cull c = {.proc_fd = s->proc_fd, .keep = keep, .nkeep = nkeep};
	int first = 1, at_first = 0, seen;

	for (;;) {
		kill(-1, SIGSTOP);
		c.left = 0;
		seen = each(s, cull_one, &c) == 0;
		if (seen && c.left == 0)
			break;
		if (first)
			at_first = c.left;
		first = 0;
		bury(keep, nkeep);
		now = now_ms();
		most = s->proc_fd < 0 ? BLIND_MS
		       : seen	      ? KILL_MS
				      : UNREADABLE_MS;
		if (now >= began + most)
			break;
		poll(NULL, 0, now < began + KILL_SOON_MS ? 1 : KILL_LATER_MS);
	}
	bury(keep, nkeep);
	*killed = at_first;
	return (seen && c.left == 0) || s->proc_fd < 0;
}

struct newest {
	int proc_fd;
	pid_t parent, pid;
	const pid_t *keep;
	int nkeep;
	uint64_t started; /* not before; then, by the newest */
};

/* What /proc calls the time that was `ms` ago; as it counts in hundredths of a
 * second, and our clock takes its time to get here, a little before that. */
static uint64_t ticks_before(int64_t ms)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	ms = t.tv_sec * 1000 + t.tv_nsec / 1000000 - ms;
	return (uint64_t)(ms * sysconf(_SC_CLK_TCK) / 1000 - 2);
}

static int newest_visit(pid_t pid, void *arg)
{
	struct newest *l = arg;
	struct procstat st;

	if (is_kept(pid, l->keep, l->nkeep) ||
		stat_of_pid(l->proc_fd, pid, &st) < 0)
		return 0;
	if (st.ppid != l->parent || st.start_ticks < l->started)
		return 0;
	l->pid = pid;
	l->started = st.start_ticks;
	return 0;
}

pid_t sweep_newest_child(
	struct sweep *s, pid_t parent, int64_t ms, const pid_t *keep, int nkeep)
{
	struct newest l = {.proc_fd = s->proc_fd,
		.parent = parent,
		.keep = keep,
		.nkeep = nkeep,
		.started = ticks_before(ms)};

	if (s->proc_fd >= 0)
		each(s, newest_visit, &l);
	return l.pid;
}
