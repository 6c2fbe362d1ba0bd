/* SPDX-License-Identifier: MIT */
/*
 * v1.c - a hierarchy for each controller; for root alone
 *
 * Runs in:   warden, see cgroup.c
 * Leaves:    MOUNT/cellblock/NAME in each hierarchy
 */
#include "dir.h"
#include "jail/base/io.h"
#include "jail/host/host.h"
#include "jail/plan/plan.h"
#include "ops.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* Socket buffers may take this part of the memory limit, beyond it. */
#define SOCKETS_DEN 8

/* Whether `word` is one of the comma separated `list`. */
static int list_has(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = list; p; p = strchr(p, ',')) {
		p += *p == ',';
		if (!strncmp(p, word, n) && (p[n] == ',' || p[n] == '\0'))
			return 1;
	}
	return 0;
}

static void probe_controller(
	struct cgroup_caps *caps, const struct cgroup_mount *m, int n, int c)
{
	for (int i = 0; i < n; i++) {
		if (m[i].v2 ||
			!list_has(m[i].options, cgroup_dir_controllers[c]) ||
			faccessat(AT_FDCWD, m[i].point, W_OK | X_OK,
				AT_EACCESS) < 0)
			continue;
		if (snprintf(caps->dir[c], CGROUP_PATH_MAX, "%s/cellblock",
			    m[i].point) < CGROUP_PATH_MAX)
			caps->usable |= 1u << c;
		return;
	}
}

static int probe(struct cgroup_caps *caps, const struct cgroup_mount *m, int n)
{
	/* v1 has no safe delegation. */
	if (geteuid() != 0)
		return 0;
	for (int c = 0; c < CGROUP_CONTROLLERS; c++)
		probe_controller(caps, m, n, c);
	if (!caps->usable)
		return 0;
	caps->kind = CGROUP_V1;
	return 1;
}

static const struct {
	enum cgroup_controller in;
	enum cgroup_file file;
	const char *name;
	int flags;
} files[] = {
	{CGROUP_MEMORY, CGROUP_F_MEMORY, "memory.usage_in_bytes", O_RDONLY},
	{CGROUP_MEMORY, CGROUP_F_MEMORY_STAT, "memory.stat", O_RDONLY},
	{CGROUP_MEMORY, CGROUP_F_PEAK, "memory.max_usage_in_bytes", O_RDONLY},
	{CGROUP_MEMORY, CGROUP_F_OOM, "memory.oom_control", O_RDONLY},
	{CGROUP_PIDS, CGROUP_F_PIDS_EVENTS, "pids.events", O_RDONLY},
	{CGROUP_CPUACCT, CGROUP_F_CPU, "cpuacct.usage", O_RDONLY},
	{CGROUP_FREEZER, CGROUP_F_FREEZE, "freezer.state", O_RDWR},
};

/* The directory of a controller, -1 where there is none. */
static int dir_of(const struct cgroup *cg, enum cgroup_controller c)
{
	return cg->at[c] < 0 ? -1 : cg->held[cg->at[c]];
}

static int make(
	struct cgroup *cg, const struct cgroup_caps *caps, struct err *e)
{
	(void)caps;
	for (int c = CGROUP_CONTROLLERS - 1; c >= 0; c--) {
		int i = cg->at[c];

		/* Of controllers that are mounted together the first makes the
		 * directory. */
		if (i < 0 || cg->held[i] >= 0)
			continue;
		cg->held[i] = cgroup_dir_make(cg->dirs[i], e);
		if (cg->held[i] < 0)
			return -1;
		cg->enter[c] =
			openat(cg->held[i], "tasks", O_WRONLY | O_CLOEXEC);
		if (cg->enter[c] < 0)
			return err_errno(e, "cgroup: open tasks of %s",
				cgroup_dir_controllers[c]);
	}
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		int dir = dir_of(cg, files[i].in);

		if (dir >= 0)
			cg->file[files[i].file] = openat(
				dir, files[i].name, files[i].flags | O_CLOEXEC);
	}
	return 0;
}

static unsigned limit_memory(int dir, const struct limits *l)
{
	static const char memsw[] = "memory.memsw.limit_in_bytes";
	unsigned kept = 0;

	if (cgroup_dir_set_number(
		    dir, "memory.limit_in_bytes", l->memory_bytes))
		kept |= CGROUP_LIMIT_MEMORY;
	/* TCP and UDP buffers inside the jail are counted apart, and only once
	 * they have a limit. */
	cgroup_dir_set_number(dir, "memory.kmem.tcp.limit_in_bytes",
		l->memory_bytes / SOCKETS_DEN);
	cgroup_dir_write(dir, "memory.swappiness", "0");
	/* Memory and swap together; does not exist with swapaccount=0. */
	if (faccessat(dir, memsw, F_OK, 0) == 0
			? cgroup_dir_set_number(dir, memsw, l->memory_bytes)
			: !host_has_swap())
		kept |= CGROUP_LIMIT_SWAP;
	return kept;
}

static unsigned limit(const struct cgroup *cg, const struct limits *l)
{
	int memory = dir_of(cg, CGROUP_MEMORY), pids = dir_of(cg, CGROUP_PIDS);
	int cpu = dir_of(cg, CGROUP_CPU);
	unsigned kept = 0;

	if (memory >= 0)
		kept |= limit_memory(memory, l);
	if (pids >= 0 &&
		cgroup_dir_set_number(pids, "pids.max",
			(int64_t)l->processes + plan_spare_processes(l)))
		kept |= CGROUP_LIMIT_PIDS;
	if (cpu >= 0 &&
		cgroup_dir_set_number(
			cpu, "cpu.cfs_period_us", CGROUP_CPU_PERIOD) &&
		cgroup_dir_set_number(cpu, "cpu.cfs_quota_us",
			(int64_t)l->cpus_milli * (CGROUP_CPU_PERIOD / 1000)))
		kept |= CGROUP_LIMIT_CPU;
	return kept;
}

static int is_frozen(const struct cgroup *cg, int on)
{
	char state[32];

	return cgroup_dir_reread(
		       cg->file[CGROUP_F_FREEZE], state, sizeof(state)) > 0 &&
	       !strcmp(state, on ? "FROZEN\n" : "THAWED\n");
}

static int64_t cpu_ns(const struct cgroup *cg)
{
	char buf[64];

	return cgroup_dir_reread(cg->file[CGROUP_F_CPU], buf, sizeof(buf)) > 0
		       ? strtoll(buf, NULL, 10)
		       : -1;
}

const struct cgroup_ops cgroup_v1 = {
	.probe = probe,
	.make = make,
	.limit = limit,
	.freeze = {"THAWED", "FROZEN"},
	.is_frozen = is_frozen,
	.cpu_ns = cpu_ns,
	.stat_prefix = "total_",
};
