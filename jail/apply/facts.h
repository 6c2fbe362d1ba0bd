/* SPDX-License-Identifier: MIT */
/*
 * facts.h - what a host and a session's cgroup offer to enforce limits with
 */
#ifndef JAIL_APPLY_FACTS_H
#define JAIL_APPLY_FACTS_H

struct cgroup;
struct cgroup_caps;
struct enforce_facts;
struct host;

/* Start from the host. Whether user namespaces work and the jail can have a
 * /proc shows only when a jail is built; until then both are assumed. */
void facts_of_host(struct enforce_facts *f, const struct host *h);

/* Add what the session's cgroup keeps of its limits. */
void facts_of_cgroup(struct enforce_facts *f, const struct cgroup *cg,
	const struct cgroup_caps *caps);

#endif
