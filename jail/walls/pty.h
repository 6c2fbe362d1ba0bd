/* SPDX-License-Identifier: MIT */
/*
 * pty.h - pairs on the jail's own devpts, and how they are set
 */
#ifndef JAIL_WALLS_PTY_H
#define JAIL_WALLS_PTY_H

#include "jail/base/err.h"

/* Open a pair on the devpts whose top directory is `pts_dirfd`. Neither
 * becomes a controlling terminal. The caller closes both. */
int pty_open_pair(int pts_dirfd, int *master, int *slave, struct err *e);

/* The slave of a master, opened once more: O_NONBLOCK among `flags` is then
 * its holder's alone. The caller closes it; -1 with e. */
int pty_open_slave(int master, int flags, struct err *e);

/*
 * The profile a cell starts with: line by line, echoed, Ctrl-C and Ctrl-\
 * signal, Ctrl-Z does not, Ctrl-C keeps pending output, Ctrl-S and Ctrl-Q are
 * ordinary keys, output is on. Every bit is set afresh, nothing a guest left
 * survives. `fd` is a slave.
 */
int pty_set_cooked(int fd, struct err *e);

/* Bytes as they are, both ways. */
int pty_set_raw(int fd, struct err *e);

/* The window is this large; the foreground group learns by SIGWINCH. */
int pty_set_size(
	int fd, unsigned short rows, unsigned short cols, struct err *e);

/* Signal the foreground group of the master's slave: SIGINT, SIGQUIT or
 * SIGTSTP. */
int pty_signal_fg(int master, int sig, struct err *e);

#endif
