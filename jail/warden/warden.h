/* SPDX-License-Identifier: MIT */
/*
 * warden.h - the session: its parts, and what happens when one breaks
 *
 * The warden is one thread and one loop. Between cells it waits for the front
 * end. A cell, a checkpoint and a question each run to their end under a clock
 * of their own, so that every path is straight-line code with a deadline.
 *
 * Each part is written by its own file alone.
 */
#ifndef JAIL_WARDEN_WARDEN_H
#define JAIL_WARDEN_WARDEN_H

#include "beside.h"
#include "checkpoints.h"
#include "clocks.h"
#include "early.h"
#include "guest.h"
#include "jail.h"
#include "link.h"
#include "site.h"

/* Its own fields only warden.c writes. */
struct warden {
	const struct jail_spec *spec;
	struct jail_spec own; /* that, where it may be claimed (claim.c) */
	struct spec_claim claim;
	struct link link;
	struct site site;
	struct warden_jail jail;
	struct guest guest;
	struct checkpoints checkpoints;
	struct clocks clocks;
	struct early early;
	struct besides besides;

	uint32_t next_cell; /* the number the next cell will have */
	int cells;	    /* cells run */
	int program;	    /* one was run: there is no other */
	int program_ended;  /* and nothing of it runs */
	int broken, ran_on; /* how often since the last cell */
	int stands;	    /* the first jail: warden_stand() */
	int64_t left_ms;    /* of that cell's clocks, for its checkpoint */
};

/* Nothing of it runs yet. Takes `front`. */
void warden_init(struct warden *w, const struct jail_spec *spec, int front);

/* Have init build a jail, and Python started in it (in a session). 0, or -1
 * with e: then nothing of it is left. And wait until it is built: also
 * SESSION_OVER. */
int warden_build_begin(struct warden *w, struct err *e);
LINK_CHECKED int warden_build_await(struct warden *w, struct err *e);

/* Wait until the first jail is built, see that it keeps what is required, and
 * tell JAIL_BUILT. Again it does nothing. */
LINK_CHECKED int warden_stand(struct warden *w, struct err *e);

/* Wait until Python answers, and tell JAIL_UP. 0; -1 with e; SESSION_OVER. */
LINK_CHECKED int warden_await_python(
	struct warden *w, int restarted, struct err *e);

/* End the jail and everything in it. */
void warden_end_jail(struct warden *w);

/* Each of the following returns 0 or SESSION_OVER. */

/* Stop the jail, unless cell.background lets it run on; *killed could not be
 * stopped. A jail that does not stop makes way for a fresh one, which is
 * told. */
LINK_CHECKED int warden_stop(struct warden *w, int32_t *killed);

/* The same whatever cell.background says, until warden_continue(). */
LINK_CHECKED int warden_hold(struct warden *w, int32_t *killed);

void warden_continue(struct warden *w);

/* What the session uses, as far as that can be seen without waiting. */
void warden_usage(struct warden *w, struct jail_usage *u);

/* What the next cell starts from. */
const struct warden_jail_usage *warden_baseline(struct warden *w);

/* Take a checkpoint, stop the jail, tell JAIL_PARKED. */
LINK_CHECKED int warden_park(struct warden *w);

/* A fresh jail and a fresh Python on the same home. Where that is not
 * possible, JAIL_FAILED is told and the session is over. */
LINK_CHECKED int warden_restart(struct warden *w);

/* The live guest is dead or beyond hope: kill all but the checkpoints and wake
 * the newest. Fills d->after, back_to, names, threads_gone, leftovers_ended,
 * no_checkpoint. After AFTER_RESTARTED the caller calls warden_restart(). */
LINK_CHECKED int warden_recover(struct warden *w, struct jail_done *d);

/* Between cells: recover or restart, and say so. `what` happened. */
LINK_CHECKED int warden_replace(struct warden *w, const char *what);

/* The same, where nobody had asked the guest for anything. Its copies may be
 * broken too: the copy of the state now is not woken, unless all that is wrong
 * is memory, and when a guest breaks again before the next cell, a fresh Python
 * takes its place. */
LINK_CHECKED int warden_replace_broken(struct warden *w, const char *what);

/* Between cells: see that a stopped jail is still stopped. *due_ms: when to
 * look again. */
LINK_CHECKED int warden_check_stopped(struct warden *w, int64_t *due_ms);

/* Between cells: see that the jail does not take too much memory. *due_ms: when
 * to look again. */
LINK_CHECKED int warden_check_memory(struct warden *w, int64_t *due_ms);

/* Go back to before the last n changes. 0; -1 with e: so many are not kept, and
 * nothing has changed; 1 with e: Python was restarted; SESSION_OVER. */
LINK_CHECKED int warden_undo(
	struct warden *w, int n, struct jail_undone *u, struct err *e);

/* A fresh Python. `keep`: in the same jail, beside the copies, so that undo
 * brings the state before it back. */
LINK_CHECKED int warden_reset(struct warden *w, int keep);

/* A program begins; a cell begins; a cell has ended, and so much of its clocks
 * is left; a cell never ran. */
void warden_note_program(struct warden *w);
void warden_note_program_end(struct warden *w);
void warden_note_cell(struct warden *w, uint32_t cell);
void warden_note_end(struct warden *w, int64_t left_ms);
void warden_note_refused(struct warden *w, uint32_t cell);

#endif
