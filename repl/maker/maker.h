/* SPDX-License-Identifier: MIT */
/*
 * maker.h - root's maker of sessions, and its clients
 *
 *	order.c		what a client asks the maker for
 *	fetch.c		gets a session from the maker, or forks its warden
 *	courier.c	asks the maker for a front end that is confined
 *	hosts.c		other hosts, and people's sessions there
 *	service.c	cellblock --maker: sessions for permitted users
 *	client.c	one request of it, and one jail that is made ahead
 *	spares.c	the jails that the service makes ahead
 *	scribe.c	keeps a transcript for a front end
 *	left.c		hands in what an exam's session leaves in its home
 *	proctor.c	ends sessions from before an exam
 *	policy.c	the system's configuration for a person
 *	account.c	the file of sessions: their persons, times and use
 *	summary.c	cellblock --report: what that file says
 */
#ifndef REPL_MAKER_MAKER_H
#define REPL_MAKER_MAKER_H

#include "jail/prewarm.h"
#include "jail/spec.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct config;
struct elsewhere;
struct err;
struct jail;
struct person;
struct setup;
struct spares_shared;

/* ---- order.c ---- */

/*
 * One message of one size, without paths or texts of a configuration. Numbers
 * select items of the system's configuration for the person; its limits may
 * only become tighter.
 */

/* Add 1 when the message changes, or what a front end and its warden say to
 * each other (jail/wire/wire.h): after an upgrade a maker of before may make
 * wardens for front ends of the new program. */
#define ORDER_VERSION 10 /* wire 4d012904 */

struct order {
	uint32_t version;
	uint32_t mode; /* SPEC_SESSION, SPEC_PROGRAM; SPEC_CELL: a program that
			* is `-e` */
	struct limits limits;
	uint64_t expose;   /* bits: which of jail.expose */
	uint64_t require;  /* bits: jail.require, as enforce.h numbers limits */
	uint32_t python;   /* index in python.executable */
	uint32_t plain;	   /* programs draw no colours */
	uint32_t tty_bits; /* (spec.h) */
	uint16_t rows, cols;
	char term[64];
	/* The files that the client sees: its mount namespace (0: any), and its
	 * root directory. */
	uint64_t mounts, root_dev, root_ino;
	/* For the records alone: the session's number (0: none), and the
	 * address or terminal of the person, as the client says. */
	uint32_t number;
	char from[64];
};

/* Write `spec`, which was made from `mine`, as an order. 0, or -1 with e: the
 * first item that the system's configuration lacks, or the first looser limit.
 */
int order_fill(struct order *o, const struct jail_spec *spec,
	const struct config *mine, const struct config *system, struct err *e);

/* Order all that the system's configuration allows, for a spare. */
void order_fill_all(
	struct order *o, enum spec_mode mode, const struct config *system);

/* Check a message of `n` bytes against the system's configuration. 0, or -1
 * with e. */
int order_check(const struct order *o, size_t n, const struct config *system,
	struct err *e);

/* Ask only for a jail that shows the files which this process sees. 0, or -1:
 * we cannot find out which they are. */
int order_want_files(struct order *o);

/* Check that this process sees the files of the order. 0, or -1 with e. */
int order_check_files(const struct order *o, struct err *e);

/* The spec of a checked order. It borrows from `system` and `s`. */
void order_spec(const struct order *o, const struct config *system,
	struct setup *s, struct jail_spec *spec);

/* ---- fetch.c ---- */

/* One request to the maker, and its caller. */
struct fetch {
	const struct config *cfg; /* the spec was made from it */
	bool eval;		  /* the program is -e */
	bool checks;		  /* the caller is --check */
	uint32_t number;	  /* of the session; 0: none */
	char from[64];		  /* the person's address or terminal */
	/* Load the system's configuration alone: 0, or -1 with e. NULL: `cfg`
	 * is that. */
	int (*load_system)(void *arg, struct config *system, struct err *e);
	void *arg;
	/* Tell the person why the maker did not make the session. */
	void (*complain)(const struct err *e);
	/* Written by fetch.c: the order that waits for its answer, on which
	 * connection (-1: none), and the deadline. */
	struct order order;
	int asked;
	int64_t until_ms;
};

/* fetch_begin() asks the maker for the session of `spec`, or forks its warden
 * as jail_open() does; session.maker says which. The caller then goes on, and
 * fetch_await() takes the answer, which brings the session. If the maker fails,
 * both may still fork a warden. 0, or -1 with e. */
int fetch_begin(struct jail **out, const struct jail_spec *spec,
	struct fetch *f, struct err *e);
int fetch_await(struct jail **out, const struct jail_spec *spec,
	struct fetch *f, struct err *e);

/* Have root's service keep the transcript: *fd is a socket for it, or -1 where
 * this process writes it itself. 0, or -1 with e: there can be none. */
int fetch_transcript(const struct config *cfg, int *fd, struct err *e);

/* Send the maker a message of `n` bytes, and wait for the socket that the
 * answer brings; or -1 with e. */
int fetch_socket(const void *message, size_t n, struct err *e);

/* Check that a front end which never asks the maker may make jails: 0, or -1
 * with e if session.maker = require. `front` is the option that starts this
 * front end. */
int fetch_check_own(const struct config *cfg, const char *front, struct err *e);

/* ---- courier.c ---- */

/* Fork the courier before the front end confines itself: the socket to it, or
 * -1. */
int courier_start(void);

/* ---- hosts.c ---- */

/* Add 1 when struct elsewhere (repl/attach) changes. No other message to the
 * maker is of this size. */
#define HOSTS_VERSION 0x686f7301

struct hosts_ask {
	uint32_t version;
};

/* In the service: fork the herald, which writes down that this host is there,
 * and ends with the service; have it write down, where there is one, that a
 * person has a session. No caller waits for it. */
void hosts_start(void);
void hosts_note(uid_t id, const char *person);

/* In children of the service: true if a first message asks for sessions on
 * other hosts, and the answer to it; check that this host does not drain: 0, or
 * -1 with e. */
bool hosts_is_asked(const struct hosts_ask *ask, size_t n);
void hosts_answer(
	int conn, const struct config *cfg, uid_t uid, const char *person);
int hosts_check(const struct config *cfg, struct err *e);

/* In a front end: ask for the person's sessions on other hosts, as root for
 * everybody's (*v, which the caller frees, and *n). 0, or -1 with e. */
int hosts_find(struct elsewhere **v, size_t *n, struct err *e);

/* The locks of host ids, which root alone can open. */
#define HOSTS_LOCKS SERVICE_DIR "/uids"

/* Whether a session of this host has this id: until its janitor has ended.
 * Without a file there were no sessions since the host began. */
bool hosts_is_held(int locks, uid_t id);

/* ---- service.c ---- */

/* The maker listens here by default; clients ask only here. */
#define SERVICE_DIR "/run/cellblock"
#define SERVICE_PATH SERVICE_DIR "/maker"

/* Listen at a path (NULL: at the socket that a service manager passed, or else
 * at SERVICE_PATH) and make sessions until a signal ends the service. With
 * `tell`, name their persons on stderr. Root only. 0, or -1 with e. */
int service_run(const char *path, bool quiet, bool tell, struct err *e);

/* ---- policy.c ---- */

/* Load the system's configuration for a person. 0, or -1 with e. */
int policy_load(const struct person *person, struct config *cfg, struct err *e);

/* Note that the exam has ended, if the clock says so. True if it has ended
 * before, though the clock says otherwise now. Root only. */
bool policy_exam_ended(const struct config *cfg);

/* Refuse what is before or after the exam, if there is one: as exam_check(),
 * and an exam that has ended does not go on when the clock is set back. 0, or
 * -1 with e. */
int policy_keep_exam(const struct config *cfg, struct err *e);

/* ---- scribe.c ---- */

/* To the service, which answers with a socket: what is written there is the
 * transcript. Add 1 when the message changes (tests/layers). */
#define SCRIBE_VERSION 0x74726e01 /* wire 3890b5ff */

struct scribe_ask {
	uint32_t version;
};

/* The person and the front end of a transcript. */
struct scribe_of {
	const char *name;
	uid_t uid;
	pid_t front;
};

struct scribe {
	int file, lock;
	char mark[20];
};

/* True if a first message of `n` bytes asks for a transcript. */
bool scribe_is_asked(const struct scribe_ask *ask, size_t n);

/* Begin the file; end what was not run. 0, or -1 with e. */
int scribe_open(struct scribe *s, const struct config *cfg,
	const struct scribe_of *of, struct err *e);

/* Write down what comes over `sock`, until its other end is closed. */
_Noreturn void scribe_run(struct scribe *s, int sock);

/* ---- left.c ---- */

/* Hand in what `home` (borrowed) has, when nothing of the session runs any
 * more. A failure goes to syslog. */
void left_hand_in(const struct config *cfg, const char *person, int home);

/* ---- proctor.c ---- */

/* Note in SERVICE_DIR that a session of the maker's has begun, which ends at
 * `until_s` (0: it is in no exam). */
void proctor_note(uid_t id, uid_t person, pid_t front, int64_t until_s);

/* Its janitor says that it is over. */
void proctor_forget(uid_t id);

/* True if the configuration may have an exam, and there is a session. */
bool proctor_is_wanted(void);

/* Tell the sessions of those whose exam begins soon, and end those that began
 * before it, in a child of the service. Takes seconds. */
void proctor_look(void);

/* ---- account.c ---- */

/* Of a session or program of the maker. */
struct account_begin {
	uid_t id;	  /* its host id */
	const char *name; /* of the account */
	uid_t uid;
	pid_t front;
	enum spec_mode mode;
	uint32_t number;  /* as the front end says; 0: none */
	const char *from; /* the same; hostile */
};

/* Write that it begins, and that it has ended, if log.accounting wants that. A
 * failure goes to syslog. */
void account_begin(const struct config *cfg, const struct account_begin *b);
void account_end(const struct config *cfg, const struct spec_end *end);

/* ---- summary.c ---- */

struct summary_what {
	const char *path;  /* of the file */
	const char *since; /* as a person writes a time, or NULL */
	bool json, csv;
	FILE *to;
};

/* Print what the file says, and the one that was moved to PATH.1: a line for
 * each session, in the order of their ends; then those without one. 0, or -1
 * with e. */
int summary_print(const struct summary_what *what, struct err *e);

/* ---- spares.c ---- */

/* Kinds of spares: sessions and `-e`, with Python up; programs, whose Python is
 * held before it begins. */
#define SPARES_KINDS (SPEC_CELL + 1)
/* Most spares of a kind. */
#define SPARES_MOST 16

/* Make a spare in a child: fill in the key, and become the spare's warden.
 * Returns only on failure. */
typedef void spares_make(void *arg, enum spec_mode mode,
	enum spec_prewarm prewarm, const struct spare *its,
	struct spare_key *key);

/* Only spares.c writes it; children have it by fork. */
struct spares {
	struct stock stock;
	struct stock_kind kinds[SPARES_KINDS]; /* of it, by mode */
	int shelf[SPARES_KINDS][2];	       /* by mode */
	struct spares_shared *shared;	       /* with the children */
	struct spare making; /* the one we make; front -1: none */
	int64_t made_ms;     /* when a client last got a session */
	bool soon;	     /* that was soon after another client */
	spares_make *make;
	void *arg;
};

int spares_open(struct spares *s, int most, spares_make *make, void *arg,
	struct err *e);
void spares_close(struct spares *s);

/* ---- the service ---- */

/* The descriptor to poll, and the timeout: -1 for ever. */
struct pollfd spares_poll(const struct spares *s);
int spares_timeout_ms(struct spares *s);

/* How many spares are ready. */
int spares_count(const struct spares *s);

/* Shelve the spare that is ready; begin the next (stock.c). */
void spares_turn(struct spares *s);

/* Begin no spare for a moment: a client asks, or (`made`) has its session now.
 * spares_reap(): a child has ended. */
void spares_rest(struct spares *s, bool made);
void spares_reap(struct spares *s, pid_t pid);

/* ---- its children ---- */

/* Close the service's ends of a spare in the making; unmap the shared rows. */
void spares_leave(struct spares *s);
void spares_forget(struct spares *s);

/* Make a spare the session of `spec`: 1, with its sockets and host id; 0: no
 * spare fits; -1 with e: refuse the session. */
int spares_lease(struct spares *s, const struct jail_spec *spec,
	struct spare *out, uid_t *id, struct err *e);

#endif
