/* SPDX-License-Identifier: MIT */
/*
 * signals.h - signals as something to poll
 *
 * Those that end or interrupt us are blocked and read from a descriptor, so
 * that nothing of ours ever runs in a handler.
 */
#ifndef REPL_TERM_SIGNALS_H
#define REPL_TERM_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

struct err;

/* Caller's storage. What has come since it was last cleared. */
struct signals {
	int fd;
	sigset_t before;
	bool interrupt; /* SIGINT */
	int end;	/* SIGTERM, SIGHUP or SIGQUIT; 0: none */
	bool resized;	/* SIGWINCH */
	bool continued; /* SIGCONT, of a program: it may be in front now */
};

/* Block SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGWINCH, which come as flags
 * from now on, and ignore SIGPIPE and SIGXFSZ, so that a failed write is an
 * error. With `session` SIGTSTP, SIGTTIN and SIGTTOU are ignored too, and
 * nothing suspends it; without, SIGCONT is a flag. After jail_open(), which
 * must not hand this on. */
int signals_open(struct signals *s, bool session, struct err *e);
void signals_close(struct signals *s);

/* Take what has come into the flags. Never blocks. */
void signals_read(struct signals *s);

/* Whether SIGINT, or a signal that ends us, has come; SIGINT is cleared. */
bool signals_cancelled(struct signals *s);

#endif
