/* SPDX-License-Identifier: MIT */
/*
 * verdict.h - what became of a cell, in one line
 *
 * Pure: what the warden measured in, words for the person out.
 */
#ifndef REPL_SESSION_VERDICT_H
#define REPL_SESSION_VERDICT_H

#include "jail/jail.h"

#include <stddef.h>

struct limits;

/* Enough for any verdict. */
#define VERDICT_MAX 1024

/* What the words need beside the facts. All borrowed. */
struct verdict_about {
	const struct limits *limits;
	const char *memory_source; /* where session.memory was set, or NULL
				    * when nobody set it */
};

/* Write the words that go between the brackets, such as "time limit: 10 s ·
 * interrupted · variables kept". Empty when there is nothing to say: the cell
 * ran to its end, or its own traceback said it all. Returns `buf`. */
const char *verdict_line(char buf[static VERDICT_MAX],
	const struct jail_done *d, const struct verdict_about *about);

/* The key that sets a limit; NULL: none does. */
const char *verdict_limit_key(enum jail_limit limit);

/* Why a program that was killed was: "memory limit: 512 MiB". Empty when no
 * limit struck. Returns `buf`. */
const char *verdict_limit(char buf[static VERDICT_MAX], enum jail_limit limit,
	const struct limits *limits);

/* The message of a session that the idle or lifetime limit ended. */
const char *verdict_session_end(char buf[static VERDICT_MAX],
	enum jail_limit limit, const struct limits *limits);

/* Words for what :undo took back, and what it would take back next. `source` is
 * the first cell that is undone, or NULL. */
const char *verdict_undo(char buf[static VERDICT_MAX],
	const struct jail_undone *u, const char *source, size_t n);

#endif
