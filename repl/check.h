/* SPDX-License-Identifier: MIT */
/*
 * check.h - what this host enforces, and what to do about the rest
 */
#ifndef REPL_CHECK_H
#define REPL_CHECK_H

#include <stdbool.h>

struct err;
struct jail_spec;

/* Print the table for people, or with `json` one object for programs. Returns
 * the exit status: 0 if a session can start here, 125 if no jail can be built
 * or a limit in jail.require is not strong; -1 with e. */
int check_run(
	const struct jail_spec *spec, bool json, bool verbose, struct err *e);

#endif
