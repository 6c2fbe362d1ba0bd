/* SPDX-License-Identifier: MIT */
/*
 * signals.h - signals as something to poll
 *
 * Signals that end or interrupt us are blocked and read from a descriptor. So
 * no code of ours ever runs in a handler.
 */
#ifndef REPL_TERM_SIGNALS_H
#define REPL_TERM_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

struct err;

/* Caller's storage. A flag stays set until the caller clears it. */
struct signals {
	int fd;
	sigset_t before;
	bool interrupt; /* SIGINT */
	int end;	/* SIGTERM, SIGHUP or SIGQUIT; 0: none */
	bool resized;	/* SIGWINCH */
	bool continued; /* SIGCONT: we may be in the foreground now */
};

/* Block SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGWINCH, which become flags, and
 * ignore SIGPIPE and SIGXFSZ, so that a failed write is an error. A session
 * also ignores SIGTSTP, SIGTTIN and SIGTTOU, so that nothing suspends it; for a
 * program SIGCONT becomes a flag too. Call it after jail_open(), or the warden
 * would inherit all this. */
int signals_open(struct signals *s, bool session, struct err *e);
void signals_close(struct signals *s);

/* Set the flags of signals that have come. Never blocks. */
void signals_read(struct signals *s);

/* Whether SIGINT or a signal that ends us has come. Clears SIGINT. */
bool signals_cancelled(struct signals *s);

#endif
