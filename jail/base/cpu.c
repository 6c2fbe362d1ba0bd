/* SPDX-License-Identifier: MIT */
/*
 * cpu.c - on which CPU a process starts
 *
 * Runs in:   front end, warden: for a child of theirs
 * Trusts:    nothing
 * Leaves:    the child free to run wherever the caller is
 *
 * Some kernels leave a child on the CPU of its parent, to wait there until
 * that is done, whatever others are idle: virtual machines do, to need few
 * CPUs. Two who have work for a millisecond each would take turns.
 */
#include "cpu.h"

#include <sched.h>

void cpu_run_beside(pid_t child)
{
	cpu_set_t all, others;
	int here = sched_getcpu();

	if (here < 0 || sched_getaffinity(0, sizeof(all), &all) < 0)
		return;
	others = all;
	CPU_CLR((size_t)here, &others);
	if (CPU_COUNT(&others) == 0 ||
		sched_setaffinity(child, sizeof(others), &others) < 0)
		return;
	sched_setaffinity(child, sizeof(all), &all);
}
