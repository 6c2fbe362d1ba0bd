/* SPDX-License-Identifier: MIT */
/*
 * checkpoints.h - copies of the guest, asleep: taken, given up, woken
 */
#ifndef JAIL_WARDEN_CHECKPOINTS_H
#define JAIL_WARDEN_CHECKPOINTS_H

#include "link.h"

#include <stdint.h>
#include <sys/types.h>

struct guest;
struct warden_jail;
struct chore_result;
struct err;
struct jail_undone;

/* cell.undo is at most this; one more is kept to roll back to, and one more
 * is there while the oldest has not been given up yet. */
#define CHECKPOINTS_UNDO_MAX 16
#define CHECKPOINTS_MAX (CHECKPOINTS_UNDO_MAX + 2)
/* A message names them all, and the live guest. */
_Static_assert(CHECKPOINTS_MAX + 1 <= WIRE_PIDS_MAX, "a message has no room");

/* A copy of the guest, asleep on its own socket. */
struct checkpoint {
	int sock;
	pid_t pid;	  /* in the jail */
	uint32_t before;  /* the cell it precedes */
	uint32_t names;	  /* user names in it */
	uint32_t threads; /* threads the original had and it has not */
	int fresh;	  /* a reset made it of the one before */
};

/* What has made the live state of the one before. */
enum checkpoints_made {
	CHECKPOINTS_BY_CELL,
	CHECKPOINTS_BY_RESET,
	CHECKPOINTS_BY_NOTHING, /* it was woken, and no cell has run since */
};

/* Only checkpoints.c writes it. */
struct checkpoints {
	struct link *link;
	struct warden_jail *jail;
	struct guest *guest;
	const struct limits *limits;
	struct checkpoint kept[CHECKPOINTS_MAX]; /* oldest first */
	int n;
	enum jail_no_checkpoint none; /* why n is 0 */
	enum checkpoints_made made;
	int fresh;	 /* of the live state, as of a checkpoint's */
	uint32_t ending; /* number of the last INIT_DISCARD; 0: all answered */
	int32_t leaving[CHECKPOINTS_MAX]; /* the last that were told to end */
	unsigned discarded;		  /* how many there were in all */
	int unfinished;	    /* copies that did not fall asleep in time */
	const char *failed; /* why the last could not be taken, in words */
	int told_none;	    /* that there is no new one was said */
	int told_cost;	    /* that they cost too much was said */

	/* what they cost */
	int64_t faults;	   /* the live guest's when last counted; -1 unknown */
	int64_t rss_bytes; /* its size when the cell began */
	int skip, skip_next; /* cells to go without one */
	enum jail_no_checkpoint skip_why;
};

void checkpoints_init(struct checkpoints *c, struct warden_jail *j,
	struct guest *g, const struct limits *l);

/* As init is told them. */
struct link_pids checkpoints_pids(const struct checkpoints *c);

/* How many processes in the jail are no checkpoints any more, or never became
 * one. On a busy host they may not have had the processor to exit with. */
int checkpoints_leaving(const struct checkpoints *c);

/* Note the deaths that init has reported, the live guest's among them; says it
 * when the last checkpoint is lost. */
void checkpoints_note_deaths(struct checkpoints *c);

/* ---- taking ---- */

/* Have the live guest leave a copy, the state before cell `next`, behind: 1 it
 * sleeps; 0 none could be made; -1 no answer; SESSION_OVER. */
LINK_CHECKED int checkpoints_take(
	struct checkpoints *c, uint32_t next, int64_t deadline_ms);

/* Whether a checkpoint is due after this cell: NO_CHECKPOINT_NONE, or why
 * not. */
enum jail_no_checkpoint checkpoints_skip(struct checkpoints *c);

/* One was taken (NO_CHECKPOINT_NONE) or not, for this reason: say what a crash
 * would cost, once, before it shows. */
void checkpoints_note_taken(struct checkpoints *c, enum jail_no_checkpoint why);

/* ---- giving up ---- */

/* Give up all but the newest `keep`, for this reason. */
void checkpoints_give_up(
	struct checkpoints *c, int keep, enum jail_no_checkpoint why);

/* Give up what is more than cell.undo, and of the older ones those that hold
 * too much memory: the last two stay. */
void checkpoints_trim(struct checkpoints *c);

/* Give up the newest. */
void checkpoints_give_up_newest(struct checkpoints *c);

/* See those given up gone: frozen, they would hold their memory, and be counted
 * as what a cell left behind. 0, or SESSION_OVER. */
LINK_CHECKED int checkpoints_await_ended(struct checkpoints *c);

/* A cell begins. While it runs, what the stand-in has counted (CHORE_PRIVATE):
 * give them up where they cost too much. */
void checkpoints_weigh_start(struct checkpoints *c);
void checkpoints_weigh(
	struct checkpoints *c, const struct chore_result *r, int64_t ran_ms);

/* ---- going back ---- */

/* Is the newest the state now, before cell `next`? */
int checkpoints_newest_is_now(const struct checkpoints *c, uint32_t next);

/* Whether a fresh Python may take the place of the live one, so that undo
 * brings the state now back; and it has. */
int checkpoints_can_reset(const struct checkpoints *c, uint32_t next);
void checkpoints_note_reset(struct checkpoints *c);

/* What going back n states, from the one before cell `next`, undoes: next and
 * names are not known yet. 0, or -1 with e: so many are not kept. */
int checkpoints_find(const struct checkpoints *c, uint32_t next, int n,
	struct jail_undone *u, struct err *e);

/* Forget the newest n, which the next checkpoints_kill_others() kills. */
void checkpoints_forget_newest(struct checkpoints *c, int n);

/* Forget all: their jail has ended. */
void checkpoints_forget(struct checkpoints *c);

/* Kill everything in the jail but them; adds to *killed. 0; -1 when that is
 * not certain; SESSION_OVER. */
LINK_CHECKED int checkpoints_kill_others(
	struct checkpoints *c, int32_t *killed);

/* Wake the newest that answers: it becomes the live guest, and *woken tells of
 * it (its socket is gone). 0; -1 when none does; SESSION_OVER. */
LINK_CHECKED int checkpoints_wake_newest(
	struct checkpoints *c, struct checkpoint *woken, int32_t *killed);

#endif
