/* SPDX-License-Identifier: MIT */
/*
 * procs.h - what the jail's processes are doing, read from /proc
 *
 * For the warden: memory and CPU where no cgroup counts them, whether the
 * jail waits for the person, whether everything has stopped. Processes are
 * named by their pid in the jail's own namespace; inside a struct procstat
 * the numbers are as the /proc in use has them.
 */
#ifndef JAIL_INIT_PROCS_H
#define JAIL_INIT_PROCS_H

#include "jail/base/err.h"
#include "jail/base/procstat.h"

#include <stdint.h>
#include <sys/types.h>

/* Most processes looked at; more than session.processes can be. */
#define PROCS_MAX 40000

/* Where to look. */
struct procs_source {
	int proc_fd;  /* a /proc directory (borrowed) */
	int foreign;  /* it is the host's: pick by pid namespace */
	pid_t self;   /* init as that /proc numbers it */
	dev_t ns_dev; /* the jail's pid namespace */
	ino_t ns_ino;
};

/* Look through the jail's own /proc. */
void procs_source_jail(struct procs_source *s, int proc_fd);

/* The jail has no /proc: look through the caller's (proc_fd borrowed), for
 * processes of init's pid namespace, which init itself must name: its own
 * links are closed to others. */
void procs_source_host(struct procs_source *s, int proc_fd, pid_t init_pid,
	dev_t ns_dev, ino_t ns_ino);

struct procs {
	int n; /* processes but init, zombies not counted */
	int zombies;
	int threads;
	int running;	/* processes of which a thread is neither stopped nor
			 * dead */
	int ready;	/* and of which one runs, or would if it could, or waits
			 * for a disk, or as after vfork() */
	int64_t bytes;	/* memory, pages divided by those who share them, and
			 * the tables that map them */
	int64_t cpu_ms; /* of all now alive, and children they reaped */
};

enum {
	PROCS_MEMORY = 1,  /* sum up memory too: walks page tables */
	PROCS_RUNNING = 2, /* look at every thread, to see whether it runs */
	PROCS_READY = 4,   /* the same, but whether it sleeps */
};

/* Look at every process of the jail but init. Processes that come and go
 * meanwhile are no error. 0, or -1 when /proc cannot be read. */
int procs_sample(const struct procs_source *s, unsigned flags,
	struct procs *out, struct err *e);

/* Private (unshared) and proportional bytes of one process. -1 if it is gone
 * or cannot be read. Each result may be NULL. */
int procs_memory(const struct procs_source *s, pid_t pid,
	int64_t *private_bytes, int64_t *pss_bytes);

/* Its stat. -1 if it is gone. */
int procs_stat(const struct procs_source *s, pid_t pid, struct procstat *st);

/* Whether the jail waits for the person: every thread of every process but
 * init and `skip` sleeps, and one of the tty's foreground group is inside
 * read(), or select() or poll() without a timeout, on that tty and nothing
 * else. 1 yes, 0 no, -1 this kernel does not tell. A sample, not a proof: take
 * several at random times. `tty` is st_rdev of the slave; that its input is
 * empty is for the caller to check. */
int procs_waits_for_tty(
	const struct procs_source *s, dev_t tty, const pid_t *skip, int nskip);

#endif
