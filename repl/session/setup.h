/* SPDX-License-Identifier: MIT */
/*
 * setup.h - from the configuration to a jail that stands
 */
#ifndef REPL_SESSION_SETUP_H
#define REPL_SESSION_SETUP_H

#include "jail/base/err.h"
#include "jail/spec.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct config;
struct strlist;
struct jail;
struct options;
struct terminal;

/* Longest list a configuration can have. */
#define SETUP_LIST 64

/* Caller's storage for what a spec borrows. */
struct setup {
	char python[PATH_MAX];
	char term[64];
	const char *expose[SETUP_LIST + 1];
	const char *env[SETUP_LIST + 2];
	const char *require[SETUP_LIST + 1];
};

/* A list that ends with NULL, in `to`; or NULL for an empty one. */
const char *const *setup_list(
	const char *to[static SETUP_LIST + 1], const struct strlist *l);

/* Variables for Python; before them, so that they may change it, NO_COLOR if it
 * is `plain`. */
const char *const *setup_env(const char *to[static SETUP_LIST + 2],
	const struct strlist *l, bool plain);

/* `term`, or "dumb" for what is no terminal's name. */
void setup_term(char *buf, size_t size, const char *term);

/* Fill a spec. Borrows `cfg` and `s`. 0, or -1 with e (ERR_CONFIG). */
int setup_spec(struct jail_spec *spec, struct setup *s,
	const struct config *cfg, const struct options *opt,
	const struct terminal *t, enum spec_mode mode, struct err *e);

/* Wait until the jail stands (JAIL_BUILT), at most timeout_ms (-1: as long as
 * it takes). `limited` gets the words about what this host cannot enforce, or
 * is NULL. 0, also when the time is up, or -1 with e (ERR_JAIL). */
int setup_wait_built(struct jail *j, int timeout_ms, char *limited, size_t size,
	struct err *e);

/* e is why the jail could not be built (`why` NULL: nobody knows). -1. */
int setup_failed(struct err *e, const struct err *why);

/* Where a person's sessions are counted. */
struct setup_slots {
	int fd;		/* the file; it holds the place. -1: there is none */
	int most;	/* places */
	bool must;	/* who cannot be counted does not start */
	struct err why; /* there is no file */
};

/* Open the file `sessions` of a directory. A descriptor, or -1 with e. */
int setup_open_slots(const char *dir, struct err *e);

/* Take a place, until the process ends. 0, also where nothing can be counted
 * and need not be; -1 with e when the session must not start: there are too
 * many (ERR_BUSY), or they cannot be counted (ERR_CONFIG). */
int setup_claim_slot(const struct setup_slots *s, struct err *e);

/* Give the place back before the process ends: somebody may see that the
 * session is over before they see the end of the process. */
void setup_leave_slot(const struct setup_slots *s);

#endif
