/* SPDX-License-Identifier: MIT */
/*
 * janitor.h - the process that cleans up after a session, whatever ended it
 *
 * The janitor waits for the end of file on a pipe. When the last holder of the
 * other end is gone, it kills what is left in the cgroup and removes the
 * cgroup; then it does the same for dead sessions whose janitors were killed.
 */
#ifndef JAIL_APPLY_JANITOR_H
#define JAIL_APPLY_JANITOR_H

#include "jail/base/err.h"
#include "jail/walls/cgroup/cgroup.h"

/* Fork the janitor, after cgroup_place() and before cgroup_open(), so that the
 * cgroup never exists without one. *hold_fd is the pipe's write end: the
 * session lasts as long as the warden holds it; no guest ever does. The janitor
 * keeps copies of lock_fd (the allocated uid, released when all is gone) and
 * done_fd (closed when all is gone, so that a reader of its other end can
 * wait); -1 for none. It closes everything else. Returns its pid, or -1 with e.
 */
pid_t janitor_start(const struct cgroup *cg, int lock_fd, int done_fd,
	int *hold_fd, struct err *e);

#endif
