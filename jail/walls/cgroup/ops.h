/* SPDX-License-Identifier: MIT */
/*
 * ops.h - how the two versions of cgroups differ
 *
 * cgroup.c chooses one of these tables; neither version knows the other.
 */
#ifndef JAIL_WALLS_CGROUP_OPS_H
#define JAIL_WALLS_CGROUP_OPS_H

#include "cgroup.h"

/* The period of a CPU share, microseconds. */
#define CGROUP_CPU_PERIOD 100000
/* In a delegated cgroup our names begin with this. */
#define CGROUP_PREFIX "cellblock-"

/* A line of /proc/self/mountinfo about a cgroup file system. */
struct cgroup_mount {
	char point[CGROUP_PATH_MAX];
	char options[256]; /* of the super block: names the v1 controllers */
	int v2;
};

struct cgroup_ops {
	/* Look for usable controllers; set kind, usable, dir, and shared. 0 if
	 * there are none. Makes nothing. */
	int (*probe)(
		struct cgroup_caps *caps, const struct cgroup_mount *m, int n);
	/* Make the directories that were placed, and open what the warden
	 * keeps. */
	int (*make)(struct cgroup *cg, const struct cgroup_caps *caps,
		struct err *e);
	/* Set the limits: the CGROUP_LIMIT_* that the kernel keeps. May be
	 * called again with other limits. */
	unsigned (*limit)(const struct cgroup *cg, const struct limits *l);
	/* What to write into CGROUP_F_FREEZE: [0] to thaw, [1] to freeze. */
	const char *freeze[2];
	/* Whether all have followed that. */
	int (*is_frozen)(const struct cgroup *cg, int on);
	/* CPU time used so far, -1 unknown. */
	int64_t (*cpu_ns)(const struct cgroup *cg);
	/* What the keys in memory.stat begin with that count the cgroups below
	 * too. */
	const char *stat_prefix;
};

extern const struct cgroup_ops cgroup_v1, cgroup_v2;

#endif
