/* SPDX-License-Identifier: MIT */
/*
 * spec.h - everything a session is made from
 *
 * Filled by the front end from the merged configuration and the command line
 * before the warden is forked, and never changed after: the warden and init
 * inherit it by fork. Strings are borrowed and must outlive the session's
 * start; lists end with NULL and may be NULL themselves.
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
	const char *const *expose;  /* host paths shown read-only as they are */
	const char *const *env;	    /* NAME=VALUE for Python, beside our own */
	const char *const *require; /* [jail] require, words */
	const char *term;	    /* TERM inside, already checked */
	uid_t uid_lo, uid_hi;	    /* outside ids when started by root */
	unsigned short rows, cols;  /* the terminal at the start; 0 unknown */

	/* SPEC_PROGRAM: arguments after the interpreter, NULL at the end, and
	 * which of stdin, stdout, stderr is a terminal (bits 0, 1, 2). */
	const char *const *argv;
	unsigned tty_bits;
};

#endif
