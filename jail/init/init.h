/* SPDX-License-Identifier: MIT */
/*
 * init.h - the jail's first process, and what is known of its processes
 *
 *	helper.c	work that may be kept waiting, done by a child that can
 *			be killed
 *	locker.c	locks of whole files (flock()), taken for guests with
 *			threads
 *	notify.c	what guests must ask for: locks, anonymous shared memory
 *	held.c		Python, started before it is known what it runs
 *	init.c		pid 1 of the jail
 *	trial.c		confine a copy of the guest that is to answer a question
 *	traced.c	another process makes system calls for us
 *	procs.c		what the jail's processes do and use, read from /proc
 *	spawn.c		start Python in the jail
 *	sweep.c		stop, continue and kill everything in the jail, from pid
 *			1
 */
#ifndef JAIL_INIT_INIT_H
#define JAIL_INIT_INIT_H

#include "jail/base/err.h"
#include "jail/base/procstat.h"
#include "jail/base/procstatus.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/types.h>

struct apply_ctx;
struct cgroup;
struct host;
struct jail_spec;
struct plan;

/* ---- helper.c ---- */

/* Run `work` in a child: its result, a number that is not negative; -1 when it
 * did not return in time. Its memory ends with the child. */
int64_t init_helper_run(int64_t (*work)(void *), void *arg, int timeout_ms);

/* ---- locker.c ---- */

struct locker {
	int heard_fd; /* where guests ask, and are answered; borrowed */
	int proc_fd;  /* the jail's /proc; borrowed */
	int wants_fd; /* to the thread that takes locks; 0: none yet */
};

/* The call that a guest waits for: flock(number, how) of the thread `tid`. */
struct locker_want {
	uint64_t id; /* the kernel's, of the call */
	pid_t tid;
	int number, how;
};

/* Have a lock taken, and the guest answered. 0, or -1 with errno when the
 * caller must answer. */
int locker_take(struct locker *l, const struct locker_want *want);

/* True if `tid` is the thread that takes locks. It is under the filter as well,
 * so that its own flock() asks. */
int locker_asks(pid_t tid);

/* True if the descriptor `number` of thread `tid` leads to a file or directory
 * that no other jail can have. 1, 0 (also: there is none), without waiting. */
int locker_is_file(int proc_fd, pid_t tid, int number);

/* ---- notify.c ---- */

/* Threads that have locked parts of files, at most. */
#define NOTIFY_SLOTS 256

/* Anonymous shared memory that guests were granted, in a page that init and the
 * warden share. Only init writes it. */
struct notify_memory {
	_Atomic int64_t bytes;	 /* all of it, since the jail began */
	_Atomic int64_t largest; /* the largest mapping; written first */
};

/* Where a thread that was not alone in its process has last locked a part of a
 * file. */
struct notify_slot {
	pid_t leader, tid;
	int number; /* of the descriptor */
};

struct notify {
	int fd;		/* where guests ask, from apply_ctx; -1: no guest may */
	int proc_fd;	/* the jail's /proc, or -1; borrowed */
	int locks;	/* no more than these exist */
	int64_t due_ms; /* they are not counted again before this time */
	struct locker locker;
	struct notify_slot slots[NOTIFY_SLOTS];
	int nslots;
	int64_t look_ms; /* nobody looks at them before this time */
	struct notify_memory *memory; /* borrowed; NULL: a cgroup counts it */
	int64_t memory_max;	      /* the largest mapping that is granted */
};

/* Answer a guest that waits for its flock(), fcntl(F_SETLK) or mmap(), if one
 * does. */
void notify_serve(struct notify *a);

/* ---- traced.c ---- */

struct regs; /* regs.h */

/* A process that init traces and that is stopped. */
struct traced {
	pid_t pid;
	int mem;	 /* its memory; owned */
	uintptr_t entry; /* where calls are made */
	long text;	 /* what belongs there */
	int patience_ms; /* with it to stop; 0: init trusts it, and waits */
};

/* Each returns 0, or -1. traced_open() opens its memory; traced_keep_text()
 * reads `text`; traced_put_text() puts those bits of a word at `entry`;
 * traced_wait() waits for its next stop; traced_run() lets it run up to the
 * next of ours. */
int traced_open(struct traced *t, int proc_fd);
int traced_keep_text(struct traced *t);
int traced_put_text(const struct traced *t, long text, long bits);
int traced_wait(const struct traced *t, int *status);
int traced_run(const struct traced *t);
int traced_read(const struct traced *t, uintptr_t at, void *buf, size_t n);
int traced_write(
	const struct traced *t, uintptr_t at, const void *buf, size_t n);

/* Have it make a system call, with REGS_CALL_TEXT at `entry` and its registers
 * as in `at` otherwise. The result, negative errno, or -ESRCH. */
long traced_call(const struct traced *t, const struct regs *at, long nr,
	unsigned long a, unsigned long b, unsigned long c, unsigned long d);

/* Visit its mappings but the kernel's, `may` such as "rw-p", until a visit
 * returns nonzero: that, or -1 where they cannot be read. */
int traced_visit_maps(const struct traced *t, int proc_fd,
	int (*visit)(unsigned long from, unsigned long to, const char *may,
		void *arg),
	void *arg);

/* ---- trial.c ---- */

/* Confine a copy of the guest, a child of ours that is asleep: with
 * SECCOMP_TRIAL, and with at most `room` bytes of memory more than it has. 0;
 * or -1 with e: it is dead, or dies. */
int trial_confine(pid_t pid, int proc_fd, int64_t room, struct err *e);

/* ---- held.c ---- */

/* Pairs in an auxiliary vector: more than any kernel has. */
#define HELD_AUXV_MAX 64

/* A process that is stopped where its program begins. All zero: none. */
struct held {
	struct traced t; /* stopped at its entry */
	int sock;	 /* its descriptors come through it; owned */
	uintptr_t top;	 /* its stack there */
	uintptr_t env;	 /* its list of variables */
	size_t nenv;
	uintptr_t auxv[2 * HELD_AUXV_MAX];
	size_t nauxv;		 /* words */
	struct prctl_mm_map map; /* as the kernel has it */
};

/* In the child that is about to exec, with `sock` (borrowed) as the only
 * descriptor that it keeps. Its arguments must be one, its name. 0, or -1 with
 * e. */
int held_begin(int sock, struct err *e);

/*
 * Hold a child that has begun so and exec'd, where the dynamic linker has done
 * its work and the program's first instruction comes next. `proc_fd` is the top
 * of /proc, `sock` the other end (taken). 0, or -1 with e: the child is dead.
 */
int held_take(
	struct held *h, pid_t child, int proc_fd, int sock, struct err *e);

/*
 * Let it go, as if it had been exec'd with these: arguments, of which the first
 * is as it was; as many variables as it had; descriptors 0, 1 and 2. Returns
 * its pid, or -1: it is dead.
 */
pid_t held_release(struct held *h, const char *const *argv,
	const char *const *env, const int stdio[3]);

/* End it, if there is one; or only what we keep of it: it is dead. */
void held_drop(struct held *h);
void held_forget(struct held *h);

/* ---- init.c ---- */

struct init {
	int sock;		      /* to the warden; taken */
	const struct plan *plan;      /* borrowed */
	const struct jail_spec *spec; /* borrowed */
	const struct cgroup *cgroup;  /* borrowed; init enters it */
	const struct host *host;      /* borrowed; for a plan after a lease */
	int home_fd;		      /* root of the home */
	/* what guests are granted; NULL where a cgroup counts memory */
	struct notify_memory *memory; /* shared with the warden; borrowed */
};

/*
 * Clone pid 1 into its own namespaces. It builds the jail, drops every right,
 * sends INIT_BUILT, and serves INIT_* messages on its socket until the socket
 * ends. Messages may be sent before INIT_BUILT. Returns its pid in the caller's
 * view, or -1 with e; never returns in the child.
 */
pid_t init_start(const struct init *in, struct err *e);

/* ---- procs.c ---- */

/*
 * For the warden: memory and CPU where no cgroup counts them, whether the
 * jail waits for the person, whether everything has stopped. Pids are those of
 * the jail's own namespace; only inside a struct procstat they are those of
 * the /proc that was read.
 */

/* Most processes that are read; session.processes is smaller. */
#define PROCS_MAX 40000

/* The /proc to read. */
struct procs_source {
	int proc_fd;  /* borrowed */
	int foreign;  /* the host's: pick processes by pid namespace */
	pid_t self;   /* init in the numbers of that /proc */
	dev_t ns_dev; /* the jail's pid namespace */
	ino_t ns_ino;
	ino_t ctl; /* the guest's socket for the warden, or 0: descriptors that
		    * wait in it are none of a guest's */
};

/* Read the jail's own /proc. */
void procs_source_jail(struct procs_source *s, int proc_fd);

/* Read the caller's /proc where the jail has none. Only init can tell its pid
 * namespace: nobody else may follow its links in /proc. */
void procs_source_host(struct procs_source *s, int proc_fd, pid_t init_pid,
	dev_t ns_dev, ino_t ns_ino);

struct procs {
	int n;	     /* processes without init and without zombies */
	int zombies; /* and those that are about to be */
	int threads;
	int running; /* processes with a thread that is not stopped or dead */
	/* Processes, and init, with a thread that the host keeps waiting: for a
	 * CPU, or inside the kernel */
	int ready;
	int64_t bytes;	   /* memory and page tables */
	int64_t own_bytes; /* of these, what no fork shares */
	/* By weight: what the kernel keeps for mappings and for what epolls
	 * watch; whether more of it may be where nobody sees it, in flight or
	 * in buffers of /proc. */
	int64_t kernel_bytes;
	int hidden;
	int64_t record_bytes; /* by weight: the most that a file of /proc prints
			       * at once; kernel_bytes has it for each thread */
	int64_t forks_bytes;  /* by weight: more, if each was forked by the one
			       * before it */
	int64_t shared;	 /* mappings of anonymous shared memory, by weight */
	int64_t cpu_ms;	 /* of all that live, and of children they reaped */
	int64_t init_ms; /* of init itself, which works for guests (notify.c) */
};

enum {
	PROCS_MEMORY = 1, /* fill in bytes: what a fork shares, for each */
	PROCS_RUNNING = 2,
	PROCS_READY = 4,
	PROCS_WEIGHT = 8, /* (waits) fill in bytes: what a fork shares, once;
			   * and kernel_bytes */
	PROCS_CPU = 16,	  /* (waits) fill in cpu_ms */
};

/* A guest can keep the caller of a function that is marked `waits` waiting,
 * until a signal kills the caller. */

/* Sum up every process of the jail but init. A process that comes or goes
 * meanwhile is no error. 0, or -1 when /proc cannot be read. */
int procs_sample(const struct procs_source *s, unsigned flags,
	struct procs *out, struct err *e);

/* What one process holds, in memory and swapped out: bytes in all, and of them
 * those that it shares with nobody. */
struct procs_pages {
	int64_t all, private;
};

/* (waits) Both, as they were at one time: never more is private than there is.
 * 0, or -1 if the process is gone or cannot be read. */
int procs_pages(const struct procs_source *s, pid_t pid, struct procs_pages *p);

/* The status of one process. -1 if it is gone. */
int procs_status(
	const struct procs_source *s, pid_t pid, struct procstatus *st);

/* (waits) The stat of one process. -1 if it is gone. */
int procs_stat(const struct procs_source *s, pid_t pid, struct procstat *st);

/* (waits) Whether the jail waits for the person: every thread of every process
 * but init and `skip` sleeps, and one of the tty's foreground group is inside
 * read(), or select(), poll() or epoll_wait(), with a timeout or without, on
 * that tty and maybe on more. 1 yes, 0 no, -1 this kernel does not say. A
 * sample, not a proof: take several at random times. `tty` is st_rdev of the
 * slave. The caller checks that its input is empty. */
int procs_waits_for_tty(
	const struct procs_source *s, dev_t tty, const pid_t *skip, int nskip);

/* True if `pid` is one of these. */
int procs_is_among(pid_t pid, const pid_t *v, int n);

/* True if reading failed, with errno, because the process is gone. */
int procs_is_gone(void);

/* ---- spawn.c ---- */

#define SPAWN_ENV_MAX 128

struct spawn {
	const struct jail_spec *spec; /* borrowed */
	const struct plan *plan;      /* borrowed */
	const struct cgroup *cgroup;  /* borrowed; guests enter its freezer */
	int null;		      /* /dev/null */
	int oom_fd;		/* borrowed; init's oom_score_adj, or -1 */
	int oom_own, oom_guest; /* of init, and of a guest */
	const char *env[SPAWN_ENV_MAX];
	struct held held;
	char threads[4][40]; /* NAME=VALUE of the thread pools' sizes */
	char term[64];
	char packages[4112]; /* PYTHONPATH=… */
};

/* Prepare what every start needs: the environment, the jail's /dev/null. */
int spawn_prepare(struct spawn *s, const struct jail_spec *spec,
	const struct plan *plan, const struct apply_ctx *built,
	const struct cgroup *cgroup, struct err *e);

/* The same again, with what a lease has changed. Borrows both. A held process,
 * and the Python `live` of a session or a cell, get the lower limits. */
int spawn_lease(struct spawn *s, const struct jail_spec *spec,
	const struct plan *plan, pid_t live, struct err *e);

/* Room for the variables that a lease changes in a Python that is up:
 * NAME=VALUE, each with its NUL, but what python.env has in its place. The
 * length. */
#define SPAWN_LEASE_MAX 256
size_t spawn_lease_env(const struct jail_spec *spec, char env[SPAWN_LEASE_MAX]);

/* Start Python for the next spawn_start(), which lets it go (held.c). `proc_fd`
 * is the top of the jail's /proc, `tty` the terminal that it leads. 0, or -1
 * with e: spawn_start() then starts it. */
int spawn_hold(struct spawn *s, int tty, int proc_fd, struct err *e);

/* The descriptors of a start. SPEC_SESSION: the library, control socket and
 * stack file. SPEC_PROGRAM: the arguments (wire.h); stdio, where tty_bits may
 * put the terminal in its place. SPEC_CELL: the control socket. */
enum {
	SPAWN_PARTS,
	SPAWN_LIBRARY,
	SPAWN_CTL,
	SPAWN_STACK,
	SPAWN_ARGS = SPAWN_LIBRARY,
	SPAWN_STDIO = SPAWN_CTL,
	SPAWN_FDS = SPAWN_STDIO + 3,
};

/* Fill fds[SPAWN_PARTS] and, for a session, fds[SPAWN_LIBRARY] (else -1): the
 * driver, in sealed memory files. The caller closes both. 0, or -1 with e and
 * neither open. */
int spawn_open_driver(int *fds, int session, struct err *e);

/*
 * Start Python as the foreground group of the tty, on SPAWN_FDS descriptors
 * (borrowed). Returns its pid once exec has succeeded, or -1 with e.
 */
pid_t spawn_start(
	struct spawn *s, int tty, int line, const int *fds, struct err *e);

/* ---- sweep.c ---- */

struct sweep {
	int proc_fd; /* the jail's /proc, or -1; borrowed */
	pid_t last;  /* without a /proc: the highest pid seen */
};

/* Stop every process but pid 1 and see that it is stopped. A process that runs
 * on for a quarter of a second, though it had the CPU to stop, is killed, where
 * that `kills`. *seen and *killed count processes. -1 when not all of them
 * could be read, or one that is not killed runs on. Without a /proc the result
 * is 0 and the warden looks. */
int sweep_stop(struct sweep *s, int kills, int32_t *seen, int32_t *killed);

/* Continue every process but pid 1. */
void sweep_continue(void);

/* Stop, then kill and reap every process but pid 1 and `keep`; gives up after
 * 20 seconds. 1 if all are gone, 0 if some remain or could not be read.
 * *killed counts the processes that were there to kill. */
int sweep_kill(
	struct sweep *s, const int32_t *keep, int nkeep, int32_t *killed);

/* The newest child of `parent` that was started at `since_ms` or later,
 * without `keep`. 0 if there is none, or no /proc. */
pid_t sweep_newest_child(struct sweep *s, pid_t parent, int64_t since_ms,
	const pid_t *keep, int nkeep);

#endif
