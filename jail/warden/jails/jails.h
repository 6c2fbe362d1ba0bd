/* SPDX-License-Identifier: MIT */
/*
 * jails.h - the jails of a session
 *
 *	site.c		what every jail of the session is built on
 *	side.c		programs beside the session: other jails on the same
 *			home
 *	jail.c		one jail: its processes and descriptors
 */
#ifndef JAIL_WARDEN_JAILS_JAILS_H
#define JAIL_WARDEN_JAILS_JAILS_H

#include "jail/apply/apply.h"
#include "jail/enforce.h"
#include "jail/host/host.h"
#include "jail/plan/plan.h"
#include "jail/spec.h"
#include "jail/walls/cgroup/cgroup.h"
#include "jail/warden/look/look.h"

/* ---- site.c ---- */

/*
 * The warden's own namespaces, the cgroup with its janitor, the home, and the
 * plan. Made once; they outlive each jail.
 */

/* Only site.c writes it; the home has functions of its own. */
struct site {
	const struct jail_spec *spec;
	struct host host;
	struct plan plan;
	struct cgroup cgroup;
	struct home home;
	int janitor;	/* its life line; our death closes it */
	int allocation; /* (root) locks: on its host id, and on its places */
	uid_t id;	/* (root) the host id */
	struct enforce_facts facts; /* what there is to enforce with */
	char limited[256];	    /* what it cannot enforce, in words */
};

/* Make it, and become a process that has nothing of its caller's but the
 * socket `front`. 0, or -1 with e. */
int site_open(
	struct site *s, const struct jail_spec *spec, int front, struct err *e);

/* Have the janitor count a limit that struck; LIMIT_NONE: the session, which
 * was made ahead, is somebody's now. */
void site_count(const struct site *s, enum jail_limit limit);

/* Give the places of this session back, before its end: nothing of it runs any
 * more, and nobody can keep it. */
void site_leave_places(const struct site *s);

/* A jail that was made ahead is leased: `plan` takes the place of the plan. It
 * is what the session's spec, changed by then, makes of the same host. -1 with
 * e when it differs in more than what a lease changes. */
int site_make_plan(struct site *s, struct plan *plan, struct err *e);
void site_take_plan(struct site *s, struct plan *plan);

/* In a child: another site on the same home and in the same cgroup, for a
 * program beside the session. It is never frozen. It keeps only the home and
 * the cgroup of `of` open, and the socket `front`. 0, or -1 with e. */
int site_share(struct site *s, const struct site *of,
	const struct jail_spec *spec, int front, struct err *e);

/* A jail stands, and it is known whether it could have a /proc, and inodes of
 * its own, and whether guests can ask init. */
void site_note_jail(struct site *s, int has_proc, int own_inodes, int asks);

void site_close(struct site *s);

/* Count the session of a lease in: the places go with it. 0, or -1 with e, of
 * kind ERR_BUSY when there are too many: then it has none. And give the places
 * back. */
int site_count_in(const struct spec_made *made, int lease, struct err *e);
/* Check that there is memory for one more session: in what all may have
 * together, and on the host. -1 with e, in words for the person. */
int site_has_memory(
	const struct spec_made *made, const struct cgroup *cg, struct err *e);

void site_count_out(const struct spec_made *made, int lease);

/* ---- side.c ---- */

/*
 * Each has a warden of its own, a child of the session's, and so a pid
 * namespace and clocks of its own. Memory and processes are the session's.
 */

/* Most programs beside a session at a time. */
#define SIDE_MAX 4

/* The resources that each jail of the session uses, as its own warden has
 * measured them. The page is shared by all of them; each writes its own place.
 */
struct side_board {
	int64_t bytes[SIDE_MAX + 1]; /* without the home, where no cgroup
				      * counts; the last is the session's */
	int64_t cpu_ms[SIDE_MAX + 1];
};
#define SIDE_SESSION SIDE_MAX

/* Serve a program on the socket `front` (taken), from the place `at`. */
typedef void side_run(void *arg, int front, int at, int python);

/* Only side.c writes it. */
struct side_programs {
	pid_t pids[SIDE_MAX];	  /* 0: the place is free */
	int64_t gone_ms;	  /* CPU time of those that ended */
	struct side_board *board; /* NULL: there has been none yet */
	int at;			  /* our place on it */
	side_run *run;
	void *arg;
};

/* The session's: children `run`. */
void side_init(struct side_programs *b, side_run *run, void *arg);

/* In such a child: from now on its place alone is ours. */
void side_become(
	struct side_programs *b, const struct side_programs *of, int at);

/* Fork a child that serves one program: of the shell, or of Python. The socket
 * to it, or -1 with e. */
int side_start(struct side_programs *b, int python, struct err *e);

/* How many there are now. */
int side_count(struct side_programs *b);

/* End them all. */
void side_end(struct side_programs *b);

/* Note the resources that our own jail uses. */
void side_note(struct side_programs *b, int64_t bytes, int64_t cpu_ms);

/* The resources that all others use; the CPU time counts those that ended. */
int64_t side_bytes(const struct side_programs *b);
int64_t side_cpu_ms(const struct side_programs *b);

/* Make the spec of such a program of the session's. */
void side_make_spec(struct jail_spec *spec, int python);

/* ---- jail.c ---- */

/*
 * A jail is built, stopped and continued, measured, and ended. It knows
 * neither Python nor checkpoints: those who ask say which processes to spare.
 */

/* The resources that the jail uses. */
struct warden_jail_usage {
	int64_t peak_bytes;
	/* where no cgroup counts memory */
	enum tally_verdict memory;
	int weighed;	/* the verdict goes by the helper's weighing */
	int64_t cpu_ms; /* of the session so far */
	int processes;	/* beside init, zombies not counted */
	int threads;	/* of those */
	int slots;	/* what the process limit counts: threads, zombies */
	int64_t fork_fails;
	int64_t oom_kills;
	int64_t limit_hits; /* as struct cgroup_usage has them */
};

/* The state of the ttys, compared with how a cell finds them. */
enum warden_jail_ttys {
	TTYS_UNKNOWN,
	TTYS_NEW,   /* init made them, and nothing but the driver has run */
	TTYS_BEGUN, /* the helper is at it, or has done it */
};

/* Only jail.c writes it. */
struct warden_jail {
	struct link *link;
	struct site *site;
	struct side_programs *sides;
	pid_t init; /* in our pids; 0 when there is none */
	int tty_master, line, proc;
	int tty_slave; /* an open file of our own: no guest can make it block */
	int tmp[APPLY_TMPFS];	   /* its /tmp and /dev/shm, to see how full */
	unsigned short rows, cols; /* of the person's window; 0: not known */
	int size_owed, keys_owed;  /* the tty has yet to be told; has some */
	struct work_place place;   /* where the helper and we look */
	struct helper helper;
	int no_proc, deaf; /* guests cannot ask init */
	int shared;	   /* inodes of the host are in the jail */
	int frozen, swept; /* how it is stopped now, if it is */
	int rests;	   /* frozen for a moment (warden_jail_rest()) */
	enum warden_jail_ttys ttys;
	int quiet; /* nothing of a person's has run in it, or is left */
	int left;  /* processes that cells left, as last counted */
	ino_t ctl; /* the live guest's end of its socket */

	/* between cells */
	int64_t look_ms, quiet_ms, stopped_cpu_ms;
	struct warden_jail_usage baseline;
	uint32_t baseline_at; /* link.traffic then; 0: there is none */

	struct tally tally;  /* where no cgroup counts */
	int64_t memory_ms;   /* when to look at it next, beside a cell */
	int over;	     /* what that said */
	int stale;	     /* what the helper was asked to weigh is dead */
	int asked_still;     /* it was stopped then, and is */
	int64_t weighing_ms; /* since when it is stopped to be weighed; 0: not
			      */
	int64_t paused_ms;   /* how long it has been stopped for that in all */
	int64_t later_ms;    /* when the helper was asked what is not urgent */

	/* of all jails of the session */
	int64_t peak_bytes; /* where a cgroup counts, but does not keep it */
	int64_t cpu_ms;	    /* as last measured */
	int64_t oom_seen;   /* kills for memory that are accounted for */
	int64_t hits_seen;  /* how often its limit had been met then */
};

void warden_jail_init(struct warden_jail *j, struct link *l, struct site *s,
	struct side_programs *b);

/* ---- life ---- */

/* Begin to build, and wait until the jail stands. 0, or -1 with e: then end
 * it. The wait may return SESSION_OVER. */
int warden_jail_start(struct warden_jail *j, struct err *e);
LINK_CHECKED int warden_jail_await(struct warden_jail *j, struct err *e);

/* Kill the jail, if there is one, and see it gone. */
void warden_jail_end(struct warden_jail *j);

/* A jail that was made ahead, and holds no code of anybody's yet, is leased:
 * give its file systems and its tty their sizes. 0, or -1 with e. */
int warden_jail_lease(struct warden_jail *j, const struct plan *plan,
	const struct spec_lease *c, struct err *e);

/* ---- stopping ---- */

/* Stop every process, by the freezer where there is one. A process that does
 * not stop is killed, but `kept`, the checkpoints, and `live`: *killed counts.
 * 0; -1: it could not be stopped; SESSION_OVER. */
LINK_CHECKED int warden_jail_stop(struct warden_jail *j,
	const struct link_pids *kept, pid_t live, int32_t *killed);

int warden_jail_is_stopped(const struct warden_jail *j);

/* No process in the jail can block a process that looks at it; or one can
 * again. */
void warden_jail_note_quiet(struct warden_jail *j, int quiet);

/* The live guest's end of its socket, through which the warden gives it
 * descriptors. */
void warden_jail_note_ctl(struct warden_jail *j, ino_t ctl);

void warden_jail_continue(struct warden_jail *j, const struct link_pids *kept);

/* While a cell or a program runs: what to do about its memory. A jail in doubt
 * is stopped until it has been weighed, and then continued. True if it is over
 * its limit, or cannot be weighed though it is stopped. */
int warden_jail_judge(struct warden_jail *j, enum tally_verdict memory);

/* More processes and threads than this are a crowd; 0: any number may run at a
 * time, because each person here has no share of the cores (or nothing can be
 * frozen). */
int warden_jail_crowd(const struct warden_jail *j);

/* While a cell or a program runs: freeze the guests for a moment, without
 * waiting for each, or (0) let them go on. */
void warden_jail_rest(struct warden_jail *j, int on);

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

/* Fill in what can be seen without waiting, and the helper's answers. */
void warden_jail_measure(struct warden_jail *j, struct warden_jail_usage *u);

/* The same for numbers that are only shown: u->memory says nothing, and the
 * next caller gets the verdict. */
void warden_jail_show(struct warden_jail *j, struct warden_jail_usage *u);

/* The session's peak so far; 0 where it is not known. */
int64_t warden_jail_peak(struct warden_jail *j);

/* Its memory, where no cgroup counts it as last measured. */
int64_t warden_jail_bytes(const struct warden_jail *j);

/* True if little of its memory is left. */
int warden_jail_is_short(const struct warden_jail *j);

/* Have the helper do what must be done soon, and what can wait for as long as
 * its work is not paid for (WORK_*), and look at what no cgroup counts. */
void warden_jail_ask(
	struct warden_jail *j, const struct work *soon, unsigned later);

/* Take its answer, as helper_take(). */
int warden_jail_hear(
	struct warden_jail *j, int timeout_ms, struct work_result *r);

/* Both, with a wait of at most timeout_ms: the figures that no cgroup counts;
 * WORK_WEIGHT only if it is in `what`. -1: the jail holds the helper. */
int warden_jail_look(struct warden_jail *j, unsigned what, int timeout_ms);

/* How many of its processes, and init, the host keeps waiting: for a CPU, or
 * inside the kernel. -1 where we cannot look. */
int warden_jail_waiting(struct warden_jail *j);

/* While no cell does: look at memory, where no cgroup counts it. 1 if it is
 * over its limit. *due_ms: when to look again. */
int warden_jail_is_over(struct warden_jail *j, int64_t *due_ms);

/* The usage that the next cell starts from. It is measured when the jail is
 * stopped, and again only if something has moved since, so that no cell waits
 * for it. *fresh: it was measured now. If the jail is not stopped, because a
 * cell follows at once, only the counters that a cell adds to are known: times,
 * and failures. */
const struct warden_jail_usage *warden_jail_baseline(
	struct warden_jail *j, int *fresh);

/* Take so many kills for memory, at so many hits of the limit, as accounted
 * for: a cell begins or ends, or people are told. */
void warden_jail_note_oom(struct warden_jail *j, int64_t kills, int64_t hits);

/* The limit for which the kernel has killed since: the session's own, or one
 * above. */
enum jail_limit warden_jail_oom_limit(const struct warden_jail *j);

/* A cell has left so many processes. */
void warden_jail_note_left(struct warden_jail *j, int n);

/* True if no cgroup counts its memory: then the warden adds it up. */
int warden_jail_is_uncounted(const struct warden_jail *j);

/* ---- the person's tty ---- */

/* The person's window has another size. */
void warden_jail_resize(
	struct warden_jail *j, unsigned short rows, unsigned short cols);

/* Set the tty and the line as every cell finds them, after the keys in the tty
 * went back to the editor. Their settings outlive a guest, and any code in the
 * jail can change them. 0, or -1: a guest that runs holds one of them. */
int warden_jail_set_ttys(struct warden_jail *j);

/* Have the helper begin with that, so that the next cell finds it done. */
void warden_jail_begin_ttys(struct warden_jail *j);

/* Keys that a cell did not read go back to the editor, and never run by
 * themselves. While a guest that runs holds the tty they stay where they are.
 */
void warden_jail_return_keys(struct warden_jail *j);

#endif
