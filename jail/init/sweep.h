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
	pid_t last;  /* without a /proc: the highest pid seen */
};

/* Stop every process but pid 1 and see that it is stopped. A process that runs
 * on for a quarter of a second, though it had the CPU to stop, is killed. *seen
 * and *killed count processes. -1 when not all of them could be read: any of
 * those may run. Without a /proc the result is 0 and the warden looks. */
int sweep_stop(struct sweep *s, int32_t *seen, int32_t *killed);

/* Continue every process but pid 1. */
void sweep_continue(void);

/* Stop, then kill and reap every process but pid 1 and `keep`; gives up after
 * 20 seconds. 1 if all are gone, 0 if some remain or could not be read.
 * *killed counts the processes that were there to kill. */
int sweep_kill(
	struct sweep *s, const int32_t *keep, int nkeep, int32_t *killed);

/* The newest child of `parent` that was started in the last `ms`, without
 * `keep`. 0 if there is none, or no /proc. */
pid_t sweep_newest_child(struct sweep *s, pid_t parent, int64_t ms,
	const pid_t *keep, int nkeep);

#endif
