/* SPDX-License-Identifier: MIT */
/*
 * jail.h - one jail: its processes and descriptors
 *
 * A jail is built, stopped and continued, measured, and ended. It knows
 * neither Python nor checkpoints: those who ask say which processes to spare.
 */
#ifndef JAIL_WARDEN_JAIL_H
#define JAIL_WARDEN_JAIL_H

#include "jail/apply/apply.h"
#include "jail/init/procs.h"
#include "link.h"
#include "standin.h"
#include "tally.h"

#include <stdint.h>
#include <sys/types.h>

struct besides;
struct err;
struct site;

/* What the jail uses. */
struct warden_jail_usage {
	int64_t peak_bytes;
	int over;	/* no cgroup counts memory, and it is over its limit */
	int64_t cpu_ms; /* of the session so far */
	int processes;	/* beside init, zombies not counted */
	int slots;	/* what the process limit counts: threads, zombies */
	int64_t fork_fails;
	int64_t oom_kills;
};

/* Whether they are as a cell finds them. */
enum warden_jail_ttys {
	TTYS_UNKNOWN,
	TTYS_NEW,   /* init made them, and nothing but the driver has run */
	TTYS_BEGUN, /* the stand-in is at it, or has done it */
};

/* Only jail.c writes it. */
struct warden_jail {
	struct link *link;
	struct site *site;
	struct besides *besides;
	pid_t init; /* in our pids; 0 when there is none */
	int tty_master, line, proc;
	int tty_slave; /* an open file of our own: no guest can make it block */
	int tmp[APPLY_TMPFS];	   /* its /tmp and /dev/shm, to see how full */
	unsigned short rows, cols; /* of the person's window; 0: not known */
	int size_owed, keys_owed;  /* the tty has yet to be told; has some */
	struct chore_place place;  /* where the stand-in and we look */
	struct standin standin;
	int no_proc, deaf; /* guests cannot ask init */
	int shared;	   /* inodes of the host are in the jail */
	int frozen, swept; /* how it is stopped now, if it is */
	enum warden_jail_ttys ttys;
	int quiet; /* nothing of a person's has run in it, or is left */
	int left;  /* processes that cells left, as last counted */

	/* between cells */
	int64_t look_ms, quiet_ms, stopped_cpu_ms;
	struct warden_jail_usage baseline;
	uint32_t baseline_at; /* link.traffic then; 0: there is none */

	struct tally tally; /* where no cgroup counts */
	int64_t memory_ms;  /* when to look at it next, beside a cell */
	int over;	    /* what that said */
	int stale;	    /* what the stand-in was asked to weigh is dead */
	int64_t later_ms;   /* when the stand-in was asked what is not urgent */

	/* of all jails of the session */
	int64_t peak_bytes; /* where a cgroup counts, but does not keep it */
	int64_t cpu_ms;	    /* as last measured */
	int64_t oom_seen;   /* kills for memory that are accounted for */
};

void warden_jail_init(struct warden_jail *j, struct link *l, struct site *s,
	struct besides *b);

/* ---- life ---- */

/* Begin to build, and wait until the jail stands. 0, or -1 with e: then end
 * it. The wait may return SESSION_OVER. */
int warden_jail_start(struct warden_jail *j, struct err *e);
LINK_CHECKED int warden_jail_await(struct warden_jail *j, struct err *e);

/* Kill the jail, if there is one, and see it gone. */
void warden_jail_end(struct warden_jail *j);

/* A jail that was made ahead, and holds no code of anybody's yet, is claimed:
 * give its file systems and its tty their sizes. 0, or -1 with e. */
int warden_jail_claim(struct warden_jail *j, const struct plan *plan,
	const struct spec_claim *c, struct err *e);

/* ---- stopping ---- */

/* Stop every process, by the freezer where there is one. What does not stop is
 * killed, but `kept`, the checkpoints, and `live`: *killed counts. 0; -1: it
 * could not be stopped; SESSION_OVER. */
LINK_CHECKED int warden_jail_stop(struct warden_jail *j,
	const struct link_pids *kept, pid_t live, int32_t *killed);

int warden_jail_is_stopped(const struct warden_jail *j);

/* Nothing in it can hold whoever looks at it, or can again. */
void warden_jail_note_quiet(struct warden_jail *j, int quiet);

void warden_jail_continue(struct warden_jail *j, const struct link_pids *kept);

/* Thaw only: its processes are going to be killed. */
void warden_jail_thaw(struct warden_jail *j);

/* Kill all but `kept`, and leave those stopped. 0; 1: some would not die; -1:
 * no answer; SESSION_OVER. */
LINK_CHECKED int warden_jail_kill(
	struct warden_jail *j, const struct link_pids *kept, int32_t *killed);

/* Continue one process, as the foreground of the tty. 0, or -1. */
int warden_jail_resume(struct warden_jail *j, pid_t pid);

/* 1 if the jail, which is stopped, has run since the last look. *due_ms: when
 * to look again. */
int warden_jail_ran(struct warden_jail *j, int64_t *due_ms);

/* ---- what it uses ---- */

/* How long a look may take for numbers that are only shown: at the end of a
 * cell or a program, and where somebody asks for them. */
#define LOOK_END_MS 20
#define LOOK_SHOW_MS 200

/* What can be seen without waiting, and what the stand-in has answered. */
void warden_jail_measure(struct warden_jail *j, struct warden_jail_usage *u);

/* The session's peak so far; 0 where it is not known. */
int64_t warden_jail_peak(struct warden_jail *j);

/* Its memory, where no cgroup counts it as last measured. */
int64_t warden_jail_bytes(const struct warden_jail *j);

/* Whether little of its memory is left. */
int warden_jail_is_short(const struct warden_jail *j);

/* Have the stand-in do what must be done soon, and what can wait for as long as
 * its work is not paid for (CHORE_*), and look at what no cgroup counts. */
void warden_jail_ask(
	struct warden_jail *j, const struct chore *soon, unsigned later);

/* Take its answer, as standin_take(). */
int warden_jail_hear(
	struct warden_jail *j, int timeout_ms, struct chore_result *r);

/* Both, with a wait of at most timeout_ms: what no cgroup counts, CHORE_WEIGHT
 * only if it is in `what`. -1: the jail holds the stand-in. */
int warden_jail_look(struct warden_jail *j, unsigned what, int timeout_ms);

/* How many of its processes, and init, the host keeps waiting: for a CPU, or
 * inside the kernel. -1 where nobody can look. */
int warden_jail_waiting(struct warden_jail *j);

/* While no cell does: look at memory, where no cgroup counts it. 1 if it is
 * over its limit. *due_ms: when to look again. */
int warden_jail_is_over(struct warden_jail *j, int64_t *due_ms);

/* What the next cell starts from. It is measured when the jail is stopped,
 * and again only if something has moved since, so that no cell waits for it.
 * *fresh: it was measured now. Of a jail that is not stopped, because a cell
 * follows at once, only what a cell adds to is known: times, and failures. */
const struct warden_jail_usage *warden_jail_baseline(
	struct warden_jail *j, int *fresh);

/* Take so many kills for memory as accounted for. 1 if there are new ones. */
int warden_jail_note_oom(struct warden_jail *j, int64_t kills);

/* A cell has left so many processes. */
void warden_jail_note_left(struct warden_jail *j, int n);

/* Whether no cgroup counts its memory: then the warden adds it up. */
int warden_jail_is_uncounted(const struct warden_jail *j);

/* ---- the person's tty ---- */

/* The person's window has another size. */
void warden_jail_resize(
	struct warden_jail *j, unsigned short rows, unsigned short cols);

/* Set the tty and the line as every cell finds them, after the keys in the tty
 * went back to the editor. Their settings outlive a guest, and any code in the
 * jail can change them. 0, or -1: a guest that runs holds one of them. */
int warden_jail_set_ttys(struct warden_jail *j);

/* Have the stand-in begin with that, so that the next cell finds it done. */
void warden_jail_begin_ttys(struct warden_jail *j);

/* Keys that a cell did not read go back to the editor, and never run by
 * themselves. While a guest that runs holds the tty they stay where they are.
 */
void warden_jail_return_keys(struct warden_jail *j);

#endif
