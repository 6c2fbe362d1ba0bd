/* SPDX-License-Identifier: MIT */
/*
 * warden.c - the session: parked, stopped, rolled back, restarted
 *
 * Runs in:   warden
 * Trusts:    what the kernel and init report; the guest for nothing
 * Leaves:    after each function a live guest, or SESSION_OVER
 *
 * Only here a jail makes way for another. After any breakage we try, in this
 * order: the newest checkpoint that answers; a fresh Python on the same home;
 * the end of the session.
 */
#include "jail/warden/parts.h"

#include "jail/base/io.h"

#include <stdio.h>

/* How often a guest is asked for a checkpoint. One that does not answer is
 * replaced before the next try. */
#define PARK_TRIES 3
/* How long the guest and its copy may take for a checkpoint: what is left of
 * the cell's clocks, within two bounds; and how long a guest that has replaced
 * one may take. */
#define PARK_MS 1500
#define PARK_LEAST_MS 700
#define PARK_AGAIN_MS 700
/* How long a death that has begun may take. */
#define DYING_MS 3000

void warden_init(struct warden *w, const struct jail_spec *spec, int front)
{
	w->spec = spec;
	w->next_cell = 1;
	w->cells = w->program = w->program_ended = w->broken = w->ran_on =
		w->stands = 0;
	w->may_lower = spec_may_lower(spec);
	w->left_ms = PARK_MS;
	w->rest_cpu_ms = 0;
	link_open(&w->link, front);
	/* The peer of the socket is the maker, or ourselves. The front end has
	 * no pid here where it is in another pid namespace. */
	if (spec->parent)
		link_charge(&w->link, spec->shared ? 0 : spec->front);
	side_init(&w->sides, NULL, NULL);
	warden_jail_init(&w->jail, &w->link, &w->site, &w->sides);
	guest_init(&w->guest, &w->link, &w->jail);
	checkpoints_init(&w->checkpoints, &w->jail, &w->guest, &spec->limits);
	clocks_start(&w->clocks, &w->link, spec);
}

void warden_note_program(struct warden *w)
{
	w->program = 1;
}

void warden_note_program_end(struct warden *w)
{
	w->program_ended = 1;
}

void warden_note_cell(struct warden *w, uint32_t cell)
{
	w->next_cell = cell + 1;
	w->cells++;
	w->broken = w->ran_on = 0;
}

void warden_note_end(struct warden *w, int64_t left_ms)
{
	w->left_ms = left_ms < PARK_LEAST_MS ? PARK_LEAST_MS
		     : left_ms > PARK_MS     ? PARK_MS
					     : left_ms;
}

void warden_note_refused(struct warden *w, uint32_t cell)
{
	w->next_cell = cell;
}

/* ---- the jail and its Python ---- */

static int ask_for_python(struct warden *w, struct err *e)
{
	switch (w->spec->mode) {
	case SPEC_SESSION:
		return guest_start(&w->guest, e);
	case SPEC_CELL:
		return guest_start_cell(&w->guest, e);
	case SPEC_PROGRAM:
		break;
	}
	return 0;
}

int warden_build_begin(struct warden *w, struct err *e)
{
	if (warden_jail_start(&w->jail, e) == 0)
		return 0;
	warden_end_jail(w);
	return -1;
}

int warden_build_await(struct warden *w, struct err *e)
{
	struct err why = {0};
	int asked, built;

	/* Python is asked for while init builds. If both fail, the error of the
	 * building says more. */
	asked = ask_for_python(w, &why);
	built = warden_jail_await(&w->jail, e);
	if (built == 0 && asked == 0)
		return 0;
	if (built == 0)
		*e = why;
	warden_end_jail(w);
	return built == SESSION_OVER ? built : -1;
}

void warden_note_rest(struct warden *w)
{
	struct warden_jail_usage u;

	warden_jail_note_quiet(&w->jail, 1);
	warden_jail_measure(&w->jail, &u);
	w->rest_cpu_ms = u.cpu_ms;
}

/* Wait until the Python of a cell is up. */
static int await_cell(struct warden *w, struct err *e)
{
	struct guest_message m;
	int r = guest_start_await(&w->guest, &m, e);

	if (r == 0)
		warden_jail_note_quiet(&w->jail, 1);
	return r;
}

int warden_stand(struct warden *w, struct err *e)
{
	struct jail_event ev = {.type = JAIL_BUILT};
	int r = w->stands ? 0 : warden_build_await(w, e);

	if (r < 0 || w->stands)
		return r;
	site_note_jail(
		&w->site, !w->jail.no_proc, !w->jail.shared, !w->jail.deaf);
	if (enforce_require(w->spec->require, &w->site.facts, -1, e) < 0)
		return -1;
	if (w->spec->mode == SPEC_CELL)
		r = await_cell(w, e);
	if (r < 0)
		return r;
	w->stands = 1;
	ev.facts = w->site.facts;
	snprintf(ev.limited, sizeof(ev.limited), "%s", w->site.limited);
	link_event(&w->link, &ev, NULL, 0);
	return 0;
}

int warden_await_python(struct warden *w, int restarted, struct err *e)
{
	struct jail_event ev = {.type = JAIL_UP, .restarted = restarted};
	struct guest_message m;
	int r = guest_start_await(&w->guest, &m, e);

	if (r < 0)
		return r;
	snprintf(ev.text, sizeof(ev.text), "%s", m.wire.text);
	snprintf(ev.limited, sizeof(ev.limited), "%s", w->site.limited);
	link_event(&w->link, &ev, &w->jail.tty_master, 1);
	return 0;
}

void warden_end_jail(struct warden *w)
{
	warden_jail_end(&w->jail);
	guest_end(&w->guest);
	checkpoints_forget(&w->checkpoints);
}

int warden_restart(struct warden *w)
{
	struct jail_event ev = {.type = JAIL_FAILED};
	int r;

	warden_end_jail(w);
	r = warden_build_begin(w, &ev.err);
	if (r == 0)
		r = warden_build_await(w, &ev.err);
	if (r == 0)
		r = warden_await_python(w, 1, &ev.err);
	if (r != -1)
		return r;
	err_kind_set(&ev.err, ERR_JAIL);
	link_event(&w->link, &ev, NULL, 0);
	return SESSION_OVER;
}

/* ---- stopping ---- */

static int stop_jail(struct warden *w, int32_t *killed)
{
	const struct link_pids kept = checkpoints_pids(&w->checkpoints);
	int r = warden_jail_stop(&w->jail, &kept, w->guest.pid, killed);

	checkpoints_note_deaths(&w->checkpoints);
	return r;
}

int warden_stop(struct warden *w, int32_t *killed)
{
	*killed = 0;
	return w->spec->limits.background == BACKGROUND_RUN
		       ? 0
		       : warden_hold(w, killed);
}

int warden_hold(struct warden *w, int32_t *killed)
{
	int r = stop_jail(w, killed);

	if (r != -1)
		return r;
	link_notice(&w->link, "the jail could not be stopped · Python "
			      "restarted, variables lost · home kept");
	if (warden_restart(w) == SESSION_OVER)
		return SESSION_OVER;
	return stop_jail(w, killed) == 0 ? 0 : SESSION_OVER;
}

void warden_continue(struct warden *w)
{
	const struct link_pids kept = checkpoints_pids(&w->checkpoints);

	warden_jail_continue(&w->jail, &kept);
}

void warden_usage(struct warden *w, struct jail_usage *u)
{
	struct warden_jail_usage now;

	warden_jail_show(&w->jail, &now);
	u->memory_bytes = warden_jail_bytes(&w->jail);
	u->memory_peak_bytes = now.peak_bytes;
	u->cpu_ms = w->jail.cpu_ms;
	u->up_ms = now_ms() - w->clocks.started_ms;
	u->idle_ms = now_ms() - w->clocks.touched_ms;
	home_usage(&w->site.home, &u->home_bytes, &u->home_files);
	u->processes = now.processes;
	u->checkpoints = w->checkpoints.n;
	u->cells = w->cells;
	for (int i = 0; i < ENFORCE_LIMITS; i++)
		enforce_look((enum enforce_limit)i, &w->site.facts, &u->by[i]);
}

void warden_tell_usage(struct warden *w)
{
	struct jail_event ev = {.type = JAIL_USAGE};

	warden_usage(w, &ev.usage);
	link_event(&w->link, &ev, NULL, 0);
}

const struct warden_jail_usage *warden_baseline(struct warden *w)
{
	int fresh;
	const struct warden_jail_usage *u =
		warden_jail_baseline(&w->jail, &fresh);

	if (fresh)
		checkpoints_weigh_start(&w->checkpoints);
	return u;
}

/* ---- recovering ---- */

/* True if its end has begun, even if init has not reported it yet. Its threads
 * may be visible for longer than its memory. */
static int is_dying(struct warden *w)
{
	struct procstatus st;

	return procs_status(&w->jail.place.procs, w->guest.pid, &st) < 0 ||
	       !st.has_memory;
}

bool warden_guest_lives(struct warden *w)
{
	int64_t now = now_ms(), end = now + DYING_MS, due;
	struct wire_init m;
	int ready;

	/* A guest can look as if it were dying for as long as it likes. */
	for (; guest_is_alive(&w->guest) && is_dying(w) && now < end;
		now = now_ms())
		if (link_wait(&w->link, -1, now + 5, &ready) == SESSION_OVER ||
			link_interrupt_take(&w->link) ||
			warden_jail_is_over(&w->jail, &due) ||
			link_take(&w->link, &m, NULL, 0) < 0)
			break;
	return guest_is_alive(&w->guest);
}

int warden_recover(struct warden *w, struct jail_done *d)
{
	struct checkpoints *c = &w->checkpoints;
	int was_alive = guest_is_alive(&w->guest), r;
	struct checkpoint woken = {0};
	int32_t killed = 0;

	warden_jail_thaw(&w->jail);
	d->names = 0;
	d->after = AFTER_RESTARTED;
	d->no_checkpoint = c->none;
	if (c->n == 0)
		return 0;
	d->no_checkpoint = NO_CHECKPOINT_SILENT;
	r = checkpoints_kill_others(c, &killed);
	if (r < 0)
		return r == SESSION_OVER ? r : 0;
	if (c->n == 0) {
		d->no_checkpoint = c->none;
		return 0;
	}
	r = checkpoints_wake_newest(c, &woken, &killed);
	d->back_to = woken.before;
	d->threads_gone = woken.threads;
	if (r < 0)
		return r == SESSION_OVER ? r : 0;
	d->after = AFTER_ROLLED_BACK;
	d->names = w->guest.names;
	d->no_checkpoint = NO_CHECKPOINT_NONE;
	if (killed > was_alive)
		d->leftovers_ended = (uint32_t)(killed - was_alive);
	return 0;
}

int warden_replace(struct warden *w, const char *what)
{
	struct jail_done d = {0};

	if (warden_recover(w, &d) == SESSION_OVER)
		return SESSION_OVER;
	/* It would undo more than the person saw. */
	link_request_peek(&w->link);
	link_refuse(&w->link, FRONT_UNDO,
		"undo: Python has just been replaced · nothing was undone");
	if (d.after == AFTER_ROLLED_BACK) {
		link_notice(&w->link,
			"%s · back to the state before cell %u (%u name%s)",
			what, d.back_to, d.names, d.names == 1 ? "" : "s");
		return 0;
	}
	link_notice(&w->link,
		"%s · Python restarted, variables lost · home kept", what);
	return warden_restart(w);
}

void warden_tell_oom(struct warden *w, const char *whose)
{
	enum jail_limit limit = warden_jail_oom_limit(&w->jail);
	struct cgroup_usage u;
	int64_t n;

	cgroup_usage(&w->site.cgroup, &u);
	n = u.oom_kills - w->jail.oom_seen;
	warden_jail_note_oom(&w->jail, u.oom_kills, u.limit_hits);
	if (n <= 0)
		return;
	site_count(&w->site, limit);
	link_notice(&w->link, "%s: %lld process%s of the %s %s killed",
		limit == LIMIT_MEMORY
			? "memory limit"
			: "no memory is left for all sessions together",
		(long long)n, n == 1 ? "" : "es", whose,
		n == 1 ? "was" : "were");
}

int warden_replace_broken(struct warden *w, const char *what)
{
	warden_tell_oom(w, "session");
	if (w->broken++) {
		link_notice(&w->link,
			"%s, again · Python restarted, variables lost · home "
			"kept",
			what);
		return warden_restart(w);
	}
	if (guest_is_alive(&w->guest) && !w->jail.over &&
		checkpoints_newest_is_now(&w->checkpoints, w->next_cell))
		checkpoints_give_up_newest(&w->checkpoints);
	return warden_replace(w, what);
}

int warden_check_stopped(struct warden *w, int64_t *due_ms)
{
	int32_t killed;

	if (!warden_jail_ran(&w->jail, due_ms))
		return 0;
	if (w->ran_on++) {
		if (warden_replace_broken(w, "the jail ran on between cells "
					     "and was killed") == SESSION_OVER)
			return SESSION_OVER;
		return warden_park(w);
	}
	if (warden_stop(w, &killed) == SESSION_OVER)
		return SESSION_OVER;
	if (killed > 0)
		link_notice(&w->link,
			"%d process%s ran on between cells: killed", killed,
			killed == 1 ? "" : "es");
	return 0;
}

int warden_check_memory(struct warden *w, int64_t *due_ms)
{
	if (warden_jail_is_stopped(&w->jail))
		warden_baseline(w);
	if (!warden_jail_is_over(&w->jail, due_ms))
		return 0;
	if (warden_replace_broken(w, "the jail used too much memory between "
				     "cells and was killed") == SESSION_OVER)
		return SESSION_OVER;
	*due_ms = 0;
	return warden_park(w);
}

/* ---- parking ---- */

/* True if the next request ends the live state. */
static int is_reset_next(struct warden *w)
{
	return link_request_peek(&w->link) == FRONT_RESET;
}

/* A checkpoint after this cell? 1 taken; 0 none, and *why; SESSION_OVER. A
 * guest that does not answer where its driver always would has been broken
 * from within. */
static int take_checkpoint(struct warden *w, enum jail_no_checkpoint *why)
{
	char what[80];

	*why = checkpoints_skip(&w->checkpoints);
	if (*why != NO_CHECKPOINT_NONE)
		return 0;
	*why = NO_CHECKPOINT_FAILED;
	for (int i = 0; i < PARK_TRIES; i++) {
		int64_t ms = i == 0 ? w->left_ms : PARK_AGAIN_MS;
		int r = checkpoints_take(
			&w->checkpoints, w->next_cell, now_ms() + ms);

		if (r != -1)
			return r;
		if (is_reset_next(w))
			return 0;
		snprintf(what, sizeof(what), "Python %s after cell %u",
			w->jail.over		? "used too much memory"
			: warden_guest_lives(w) ? "stopped answering"
						: "died",
			w->next_cell - 1);
		if (warden_replace_broken(w, what) == SESSION_OVER)
			return SESSION_OVER;
	}
	return 0;
}

int warden_park(struct warden *w)
{
	struct jail_event ev = {.type = JAIL_PARKED};
	struct checkpoints *c = &w->checkpoints;
	enum jail_no_checkpoint why;
	int32_t killed = 0;
	int taken = take_checkpoint(w, &why);

	if (taken == SESSION_OVER)
		return SESSION_OVER;
	if (is_reset_next(w))
		return 0;
	checkpoints_note_taken(c, taken ? NO_CHECKPOINT_NONE : why);
	checkpoints_trim(c);
	/* Before a cell that was typed meanwhile nothing is stopped. */
	if (link_request_peek(&w->link) != FRONT_RUN) {
		if (checkpoints_await_ended(c) == SESSION_OVER ||
			warden_stop(w, &killed) == SESSION_OVER)
			return SESSION_OVER;
	}
	ev.done.background_ended = (uint32_t)killed;
	ev.done.no_checkpoint = c->none;
	ev.done.names = w->guest.names;
	link_event(&w->link, &ev, NULL, 0);
	if (warden_jail_is_stopped(&w->jail))
		warden_baseline(w);
	return 0;
}

int warden_undo(struct warden *w, int n, struct jail_undone *u, struct err *e)
{
	struct checkpoints *c = &w->checkpoints;
	struct jail_done d = {0};

	if (checkpoints_find(c, w->next_cell, n, u, e) < 0)
		return -1;
	checkpoints_forget_newest(
		c, n + checkpoints_newest_is_now(c, w->next_cell) - 1);
	if (warden_recover(w, &d) == SESSION_OVER)
		return SESSION_OVER;
	if (d.after == AFTER_ROLLED_BACK) {
		/* The state meant did not answer, but an older one. */
		if (d.back_to != u->back_to)
			*u = (struct jail_undone){.back_to = d.back_to};
		u->names = d.names;
		return 0;
	}
	if (warden_restart(w) == SESSION_OVER)
		return SESSION_OVER;
	err_set(e, "undo: the older state did not answer; Python was "
		   "restarted, variables lost, home kept");
	return 1;
}

/* A fresh Python in the jail that there is. 0; -1; SESSION_OVER. */
static int renew_python(struct warden *w)
{
	int32_t killed = 0;
	int r;

	warden_jail_thaw(&w->jail);
	r = checkpoints_kill_others(&w->checkpoints, &killed);
	if (r < 0)
		return r;
	warden_continue(w);
	r = guest_start(&w->guest, NULL);
	if (r == 0)
		r = warden_await_python(w, 1, NULL);
	if (r == 0)
		checkpoints_note_reset(&w->checkpoints);
	return r;
}

int warden_reset(struct warden *w, int keep)
{
	int r = keep ? renew_python(w) : -1;

	if (keep && r == -1)
		link_notice(&w->link, "the state before the reset is lost");
	return r == -1 ? warden_restart(w) : r;
}
