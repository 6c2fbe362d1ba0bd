/* SPDX-License-Identifier: MIT */
/*
 * program.c - one program in a jail of its own
 *
 * Runs in:   warden
 * Trusts:    clocks and the kernel's reports; the program gets our pipes, never
 *            a descriptor of the caller's
 * Leaves:    the session ended
 */
#include "state.h"

#include "jail/base/io.h"
#include "jail/walls/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* Between two looks at it. */
#define TICK_MS 25

struct program {
	struct jail_program result;
	int64_t start_ms, deadline_ms, tick_ms, looked_ms, rested_ms;
	int over;
};

/* Three pipes: the program's ends in `inner`, the front end's in `outer`. */
static int pipes_open(int *inner, int *outer, struct err *e)
{
	for (int i = 0; i < 3; i++) {
		int p[2];

		if (pipe2(p, O_CLOEXEC) < 0)
			return err_errno(e, "create a pipe");
		inner[i] = i == 0 ? p[0] : p[1];
		outer[i] = i == 0 ? p[1] : p[0];
	}
	return 0;
}

static int program_start(struct warden *w, struct err *e)
{
	struct jail_event ev = {.type = JAIL_UP};
	int inner[3] = {-1, -1, -1}, outer[3] = {-1, -1, -1}, up[4];
	int r;

	if (w->spec->tty_bits)
		pty_set_cooked(w->tty_slave, NULL);
	r = pipes_open(inner, outer, e);
	if (r == 0)
		r = warden_spawn_ask(w, inner, 3, e);
	if (r == 0)
		r = warden_spawn_await(w, e);
	up[0] = w->spec->tty_bits ? w->tty_master : -1;
	for (int i = 0; i < 3; i++)
		up[i + 1] = w->spec->tty_bits & (1u << i) ? -1 : outer[i];
	if (r == 0) {
		snprintf(ev.limited, sizeof(ev.limited), "%s", w->limited);
		warden_event(w, &ev, up, 4);
	}
	for (int i = 0; i < 3; i++) {
		fd_drop(&inner[i]);
		fd_drop(&outer[i]);
	}
	return r;
}

static void program_kill(struct program *p, enum jail_limit why)
{
	p->result.limit = why;
	p->result.status = SIGKILL;
	p->over = 1;
}

static void program_front(struct warden *w, struct program *p)
{
	struct wire_front m;
	ssize_t n = io_recv_fds(w->front, &m, sizeof(m), NULL, 0, 0);

	if (n <= 0 || wire_front_check(&m, (size_t)n, NULL) < 0)
		warden_end(w);
	if (m.type == FRONT_RESIZE)
		pty_set_size(w->tty_slave, (unsigned short)m.a,
			(unsigned short)m.b, NULL);
	if (m.type == FRONT_INTERRUPT)
		pty_signal_fg(w->tty_master, SIGINT, NULL);
	if (m.type == FRONT_KILL)
		program_kill(p, LIMIT_PERSON);
}

static void program_clocks(struct warden *w, struct program *p)
{
	const struct limits *l = &w->spec->limits;
	int64_t now = now_ms(), slice = now - p->looked_ms;
	struct measure m;

	p->looked_ms = now;
	p->tick_ms = warden_next_look(now, TICK_MS);
	if (w->spec->tty_bits & 1 && p->rested_ms + slice <= l->idle_ms &&
		warden_waits_for_person(w)) {
		p->rested_ms += slice;
		p->deadline_ms += slice;
	}
	warden_measure(w, MEASURE_MEMORY, &m);
	p->result.cpu_ms = m.cpu_ms;
	p->result.peak_bytes = m.peak_bytes;
	if (!(w->cgroup.enforced & CGROUP_LIMIT_MEMORY) &&
		m.bytes > l->memory_bytes)
		program_kill(p, LIMIT_MEMORY);
	else if (m.cpu_ms > l->cell_cpu_ms)
		program_kill(p, LIMIT_CPU);
	else if (now >= p->deadline_ms)
		program_kill(p, LIMIT_WALL);
	else if (now - w->started_ms > l->lifetime_ms)
		program_kill(p, LIMIT_LIFETIME);
}

static void program_died(struct warden *w, struct program *p)
{
	struct measure m;

	warden_measure(w, 0, &m);
	p->over = 1;
	p->result.status = w->live_status;
	p->result.peak_bytes = m.peak_bytes;
	if (m.cpu_ms > p->result.cpu_ms)
		p->result.cpu_ms = m.cpu_ms;
	if (WIFSIGNALED(w->live_status) &&
		WTERMSIG(w->live_status) == SIGKILL && m.oom_kills > 0)
		p->result.limit = LIMIT_MEMORY;
}

static void program_loop(struct warden *w, struct program *p)
{
	struct wire_init im;

	while (!p->over) {
		struct pollfd pf[2] = {{.fd = w->init_sock, .events = POLLIN},
			{.fd = w->front, .events = POLLIN}};
		int64_t left = p->tick_ms - now_ms();

		if (warden_poll(pf, 2, left < 0 ? 0 : (int)left) < 0 &&
			errno != EINTR)
			warden_end(w);
		if (pf[1].revents)
			program_front(w, p);
		if (pf[0].revents && warden_init_take(w, &im) < 0) {
			program_kill(p, LIMIT_NONE);
			return;
		}
		if (!w->live)
			program_died(w, p);
		else if (!p->over && now_ms() >= p->tick_ms)
			program_clocks(w, p);
	}
}

_Noreturn void warden_program(struct warden *w)
{
	struct jail_event ev = {.type = JAIL_FAILED};
	struct program p = {0};

	p.start_ms = p.looked_ms = now_ms();
	p.deadline_ms = p.start_ms + w->spec->limits.cell_wall_ms;
	p.tick_ms = warden_next_look(p.start_ms, TICK_MS);
	if (program_start(w, &ev.err) < 0) {
		err_kind_set(&ev.err, ERR_JAIL);
		warden_event(w, &ev, NULL, 0);
		warden_end(w);
	}
	program_loop(w, &p);
	p.result.wall_ms = now_ms() - p.start_ms - p.rested_ms;
	/* Whatever it left behind holds its pipes open: end that first. */
	warden_jail_stop(w);
	ev = (struct jail_event){.type = JAIL_EXITED, .program = p.result};
	warden_event(w, &ev, NULL, 0);
	/* -d downloads come after; the session ends when they are done. */
	while (warden_front_next(w) == 0)
		;
	warden_end(w);
}
