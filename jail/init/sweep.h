/* SPDX-License-Identifier: MIT */
/*
 * sweep.h - stop, continue and kill everything in the jail, from pid 1
 */
#ifndef JAIL_INIT_SWEEP_H
#define JAIL_INIT_SWEEP_H

#include <stdint.h>
#include <sys/types.h>

struct sweep {
	int proc_fd; /* the jail's /proc, or -1; borrowed */
	pid_t last;  /* without it: the highest pid seen */
};

/* Stop every process but pid 1 and see that it is stopped; what runs on for a
 * quarter of a second, though it was looked at often, is killed. *seen and
 * *killed count processes. -1 when they could not be looked at, and anything
 * may run; without a /proc that is for the warden to say. */
int sweep_stop(struct sweep *s, int32_t *seen, int32_t *killed);

/* Continue every process but pid 1. */
void sweep_continue(void);

/* Stop, then kill and bury every process but pid 1 and `keep`, at most
 * 2 seconds. Returns 1 if all are gone, 0 if some would not die in time or
 * could not be looked for; *killed counts what there was to kill. */
int sweep_kill(
	struct sweep *s, const int32_t *keep, int nkeep, int32_t *killed);

/* The child of `parent` that was started last, in the last `ms`, `keep` left
 * out; 0 if there is none, or no /proc to look in. */
pid_t sweep_newest_child(struct sweep *s, pid_t parent, int64_t ms,
	const pid_t *keep, int nkeep);

#endif
