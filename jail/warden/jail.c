/* SPDX-License-Identifier: MIT */
/*
 * jail.c - the life of a jail: built, with Python in it, and ended
 *
 * Runs in:   warden
 * Holds:     capabilities in the session's user namespace
 * Trusts:    its own init for shape, the guest for nothing
 * Leaves:    at its end no process of it, and no descriptor
 */
#include "state.h"

#include "jail/base/io.h"
#include "jail/init/init.h"
#include "jail/init/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* What the jail's construction, and Python's boot, may take. */
#define BUILD_MS 20000
#define BOOT_MS 30000

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
	int *slots[] = {&w->tty_master, &w->tty_slave, &w->line, &w->tmp[0],
		&w->tmp[1], &w->proc};
	enum { SLOTS = sizeof(slots) / sizeof(slots[0]) };
	int64_t deadline = now_ms() + BUILD_MS;
	struct wire_init m;
	int fds[SLOTS], ready;
	ssize_t n;

	do
		warden_wait(w, -1, deadline, &ready);
	while (!ready && now_ms() < deadline);
	n = ready ? io_recv_fds(w->init_sock, &m, sizeof(m), fds, SLOTS, 0)
		  : -1;
	if (n <= 0 || wire_init_check(&m, (size_t)n, NULL) < 0)
		return err_set(e, "build the jail: its first process died");
	if (m.type == INIT_ERROR) {
		*e = m.err;
		return -1;
	}
	if (m.type != INIT_BUILT)
		return err_set(e, "build the jail: unexpected message");
	for (int i = 0; i < SLOTS; i++)
		*slots[i] = fds[i];
	w->no_proc = m.no_proc;
	return look_through(w, &m, e);
}

/* ---- Python ---- */

int warden_spawn_ask(struct warden *w, const int *fds, int nfds, struct err *e)
{
	int pass[SPAWN_FDS], r;

	if (spawn_open_driver(pass, e) < 0)
		return -1;
	for (int i = 0; i < nfds; i++)
		pass[SPAWN_CTL + i] = fds[i];
	r = warden_init_send(w, INIT_SPAWN, NULL, 0, pass, SPAWN_CTL + nfds);
	if (r < 0)
		err_errno(e, "start Python");
	close(pass[SPAWN_PARTS]);
	close(pass[SPAWN_LIBRARY]);
	return r;
}

int warden_spawn_await(struct warden *w, struct err *e)
{
	struct wire_init m = {0};

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

static int guest_ask(struct warden *w, struct err *e)
{
	int pair[2], r = -1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, "create a socket pair");
	w->ctl = pair[0];
	io_refuse_fds(w->ctl);
	w->stack = stack_file(e);
	if (w->stack >= 0)
		r = warden_spawn_ask(w, (const int[]){pair[1], w->stack}, 2, e);
	close(pair[1]);
	return r;
}

int warden_guest_start(struct warden *w, int restarted, struct err *e)
{
	struct jail_event ev = {.type = JAIL_UP, .restarted = restarted};
	char buf[WIRE_GUEST_MAX];
	struct wire_guest m;
	int r;

	if (warden_spawn_await(w, e) < 0)
		return -1;
	r = warden_guest_await(w, w->ctl, &m, buf, now_ms() + BOOT_MS);
	if (r != 1 || m.type != GUEST_READY) {
		err_set(e, "start %s: it %s", w->spec->python,
			r == 0 ? "did not answer" : "ended at once");
		return err_hint(e,
			"is it Python 3.9 or newer? try:  %s -I -S -c "
			"'import sys; print(sys.version)'",
			w->spec->python);
	}
	w->names = w->threads = 0;
	snprintf(ev.text, sizeof(ev.text), "%s", m.text);
	snprintf(ev.limited, sizeof(ev.limited), "%s", w->limited);
	warden_event(w, &ev, &w->tty_master, 1);
	return 0;
}

/* ---- the jail ---- */

int warden_jail_start(struct warden *w, struct err *e)
{
	struct init in = {.plan = &w->plan,
		.cgroup = &w->cgroup,
		.spec = w->spec,
		.home_fd = w->home.root};
	int pair[2], asked, built;
	struct err why = {0};

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
	/* While it builds; what goes wrong there says more. */
	asked = w->spec->mode == SPEC_SESSION ? guest_ask(w, &why) : 0;
	built = built_await(w, e);
	if (built == 0 && asked < 0)
		*e = why;
	if (built < 0 || asked < 0) {
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

/* ---- the end ---- */

_Noreturn void warden_end(struct warden *w)
{
	warden_jail_stop(w);
	home_fini(&w->home);
	_exit(0);
}
