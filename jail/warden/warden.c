/* SPDX-License-Identifier: MIT */
/*
 * warden.c - the owner of a session: its start, and its wait between cells
 *
 * Runs in:   a child of the front end, in a session, a user namespace and a
 *            mount namespace of its own
 * Holds:     started by root: uid 0 until the cgroup exists and an outside id
 *            is claimed; then, as anyone, capabilities in its own user
 *            namespace only
 * Trusts:    the spec; the front end as far as its own session goes
 * Leaves:    nothing: the home, the jail and the namespaces end with it, the
 *            cgroup with its janitor
 */
#include "warden.h"

#include "jail/apply/apply.h"
#include "jail/apply/facts.h"
#include "jail/apply/janitor.h"
#include "jail/base/io.h"
#include "jail/walls/claim.h"
#include "jail/walls/ident.h"
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* A session of our own, nothing of the caller's but the one socket. */
static int detach(struct warden *w, struct err *e)
{
	static const int for_groups[] = {
		SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU};
	sigset_t none;
	int null;

	if (setsid() < 0 && errno != EPERM)
		return err_errno(e, "start a session");
	if (ident_close_fds(&w->front, 1, e) < 0 ||
		ident_set_ordinary_scheduling(e) < 0)
		return -1;
	null = open("/dev/null", O_RDWR);
	if (null < 0)
		return err_errno(e, "open /dev/null");
	for (int fd = 0; fd < 3; fd++)
		if (fd != null && dup2(null, fd) < 0)
			return err_errno(e, "use /dev/null");
	if (null > 2)
		close(null);
	/* What reached us as one of the caller's group is pending, and dropped
	 * by being ignored. */
	for (size_t i = 0; i < sizeof(for_groups) / sizeof(for_groups[0]); i++)
		signal(for_groups[i], SIG_IGN);
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	return 0;
}

/* The kernel's limits; and first, while there is nothing of them, a janitor
 * that outlives us. */
static int limit_by_cgroup(struct warden *w, struct cgroup_caps *caps,
	const char *name, int lock, struct err *e)
{
	if (cgroup_place(&w->cgroup, caps, name, e) < 0)
		return -1;
	caps->with[1] =
		janitor_start(&w->cgroup, lock, w->front, &w->janitor, e);
	if (caps->with[1] < 0)
		return -1;
	return cgroup_open(&w->cgroup, caps, &w->spec->limits, e);
}

/* Started by root: the limits while we may still set them, and then an id that
 * nobody else has. */
static int leave_root(struct warden *w, struct cgroup_caps *caps, struct err *e)
{
	int lock = -1;
	char name[CLAIM_NAME_MAX];
	uid_t uid;

	if (claim_uid(CLAIM_DIR, w->spec->uid_lo, w->spec->uid_hi, &uid, &lock,
		    e) < 0)
		return -1;
	if (claim_name(lock, uid, name, e) < 0)
		return -1;
	cgroup_probe(caps, getppid());
	if (limit_by_cgroup(w, caps, name, lock, e) < 0)
		return -1;
	/* The lock stays open here too: should the janitor be killed, the uid
	 * is ours as long as we live, and then the next janitor's business. */
	return ident_become(uid, uid, e);
}

static void no_cgroup(struct cgroup *cg)
{
	struct cgroup_caps none = {.kind = CGROUP_NONE};

	cgroup_place(cg, &none, NULL, NULL);
}

/* Started by anyone else: what was delegated to them, if anything was
 * (systemd-run --user --scope -p Delegate=yes). A cgroup that cannot be used
 * is none: the session is watched, says so, and jail.require is not met. */
static void use_delegated(struct warden *w, struct cgroup_caps *caps)
{
	struct err why;

	cgroup_probe(caps, getppid());
	if (caps->kind == CGROUP_NONE ||
		limit_by_cgroup(w, caps, NULL, -1, &why) == 0)
		return;
	no_cgroup(&w->cgroup);
	caps->kind = CGROUP_NONE;
	snprintf(caps->why, sizeof(caps->why), "%.200s", why.msg);
}

static int own_namespaces(struct err *e)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0) {
		err_errno(e, "create a user namespace");
		host_explain_userns(e);
		return -1;
	}
	if (ident_map_self(PLAN_ID, uid, PLAN_ID, gid, e) < 0)
		return -1;
	return 0;
}

static int start(struct warden *w, struct err *e)
{
	struct apply_ctx ctx = {.home_fd = -1, .pts_fd = -1, .proc_fd = -1};
	struct cgroup_caps caps = {.kind = CGROUP_NONE};

	if (detach(w, e) < 0)
		return -1;
	no_cgroup(&w->cgroup);
	if (host_probe(&w->host, w->spec->python, e) < 0)
		return -1;
	host_resolve(&w->host, w->spec);
	facts_of_host(&w->facts, &w->host);
	if (!ident_is_root())
		use_delegated(w, &caps);
	else if (leave_root(w, &caps, e) < 0)
		return -1;
	/* Whether there can be a /proc is known when init has tried. */
	facts_of_cgroup(&w->facts, &w->cgroup, &caps);
	if (enforce_require(w->spec->require, &w->facts, ENFORCE_PROC, e) < 0)
		return -1;
	w->host.cgroup_memory = !!(w->cgroup.enforced & CGROUP_LIMIT_MEMORY);
	if (plan_make(&w->plan, w->spec, &w->host, e) < 0)
		return -1;
	if (own_namespaces(e) < 0)
		return -1;
	if (apply_stage(&w->plan, PLAN_WARDEN, &ctx, e) < 0 ||
		ident_set_undumpable(e) < 0)
		return -1;
	home_init(&w->home, ctx.home_fd);
	if (warden_jail_start(w, e) < 0)
		return -1;
	w->facts.proc = !w->no_proc;
	enforce_say(&w->facts, w->limited, sizeof(w->limited));
	return 0;
}

/* ---- between cells ---- */

/* Between cells nothing should happen in the jail. What does is a death, a
 * guest that breaks the protocol, or something that will not rest. */
static void guest_broken(struct warden *w)
{
	warden_broken(w, w->live ? "Python spoke out of turn and was killed"
				 : "Python died between cells");
	warden_park(w);
}

/* Returns how long to wait until something is due. */
static int session_clocks(struct warden *w)
{
	static const enum jail_limit limits[] = {LIMIT_IDLE, LIMIT_LIFETIME};
	int64_t wait = 3600 * 1000, due;

	if (!warden_still(w, &due)) {
		warden_broken(
			w, "the jail ran on between cells and was killed");
		warden_park(w);
	}
	if (due < wait)
		wait = due;

	for (size_t i = 0; i < 2; i++) {
		struct jail_event ev = {.type = JAIL_LIMIT, .limit = limits[i]};

		if (warden_clock(w, limits[i], &due) <= 0) {
			warden_event(w, &ev, NULL, 0);
			warden_end(w);
		}
		if (due < wait)
			wait = due;
	}
	return (int)wait;
}

static _Noreturn void between_cells(struct warden *w)
{
	struct wire_init im;

	for (;;) {
		struct pollfd p[3] = {{.fd = w->front, .events = POLLIN},
			{.fd = w->init_sock, .events = POLLIN},
			{.fd = w->ctl, .events = POLLIN}};

		if (warden_poll(p, 3, session_clocks(w)) < 0 && errno != EINTR)
			warden_end(w);
		if (p[1].revents && warden_init_take(w, &im) < 0) {
			warden_notice(w, "the jail died · Python restarted, "
					 "variables lost · home kept");
			warden_restart(w);
			warden_park(w);
		} else if (p[2].revents || !w->live) {
			guest_broken(w);
		}
		/* Whatever else happens, the front end has its turn. */
		if (p[0].revents && warden_front_serve(w) < 0)
			warden_end(w);
	}
}

/* A first cell that waits already is not kept waiting for a checkpoint: a
 * fresh Python is the state before it. */
static int first_cell_waits(struct warden *w)
{
	struct wire_front m;

	while (recv(w->front, &m, sizeof(m), MSG_PEEK | MSG_DONTWAIT) ==
		sizeof(m)) {
		if (m.type == FRONT_RUN)
			return 1;
		if (warden_front_serve(w) < 0)
			warden_end(w);
	}
	return 0;
}

_Noreturn void warden_main(int front, const struct jail_spec *spec)
{
	struct jail_event ev = {.type = JAIL_FAILED};
	struct warden w = {.spec = spec,
		.front = front,
		.janitor = -1,
		.init_sock = -1,
		.tty_master = -1,
		.tty_slave = -1,
		.line = -1,
		.tmp = {-1, -1},
		.proc = -1,
		.ctl = -1,
		.stack = -1,
		.home = {.root = -1},
		.next_cell = 1,
		.started_ms = now_ms(),
		.touched_ms = now_ms()};

	if (start(&w, &ev.err) == 0) {
		ev.type = JAIL_BUILT;
		ev.facts = w.facts;
		snprintf(ev.limited, sizeof(ev.limited), "%s", w.limited);
		warden_event(&w, &ev, NULL, 0);
		if (spec->mode == SPEC_PROGRAM) {
			while (warden_front_next(&w) == 0)
				if (w.started)
					warden_program(&w);
			warden_end(&w);
		}
		ev.type = JAIL_FAILED;
		if (warden_guest_start(&w, 0, &ev.err) == 0) {
			if (!first_cell_waits(&w))
				warden_park(&w);
			between_cells(&w);
		}
	}
	ev.facts = w.facts;
	/* What the configuration asks for may be the only thing wrong. */
	if (ev.err.kind != ERR_CONFIG)
		err_kind_set(&ev.err, ERR_JAIL);
	warden_event(&w, &ev, NULL, 0);
	warden_end(&w);
}
