/* SPDX-License-Identifier: MIT */
/*
 * jail.c - one jail: built, stopped, continued, looked at and ended
 *
 * Runs in:   warden
 * Holds:     capabilities in the session's user namespace
 * Trusts:    its own init for shape; the kernel's freezer, its counters, and
 *            what /proc says
 * Leaves:    at the jail's end no process of it, and no descriptor
 *
 * The freezer holds by itself. A process that was stopped by a signal could be
 * continued from outside, or in a way that nobody knows yet: while the jail is
 * stopped by signals, its CPU time is looked at.
 */
#include "jail/warden/jails/jails.h"

#include "jail/base/array.h"
#include "jail/base/io.h"
#include "jail/init/init.h"
#include "jail/walls/walls.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>

/* Init builds the jail; answers STOP; answers KILL, which takes longer than to
 * kill what can be killed at all. */
#define BUILD_MS 20000
#define STOP_MS 3000
/* How long a jail is stopped for until it has been weighed. */
#define WEIGHING_MS 20000
#define PAUSE_MS 5000
#define HEAR_MS 100
#define KILL_MS 25000
/* Without a /proc in the jail: everything is seen stopped. */
#define VERIFY_MS 50
/* The freezer has frozen all that can be frozen: a process that has used up
 * its share of the CPU freezes when it gets more. */
#define FREEZE_MS 1000
#define FREEZE_LOOK_MS 50
/* A crowd is more processes and threads than both. */
#define CROWD_LEAST 24
#define CROWD_OF_CORE 8
/* From the stop of a jail to the first look at it. */
#define QUIET_MS 1000
/* Time between two checks of memory while no cell runs. They take at most one
 * part in MEMORY_SHARE_DEN of a core. */
#define MEMORY_MS 100
#define MEMORY_SHARE_DEN 32
/* Memory runs short when more than this part of it is used. */
#define SHORT_NUM 3
#define SHORT_DEN 4
/* A measurement is overdue after 1000 ms, or after SHORT_MS when memory is
 * short. */
#define LATE_MS 1000
#define SHORT_MS 150
/* CPU time that stopped processes may seem to use: the time of one that died
 * is rounded differently. */
#define ROUND_MS 30
/* The helper has worked on a tty by then, unless a guest holds it. */
#define TTY_MS 300

/* ---- life ---- */

void warden_jail_init(struct warden_jail *j, struct link *l, struct site *s,
	struct side_programs *b)
{
	*j = (struct warden_jail){.link = l,
		.site = s,
		.sides = b,
		.tty_master = -1,
		.tty_slave = -1,
		.line = -1,
		.proc = -1,
		.tmp = {-1, -1}};
	helper_init(&j->helper);
	tally_init(&j->tally, &(struct tally_place){.home = &s->home,
				      .procs = &j->place.procs,
				      .tmp = j->tmp,
				      .front = &l->front});
}

int warden_jail_start(struct warden_jail *j, struct err *e)
{
	struct init in = {.plan = &j->site->plan,
		.cgroup = &j->site->cgroup,
		.host = &j->site->host,
		.spec = j->site->spec,
		.home_fd = j->site->home.root};
	int pair[2];

	if (warden_jail_is_uncounted(j) &&
		tally_begin(&j->tally, j->site->spec->limits.memory_bytes) < 0)
		return err_errno(e, "share memory with the jail");
	in.memory = j->tally.memory;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, "create a socket pair");
	in.sock = pair[1];
	link_attach(j->link, pair[0]);
	j->init = init_start(&in, e);
	j->memory_ms = now_ms() + MEMORY_MS;
	close(pair[1]);
	if (j->init > 0)
		return 0;
	j->init = 0;
	return -1;
}

/* Where the jail's processes are seen: through its own /proc, or, where it has
 * none, by their pid namespace through ours. */
static int look_through(
	struct warden_jail *j, const struct wire_init *m, struct err *e)
{
	struct stat st;

	if (fstat(j->tty_slave, &st) < 0)
		return err_errno(e, "look at the tty");
	j->place.line = j->line;
	j->place.tty_master = j->tty_master;
	j->place.tty_slave = j->tty_slave;
	j->place.tty_dev = st.st_rdev;
	if (j->proc >= 0) {
		procs_source_jail(&j->place.procs, j->proc);
		return 0;
	}
	j->proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (j->proc < 0)
		return err_errno(e, "open /proc");
	procs_source_host(&j->place.procs, j->proc, j->init, (dev_t)m->ns_dev,
		(ino_t)m->ns_ino);
	return 0;
}

/* INIT_BUILT brings the jail's descriptors. */
int warden_jail_await(struct warden_jail *j, struct err *e)
{
	int *slots[] = {&j->tty_master, &j->tty_slave, &j->line, &j->tmp[0],
		&j->tmp[1], &j->proc};
	enum { SLOTS = COUNT(slots) };
	int64_t deadline = now_ms() + BUILD_MS;
	int fds[SLOTS], ready = 0, r = -1;
	struct wire_init m;

	while (!ready && link_ms_until(deadline) > 0)
		if (link_wait(j->link, -1, deadline, &ready) == SESSION_OVER)
			return SESSION_OVER;
	if (ready)
		r = link_take(j->link, &m, fds, SLOTS);
	if (r <= 0)
		return err_set(e, "build the jail: its first process died");
	if (m.type == INIT_ERROR) {
		*e = m.err;
		return -1;
	}
	for (int i = 0; i < SLOTS; i++)
		*slots[i] = fds[i];
	if (m.type != INIT_BUILT)
		return err_set(e, "build the jail: unexpected message");
	j->no_proc = m.no_proc;
	j->shared = m.shared;
	j->deaf = m.deaf;
	if (!j->rows) {
		j->rows = j->site->spec->rows;
		j->cols = j->site->spec->cols;
	}
	io_set_nonblock(j->line, 1);
	if (j->site->spec->mode == SPEC_SESSION)
		j->ttys = TTYS_NEW;
	j->size_owed = j->rows != j->site->spec->rows ||
		       j->cols != j->site->spec->cols;
	return look_through(j, &m, e);
}

void warden_jail_end(struct warden_jail *j)
{
	struct warden_jail_usage u;

	if (j->init > 0) {
		if (j->proc >= 0)
			warden_jail_measure(j, &u);
		kill(j->init, SIGKILL);
		warden_jail_thaw(j); /* a frozen process does not die */
		link_reap(j->init);
	}
	helper_end(&j->helper);
	j->init = 0;
	tally_end(&j->tally, j->cpu_ms);
	j->swept = j->quiet = j->left = 0;
	j->ttys = TTYS_UNKNOWN;
	j->baseline_at = 0;
	link_detach(j->link);
	fd_drop(&j->tty_master);
	fd_drop(&j->tty_slave);
	fd_drop(&j->line);
	fds_drop(j->tmp, APPLY_TMPFS);
	fd_drop(&j->proc);
}

/* The descriptor of a file system whose size a lease may change; -1. */
static int changes_size(
	const struct warden_jail *j, const struct plan_op *op, int *tmp)
{
	if (op->type == PLAN_HOME_MAKE)
		return j->site->home.root;
	if (op->type == PLAN_TMPFS && op->flags & PLAN_F_COUNTED)
		return j->tmp[(*tmp)++];
	return -1;
}

int warden_jail_lease(struct warden_jail *j, const struct plan *plan,
	const struct spec_lease *c, struct err *e)
{
	const struct plan *was = &j->site->plan;
	int tmp = 0;

	for (size_t i = 0; i < plan->n; i++) {
		const struct plan_op *op = &plan->ops[i];
		int fd = changes_size(j, op, &tmp);

		if (!op->options || !strcmp(op->options, was->ops[i].options))
			continue;
		if (fd < 0)
			return err_set(e, "%s: its size is fixed", op->target);
		if (mount_change(fd, op->options,
			    op->target ? op->target : "/home", e) < 0)
			return -1;
	}
	tally_lower(&j->tally, c->limits.memory_bytes);
	j->rows = c->rows;
	j->cols = c->cols;
	return c->rows > 0 ? pty_set_size(j->tty_slave, c->rows, c->cols, e)
			   : 0;
}

/* ---- stopping ---- */

int warden_jail_crowd(const struct warden_jail *j)
{
	cpu_set_t cores;
	int n;

	if (!cgroup_can_freeze(&j->site->cgroup) ||
		!cgroup_person_has_shares(&j->site->cgroup) ||
		sched_getaffinity(0, sizeof(cores), &cores) < 0)
		return 0;
	n = CPU_COUNT(&cores) * CROWD_OF_CORE;
	return n > CROWD_LEAST ? n : CROWD_LEAST;
}

void warden_jail_rest(struct warden_jail *j, int on)
{
	if (j->rests != on)
		cgroup_freeze(&j->site->cgroup, on, on ? 0 : FREEZE_MS, NULL);
	j->rests = on;
}

void warden_jail_thaw(struct warden_jail *j)
{
	warden_jail_rest(j, 0);
	if (j->frozen)
		cgroup_freeze(&j->site->cgroup, 0, FREEZE_MS, NULL);
	j->frozen = 0;
	j->asked_still = 0;
	j->baseline_at = 0;
}

int warden_jail_kill(
	struct warden_jail *j, const struct link_pids *kept, int32_t *killed)
{
	int64_t deadline = now_ms() + KILL_MS;
	struct wire_init m;
	int r;

	*killed = 0;
	j->swept = 1;
	j->ttys = TTYS_UNKNOWN;
	if (link_ask(j->link, INIT_KILL, kept, NULL, 0) < 0)
		return -1;
	r = link_await(j->link, INIT_KILLED, &m, deadline);
	if (r < 0)
		return r;
	*killed = m.killed;
	j->left = 0;
	/* The processes that were weighed are gone; an answer on its way tells
	 * of them, too. */
	tally_forget(&j->tally);
	j->stale = helper_is_asked(&j->helper);
	return m.all_gone ? 0 : 1;
}

/* Init, without a /proc, stopped what it could not see. Look for processes
 * that run on, and have init kill them. */
static int verify_stopped(struct warden_jail *j, const struct link_pids *kept,
	pid_t live, int32_t *killed)
{
	int64_t end = now_ms() + VERIFY_MS;
	struct link_pids spared = *kept;
	struct procs p;
	int r;

	while ((r = procs_sample(&j->place.procs, PROCS_RUNNING, &p, NULL)) ==
			0 &&
		p.running > 0) {
		if (now_ms() < end) {
			link_poll(NULL, 0, 1);
			continue;
		}
		spared.v[spared.n++] = live;
		r = warden_jail_kill(j, &spared, killed);
		return r > 0 ? 0 : r;
	}
	return r;
}

static int sweep_all(struct warden_jail *j, const struct link_pids *kept,
	pid_t live, int32_t *killed)
{
	int64_t now = now_ms();
	struct wire_init m;
	int r;

	j->swept = 1;
	j->quiet_ms = QUIET_MS;
	j->look_ms = now + j->quiet_ms;
	j->stopped_cpu_ms = -1;
	if (link_ask(j->link, INIT_STOP, kept, NULL, 0) < 0)
		return -1;
	r = link_await(j->link, INIT_STOPPED, &m, now + STOP_MS);
	if (r < 0)
		return r;
	if (m.unseen)
		return -1;
	*killed = m.killed;
	return j->no_proc ? verify_stopped(j, kept, live, killed) : 0;
}

/* -1: something does not freeze, and all is thawed. A cell that comes meanwhile
 * does not wait for it. */
static int freeze_all(struct warden_jail *j)
{
	int64_t end = now_ms() + FREEZE_MS;
	int next = -1;

	j->frozen = 1;
	while (cgroup_freeze(&j->site->cgroup, 1, FREEZE_LOOK_MS, NULL) < 0) {
		next = link_request_peek(j->link);
		if (next != FRONT_RUN && now_ms() < end)
			continue;
		warden_jail_thaw(j);
		return next == FRONT_RUN ? 0 : -1;
	}
	return 0;
}

int warden_jail_stop(struct warden_jail *j, const struct link_pids *kept,
	pid_t live, int32_t *killed)
{
	int r = -1;

	*killed = 0;
	j->baseline_at = 0;
	if (cgroup_can_freeze(&j->site->cgroup))
		r = freeze_all(j);
	/* The sweep kills a process that does not freeze. */
	if (r < 0)
		r = sweep_all(j, kept, live, killed);
	if (r == 0 && j->keys_owed)
		warden_jail_return_keys(j);
	return r;
}

int warden_jail_is_stopped(const struct warden_jail *j)
{
	return j->frozen || j->swept;
}

/* Stop every process for as long as the jail is weighed. 0, or -1. */
static int pause_jail(struct warden_jail *j)
{
	int64_t now = now_ms();
	struct wire_init m;

	if (j->no_proc || link_ask(j->link, INIT_PAUSE, NULL, NULL, 0) < 0 ||
		link_await(j->link, INIT_STOPPED, &m, now + PAUSE_MS) < 0 ||
		m.unseen)
		return -1;
	j->weighing_ms = now;
	return 0;
}

int warden_jail_judge(struct warden_jail *j, enum tally_verdict memory)
{
	if (memory == TALLY_DOUBTFUL)
		tally_forget(&j->tally);
	if (memory == TALLY_DOUBTFUL && !j->weighing_ms && pause_jail(j) == 0)
		return 0;
	if (memory == TALLY_DOUBTFUL && j->weighing_ms &&
		now_ms() - j->weighing_ms <= WEIGHING_MS)
		return 0;
	if (memory == TALLY_FITS && j->weighing_ms) {
		j->asked_still = 0;
		link_ask(j->link, INIT_UNPAUSE, NULL, NULL, 0);
	}
	if (j->weighing_ms)
		j->paused_ms += now_ms() - j->weighing_ms;
	j->weighing_ms = 0;
	return memory != TALLY_FITS;
}

void warden_jail_note_quiet(struct warden_jail *j, int quiet)
{
	j->quiet = quiet;
}

void warden_jail_note_ctl(struct warden_jail *j, ino_t ctl)
{
	j->ctl = ctl;
}

void warden_jail_continue(struct warden_jail *j, const struct link_pids *kept)
{
	warden_jail_thaw(j);
	if (j->swept)
		link_ask(j->link, INIT_CONTINUE, kept, NULL, 0);
	j->swept = 0;
	j->ttys = TTYS_UNKNOWN;
	j->memory_ms = now_ms() + MEMORY_MS;
}

int warden_jail_resume(struct warden_jail *j, pid_t pid)
{
	/* Input that the last guest has not read of its cell must not become
	 * the beginning of the next: here on its way, by init where it arrived.
	 */
	tcflush(j->line, TCOFLUSH);
	j->swept = 0;
	j->asked_still = 0;
	return link_ask_pid(j->link, INIT_RESUME, pid);
}

int warden_jail_ran(struct warden_jail *j, int64_t *due_ms)
{
	int64_t now = now_ms(), was = j->stopped_cpu_ms;
	struct procs p;

	*due_ms = j->swept ? j->look_ms - now : INT64_MAX;
	if (*due_ms > 0)
		return 0;
	/* A jail that has stood still stays so, as far as it can be told: a
	 * session at rest wakes seldom, and ever more so. */
	j->quiet_ms *= 2;
	*due_ms = j->quiet_ms;
	j->look_ms = now + *due_ms;
	if (procs_sample(&j->place.procs, PROCS_CPU, &p, NULL) < 0)
		return 0;
	j->stopped_cpu_ms = p.cpu_ms;
	return was >= 0 && p.cpu_ms > was + ROUND_MS;
}

/* ---- what it uses ---- */

int warden_jail_is_uncounted(const struct warden_jail *j)
{
	return !(j->site->cgroup.enforced & CGROUP_LIMIT_MEMORY);
}

/* A look at a jail that is stopped, or quiet, never has to wait. */
static void look_stopped(struct warden_jail *j)
{
	struct procs p;

	if (procs_sample(&j->place.procs, PROCS_CPU, &p, NULL) == 0)
		tally_add_cpu(&j->tally, p.cpu_ms + p.init_ms);
}

int64_t warden_jail_bytes(const struct warden_jail *j)
{
	return warden_jail_is_uncounted(j) ? tally_bytes(&j->tally)
					   : cgroup_memory(&j->site->cgroup);
}

int warden_jail_is_short(const struct warden_jail *j)
{
	return warden_jail_bytes(j) >
	       j->site->spec->limits.memory_bytes / SHORT_DEN * SHORT_NUM;
}

/* Add the counts for all processes together, the dead too. A cgroup counts the
 * programs beside the session with it. */
static void count_totals(struct warden_jail *j, struct warden_jail_usage *u)
{
	struct cgroup_usage c;

	cgroup_usage(&j->site->cgroup, &c);
	if (c.cpu_ns >= 0)
		c.cpu_ns -= side_cpu_ms(j->sides) * 1000000;
	if (c.cpu_ns < 0 && j->site->cgroup.file[CGROUP_F_CPU] >= 0)
		c.cpu_ns = 0;
	if (c.cpu_ns < 0 && (j->quiet || warden_jail_is_stopped(j)))
		look_stopped(j);
	*u = (struct warden_jail_usage){.peak_bytes = c.peak_bytes,
		.cpu_ms = c.cpu_ns >= 0 ? c.cpu_ns / 1000000 : j->tally.cpu_ms,
		.fork_fails = c.fork_fails,
		.oom_kills = c.oom_kills,
		.limit_hits = c.limit_hits};
	if (u->cpu_ms > j->cpu_ms)
		j->cpu_ms = u->cpu_ms;
}

/* The kernel kills for a charge of eight pages at most, and a page has at most
 * 64 KiB: where it killed for a limit, the use was as close to the limit. */
#define CHARGE_MAX (8 * (64 << 10))

enum jail_limit warden_jail_oom_limit(const struct warden_jail *j)
{
	int64_t limit = j->site->spec->limits.memory_bytes;
	struct cgroup_usage c;
	bool own;

	cgroup_usage(&j->site->cgroup, &c);
	own = c.limit_hits >= 0
		      ? c.limit_hits > j->hits_seen
		      : !c.peak_bytes || c.peak_bytes >= limit - CHARGE_MAX;
	return own ? LIMIT_MEMORY : LIMIT_ALL;
}

/* The peak, where no cgroup has it: of what was measured. */
static int64_t peak_bytes(struct warden_jail *j)
{
	int64_t now;

	if (warden_jail_is_uncounted(j))
		return j->tally.peak_bytes;
	now = warden_jail_bytes(j);
	if (now > j->peak_bytes)
		j->peak_bytes = now;
	return j->peak_bytes;
}

int64_t warden_jail_peak(struct warden_jail *j)
{
	struct cgroup_usage c = {0};

	if (!warden_jail_is_uncounted(j))
		cgroup_usage(&j->site->cgroup, &c);
	return c.peak_bytes > 0 ? c.peak_bytes : peak_bytes(j);
}

/* A program beside the session gives way to it: the session's own limit is as
 * if there were none. */
static int64_t others_bytes(const struct warden_jail *j)
{
	return j->site->spec->side ? side_bytes(j->sides) : 0;
}

static enum helper_haste most_haste(const struct warden_jail *j)
{
	return j->weighing_ms ? HELPER_STOPPED : HELPER_URGENT;
}

static enum tally_waits waits_for_helper(const struct warden_jail *j)
{
	if (j->weighing_ms)
		return TALLY_STOPPED;
	return helper_is_free(&j->helper, HELPER_URGENT) ? TALLY_FREE
							 : TALLY_ASKED;
}

static void measure(struct warden_jail *j, struct warden_jail_usage *u,
	enum tally_waits waits)
{
	int watched = warden_jail_is_uncounted(j), files;
	struct procs p = {0};
	int64_t home = 0;

	count_totals(j, u);
	/* In a jail that is quiet there is nobody to be counted. */
	if (watched || !j->quiet)
		procs_sample(
			&j->place.procs, watched ? PROCS_MEMORY : 0, &p, NULL);
	u->processes = p.n;
	u->threads = p.threads;
	u->slots = p.threads + p.zombies + 1;
	if (watched) {
		tally_note_others(&j->tally, others_bytes(j));
		u->weighed = tally_is_weighed(&j->tally);
		u->memory = tally_add(&j->tally, &p, waits);
		home_usage(&j->site->home, &home, &files);
	}
	side_note(j->sides, tally_bytes(&j->tally) - home, u->cpu_ms);
	if (watched || u->peak_bytes <= 0)
		u->peak_bytes = peak_bytes(j);
}

void warden_jail_measure(struct warden_jail *j, struct warden_jail_usage *u)
{
	measure(j, u, waits_for_helper(j));
}

void warden_jail_show(struct warden_jail *j, struct warden_jail_usage *u)
{
	measure(j, u, TALLY_SHOWN);
}

/* An urgent question is asked so often that it may take the whole share. A
 * question that can wait must not come too late, least of all where memory runs
 * short. */
static enum helper_haste haste_of_later(const struct warden_jail *j)
{
	int64_t since = now_ms() - j->later_ms;

	return since > LATE_MS || (since > SHORT_MS && warden_jail_is_short(j))
		       ? HELPER_LATE
		       : HELPER_CALM;
}

void warden_jail_ask(
	struct warden_jail *j, const struct work *soon, unsigned later)
{
	struct work q = *soon;

	q.ctl = j->ctl;
	q.rows = j->rows;
	q.cols = j->cols;
	if (j->size_owed)
		q.what |= WORK_SIZE;
	if (j->site->cgroup.file[CGROUP_F_CPU] < 0)
		q.what |= WORK_CPU;
	if (helper_is_free(&j->helper, haste_of_later(j)))
		q.what |= later;
	if (!warden_jail_is_uncounted(j))
		q.what &= ~(unsigned)WORK_WEIGHT;
	else if (tally_is_doubtful(&j->tally))
		q.what |= WORK_WEIGHT | later; /* checkpoints go first */
	if (!q.what || !helper_is_free(&j->helper, most_haste(j)))
		return;
	j->size_owed = 0;
	if (q.what & later)
		j->later_ms = now_ms();
	j->stale = 0;
	j->asked_still = j->weighing_ms || warden_jail_is_stopped(j);
	tally_asked(&j->tally);
	if (helper_ask(&j->helper, &j->place, &q) < 0)
		tally_fail(&j->tally);
}

static void note_answer(struct warden_jail *j, const struct work_result *a)
{
	const struct jail_event ev = {.type = JAIL_TYPEAHEAD,
		.bytes = (char *)a->keys,
		.nbytes = (uint32_t)a->nkeys};

	if (a->nkeys > 0)
		link_event(j->link, &ev, NULL, 0);
	if (a->what & WORK_CPU)
		tally_add_cpu(&j->tally, a->cpu_ms);
	if (a->what & WORK_WEIGHT)
		tally_weigh(&j->tally, a, j->asked_still);
}

int warden_jail_hear(
	struct warden_jail *j, int timeout_ms, struct work_result *a)
{
	int r = helper_take(&j->helper, timeout_ms, j->weighing_ms != 0, a);

	if (r > 0 && j->stale)
		a->what &= ~(unsigned)WORK_WEIGHT;
	if (r < 0 && !j->stale)
		tally_fail(&j->tally);
	if (r > 0)
		note_answer(j, a);
	return r;
}

int warden_jail_look(struct warden_jail *j, unsigned what, int timeout_ms)
{
	const struct work q = {.what = warden_jail_is_uncounted(j) ? what : 0};
	struct work_result r;

	warden_jail_ask(j, &q, 0);
	return warden_jail_hear(j, timeout_ms, &r);
}

int warden_jail_waiting(struct warden_jail *j)
{
	struct procs p;

	return procs_sample(&j->place.procs, PROCS_READY, &p, NULL) < 0
		       ? -1
		       : p.ready;
}

/* Where nobody needs the warden meanwhile. */
static int judge_now(struct warden_jail *j, enum tally_verdict memory)
{
	const struct work nothing = {0};
	struct warden_jail_usage u = {.memory = memory};
	struct work_result a;
	int over;

	while (!(over = warden_jail_judge(j, u.memory)) && j->weighing_ms) {
		warden_jail_ask(j, &nothing, WORK_WEIGHT);
		warden_jail_hear(j, HEAR_MS, &a);
		warden_jail_measure(j, &u);
	}
	return over;
}

int warden_jail_is_over(struct warden_jail *j, int64_t *due_ms)
{
	const struct work nothing = {0};
	int stopped = warden_jail_is_stopped(j), doubtful;
	int64_t now = now_ms(), cpu_ns = io_cpu_ns(), cost_ms;
	struct warden_jail_usage u;
	struct work_result a;

	j->over = 0;
	*due_ms = INT64_MAX;
	/* A jail that is stopped was measured then. */
	if (!warden_jail_is_uncounted(j) ||
		(stopped && j->tally.most_bytes <= j->tally.limit))
		return 0;
	*due_ms = j->memory_ms - now;
	if (*due_ms > 0)
		return 0;
	warden_jail_hear(j, 0, &a);
	warden_jail_measure(j, &u);
	doubtful = tally_is_doubtful(&j->tally);
	if (doubtful || !stopped)
		warden_jail_ask(j, &nothing, WORK_WEIGHT);
	cost_ms = (io_cpu_ns() - cpu_ns) * MEMORY_SHARE_DEN / 1000000;
	*due_ms = cost_ms > MEMORY_MS ? cost_ms : MEMORY_MS;
	j->memory_ms = now + *due_ms;
	if (stopped && !doubtful)
		*due_ms = INT64_MAX;
	/* Nothing grows in a jail that is stopped. */
	if (stopped && u.memory == TALLY_DOUBTFUL)
		return 0;
	j->over = judge_now(j, u.memory);
	return j->over;
}

const struct warden_jail_usage *warden_jail_baseline(
	struct warden_jail *j, int *fresh)
{
	*fresh = !j->baseline_at || j->baseline_at != j->link->traffic;
	if (*fresh && warden_jail_is_stopped(j))
		warden_jail_measure(j, &j->baseline);
	else if (*fresh)
		count_totals(j, &j->baseline);
	j->baseline_at = warden_jail_is_stopped(j) ? j->link->traffic : 0;
	return &j->baseline;
}

void warden_jail_note_oom(struct warden_jail *j, int64_t kills, int64_t hits)
{
	if (kills < j->oom_seen)
		return; /* counted before those that people were told of */
	j->oom_seen = kills;
	j->hits_seen = hits;
}

void warden_jail_note_left(struct warden_jail *j, int n)
{
	j->left = n;
}

/* ---- the person's tty ---- */

/* Have the helper work on the ttys, whose locks a guest that runs can hold.
 * 0, or -1. */
static int begin_work(struct warden_jail *j, unsigned what)
{
	const struct work q = {.what = what, .rows = j->rows, .cols = j->cols};
	struct work_result a;

	warden_jail_hear(j, TTY_MS, &a); /* what was asked before */
	return helper_ask(&j->helper, &j->place, &q);
}

/* The same to its end, or here where no guest runs. -1: one holds a lock. */
static int work_on_ttys(struct warden_jail *j, unsigned what)
{
	const struct work q = {.what = what, .rows = j->rows, .cols = j->cols};
	struct work_result a;

	if (warden_jail_is_stopped(j)) {
		work_do(&j->place, &q, &a);
		note_answer(j, &a);
		return 0;
	}
	if (begin_work(j, what) < 0)
		return -1;
	return warden_jail_hear(j, TTY_MS, &a) > 0 ? 0 : -1;
}

void warden_jail_resize(
	struct warden_jail *j, unsigned short rows, unsigned short cols)
{
	j->rows = rows;
	j->cols = cols;
	/* In a cell the helper does it when it is asked next. */
	j->size_owed = !warden_jail_is_stopped(j);
	if (!j->size_owed)
		work_on_ttys(j, WORK_SIZE);
}

void warden_jail_begin_ttys(struct warden_jail *j)
{
	if (begin_work(j, WORK_TTYS) == 0)
		j->ttys = TTYS_BEGUN;
}

/* True if the ttys are so already. */
static int has_ttys(struct warden_jail *j)
{
	struct work_result a;
	int begun = j->ttys == TTYS_BEGUN;

	if (j->ttys == TTYS_UNKNOWN || j->size_owed)
		return 0;
	j->ttys = TTYS_UNKNOWN;
	return !begun || warden_jail_hear(j, TTY_MS, &a) > 0;
}

int warden_jail_set_ttys(struct warden_jail *j)
{
	if (has_ttys(j))
		return 0;
	j->size_owed = j->keys_owed = 0;
	return work_on_ttys(j, WORK_KEYS | WORK_TTYS);
}

void warden_jail_return_keys(struct warden_jail *j)
{
	j->keys_owed = work_on_ttys(j, WORK_KEYS) < 0;
}
