/* SPDX-License-Identifier: MIT */
/*
 * trial.h - what only trying tells of a host
 */
#ifndef JAIL_APPLY_TRIAL_H
#define JAIL_APPLY_TRIAL_H

#include <sys/types.h>

struct host;

/* Make, in a child, the namespaces of a session as whom a session would be
 * (started by root, a free id of [lo, hi]), and a fresh /proc in them. Some
 * milliseconds. Sets h->userns, why, no_proc. */
void trial_run(struct host *h, uid_t lo, uid_t hi);

#endif
