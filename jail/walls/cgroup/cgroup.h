/* SPDX-License-Identifier: MIT */
/*
 * cgroup.h - limits on a session as a whole, kept by the kernel
 *
 * The warden makes the cgroup while it can still write there (as root, or in a
 * delegated subtree). Later it works through descriptors that it opened then.
 * The janitor, which outlives the warden, removes the cgroup.
 *
 *   PERSON         root's sessions: one share of the cores for each person,
 *                  whatever the person runs; under v1 for the cpu controller
 *                  and those mounted with it
 *   NAME           in it, the session: session.cpus, for both leaves together
 *   NAME/jail      session.memory and session.processes; the session's use is
 *                  counted here
 *   NAME/warden    the warden, its helper processes, the wardens of programs
 *                  beside the session: limits of their own
 */
#ifndef JAIL_WALLS_CGROUP_CGROUP_H
#define JAIL_WALLS_CGROUP_CGROUP_H

#include "jail/base/err.h"
#include "jail/spec.h"

#include <stdint.h>
#include <sys/types.h>

/* Longest directory name. */
#define CGROUP_PATH_MAX 512
/* Longest name of a person's directory. */
#define CGROUP_PERSON_MAX 48

enum cgroup_kind { CGROUP_NONE, CGROUP_V1, CGROUP_V2 };

enum cgroup_controller {
	CGROUP_MEMORY,
	CGROUP_PIDS,
	CGROUP_CPU,
	CGROUP_CPUACCT,
	CGROUP_FREEZER,
};
#define CGROUP_CONTROLLERS 5
/* (v1) Where pid 1 is in the freezer's hierarchy: above the guests. */
#define CGROUP_ABOVE 5

/* The cgroups that this process could make here. Under v2 every cgroup has
 * cpuacct and freezer. */
struct cgroup_caps {
	enum cgroup_kind kind;
	unsigned usable;   /* bits 1 << enum cgroup_controller */
	int shared;	   /* delegated: `dir` may hold cgroups of others */
	const char *below; /* (v2) `dir` is in there; or NULL */
	pid_t with[3];	   /* (v2) may be moved aside with the caller, 0 none */
	int64_t person;	   /* whose session this is; -1: nobody's yet */
	char in[CGROUP_PERSON_MAX]; /* the person's directory; empty: none */
	char dir[CGROUP_CONTROLLERS][CGROUP_PATH_MAX]; /* sessions go here */
	char why[256]; /* what is missing and why, in words; or empty */
};

/* Files that the warden keeps open; -1 where a file does not exist. */
enum cgroup_file {
	CGROUP_F_MEMORY,      /* bytes charged */
	CGROUP_F_MEMORY_STAT, /* memory.stat */
	CGROUP_F_PEAK,	      /* highest charge */
	CGROUP_F_OOM,	      /* counts oom_kill */
	CGROUP_F_HITS,	      /* (v2) how often the limit was met */
	CGROUP_F_PIDS_EVENTS, /* forks refused */
	CGROUP_F_CPU,	      /* CPU time used */
	CGROUP_F_FREEZE,      /* the switch of the freezer */
	CGROUP_F_EVENTS,      /* (v2) whether all are frozen */
	/* Only between cgroup_hold_memory() and cgroup_fix_memory(): */
	CGROUP_F_MOST,	       /* the memory limit */
	CGROUP_F_MOST_SOCKETS, /* (v1) that of socket buffers */
	CGROUP_F_MOST_SWAP,    /* (v1) that of memory and swap together */
};
#define CGROUP_FILES 12

struct cgroup {
	enum cgroup_kind kind;
	unsigned enforced; /* CGROUP_LIMIT_*: limits that were read back */
	int enter[CGROUP_ABOVE + 1]; /* tasks (v1) or cgroup.procs (v2) */
	int file[CGROUP_FILES];
	int ndirs; /* directories of the session, the freezer's first */
	char dirs[CGROUP_CONTROLLERS][CGROUP_PATH_MAX];
	int held[CGROUP_CONTROLLERS];  /* each of `dirs`, locked; -1 not ours */
	int at[CGROUP_CONTROLLERS];    /* index in `dirs`; -1 no controller */
	int above[CGROUP_CONTROLLERS]; /* directories of ours above each of
					* `dirs`: 0 (delegated) to 2 */
	int64_t person;		       /* (caps) */
};

enum {
	CGROUP_LIMIT_MEMORY = 1,
	CGROUP_LIMIT_SWAP = 2, /* no swap beyond the memory limit */
	CGROUP_LIMIT_PIDS = 4,
	CGROUP_LIMIT_CPU = 8,
};

struct cgroup_usage {
	int64_t peak_bytes; /* highest charge, 0 unknown */
	int64_t cpu_ns;	    /* of all processes, the dead too; -1 unknown */
	int64_t oom_kills;  /* processes the kernel killed for memory */
	/* How often the session's own limit was met; -1 unknown (v1: failcnt
	 * is not kept by new kernels). */
	int64_t limit_hits;
	int64_t fork_fails; /* forks refused by the process limit */
};

/* Look at what this host offers. `with` and `also` become
 * caps->with[0] and [2]: the front end of the calling warden, and 0; or its
 * maker, and the front end.
 * `below` is a cgroup (v2) under the mount that root was delegated for
 * sessions; NULL, or where there is none of that name: one of our own. Makes
 * nothing and never fails: without a usable cgroup caps->kind is CGROUP_NONE
 * and caps->why says why. */
void cgroup_probe(
	struct cgroup_caps *caps, pid_t with, pid_t also, const char *below);

/* Sessions go into the directory of this person: the one that the person has
 * got with a session made ahead, while that is there, or else one with the
 * person's number. Nothing else of root's may choose or mark one for the person
 * until the session's own directory is there (ident_person_lock()). */
void cgroup_person_choose(struct cgroup_caps *caps, uid_t person);

/* A session made ahead goes into a directory of its own, which becomes a
 * person's when it is marked: a cgroup cannot be moved into another. -1 with e:
 * the kernel keeps no mark. */
void cgroup_person_choose_new(struct cgroup_caps *caps);
int cgroup_person_mark(const struct cgroup *cg, uid_t person, struct err *e);

/* 1 if each person has one share of the cores. */
int cgroup_person_has_shares(const struct cgroup *cg);

/* Where sessions lie in `below`: move into a leaf of it, out of the cgroup of
 * the service that started us. -1 with e. */
int cgroup_move_below(const struct cgroup_caps *caps, struct err *e);

/* Bound the memory of all sessions beside an open one together; 0: no more, if
 * the bound was ours. -1 with e when the kernel does not keep the bound. */
int cgroup_bound_all(const struct cgroup *cg, int64_t bytes, struct err *e);

/* How much of the bound is left for all sessions together, without what could
 * be reclaimed; INT64_MAX: there is no bound. */
int64_t cgroup_left_of_all(const struct cgroup *cg);

/* Decide where the session's directories will be. Makes nothing, so that the
 * janitor can know the place before there is anything to remove. `name` is a
 * file name that no living session shares (ident_allocation_name()); NULL: a
 * name from the caller's pid. With CGROUP_NONE the call succeeds and `cg` is
 * empty.
 */
int cgroup_place(struct cgroup *cg, const struct cgroup_caps *caps,
	const char *name, struct err *e);

/* Make the directories, set the limits and read them back into `enforced`. The
 * remains of a dead session of the same name are killed and removed first; a
 * living session of that name is an error. A limit that this host does not keep
 * is no error. -1: something broke, nothing is left behind, `cg` is empty. */
int cgroup_open(struct cgroup *cg, const struct cgroup_caps *caps,
	const struct limits *l, struct err *e);

/* Lower the limits of an open one to those of `l`, as root; of `cg` only what
 * is held is used. -1 with e when the kernel does not keep all that it kept. */
int cgroup_lower(
	const struct cgroup *cg, const struct limits *l, struct err *e);

/* Hold the file of the memory limit, so that cgroup_lower_memory() works in a
 * process that has given root up: until cgroup_fix_memory(), which comes before
 * any code of a person's runs. */
void cgroup_hold_memory(struct cgroup *cg);
void cgroup_fix_memory(struct cgroup *cg);

/* Lower the memory limit. 0, also where no cgroup keeps one; -1 with e. */
int cgroup_lower_memory(const struct cgroup *cg, int64_t bytes, struct err *e);

/* Close the descriptors. The directories stay for the janitor, and count as
 * those of a dead session. */
void cgroup_close(struct cgroup *cg);

/* Move the calling process, which must have one thread, into the leaf of the
 * warden. Its children follow. */
int cgroup_enter_warden(const struct cgroup *cg, struct err *e);

/* Move the calling process, which must have one thread, into the jail: into the
 * freezer's cgroup, or into all others. The guests are in the freezer's; pid 1,
 * which must go on serving, is not. Under v1 entering is far cheaper than being
 * moved: for a move the kernel waits until nobody else forks or execs. */
int cgroup_enter(const struct cgroup *cg, int freezer, struct err *e);

/* 1 if cgroup_freeze() works here. */
int cgroup_can_freeze(const struct cgroup *cg);

/* Freeze (`on`) or thaw the guests, and wait at most timeout_ms until every
 * task has followed. -1 with e, errno ETIMEDOUT if some task did not: the
 * cgroup is left freezing. */
int cgroup_freeze(
	const struct cgroup *cg, int on, int timeout_ms, struct err *e);

/* The resources that the jail uses, without its warden. */
void cgroup_usage(const struct cgroup *cg, struct cgroup_usage *u);

/* The same for the janitor, which has paths alone. */
void cgroup_usage_by_path(const struct cgroup *cg, struct cgroup_usage *u);

/* Bytes charged now, without what could be reclaimed. The kernel adds them up
 * when it is asked: that can take longer than all of cgroup_usage(). */
int64_t cgroup_memory(const struct cgroup *cg);

/* For the janitor, by path: kill everything in the session's directories and
 * remove them, waiting at most timeout_ms for the dying; and remove those above
 * that are our own and empty. Another session that uses the name by then is
 * left alone. */
int cgroup_remove(const struct cgroup *cg, int timeout_ms, struct err *e);

/* Afterwards: kill and remove cgroups of dead sessions that lie beside this
 * one, and in the directory of any person. A name made from an allocated uid
 * counts as dead only if is_dead() says so, which must then stay true until the
 * caller is done; NULL: none does. */
void cgroup_clear_dead(const struct cgroup *cg,
	int (*is_dead)(const char *name, void *arg), void *arg);

#endif
