/* SPDX-License-Identifier: MIT */
/*
 * lease.c - a jail that was made ahead waits until it is somebody's
 *
 * Runs in:   warden, when its first jail stands and Python is up
 * Trusts:    the holders of the other end of the lease's socket: the maker, and
 *            its child that hands the session over. A front end never has it;
 *            that of a pool may have limits lowered, and nothing else
 * Leaves:    a session as any other; or none: nothing is leased by half
 *
 * No code of anybody's is in the jail. Each limit is no looser than the one
 * that the jail was made with. How it gets there:
 *
 *   session.memory     the cgroup, by the maker, which reads it back, or for a
 *                      pool's front end by us, through what we opened before we
 *                      gave root up; where no cgroup counts memory, the tally,
 *                      and RLIMIT_DATA; the sizes of /tmp and /dev/shm; what
 *                      the driver tells psutil
 *   session.processes  the cgroup; RLIMIT_NPROC of init, for what it starts,
 *                      and of a Python that it holds, or that is up
 *   cell.undo          with the processes; here
 *   session.cpus       the cgroup; the driver; variables of Python
 *   home.size, .files  the file system of the home
 *   python.recursion   the driver
 *   session.idle, .lifetime, and every other key of [cell]   here, from now on
 *   session.per_user   counted by the maker, before the lease
 *   files.*            the front end
 *   jail.network       no lease changes it: site_make_plan()
 *
 */
#include "jail/warden/parts.h"
#include "jail/warden/warden.h"

#include "jail/base/io.h"
#include "jail/base/prefault.h"
#include "jail/init/init.h"

#include <stdio.h>
#include <string.h>

/* Longest single wait. */
#define LONGEST_MS (3600 * 1000)
/* Init answers. */
#define INIT_MS 3000
/* Python that waits may use this part of a memory limit. */
#define USED_DEN 2

static int send_offer(struct warden *w, int sock, struct err *e)
{
	const struct cgroup *cg = &w->site.cgroup;
	struct lease_offer o = {
		.id = w->site.id, .limits = w->spec->limits, .cgroup = *cg};
	int fds[1 + CGROUP_CONTROLLERS] = {w->site.allocation};

	memcpy(fds + 1, cg->held, sizeof(cg->held));
	if (io_send_fds(sock, &o, sizeof(o), fds, 1 + cg->ndirs, 0) < 0)
		return err_errno(e, "offer the jail");
	return 0;
}

/* Until there is a lease: 0; -1 with e; SESSION_OVER. */
static int wait_for(struct warden *w, int sock, struct err *e)
{
	struct wire_init m;
	int ready, r = 0;

	while (r == 0) {
		r = link_wait(&w->link, sock, now_ms() + LONGEST_MS, &ready);
		if (r == SESSION_OVER)
			return r;
		if (ready && link_take(&w->link, &m, NULL, 0) < 0)
			return err_set(e, "the jail died before its lease");
		if (w->spec->mode != SPEC_PROGRAM && !guest_is_alive(&w->guest))
			return err_set(e, "Python died before its lease");
	}
	return 0;
}

/* ---- what changes ---- */

static int tell_init(struct warden *w, struct err *e)
{
	auto_close int fd =
		io_sealed_memfd("cellblock-lease", &w->lease, sizeof(w->lease));

	return fd < 0 || link_ask(&w->link, INIT_LEASE, NULL, &fd, 1) < 0
		       ? err_errno(e, "tell init of the lease")
		       : 0;
}

static int await_init(struct warden *w, struct err *e)
{
	struct wire_init m = {0};
	int r = link_await(&w->link, INIT_LEASED, &m, now_ms() + INIT_MS);

	if (r == -1 && m.type == INIT_ERROR)
		*e = m.err;
	else if (r == -1)
		err_set(e, "init does not answer");
	return r;
}

/* No answer is awaited: the next request to Python comes behind it. */
static int tell_python(struct warden *w, struct err *e)
{
	char env[SPAWN_LEASE_MAX], buf[sizeof(env) + 128];
	size_t n = spawn_lease_env(w->spec, env);

	n = wire_lease_encode(buf, &w->spec->limits, env, n);
	return guest_send(&w->guest, buf, n, -1) < 0
		       ? err_errno(e, "tell Python of the lease")
		       : 0;
}

/* The rest is init's: tell_init(). */
static int change_session(
	struct warden *w, const struct spec_lease *c, struct err *e)
{
	struct plan plan = {0};
	int r;

	w->lease = *c;
	w->lease.term[sizeof(w->lease.term) - 1] = '\0';
	spec_take_lease(&w->own, &w->lease);
	if (site_make_plan(&w->site, &plan, e) < 0)
		return -1;
	r = warden_jail_lease(&w->jail, &plan, c, e);
	if (r == 0 && w->spec->mode != SPEC_PROGRAM)
		r = tell_python(w, e);
	if (r < 0) {
		plan_fini(&plan);
		return r;
	}
	site_take_plan(&w->site, &plan);
	clocks_start(&w->clocks, &w->link, w->spec);
	return 0;
}

/* Prepare what the first cell needs: the modules that Python loads, and the
 * helper. */
static int warm_up(struct warden *w, struct err *e)
{
	warden_jail_begin_ttys(&w->jail);
	return guest_send(&w->guest, "WARM", 4, -1) < 0
		       ? err_errno(e, "warm Python up")
		       : 0;
}

int lease_await(struct warden *w, struct err *e)
{
	auto_close int sock = w->spec->made ? w->spec->made->ahead : 0;
	struct lease_answer a = {.ok = 1};
	int session = w->spec->mode == SPEC_SESSION;
	struct spec_lease c;
	int r;

	if (!sock) {
		sock = -1;
		return 0;
	}
	r = w->spec->mode == SPEC_PROGRAM ? warm_python(w, e) : 0;
	prefault_own();
	if (r == 0)
		r = send_offer(w, sock, e);
	if (r == 0 && session)
		r = warm_up(w, e);
	if (r == 0)
		r = wait_for(w, sock, e);
	if (r < 0)
		return r;
	/* An end of file: nobody will lease it. */
	if (io_recv_fds(sock, &c, sizeof(c), NULL, 0, 0) != (ssize_t)sizeof(c))
		return SESSION_OVER;
	r = change_session(w, &c, &a.err);
	a.ok = r == 0;
	if (r == 0) {
		link_charge(&w->link, c.front);
		site_count(&w->site, LIMIT_NONE);
	}
	if (io_send_fds(sock, &a, sizeof(a), NULL, 0, 0) < 0 || r < 0)
		return SESSION_OVER;
	/* The modules that Python has loaded may have changed the ttys. */
	if (session)
		warden_jail_begin_ttys(&w->jail);
	/* Init is asked after the answer. It only lowers limits: should that
	 * fail, the session ends and says so. */
	r = tell_init(w, e);
	return r == 0 ? await_init(w, e) : r;
}

/* ---- lowered by the front end that it was made for ---- */

/* Python must have room to work in, and for a checkpoint. Before its first one
 * it loads what it loads before any cell. */
static int check_room(struct warden *w, int64_t memory, struct err *e)
{
	struct procstatus st;
	int64_t used;

	if (w->checkpoints.n == 0 && warden_park(w) == SESSION_OVER)
		return SESSION_OVER;
	if (procs_status(&w->jail.place.procs, w->guest.pid, &st) < 0)
		return err_errno(e, "look at Python");
	used = st.pages_bytes + st.tables_bytes;
	if (used <= memory / USED_DEN)
		return 0;
	return err_set(e,
		"limits: memory_bytes is too small: Python alone uses %lld "
		"bytes, and must leave as many free",
		(long long)used);
}

int lease_lower(struct warden *w, int64_t memory, int64_t home, struct err *e)
{
	const struct jail_spec *s = w->spec;
	struct jail_event ev = {.type = JAIL_FAILED};
	struct spec_lease c = {.limits = s->limits,
		.tty_bits = s->tty_bits,
		.rows = s->rows,
		.cols = s->cols,
		.front = s->front};
	int r;

	if (!w->may_lower || memory > s->limits.memory_bytes ||
		home > s->limits.home_bytes || home <= 0)
		return err_set(e, "the limits of this session are fixed");
	r = check_room(w, memory, e);
	if (r < 0)
		return r;
	w->may_lower = 0;
	c.limits.memory_bytes = memory;
	c.limits.home_bytes = home;
	snprintf(c.term, sizeof(c.term), "%s", s->term);
	warden_continue(w);
	r = cgroup_lower_memory(&w->site.cgroup, memory, &ev.err);
	if (r == 0)
		r = change_session(w, &c, &ev.err);
	if (r == 0)
		r = tell_init(w, &ev.err);
	if (r == 0)
		r = await_init(w, &ev.err);
	cgroup_fix_memory(&w->site.cgroup);
	if (r != -1)
		return r;
	err_wrap(&ev.err, "lower the limits of the session");
	err_kind_set(&ev.err, ERR_JAIL);
	link_event(&w->link, &ev, NULL, 0);
	return SESSION_OVER;
}

void lease_fix(struct warden *w)
{
	w->may_lower = 0;
	cgroup_fix_memory(&w->site.cgroup);
}
