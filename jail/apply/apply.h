/* SPDX-License-Identifier: MIT */
/*
 * apply.h - carry a plan out; and the janitor, which cleans up afterwards
 */
#ifndef JAIL_APPLY_APPLY_H
#define JAIL_APPLY_APPLY_H

#include "jail/base/err.h"
#include "jail/jail.h"
#include "jail/plan/plan.h"
#include "jail/walls/cgroup/cgroup.h"

/* File systems in memory that guests write to, beside the home. */
#define APPLY_TMPFS 2

/* The descriptors of a stage, owned by the caller. */
struct apply_ctx {
	/* Top of the home: WARDEN sets it, JAIL takes and closes it. */
	int home_fd;
	/* The session's device nodes, not mounted yet: WARDEN takes and closes
	 * it. -1 without. */
	int nodes_fd;
	/* JAIL sets the others. */
	int tree_fd; /* keeps a root that is in no table of mounts; or -1 */
	int pts_fd;  /* top of the jail's devpts */
	int proc_fd; /* top of the jail's /proc, which guests see
		      * read-only; -1 without */
	int shared;  /* inodes of the host are shown, or of its device nodes */
	int tmp_fds[APPLY_TMPFS]; /* file systems that count as memory */
	int ntmp;
	int notify_fd; /* where guests ask pid 1 (seccomp_hear()), or -1 */
	int oom_fd;    /* own oom_score_adj; -1 without */
	int guest_oom; /* the oom_score_adj of a guest */
};

/* Carry out one stage in order. At the first operation that fails: -1, and e
 * (of kind ERR_JAIL) names the step, the object, the reason and, if one is
 * known, the remedy. There is no way back from half a stage: the process must
 * end. */
int apply_stage(const struct plan *p, enum plan_stage stage,
	struct apply_ctx *ctx, struct err *e);

/* ---- janitor.c: cleans up after a session, whatever ended it ----
 *
 * The janitor waits for the end of file on a pipe; where somebody wants the
 * home, on a socket. When the last holder of the other end is gone, it kills
 * what is left in the cgroup and removes the cgroup; then it does the same for
 * dead sessions whose janitors were killed.
 */

/* The session that a janitor cleans up after. */
struct janitor_of {
	const struct cgroup *cgroup;
	/* The janitor tells spec->made->ended() what the session has used;
	 * NULL: there is no such function. `id`: the session's host id. */
	const struct jail_spec *spec;
	uid_t id;
	/* The janitor keeps copies: of the lock on the allocated uid, released
	 * when all is gone, and of what is closed then, so that a reader of its
	 * other end can wait. -1 for none. It closes everything else. */
	int lock_fd, done_fd;
};

/* Fork the janitor, after cgroup_place() and before cgroup_open(), so that the
 * cgroup never exists without one. *hold_fd is the other end: the session lasts
 * as long as the warden holds it; no guest ever does. Returns its pid, or -1
 * with e. */
pid_t janitor_start(const struct janitor_of *of, int *hold_fd, struct err *e);

/* Through that end: count a limit that struck; LIMIT_NONE: a session made
 * ahead is somebody's now. Never waits. */
void janitor_count(int hold_fd, enum jail_limit limit);

/* Through that end: give it the directory of the home (borrowed), for
 * spec->made->left(). 0, or -1 with e. */
int janitor_give_home(int hold_fd, int home, struct err *e);

#endif
