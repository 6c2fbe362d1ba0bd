/* SPDX-License-Identifier: MIT */
/*
 * pty.h - ptys of the jail's own devpts, and their settings
 */
#ifndef JAIL_WALLS_PTY_H
#define JAIL_WALLS_PTY_H

#include "jail/base/err.h"

/* Open a pair on the devpts whose top directory is `pts_dirfd`. Neither end
 * becomes a controlling terminal. The caller closes both. */
int pty_open_pair(int pts_dirfd, int *master, int *slave, struct err *e);

/* Open the slave of a master once more, so that O_NONBLOCK in `flags` concerns
 * this descriptor alone. The caller closes it; -1 with e. */
int pty_open_slave(int master, int flags, struct err *e);

/*
 * Set the profile that a cell starts with: canonical mode with echo; Ctrl-C and
 * Ctrl-\ signal, Ctrl-Z does not; Ctrl-C keeps pending output; Ctrl-S and
 * Ctrl-Q are ordinary keys; output is on. Every setting is written, so nothing
 * that a guest set survives. `fd` is a slave.
 */
int pty_set_cooked(int fd, struct err *e);

/* Set a slave raw: bytes pass unchanged both ways. */
int pty_set_raw(int fd, struct err *e);

/* Set the window size; the foreground group gets SIGWINCH if it changed. */
int pty_set_size(
	int fd, unsigned short rows, unsigned short cols, struct err *e);

/* Signal the foreground group of the master's slave: SIGINT, SIGQUIT or
 * SIGTSTP. */
int pty_signal_fg(int master, int sig, struct err *e);

#endif
