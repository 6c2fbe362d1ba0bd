/* SPDX-License-Identifier: MIT */
/*
 * client.h - what the files here share of a session
 *
 *	jail.c		its begin, what it says, its end
 *	requests.c	what it is asked for
 *	pool.c		sessions made ahead
 */
#ifndef JAIL_CLIENT_CLIENT_H
#define JAIL_CLIENT_CLIENT_H

#include "jail/base/io.h"
#include "jail/jail.h"
#include "jail/wire/wire.h"

/* Only requests.c writes it. All zero is a session that was asked nothing. */
struct requests {
	uint32_t seq, last; /* requests; `last` can be interrupted */
	uint32_t sent;	    /* by jail_send() */
	int interrupt_fd;   /* watched while a call waits, if there is a call */
	int (*interrupt_cb)(void *arg);
	void *interrupt_arg;
};

/* But for `asked`, and descriptors taken out of `fds`, only jail.c writes it.
 */
struct jail {
	int sock;
	pid_t warden;	     /* 0: not our child */
	int patient;	     /* there is no other: calls wait until it ends */
	int fds[IO_FDS_MAX]; /* what else came with the last message */
	struct wire_event begun; /* its bytes have not all come yet, or 0 */
	uint32_t come;		 /* of them */
	int exited;		 /* JAIL_EXITED has come */
	/* Events that came while a call waited for its reply. */
	struct jail_event *queue;
	size_t n;
	struct requests asked;
};

/* Take the next message: 1 taken, 0 nothing there (or not all of it yet), -1
 * with e: the warden is gone. */
int jail_take_message(struct jail *j, struct wire_event *m, struct err *e);

/* Say that the warden is gone, and why; errno is that of the call which has
 * found out. Without its warden there is no jail: not an ordinary failure. */
int jail_say_gone(struct jail *j, struct err *e);

#endif
