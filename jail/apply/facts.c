/* SPDX-License-Identifier: MIT */
/*
 * facts.c - what a host and a session's cgroup offer to enforce limits with
 *
 * Runs in:   warden, before the jail is built
 * Trusts:    the kernel: limits as they were read back, no version number
 *            where a better test exists
 */
#include "facts.h"

#include "jail/enforce.h"
#include "jail/host/host.h"
#include "jail/walls/cgroup/cgroup.h"
#include "jail/walls/seccomp.h"

#include <stdio.h>

void facts_of_host(struct enforce_facts *f, const struct host *h)
{
	*f = (struct enforce_facts){
		.known = 1,
		.kernel_major = h->kernel_major,
		.kernel_minor = h->kernel_minor,
		.jail = 1,
		.no_host_swap = !host_has_swap(),
		.nproc_own = h->nproc_own,
		.landlock_abi = h->landlock_abi,
		.mount_setattr = h->mount_setattr,
		.proc = !h->no_proc,
		.seccomp = seccomp_size(SECCOMP_GUEST),
		.root = h->euid == 0,
	};
}

void facts_of_cgroup(struct enforce_facts *f, const struct cgroup *cg,
	const struct cgroup_caps *caps)
{
	static const int versions[] = {
		[CGROUP_NONE] = 0, [CGROUP_V1] = 1, [CGROUP_V2] = 2};

	f->cgroup = versions[cg->kind];
	f->memory = !!(cg->enforced & CGROUP_LIMIT_MEMORY);
	f->swap = !!(cg->enforced & CGROUP_LIMIT_SWAP);
	f->pids = !!(cg->enforced & CGROUP_LIMIT_PIDS);
	f->cpus = !!(cg->enforced & CGROUP_LIMIT_CPU);
	f->cpu = cg->file[CGROUP_F_CPU] >= 0;
	f->freezer = cgroup_can_freeze(cg);
	f->delegated = caps->shared;
	snprintf(f->cgroup_why, sizeof(f->cgroup_why), "%s", caps->why);
}
