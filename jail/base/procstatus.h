/* SPDX-License-Identifier: MIT */
/*
 * procstatus.h - what /proc/PID/status tells
 *
 * Reading it waits for nothing. To read /proc/PID/stat, newer kernels wait for
 * an exec of the process, which a guest can draw out (6.18).
 */
#ifndef JAIL_BASE_PROCSTATUS_H
#define JAIL_BASE_PROCSTATUS_H

#include <stdint.h>
#include <sys/types.h>

struct procstatus {
	char state; /* R S D T t Z X I */
	int threads;
	pid_t leader;	    /* the process that a thread belongs to */
	pid_t inside;	    /* its number in its own pid namespace; 0 unknown */
	int has_memory;	    /* 0: on its way out, or a thread of the kernel */
	int is_killed;	    /* SIGKILL has been sent, and not been seen */
	int64_t size_bytes; /* in memory and swapped out */
	int64_t pages_bytes;  /* not of files, in memory and swapped out */
	int64_t tables_bytes; /* page tables */
	int64_t switches;     /* how often it has had a CPU and lost it */
};

/* Parse a whole file. The command name may hold any bytes. 0, or -1. */
int procstatus_parse(const char *text, struct procstatus *st);

/* Read the status file `path` beneath `dirfd`. 0, or -1 with errno: ENOENT or
 * ESRCH when the process is gone, EBADMSG when the text is not understood. */
int procstatus_read(int dirfd, const char *path, struct procstatus *st);

#endif
