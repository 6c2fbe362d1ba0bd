/* SPDX-License-Identifier: MIT */
/*
 * check.h - what this host enforces, and what to do about the rest
 */
#ifndef REPL_CHECK_H
#define REPL_CHECK_H

#include <stdbool.h>

struct config;
struct err;

/* Print the table for people, or with `json` one object for programs. Returns
 * the exit status: 0 a session can start here, 125 no jail can be built or
 * what jail.require asks for is not strong; -1 with e. */
int check_run(const struct config *cfg, const char *python, bool json,
	bool verbose, struct err *e);

#endif
