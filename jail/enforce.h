/* SPDX-License-Identifier: MIT */
/*
 * enforce.h - what enforces each limit and each wall, and how strongly
 *
 * One table: for each limit the possible enforcers in order of preference,
 * the strength of each, and what to do where the best one is missing.
 * `--check`, `:limits`, the banner and jail.require all read it.
 */
#ifndef JAIL_ENFORCE_H
#define JAIL_ENFORCE_H

#include <stddef.h>

struct err;

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
	ENFORCE_LOCKS,
	ENFORCE_FILES,
	ENFORCE_INODES,
	ENFORCE_USER,
	ENFORCE_MOUNTS,
	ENFORCE_LANDLOCK,
	ENFORCE_PROC,
	ENFORCE_STOPPING,
	ENFORCE_SHARES,
};
#define ENFORCE_LIMITS 20

/* Strong: the kernel enforces the limit, whatever a cell does. Weak: ordinary
 * code keeps within the limit; hostile code can exceed it for a while. */
enum enforce_strength { ENFORCE_NONE, ENFORCE_WEAK, ENFORCE_STRONG };

/* The facts about a host and a session's cgroup. A plain value: it crosses a
 * socket in a jail_event. */
struct enforce_facts {
	int known; /* 0: the warden failed before it knew any of these */
	int kernel_major, kernel_minor; /* 0: unreadable */
	int jail;			/* a jail can be built */
	int cgroup;			/* version in use, 0: none */
	/* Enforced by the cgroup; cpus is 2 where each person has one share of
	 * the cores, too. */
	int memory, swap, pids, cpus, cpu, freezer;
	int no_host_swap; /* there is no swap on the host */
	int nproc_own;	  /* RLIMIT_NPROC counts this session alone */
	int landlock_abi;
	int mount_setattr;
	int own_nodes;	/* the device nodes are the session's own */
	int own_inodes; /* and so are the inodes of all that is shown */
	int proc;	/* the jail has a /proc */
	int asks;	/* guests can ask pid 1 */
	int seccomp; /* instructions of the filter, 0: none for this machine */
	int root, delegated;  /* a cgroup was delegated to this user */
	int scope;	      /* by their systemd, when it was asked */
	int contained;	      /* in a container, whose cgroup is not ours */
	char cgroup_why[256]; /* why there is no better cgroup; or empty */
};

/* How one limit is enforced here. */
struct enforce {
	const char *what; /* "memory" */
	const char *word; /* in jail.require, or NULL */
	const char *by;	  /* "cgroup v2" */
	enum enforce_strength strength;
	const char *remedy; /* NULL when strong; may point into the facts */
};

/* One row. *number (may be NULL) is the enforcer's place in the table. */
struct enforce enforce_look(
	enum enforce_limit limit, const struct enforce_facts *f, int *number);

/* The words for an enforcer, by its place in the table; "?" for none. */
const char *enforce_by(enum enforce_limit limit, int number);

const char *enforce_strength_name(enum enforce_strength s);

/* The limit that a word of jail.require stands for, -1 for none; the word of a
 * limit, or NULL; and all words. */
int enforce_word_find(const char *word);
const char *enforce_word(enum enforce_limit limit);
void enforce_words(char *buf, size_t size);

/* Check that each required limit is strong here. `skip` is a limit that is not
 * known yet, or -1. -1 with e: the word, what is missing, what to do. */
int enforce_require(const char *const *words, const struct enforce_facts *f,
	int skip, struct err *e);

/* Write the limits that are not strong here, in a few words for a person; empty
 * if all are. */
void enforce_say(const struct enforce_facts *f, char *buf, size_t size);

#endif
