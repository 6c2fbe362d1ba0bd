/* SPDX-License-Identifier: MIT */
/*
 * sweep.c - stop, continue and kill everything in the jail, from pid 1
 *
 * Runs in:   init
 * Trusts:    the kernel's view in /proc, not the word of a process
 * Leaves:    every process stopped, or killed and reaped
 *
 * A single kill(-1, SIGSTOP) is no wall: processes that send each other SIGCONT
 * escape it. So it is repeated until two whole passes over /proc find nothing
 * that could run. One pass is not enough: a process that it reaches late may
 * have continued one that it found stopped. A process that still runs after
 * STOP_MS and STOP_PASSES is killed, but for one that has not had a CPU since:
 * with the signal pending it stops when the host gives it one.
 *
 * A process is all of its threads: the first may have stopped, or ended,
 * before the others. A process that cannot be read is taken to run.
 *
 * Without a /proc init sees nothing. It then tries every pid that was ever
 * given out, and the warden, which has a /proc, does the looking.
 */
#include "jail/init/init.h"

#include "jail/base/io.h"
#include "jail/base/procstat.h"
#include "jail/base/procstatus.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How long a process may run on before it is killed. It needs the CPU to stop,
 * and init needs the CPU to see it: so passes count as well as time. */
#define STOP_MS 250
#define STOP_PASSES 20
/* The same where none may be killed for it. */
#define PAUSE_MS 2000
/* Most processes that are remembered from the first pass, and how often one may
 * have had a CPU since: in the kernel, on its way to the stop. */
#define FIRST_MAX 4096
#define FIRST_SWITCHES 3
/* A process that still waits in the kernel then waits for something that only
 * another process can end. It stops when it comes out. */
#define STOP_WAITS_MS 50
/* No process can refuse to be killed. One that has not exited yet has not been
 * scheduled yet; the passes must not take the CPU from it. */
#define KILL_MS 20000
#define KILL_SOON_MS 100
#define KILL_LATER_MS 20
/* Without a /proc the dead cannot be told from the living. */
#define BLIND_MS 100
#define UNREADABLE_MS 2000
/* To find the newest child. */
#define NEWEST_MS 300
/* No process has a higher number (PID_MAX_LIMIT). */
#define PID_LAST 4194304

/* ---- what a process can do ---- */

/* The states of a process, or of one of its threads, least active first. */
enum life {
	DEAD,
	STILL, /* stopped, or a thread that has ended */
	WAITS, /* in the kernel, or for a CPU: it stops when it comes out */
	RUNS,
};

/* From what procstatus_read() returned. */
static enum life life_read(int r, const struct procstatus *st)
{
	if (r < 0)
		return procs_is_gone() ? DEAD : RUNS;
	if (strchr("XxZ", st->state))
		return DEAD;
	if (strchr("Tt", st->state))
		return STILL;
	return st->state == 'D' ? WAITS : RUNS;
}

struct threads {
	int proc_fd;
	pid_t pid;
	enum life most; /* the most that any of them can do */
	int64_t switches;
};

static int visit_thread(pid_t tid, void *arg)
{
	struct threads *t = arg;
	struct procstatus st = {.state = 'X'};
	char path[64];
	enum life life;

	snprintf(
		path, sizeof(path), "%d/task/%d/status", (int)t->pid, (int)tid);
	life = life_read(procstatus_read(t->proc_fd, path, &st), &st);
	t->most = life > t->most ? life : t->most;
	t->switches += life == DEAD ? 0 : st.switches;
	return 0;
}

static enum life life_of_threads(int proc_fd, pid_t pid, int64_t *switches)
{
	struct threads t = {proc_fd, pid, STILL, 0};
	char path[32];

	snprintf(path, sizeof(path), "%d/task", (int)pid);
	if (procstat_each(proc_fd, path, 2, visit_thread, &t) < 0)
		return procs_is_gone() ? DEAD : RUNS;
	*switches = t.switches;
	return t.most;
}

/* A process whose first thread has ended shows Z, and lives for as long as it
 * has other threads. *switches is of all of them. */
static enum life life_of(int proc_fd, pid_t pid, int64_t *switches)
{
	struct procstatus st = {.threads = 0};
	enum life life;
	char path[32];

	snprintf(path, sizeof(path), "%d/status", (int)pid);
	life = life_read(procstatus_read(proc_fd, path, &st), &st);
	*switches = st.switches;
	return st.threads > 1 ? life_of_threads(proc_fd, pid, switches) : life;
}

/* ---- every process ---- */

/* The highest pid that is in use: a new one, unless the numbers have wrapped
 * around. */
static pid_t last_pid(struct sweep *s)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	/* A guest may have stopped it. */
	if (pid > 0 && kill(pid, SIGKILL) == 0)
		waitpid(pid, NULL, 0);
	s->last = pid > s->last ? pid : PID_LAST;
	return s->last;
}

/* Visit every process but pid 1. */
static int visit_each(struct sweep *s, int (*visit)(pid_t, void *), void *arg)
{
	pid_t last;
	int r = 0;

	if (s->proc_fd >= 0)
		return procstat_each(s->proc_fd, ".", 2, visit, arg);
	last = last_pid(s);
	for (pid_t pid = 2; !r && pid <= last; pid++)
		if (kill(pid, 0) == 0)
			r = visit(pid, arg);
	return r;
}

struct sweep_first {
	pid_t pid;
	int64_t switches;
};

struct sweep_pass {
	int proc_fd;
	int seen, killed;
	int awake; /* neither stopped nor dead */
	int kill;
	enum life calm; /* as good as stopped */
	/* Those that ran at the first pass, by pid as /proc lists them, and
	 * their switches then. */
	int first, nfirst;
	struct sweep_first *ran;
};

static int by_pid(const void *a, const void *b)
{
	const struct sweep_first *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* True if it has hardly had a CPU since the first pass. */
static int waits_for_cpu(struct sweep_pass *p, pid_t pid, int64_t switches)
{
	const struct sweep_first now = {pid, switches}, *first;

	if (p->first && p->nfirst < FIRST_MAX)
		p->ran[p->nfirst++] = now;
	first = bsearch(&now, p->ran, (size_t)p->nfirst, sizeof(now), by_pid);
	return first && switches <= first->switches + FIRST_SWITCHES;
}

/* A process that waits in the kernel is not killed: it may wait for the exec of
 * its child, which is stopped. */
static int visit_stopped(pid_t pid, void *arg)
{
	struct sweep_pass *p = arg;
	int64_t switches = 0;
	enum life life = life_of(p->proc_fd, pid, &switches);

	if (life == RUNS && waits_for_cpu(p, pid, switches))
		life = WAITS;
	p->seen += life != DEAD;
	p->awake += life > p->calm;
	if (life == RUNS && p->kill && kill(pid, SIGKILL) == 0)
		p->killed++;
	return 0;
}

int sweep_stop(struct sweep *s, int kills, int32_t *seen, int32_t *killed)
{
	int64_t end = now_ms() + STOP_MS;
	static struct sweep_first ran[FIRST_MAX]; /* large, and not cleared */
	struct sweep_pass p = {.proc_fd = s->proc_fd, .first = 1, .ran = ran};
	int calm = 0, passes = 0, blind, most = 0;

	do {
		kill(-1, SIGSTOP);
		if (s->proc_fd < 0)
			return 0;
		p.seen = p.awake = p.killed = 0;
		p.kill = now_ms() >= end && passes++ >= STOP_PASSES && kills;
		p.calm = now_ms() >= end - STOP_MS + STOP_WAITS_MS ? WAITS
								   : STILL;
		blind = visit_each(s, visit_stopped, &p) < 0;
		p.first = 0;
		calm = blind || p.awake ? 0 : calm + 1;
		/* One that takes a while to die is killed more than once. */
		most = p.killed > most ? p.killed : most;
		if (!calm)
			poll(NULL, 0, 1);
	} while (calm < 2 && (now_ms() < end + (kills ? STOP_MS : PAUSE_MS) ||
				     (kills && passes < 2 * STOP_PASSES)));
	*seen = p.seen;
	*killed = most;
	return blind || (!kills && calm < 2) ? -1 : 0;
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

static int visit_culled(pid_t pid, void *arg)
{
	struct cull *c = arg;
	int64_t switches;

	if (procs_is_among(pid, c->keep, c->nkeep))
		return 0;
	/* A dead child of a kept process stays until its parent reaps it. */
	if (c->proc_fd >= 0 && life_of(c->proc_fd, pid, &switches) == DEAD)
		return 0;
	if (kill(pid, SIGKILL) == 0)
		c->left++;
	return 0;
}

/* Reap the dead, up to the first that is kept: init.c reports its death. */
static void reap_dead(const int32_t *keep, int nkeep)
{
	siginfo_t si = {0};

	while (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) == 0 &&
		si.si_pid > 0 && !procs_is_among(si.si_pid, keep, nkeep)) {
		waitpid(si.si_pid, NULL, WNOHANG);
		si.si_pid = 0;
	}
}

int sweep_kill(struct sweep *s, const int32_t *keep, int nkeep, int32_t *killed)
{
	int64_t began = now_ms(), most, now;
	struct cull c = {.proc_fd = s->proc_fd, .keep = keep, .nkeep = nkeep};
	int seen;

	for (int pass = 0;; pass++) {
		kill(-1, SIGSTOP);
		c.left = 0;
		seen = visit_each(s, visit_culled, &c) == 0;
		if (pass == 0)
			*killed = c.left;
		if (seen && c.left == 0)
			break;
		reap_dead(keep, nkeep);
		now = now_ms();
		most = s->proc_fd < 0 ? BLIND_MS
		       : seen	      ? KILL_MS
				      : UNREADABLE_MS;
		if (now >= began + most)
			break;
		poll(NULL, 0, now < began + KILL_SOON_MS ? 1 : KILL_LATER_MS);
	}
	reap_dead(keep, nkeep);
	return (seen && c.left == 0) || s->proc_fd < 0;
}

struct newest {
	int proc_fd;
	pid_t parent, pid;
	const pid_t *keep;
	int nkeep;
	uint64_t started; /* at first the earliest start; then that of `pid` */
};

/* A time of now_ms() in the ticks of /proc. Two ticks earlier, because /proc
 * rounds down and one clock is read later. */
static uint64_t ticks_at(int64_t ms)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	ms += t.tv_sec * 1000 + t.tv_nsec / 1000000 - now_ms();
	return (uint64_t)(ms * sysconf(_SC_CLK_TCK) / 1000 - 2);
}

static int visit_newest(pid_t pid, void *arg)
{
	struct newest *n = arg;
	struct procstat st;
	char path[32];

	snprintf(path, sizeof(path), "%d/stat", (int)pid);
	if (procs_is_among(pid, n->keep, n->nkeep) || pid == getpid() ||
		procstat_read(n->proc_fd, path, &st) < 0 ||
		st.ppid != n->parent || st.start_ticks < n->started)
		return 0;
	n->pid = pid;
	n->started = st.start_ticks;
	return 0;
}

static int64_t look_for_newest(void *arg)
{
	struct newest *n = arg;

	procstat_each(n->proc_fd, ".", 2, visit_newest, n);
	return n->pid;
}

pid_t sweep_newest_child(struct sweep *s, pid_t parent, int64_t since_ms,
	const pid_t *keep, int nkeep)
{
	struct newest n = {.proc_fd = s->proc_fd,
		.parent = parent,
		.keep = keep,
		.nkeep = nkeep,
		.started = ticks_at(since_ms)};

	int64_t pid = 0;

	if (s->proc_fd >= 0)
		pid = init_helper_run(look_for_newest, &n, NEWEST_MS);
	return pid > 0 ? (pid_t)pid : 0;
}
