/* SPDX-License-Identifier: MIT */
/*
 * prompt.h - a session from banner to end
 */
#ifndef REPL_SESSION_PROMPT_H
#define REPL_SESSION_PROMPT_H

struct err;
struct session;

/* A session, in a jail that was opened. The first prompt may come a moment
 * before the jail stands. Returns the exit status, or -1 with e. */
int prompt_run(struct session *s, struct err *e);

#endif
