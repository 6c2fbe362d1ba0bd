/* SPDX-License-Identifier: MIT */
/*
 * program.c - one program in a jail of its own
 *
 * Runs in:   warden
 * Trusts:    clocks and the kernel's reports; the program gets our pipes, never
 *            a descriptor of the caller's
 * Leaves:    no jail, or an empty one; the home, for what the front end takes
 *            out of it
 *
 * A cell's driver is started before anybody asks for it. It holds nothing of a
 * request then, and no clock runs: it waits. Clocks and counters begin with the
 * cell.
 */
#include "jail/warden/parts.h"

#include "jail/base/io.h"
#include "jail/walls/walls.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- pipes ---- */

/* The first `n`: the program's ends in `inner`, the front end's in `outer`, all
 * -1 before. `merged`: stdout and stderr are one. 0, or -1 with e and some
 * open. */
static int open_pipes(int *inner, int *outer, int n, int merged, struct err *e)
{
	for (int i = 0; i < n; i++) {
		int p[2];

		if (i == 2 && merged) {
			inner[i] = fcntl(inner[1], F_DUPFD_CLOEXEC, 3);
			if (inner[i] < 0)
				return err_errno(e, "duplicate a pipe");
			continue;
		}
		if (pipe2(p, O_CLOEXEC) < 0)
			return err_errno(e, "create a pipe");
		inner[i] = i == 0 ? p[0] : p[1];
		outer[i] = i == 0 ? p[1] : p[0];
	}
	return 0;
}

/* ---- its life ---- */

/* It runs: hand its pipes over. */
static void tell_up(struct warden *w, const int *outer)
{
	struct jail_event ev = {.type = JAIL_UP};
	unsigned tty = w->spec->tty_bits;
	int up[JAIL_UP_FDS] = {tty ? w->jail.tty_master : -1};

	for (int i = 0; i < PIPES; i++)
		up[i + 1] = tty & (1u << i) ? -1 : outer[i];
	snprintf(ev.limited, sizeof(ev.limited), "%s", w->site.limited);
	link_event(&w->link, &ev, up, JAIL_UP_FDS);
}

/* Have init start it, at once or as soon as the jail is built. */
static int ask_to_spawn(
	struct warden *w, int args, int merged, int *outer, struct err *e)
{
	int inner[PIPES + 1] = {args, -1, -1, -1, -1};
	int r = wire_start_check(args, e);

	if (r == 0)
		r = open_pipes(inner + 1, outer, PIPES_PROGRAM, merged, e);
	if (r == 0)
		r = guest_spawn(&w->guest, inner, PIPES_PROGRAM + 1, e);
	fds_drop(inner + 1, PIPES);
	return r;
}

/* The jail may have been made long before. */
static void start_clocks(struct warden *w, struct watch *wa)
{
	clocks_start(&w->clocks, &w->link, w->spec);
	clocks_touch(&w->clocks);
	watch_start(wa, w, w->rest_cpu_ms, -1);
}

/* Both return 0, -1 with e, or SESSION_OVER. The caller owns `outer`. */

/* Init is asked at once, and starts it as soon as it has built the jail, unless
 * it must be seen first that the jail keeps what is required. The clocks start
 * when the jail stands. */
static int start_program(struct warden *w, struct watch *wa, int args,
	int merged, int *outer, struct err *e)
{
	int r = w->spec->require ? warden_stand(w, e) : 0;

	warden_jail_note_quiet(&w->jail, 0);
	if (r == 0)
		r = ask_to_spawn(w, args, merged, outer, e);
	if (r == 0)
		r = warden_stand(w, e);
	if (r < 0)
		return r;
	start_clocks(w, wa);
	return guest_spawn_await(&w->guest, e);
}

/* Python waits for it. */
static int give_cell(struct warden *w, struct watch *wa, int file, int merged,
	int *outer, struct err *e)
{
	int inner[PIPES] = {-1, -1, -1, -1};
	struct guest_cell c = {
		.file = file, .tty_bits = w->spec->tty_bits, .pipes = inner};
	int r = warden_stand(w, e);

	if (r < 0)
		return r;
	r = wire_start_find(file, &c.at, &c.bytes, e);
	if (r == 0)
		r = open_pipes(inner, outer, c.bytes ? PIPES : PIPES_PROGRAM,
			merged, e);
	if (r == 0) {
		/* Python may have used CPU time since it was up. */
		warden_note_rest(w);
		start_clocks(w, wa);
		warden_jail_note_quiet(&w->jail, 0);
		r = guest_give_cell(&w->guest, &c, e);
	}
	fds_drop(inner, PIPES);
	return r;
}

/* It is dead: say of what. */
static void note_death(
	struct warden *w, struct watch *wa, struct jail_program *result)
{
	struct warden_jail_usage u;
	int status = w->guest.status;

	warden_jail_note_quiet(&w->jail, w->guest.alone);
	if (!w->guest.alone)
		warden_jail_look(&w->jail, 0, LOOK_END_MS);
	warden_jail_measure(&w->jail, &u);
	wa->ended = 1;
	wa->peak_bytes = u.peak_bytes;
	if (u.cpu_ms - wa->cpu_start_ms > wa->cpu_ms)
		wa->cpu_ms = u.cpu_ms - wa->cpu_start_ms;
	result->status = status;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL &&
		u.oom_kills > wa->oom_others)
		wa->limit = warden_jail_oom_limit(&w->jail);
}

static int watch_program(
	struct warden *w, struct watch *wa, struct jail_program *result)
{
	wa->may_pause = w->spec->tty_bits & 1;
	if (link_interrupt_take(&w->link))
		pty_interrupt(w->jail.tty_master);
	watch_ready(wa, w);
	while (!wa->ended) {
		if (watch_wait(wa) == SESSION_OVER)
			return SESSION_OVER;
		if (watch_init(wa, w) < 0)
			wa->killed = wa->ended = 1;
		else if (!guest_is_alive(&w->guest))
			note_death(w, wa, result);
		if (watch_serve(wa, w) == SESSION_OVER)
			return SESSION_OVER;
	}
	if (wa->killed)
		result->status = SIGKILL;
	result->limit = wa->limit;
	result->cpu_ms = wa->cpu_ms;
	result->peak_bytes = wa->peak_bytes;
	result->wall_ms = watch_wall_ms(wa);
	return 0;
}

/* The longest that it may ask for. */
static int64_t most_ms(const struct jail_spec *spec)
{
	return spec->mode == SPEC_CELL && spec->asked_wall_ms
		       ? spec->asked_wall_ms
		       : spec->limits.cell_wall_ms;
}

int warden_program_run(struct warden *w, int args, int64_t wall_ms, int merged)
{
	struct jail_event ev = {.type = JAIL_FAILED};
	int outer[PIPES] = {-1, -1, -1, -1};
	int64_t home_bytes;
	struct watch wa;
	int r = -1;

	warden_note_program(w);
	switch (w->spec->mode) {
	case SPEC_CELL:
		r = give_cell(w, &wa, args, merged, outer, &ev.err);
		break;
	case SPEC_SESSION:
	case SPEC_PROGRAM:
		r = start_program(w, &wa, args, merged, outer, &ev.err);
	}
	if (r == -1) {
		err_kind_set(&ev.err, ERR_JAIL);
		ev.facts = w->site.facts;
		link_event(&w->link, &ev, NULL, 0);
	} else if (r == 0) {
		tell_up(w, outer);
	}
	fds_drop(outer, PIPES);
	if (r < 0)
		return SESSION_OVER;
	watch_shorten(&wa, wall_ms, most_ms(w->spec));
	if (watch_program(w, &wa, &ev.program) == SESSION_OVER)
		return SESSION_OVER;
	/* Processes that it left behind hold its pipes open: they end first.
	 * Where it left nothing, nobody waits for the jail's end: that comes
	 * with the session's. */
	if (wa.killed || !w->guest.alone)
		warden_jail_end(&w->jail);
	warden_note_program_end(w);
	home_usage(&w->site.home, &home_bytes, &ev.program.home_files);
	ev.type = JAIL_EXITED;
	if (w->guest.ctl >= 0 && wa.limit == LIMIT_NONE &&
		!guest_took_cell(&w->guest)) {
		ev.type = JAIL_FAILED;
		err_set(&ev.err, "Python died before its cell");
		err_kind_set(&ev.err, ERR_JAIL);
	}
	if (ev.program.limit != LIMIT_NONE)
		site_count(&w->site, ev.program.limit);
	link_event(&w->link, &ev, NULL, 0);
	return 0;
}
