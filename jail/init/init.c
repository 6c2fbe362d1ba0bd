/* SPDX-License-Identifier: MIT */
/*
 * init.c - pid 1 of the jail
 *
 * Runs in:   the jail, first process of every namespace of it
 * Holds:     every capability in the jail's user namespace while it builds,
 *            none when the first guest starts
 * Trusts:    the warden's messages; about the guests the kernel alone
 * Leaves:    nothing: when init ends, the kernel kills all that is in the jail
 *
 * In this order: enter the cgroup, map the user, build the root, open the two
 * ptys, lead the tty's session, die with the warden, report INIT_BUILT, serve.
 */
#include "jail/init/init.h"

#include "jail/apply/apply.h"
#include "jail/base/array.h"
#include "jail/base/io.h"
#include "jail/base/prefault.h"
#include "jail/base/procstat.h"
#include "jail/host/host.h"
#include "jail/plan/plan.h"
#include "jail/spec.h"
#include "jail/walls/cgroup/cgroup.h"
#include "jail/walls/walls.h"
#include "jail/wire/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>

/* Most processes reaped before init listens to the warden again. */
#define REAP_MAX 256
/* The oom_score_adj of init, more than the warden's, and of a checkpoint, more
 * than init's: 1/10 of the memory each. */
#define OOM_INIT 100
#define OOM_ASLEEP 100
#define OOM_MOST 1000
/* The part of the jail's memory that a copy may have beside the guest's. */
#define TRIAL_DEN 8
/* How long to wait for discarded checkpoints to be gone. */
#define DISCARD_MS 200

struct pid1 {
	struct init in;
	struct apply_ctx ctx;
	int sigfd;
	int tty, line; /* slaves */
	struct sweep sweep;
	struct spawn spawn;
	struct notify asked;
	/* Only the deaths of these are reported: the thousands of a fork bomb
	 * must not flood the warden. */
	pid_t live;
	pid_t checkpoints[WIRE_PIDS_MAX];
	int ncheckpoints;
	pid_t ending[WIRE_PIDS_MAX]; /* were checkpoints, and are not reaped */
	int nending;
	int fds[IO_FDS_MAX]; /* of the request being served */
	/* as a lease changed them */
	struct spec_lease lease;
	struct jail_spec spec;
	struct plan plan;
};

static void tell_warden(
	struct pid1 *p, const struct wire_init *m, const int *fds, int nfds)
{
	struct wire_init refused = {.type = INIT_ERROR};

	if (io_send_fds(p->in.sock, m, sizeof(*m), fds, nfds, 0) == 0)
		return;
	/* A guest keeps too many descriptors of this user on their way. */
	if (errno == ETOOMANYREFS) {
		err_errno(&refused.err, "hand over the jail");
		io_send_fds(p->in.sock, &refused, sizeof(refused), NULL, 0, 0);
	}
	_exit(0);
}

static void tell_error(struct pid1 *p, const struct err *e)
{
	struct wire_init m = {.type = INIT_ERROR, .err = *e};

	tell_warden(p, &m, NULL, 0);
}

/* The memory of all sessions together has a limit, too (maker.memory). When
 * that is used up the kernel kills what is in a jail before it kills anybody's
 * warden. Where /proc may not be written all have one score. */
static int go_before_warden(struct err *e)
{
	auto_close int fd =
		open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	char text[16] = "";
	int score;

	if (fd < 0)
		return errno == ENOENT || errno == EROFS
			       ? 0
			       : err_errno(e, "open oom_score_adj");
	if (pread(fd, text, sizeof(text) - 1, 0) <= 0)
		return err_errno(e, "read oom_score_adj");
	score = atoi(text) + OOM_INIT;
	if (dprintf(fd, "%d", score < OOM_MOST ? score : OOM_MOST) < 0)
		return err_errno(e, "write oom_score_adj");
	return 0;
}

/* Two ptys on the jail's own devpts; pid 1 leads the session of the tty. */
static int ptys_open(
	struct pid1 *p, int *tty_master, int *line_master, struct err *e)
{
	if (pty_open_pair(p->ctx.pts_fd, tty_master, &p->tty, e) < 0)
		return err_wrap(e, "open the tty");
	if (pty_set_cooked(p->tty, e) < 0)
		return -1;
	if (p->in.spec->rows > 0 &&
		pty_set_size(p->tty, p->in.spec->rows, p->in.spec->cols, e) < 0)
		return -1;
	if (setsid() < 0)
		return err_errno(e, "lead the session of the tty");
	if (ioctl(p->tty, TIOCSCTTY, 0) < 0)
		return err_errno(e, "make the tty the controlling terminal");
	if (pty_open_pair(p->ctx.pts_fd, line_master, &p->line, e) < 0)
		return err_wrap(e, "open the line");
	return pty_set_raw(p->line, e);
}

/*
 * Die with the warden. PR_SET_PDEATHSIG is set after the last change of
 * credentials, which would clear it. If the warden died before, its end of the
 * socket is closed, because nobody else holds that end.
 */
static int follow_warden(const struct pid1 *p, struct err *e)
{
	struct pollfd pf = {.fd = p->in.sock, .events = POLLIN};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
		poll(&pf, 1, 0) < 0)
		return err_errno(e, "follow the warden");
	if (pf.revents & POLLHUP)
		_exit(0);
	return 0;
}

static int build_jail(struct pid1 *p, struct err *e)
{
	auto_close int tty_master = -1;
	auto_close int tty_peer = -1;
	auto_close int line_master = -1;
	struct wire_init m = {.type = INIT_BUILT};
	struct stat ns;
	const int ours[] = {0, 1, 2, p->in.sock, p->in.home_fd,
		p->in.cgroup->enter[CGROUP_FREEZER]};
	int fds[IO_FDS_MAX], nfds = 0;

	/* The warden is not, and init must write files in its own /proc. */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return err_errno(e, "become dumpable");
	if (stat("/proc/self/ns/pid", &ns) < 0)
		return err_errno(e, "look at the pid namespace");
	m.ns_dev = ns.st_dev;
	m.ns_ino = ns.st_ino;
	if (procstat_set_title("cellblock-init", e) < 0 ||
		go_before_warden(e) < 0 ||
		cgroup_enter(p->in.cgroup, 0, e) < 0 ||
		ident_close_fds(ours, 6, e) < 0)
		return -1;
	if (unshare(CLONE_NEWCGROUP) < 0)
		return err_errno(e, "create a cgroup namespace");
	if (ident_map_self(PLAN_ID, PLAN_ID, PLAN_ID, PLAN_ID, e) < 0)
		return -1;
	p->ctx.home_fd = p->in.home_fd;
	if (apply_stage(p->in.plan, PLAN_JAIL, &p->ctx, e) < 0 ||
		ptys_open(p, &tty_master, &line_master, e) < 0)
		return -1;
	tty_peer = pty_open_slave(tty_master, O_NONBLOCK, e);
	if (tty_peer < 0 ||
		spawn_prepare(&p->spawn, p->in.spec, p->in.plan, &p->ctx,
			p->in.cgroup, e) < 0 ||
		follow_warden(p, e) < 0)
		return -1;
	p->sweep.proc_fd = p->ctx.proc_fd;
	p->asked = (struct notify){.fd = p->ctx.notify_fd,
		.proc_fd = p->ctx.proc_fd,
		.locker = {p->ctx.notify_fd, p->ctx.proc_fd, 0},
		.memory = p->in.memory,
		.memory_max = p->in.spec->limits.memory_bytes};
	m.no_proc = p->ctx.proc_fd < 0;
	m.shared = p->ctx.shared;
	m.deaf = p->ctx.notify_fd < 0;
	fds[nfds++] = tty_master;
	fds[nfds++] = tty_peer;
	fds[nfds++] = line_master;
	for (int i = 0; i < APPLY_TMPFS; i++)
		fds[nfds++] = p->ctx.tmp_fds[i];
	if (p->ctx.proc_fd >= 0)
		fds[nfds++] = p->ctx.proc_fd;
	tell_warden(p, &m, fds, nfds);
	return 0;
}

static int is_checkpoint(const struct pid1 *p, pid_t pid)
{
	for (int i = 0; i < p->ncheckpoints; i++)
		if (p->checkpoints[i] == pid)
			return 1;
	return 0;
}

/* Take a pid out of a list: whether it was there. */
static int forget_pid(pid_t *list, int *n, pid_t pid)
{
	for (int i = 0; i < *n; i++)
		if (list[i] == pid) {
			list[i] = list[--*n];
			return 1;
		}
	return 0;
}

/* True if no other process is in the jail, not even a dead one: a process whose
 * parent dies becomes our child before the parent can be reaped. */
static int is_alone(void)
{
	siginfo_t si;

	return waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT | __WALL) <
		       0 &&
	       errno == ECHILD;
}

static void tell_death(struct pid1 *p, pid_t pid, int status)
{
	struct wire_init m = {.type = INIT_DIED,
		.npids = 1,
		.pids = {pid},
		.status = status,
		.all_gone = is_alone()};

	tell_warden(p, &m, NULL, 0);
	if (pid == p->live)
		p->live = 0;
}

/* A session's guest may have session.processes, beside pid 1 and as many
 * checkpoints as there are now, or end. That is its soft limit. A guest that
 * has set a lower one keeps it. */
static void limit_processes(struct pid1 *p)
{
	const struct jail_spec *spec = p->spawn.spec;
	struct rlimit own, its;
	rlim_t least;

	if (spec->mode != SPEC_SESSION || p->live <= 0 ||
		getrlimit(RLIMIT_NPROC, &own) < 0 ||
		prlimit(p->live, RLIMIT_NPROC, NULL, &its) < 0)
		return;
	least = own.rlim_max + 1 - (rlim_t)plan_spare_processes(&spec->limits);
	if (its.rlim_cur < least)
		return;
	its.rlim_cur = least + (rlim_t)(p->ncheckpoints + p->nending);
	if (its.rlim_cur > its.rlim_max)
		its.rlim_cur = its.rlim_max;
	prlimit(p->live, RLIMIT_NPROC, &its, NULL);
}

/* Reap the dead. 1 if there may be more. */
static int reap_dead(struct pid1 *p)
{
	int status, n = 0;
	pid_t pid;

	while (n < REAP_MAX && (pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == p->live || is_checkpoint(p, pid))
			tell_death(p, pid, status);
		if (forget_pid(p->checkpoints, &p->ncheckpoints, pid) ||
			forget_pid(p->ending, &p->nending, pid))
			limit_processes(p);
		if (pid == p->spawn.held.t.pid)
			held_forget(&p->spawn.held);
		n++;
	}
	return n == REAP_MAX;
}

/* When memory runs out the kernel kills a guest that runs, then a checkpoint,
 * then init, and then the warden. A guest cannot write its score: it sees /proc
 * read-only. */
static void oom_set(const struct pid1 *p, pid_t pid, int score)
{
	auto_close int fd = -1;
	char path[32];

	snprintf(path, sizeof(path), "%d/oom_score_adj", (int)pid);
	fd = openat(p->ctx.proc_fd, path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0)
		dprintf(fd, "%d", score);
}

/* The checkpoints that exist now. One that died before init knew of it is
 * reported dead. */
static void note_checkpoints(struct pid1 *p, const struct wire_init *m)
{
	for (int i = 0; i < m->npids; i++)
		if (m->pids[i] > 1 && !is_checkpoint(p, m->pids[i]))
			oom_set(p, m->pids[i], p->spawn.oom_own + OOM_ASLEEP);
	p->ncheckpoints = 0;
	for (int i = 0; i < m->npids; i++) {
		if (m->pids[i] <= 1)
			continue;
		p->checkpoints[p->ncheckpoints++] = m->pids[i];
		if (kill(m->pids[i], 0) < 0)
			tell_death(p, m->pids[i], 0);
	}
	limit_processes(p);
}

static void on_spawn(struct pid1 *p, const struct wire_init *m)
{
	struct wire_init r = {.type = INIT_SPAWNED, .seq = m->seq, .npids = 1};
	struct err e = {0};
	pid_t pid;

	/* Init waits until Python is started. The rest of another guest, asleep
	 * for an undo, must not stop the new one meanwhile. Where Python is
	 * held there is no other process. */
	if (!p->spawn.held.t.pid)
		kill(-1, SIGSTOP);
	pid = spawn_start(&p->spawn, p->tty, p->line, p->fds, &e);
	if (pid < 0) {
		tell_error(p, &e);
		return;
	}
	p->live = pid;
	limit_processes(p);
	r.pids[0] = pid;
	tell_warden(p, &r, NULL, 0);
}

static void stop_all(struct pid1 *p, const struct wire_init *m, int kills)
{
	struct wire_init r = {.type = INIT_STOPPED, .seq = m->seq};

	r.unseen = sweep_stop(&p->sweep, kills, &r.seen, &r.killed) < 0;
	reap_dead(p);
	tell_warden(p, &r, NULL, 0);
}

static void on_stop(struct pid1 *p, const struct wire_init *m)
{
	note_checkpoints(p, m);
	stop_all(p, m, 1);
}

static void on_pause(struct pid1 *p, const struct wire_init *m)
{
	stop_all(p, m, 0);
}

static void on_unpause(struct pid1 *p, const struct wire_init *m)
{
	(void)p;
	(void)m;
	sweep_continue();
}

static void on_continue(struct pid1 *p, const struct wire_init *m)
{
	note_checkpoints(p, m);
	sweep_continue();
}

static void on_kill(struct pid1 *p, const struct wire_init *m)
{
	struct wire_init r = {.type = INIT_KILLED, .seq = m->seq};

	note_checkpoints(p, m);
	r.all_gone = sweep_kill(&p->sweep, m->pids, m->npids, &r.killed);
	reap_dead(p);
	tell_warden(p, &r, NULL, 0);
}

static void on_resume(struct pid1 *p, const struct wire_init *m)
{
	if (m->npids != 1 || m->pids[0] <= 1)
		return;
	p->live = m->pids[0];
	oom_set(p, p->live, p->spawn.oom_guest);
	limit_processes(p);
	/* The dead guest may have left part of a cell unread. */
	tcflush(p->line, TCIFLUSH);
	tcsetpgrp(p->tty, p->live);
	if (kill(p->live, SIGCONT) < 0 && errno == ESRCH)
		tell_death(p, m->pids[0], 0);
}

/* Deaths of discarded checkpoints are not reported. A large process may take
 * longer to die; reap_dead() finds it later. */
static void on_discard(struct pid1 *p, const struct wire_init *m)
{
	struct wire_init r = {.type = INIT_DISCARDED, .seq = m->seq};
	int64_t end = now_ms() + DISCARD_MS;
	pid_t gone;

	for (int i = 0; i < m->npids; i++) {
		if (m->pids[i] <= 1 || kill(m->pids[i], SIGKILL) < 0)
			continue;
		forget_pid(p->checkpoints, &p->ncheckpoints, m->pids[i]);
		while ((gone = waitpid(m->pids[i], NULL, WNOHANG)) == 0 &&
			now_ms() < end)
			nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
		if (gone == 0 && p->nending < WIRE_PIDS_MAX)
			p->ending[p->nending++] = m->pids[i];
	}
	limit_processes(p);
	tell_warden(p, &r, NULL, 0);
}

/* A copy that hangs in its fork is the newest child of init, or, where the
 * guest has no copy.c, of the guest. */
static void on_kill_fork(struct pid1 *p, const struct wire_init *m)
{
	pid_t keep[WIRE_PIDS_MAX + 1] = {p->live}, child;
	int n = 1 + p->ncheckpoints;

	memcpy(keep + 1, p->checkpoints, sizeof(p->checkpoints));
	child = sweep_newest_child(&p->sweep, getpid(), m->since_ms, keep, n);
	if (child == 0 && p->live > 0)
		child = sweep_newest_child(
			&p->sweep, p->live, m->since_ms, keep, n);
	if (child > 1)
		kill(child, SIGKILL);
}

/* As a shell does after each job: the last cell may have given the terminal,
 * and with it Ctrl-C, to another group, or set O_NONBLOCK for all who share
 * this open file. */
static void on_foreground(struct pid1 *p, const struct wire_init *m)
{
	pid_t group = p->live ? getpgid(p->live) : -1;

	(void)m;
	io_set_nonblock(p->tty, 0);
	if (group > 1 && tcgetpgrp(p->tty) != group)
		tcsetpgrp(p->tty, group);
}

static void on_write_stack(struct pid1 *p, const struct wire_init *m)
{
	if (p->live && m->npids == 1 && m->pids[0] == p->live)
		kill(p->live, WIRE_STACK_SIGNAL);
}

/* Limits of our own, which guests inherit. */
static int lower_limits(const struct plan *plan, struct err *e)
{
	for (size_t i = 0; i < plan->n; i++) {
		const struct plan_op *op = &plan->ops[i];
		const struct rlimit r = {
			(rlim_t)op->number, (rlim_t)op->number};

		if (op->type == PLAN_RLIMIT && op->stage == PLAN_JAIL &&
			setrlimit((unsigned)op->which, &r) < 0)
			return err_errno(e, "lower a limit");
	}
	return 0;
}

/* From here on guests are started as the spec says now. */
static int take_lease(struct pid1 *p, struct err *e)
{
	struct spec_lease *c = &p->lease;

	if (p->plan.ops ||
		pread(p->fds[0], c, sizeof(*c), 0) != (ssize_t)sizeof(*c))
		return err_set(e, "lease the jail: malformed");
	p->spec = *p->in.spec;
	spec_take_lease(&p->spec, c);
	p->asked.memory_max = p->spec.limits.memory_bytes;
	if (plan_make(&p->plan, &p->spec, p->in.host, e) < 0 ||
		lower_limits(&p->plan, e) < 0 ||
		spawn_lease(&p->spawn, &p->spec, &p->plan, p->live, e) < 0)
		return -1;
	limit_processes(p);
	return 0;
}

static void on_lease(struct pid1 *p, const struct wire_init *m)
{
	struct wire_init r = {.type = INIT_LEASED, .seq = m->seq};
	struct err e = {0};

	if (take_lease(p, &e) < 0)
		tell_error(p, &e);
	else
		tell_warden(p, &r, NULL, 0);
}

static void on_hold(struct pid1 *p, const struct wire_init *m)
{
	struct wire_init r = {.type = INIT_HELD, .seq = m->seq};

	spawn_hold(&p->spawn, p->tty, p->ctx.proc_fd, &r.err);
	tell_warden(p, &r, NULL, 0);
}

/* Of all that is in the jail, the kernel ends the copy first. */
static void on_confine(struct pid1 *p, const struct wire_init *m)
{
	struct wire_init r = {.type = INIT_CONFINED, .seq = m->seq};

	if (m->npids != 1 || m->pids[0] <= 1)
		return;
	oom_set(p, m->pids[0], OOM_MOST);
	trial_confine(m->pids[0], p->ctx.proc_fd,
		p->spawn.spec->limits.memory_bytes / TRIAL_DEN, &r.err);
	tell_warden(p, &r, NULL, 0);
}

static const struct {
	enum wire_init_type type;
	void (*serve)(struct pid1 *, const struct wire_init *);
} requests[] = {
	{INIT_SPAWN, on_spawn},
	{INIT_STOP, on_stop},
	{INIT_CONTINUE, on_continue},
	{INIT_PAUSE, on_pause},
	{INIT_UNPAUSE, on_unpause},
	{INIT_KILL, on_kill},
	{INIT_RESUME, on_resume},
	{INIT_CHECKPOINTS, note_checkpoints},
	{INIT_DISCARD, on_discard},
	{INIT_KILL_FORK, on_kill_fork},
	{INIT_FOREGROUND, on_foreground},
	{INIT_WRITE_STACK, on_write_stack},
	{INIT_LEASE, on_lease},
	{INIT_HOLD, on_hold},
	{INIT_CONFINE, on_confine},
};

static void serve_one(struct pid1 *p)
{
	struct wire_init m;
	ssize_t n =
		io_recv_fds(p->in.sock, &m, sizeof(m), p->fds, IO_FDS_MAX, 0);

	if (n <= 0 || wire_init_check(&m, (size_t)n) < 0)
		_exit(0);
	for (size_t i = 0; i < COUNT(requests); i++)
		if (requests[i].type == m.type)
			requests[i].serve(p, &m);
	fds_drop(p->fds, IO_FDS_MAX);
}

static _Noreturn void serve_warden(struct pid1 *p)
{
	struct pollfd pf[3] = {{.fd = p->in.sock, .events = POLLIN},
		{.fd = p->sigfd, .events = POLLIN},
		{.fd = p->asked.fd, .events = POLLIN}};
	struct signalfd_siginfo si;
	int more = 0;

	for (;;) {
		if (poll(pf, 3, more ? 0 : -1) < 0 && errno != EINTR)
			_exit(1);
		if (pf[1].revents || more) {
			(void)!read(p->sigfd, &si, sizeof(si));
			more = reap_dead(p);
		}
		if (pf[0].revents)
			serve_one(p);
		if (pf[2].revents)
			notify_serve(&p->asked);
	}
}

/* Watch for deaths, build the jail, serve. Returns only after a failure. */
static int build_and_serve(struct pid1 *p, struct err *e)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	/* signalfd() reports only what is blocked. */
	if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
		return err_errno(e, "watch for deaths");
	/* Init gives the terminal to a group from the background. SIGTTOU makes
	 * that an error unless it is ignored. */
	signal(SIGTTOU, SIG_IGN);
	if (build_jail(p, e) < 0)
		return -1;
	p->sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (p->sigfd < 0)
		return err_errno(e, "watch for deaths");
	if (p->in.spec->made && p->in.spec->made->ahead)
		prefault_own();
	serve_warden(p);
}

static _Noreturn void init_main(const struct init *in)
{
	struct pid1 p = {.in = *in, .tty = -1, .line = -1};
	struct err e = {0};

	prctl(PR_SET_NAME, "cellblock-init", 0, 0, 0);
	build_and_serve(&p, &e);
	err_kind_set(&e, ERR_JAIL);
	tell_error(&p, &e);
	_exit(1);
}

pid_t init_start(const struct init *in, struct err *e)
{
	const unsigned long flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID |
				    CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
	pid_t pid = (pid_t)syscall(
		SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);

	if (pid == 0)
		init_main(in);
	if (pid < 0) {
		err_errno(e, "create the jail's namespaces");
		host_explain_userns(e);
	}
	return pid;
}
