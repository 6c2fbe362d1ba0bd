/* SPDX-License-Identifier: MIT */
/*
 * procs.h - what the jail's processes do and use, read from /proc
 *
 * For the warden: memory and CPU where no cgroup counts them, whether the
 * jail waits for the person, whether everything has stopped. Pids are those of
 * the jail's own namespace; only inside a struct procstat they are those of
 * the /proc that was read.
 */
#ifndef JAIL_INIT_PROCS_H
#define JAIL_INIT_PROCS_H

#include "jail/base/err.h"
#include "jail/base/procstat.h"
#include "jail/base/procstatus.h"

#include <stdint.h>
#include <sys/types.h>

/* Most processes that are read; session.processes is smaller. */
#define PROCS_MAX 40000

/* The /proc to read. */
struct procs_source {
	int proc_fd;  /* borrowed */
	int foreign;  /* the host's: pick processes by pid namespace */
	pid_t self;   /* init in the numbers of that /proc */
	dev_t ns_dev; /* the jail's pid namespace */
	ino_t ns_ino;
};

/* Read the jail's own /proc. */
void procs_source_jail(struct procs_source *s, int proc_fd);

/* Read the caller's /proc where the jail has none. Only init can tell its pid
 * namespace: nobody else may follow its links in /proc. */
void procs_source_host(struct procs_source *s, int proc_fd, pid_t init_pid,
	dev_t ns_dev, ino_t ns_ino);

struct procs {
	int n;	     /* processes without init and without zombies */
	int zombies; /* and those that are about to be */
	int threads;
	int running; /* processes with a thread that is not stopped or dead */
	/* Processes, and init, with a thread that the host keeps waiting: for a
	 * CPU, or inside the kernel */
	int ready;
	int64_t bytes;	   /* memory and page tables */
	int64_t own_bytes; /* of these, what no fork shares */
	/* By weight: what the kernel keeps for mappings and for what epolls
	 * watch; whether more of it may be where nobody sees it, in flight or
	 * in buffers of /proc. */
	int64_t kernel_bytes;
	int hidden;
	int64_t record_bytes; /* by weight: the most that a file of /proc prints
			       * at once; kernel_bytes has it for each thread */
	int64_t forks_bytes;  /* by weight: more, if each was forked by the one
			       * before it */
	int64_t shared;	 /* mappings of anonymous shared memory, by weight */
	int64_t cpu_ms;	 /* of all that live, and of children they reaped */
	int64_t init_ms; /* of init itself, which works for guests (asked.c) */
};

enum {
	PROCS_MEMORY = 1, /* fill in bytes: what a fork shares, for each */
	PROCS_RUNNING = 2,
	PROCS_READY = 4,
	PROCS_WEIGHT = 8, /* (waits) fill in bytes: what a fork shares, once;
			   * and kernel_bytes */
	PROCS_CPU = 16,	  /* (waits) fill in cpu_ms */
};

/* A guest can keep whoever calls what is marked `waits` waiting, until a signal
 * kills the caller. */

/* Sum up every process of the jail but init. A process that comes or goes
 * meanwhile is no error. 0, or -1 when /proc cannot be read. */
int procs_sample(const struct procs_source *s, unsigned flags,
	struct procs *out, struct err *e);

/* (waits) Private (unshared) bytes of one process. -1 if it is gone or cannot
 * be read. */
int64_t procs_private(const struct procs_source *s, pid_t pid);

/* The status of one process. -1 if it is gone. */
int procs_status(
	const struct procs_source *s, pid_t pid, struct procstatus *st);

/* (waits) The stat of one process. -1 if it is gone. */
int procs_stat(const struct procs_source *s, pid_t pid, struct procstat *st);

/* (waits) Whether the jail waits for the person: every thread of every process
 * but init and `skip` sleeps, and one of the tty's foreground group is inside
 * read(), or select(), poll() or epoll_wait(), with a timeout or without, on
 * that tty and maybe on more. 1 yes, 0 no, -1 this kernel does not say. A
 * sample, not a proof: take several at random times. `tty` is st_rdev of the
 * slave. The caller checks that its input is empty. */
int procs_waits_for_tty(
	const struct procs_source *s, dev_t tty, const pid_t *skip, int nskip);

#endif
