/* SPDX-License-Identifier: MIT */
/*
 * enforce.h - what keeps each limit and each wall, and how strongly
 *
 * One table: for every limit, who could enforce it in order of preference,
 * how strong each of them is, and what to do where the best one is missing.
 * `--check`, `:limits`, the banner and jail.require all read it.
 */
#ifndef JAIL_APPLY_ENFORCE_H
#define JAIL_APPLY_ENFORCE_H

#include <stddef.h>

struct cgroup;
struct cgroup_caps;
struct err;
struct host;

enum enforce_limit {
	ENFORCE_JAIL,
	ENFORCE_CGROUP,
	ENFORCE_MEMORY,
	ENFORCE_SWAP,
	ENFORCE_PROCESSES,
	ENFORCE_CPUS,
	ENFORCE_CPU,
	ENFORCE_TIME,
	ENFORCE_HOME,
	ENFORCE_NETWORK,
	ENFORCE_CALLS,
	ENFORCE_FILES,
	ENFORCE_MOUNTS,
	ENFORCE_LANDLOCK,
	ENFORCE_PROC,
	ENFORCE_STOPPING,
};
#define ENFORCE_LIMITS 16

/* Strong: the kernel keeps it, whatever a cell does. Weak: kept against what
 * is ordinary, and a cell that sets out to can exceed it for a while. */
enum enforce_strength { ENFORCE_NONE, ENFORCE_WEAK, ENFORCE_STRONG };

/* What is there to enforce with. */
struct enforce_facts {
	int userns;
	int cgroup; /* version of those that can be used, 0: none */
	int memory, swap, pids, cpus, cpu, freezer; /* kept by a cgroup */
	int host_swap;				    /* there is swap at all */
	int nproc_own;
	int landlock_abi;
	int mount_setattr;
	int proc;
	int seccomp; /* instructions of the filter, 0: none for this machine */
	int root, delegated;	   /* a cgroup was handed to this user */
	const char *userns_remedy; /* borrowed; or NULL */
	const char *cgroup_remedy; /* why there is no better one; or NULL */
};

/* How one limit is enforced here. */
struct enforce {
	const char *what; /* "memory" */
	const char *word; /* in jail.require, or NULL */
	const char *by;	  /* "cgroup v2" */
	enum enforce_strength strength;
	const char *remedy; /* NULL when strong */
};

/* The facts of a host, and of the session's cgroup as it was made. */
void enforce_facts(struct enforce_facts *f, const struct host *h,
	const struct cgroup *cg, const struct cgroup_caps *caps);

/* One row. *number is the enforcer's place in the table. */
struct enforce enforce_look(
	enum enforce_limit limit, const struct enforce_facts *f, int *number);

/* The words of an enforcer by its place in the table; "?" for none. */
const char *enforce_by(enum enforce_limit limit, int number);

const char *enforce_strength_name(enum enforce_strength s);

/* Whether jail.require may hold this word, and all that it may hold. */
int enforce_word_is_known(const char *word);
void enforce_words(char *buf, size_t size);

/* Whether what is required is strong here. `skip`: a limit that is not known
 * yet, or -1. -1 with e: the word, what is missing, what to do. */
int enforce_require(const char *const *words, const struct enforce_facts *f,
	int skip, struct err *e);

/* What a person must know of what is not strong here, in a few words; empty
 * when there is nothing to say. */
void enforce_say(const struct enforce_facts *f, char *buf, size_t size);

#endif
