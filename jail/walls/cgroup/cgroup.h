/* SPDX-License-Identifier: MIT */
/*
 * cgroup.h - limits on the jail as a whole, kept by the kernel
 *
 * Opened while the warden can still write there (root, or a delegated
 * subtree), used later through descriptors, when it no longer can. Removed by
 * the janitor, who outlives the warden.
 */
#ifndef JAIL_WALLS_CGROUP_CGROUP_H
#define JAIL_WALLS_CGROUP_CGROUP_H

#include "jail/base/err.h"
#include "jail/limits.h"

#include <stdint.h>
#include <sys/types.h>

/* Longest directory name. */
#define CGROUP_PATH_MAX 512

enum cgroup_kind { CGROUP_NONE, CGROUP_V1, CGROUP_V2 };

enum cgroup_controller {
	CGROUP_MEMORY,
	CGROUP_PIDS,
	CGROUP_CPU,
	CGROUP_CPUACCT,
	CGROUP_FREEZER,
};
#define CGROUP_CONTROLLERS 5

/* What this process could make here. Under v2 cpuacct and freezer are part of
 * every cgroup. */
struct cgroup_caps {
	enum cgroup_kind kind;
	unsigned usable; /* bits 1 << enum cgroup_controller */
	int shared;	 /* delegated; `dir` holds others: ours are prefixed */
	pid_t with[2];	 /* (v2) may be moved aside beside the caller, 0 none */
	char dir[CGROUP_CONTROLLERS][CGROUP_PATH_MAX]; /* sessions go here */
	char why[256]; /* what is missing and why, in words; or empty */
};

/* Descriptors the warden works through; -1 what is not there. */
enum cgroup_file {
	CGROUP_F_MEMORY,      /* bytes charged */
	CGROUP_F_MEMORY_STAT, /* memory.stat */
	CGROUP_F_PEAK,	      /* highest charge */
	CGROUP_F_OOM,	      /* where oom_kill is counted */
	CGROUP_F_PIDS_EVENTS, /* forks refused */
	CGROUP_F_CPU,	      /* CPU time used */
	CGROUP_F_FREEZE,      /* freezer switch */
	CGROUP_F_EVENTS,      /* (v2) frozen */
};
#define CGROUP_FILES 8

struct cgroup {
	enum cgroup_kind kind;
	unsigned enforced;	       /* CGROUP_LIMIT_*, read back */
	int procs[CGROUP_CONTROLLERS]; /* cgroup.procs of each directory */
	int tasks[CGROUP_CONTROLLERS]; /* (v1) its tasks file */
	int file[CGROUP_FILES];
	int ndirs; /* what the janitor removes, the freezer's first */
	char dirs[CGROUP_CONTROLLERS][CGROUP_PATH_MAX];
	int at[CGROUP_CONTROLLERS];   /* which of them a controller's is */
	int held[CGROUP_CONTROLLERS]; /* each of them, locked; -1 not ours */
	int own_parent;		      /* their parents are ours too */
	char refused[256]; /* what was asked for and not kept, in words */
};

/* Limits that were set and read back. */
enum {
	CGROUP_LIMIT_MEMORY = 1,
	CGROUP_LIMIT_SWAP = 2, /* no swap beside the memory limit */
	CGROUP_LIMIT_PIDS = 4,
	CGROUP_LIMIT_CPU = 8,
};

struct cgroup_usage {
	int64_t charged_bytes; /* all that is charged, page cache included */
	int64_t memory_bytes;  /* less what reclaim could take back */
	int64_t peak_bytes;    /* highest charge, 0 unknown */
	int64_t cpu_ns;	       /* CPU time of all, the dead too; -1 unknown */
	int64_t oom_kills;     /* processes the kernel killed for memory */
	int64_t fork_fails;    /* forks refused by the process limit */
};

/* Look at this host. `with` is the first in caps: the front end, for its
 * warden. Never fails: caps->kind is CGROUP_NONE and caps->why says why. Makes
 * nothing. */
void cgroup_probe(struct cgroup_caps *caps, pid_t with);

/* Where the session's directories will be; makes nothing, so that the janitor
 * can know before there is anything to remove. `name` is a file name that no
 * living session shares (claim_name()), NULL for one by the caller's pid.
 * With CGROUP_NONE succeeds and `cg` is empty. */
int cgroup_place(struct cgroup *cg, const struct cgroup_caps *caps,
	const char *name, struct err *e);

/* Make them there, set the limits, read each back. What a dead session left
 * under the name is killed and removed first; a living one is an error. A
 * limit that cannot be had is none: see `enforced` and `refused`. -1:
 * something broke, nothing is left behind, and `cg` is empty. */
int cgroup_open(struct cgroup *cg, const struct cgroup_caps *caps,
	const struct limits *l, struct err *e);

/* Close the descriptors; the directories stay (they are the janitor's), as
 * those of a dead session. */
void cgroup_close(struct cgroup *cg);

/* Move the calling process, which must have one thread, in. Under v1 this is
 * far cheaper than being moved: the kernel need not wait until nobody else
 * forks or execs. */
int cgroup_enter(const struct cgroup *cg, struct err *e);

/* The same for the freezer: the guests are in it, and pid 1, which must go on
 * serving, is not. */
int cgroup_enter_freezer(const struct cgroup *cg, struct err *e);

/* What that goes through, to keep open until then; -1. */
int cgroup_freezer_fd(const struct cgroup *cg);

/* 1 if cgroup_freeze() works here. */
int cgroup_can_freeze(const struct cgroup *cg);

/* Freeze the guests, waiting at most timeout_ms until every task has stopped;
 * or thaw. -1 with e (errno ETIMEDOUT) if some task did not: it is left
 * freezing. */
int cgroup_freeze(
	const struct cgroup *cg, int on, int timeout_ms, struct err *e);

/* What the jail uses; fields that cannot be read are as documented. */
void cgroup_usage(const struct cgroup *cg, struct cgroup_usage *u);

/* Remove the session's directories, waiting at most timeout_ms for the dying,
 * and the parent of our own if it is then empty. For the janitor, by path; who
 * lives under the name by then, and is not this `cg`, is left alone. */
int cgroup_remove(const struct cgroup *cg, int timeout_ms, struct err *e);

/* Afterwards: kill and remove what sessions left beside it that nobody holds;
 * if they are named by a claimed uid, those that is_dead() says are dead too,
 * which must stay true until the caller is through. NULL: none are. */
void cgroup_sweep(const struct cgroup *cg,
	int (*is_dead)(const char *name, void *arg), void *arg);

#endif
