/* SPDX-License-Identifier: MIT */
/*
 * spec.h - everything a session is made from
 *
 * The front end fills it from the merged configuration and the command line.
 * The warden and init inherit it by fork, and nothing changes it. Strings are
 * borrowed and must outlive the session's start; lists end with NULL and may be
 * NULL themselves.
 */
#ifndef JAIL_SPEC_H
#define JAIL_SPEC_H

#include "limits.h"

#include <sys/types.h>

enum spec_mode {
	SPEC_SESSION, /* the driver, cells over a pty, checkpoints */
	SPEC_PROGRAM, /* one program, its own stdin, stdout and stderr */
};

struct jail_spec {
	struct limits limits;
	enum spec_mode mode;

	const char *python;	    /* interpreter, absolute host path */
	const char *packages;	    /* read-only packages directory, or NULL */
	const char *const *expose;  /* host paths shown read-only */
	const char *const *env;	    /* NAME=VALUE for Python, beside our own */
	const char *const *require; /* [jail] require, words */
	const char *term;	    /* TERM inside, already checked */
	uid_t uid_lo, uid_hi;	    /* outside ids when started by root */
	unsigned short rows, cols;  /* the terminal at the start; 0 unknown */

	/* SPEC_PROGRAM: the arguments after the interpreter; and bits 0, 1, 2
	 * for each of stdin, stdout, stderr that is a terminal. */
	const char *const *argv;
	unsigned tty_bits;
};

#endif
