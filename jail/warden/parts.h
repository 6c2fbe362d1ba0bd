/* SPDX-License-Identifier: MIT */
/*
 * parts.h - what the files of the warden share
 *
 *	cell.c		one cell, from its source to its verdict
 *	guest.c		the live guest: the process that runs the cells
 *	checkpoints.c	copies of the guest, asleep: taken, given up, woken
 *	trial.c		a question for whose answer code of the user's runs
 *	lease.c		a jail that was made ahead waits until it is somebody's
 *	clocks.c	the limits of a session's life: idle and lifetime
 *	front.c		the front end's requests, between cells
 *	program.c	one program in a jail of its own
 *	warden.c	the session: its parts, and what happens when one breaks
 *	warm.c		a jail that waits for a program has what its Python
 *			needs
 *	watch.c		a cell or a program under its clocks
 */
#ifndef JAIL_WARDEN_PARTS_H
#define JAIL_WARDEN_PARTS_H

#include "jail/jail.h"
#include "jail/spec.h"
#include "jail/warden/jails/jails.h"
#include "jail/warden/look/look.h"
#include "jail/wire/wire.h"

#include <poll.h>
#include <stdint.h>
#include <sys/types.h>

struct warden;

/* ---- cell.c ---- */

/* Run one cell, as FRONT_RUN asks, whose source is in a file (borrowed), to its
 * end: tells JAIL_DONE, takes a checkpoint, stops the jail. `report_fd` goes to
 * the guest (borrowed; -1: none). 0, or SESSION_OVER. */
LINK_CHECKED int warden_cell_run(struct warden *w, const struct wire_front *m,
	int source_fd, int report_fd);

/* ---- guest.c ---- */

/* The most that is shown of where a stuck cell was. */
#define GUEST_STACK_MAX 8192

/* Only guest.c writes it. */
struct guest {
	struct link *link;
	struct warden_jail *jail;
	int ctl;    /* our end of its control socket */
	int stack;  /* memfd it writes its stacks to when told */
	pid_t pid;  /* in the jail; 0: it is dead: ask guest_is_alive() */
	int status; /* once dead, as from waitpid() */
	int alone;  /* its death left init alone in the jail */
	uint32_t names, threads; /* its word */
	uint32_t late; /* the PARK whose answer is still to come; 0: none */
};

/* A message, and the bytes that its answer points into. */
struct guest_message {
	struct wire_guest wire;
	char bytes[WIRE_GUEST_MAX];
};

void guest_init(struct guest *g, struct link *l, struct warden_jail *j);

/* ---- life ---- */

/* Have init start a program on these descriptors (borrowed): SPAWN_ARGS, stdio,
 * and the report where there is one. And wait until it has, or the driver has.
 * 0, or -1 with e; the wait may return SESSION_OVER. */
int guest_spawn(struct guest *g, const int *fds, int nfds, struct err *e);
LINK_CHECKED int guest_spawn_await(struct guest *g, struct err *e);

/* The same with the driver, for a session or for one cell; and wait until it
 * says READY: *m is that. */
int guest_start(struct guest *g, struct err *e);
int guest_start_cell(struct guest *g, struct err *e);
LINK_CHECKED int guest_start_await(
	struct guest *g, struct guest_message *m, struct err *e);

/* stdin, stdout, stderr, the driver's report, which programs have not */
#define PIPES 4
#define PIPES_PROGRAM 3

/* The one cell: what it runs (wire_start_find()), and its ends of the
 * pipes. */
struct guest_cell {
	int file;
	size_t at, bytes;
	unsigned tty_bits;
	const int *pipes; /* PIPES of them */
};

/* Hand it over; all of it is borrowed. From then on the warden ignores what the
 * guest says. 0, or -1 with e. */
int guest_give_cell(struct guest *g, const struct guest_cell *c, struct err *e);

/* It is dead: whether it had read that before. */
int guest_took_cell(struct guest *g);

/* Close its links: its jail has ended. */
void guest_end(struct guest *g);

/* True if it lives, as far as init has reported. */
int guest_is_alive(struct guest *g);

/* Another process is the live guest from now on (0: none is); and it has
 * answered, on this socket (taken). */
void guest_become(struct guest *g, pid_t pid);
void guest_become_awake(struct guest *g, int ctl, uint32_t names);

/* ---- messages ---- */

/* Send, with a descriptor (borrowed) or -1. -1 when it does not take it. */
int guest_send(struct guest *g, const char *buf, size_t n, int fd);

/* Take one message that is there: 1 taken, 0 none, -1 gone or malformed. */
int guest_receive(int sock, struct guest_message *m);

/* Wait for one message on `sock`: 1 taken, 0 at the deadline, -1 gone or
 * malformed, or the jail takes too much memory; SESSION_OVER. */
LINK_CHECKED int guest_await(struct guest *g, int sock, struct guest_message *m,
	int64_t deadline_ms);

/* The same, and once the person has interrupted it, only until `least_ms`. */
LINK_CHECKED int guest_await_hurried(struct guest *g, int sock,
	struct guest_message *m, int64_t deadline_ms, int64_t least_ms);

/* The same, where no answer costs the variables: an interrupt leaves the guest
 * a moment, and 0 is returned only where it is the jail's own doing that none
 * comes. Where the host has kept the jail from running for ten seconds more
 * than that, GUEST_LATE. */
#define GUEST_LATE 2
LINK_CHECKED int guest_await_fair(struct guest *g, int sock,
	struct guest_message *m, int64_t deadline_ms);

/* Its answer to PARK `no` did not come in time: it may come before the next.
 * And whether a message is that, once. */
void guest_note_late(struct guest *g, uint32_t no);
int guest_is_late_answer(struct guest *g, const struct wire_guest *m);

/* It has said DONE: note its counts. */
void guest_note_done(struct guest *g, const struct wire_guest *m);

/* Empty the file for that. Only while every guest is stopped: one that runs can
 * hold the locks of the file. */
void guest_clear_stack(struct guest *g);

/* Have it write down where it is, as long as that takes: `text` has room for
 * GUEST_STACK_MAX + 1 bytes and is hostile. Length, 0 for nothing. */
size_t guest_read_stack(struct guest *g, char *text);

/* ---- checkpoints.c ---- */

/* cell.undo is at most this; one more is kept to roll back to, and one more
 * is there while the oldest has not been given up yet. */
#define CHECKPOINTS_UNDO_MAX 16
#define CHECKPOINTS_MAX (CHECKPOINTS_UNDO_MAX + 2)
/* A message names them all, and the live guest. */
_Static_assert(CHECKPOINTS_MAX + 1 <= WIRE_PIDS_MAX, "a message has no room");

/* A copy of the guest, asleep on its own socket. */
struct checkpoint {
	int sock;
	ino_t theirs;	  /* the other end of it */
	pid_t pid;	  /* in the jail */
	uint32_t before;  /* the cell it precedes */
	uint32_t names;	  /* user names in it */
	uint32_t threads; /* threads the original had and it has not */
	int fresh;	  /* a reset made it of the one before */
};

/* The event that made the live state of the state before. */
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
	ino_t theirs;		      /* that of the copy that is being made */
	enum jail_no_checkpoint none; /* why n is 0 */
	enum checkpoints_made made;
	int fresh;	 /* of the live state, as of a checkpoint's */
	uint32_t ending; /* number of the last INIT_DISCARD; 0: all answered, */
	int64_t gone_ms; /* since then */
	int32_t leaving[CHECKPOINTS_MAX]; /* the last that were told to end */
	unsigned discarded;		  /* how many there were in all */
	int unfinished;	    /* copies that did not fall asleep in time */
	const char *failed; /* why the last could not be taken, in words */
	int told_none;	    /* that there is no new one was said */
	int told_cost;	    /* that they cost too much was said */

	/* what they cost */
	int64_t faults;	    /* the live guest's when last counted; -1 unknown */
	int64_t size_bytes; /* its size when the cell began */
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

/* The same, but the copy is not kept: its socket (owned by the caller) is
 * *sock, and the message ASLEEP with its pid is in `m`. CHECKPOINTS_TRIAL as
 * `next`: the copy is for trial.c. checkpoints_end_copy() ends one. */
#define CHECKPOINTS_TRIAL UINT32_MAX
LINK_CHECKED int checkpoints_copy(struct checkpoints *c, uint32_t next,
	int64_t deadline_ms, int *sock, struct guest_message *m);
void checkpoints_end_copy(struct checkpoints *c, int32_t pid);

/* Decide if a checkpoint is due after this cell: NO_CHECKPOINT_NONE, or why
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

/* True if those given up were gone at this time. */
int checkpoints_were_gone(struct checkpoints *c, int64_t when_ms);

/* A cell begins. While it runs, take the helper's counts (WORK_PRIVATE), and
 * give checkpoints up where they cost too much. */
void checkpoints_weigh_start(struct checkpoints *c);
void checkpoints_weigh(
	struct checkpoints *c, const struct work_result *r, int64_t ran_ms);

/* ---- going back ---- */

/* Is the newest the state now, before cell `next`? */
int checkpoints_newest_is_now(const struct checkpoints *c, uint32_t next);

/* True if a fresh Python may take the place of the live one, so that undo
 * brings the state now back; and note that it has. */
int checkpoints_can_reset(const struct checkpoints *c, uint32_t next);
void checkpoints_note_reset(struct checkpoints *c);

/* Find what going back n states, from the one before cell `next`, undoes: next
 * and names are not known yet. 0, or -1 with e: so many are not kept. */
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

/* ---- trial.c ---- */

struct trial_question {
	uint32_t no;
	enum jail_question kind;
	const char *text;
	size_t n;
};

/* The live guest has said GUEST_WANTS, which is in `m`: a copy of it answers.
 * 1 and `m` is the answer; TRIAL_NO_COPY: none could be made; TRIAL_FAILED with
 * e: it did not answer; -1 the live guest has ended; SESSION_OVER. */
#define TRIAL_NO_COPY 2
#define TRIAL_FAILED 3
LINK_CHECKED int trial_ask(struct warden *w, const struct trial_question *q,
	struct guest_message *m, struct err *e);

/* ---- lease.c ---- */

/* Wait until the jail is leased, where it was made ahead, and make it what the
 * lease says. 0; -1 with e; SESSION_OVER. Where any of it fails the session is
 * over. */
LINK_CHECKED int lease_await(struct warden *w, struct err *e);

/* Lower session.memory and home.size of a session that waits for its first
 * request (spec_may_lower()). 0, and the caller parks the session again; -1
 * with e: nothing has changed; SESSION_OVER, after JAIL_FAILED. */
LINK_CHECKED int lease_lower(
	struct warden *w, int64_t memory, int64_t home, struct err *e);

/* From now on the limits stay: code of a person's may run. */
void lease_fix(struct warden *w);

/* ---- clocks.c ---- */

/* Only clocks.c writes it. */
struct clocks {
	struct link *link;
	const struct limits *limits;
	int announces;	    /* a session's are announced, a program's not */
	int64_t started_ms; /* the session; 0: it is prewarmed */
	int64_t touched_ms; /* the person was there */
	unsigned announced; /* 1 << enum jail_limit */
};

void clocks_start(
	struct clocks *c, struct link *l, const struct jail_spec *spec);

/* The person is there. */
void clocks_touch(struct clocks *c);

/* Milliseconds left of LIMIT_IDLE or LIMIT_LIFETIME: 0 or less, it has struck.
 * Says, once, that it is near. *due_ms: when to look again. */
int64_t clocks_remaining_ms(
	struct clocks *c, enum jail_limit limit, int64_t *due_ms);

/* The same of a time of the host's clock: INT64_MAX if there is none. *limit is
 * LIMIT_EXAM or LIMIT_UNTIL. */
int64_t clocks_until_ms(
	struct clocks *c, enum jail_limit *limit, int64_t *due_ms);

/* ---- front.c ---- */

/* A link_aside: serve a request that any moment suits. */
int front_serve_aside(void *warden, const struct wire_front *m);

/* Wait for a request of the front end's and serve it. 0, or SESSION_OVER. */
LINK_CHECKED int front_serve(struct warden *w);

/* ---- program.c ---- */

/* Run a program to its end, tell JAIL_EXITED when none of its processes is
 * left. The jail need not be built yet at the start. `args` holds its
 * arguments, or the cell (borrowed, wire.h); `wall_ms` may shorten
 * cell.timeout; `merged`: stdout and stderr are one pipe. 0; SESSION_OVER, also
 * when it could not be started, after JAIL_FAILED. */
LINK_CHECKED int warden_program_run(
	struct warden *w, int args, int64_t wall_ms, int merged);

/* ---- warden.c ---- */

/*
 * The warden is one thread and one loop. Between cells it waits for the front
 * end. A cell, a checkpoint and a question each run to their end under a clock
 * of their own, so that every path is straight-line code with a deadline.
 *
 * Each part is written by its own file alone.
 */

/* Its own fields only warden.c writes. */
struct warden {
	const struct jail_spec *spec;
	struct jail_spec own; /* that, where it may be leased (lease.c) */
	struct spec_lease lease;
	struct link link;
	struct site site;
	struct warden_jail jail;
	struct guest guest;
	struct checkpoints checkpoints;
	struct clocks clocks;
	struct side_programs sides;

	uint32_t next_cell;  /* the number the next cell will have */
	int cells;	     /* cells run */
	int program;	     /* one was run: there is no other */
	int program_ended;   /* and nothing of it runs */
	int broken, ran_on;  /* how often since the last cell */
	int stands;	     /* the first jail: warden_stand() */
	int may_lower;	     /* (lease.c) lease_lower(), once */
	int64_t left_ms;     /* of that cell's clocks, for its checkpoint */
	int64_t rest_cpu_ms; /* what the jail had used when it began to wait */
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

/* The jail waits, with nothing of anybody's in it: the CPU time that it has
 * used so far is not the program's. */
void warden_note_rest(struct warden *w);

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

/* The resources that the session uses, as far as that can be seen without
 * waiting. */
void warden_usage(struct warden *w, struct jail_usage *u);

/* The same, as an event. */
void warden_tell_usage(struct warden *w);

/* The usage that the next cell starts from. */
const struct warden_jail_usage *warden_baseline(struct warden *w);

/* Take a checkpoint, stop the jail, tell JAIL_PARKED. */
LINK_CHECKED int warden_park(struct warden *w);

/* A fresh jail and a fresh Python on the same home. Where that is not
 * possible, JAIL_FAILED is told and the session is over. */
LINK_CHECKED int warden_restart(struct warden *w);

/* False if the live guest is dead, or dies now: its socket closes before init
 * reports its death. */
bool warden_guest_lives(struct warden *w);

/* The live guest is dead or beyond hope: kill all but the checkpoints and wake
 * the newest. Fills d->after, back_to, names, threads_gone, leftovers_ended,
 * no_checkpoint. After AFTER_RESTARTED the caller calls warden_restart(). */
LINK_CHECKED int warden_recover(struct warden *w, struct jail_done *d);

/* Between cells: recover or restart, and say so. `what` happened. */
LINK_CHECKED int warden_replace(struct warden *w, const char *what);

/* Say how many of its processes the kernel has killed for memory since people
 * were told, or a cell began, and count the limit that it was for. `whose`:
 * "cell", "session". */
void warden_tell_oom(struct warden *w, const char *whose);

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

/* ---- warm.c ---- */

/* Have Python run once in the jail, which stands, unless it is wanted soon; and
 * hold the program's. 0, or -1 with e: the jail is not to be used;
 * SESSION_OVER. */
LINK_CHECKED int warm_python(struct warden *w, struct err *e);

/* ---- watch.c ---- */

/* The descriptors that are polled. The last two are the caller's to set, -1 for
 * none. */
enum { WATCH_FRONT, WATCH_INIT, WATCH_GUEST, WATCH_LINE, WATCH_FDS };

/* Only watch.c writes it, but for what is marked. */
struct watch {
	struct pollfd p[WATCH_FDS];
	int may_pause; /* (caller) the wall clock may be paused */
	int ready;     /* an interrupt reaches it */
	int stops;     /* an interrupt is its end, after the grace */
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
	int64_t others_start_ms; /* CPU time of others that is the cell's */
	int64_t unseen_ms;	 /* while the jail held who looked at it */
	int64_t worked_ms;	 /* CPU time of all, as charged */
	int64_t moved_ms, moved_at_ms; /* worked_ms when it last grew, and when
					*/
	int crowd;	/* more processes and threads run in turns; 0: never */
	int turn;	/* 0: they run; else they are frozen */
	int slots_peak; /* of what the process limit counts */
	int64_t oom_looked; /* kills for memory at the last look */
	int64_t oom_others; /* of them, those that did not strike the guest */
};

/* The clocks start. `cpu_start_ms`: of the session's CPU time, not its own. */
void watch_start(struct watch *wa, struct warden *w, int64_t cpu_start_ms,
	int64_t grace_ms);

/* It asked for a time limit of its own, up to `most_ms`; 0: it did not. */
void watch_shorten(struct watch *wa, int64_t wall_ms, int64_t most_ms);

/* It has begun, and an interrupt reaches it: also one that came before. */
void watch_ready(struct watch *wa, struct warden *w);

/* Wait until something happens, or is due: wa->p. 0, or SESSION_OVER. */
LINK_CHECKED int watch_wait(struct watch *wa);

/* Take what init says, and note its deaths: 0, or -1 when init is gone. */
int watch_init(struct watch *wa, struct warden *w);

/* Unless it is over: serve the front end, look at the clocks. 0, or
 * SESSION_OVER. */
LINK_CHECKED int watch_serve(struct watch *wa, struct warden *w);

/* Milliseconds left of its clocks. */
int64_t watch_left_ms(const struct watch *wa, const struct limits *l);

/* CPU time of its own, when that of the session is `now_ms`. */
int64_t watch_cpu_ms(const struct watch *wa, int64_t now_ms);

/* Milliseconds that it ran, pauses left out. */
int64_t watch_wall_ms(const struct watch *wa);

#endif
