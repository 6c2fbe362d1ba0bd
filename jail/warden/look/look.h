/* SPDX-License-Identifier: MIT */
/*
 * look.h - the links and the waits of the warden, and what it sees of a jail
 *
 * No guest can keep the warden waiting here.
 *
 *	link.c		the warden's links to the front end and to init, and its
 *			waits
 *	helper.c	a child of the warden that may be kept waiting in its
 *			place
 *	work.c		what may have to wait for a guest
 *	tally.c		what a jail uses, added up where no cgroup does it
 *	copycost.c	what a page costs that a checkpoint makes the guest copy
 */
#ifndef JAIL_WARDEN_LOOK_LOOK_H
#define JAIL_WARDEN_LOOK_LOOK_H

#include "jail/init/init.h"
#include "jail/jail.h"
#include "jail/walls/walls.h"
#include "jail/wire/wire.h"

#include <poll.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

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

/* The most that the warden does between two waits, or an alarm ends it. The
 * longest work is to remove millions of files from a home. */
#define LINK_WORK_MS 20000

/* poll(2), and the only way to wait. -1 if it fails; a signal is no failure. */
int link_poll(struct pollfd *p, nfds_t n, int timeout_ms);

/* Wait for a child that was killed. We wait only for the kernel, which may need
 * long to free the child's mappings: no alarm here either. */
void link_reap(pid_t pid);

/* The same, of a child that may not even die when it is killed: 0, or -1. */
int link_reap_within(pid_t pid, int ms);

/* Milliseconds until then, 0 if it is over, at most what poll(2) takes. */
int link_ms_until(int64_t deadline_ms);

/* Wait for `fd` (-1: for none) or init: 1 if `fd` is ready, 0 if not, or at
 * the deadline; SESSION_OVER. Meanwhile we listen to the front end: its
 * requests wait, and a request that the person interrupts is given up. May
 * return 0 before the deadline. */
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

/* INIT_KILL_FORK: kill the copy that was begun at `since_ms` or after it. */
void link_ask_unhang(struct link *l, int64_t since_ms);

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
	ino_t ctl;		   /* as in struct procs_source */
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
	/* WORK_PRIVATE: minor faults; of all pages (struct procs_pages) those
	 * that are private, or -1 */
	int64_t faults, size_bytes, private_bytes;
	size_t nkeys;
	char keys[WORK_KEYS_MAX];
};

/* Do it here and now. Only the helper may, or anyone while the jail is
 * stopped: a guest that runs can hold the locks that this waits for. */
void work_do(const struct work_place *p, const struct work *q,
	struct work_result *r);

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
	TALLY_DOUBTFUL, /* it could not be weighed in time, or exactly, while it
			 * ran */
	TALLY_OVER,
};

/* How the jail waits for the helper. */
enum tally_waits {
	TALLY_FREE,    /* it can be asked now */
	TALLY_ASKED,   /* or cannot be asked yet; the jail goes on */
	TALLY_STOPPED, /* the jail is stopped until it has answered */
	TALLY_SHOWN, /* nobody acts on the verdict: there is none, and what the
		      * helper has said is left to who does */
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
	int still;   /* nothing moved while it was weighed */

	/* CPU time: of jails that ended; sums of the one that lives: the last
	 * two, and the middle one of the last three; and both */
	int64_t cpu_gone_ms, sums_ms[3], cpu_ms;
};

void tally_init(struct tally *t, const struct tally_place *place);

/* Before a jail whose memory no cgroup counts. 0, or -1 with errno. */
int tally_begin(struct tally *t, int64_t limit);

/* From now on this is the limit. */
void tally_lower(struct tally *t, int64_t limit);

/* At the end of any jail: what the session has used of the CPU until now. */
void tally_end(struct tally *t, int64_t cpu_ms);

/* ---- memory ---- */

/* Add up what can be seen now, and compare it with the limit; `p` has memory as
 * in PROCS_MEMORY. */
enum tally_verdict tally_add(
	struct tally *t, const struct procs *p, enum tally_waits waits);

/* True if the helper has weighed, and nobody has had the verdict yet. */
int tally_is_weighed(const struct tally *t);

/* So much of the limit is used elsewhere. */
void tally_note_others(struct tally *t, int64_t bytes);

/* How much there is is not known any more, for example because processes were
 * killed. */
void tally_forget(struct tally *t);

/* The helper is asked; it has answered WORK_WEIGHT, and `still`: the jail was
 * stopped all the while; it did not answer. */
void tally_asked(struct tally *t);
void tally_weigh(struct tally *t, const struct work_result *a, int still);
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

/* ---- copycost.c ---- */

/* Nanoseconds of CPU time for one page, on this host: measured at the first
 * call, which takes about a millisecond. Where nothing can be measured, what a
 * slow virtual machine takes. */
int64_t copycost_page_ns(void);

#endif
