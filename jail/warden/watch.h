/* SPDX-License-Identifier: MIT */
/*
 * watch.h - a cell or a program under its clocks
 */
#ifndef JAIL_WARDEN_WATCH_H
#define JAIL_WARDEN_WATCH_H

#include "jail/jail.h"
#include "link.h"

#include <poll.h>
#include <stdint.h>

struct warden;

/* What is polled. The last two are the caller's to set, -1 for none. */
enum { WATCH_FRONT, WATCH_INIT, WATCH_GUEST, WATCH_LINE, WATCH_FDS };

/* Only watch.c writes it, but for what is marked. */
struct watch {
	struct pollfd p[WATCH_FDS];
	int may_pause; /* (caller) the wall clock may be paused */
	int ready;     /* an interrupt reaches it */
	int ended;     /* (caller too) */

	/* what struck */
	enum jail_limit limit;
	int killed; /* it is to be killed, for `limit` */

	int64_t start_ms, deadline_ms;
	int64_t grace_ms; /* from a limit's interrupt to the kill; -1: a limit
			   * kills at once */
	int64_t kill_ms;  /* 0 until it was interrupted */
	int64_t tick_ms, paused_ms;
	int64_t tell_ms;   /* when it was asked to tell who waits; 0: not */
	int64_t looked_ms; /* of the last sample of who waits */
	int64_t looked_worked_ms; /* worked_ms then */

	/* what it took, as far as seen */
	int64_t cpu_start_ms, cpu_ms, peak_bytes;
	int64_t front_start_ms; /* CPU time of the front end */
	int64_t unseen_ms;	/* while the jail held who looked at it */
	int64_t worked_ms;	/* CPU time of all, as charged */
	int64_t moved_ms, moved_at_ms; /* worked_ms when it last grew, and when
					*/
	int slots_peak;		       /* of what the process limit counts */
};

/* The clocks start. `cpu_start_ms`: of the session's CPU time, not its own. */
void watch_start(struct watch *wa, struct warden *w, int64_t cpu_start_ms,
	int64_t grace_ms);

/* It has begun, and an interrupt reaches it: also one that came before. */
void watch_ready(struct watch *wa, struct warden *w);

/* Wait until something happens, or is due: wa->p. 0, or SESSION_OVER. */
LINK_CHECKED int watch_wait(struct watch *wa);

/* Take what init says, and note its deaths: 0, or -1 when init is gone. */
int watch_init(struct watch *wa, struct warden *w);

/* Unless it is over: serve the front end, look at the clocks. 0, or
 * SESSION_OVER. */
LINK_CHECKED int watch_serve(struct watch *wa, struct warden *w);

/* What is left of its clocks. */
int64_t watch_left_ms(const struct watch *wa, const struct limits *l);

/* Milliseconds that it ran, pauses left out. */
int64_t watch_wall_ms(const struct watch *wa);

#endif
