/* SPDX-License-Identifier: MIT */
/*
 * init.c - pid 1 of the jail
 *
 * Runs in:   the jail, first process of every namespace of it
 * Holds:     every capability in the jail's user namespace while it builds,
 *            none from before the first guest on
 * Trusts:    the warden's messages; of the guests only that the kernel
 *            reports their deaths and states truly
 * Leaves:    nothing: when it ends, the kernel kills all that is in the jail
 *
 * In this order: enter the cgroup, map the user, build the root, open the
 * two ptys, lead the tty's session, follow the warden into death, say that it
 * is built, serve.
 */
#include "init.h"

#include "jail/apply/apply.h"
#include "jail/base/io.h"
#include "jail/base/procstat.h"
#include "jail/host/host.h"
#include "jail/plan/plan.h"
#include "jail/spec.h"
#include "jail/walls/cgroup/cgroup.h"
#include "jail/walls/ident.h"
#include "jail/walls/pty.h"
#include "jail/wire/wire.h"
#include "spawn.h"
#include "sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>

/* The dead buried in one go: those who die faster must not keep init from
 * listening to the warden. */
#define REAP_MAX 256
/* How long to wait for a checkpoint that was given up to be gone. */
#define END_MS 200

struct pid1 {
	struct init in;
	struct apply_ctx ctx;
	int sigfd;
	int tty, line; /* slaves */
	struct sweep sweep;
	struct spawn spawn;
	pid_t live;		   /* whose death is news */
	pid_t kept[WIRE_PIDS_MAX]; /* checkpoints, whose death is too */
	int nkept;
};

static void tell(
	struct pid1 *p, const struct wire_init *m, const int *fds, int nfds)
{
	if (io_send_fds(p->in.sock, m, sizeof(*m), fds, nfds, 0) < 0)
		_exit(0);
}

static void tell_error(struct pid1 *p, const struct err *e)
{
	struct wire_init m = {.type = INIT_ERROR, .err = *e};

	tell(p, &m, NULL, 0);
}

/*
 * All in the jail can read the command line of pid 1, which has that of the
 * front end: it may tell of the host's files. Who needs it has a copy.
 */
static int hide_command_line(struct err *e)
{
	static const char name[] = "cellblock-init";
	struct procstat st;
	size_t n;

	if (procstat_read(AT_FDCWD, "/proc/self/stat", &st) < 0)
		return err_errno(e, "hide the command line");
	if (!st.args || st.args_end < st.args)
		return err_set(e, "hide the command line: it is not found");
	n = st.args_end - st.args;
	memset((char *)st.args, 0, n);
	if (n >= sizeof(name))
		memcpy((char *)st.args, name, sizeof(name));
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
 * The warden may die at any time. From PR_SET_PDEATHSIG on, set after the last
 * change of credentials, its death kills us; had it died before, the other end
 * of the socket, which nobody else holds, would be closed.
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

static int build(struct pid1 *p, struct err *e)
{
	auto_close int tty_master = -1;
	auto_close int tty_peer = -1;
	auto_close int line_master = -1;
	struct wire_init m = {.type = INIT_BUILT};
	struct stat ns;
	const int ours[] = {0, 1, 2, p->in.sock, p->in.home_fd,
		cgroup_freezer_fd(p->in.cgroup)};
	int fds[IO_FDS_MAX], nfds = 0;

	/* The warden is not dumpable, and what we write is our own /proc. */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return err_errno(e, "become dumpable");
	if (stat("/proc/self/ns/pid", &ns) < 0)
		return err_errno(e, "look at the pid namespace");
	m.ns_dev = ns.st_dev;
	m.ns_ino = ns.st_ino;
	if (hide_command_line(e) < 0)
		return -1;
	if (cgroup_enter(p->in.cgroup, e) < 0)
		return -1;
	if (ident_close_fds(ours, 6, e) < 0)
		return -1;
	if (unshare(CLONE_NEWCGROUP) < 0)
		return err_errno(e, "create a cgroup namespace");
	if (ident_map_self(PLAN_ID, PLAN_ID, PLAN_ID, PLAN_ID, e) < 0)
		return -1;
	p->ctx.home_fd = p->in.home_fd;
	if (apply_stage(p->in.plan, PLAN_JAIL, &p->ctx, e) < 0)
		return -1;
	if (ptys_open(p, &tty_master, &line_master, e) < 0)
		return -1;
	tty_peer = pty_open_slave(tty_master, O_NONBLOCK, e);
	if (tty_peer < 0)
		return -1;
	if (spawn_prepare(&p->spawn, p->in.spec, p->in.plan, &p->ctx,
		    p->in.cgroup, e) < 0)
		return -1;
	if (follow_warden(p, e) < 0)
		return -1;
	p->sweep.proc_fd = p->ctx.proc_fd;
	m.no_proc = p->ctx.proc_fd < 0;
	fds[nfds++] = tty_master;
	fds[nfds++] = tty_peer;
	fds[nfds++] = line_master;
	for (int i = 0; i < APPLY_TMPFS; i++)
		fds[nfds++] = p->ctx.tmp_fds[i];
	if (p->ctx.proc_fd >= 0)
		fds[nfds++] = p->ctx.proc_fd;
	tell(p, &m, fds, nfds);
	return 0;
}

static int is_news(const struct pid1 *p, pid_t pid)
{
	if (pid == p->live)
		return 1;
	for (int i = 0; i < p->nkept; i++)
		if (p->kept[i] == pid)
			return 1;
	return 0;
}

static void tell_death(struct pid1 *p, pid_t pid, int status)
{
	struct wire_init m = {
		.type = INIT_DIED, .npids = 1, .pids = {pid}, .status = status};

	tell(p, &m, NULL, 0);
	if (pid == p->live)
		p->live = 0;
}

/* Bury the dead. Only the deaths of ours are told: a fork bomb's thousands
 * must not flood the warden. Returns 1 if there may be more. */
static int reap(struct pid1 *p)
{
	int status, n = 0;
	pid_t pid;

	while (n < REAP_MAX && (pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (is_news(p, pid))
			tell_death(p, pid, status);
		n++;
	}
	return n == REAP_MAX;
}

/* The checkpoints there are now; one that died before we knew what it was is
 * told as dead. */
static void keep(struct pid1 *p, const struct wire_init *m)
{
	p->nkept = 0;
	for (int i = 0; i < m->npids; i++) {
		if (m->pids[i] <= 1)
			continue;
		p->kept[p->nkept++] = m->pids[i];
		if (kill(m->pids[i], 0) < 0)
			tell_death(p, m->pids[i], 0);
	}
}

static void on_spawn(struct pid1 *p, const struct wire_init *m, int *fds)
{
	struct wire_init r = {.type = INIT_SPAWNED, .seq = m->seq, .npids = 1};
	struct err e = {0};
	pid_t pid = spawn_start(&p->spawn, p->tty, p->line, fds, &e);

	if (pid < 0) {
		tell_error(p, &e);
		return;
	}
	p->live = pid;
	r.pids[0] = pid;
	tell(p, &r, NULL, 0);
}

static void on_stop(struct pid1 *p, const struct wire_init *m, int *fds)
{
	struct wire_init r = {.type = INIT_STOPPED, .seq = m->seq};

	(void)fds;
	keep(p, m);
	r.unseen = sweep_stop(&p->sweep, &r.seen, &r.killed) < 0;
	reap(p);
	tell(p, &r, NULL, 0);
}

static void on_continue(struct pid1 *p, const struct wire_init *m, int *fds)
{
	(void)fds;
	keep(p, m);
	sweep_continue();
}

static void on_kill(struct pid1 *p, const struct wire_init *m, int *fds)
{
	struct wire_init r = {.type = INIT_KILLED, .seq = m->seq};

	(void)fds;
	keep(p, m);
	r.all_gone = sweep_kill(&p->sweep, m->pids, m->npids, &r.killed);
	reap(p);
	tell(p, &r, NULL, 0);
}

static void on_checkpoints(struct pid1 *p, const struct wire_init *m, int *fds)
{
	(void)fds;
	keep(p, m);
}

static void on_resume(struct pid1 *p, const struct wire_init *m, int *fds)
{
	(void)fds;
	if (m->npids != 1 || m->pids[0] <= 1)
		return;
	p->live = m->pids[0];
	/* The rest of a cell that the dead one did not read. */
	tcflush(p->line, TCIFLUSH);
	tcsetpgrp(p->tty, p->live);
	if (kill(p->live, SIGCONT) < 0 && errno == ESRCH)
		tell_death(p, m->pids[0], 0);
}

/* The dead of these are no news. A process that is large, or that the kernel
 * makes wait, is left to be buried later. */
static void on_discard(struct pid1 *p, const struct wire_init *m, int *fds)
{
	struct wire_init r = {.type = INIT_DISCARDED, .seq = m->seq};
	int64_t end = now_ms() + END_MS;

	(void)fds;
	for (int i = 0; i < m->npids; i++) {
		if (m->pids[i] <= 1 || kill(m->pids[i], SIGKILL) < 0)
			continue;
		while (waitpid(m->pids[i], NULL, WNOHANG) == 0 &&
			now_ms() < end)
			nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	}
	tell(p, &r, NULL, 0);
}

/* What hangs in a fork, on its way to become a checkpoint, is the newest child
 * of ours, or where the guest could copy itself no better, of the guest's. */
static void on_kill_fork(struct pid1 *p, const struct wire_init *m, int *fds)
{
	pid_t ours[WIRE_PIDS_MAX + 1], child;
	int n = p->nkept;

	(void)fds;
	for (int i = 0; i < n; i++)
		ours[i] = p->kept[i];
	ours[n++] = p->live;
	child = sweep_newest_child(&p->sweep, getpid(), m->within_ms, ours, n);
	if (child == 0 && p->live > 0)
		child = sweep_newest_child(
			&p->sweep, p->live, m->within_ms, ours, n);
	if (child > 1)
		kill(child, SIGKILL);
}

/* As a shell does after each job: whatever the last cell gave the terminal to,
 * the next one has it, and its Ctrl-C. */
static void on_foreground(struct pid1 *p, const struct wire_init *m, int *fds)
{
	pid_t group = p->live ? getpgid(p->live) : -1;

	(void)m;
	(void)fds;
	if (group > 1 && tcgetpgrp(p->tty) != group)
		tcsetpgrp(p->tty, group);
}

static void on_write_stack(struct pid1 *p, const struct wire_init *m, int *fds)
{
	(void)fds;
	if (p->live && m->npids == 1 && m->pids[0] == p->live)
		kill(p->live, WIRE_STACK_SIGNAL);
}

static const struct {
	enum wire_init_type type;
	void (*serve)(struct pid1 *, const struct wire_init *, int *fds);
} requests[] = {
	{INIT_SPAWN, on_spawn},
	{INIT_STOP, on_stop},
	{INIT_CONTINUE, on_continue},
	{INIT_KILL, on_kill},
	{INIT_RESUME, on_resume},
	{INIT_CHECKPOINTS, on_checkpoints},
	{INIT_DISCARD, on_discard},
	{INIT_KILL_FORK, on_kill_fork},
	{INIT_FOREGROUND, on_foreground},
	{INIT_WRITE_STACK, on_write_stack},
};

static void serve_one(struct pid1 *p)
{
	struct wire_init m;
	int fds[IO_FDS_MAX];
	ssize_t n = io_recv_fds(p->in.sock, &m, sizeof(m), fds, IO_FDS_MAX, 0);

	if (n <= 0 || wire_init_check(&m, (size_t)n, NULL) < 0)
		_exit(0);
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		if (requests[i].type == m.type)
			requests[i].serve(p, &m, fds);
	for (int i = 0; i < IO_FDS_MAX; i++)
		fd_drop(&fds[i]);
}

static _Noreturn void serve(struct pid1 *p)
{
	struct pollfd pf[2] = {{.fd = p->in.sock, .events = POLLIN},
		{.fd = p->sigfd, .events = POLLIN}};

	int more = 0;

	for (;;) {
		struct signalfd_siginfo si;

		if (poll(pf, 2, more ? 0 : -1) < 0 && errno != EINTR)
			_exit(1);
		if (pf[1].revents || more) {
			(void)!read(p->sigfd, &si, sizeof(si));
			more = reap(p);
		}
		if (pf[0].revents)
			serve_one(p);
	}
}

static _Noreturn void init_fail(struct pid1 *p, const char *what)
{
	struct err e = {.kind = ERR_JAIL};

	err_errno(&e, "%s", what);
	tell_error(p, &e);
	_exit(1);
}

static _Noreturn void init_main(const struct init *in)
{
	struct pid1 p = {.in = *in, .tty = -1, .line = -1};
	struct err e = {0};
	sigset_t set;

	prctl(PR_SET_NAME, "cellblock-init", 0, 0, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	/* Unblocked, a death would never be news. */
	if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
		init_fail(&p, "watch for deaths");
	/* Giving the terminal to a group is done from the background here: not
	 * ignored, SIGTTOU would be an error. */
	signal(SIGTTOU, SIG_IGN);
	if (build(&p, &e) == 0) {
		p.sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
		if (p.sigfd >= 0)
			serve(&p);
		init_fail(&p, "watch for deaths");
	}
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
