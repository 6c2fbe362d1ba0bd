/* SPDX-License-Identifier: MIT */
/*
 * chore.h - what may have to wait for a guest
 */
#ifndef JAIL_WARDEN_CHORE_H
#define JAIL_WARDEN_CHORE_H

#include "jail/init/procs.h"
#include "link.h"

#include <stdint.h>
#include <sys/types.h>

/* Where it is done. Everything is borrowed. */
struct chore_place {
	struct procs_source procs;
	int tty_master, tty_slave, line;
	dev_t tty_dev;
};

/* What is to be done, bit by bit. */
enum {
	CHORE_WAITS = 1,   /* does the jail wait for the person? */
	CHORE_WEIGHT = 2,  /* how much memory does it use? */
	CHORE_PRIVATE = 4, /* how much of it is private to `pid`? */
	CHORE_CPU = 8,	   /* how much CPU time has it used? */
	CHORE_KEYS = 16,   /* take the keys that a cell did not read */
	CHORE_TTYS = 32,   /* set the tty and the line as a cell finds them */
	CHORE_SIZE = 64,   /* tell the tty the size of the window */
};

struct chore {
	unsigned what;
	pid_t pid;
	int64_t faults; /* not worth counting its pages before it has more */
	struct link_pids kept;	   /* these do not count for CHORE_WAITS */
	unsigned short rows, cols; /* of the window; 0: not known */
};

/* Keys handed back at most: what a tty holds, and what is on its way there. */
#define CHORE_KEYS_MAX (64 * 1024)

struct chore_result {
	unsigned what;	  /* which of the questions have an answer */
	int64_t began_ms; /* when it was begun */
	int waits;
	int64_t weight_bytes, cpu_ms;
	/* beside the weight; as in struct procs */
	int64_t kernel_bytes, forks_bytes;
	int hidden;
	int64_t shared;
	/* CHORE_PRIVATE: minor faults, size, and private bytes, or -1 */
	int64_t faults, rss_bytes, private_bytes;
	size_t nkeys;
	char keys[CHORE_KEYS_MAX];
};

/* Do it here and now. Only the stand-in may, or anyone while the jail is
 * stopped: a guest that runs can hold the locks that this waits for. */
void chore_do(const struct chore_place *p, const struct chore *q,
	struct chore_result *r);

#endif
