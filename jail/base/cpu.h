/* SPDX-License-Identifier: MIT */
/*
 * cpu.h - on which CPU a process starts
 */
#ifndef JAIL_BASE_CPU_H
#define JAIL_BASE_CPU_H

#include <sys/types.h>

/* Start a child that was just forked at once, on another CPU than the caller's
 * if it may use one. Afterwards the child may run anywhere. */
void cpu_run_beside(pid_t child);

#endif
