/* SPDX-License-Identifier: MIT */
/*
 * cpu.h - on which CPU a process starts
 */
#ifndef JAIL_BASE_CPU_H
#define JAIL_BASE_CPU_H

#include <sys/types.h>

/* Have a child that was just forked begin now, on another CPU than the
 * caller's, if there is one it may use; it may run anywhere afterwards. */
void cpu_run_beside(pid_t child);

#endif
