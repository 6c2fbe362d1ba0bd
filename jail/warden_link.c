/* SPDX-License-Identifier: MIT */
/*
 * warden_link.c - the warden's links: front end, init, guest
 *
 * Runs in:   warden
 * Trusts:    its own init for shape, the guest for nothing
 *
 * Every wait has a deadline, notes the deaths that init tells, and ends the
 * session when the front end goes away.
 */
#include "warden_state.h"

#include "init.h"
#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>

/* What the jail's construction, and Python's boot, may take. */
#define BUILD_MS 20000
#define BOOT_MS 30000
#define STOP_MS 3000
#define VERIFY_MS 50
/* Longer than any process takes that can be frozen at all. */
#define FREEZE_MS 100

void warden_event(
	struct warden *w, struct jail_event *ev, const int *fds, int nfds)
{
	struct wire_event m = {.event = *ev};
	int pass[IO_FDS_MAX], n = 0;

	/* A slot holds the index of its descriptor in the message. */
	for (int i = 0; i < 4; i++)
		m.event.fds[i] = -1;
	m.event.fd = -1;
	for (int i = 0; i < nfds; i++) {
		if (fds[i] < 0)
			continue;
		if (ev->type == JAIL_UP)
			m.event.fds[i] = n;
		else
			m.event.fd = n;
		pass[n++] = fds[i];
	}
	if (io_send_fds(w->front, &m, sizeof(m), pass, n) < 0)
		warden_end(w);
}

void warden_notice(struct warden *w, const char *fmt, ...)
{
	struct jail_event ev = {.type = JAIL_NOTICE};
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(ev.text, sizeof(ev.text), fmt, ap);
	va_end(ap);
	warden_event(w, &ev, NULL, 0);
}

_Noreturn void warden_end(struct warden *w)
{
	warden_jail_stop(w);
	home_fini(&w->home);
	_exit(0);
}

/* ---- init ---- */

int warden_init_send(struct warden *w, enum wire_init_type type,
	const int32_t *pids, int npids, const int *fds, int nfds)
{
	struct wire_init m = {
		.type = type, .seq = ++w->init_seq, .npids = npids};

	for (int i = 0; i < npids; i++)
		m.pids[i] = pids[i];
	return io_send_fds(w->init_sock, &m, sizeof(m), fds, nfds);
}

static void note_death(struct warden *w, const struct wire_init *m)
{
	if (m->npids != 1)
		return;
	if (m->pids[0] == w->live) {
		w->live = 0;
		w->live_status = m->status;
	} else {
		warden_checkpoint_died(w, m->pids[0]);
	}
}

int warden_init_take(struct warden *w, struct wire_init *m)
{
	ssize_t n =
		io_recv_fds(w->init_sock, m, sizeof(*m), NULL, 0, MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0 || wire_init_check(m, (size_t)n, NULL) < 0)
		return -1;
	if (m->type == INIT_DIED)
		note_death(w, m);
	if (m->type == INIT_ENDED && m->seq == w->ending)
		w->ending = 0;
	return 1;
}

static int remaining(int64_t deadline_ms)
{
	int64_t left = deadline_ms - now_ms();

	return left < 0 ? 0 : left > 1000000 ? 1000000 : (int)left;
}

/* Wait for `fd` or init; the front end's end is ours. 0 at the deadline. */
static int wait_for(
	struct warden *w, int fd, int64_t deadline_ms, int *init_ready)
{
	struct pollfd p[3] = {{.fd = fd, .events = POLLIN},
		{.fd = w->front, .events = POLLRDHUP},
		{.fd = w->init_sock, .events = POLLIN}};
	int r;

	do
		r = poll(p, 3, remaining(deadline_ms));
	while (r < 0 && errno == EINTR);
	if (p[1].revents & (POLLHUP | POLLERR | POLLRDHUP))
		warden_end(w);
	*init_ready = p[2].revents != 0;
	return r <= 0 ? 0 : p[0].revents != 0;
}

int warden_init_await(struct warden *w, enum wire_init_type type,
	struct wire_init *m, int64_t deadline_ms)
{
	int ready;

	for (;;) {
		int r = warden_init_take(w, m);

		if (r < 0)
			return -1;
		if (r > 0 && m->type == type && m->seq == w->init_seq)
			return 0;
		if (r > 0 && m->type == INIT_ERROR)
			return -1;
		if (r == 0 && remaining(deadline_ms) == 0)
			return -1;
		if (r == 0)
			wait_for(w, -1, deadline_ms, &ready);
	}
}

/* Where the jail's processes are seen: through its own /proc, or, where it has
 * none, by their pid namespace through ours. */
static int look_through(
	struct warden *w, const struct wire_init *m, struct err *e)
{
	struct stat st;

	if (fstat(w->tty_slave, &st) < 0)
		return err_errno(e, "look at the tty");
	w->tty_dev = st.st_rdev;
	if (w->proc >= 0) {
		procs_source_jail(&w->procs, w->proc);
		return 0;
	}
	w->proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w->proc < 0)
		return err_errno(e, "open /proc");
	procs_source_host(&w->procs, w->proc, w->init, (dev_t)m->ns_dev,
		(ino_t)m->ns_ino);
	return 0;
}

/* INIT_BUILT brings the jail's descriptors. */
static int built_await(struct warden *w, struct err *e)
{
	int *slots[IO_FDS_MAX] = {&w->tty_master, &w->tty_slave, &w->line,
		&w->tmp[0], &w->tmp[1], &w->proc};
	int64_t deadline = now_ms() + BUILD_MS;
	struct wire_init m;
	int fds[IO_FDS_MAX], ready;
	ssize_t n;

	do
		wait_for(w, -1, deadline, &ready);
	while (!ready && remaining(deadline) > 0);
	n = ready ? io_recv_fds(w->init_sock, &m, sizeof(m), fds, IO_FDS_MAX, 0)
		  : -1;
	if (n <= 0 || wire_init_check(&m, (size_t)n, NULL) < 0)
		return err_set(e, "build the jail: its first process died");
	if (m.type == INIT_ERROR) {
		*e = m.err;
		return -1;
	}
	if (m.type != INIT_BUILT)
		return err_set(e, "build the jail: unexpected message");
	for (int i = 0; i < IO_FDS_MAX; i++)
		*slots[i] = fds[i];
	w->no_proc = m.flag;
	return look_through(w, &m, e);
}

int warden_jail_start(struct warden *w, struct err *e)
{
	struct init in = {.plan = &w->plan,
		.cgroup = &w->cgroup,
		.spec = w->spec,
		.home_fd = w->home.root};
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, "create a socket pair");
	in.sock = pair[1];
	w->init_sock = pair[0];
	w->init = init_start(&in, e);
	close(pair[1]);
	if (w->init < 0) {
		w->init = 0;
		return -1;
	}
	if (built_await(w, e) < 0) {
		warden_jail_stop(w);
		return -1;
	}
	if (io_write_full(w->init_sock, "g", 1) < 0) {
		err_errno(e, "build the jail: tell its first process to go on");
		warden_jail_stop(w);
		return -1;
	}
	io_set_nonblock(w->line, 1);
	return 0;
}

void warden_jail_stop(struct warden *w)
{
	struct measure m;

	if (w->init > 0) {
		if (w->proc >= 0) {
			warden_measure(w, 0, &m);
			w->cpu_gone_ms = w->cpu_ms;
		}
		kill(w->init, SIGKILL);
		warden_thaw(w); /* what is frozen does not die */
		waitpid(w->init, NULL, 0);
	}
	w->init = 0;
	w->live = 0;
	w->swept = 0;
	w->ending = 0;
	for (int i = 0; i < w->nkept; i++)
		fd_drop(&w->kept[i].sock);
	w->nkept = 0;
	fd_drop(&w->ctl);
	fd_drop(&w->stack);
	fd_drop(&w->init_sock);
	fd_drop(&w->tty_master);
	fd_drop(&w->tty_slave);
	fd_drop(&w->line);
	for (int i = 0; i < APPLY_TMPFS; i++)
		fd_drop(&w->tmp[i]);
	fd_drop(&w->proc);
}

/* ---- guest ---- */

int warden_spawn(struct warden *w, const int *fds, int nfds, struct err *e)
{
	struct wire_init m = {0};

	if (warden_init_send(w, INIT_SPAWN, NULL, 0, fds, nfds) < 0)
		return err_errno(e, "start Python");
	if (warden_init_await(w, INIT_SPAWNED, &m, now_ms() + BOOT_MS) < 0) {
		if (m.type == INIT_ERROR)
			*e = m.err;
		else
			err_set(e, "start Python: no answer");
		return -1;
	}
	w->live = m.pids[0];
	return 0;
}

int warden_guest_await(struct warden *w, int sock, struct wire_guest *m,
	char *buf, int64_t deadline_ms)
{
	struct wire_init im;

	for (;;) {
		int init_ready = 0;
		int r = wait_for(w, sock, deadline_ms, &init_ready);

		if (init_ready && warden_init_take(w, &im) < 0)
			return -1;
		if (r) {
			ssize_t n = io_recv_fds(sock, buf, WIRE_GUEST_MAX, NULL,
				0, MSG_DONTWAIT);

			if (n <= 0)
				return -1;
			return wire_guest_decode(m, buf, (size_t)n, NULL) < 0
				       ? -1
				       : 1;
		}
		/* A child of the dead may hold the other end open. */
		if (!w->live)
			return -1;
		if (!init_ready && remaining(deadline_ms) == 0)
			return 0;
	}
}

/* Where the guest writes its stacks: a file of fixed size, because what is
 * written to it is memory that no process shows. */
static int stack_file(struct err *e)
{
	auto_close int fd = memfd_create(
		"cellblock-stack", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, STACK_MAX) < 0 ||
		fcntl(fd, F_ADD_SEALS,
			F_SEAL_SEAL | F_SEAL_GROW | F_SEAL_SHRINK) < 0)
		return err_errno(e, "create the stack file");
	return fd_take(&fd);
}

int warden_guest_start(struct warden *w, int restarted, struct err *e)
{
	struct jail_event ev = {.type = JAIL_UP, .restarted = restarted};
	char buf[WIRE_GUEST_MAX];
	struct wire_guest m;
	int pair[2], fds[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, "create a socket pair");
	w->ctl = pair[0];
	w->stack = stack_file(e);
	fds[0] = pair[1];
	fds[1] = w->stack;
	r = w->stack < 0 ? -1 : warden_spawn(w, fds, 2, e);
	close(pair[1]);
	if (r < 0)
		return -1;
	if (warden_guest_await(w, w->ctl, &m, buf, now_ms() + BOOT_MS) != 1 ||
		m.type != GUEST_READY) {
		err_set(e, "start %s: it %s", w->spec->python,
			w->live ? "did not answer" : "died");
		return err_hint(e,
			"is it Python 3.9 or newer? try:  %s -I -S -c pass",
			w->spec->python);
	}
	w->names = w->threads = 0;
	snprintf(ev.text, sizeof(ev.text), "%s", m.text);
	snprintf(ev.limited, sizeof(ev.limited), "%s", w->limited);
	warden_event(w, &ev, &w->tty_master, 1);
	return 0;
}

/* ---- all of the jail ---- */

static int checkpoint_pids(const struct warden *w, int32_t *pids)
{
	for (int i = 0; i < w->nkept; i++)
		pids[i] = w->kept[i].pid;
	return w->nkept;
}

void warden_thaw(struct warden *w)
{
	if (w->frozen)
		cgroup_freeze(&w->cgroup, 0, FREEZE_MS, NULL);
	w->frozen = 0;
}

/* Init stopped all that it could not see: look for it, and have it kill what
 * runs on but the guest and its checkpoints. -1 when that cannot be done. */
static int stop_verify(struct warden *w, int32_t *killed)
{
	int64_t end = now_ms() + VERIFY_MS;
	int32_t pids[WIRE_PIDS_MAX];
	int n = checkpoint_pids(w, pids), r;
	struct wire_init m;
	struct procs p;

	while ((r = procs_sample(&w->procs, PROCS_RUNNING, &p, NULL)) == 0 &&
		p.running > 0) {
		if (now_ms() < end) {
			poll(NULL, 0, 1);
			continue;
		}
		pids[n++] = w->live;
		if (warden_init_send(w, INIT_KILL, pids, n, NULL, 0) < 0 ||
			warden_init_await(
				w, INIT_KILLED, &m, now_ms() + STOP_MS) < 0)
			return -1;
		*killed = m.n;
		return 0;
	}
	return r;
}

static int sweep(struct warden *w, int32_t *killed)
{
	int32_t pids[WIRE_PIDS_MAX];
	struct wire_init m;

	w->swept = 1;
	if (warden_init_send(w, INIT_STOP, pids, checkpoint_pids(w, pids), NULL,
		    0) < 0 ||
		warden_init_await(w, INIT_STOPPED, &m, now_ms() + STOP_MS) <
			0 ||
		m.flag)
		return -1;
	*killed = m.m;
	return w->no_proc ? stop_verify(w, killed) : 0;
}

void warden_stop(struct warden *w, int32_t *killed)
{
	*killed = 0;
	if (cgroup_can_freeze(&w->cgroup)) {
		w->frozen = 1;
		if (cgroup_freeze(&w->cgroup, 1, FREEZE_MS, NULL) == 0)
			return;
		/* Something does not freeze: sweep, which kills it. */
		warden_thaw(w);
	}
	if (sweep(w, killed) == 0)
		return;
	warden_notice(w, "the jail could not be stopped · Python restarted, "
			 "variables lost · home kept");
	warden_restart(w);
	if (sweep(w, killed) < 0)
		warden_end(w);
}

void warden_rest(struct warden *w, int32_t *killed)
{
	*killed = 0;
	if (w->spec->limits.background != BACKGROUND_RUN)
		warden_stop(w, killed);
}

void warden_continue(struct warden *w)
{
	int32_t pids[WIRE_PIDS_MAX];

	warden_thaw(w);
	if (!w->swept)
		return;
	w->swept = 0;
	warden_init_send(w, INIT_CONT, pids, checkpoint_pids(w, pids), NULL, 0);
}

/* What is kept in files. A page that is mapped too counts twice. */
static int64_t files_bytes(const struct warden *w)
{
	int64_t bytes = 0, home = 0;
	struct statfs st;
	int files;

	for (int i = 0; i < APPLY_TMPFS; i++)
		if (w->tmp[i] >= 0 && fstatfs(w->tmp[i], &st) == 0)
			bytes += (int64_t)(st.f_blocks - st.f_bfree) *
				 st.f_bsize;
	home_usage(&w->home, &home, &files);
	return bytes + home;
}

void warden_measure(struct warden *w, unsigned flags, struct measure *m)
{
	struct cgroup_usage u;
	struct procs p = {0};
	int counted;

	*m = (struct measure){0};
	cgroup_usage(&w->cgroup, &u);
	counted = w->cgroup.enforced & CGROUP_LIMIT_MEMORY;
	procs_sample(&w->procs,
		flags & MEASURE_MEMORY && !counted ? PROCS_MEMORY : 0, &p,
		NULL);
	m->processes = p.n;
	m->slots = p.threads + p.zombies + 1;
	m->fork_fails = u.fork_fails;
	m->cpu_ms =
		u.cpu_ns >= 0 ? u.cpu_ns / 1000000 : w->cpu_gone_ms + p.cpu_ms;
	if (m->cpu_ms > w->cpu_ms)
		w->cpu_ms = m->cpu_ms;
	m->bytes = counted ? u.memory_bytes : p.bytes + files_bytes(w);
	if (m->bytes > w->peak_bytes)
		w->peak_bytes = m->bytes;
	m->peak_bytes =
		counted && u.peak_bytes > 0 ? u.peak_bytes : w->peak_bytes;
	m->oom_kills = u.oom_kills;
}
