/* SPDX-License-Identifier: MIT */
/*
 * spares.h - the jails that the service has made ahead
 */
#ifndef REPL_MAKER_SPARES_H
#define REPL_MAKER_SPARES_H

#include "jail/spare.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct spares_shared;

/* Kinds of jails: sessions and `-e`, with Python up; programs, for which it is
 * held before it begins. */
#define SPARES_KINDS 3
/* The most of a kind. */
#define SPARES_MOST 16

/* Who makes one: in a child, which fills in the key and becomes its warden.
 * Returns when that cannot be. */
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

/* What to poll, and for how long at most: -1 for ever. */
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
int spares_claim(struct spares *s, const struct jail_spec *spec,
	struct spare *out, uid_t *id, struct err *e);

#endif
