/* SPDX-License-Identifier: MIT */
/*
 * loop.c - the warden's start, and its wait between cells
 *
 * Runs in:   a child of the front end
 * Trusts:    the spec; the front end as far as its own session goes
 * Leaves:    nothing: this is the one place where the process ends
 */
#include "jail/warden/warden.h"

#include "jail/base/array.h"
#include "jail/base/io.h"
#include "jail/warden/parts.h"

#include <stdio.h>

/* The longest wait between two looks at the clocks. */
#define LONGEST_MS (3600 * 1000)
/* How long a first cell has to come without a checkpoint before it. */
#define FIRST_MS 20

/* Each of these returns 0 or SESSION_OVER. */

/* Nothing should happen in the jail between cells. Something has: a death, or a
 * guest that breaks the protocol. */
static int on_broken(struct warden *w)
{
	const char *what = warden_guest_lives(w)
				   ? "Python spoke out of turn and was killed"
				   : "Python died between cells";

	if (warden_replace_broken(w, what) == SESSION_OVER)
		return SESSION_OVER;
	return warden_park(w);
}

static int on_jail_died(struct warden *w)
{
	warden_tell_oom(w, "session");
	link_notice(&w->link, "the jail died · Python restarted, variables "
			      "lost · home kept");
	if (warden_restart(w) == SESSION_OVER)
		return SESSION_OVER;
	return warden_park(w);
}

/* End the session at a limit of its life; *wait_ms: no later than the next. */
static int look_at_life(struct warden *w, int64_t *wait_ms)
{
	static const enum jail_limit limits[] = {
		LIMIT_IDLE, LIMIT_LIFETIME, LIMIT_EXAM};
	int64_t due, left;

	for (size_t i = 0; i < COUNT(limits); i++) {
		struct jail_event ev = {.type = JAIL_LIMIT, .limit = limits[i]};

		left = limits[i] == LIMIT_EXAM
			       ? clocks_until_ms(&w->clocks, &ev.limit, &due)
			       : clocks_remaining_ms(
					 &w->clocks, limits[i], &due);
		if (left <= 0) {
			site_count(&w->site, ev.limit);
			link_event(&w->link, &ev, NULL, 0);
			return SESSION_OVER;
		}
		if (due < *wait_ms)
			*wait_ms = due;
	}
	return 0;
}

/* *wait_ms: until something is due. */
static int look_at_clocks(struct warden *w, int *wait_ms)
{
	int64_t wait = LONGEST_MS, due;

	/* The person is there as long as a program of theirs copies. */
	if (side_count(&w->sides) > 0) {
		clocks_touch(&w->clocks);
		wait = w->spec->limits.idle_ms / 2;
	}
	if (warden_check_stopped(w, &due) == SESSION_OVER)
		return SESSION_OVER;
	if (due < wait)
		wait = due;
	if (warden_check_memory(w, &due) == SESSION_OVER)
		return SESSION_OVER;
	if (due < wait)
		wait = due;
	if (look_at_life(w, &wait) == SESSION_OVER)
		return SESSION_OVER;
	*wait_ms = (int)wait;
	return 0;
}

static int wait_once(struct warden *w, int most_ms)
{
	struct pollfd p[3] = {
		{.events = POLLIN}, {.events = POLLIN}, {.events = POLLIN}};
	struct wire_init m;
	int wait_ms, r = 0;

	if (look_at_clocks(w, &wait_ms) == SESSION_OVER)
		return SESSION_OVER;
	p[0].fd = w->link.front;
	p[1].fd = w->link.init;
	p[2].fd = w->guest.ctl;
	if (wait_ms > most_ms)
		wait_ms = most_ms;
	wait_ms = link_patience_ms(&w->link, wait_ms);
	if (link_poll(p, 3, wait_ms) < 0)
		return SESSION_OVER;
	if (p[1].revents && link_take(&w->link, &m, NULL, 0) < 0) {
		r = on_jail_died(w);
	} else {
		checkpoints_note_deaths(&w->checkpoints);
		if (p[2].revents || !guest_is_alive(&w->guest))
			r = on_broken(w);
	}
	/* The front end has its turn in every round. */
	if (r == 0 && (p[0].revents || link_patience_ms(&w->link, 1) == 0))
		r = front_serve(w);
	return r == SESSION_OVER ? r : 0;
}

/* A person who begins with a cell at once is not kept waiting for a checkpoint:
 * a fresh Python is the state before it. */
static int first_park(struct warden *w)
{
	int64_t end = now_ms() + FIRST_MS, left = FIRST_MS;

	for (; left > 0 && !w->cells; left = end - now_ms())
		if (wait_once(w, (int)left) == SESSION_OVER)
			return SESSION_OVER;
	if (w->cells)
		return 0;
	warden_continue(w); /* a question may have stopped it */
	return warden_park(w);
}

static int serve_session(struct warden *w)
{
	int r = first_park(w);

	while (r == 0)
		r = wait_once(w, LONGEST_MS);
	return r;
}

/* Until there is a program, see that there is a jail for it. */
static int await_request(struct warden *w, struct err *e)
{
	struct wire_init m;
	int ready = 0;

	while (!w->program && link_request_peek(&w->link) < 0) {
		int64_t wait_ms = LONGEST_MS;

		if (look_at_life(w, &wait_ms) == SESSION_OVER ||
			link_wait(&w->link, -1, now_ms() + wait_ms, &ready) ==
				SESSION_OVER)
			return SESSION_OVER;
		if (ready && link_take(&w->link, &m, NULL, 0) < 0)
			return err_set(e, "the jail died before its program");
		if (w->spec->mode != SPEC_PROGRAM && !guest_is_alive(&w->guest))
			return err_set(e, "Python died before its cell");
	}
	return 0;
}

/* Files are put into the home before the program starts, and taken out of it
 * after; the session ends when the front end has them. Requests that come while
 * init builds are served meanwhile. */
static int serve_program(struct warden *w, struct err *e)
{
	int built = 0, r = 0;

	while (r == 0 && !w->stands) {
		if (link_request_peek(&w->link) >= 0)
			r = front_serve(w);
		else if (built)
			r = warden_stand(w, e);
		else if (link_wait(&w->link, -1, now_ms() + LONGEST_MS,
				 &built) == SESSION_OVER)
			r = SESSION_OVER;
	}
	if (r == 0)
		r = lease_await(w, e);
	while (r == 0) {
		r = await_request(w, e);
		if (r == 0)
			r = front_serve(w);
	}
	return r;
}

int warden_loop_serve(struct warden *w, struct err *e)
{
	int r = 0;

	link_serve_aside(&w->link, front_serve_aside, w);
	if (warden_build_begin(w, e) < 0)
		return -1;
	if (w->spec->mode != SPEC_PROGRAM)
		r = warden_stand(w, e);
	if (r == 0 && w->spec->mode != SPEC_SESSION)
		return serve_program(w, e);
	if (r == 0)
		r = warden_await_python(w, 0, e);
	if (r == 0)
		r = lease_await(w, e);
	return r < 0 ? r : serve_session(w);
}

/* The front end has all that it wants of a program that has ended. To take the
 * jail apart takes its time, for which no caller waits: the next program may
 * begin when the front end has ended. */
static void leave_program(struct warden *w)
{
	if (!w->program_ended)
		return;
	site_leave_places(&w->site);
	link_say_left(&w->link);
}

/* The session's own warden has made the site. A child of that warden serves the
 * program. */
static void run_side(void *session, int front, int at, int python)
{
	struct jail_event ev = {.type = JAIL_FAILED};
	const struct warden *of = session;
	struct jail_spec spec = *of->spec;
	struct warden w = {.site = {.home = {.root = -1}}};

	side_make_spec(&spec, python);
	warden_init(&w, &spec, front);
	link_charge(&w.link, 0);
	side_become(&w.sides, &of->sides, at);
	if (site_share(&w.site, &of->site, &spec, front, &ev.err) < 0 ||
		warden_loop_serve(&w, &ev.err) == -1) {
		err_kind_set(&ev.err, ERR_JAIL);
		link_event(&w.link, &ev, NULL, 0);
	}
	leave_program(&w);
	warden_end_jail(&w);
}

_Noreturn void warden_loop_run(int front, const struct jail_spec *spec)
{
	struct jail_event ev = {.type = JAIL_FAILED};
	struct warden w = {.own = *spec, .site = {.home = {.root = -1}}};

	warden_init(&w, &w.own, front);
	if (spec->mode == SPEC_SESSION)
		side_init(&w.sides, run_side, &w);
	if (site_open(&w.site, &w.own, front, &ev.err) < 0 ||
		warden_loop_serve(&w, &ev.err) == -1) {
		ev.facts = w.site.facts;
		/* A wrong configuration, and too many sessions, are no failure
		 * of the jail. */
		if (ev.err.kind != ERR_CONFIG && ev.err.kind != ERR_BUSY)
			err_kind_set(&ev.err, ERR_JAIL);
		link_event(&w.link, &ev, NULL, 0);
	}
	leave_program(&w);
	side_end(&w.sides);
	warden_end_jail(&w);
	site_close(&w.site);
	fd_drop(&w.link.front);
	_exit(0);
}
