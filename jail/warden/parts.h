/* SPDX-License-Identifier: MIT */
/*
 * parts.h - what the files of the warden share
 *
 *	side.c		programs beside the session: other jails on the same
 *			home
 *	link.c		the warden's links to the front end and to init, and its
 *			waits
 *	cell.c		one cell, from its source to its verdict
 *	checkpoints.c	copies of the guest, asleep: taken, given up, woken
 *	work.c		what may have to wait for a guest
 *	site.c		what every jail of the session is built on
 *	lease.c		a jail that was made ahead waits until it is somebody's
 *	clocks.c	the limits of a session's life: idle and lifetime
 *	copycost.c	what a page costs that a checkpoint makes the guest copy
 *	front.c		the front end's requests, between cells
 *	guest.c		the live guest: the process that runs the cells
 *	helper.c	a child of the warden that may be kept waiting in its
 *			place
 *	trial.c		a question for whose answer code of the user's runs
 *	tally.c		what a jail uses, added up where no cgroup does it
 *	jail.c		one jail: its processes and descriptors
 *	program.c	one program in a jail of its own
 *	warden.c	the session: its parts, and what happens when one breaks
 *	warm.c		a jail that waits for a program has what its Python
 *			needs
 *	watch.c		a cell or a program under its clocks
 */
#ifndef JAIL_WARDEN_PARTS_H
#define JAIL_WARDEN_PARTS_H

#include "jail/apply/apply.h"
#include "jail/base/io.h"
#include "jail/enforce.h"
#include "jail/host/host.h"
#include "jail/init/init.h"
#include "jail/jail.h"
#include "jail/plan/plan.h"
#include "jail/spec.h"
#include "jail/walls/cgroup/cgroup.h"
#include "jail/walls/walls.h"
#include "jail/wire/wire.h"

#include <poll.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct work_result;
struct guest;
struct warden;
struct guest_message;
struct warden_jail;

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
typedef void side_run(void *arg, int front, int at);

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

/* Fork a child that serves one program. The socket to it, or -1 with e. */
int side_start(struct side_programs *b, struct err *e);

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
void side_make_spec(struct jail_spec *spec);

/* ---- link.c ---- */

/* The front end is gone, or the session has come to its end otherwise: every
 * function that is told so returns it, up to the one that ends the process. */
#define SESSION_OVER (-2)
#define LINK_CHECKED __attribute__((warn_unused_result))

/* Processes of the jail, as init is told them. */
struct link_pids {
	int n;
	int32_t v[WIRE_PIDS_MAX];
};

/* Serve a request that any moment suits, whatever else goes on: 1 served, 0 it
 * is none of these. */
typedef int link_aside(void *arg, const struct wire_front *m);

/* A death that init has reported and that nobody has asked for yet. */
struct link_death {
	int32_t pid;
	int status; /* as from waitpid() */
	int alone;  /* then init was the only process in the jail */
};

/* A request of the front end's, with its descriptors. */
struct link_request {
	struct wire_front m;
	int fds[IO_FDS_MAX];
};

/* The front end sends one request that takes time, and then waits. */
#define LINK_REQUESTS 2

/* Only link.c writes it. */
struct link {
	int front;	     /* socket to the front end; -1: no front end yet */
	clockid_t front_cpu; /* -1: nobody's */
	int init;	     /* socket to init; -1: no jail */
	int over;	     /* the front end is gone */
	struct link_request waiting[LINK_REQUESTS]; /* taken, not served yet */
	int nwaiting;
	uint32_t serving;  /* number of the request that is served; 0: none */
	int interrupted;   /* the person does not want to wait any longer */
	link_aside *aside; /* serves some requests at any time; may be NULL */
	void *aside_arg;
	uint32_t seq;	   /* number of the last request to init */
	uint32_t answered; /* number of the last request init has answered */
	uint32_t traffic;  /* messages to and from init */
	int ndeaths;
	struct link_death deaths[WIRE_PIDS_MAX];
};

/* Takes `front`. */
void link_open(struct link *l, int front);

/* Have `aside` serve what comes during a wait. */
void link_serve_aside(struct link *l, link_aside *aside, void *arg);

/* Serve a request that came otherwise, if any moment suits it: 1, or 0. */
int link_serve_now(struct link *l, const struct wire_front *m);

/* The link to the init of a new jail, and its end. Takes `init`. */
void link_attach(struct link *l, int init);
void link_detach(struct link *l);

/* ---- waits ---- */

/* poll(2), and the only way to wait. -1 if it fails; a signal is no failure. */
int link_poll(struct pollfd *p, nfds_t n, int timeout_ms);

/* Wait for a child that was killed. All that is waited for is the kernel, which
 * may need long to free what the child has mapped: no alarm here either. */
void link_reap(pid_t pid);

/* Milliseconds until then, 0 if it is over, at most what poll(2) takes. */
int link_ms_until(int64_t deadline_ms);

/* Wait for `fd` (-1: for none) or init: 1 if `fd` is ready, 0 if not, or at
 * the deadline; SESSION_OVER. Meanwhile the front end is listened to: what it
 * asks for waits, and what the person interrupts is given up. May return 0
 * before the deadline. */
LINK_CHECKED int link_wait(
	struct link *l, int fd, int64_t deadline_ms, int *init_ready);

/* ---- front end ---- */

/* Send an event with descriptors (borrowed, -1 for none), and with its bytes
 * (borrowed). That the front end is gone is what the next wait returns. */
void link_event(
	struct link *l, const struct jail_event *ev, const int *fds, int nfds);
void link_notice(struct link *l, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The last message, once the front end wants no more (WIRE_LEFT_BYTES). */
void link_say_left(struct link *l);

/* Answer request `seq`, with `n` descriptors (borrowed), or with bytes. 0, or
 * -1 when they did not get there. */
int link_reply(struct link *l, uint32_t seq, const struct wire_reply *reply,
	const int *fds, int n);
int link_reply_bytes(struct link *l, uint32_t seq,
	const struct wire_reply *reply, const char *bytes, size_t n);

/* CPU time of the front end so far. It is the socket's peer, unless
 * link_charge() names another process; with 0 nobody is charged, and the time
 * stays 0. */
int64_t link_front_cpu_ms(const struct link *l);
void link_charge(struct link *l, pid_t front);

/* Take the next request, waiting for it; `fds` has IO_FDS_MAX places. 0, or
 * SESSION_OVER. */
LINK_CHECKED int link_request(struct link *l, struct wire_front *m, int *fds);

/* The type of the next request, if there is one already; or -1. */
int link_request_peek(struct link *l);

/* How long a poll for the front end may wait: not when a request waits. */
int link_patience_ms(const struct link *l, int ms);

/* A request is served from here to its reply, to link_served(), or to the next
 * one. */
void link_serve(struct link *l, const struct wire_front *m);
void link_served(struct link *l);

/* True if an interrupt, which names the request that it is for, is for the one
 * that is served. */
int link_is_served(const struct link *l, const struct wire_front *interrupt);

/* 1, once, if the person has interrupted what they waited for. */
int link_interrupt_take(struct link *l);

/* Refuse a request of this type that waits. */
void link_refuse(struct link *l, enum wire_front_type type, const char *why);

/* ---- init ---- */

/* Send init a request about `pids` (NULL: none), with descriptors (borrowed).
 * 0, or -1. */
int link_ask(struct link *l, enum wire_init_type type,
	const struct link_pids *pids, const int *fds, int nfds);
int link_ask_pid(struct link *l, enum wire_init_type type, int32_t pid);

/* INIT_KILL_FORK: kill the copy that was begun in the last `ms`. */
void link_ask_unhang(struct link *l, int64_t ms);

/* Take one message of init's, if there is one: 1 taken, 0 nothing, -1 init is
 * gone. A death is kept for link_death_take(). `fds` may be NULL. */
int link_take(struct link *l, struct wire_init *m, int *fds, int nfds);

/* Wait for the answer of `type` to the last request: 0; -1 at the deadline, or
 * when init is gone or reports an error, which is then in `m`; SESSION_OVER. */
LINK_CHECKED int link_await(struct link *l, enum wire_init_type type,
	struct wire_init *m, int64_t deadline_ms);

/* 1 if init has reported the death of this process, once: *d is that. */
int link_death_take(struct link *l, int32_t pid, struct link_death *d);

/* Forget the deaths that concern nobody. */
void link_deaths_forget(struct link *l);

/* ---- cell.c ---- */

/* Run one cell, as FRONT_RUN asks, whose source is in a file (borrowed), to its
 * end: tells JAIL_DONE, takes a checkpoint, stops the jail. `report_fd` goes to
 * the guest (borrowed; -1: none). 0, or SESSION_OVER. */
LINK_CHECKED int warden_cell_run(struct warden *w, const struct wire_front *m,
	int source_fd, int report_fd);

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

/* A cell begins. While it runs, what the helper has counted (WORK_PRIVATE):
 * give them up where they cost too much. */
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

/* ---- work.c ---- */

/* Where it is done. Everything is borrowed. */
struct work_place {
	struct procs_source procs;
	int tty_master, tty_slave, line;
	dev_t tty_dev;
};

/* Questions for the helper, one bit each. */
enum {
	WORK_WAITS = 1,	  /* does the jail wait for the person? */
	WORK_WEIGHT = 2,  /* how much memory does it use? */
	WORK_PRIVATE = 4, /* how much of it is private to `pid`? */
	WORK_CPU = 8,	  /* how much CPU time has it used? */
	WORK_KEYS = 16,	  /* take the keys that a cell did not read */
	WORK_TTYS = 32,	  /* set the tty and the line as a cell finds them */
	WORK_SIZE = 64,	  /* tell the tty the size of the window */
};

struct work {
	unsigned what;
	pid_t pid;
	int64_t faults; /* not worth counting its pages before it has more */
	struct link_pids kept;	   /* these do not count for WORK_WAITS */
	unsigned short rows, cols; /* of the window; 0: not known */
};

/* Keys handed back at most: what a tty holds, and what is on its way there. */
#define WORK_KEYS_MAX (64 * 1024)

struct work_result {
	unsigned what;	  /* which of the questions have an answer */
	int64_t began_ms; /* when it was begun */
	int waits;
	int64_t weight_bytes, cpu_ms;
	/* beside the weight; as in struct procs */
	int64_t kernel_bytes, forks_bytes;
	int hidden;
	int64_t shared;
	/* WORK_PRIVATE: minor faults, size, and private bytes, or -1 */
	int64_t faults, rss_bytes, private_bytes;
	size_t nkeys;
	char keys[WORK_KEYS_MAX];
};

/* Do it here and now. Only the helper may, or anyone while the jail is
 * stopped: a guest that runs can hold the locks that this waits for. */
void work_do(const struct work_place *p, const struct work *q,
	struct work_result *r);

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

/* Give the places of this session back, before its end: nothing of it runs any
 * more, and nobody can keep it. */
void site_leave_places(const struct site *s);

/* A jail that was made ahead is leased: `plan` takes the place of the plan. It
 * is what the session's spec, changed by then, makes of the same host. -1 with
 * e when it differs in more than what a lease changes. */
int site_make_plan(struct site *s, struct plan *plan, struct err *e);
void site_take_plan(struct site *s, struct plan *plan);

/* In a child: another site on the same home and in the same cgroup, for a
 * program beside the session. It is never frozen. Of `of` it keeps open only
 * the home, the cgroup and the socket `front`. 0, or -1 with e. */
int site_share(struct site *s, const struct site *of,
	const struct jail_spec *spec, int front, struct err *e);

/* A jail stands, and it is known whether it could have a /proc, and inodes of
 * its own, and whether guests can ask init. */
void site_note_jail(struct site *s, int has_proc, int own_inodes, int asks);

void site_close(struct site *s);

/* ---- lease.c ---- */

/* Wait until the jail is leased, where it was made ahead, and make it what the
 * lease says. 0; -1 with e; SESSION_OVER. Where any of it fails the session is
 * over. */
LINK_CHECKED int lease_await(struct warden *w, struct err *e);

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

/* ---- copycost.c ---- */

/* Nanoseconds of CPU time for one page, on this host: measured at the first
 * call, which takes about a millisecond. Where nothing can be measured, what a
 * slow virtual machine takes. */
int64_t copycost_page_ns(void);

/* ---- front.c ---- */

/* A link_aside: serve a request that any moment suits. */
int front_serve_aside(void *warden, const struct wire_front *m);

/* Wait for a request of the front end's and serve it. 0, or SESSION_OVER. */
LINK_CHECKED int front_serve(struct warden *w);

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

/* ---- helper.c ---- */

/*
 * One question at a time. The warden asks, goes on, and takes the answer when
 * it looks again.
 */

/* Only helper.c writes it. */
struct helper {
	pid_t pid; /* 0: none */
	int sock;  /* -1: none, or it was killed and is not gone yet */
	clockid_t cpu;
	int64_t cpu_ns;	  /* its CPU time before the question */
	int64_t asked_ms; /* 0: nothing is asked */
	int64_t paid_ms;  /* when its work is paid for */
	int64_t cells_ns; /* its work while the jail was stopped for it */
};

void helper_init(struct helper *s);

/* The urgency of a question, which says if the helper is free to work. All
 * its work takes a small share of a core. An urgent question may come a little
 * before the work until now is paid for, and a late one, a quarter of that.
 * While the jail is stopped for it, the cell's CPU time pays. */
enum helper_haste {
	HELPER_CALM,
	HELPER_LATE,
	HELPER_URGENT,
	HELPER_STOPPED,
};
int helper_is_free(const struct helper *s, enum helper_haste haste);

/* True if it owes an answer. */
static inline int helper_is_asked(const struct helper *s)
{
	return s->asked_ms != 0;
}

/* Ask, starting it where needed. 0, or -1 when it cannot be asked. */
int helper_ask(
	struct helper *s, const struct work_place *p, const struct work *q);

/* Take the answer, after a wait of at most timeout_ms. `stopped`: the jail is
 * for it, and nothing in it holds the helper. 1; 0 there is none yet, or
 * nothing was asked; -1 it did not answer in time and was killed. */
int helper_take(
	struct helper *s, int timeout_ms, int stopped, struct work_result *a);

/* End it, when no process of the jail is left that could hold it. */
void helper_end(struct helper *s);

/* ---- tally.c ---- */

/*
 * One tally serves all jails of a session, one after the other. Memory: the
 * caller adds what can be seen without waiting, and asks the helper for the
 * rest. CPU time: the caller adds sums over all processes.
 */

/* Where to look. Everything is borrowed. */
struct tally_place {
	const struct home *home;
	const struct procs_source *procs;
	const int *tmp;	  /* APPLY_TMPFS file systems of the jail, or -1 */
	const int *front; /* a socket of our own, made as guests make theirs */
};

enum tally_verdict {
	TALLY_FITS,
	TALLY_DOUBTFUL, /* nobody could weigh it in time while it ran */
	TALLY_OVER,
};

/* How the jail waits for the helper. */
enum tally_waits {
	TALLY_FREE,    /* it can be asked now */
	TALLY_ASKED,   /* or cannot be asked yet; the jail goes on */
	TALLY_STOPPED, /* the jail is stopped until it has answered */
};

/* Only tally.c writes it. */
struct tally {
	struct tally_place place;
	int64_t limit, others_bytes;
	struct notify_memory *memory; /* for init; NULL before tally_begin() */

	int64_t most_bytes;   /* what a fork shares counted for each */
	int64_t weight_bytes; /* by the helper's last answer; 0: not known */
	int64_t weight_most;  /* most_bytes then */
	int64_t peak_bytes;   /* of all jails */
	int64_t host_bytes;   /* of the whole host, as last measured */
	int64_t host_known;   /* that, when we last knew ours */
	int64_t host_asked;   /* that, when the helper was asked */
	int64_t unknown_ms;   /* since when it may be over its limit; 0: not */
	/* of the host's kernel: as last measured; when the helper was asked;
	 * without what is ours; and what is ours by its last answer */
	int64_t kernel_bytes, kernel_asked, kernel_others, kernel_ours;
	/* anonymous shared memory that init has granted: when the helper was
	 * asked; before its last answer; and what was left of that */
	int64_t shared_asked, shared_seen, shared_left;
	/* shared memory of all kinds on the host, and without what is ours */
	int64_t shmem_bytes, shmem_others;
	int weighed; /* since last added: 1 answered, -1 in vain, 0 not */

	/* CPU time: of jails that ended; sums of the one that lives: the last
	 * two, and the middle one of the last three; and both */
	int64_t cpu_gone_ms, sums_ms[3], cpu_ms;
};

void tally_init(struct tally *t, const struct tally_place *place);

/* Before a jail whose memory no cgroup counts. 0, or -1 with errno. */
int tally_begin(struct tally *t, int64_t limit);

/* At the end of any jail: what the session has used of the CPU until now. */
void tally_end(struct tally *t, int64_t cpu_ms);

/* ---- memory ---- */

/* Add up what can be seen now, and compare it with the limit; `p` has memory as
 * in PROCS_MEMORY. */
enum tally_verdict tally_add(
	struct tally *t, const struct procs *p, enum tally_waits waits);

/* So much of the limit is used elsewhere. */
void tally_note_others(struct tally *t, int64_t bytes);

/* How much there is is not known any more, for example because processes were
 * killed. */
void tally_forget(struct tally *t);

/* The helper is asked; it has answered WORK_WEIGHT; it did not answer. */
void tally_asked(struct tally *t);
void tally_weigh(struct tally *t, const struct work_result *a);
void tally_fail(struct tally *t);

/* Bytes that the files of the jail take: its home, /tmp and /dev/shm. */
int64_t tally_files_bytes(const struct tally *t);

/* True if memory may have passed its limit since it was weighed. */
int tally_is_doubtful(const struct tally *t);

/* Memory as it was weighed, and what it has grown by since. */
int64_t tally_bytes(const struct tally *t);

/* ---- CPU time ---- */

/* A sum over the processes that live. */
void tally_add_cpu(struct tally *t, int64_t sum_ms);

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
	int64_t cpu_ms; /* of the session so far */
	int processes;	/* beside init, zombies not counted */
	int slots;	/* what the process limit counts: threads, zombies */
	int64_t fork_fails;
	int64_t oom_kills;
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
	enum warden_jail_ttys ttys;
	int quiet; /* nothing of a person's has run in it, or is left */
	int left;  /* processes that cells left, as last counted */

	/* between cells */
	int64_t look_ms, quiet_ms, stopped_cpu_ms;
	struct warden_jail_usage baseline;
	uint32_t baseline_at; /* link.traffic then; 0: there is none */

	struct tally tally;  /* where no cgroup counts */
	int64_t memory_ms;   /* when to look at it next, beside a cell */
	int over;	     /* what that said */
	int stale;	     /* what the helper was asked to weigh is dead */
	int64_t weighing_ms; /* since when it is stopped for that; 0: not */
	int64_t paused_ms;   /* how long it has been stopped for that in all */
	int64_t later_ms;    /* when the helper was asked what is not urgent */

	/* of all jails of the session */
	int64_t peak_bytes; /* where a cgroup counts, but does not keep it */
	int64_t cpu_ms;	    /* as last measured */
	int64_t oom_seen;   /* kills for memory that are accounted for */
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

/* Nothing in it can hold whoever looks at it, or can again. */
void warden_jail_note_quiet(struct warden_jail *j, int quiet);

void warden_jail_continue(struct warden_jail *j, const struct link_pids *kept);

/* While a cell or a program runs: what to do about its memory. A jail in doubt
 * is stopped until it has been weighed, and then continued. True if it is over
 * its limit, or cannot be weighed though it is stopped. */
int warden_jail_judge(struct warden_jail *j, enum tally_verdict memory);

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

/* Both, with a wait of at most timeout_ms: what no cgroup counts, WORK_WEIGHT
 * only if it is in `what`. -1: the jail holds the helper. */
int warden_jail_look(struct warden_jail *j, unsigned what, int timeout_ms);

/* How many of its processes, and init, the host keeps waiting: for a CPU, or
 * inside the kernel. -1 where nobody can look. */
int warden_jail_waiting(struct warden_jail *j);

/* While no cell does: look at memory, where no cgroup counts it. 1 if it is
 * over its limit. *due_ms: when to look again. */
int warden_jail_is_over(struct warden_jail *j, int64_t *due_ms);

/* The usage that the next cell starts from. It is measured when the jail is
 * stopped, and again only if something has moved since, so that no cell waits
 * for it. *fresh: it was measured now. Of a jail that is not stopped, because a
 * cell follows at once, only what a cell adds to is known: times, and failures.
 */
const struct warden_jail_usage *warden_jail_baseline(
	struct warden_jail *j, int *fresh);

/* Take so many kills for memory as accounted for. 1 if there are new ones. */
int warden_jail_note_oom(struct warden_jail *j, int64_t kills);

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

/* The usage that the next cell starts from. */
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
	int slots_peak;		       /* of what the process limit counts */
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

/* Milliseconds that it ran, pauses left out. */
int64_t watch_wall_ms(const struct watch *wa);

#endif
