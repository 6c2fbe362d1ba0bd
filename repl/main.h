/* SPDX-License-Identifier: MIT */
/*
 * main.h - what main.c calls in repl/ itself: check.c, confine.c
 */
#ifndef REPL_MAIN_H
#define REPL_MAIN_H

#include <stdbool.h>

struct config;
struct err;
struct jail_spec;
struct options;

/* Print the table for people, or with `json` one object for programs. Returns
 * the exit status: 0 if a session can start here, 125 if no jail can be built
 * or a limit in jail.require is not strong; -1 with e. */
int check_run(
	const struct jail_spec *spec, bool json, bool verbose, struct err *e);

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
