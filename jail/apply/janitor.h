/* SPDX-License-Identifier: MIT */
/*
 * janitor.h - the process that cleans up after a session, whatever ended it
 *
 * It knows one thing: end-of-file on a pipe. When the last holder of the
 * other end is gone it kills what is left in the cgroup and removes it; and
 * then what dead sessions left beside it, whose janitors were killed.
 */
#ifndef JAIL_APPLY_JANITOR_H
#define JAIL_APPLY_JANITOR_H

#include "jail/base/err.h"
#include "jail/walls/cgroup/cgroup.h"

/* Fork the janitor. The cgroup has its place, and is not made yet: there is no
 * moment when it is nobody's. *hold_fd is the pipe's write end: the session
 * lasts as long as someone holds it (warden; never a guest). The janitor takes
 * copies of lock_fd (the claimed uid, released when all is gone) and done_fd
 * (closed when all is gone, so that a reader of its other end can wait for
 * that); -1 for none. It closes everything else. Returns its pid, or -1 with
 * e. */
pid_t janitor_start(const struct cgroup *cg, int lock_fd, int done_fd,
	int *hold_fd, struct err *e);

#endif
