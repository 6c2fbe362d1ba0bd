/* SPDX-License-Identifier: MIT */
/*
 * cgroup_v2.c - one hierarchy, in a part of it that was handed to us
 *
 * Runs in:   warden, see cgroup.c
 * Leaves:    MOUNT/cellblock/NAME (root), or OWN/cellblock-NAME (delegated)
 *
 * A cgroup with processes of its own cannot hand controllers on. So where the
 * delegated cgroup holds nothing but this program (as under systemd-run
 * --scope -p Delegate=yes), the program first moves itself into a leaf of it.
 * Other people's processes are never moved.
 */
#include "cgroup_impl.h"
#include "io.h"
#include "plan.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The cgroup this process is in, below the mount; empty if it is out of
 * sight (a cgroup namespace of someone else's). */
static void own_path(char *path, size_t size)
{
	char buf[8192] = "\n"; /* so that each line begins after a newline */
	char *p;

	path[0] = '\0';
	if (cgroup_read(AT_FDCWD, "/proc/self/cgroup", buf + 1,
		    sizeof(buf) - 1) <= 0)
		return;
	p = strstr(buf, "\n0::");
	if (!p)
		return;
	p += strlen("\n0::");
	p[strcspn(p, "\n")] = '\0';
	if (strncmp(p, "/..", 3))
		snprintf(path, size, "%s", strcmp(p, "/") ? p : "");
}

static unsigned controllers(const char *dir)
{
	auto_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char buf[512];
	char *save = NULL;
	unsigned found = 0;

	if (fd < 0 ||
		cgroup_read(fd, "cgroup.controllers", buf, sizeof(buf)) < 0)
		return 0;
	for (char *w = strtok_r(buf, " \n", &save); w;
		w = strtok_r(NULL, " \n", &save))
		for (int c = 0; c <= CGROUP_CPU; c++)
			if (!strcmp(w, cgroup_names.name[c]))
				found |= 1u << c;
	return found;
}

/* Root's sessions go below the mount; others' into what was delegated to
 * them, if anything was. */
static int find_base(
	char *base, size_t size, const char *mount, struct cgroup_caps *caps)
{
	char own[CGROUP_PATH_MAX];

	if (geteuid() == 0) {
		snprintf(base, size, "%s", mount);
		return cgroup_dir_writable(base);
	}
	own_path(own, sizeof(own));
	if ((size_t)snprintf(base, size, "%s%s", mount, own) < size && own[0] &&
		cgroup_dir_writable(base))
		return 1;
	snprintf(caps->why, sizeof(caps->why),
		"no cgroup is delegated to this user");
	return 0;
}

int cgroup_v2_probe(
	struct cgroup_caps *caps, const struct cgroup_mount *m, int n)
{
	char base[CGROUP_PATH_MAX];

	for (int i = 0; i < n; i++) {
		if (!m[i].v2 ||
			!find_base(base, sizeof(base), m[i].point, caps))
			continue;
		caps->usable = controllers(base);
		/* Without the memory controller v1 may offer more. */
		if (!(caps->usable & 1u << CGROUP_MEMORY)) {
			caps->usable = 0;
			continue;
		}
		caps->shared = geteuid() != 0;
		caps->usable |= 1u << CGROUP_CPUACCT | 1u << CGROUP_FREEZER;
		for (int c = 0; c < CGROUP_CONTROLLERS; c++)
			if ((size_t)snprintf(caps->dir[c], CGROUP_PATH_MAX,
				    "%s%s", base,
				    caps->shared ? "" : "/cellblock") >=
				CGROUP_PATH_MAX)
				return 0;
		caps->kind = CGROUP_V2;
		caps->why[0] = '\0';
		return 1;
	}
	return 0;
}

/* Whether nobody but this process and its parent is in the cgroup. */
static int only_us(int dir)
{
	char buf[4096];
	char *end;

	if (cgroup_read(dir, "cgroup.procs", buf, sizeof(buf)) < 0)
		return 0;
	for (char *p = buf; *p; p = end + 1) {
		long pid = strtol(p, &end, 10);

		if (*end != '\n' || (pid != getpid() && pid != getppid()))
			return 0;
	}
	return 1;
}

/* Move this process and its parent into a leaf. */
static int make_room(int dir, struct err *e)
{
	auto_close int leaf = -1;
	char text[16];

	if (!only_us(dir))
		return err_set(
			e, "cgroup: other processes are in the delegated one");
	if (mkdirat(dir, "cellblock-host", 0755) < 0 && errno != EEXIST)
		return err_errno(e, "cgroup: make cellblock-host");
	leaf = openat(dir, "cellblock-host",
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (leaf < 0)
		return err_errno(e, "cgroup: open cellblock-host");
	snprintf(text, sizeof(text), "%d", (int)getppid());
	cgroup_write(leaf, "cgroup.procs", text);
	if (cgroup_write(leaf, "cgroup.procs", "0") < 0)
		return err_errno(e, "cgroup: move into cellblock-host");
	return 0;
}

/* Hand the controllers on from `path` to what is below it. */
static int hand_on(const char *path, unsigned usable, struct err *e)
{
	auto_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int room = 0;

	if (dir < 0)
		return err_errno(e, "cgroup: open %s", path);
	for (int c = 0; c <= CGROUP_CPU; c++) {
		char text[16];

		if (!(usable & 1u << c))
			continue;
		snprintf(text, sizeof(text), "+%s", cgroup_names.name[c]);
		if (cgroup_write(dir, "cgroup.subtree_control", text) == 0)
			continue;
		if (errno != EBUSY || room++)
			return err_errno(e, "cgroup: hand on %s in %s",
				cgroup_names.name[c], path);
		if (make_room(dir, e) < 0)
			return -1;
		c--; /* again */
	}
	return 0;
}

static int prepare(const struct cgroup_caps *caps, struct err *e)
{
	const char *dir = caps->dir[0];
	char above[CGROUP_PATH_MAX];

	if (caps->shared)
		return hand_on(dir, caps->usable, e);
	memcpy(above, dir, sizeof(above));
	*strrchr(above, '/') = '\0';
	if (hand_on(above, caps->usable, e) < 0)
		return -1;
	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		return err_errno(e, "cgroup: make %s", dir);
	return hand_on(dir, caps->usable, e);
}

static void limit_cpu(struct cgroup *cg, int dir, const struct limits *l)
{
	char text[48], back[64];

	snprintf(text, sizeof(text), "%d %d",
		l->cpus_milli * (CGROUP_CPU_PERIOD / 1000), CGROUP_CPU_PERIOD);
	if (cgroup_write(dir, "cpu.max", text) == 0 &&
		cgroup_read(dir, "cpu.max", back, sizeof(back)) > 0 &&
		!strncmp(back, text, strlen(text)))
		cg->enforced |= CGROUP_LIMIT_CPU;
	else
		cgroup_refuse(cg, "cpus");
}

static void set_limits(struct cgroup *cg, int dir,
	const struct cgroup_caps *caps, const struct limits *l)
{
	char back[64];

	if (cgroup_set_limit(cg, dir, "memory.max", l->memory_bytes, "memory"))
		cg->enforced |= CGROUP_LIMIT_MEMORY;
	/* Not there without swap accounting. */
	if (cgroup_write(dir, "memory.swap.max", "0") == 0 &&
		cgroup_read(dir, "memory.swap.max", back, sizeof(back)) > 0 &&
		!strcmp(back, "0\n"))
		cg->enforced |= CGROUP_LIMIT_SWAP;
	else
		cgroup_refuse(cg, "swap");
	/* One process dies, not all: the checkpoint is to live. */
	cgroup_write(dir, "memory.oom.group", "0");
	if (!(caps->usable & 1u << CGROUP_PIDS))
		cgroup_refuse(cg, "processes");
	else if (cgroup_set_limit(cg, dir, "pids.max",
			 (int64_t)l->processes + plan_spare_processes(l),
			 "processes"))
		cg->enforced |= CGROUP_LIMIT_PIDS;
	if (caps->usable & 1u << CGROUP_CPU)
		limit_cpu(cg, dir, l);
	else
		cgroup_refuse(cg, "cpus");
}

struct v2_file {
	enum cgroup_file file;
	const char *name;
	int flags;
};

static const struct v2_file files[] = {
	{CGROUP_F_MEMORY, "memory.current", O_RDONLY},
	{CGROUP_F_MEMORY_STAT, "memory.stat", O_RDONLY},
	{CGROUP_F_OOM, "memory.events", O_RDONLY},
	{CGROUP_F_PIDS, "pids.current", O_RDONLY},
	{CGROUP_F_PIDS_EVENTS, "pids.events", O_RDONLY},
	{CGROUP_F_CPU, "cpu.stat", O_RDONLY},
	{CGROUP_F_FREEZE, "cgroup.freeze", O_RDWR},
	{CGROUP_F_EVENTS, "cgroup.events", O_RDONLY},
	{CGROUP_F_KILL, "cgroup.kill", O_WRONLY},
};

static int open_files(struct cgroup *cg, int dir, struct err *e)
{
	cg->procs[CGROUP_FREEZER] =
		openat(dir, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	if (cg->procs[CGROUP_FREEZER] < 0)
		return err_errno(e, "cgroup: open cgroup.procs");
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		cg->file[files[i].file] =
			openat(dir, files[i].name, files[i].flags | O_CLOEXEC);
	/* From 5.19 it can be read, from 6.12 started over. */
	cg->file[CGROUP_F_PEAK] =
		openat(dir, "memory.peak", O_RDWR | O_CLOEXEC);
	if (cg->file[CGROUP_F_PEAK] < 0)
		cg->file[CGROUP_F_PEAK] =
			openat(dir, "memory.peak", O_RDONLY | O_CLOEXEC);
	return 0;
}

int cgroup_v2_make(struct cgroup *cg, const struct cgroup_caps *caps,
	const struct limits *l, const char *name, struct err *e)
{
	auto_close int dir = -1;
	char prefixed[96];

	if (prepare(caps, e) < 0)
		return -1;
	snprintf(prefixed, sizeof(prefixed), "%s%s",
		caps->shared ? "cellblock-" : "", name);
	dir = cgroup_dir_make(cg, caps->dir[0], prefixed, e);
	if (dir < 0)
		return -1;
	set_limits(cg, dir, caps, l);
	if (open_files(cg, dir, e) < 0)
		return -1;
	cg->killdir = fd_take(&dir);
	return 0;
}

int cgroup_v2_freeze(
	const struct cgroup *cg, int on, int timeout_ms, struct err *e)
{
	int64_t until = now_ms() + timeout_ms;
	struct pollfd p = {.fd = cg->file[CGROUP_F_EVENTS], .events = POLLPRI};

	if (cgroup_write_fd(cg->file[CGROUP_F_FREEZE], on ? "1" : "0") < 0)
		return err_errno(e, "cgroup: write cgroup.freeze");
	for (;;) {
		char buf[256];
		int64_t left = until - now_ms();

		if (cgroup_read_fd(p.fd, buf, sizeof(buf)) > 0 &&
			cgroup_key(buf, "frozen") == on)
			return 0;
		if (left <= 0)
			break;
		poll(&p, 1, (int)left);
	}
	errno = ETIMEDOUT;
	return err_errno(e, "cgroup: %s", on ? "freeze" : "thaw");
}
