/* SPDX-License-Identifier: MIT */
/*
 * procstat.h - one line of /proc/PID/stat, and the numbers in a directory
 */
#ifndef JAIL_BASE_PROCSTAT_H
#define JAIL_BASE_PROCSTAT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

/* Process numbers are those of the /proc that was read. */
struct procstat {
	pid_t pid, ppid, pgrp, session, tpgid;
	dev_t tty;	      /* controlling terminal, 0 none */
	char state;	      /* R S D T t Z X I */
	int64_t minor_faults; /* pages touched first, or copied */
	int64_t cpu_ticks;    /* user and system, of the process itself */
	int64_t dead_ticks;   /* of children it has waited for */
	int threads;
	uint64_t start_ticks; /* since boot */
	/* Where memory has what; 0 where that is hidden. */
	uintptr_t code, code_end, stack, data, data_end, brk;
	uintptr_t args, args_end, env, env_end; /* as it was started */
};

/* Parse `n` bytes and a NUL. The command name may hold any bytes. 0, or -1. */
int procstat_parse(const char *text, size_t n, struct procstat *st);

/* Read the stat file `path` beneath `dirfd`. 0, or -1 with errno: ENOENT or
 * ESRCH when the process is gone, EBADMSG when the text is not understood. */
int procstat_read(int dirfd, const char *path, struct procstat *st);

/* Visit every number in a directory that is not below `least`, until a visit
 * returns another value than 0. That value, or -1 with errno when not all could
 * be seen. */
int procstat_each(int dirfd, const char *path, int least,
	int (*visit)(int, void *), void *arg);

/* Overwrite our command line with a name, if that is no longer. It may name
 * files of the host, which pid 1 of a jail must not show there; and a child of
 * root's maker is no maker. The caller has copied the arguments that it needs.
 */
int procstat_set_title(const char *name, struct err *e);

#endif
