/* SPDX-License-Identifier: MIT */
/*
 * versions.c - how the two versions of cgroups differ
 *
 * Runs in:   warden, see cgroup.c
 * Leaves:    v1: MOUNT/cellblock/NAME in the hierarchy of each controller, in
 *            that of cpu MOUNT/cellblock/PERSON/NAME
 *            v2: MOUNT/cellblock/PERSON/NAME (root), or BASE/cellblock-NAME
 *            (delegated); the controllers handed on above it; in a delegated
 *            cgroup that was ours alone, the leaf we moved into
 *            both: in NAME the leaf of the jail, with that of the guests where
 *            they are frozen, and the leaf of the warden
 *
 * A session is charged for all that works for it: a front end that has its
 * warden work, or keep memory, pays for that from the session's share of the
 * cores and the limits of its leaf. Memory and processes have a limit for
 * each leaf and none for both, so that a cell which takes all there is takes
 * nothing from its warden, and the kernel never kills one for the other. The
 * cores are shared, because one of the two is mostly at rest: while a cell
 * computes its warden has a half where it needs it, and no cell runs while the
 * share is used up.
 */
#include "impl.h"

#include "jail/base/io.h"
#include "jail/base/procstat.h"
#include "jail/host/host.h"
#include "jail/plan/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The period of a CPU share, microseconds. */
#define CPU_PERIOD 100000
/* (v2) The leaf that this program moves into. */
#define HOST CGROUP_PREFIX "host"
/* (v2) How often it is made room: processes of ours are forked meanwhile. */
#define ROOM_TRIES 8
/* The warden's leaf: for each warden, of which there may be one with four
 * beside it, a list of the home (24 MiB while it grows), its helper process,
 * and what the kernel keeps for both and for namespaces and mounts; for each
 * file of the home, which a front end may make through the warden, an inode
 * with its name (1.5 KiB). */
#define WARDEN_BYTES (128LL << 20)
#define WARDEN_FILE_BYTES 2048
#define WARDEN_PROCESSES 32
/* (v1) Socket buffers may take this part of the memory limit, beyond it. */
#define SOCKETS_DEN 8

const char *const cgroup_controllers[CGROUP_ABOVE + 1] = {
	[CGROUP_MEMORY] = "memory",
	[CGROUP_PIDS] = "pids",
	[CGROUP_CPU] = "cpu",
	[CGROUP_CPUACCT] = "cpuacct",
	[CGROUP_FREEZER] = "freezer",
	[CGROUP_ABOVE] = "freezer",
};

static int64_t most_processes(const struct limits *l)
{
	return (int64_t)l->processes + plan_spare_processes(l);
}

static int cpu_quota(const struct limits *l)
{
	return l->cpus_milli * (CPU_PERIOD / 1000);
}

static int64_t warden_bytes(const struct limits *l)
{
	return WARDEN_BYTES + l->home_files * (int64_t)WARDEN_FILE_BYTES;
}

/* ---- v1: a hierarchy for each controller; for root alone ---- */

static int v1_probe(struct cgroup_caps *caps, const struct mntent *m)
{
	/* v1 has no safe delegation. */
	if (geteuid() != 0 ||
		faccessat(AT_FDCWD, m->mnt_dir, W_OK | X_OK, AT_EACCESS) < 0)
		return 0;
	for (int c = 0; c < CGROUP_CONTROLLERS; c++) {
		if (caps->dir[c][0] || !hasmntopt(m, cgroup_controllers[c]))
			continue;
		if (snprintf(caps->dir[c], CGROUP_PATH_MAX, "%s/cellblock",
			    m->mnt_dir) >= CGROUP_PATH_MAX)
			continue;
		caps->usable |= 1u << c;
		caps->kind = CGROUP_V1;
	}
	return 0; /* each controller may have a mount of its own */
}

/* Pid 1 enters the jail's leaf, and only the guests in it are frozen. So the
 * root of the jail's cgroup namespace is that leaf, and /proc in the jail does
 * not show the path to it. */
static void v1_make_guests(struct cgroup *cg, int dir)
{
	mkdirat(dir, CGROUP_GUESTS, 0755);
	cg->enter[CGROUP_ABOVE] = cg->enter[CGROUP_FREEZER];
	cg->enter[CGROUP_FREEZER] =
		openat(dir, CGROUP_GUESTS "/tasks", O_WRONLY | O_CLOEXEC);
}

/* The leaf of the warden, where something has a limit. */
static int v1_make_warden(
	const struct cgroup *cg, int i, const struct limits *l)
{
	int dir = cg->held[i];

	if (i != cg->at[CGROUP_MEMORY] && i != cg->at[CGROUP_PIDS] &&
		i != cg->at[CGROUP_CPU])
		return 0;
	if (mkdirat(dir, CGROUP_WARDEN, 0755) < 0)
		return -1;
	if (i == cg->at[CGROUP_MEMORY])
		cgroup_dir_set_number(dir,
			CGROUP_WARDEN "/memory.limit_in_bytes",
			warden_bytes(l));
	if (i == cg->at[CGROUP_PIDS])
		cgroup_dir_set_number(
			dir, CGROUP_WARDEN "/pids.max", WARDEN_PROCESSES);
	return 0;
}

static int v1_make(struct cgroup *cg, const struct cgroup_caps *caps,
	const struct limits *l, struct err *e)
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
		if (mkdirat(cg->held[i], CGROUP_JAIL, 0755) < 0 ||
			v1_make_warden(cg, i, l) < 0)
			return err_errno(e, "cgroup: make a leaf of %s",
				cgroup_controllers[c]);
		cg->enter[c] = openat(cg->held[i], CGROUP_JAIL "/tasks",
			O_WRONLY | O_CLOEXEC);
		if (c == CGROUP_FREEZER)
			v1_make_guests(cg, cg->held[i]);
		if (cg->enter[c] < 0)
			return err_errno(e, "cgroup: open tasks of %s",
				cgroup_controllers[c]);
	}
	return 0;
}

#define JAIL_MEMORY CGROUP_JAIL "/memory."

static unsigned v1_limit_memory(int dir, const struct limits *l)
{
	static const char memsw[] = JAIL_MEMORY "memsw.limit_in_bytes";
	unsigned kept = 0;

	if (cgroup_dir_set_number(
		    dir, JAIL_MEMORY "limit_in_bytes", l->memory_bytes))
		kept |= CGROUP_LIMIT_MEMORY;
	/* TCP and UDP buffers inside the jail are counted apart, and only once
	 * they have a limit. */
	cgroup_dir_set_number(dir, JAIL_MEMORY "kmem.tcp.limit_in_bytes",
		l->memory_bytes / SOCKETS_DEN);
	cgroup_dir_write(dir, JAIL_MEMORY "swappiness", "0");
	/* Memory and swap together; does not exist with swapaccount=0. */
	if (faccessat(dir, memsw, F_OK, 0) == 0
			? cgroup_dir_set_number(dir, memsw, l->memory_bytes)
			: !host_has_swap())
		kept |= CGROUP_LIMIT_SWAP;
	return kept;
}

static unsigned v1_limit(const struct cgroup *cg, const struct limits *l)
{
	int memory = cgroup_fd_of(cg, CGROUP_MEMORY),
	    pids = cgroup_fd_of(cg, CGROUP_PIDS);
	int cpu = cgroup_fd_of(cg, CGROUP_CPU);
	unsigned kept = 0;

	if (memory >= 0)
		kept |= v1_limit_memory(memory, l);
	if (pids >= 0 && cgroup_dir_set_number(pids, CGROUP_JAIL "/pids.max",
				 most_processes(l)))
		kept |= CGROUP_LIMIT_PIDS;
	if (cpu >= 0 &&
		cgroup_dir_set_number(cpu, "cpu.cfs_period_us", CPU_PERIOD) &&
		cgroup_dir_set_number(cpu, "cpu.cfs_quota_us", cpu_quota(l)))
		kept |= CGROUP_LIMIT_CPU;
	return kept;
}

const struct cgroup_ops cgroup_v1 = {
	.fstype = "cgroup",
	.probe = v1_probe,
	.make = v1_make,
	.memory_max = "memory.limit_in_bytes",
	.no_max = "-1",
	.enter = "tasks",
	.limit = v1_limit,
	.files =
		{
			[CGROUP_F_MEMORY] = {CGROUP_MEMORY,
				JAIL_MEMORY "usage_in_bytes"},
			[CGROUP_F_MEMORY_STAT] = {CGROUP_MEMORY,
				JAIL_MEMORY "stat"},
			[CGROUP_F_PEAK] = {CGROUP_MEMORY,
				JAIL_MEMORY "max_usage_in_bytes"},
			[CGROUP_F_OOM] = {CGROUP_MEMORY,
				JAIL_MEMORY "oom_control"},
			[CGROUP_F_PIDS_EVENTS] = {CGROUP_PIDS,
				CGROUP_JAIL "/pids.events"},
			[CGROUP_F_CPU] = {CGROUP_CPUACCT,
				CGROUP_JAIL "/cpuacct.usage"},
			[CGROUP_F_FREEZE] = {CGROUP_FREEZER,
				CGROUP_GUESTS "/freezer.state"},
			[CGROUP_F_EVENTS] = {CGROUP_FREEZER,
				CGROUP_GUESTS "/freezer.state"},
			[CGROUP_F_MOST] = {CGROUP_MEMORY,
				JAIL_MEMORY "limit_in_bytes"},
			[CGROUP_F_MOST_SOCKETS] = {CGROUP_MEMORY,
				JAIL_MEMORY "kmem.tcp.limit_in_bytes"},
			[CGROUP_F_MOST_SWAP] = {CGROUP_MEMORY,
				JAIL_MEMORY "memsw.limit_in_bytes"},
		},
	.sockets_den = SOCKETS_DEN,
	.freeze = {"THAWED", "FROZEN"},
	.frozen = {"THAWED\n", "FROZEN\n"},
	.cpu_unit_ns = 1,
	.cache = {"total_inactive_file", "total_active_file"},
};

/* ---- v2: one hierarchy, in a part of it that was delegated to us ---- */

/*
 * Pid 1 is in NAME/jail, and the guests are in a leaf of that, which has no
 * controller. So the limits count them together, and the leaf can be frozen
 * while pid 1 goes on serving.
 *
 * A cgroup with processes of its own cannot hand controllers on. So either we
 * are in a leaf of the delegated cgroup, or that holds nothing but this program
 * (as under systemd-run --scope -p Delegate=yes), which then moves itself into
 * a leaf. Processes of others are never moved.
 */

/* The cgroup this process is in, below the mount; empty if that is out of
 * sight (the root of our cgroup namespace lies elsewhere). */
static void own_path(char *path, size_t size)
{
	char buf[8192] = "\n"; /* so that each line begins after a newline */
	char *p;

	path[0] = '\0';
	if (io_read_small(AT_FDCWD, "/proc/self/cgroup", buf + 1,
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

static int is_slice(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot && !strcmp(dot, ".slice");
}

/* The controllers that a file of a cgroup names, as bits. */
static unsigned controllers_of(int dir, const char *file)
{
	char buf[512];
	char *save = NULL;
	unsigned found = 0;

	if (io_read_small(dir, file, buf, sizeof(buf)) < 0)
		return 0;
	for (char *w = strtok_r(buf, " \n", &save); w;
		w = strtok_r(NULL, " \n", &save))
		for (int c = 0; c <= CGROUP_CPU; c++)
			if (!strcmp(w, cgroup_controllers[c]))
				found |= 1u << c;
	return found;
}

/* True if a cgroup is delegated to us as a whole: we may make others in it,
 * hand controllers on, and move ourselves about below it. */
static int is_delegated(int dir)
{
	return faccessat(dir, ".", W_OK, AT_EACCESS) == 0 &&
	       faccessat(dir, "cgroup.subtree_control", W_OK, AT_EACCESS) ==
		       0 &&
	       faccessat(dir, "cgroup.procs", W_OK, AT_EACCESS) == 0;
}

/* The parent of a process; 0: it is gone. */
static pid_t parent_of(pid_t pid)
{
	struct procstat st;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	return procstat_read(AT_FDCWD, path, &st) < 0 ? 0 : st.ppid;
}

/* Ourselves, or in `with`; or, where a maker makes several sessions at a time,
 * another warden of the maker's or a child of one; or, of our own user, another
 * child of the front end, such as the one that a server is confined to. */
static int is_one_of_ours(pid_t pid, const pid_t *with)
{
	pid_t parent;

	if (pid == getpid() || pid == with[0] || pid == with[1] ||
		pid == with[2] || (kill(pid, 0) < 0 && errno == ESRCH))
		return 1;
	parent = with[2] ? parent_of(pid) : 0;
	return parent > 0 &&
	       (parent == with[0] || parent_of(parent) == with[0] ||
		       (parent == with[2] && geteuid() != 0));
}

/* True if all processes of a cgroup are ours; with `move` they move into its
 * leaf HOST. */
static int is_ours(int dir, const pid_t *with, int move)
{
	char buf[4096], text[16];
	char *end;

	if (io_read_small(dir, "cgroup.procs", buf, sizeof(buf)) < 0)
		return 0;
	for (char *p = buf; *p; p = end + 1) {
		long pid = strtol(p, &end, 10);

		if (*end != '\n' || pid == 0 ||
			!is_one_of_ours((pid_t)pid, with))
			return 0;
		snprintf(text, sizeof(text), "%ld", pid);
		if (move &&
			cgroup_dir_write(dir, HOST "/cgroup.procs", text) < 0 &&
			errno != ESRCH)
			return 0;
	}
	return 1;
}

/* True if a cgroup can hand controllers on: it does so already, or it is the
 * root of all (which has no cgroup.events), or no process of others is in it.
 */
static int has_room(int dir, const pid_t *with)
{
	return controllers_of(dir, "cgroup.subtree_control") &
		       1u << CGROUP_MEMORY ||
	       (faccessat(dir, "cgroup.events", F_OK, 0) < 0 &&
		       errno == ENOENT) ||
	       is_ours(dir, with, 0);
}

static int use_base(struct cgroup_caps *caps, const char *base)
{
	auto_close int dir = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char place[CGROUP_PATH_MAX];
	unsigned usable;

	if (dir < 0 || !is_delegated(dir))
		return 0;
	/* Without the memory controller, v1 may offer more. */
	usable = controllers_of(dir, "cgroup.controllers");
	if (!(usable & 1u << CGROUP_MEMORY))
		return 0;
	caps->shared = geteuid() != 0;
	if (!has_room(dir, caps->with)) {
		strcpy(caps->why,
			caps->shared
				? "the cgroup delegated to you holds other "
				  "processes: start cellblock alone in one:  "
				  "systemd-run --user --scope -p Delegate=yes "
				  "cellblock"
				: "processes are in the cgroup that sessions "
				  "would go below: move them into a leaf of "
				  "it");
		return 0;
	}
	if (snprintf(place, sizeof(place), "%s%s", base,
		    caps->shared ? "" : "/cellblock") >= CGROUP_PATH_MAX)
		return 0;
	for (int c = 0; c < CGROUP_CONTROLLERS; c++)
		strcpy(caps->dir[c], place);
	caps->kind = CGROUP_V2;
	caps->usable = usable | 1u << CGROUP_CPUACCT | 1u << CGROUP_FREEZER;
	caps->why[0] = '\0';
	return 1;
}

/* Use the cgroup that a manager of services delegated to root's sessions. 0:
 * nothing; 1, also where it is of no use: sessions would escape its limits
 * elsewhere. */
static int use_below(struct cgroup_caps *caps, const char *mount)
{
	char base[CGROUP_PATH_MAX];

	if (!caps->below ||
		snprintf(base, sizeof(base), "%s/%s", mount, caps->below) >=
			CGROUP_PATH_MAX ||
		access(base, F_OK) < 0) {
		caps->below = NULL;
		return 0;
	}
	if (!use_base(caps, base) && !caps->why[0])
		snprintf(caps->why, sizeof(caps->why),
			"%.120s has no memory controller", caps->below);
	return 1;
}

static int v2_move_below(const struct cgroup_caps *caps, struct err *e)
{
	char above[CGROUP_PATH_MAX];
	auto_close int dir = -1;

	if (!caps->below)
		return 0;
	cgroup_dir_parent(above, caps->dir[0]);
	dir = cgroup_dir_open(above);
	if (dir < 0 || (mkdirat(dir, HOST, 0755) < 0 && errno != EEXIST) ||
		cgroup_dir_write(dir, HOST "/cgroup.procs", "0") < 0)
		return err_errno(e, "cgroup: move into %s/" HOST, above);
	return 0;
}

/* Root's sessions go below the mount. A user's sessions go into the cgroup that
 * was delegated to them: the one they are in, or its parent. Never into a slice
 * of systemd, which takes controllers away from slices as it sees fit. */
static int v2_probe(struct cgroup_caps *caps, const struct mntent *m)
{
	char own[CGROUP_PATH_MAX], base[CGROUP_PATH_MAX * 2];
	char *slash;

	if (geteuid() == 0)
		return use_below(caps, m->mnt_dir) ||
		       use_base(caps, m->mnt_dir);
	own_path(own, sizeof(own));
	if (!own[0] || snprintf(base, sizeof(base), "%s%s", m->mnt_dir, own) >=
			       (int)sizeof(base))
		return 0;
	if (use_base(caps, base))
		return 1;
	slash = strrchr(base, '/');
	if (slash == base + strlen(m->mnt_dir))
		return 0;
	*slash = '\0';
	return !is_slice(base) && use_base(caps, base);
}

/* Hand the controllers on from `path` to the cgroups below it. Where one cannot
 * be handed on (cpu, with real-time processes) its limit is not set, and
 * reading back shows that. Without memory there is no point in going on. */
static int hand_on(
	const char *path, const struct cgroup_caps *caps, struct err *e)
{
	auto_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int room = 0;

	if (dir < 0)
		return err_errno(e, "cgroup: open %s", path);
	for (int c = 0; c <= CGROUP_CPU; c++) {
		char text[16];

		if (!(caps->usable & 1u << c))
			continue;
		snprintf(text, sizeof(text), "+%s", cgroup_controllers[c]);
		if (cgroup_dir_write(dir, "cgroup.subtree_control", text) == 0)
			continue;
		if (errno == EBUSY && room++ < ROOM_TRIES) {
			if (mkdirat(dir, HOST, 0755) < 0 && errno != EEXIST)
				return err_errno(e, "cgroup: make " HOST);
			if (!is_ours(dir, caps->with, 1))
				return err_set(e, "cgroup: other processes are "
						  "in the delegated one");
			c--; /* again */
		} else if (c == CGROUP_MEMORY) {
			return err_errno(
				e, "cgroup: hand on memory in %s", path);
		}
	}
	return 0;
}

/* The leaves, in the session's directory, and the limits of the warden's. */
static int v2_make_leaves(int dir, const struct limits *l, struct err *e)
{
	if (mkdirat(dir, CGROUP_JAIL, 0755) < 0 ||
		mkdirat(dir, CGROUP_GUESTS, 0755) < 0 ||
		mkdirat(dir, CGROUP_WARDEN, 0755) < 0)
		return err_errno(e, "cgroup: make the leaves");
	cgroup_dir_set_number(
		dir, CGROUP_WARDEN "/memory.max", warden_bytes(l));
	cgroup_dir_write(dir, CGROUP_WARDEN "/memory.swap.max", "0");
	cgroup_dir_set_number(dir, CGROUP_WARDEN "/pids.max", WARDEN_PROCESSES);
	return 0;
}

/* Our directory comes first, because it keeps others from removing the one
 * above. A controller that is handed on later reaches it too. */
static int v2_make(struct cgroup *cg, const struct cgroup_caps *caps,
	const struct limits *l, struct err *e)
{
	int dir = cg->held[0] = cgroup_dir_make(cg->dirs[0], e);
	char above[CGROUP_PATH_MAX], persons[CGROUP_PATH_MAX];

	if (dir < 0)
		return -1;
	cgroup_dir_parent(above, caps->dir[0]);
	cgroup_dir_parent(persons, cg->dirs[0]);
	if ((!caps->shared && hand_on(above, caps, e) < 0) ||
		hand_on(caps->dir[0], caps, e) < 0 ||
		(cg->above[0] > 1 && hand_on(persons, caps, e) < 0) ||
		hand_on(cg->dirs[0], caps, e) < 0 ||
		v2_make_leaves(dir, l, e) < 0)
		return -1;
	cg->enter[CGROUP_MEMORY] =
		openat(dir, CGROUP_JAIL "/cgroup.procs", O_WRONLY | O_CLOEXEC);
	cg->enter[CGROUP_FREEZER] = openat(
		dir, CGROUP_GUESTS "/cgroup.procs", O_WRONLY | O_CLOEXEC);
	if (cg->enter[CGROUP_MEMORY] < 0 || cg->enter[CGROUP_FREEZER] < 0)
		return err_errno(e, "cgroup: open cgroup.procs");
	return 0;
}

/* A controller that is not there has no files either. */
static unsigned v2_limit(const struct cgroup *cg, const struct limits *l)
{
	int dir = cg->held[0];
	unsigned kept = 0;
	char share[48];

	if (cgroup_dir_set_number(dir, JAIL_MEMORY "max", l->memory_bytes))
		kept |= CGROUP_LIMIT_MEMORY;
	/* Does not exist without swap accounting. */
	if (cgroup_dir_set_text(dir, JAIL_MEMORY "swap.max", "0"))
		kept |= CGROUP_LIMIT_SWAP;
	/* The kernel kills one process, not all: the checkpoint must live. */
	cgroup_dir_write(dir, JAIL_MEMORY "oom.group", "0");
	if (cgroup_dir_set_number(
		    dir, CGROUP_JAIL "/pids.max", most_processes(l)))
		kept |= CGROUP_LIMIT_PIDS;
	snprintf(share, sizeof(share), "%d %d", cpu_quota(l), CPU_PERIOD);
	if (cgroup_dir_set_text(dir, "cpu.max", share))
		kept |= CGROUP_LIMIT_CPU;
	return kept;
}

const struct cgroup_ops cgroup_v2 = {
	.fstype = "cgroup2",
	.probe = v2_probe,
	.make = v2_make,
	.move_below = v2_move_below,
	.memory_max = "memory.max",
	.no_max = "max",
	.hits_key = "oom",
	.enter = "cgroup.procs",
	.limit = v2_limit,
	.files =
		{
			[CGROUP_F_MEMORY] = {CGROUP_MEMORY,
				JAIL_MEMORY "current"},
			[CGROUP_F_MEMORY_STAT] = {CGROUP_MEMORY,
				JAIL_MEMORY "stat"},
			[CGROUP_F_PEAK] = {CGROUP_MEMORY,
				JAIL_MEMORY "peak"}, /* 5.19 */
			[CGROUP_F_OOM] = {CGROUP_MEMORY, JAIL_MEMORY "events"},
			[CGROUP_F_HITS] = {CGROUP_MEMORY, JAIL_MEMORY "events"},
			[CGROUP_F_PIDS_EVENTS] = {CGROUP_PIDS,
				CGROUP_JAIL "/pids.events"},
			[CGROUP_F_CPU] = {CGROUP_CPU, CGROUP_JAIL "/cpu.stat"},
			[CGROUP_F_FREEZE] = {CGROUP_FREEZER,
				CGROUP_GUESTS "/cgroup.freeze"},
			[CGROUP_F_EVENTS] = {CGROUP_FREEZER,
				CGROUP_GUESTS "/cgroup.events"},
			[CGROUP_F_MOST] = {CGROUP_MEMORY, JAIL_MEMORY "max"},
		},
	.freeze = {"0", "1"},
	.frozen = {"frozen 0\n", "frozen 1\n"},
	.cpu_key = "usage_usec",
	.cpu_unit_ns = 1000,
	.cache = {"inactive_file", "active_file"},
};
