/* SPDX-License-Identifier: MIT */
/*
 * cpu.c - on which CPU a process starts
 *
 * Runs in:   front end, warden: for a child of theirs
 * Trusts:    nothing
 * Leaves:    the child free to run wherever the caller may
 *
 * Some kernels start a child on its parent's CPU, where it waits for the
 * parent although other CPUs are idle. Virtual machines do this to need few
 * CPUs. Two processes with a millisecond of work each would then take turns.
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
