/* SPDX-License-Identifier: MIT */
/*
 * maker.h - root's maker, and who asks it
 *
 *	order.c		what somebody asks the maker for
 *	fetch.c		a session from the maker of this host, or one of our own
 *	service.c	cellblock --maker: sessions for whoever may have them
 *	spares.c	the jails that the service has made ahead
 */
#ifndef REPL_MAKER_MAKER_H
#define REPL_MAKER_MAKER_H

#include "jail/spare.h"
#include "jail/spec.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct config;
struct err;
struct jail;
struct setup;
struct spares_shared;

/* ---- order.c ---- */

/*
 * One message of one size. No text of a configuration and no path is in it: of
 * what the system's configuration has for the person, numbers say which, and
 * limits are no looser.
 */

/* Grows when the message changes. */
#define ORDER_VERSION 3

struct order {
	uint32_t version;
	uint32_t mode; /* SPEC_SESSION, SPEC_PROGRAM; SPEC_EVAL: that, which is
			* `-e` */
	struct limits limits;
	uint64_t expose;   /* bits: which of jail.expose */
	uint64_t require;  /* bits: jail.require, as enforce.h numbers limits */
	uint32_t python;   /* which of python.executable */
	uint32_t plain;	   /* programs draw no colours */
	uint32_t tty_bits; /* (spec.h) */
	uint16_t rows, cols;
	char term[64];
	/* The files that whoever asks sees: their mount namespace (0: any), and
	 * their root directory. */
	uint64_t mounts, root_dev, root_ino;
};

/* Fill in an order for `spec`, which was made from `mine`. 0, or -1 with e: the
 * first setting that the system's configuration does not have, or forbids as
 * looser. */
int order_fill(struct order *o, const struct jail_spec *spec,
	const struct config *mine, const struct config *system, struct err *e);

/* All that the system's configuration allows, for nobody in particular. */
void order_fill_all(
	struct order *o, enum spec_mode mode, const struct config *system);

/* Hold a message of `n` bytes against the system's configuration. 0, or -1 with
 * e. */
int order_check(const struct order *o, size_t n, const struct config *system,
	struct err *e);

/* Ask only for a jail that shows the files which this process sees. 0, or -1:
 * it cannot be said which they are. */
int order_want_files(struct order *o);

/* Check that this process sees the files that are asked for. 0, or -1 with e.
 */
int order_check_files(const struct order *o, struct err *e);

/* The spec of an order that is in order. Borrows all three. */
void order_spec(const struct order *o, const struct config *system,
	struct setup *s, struct jail_spec *spec);

/* ---- fetch.c ---- */

/* Whom it is for. */
struct fetch {
	const struct config *cfg; /* as the spec was made from it */
	bool eval;		  /* the program is -e */
	bool checks; /* nothing is done but to say what this host can */
	/* Load the system's configuration alone: 0, or -1 with e. NULL: `cfg`
	 * is that. */
	int (*load_system)(void *arg, struct config *system, struct err *e);
	void *arg;
	/* Say why a session is one of our own. */
	void (*complain)(const struct err *e);
	/* written by fetch.c: what the maker has not answered yet, on which
	 * connection (-1: none), and until when it is waited for */
	struct order order;
	int asked;
	int64_t until_ms;
};

/* As session.maker says: ask the maker for a session as `spec` has it, or fork
 * its warden ourselves, as jail_open(). The maker works while the caller does
 * other things; its answer brings the session. Should the maker fail, a warden
 * may still be forked. 0, or -1 with e. */
int fetch_begin(struct jail **out, const struct jail_spec *spec,
	struct fetch *f, struct err *e);
int fetch_await(struct jail **out, const struct jail_spec *spec,
	struct fetch *f, struct err *e);

/* Check that jails may be made without the maker of this host by a front end
 * that does not ask it: 0; -1 with e where session.maker says that nothing
 * starts without it. `front` is the option that the front end is called by. */
int fetch_check_own(const struct config *cfg, const char *front, struct err *e);

/* ---- service.c ---- */

/* Where it listens, unless it is told otherwise, and where people ask. */
#define SERVICE_DIR "/run/cellblock"
#define SERVICE_PATH SERVICE_DIR "/maker"

/* Listen at a path (NULL: at the socket that a service manager passed, or else
 * at SERVICE_PATH) and make sessions until a signal says that it is enough.
 * Says with `tell` on stderr for whom. Root only. 0, or -1 with e. */
int service_run(const char *path, bool quiet, bool tell, struct err *e);

/* ---- spares.c ---- */

/* Kinds of jails: sessions and `-e`, with Python up; programs, for which it is
 * held before it begins. */
#define SPARES_KINDS 3
/* The most of a kind. */
#define SPARES_MOST 16

/* Make one: called in a child, which fills in the key and becomes the warden of
 * the spare. Returns on failure. */
typedef void spares_make(void *arg, enum spec_mode mode, bool hurried,
	const struct spare *its, struct spare_key *key);

/* Only spares.c writes it; children have it by fork. */
struct spares {
	int most;		      /* of each kind */
	int shelf[SPEC_EVAL + 1][2];  /* by mode */
	struct spares_shared *shared; /* with the children */
	struct spare making;	      /* one by one; front -1: none is made */
	int64_t rest_ms;	      /* none is begun before, */
	int64_t failed_ms[SPEC_EVAL + 1]; /* nor of a kind before this */
	int64_t made_ms;		  /* when somebody got a session last */
	bool hurried;			  /* it was soon after another */
	spares_make *make;
	void *arg;
};

int spares_open(struct spares *s, int most, spares_make *make, void *arg,
	struct err *e);
void spares_close(struct spares *s);

/* ---- the service ---- */

/* The descriptor to poll, and the longest wait in ms; -1: for ever. */
struct pollfd spares_poll(const struct spares *s);
int spares_timeout_ms(const struct spares *s);

/* How many are ready. */
int spares_count(const struct spares *s);

/* Take what has come; begin what is missing. */
void spares_turn(struct spares *s);

/* Somebody asks: they go first. Or somebody has a session (`made`), so that
 * spares can be made, too. A child has ended. */
void spares_rest(struct spares *s, bool made);
void spares_reap(struct spares *s, pid_t pid);

/* ---- its children ---- */

/* Close what is the service's own; and give up what is shared. */
void spares_leave(struct spares *s);
void spares_forget(struct spares *s);

/* Make one the session of `spec`: 1, and its sockets and host id; 0: there is
 * none for it; -1 with e: there must be no session. */
int spares_lease(struct spares *s, const struct jail_spec *spec,
	struct spare *out, uid_t *id, struct err *e);

#endif
