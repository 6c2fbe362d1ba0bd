/* SPDX-License-Identifier: MIT */
/*
 * v1.c - a hierarchy for each controller; root's alone
 *
 * Runs in:   warden, see cgroup.c
 * Leaves:    MOUNT/cellblock/NAME in each hierarchy
 */
#include "impl.h"
#include "jail/base/io.h"
#include "jail/host/host.h"
#include "jail/plan/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Buffers of sockets may take this part of the memory limit, beside it. */
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
		if (m[i].v2 || !list_has(m[i].options, cgroup_names.name[c]))
			continue;
		if (!cgroup_dir_writable(m[i].point))
			continue;
		if ((size_t)snprintf(caps->dir[c], CGROUP_PATH_MAX,
			    "%s/cellblock", m[i].point) < CGROUP_PATH_MAX)
			caps->usable |= 1u << c;
		return;
	}
}

int cgroup_v1_probe(
	struct cgroup_caps *caps, const struct cgroup_mount *m, int n)
{
	/* Only root's writes are safe there: v1 has no delegation. */
	if (geteuid() != 0)
		return 0;
	for (int c = 0; c < CGROUP_CONTROLLERS; c++)
		probe_controller(caps, m, n, c);
	if (!caps->usable)
		return 0;
	caps->kind = CGROUP_V1;
	return 1;
}

static void limit_memory(struct cgroup *cg, int dir, const struct limits *l)
{
	if (cgroup_set_limit(cg, dir, "memory.limit_in_bytes", l->memory_bytes,
		    "memory"))
		cg->enforced |= CGROUP_LIMIT_MEMORY;
	/* What TCP and UDP have on its way inside the jail is counted apart,
	 * and not before it has a limit. */
	if (faccessat(dir, "memory.kmem.tcp.limit_in_bytes", F_OK, 0) == 0)
		cgroup_set_limit(cg, dir, "memory.kmem.tcp.limit_in_bytes",
			l->memory_bytes / SOCKETS_DEN, "socket buffers");
	cgroup_write(dir, "memory.swappiness", "0");
	/* Memory and swap together; not there with swapaccount=0. */
	if (faccessat(dir, "memory.memsw.limit_in_bytes", F_OK, 0) == 0) {
		if (cgroup_set_limit(cg, dir, "memory.memsw.limit_in_bytes",
			    l->memory_bytes, "swap"))
			cg->enforced |= CGROUP_LIMIT_SWAP;
	} else if (!host_has_swap()) {
		cg->enforced |= CGROUP_LIMIT_SWAP;
	} else {
		cgroup_refuse(cg, "swap");
	}
}

static void limit_pids(struct cgroup *cg, int dir, const struct limits *l)
{
	if (cgroup_set_limit(cg, dir, "pids.max",
		    (int64_t)l->processes + plan_spare_processes(l),
		    "processes"))
		cg->enforced |= CGROUP_LIMIT_PIDS;
}

static void limit_cpu(struct cgroup *cg, int dir, const struct limits *l)
{
	if (cgroup_set_limit(
		    cg, dir, "cpu.cfs_period_us", CGROUP_CPU_PERIOD, "cpus") &&
		cgroup_set_limit(cg, dir, "cpu.cfs_quota_us",
			(int64_t)l->cpus_milli * (CGROUP_CPU_PERIOD / 1000),
			"cpus"))
		cg->enforced |= CGROUP_LIMIT_CPU;
}

struct v1_file {
	enum cgroup_controller c;
	enum cgroup_file file;
	const char *name;
	int flags;
};

static const struct v1_file files[] = {
	{CGROUP_MEMORY, CGROUP_F_MEMORY, "memory.usage_in_bytes", O_RDONLY},
	{CGROUP_MEMORY, CGROUP_F_MEMORY_STAT, "memory.stat", O_RDONLY},
	{CGROUP_MEMORY, CGROUP_F_PEAK, "memory.max_usage_in_bytes", O_RDONLY},
	{CGROUP_MEMORY, CGROUP_F_OOM, "memory.oom_control", O_RDONLY},
	{CGROUP_PIDS, CGROUP_F_PIDS_EVENTS, "pids.events", O_RDONLY},
	{CGROUP_CPUACCT, CGROUP_F_CPU, "cpuacct.usage", O_RDONLY},
	{CGROUP_FREEZER, CGROUP_F_FREEZE, "freezer.state", O_RDWR},
};

static void limit_one(struct cgroup *cg, int dir, const struct limits *l, int c)
{
	switch ((enum cgroup_controller)c) {
	case CGROUP_MEMORY:
		limit_memory(cg, dir, l);
		break;
	case CGROUP_PIDS:
		limit_pids(cg, dir, l);
		break;
	case CGROUP_CPU:
		limit_cpu(cg, dir, l);
		break;
	case CGROUP_CPUACCT:
	case CGROUP_FREEZER:
		break;
	}
}

static int make_one(
	struct cgroup *cg, const struct limits *l, int c, struct err *e)
{
	int dir = cg->held[cg->at[c]];

	/* Others may be mounted together with it, and came first. */
	if (dir < 0) {
		if (cgroup_dir_make(cg, cg->at[c], e) < 0)
			return -1;
		dir = cg->held[cg->at[c]];
		cg->procs[c] =
			openat(dir, "cgroup.procs", O_WRONLY | O_CLOEXEC);
		if (cg->procs[c] < 0)
			return err_errno(e, "cgroup: open cgroup.procs of %s",
				cgroup_names.name[c]);
		cg->tasks[c] = openat(dir, "tasks", O_WRONLY | O_CLOEXEC);
	}
	limit_one(cg, dir, l, c);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if ((int)files[i].c == c)
			cg->file[files[i].file] = openat(
				dir, files[i].name, files[i].flags | O_CLOEXEC);
	return 0;
}

int cgroup_v1_make(struct cgroup *cg, const struct cgroup_caps *caps,
	const struct limits *l, struct err *e)
{
	for (int c = CGROUP_CONTROLLERS - 1; c >= 0; c--) {
		if (!(caps->usable & 1u << c))
			continue;
		if (make_one(cg, l, c, e) < 0)
			return -1;
	}
	return 0;
}

int cgroup_v1_freeze(
	const struct cgroup *cg, int on, int timeout_ms, struct err *e)
{
	int64_t until = now_ms() + timeout_ms;
	const char *want = on ? "FROZEN" : "THAWED";
	int fd = cg->file[CGROUP_F_FREEZE];
	char state[32];

	if (cgroup_write_fd(fd, want) < 0)
		return err_errno(e, "cgroup: write %s", want);
	/* No notification: look again. Each look also makes the kernel look. */
	for (;;) {
		if (cgroup_read_fd(fd, state, sizeof(state)) > 0 &&
			!strncmp(state, want, strlen(want)))
			return 0;
		if (now_ms() >= until)
			break;
		cgroup_nap();
	}
	errno = ETIMEDOUT;
	return err_errno(e, "cgroup: reach %s", want);
}
