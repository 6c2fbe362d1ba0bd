/* SPDX-License-Identifier: MIT */
/*
 * apply.h - carry a plan out
 */
#ifndef JAIL_APPLY_APPLY_H
#define JAIL_APPLY_APPLY_H

#include "jail/base/err.h"
#include "jail/plan/plan.h"

/* File systems in memory that guests write to, beside the home. */
#define APPLY_TMPFS 2

/* What a stage needs, and leaves behind. Descriptors are the caller's. */
struct apply_ctx {
	int home_fd; /* top of the home: out of WARDEN; into JAIL, which closes
		      * it */
	int pts_fd;  /* out of JAIL: top of its devpts */
	int proc_fd; /* out of JAIL: top of its /proc; -1 without */
	int tmp_fds[APPLY_TMPFS]; /* out of JAIL: what counts as memory */
	int ntmp;
	int oom_fd;    /* out of JAIL: its own oom_score_adj; -1 without */
	int guest_oom; /* out of JAIL: what that of a guest is to be */
};

/*
 * Carry out one stage, in order, up to the first operation that fails: then
 * -1, and e (of kind ERR_JAIL) names the step, the object, the reason and,
 * where one is known, the remedy. There is no way back from half a stage: the
 * process must end.
 */
int apply_stage(const struct plan *p, enum plan_stage stage,
	struct apply_ctx *ctx, struct err *e);

#endif
