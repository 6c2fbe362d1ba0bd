/* SPDX-License-Identifier: MIT */
/*
 * link.h - the warden's links to the front end and to init, and its waits
 */
#ifndef JAIL_WARDEN_LINK_H
#define JAIL_WARDEN_LINK_H

#include "jail/base/io.h"
#include "jail/jail.h"
#include "jail/wire/wire.h"

#include <poll.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* The most that the warden does between two waits, or an alarm ends it. The
 * longest work is to remove millions of files from a home. */
#define LINK_WORK_MS 20000

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

/* What the next request asks for, if there is one already; or -1. */
int link_request_peek(struct link *l);

/* How long a poll for the front end may wait: not when a request waits. */
int link_patience_ms(const struct link *l, int ms);

/* A request is served from here to its reply, to link_served(), or to the next
 * one. */
void link_serve(struct link *l, const struct wire_front *m);
void link_served(struct link *l);

/* Whether an interrupt, which names the request that it is for, is for the one
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

#endif
