/* SPDX-License-Identifier: MIT */
/*
 * state.h - what the warden's parts share
 *
 * The warden is one thread and one loop. Between cells it waits for the front
 * end; a cell, a checkpoint, a question each run to their end under a clock
 * of their own, so that every path is straight-line code with a deadline, and
 * a front end that goes away ends any of them.
 */
#ifndef JAIL_WARDEN_STATE_H
#define JAIL_WARDEN_STATE_H

#include "jail/apply/apply.h"
#include "jail/enforce.h"
#include "jail/host/host.h"
#include "jail/init/procs.h"
#include "jail/jail.h"
#include "jail/plan/plan.h"
#include "jail/spec.h"
#include "jail/walls/cgroup/cgroup.h"
#include "jail/walls/home.h"
#include "jail/wire/wire.h"

#include <poll.h>
#include <stdint.h>
#include <sys/types.h>

/* cell.undo is at most this; one more is kept to roll back to, and one more
 * is there while the oldest has not been given up yet. */
#define UNDO_MAX 16
#define CHECKPOINTS_MAX (UNDO_MAX + 2)
/* A message names them all, and the live guest. */
_Static_assert(CHECKPOINTS_MAX + 1 <= WIRE_PIDS_MAX, "a message has no room");

/* The most that is shown of where a stuck cell was. */
#define STACK_MAX 8192

/* Longer than init takes to kill what can be killed at all. */
#define WARDEN_KILL_MS 25000

/* A copy of the guest, asleep on its own socket. */
struct checkpoint {
	int sock;
	pid_t pid;	  /* in the jail */
	uint32_t before;  /* the cell it precedes */
	uint32_t names;	  /* user names in it */
	uint32_t threads; /* threads the original had and it has not */
};

/* What the jail uses. */
struct measure {
	/* Memory; 0 where MEASURE_MEMORY was not asked for and no cgroup
	 * counts it. */
	int64_t bytes, peak_bytes;
	int64_t cpu_ms; /* of the session so far */
	int processes;	/* beside init, zombies not counted */
	int slots;	/* what the process limit counts: threads, zombies */
	int64_t fork_fails;
	int64_t oom_kills;
};

struct warden {
	const struct jail_spec *spec;
	struct host host;
	struct plan plan;
	struct cgroup cgroup;
	struct home home;
	int front;
	int janitor; /* its life line; closed by our death */

	/* the jail */
	pid_t init; /* in our pids; 0 when there is none */
	int init_sock;
	int tty_master, line, proc;
	int tty_slave; /* opened for us alone: nobody can make it block */
	int tmp[APPLY_TMPFS]; /* its /tmp and /dev/shm, to see how full */
	dev_t tty_dev;
	struct procs_source procs;
	uint32_t init_seq;
	int no_proc;
	int frozen, swept;	      /* how it is stopped now, if it is */
	int64_t look_ms, rest_cpu_ms; /* whether it is (warden_stop.c) */
	struct measure baseline;      /* true until something moves: */
	int measured;
	int ran_on, broken; /* how often since the last cell */

	/* the live guest */
	int ctl;
	int stack;	 /* memfd it writes its stacks to when told */
	pid_t live;	 /* in the jail; 0 when dead */
	int live_status; /* once dead, as from waitpid() */
	uint32_t names, threads;

	/* checkpoints, oldest first */
	struct checkpoint kept[CHECKPOINTS_MAX];
	int nkept;
	enum jail_no_checkpoint no_checkpoint; /* why nkept is 0 */
	uint32_t ending;  /* number of an INIT_DISCARD without its answer yet */
	int64_t oom_seen; /* kills for memory that are accounted for */
	const char *park_failed; /* why the last could not be taken */
	int told_none;		 /* that there is no new checkpoint was said */
	int left_behind;	 /* processes that earlier cells left */

	/* what they cost (warden_weigh.c) */
	int64_t faults;	     /* the live guest's when last looked at */
	int64_t rss_bytes;   /* and its size when the cell began */
	int skip, skip_next; /* cells to go without one */
	enum jail_no_checkpoint skip_why;
	int said_cost;

	uint32_t next_cell; /* the number the next cell will have */
	uint32_t asked;	    /* questions so far */
	int cells;	    /* cells run */
	int started;	    /* SPEC_PROGRAM: FRONT_START came */
	int64_t started_ms, touched_ms;
	unsigned announced; /* 1 << enum jail_limit: that it is near */
	int64_t peak_bytes;
	int64_t cpu_gone_ms;	    /* CPU time of jails that ended */
	int64_t cpu_ms;		    /* as last measured */
	struct enforce_facts facts; /* what there is to enforce with */
	char limited[256];
};

/* ---- warden_link.c: messages and waits ---- */

/* poll(2), and the only way to wait: anywhere else an alarm is set, which ends
 * what takes longer than WARDEN_WORK_MS. */
int warden_poll(struct pollfd *p, nfds_t n, int timeout_ms);

/* Wait for `fd` or init: 1 if `fd` is ready, 0 if not, or at the deadline. The
 * front end's end is ours. */
int warden_wait(struct warden *w, int fd, int64_t deadline_ms, int *init_ready);

/* Send an event, or a reply, with descriptors (borrowed, -1 for none). */
void warden_event(
	struct warden *w, struct jail_event *ev, const int *fds, int nfds);
void warden_notice(struct warden *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Send init a request that names the checkpoints. */
int warden_init_send(struct warden *w, enum wire_init_type type,
	const int32_t *pids, int npids, const int *fds, int nfds);

/* Take what init says until a message of `type` with the last request's
 * number comes: 0, or -1 at the deadline or when init is gone. Deaths on the
 * way are noted. */
int warden_init_await(struct warden *w, enum wire_init_type type,
	struct wire_init *m, int64_t deadline_ms);

/* Take one message of init's that is there: 1 taken, 0 nothing, -1 gone. */
int warden_init_take(struct warden *w, struct wire_init *m);

/* Wait for one message of the guest on `sock`: 1 taken, 0 at the deadline,
 * -1 gone or malformed. Ends the session when the front end goes. */
int warden_guest_await(struct warden *w, int sock, struct wire_guest *m,
	char *buf, int64_t deadline_ms);

/* The same, where no answer costs the variables: the deadline is put off, by
 * half a minute at most, for as long as the jail is kept from running. */
int warden_guest_await_fair(struct warden *w, int sock, struct wire_guest *m,
	char *buf, int64_t deadline_ms);

/* ---- warden_jail.c: its start and its end ---- */

/* Build a jail and wait until it stands; -1 with e. For a session, Python has
 * been asked for then. */
int warden_jail_start(struct warden *w, struct err *e);

/* Kill the jail, if there is one, and see it gone. */
void warden_jail_stop(struct warden *w);

/* End everything now. */
_Noreturn void warden_end(struct warden *w);

/* Have init start Python on these descriptors (borrowed; spawn.h), as soon as
 * it can; and wait until it has. */
int warden_spawn_ask(struct warden *w, const int *fds, int nfds, struct err *e);
int warden_spawn_await(struct warden *w, struct err *e);

/* Wait until the driver says READY; announces JAIL_UP. */
int warden_guest_start(struct warden *w, int restarted, struct err *e);

/* ---- warden_stop.c: nothing runs between cells ---- */

/* Stop everything in the jail, by the freezer where there is one. What could
 * not be stopped was *killed. Nothing runs on: when init does not answer, a
 * fresh jail takes this one's place, which is told. */
void warden_stop(struct warden *w, int32_t *killed);

/* The same, unless cell.background lets it run on. */
void warden_rest(struct warden *w, int32_t *killed);

/* Continue everything. Thawing alone is for what is going to be killed. */
void warden_continue(struct warden *w);
void warden_thaw(struct warden *w);

/* Between cells, when *due_ms is over: 1 if what was stopped is still at rest,
 * or is again; 0 if it goes on running. Sets *due_ms. */
int warden_still(struct warden *w, int64_t *due_ms);

/* ---- warden_measure.c: what the jail uses now ---- */

enum { MEASURE_MEMORY = 1 }; /* even where that means walking page tables */

void warden_measure(struct warden *w, unsigned flags, struct measure *m);

/* What the next cell starts from. It is measured when the jail has come to
 * rest, and again only if something has moved since: no cell waits for it. */
const struct measure *warden_baseline(struct warden *w);

/* ---- warden_park.c: checkpoints ---- */

/* Their pids, as init is told them; how many. */
int warden_checkpoint_pids(const struct warden *w, int32_t *pids);

/* Take a checkpoint, then stop everything; tells JAIL_PARKED. */
void warden_park(struct warden *w);

/* The live guest is dead or beyond hope: kill all but the checkpoints and
 * wake the newest, or start a fresh Python. Fills d->after, back_to, names,
 * no_checkpoint. After AFTER_RESTARTED call warden_restart(). */
void warden_recover(struct warden *w, struct jail_done *d);

/* Between cells: recover, or restart, and tell it. `what` happened. */
void warden_replace(struct warden *w, const char *what);

/* The same, where nobody had asked for anything. What is broken may be in its
 * copies too: the one of the state now is not gone back to, and what breaks
 * again before the next cell makes way for a fresh Python. */
void warden_broken(struct warden *w, const char *what);

/* Build a new jail and Python on the same home; ends the session with
 * JAIL_FAILED if that is not possible. */
void warden_restart(struct warden *w);

/* Give up the n oldest checkpoints, for this reason. */
void warden_give_up(struct warden *w, int n, enum jail_no_checkpoint why);

/* Forget the checkpoint with this pid: it died. */
void warden_checkpoint_died(struct warden *w, pid_t pid);

/* Go back n cells; *back_to is the first that is undone. With e -1 when that
 * far is not kept, and nothing has changed; 1 when Python was restarted. */
int warden_undo(struct warden *w, int n, uint32_t *back_to, struct err *e);

/* ---- warden_weigh.c: what checkpoints cost ---- */

/* A cell begins. */
void warden_weigh_start(struct warden *w);

/* While it runs: give the checkpoints up where they cost too much memory, or
 * too much copying. */
void warden_weigh(struct warden *w, const struct measure *m, int64_t ran_ms);

/* 1 if this cell goes without a checkpoint, for what the last ones cost. */
int warden_weigh_skip(struct warden *w);

/* Go without one for some cells: taking it took too long. */
void warden_weigh_hung(struct warden *w);

/* ---- warden_clock.c: idle and lifetime, and the person ---- */

/* What is left of LIMIT_IDLE or LIMIT_LIFETIME, in milliseconds: 0 or less,
 * it has struck. Tells, once, that it is near. *due_ms: when to look again. */
int64_t warden_clock(struct warden *w, enum jail_limit limit, int64_t *due_ms);

/* The person is there. */
void warden_touch(struct warden *w);

/* Whether the jail waits for the person to type: a sample. */
int warden_waits_for_person(struct warden *w);

/* When to look at what runs next: a little random, so that nothing can
 * arrange to be asleep at each look. */
int64_t warden_next_look(int64_t now, int period_ms);

/* ---- warden_cell.c ---- */

/* Run one cell to its end and tell JAIL_DONE. */
void warden_cell(struct warden *w, uint32_t cell, int source_fd);

/* ---- warden_program.c ---- */

/* SPEC_PROGRAM: run it to its end, tell JAIL_EXITED, end the session. */
_Noreturn void warden_program(struct warden *w);

/* ---- warden_front.c ---- */

/* Serve one request of the front end between cells; -1 when it is gone. The
 * second waits for it. */
int warden_front_serve(struct warden *w);
int warden_front_next(struct warden *w);

#endif
