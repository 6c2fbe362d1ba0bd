/* SPDX-License-Identifier: MIT */
/*
 * confine.h - what the front end may still reach once a session runs
 */
#ifndef REPL_CONFINE_H
#define REPL_CONFINE_H

struct config;
struct err;
struct options;

/* What decides; NULL is nothing. */
struct confine {
	const struct config *cfg;
	const struct options *opt;
	const char *home;      /* of the person */
	const char *state_dir; /* where the history is */
};

/* Give up, for good, what the front end does not need: capabilities, starting
 * programs, sockets, and, by Landlock where the kernel has it, writing outside
 * what the configuration lets the person write. Call after jail_open(), and
 * after everything outside was opened. On -1 with e nothing of the person's may
 * run. */
int confine_front(const struct confine *c, struct err *e);

#endif
