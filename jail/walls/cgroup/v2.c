/* SPDX-License-Identifier: MIT */
/*
 * v2.c - one hierarchy, in a part of it that was delegated to us
 *
 * Runs in:   warden, see cgroup.c
 * Leaves:    MOUNT/cellblock/NAME (root), or BASE/cellblock-NAME (delegated),
 *            with `guests` in it; the controllers handed on above it; in a
 *            delegated cgroup that was ours alone, the leaf we moved into
 *
 * The limits are those of NAME. Pid 1 is in NAME, and the guests are in its
 * only leaf, which has no controller. So the limits count them together, and
 * the leaf can be frozen while pid 1 goes on serving.
 *
 * A cgroup with processes of its own cannot hand controllers on. So either we
 * are in a leaf of the delegated cgroup, or that holds nothing but this program
 * (as under systemd-run --scope -p Delegate=yes), which then moves itself into
 * a leaf. Processes of others are never moved.
 */
#include "dir.h"
#include "jail/base/io.h"
#include "jail/plan/plan.h"
#include "ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* The cgroup this process is in, below the mount; empty if that is out of
 * sight (the root of our cgroup namespace lies elsewhere). */
static void own_path(char *path, size_t size)
{
	char buf[8192] = "\n"; /* so that each line begins after a newline */
	char *p;

	path[0] = '\0';
	if (cgroup_dir_read(AT_FDCWD, "/proc/self/cgroup", buf + 1,
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
	size_t n = strlen(path), m = strlen(".slice");

	return n >= m && !strcmp(path + n - m, ".slice");
}

/* The controllers that a file of a cgroup names, as bits. */
static unsigned controllers(int dir, const char *file)
{
	char buf[512];
	char *save = NULL;
	unsigned found = 0;

	if (cgroup_dir_read(dir, file, buf, sizeof(buf)) < 0)
		return 0;
	for (char *w = strtok_r(buf, " \n", &save); w;
		w = strtok_r(NULL, " \n", &save))
		for (int c = 0; c <= CGROUP_CPU; c++)
			if (!strcmp(w, cgroup_dir_controllers[c]))
				found |= 1u << c;
	return found;
}

/* Whether a cgroup is delegated to us as a whole: we may make others in it,
 * hand controllers on, and move ourselves about below it. */
static int is_delegated(int dir)
{
	static const char *const files[] = {
		".", "cgroup.subtree_control", "cgroup.procs"};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (faccessat(dir, files[i], W_OK, AT_EACCESS) < 0)
			return 0;
	return 1;
}

/* Move the processes of a cgroup to `leaf`, or with -1 only look whether that
 * is allowed: all of them are ourselves or in `with`. */
static int move_us(int dir, const pid_t *with, int leaf)
{
	char buf[4096], text[16];
	char *end;

	if (cgroup_dir_read(dir, "cgroup.procs", buf, sizeof(buf)) < 0)
		return 0;
	for (char *p = buf; *p; p = end + 1) {
		long pid = strtol(p, &end, 10);

		if (*end != '\n' || pid == 0 ||
			(pid != getpid() && pid != with[0] && pid != with[1]))
			return 0;
		snprintf(text, sizeof(text), "%ld", pid);
		if (leaf >= 0 &&
			cgroup_dir_write(leaf, "cgroup.procs", text) < 0)
			return 0;
	}
	return 1;
}

/* Whether a cgroup can hand controllers on: it does so already, or it is the
 * root of all (which has no cgroup.events), or no process of others is in it.
 */
static int has_room(int dir, const pid_t *with)
{
	return controllers(dir, "cgroup.subtree_control") &
		       1u << CGROUP_MEMORY ||
	       (faccessat(dir, "cgroup.events", F_OK, 0) < 0 &&
		       errno == ENOENT) ||
	       move_us(dir, with, -1);
}

static const char crowded_user[] =
	"the cgroup delegated to you holds other processes: start cellblock "
	"alone in one:  systemd-run --user --scope -p Delegate=yes cellblock";
static const char crowded_root[] =
	"processes are in the cgroup that sessions would go below: move them "
	"into a leaf of it";

static int use_base(struct cgroup_caps *caps, const char *base)
{
	auto_close int dir = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unsigned usable;

	if (dir < 0 || !is_delegated(dir))
		return 0;
	/* Without the memory controller, v1 may offer more. */
	usable = controllers(dir, "cgroup.controllers");
	if (!(usable & 1u << CGROUP_MEMORY))
		return 0;
	caps->shared = geteuid() != 0;
	if (!has_room(dir, caps->with)) {
		snprintf(caps->why, sizeof(caps->why), "%s",
			caps->shared ? crowded_user : crowded_root);
		return 0;
	}
	for (int c = 0; c < CGROUP_CONTROLLERS; c++)
		if ((size_t)snprintf(caps->dir[c], CGROUP_PATH_MAX, "%s%s",
			    base, caps->shared ? "" : "/cellblock") >=
			CGROUP_PATH_MAX)
			return 0;
	caps->kind = CGROUP_V2;
	caps->usable = usable | 1u << CGROUP_CPUACCT | 1u << CGROUP_FREEZER;
	caps->why[0] = '\0';
	return 1;
}

/* Root's sessions go below the mount. A user's sessions go into the cgroup that
 * was delegated to them: the one they are in, or its parent. Never into a slice
 * of systemd, which takes controllers away from slices as it sees fit. */
static int probe_mount(struct cgroup_caps *caps, const char *mount)
{
	char own[CGROUP_PATH_MAX], base[CGROUP_PATH_MAX * 2];
	char *slash;

	if (geteuid() == 0)
		return use_base(caps, mount);
	own_path(own, sizeof(own));
	if (!own[0])
		return 0;
	snprintf(base, sizeof(base), "%s%s", mount, own);
	if (use_base(caps, base))
		return 1;
	slash = strrchr(base, '/');
	if (slash == base + strlen(mount))
		return 0;
	*slash = '\0';
	return !is_slice(base) && use_base(caps, base);
}

static int probe(struct cgroup_caps *caps, const struct cgroup_mount *m, int n)
{
	for (int i = 0; i < n; i++)
		if (m[i].v2 && probe_mount(caps, m[i].point))
			return 1;
	if (geteuid() != 0 && !caps->why[0])
		snprintf(caps->why, sizeof(caps->why),
			"no cgroup is delegated to this user");
	return 0;
}

/* Move this program into a leaf. */
static int make_room(int dir, const pid_t *with, struct err *e)
{
	static const char name[] = CGROUP_PREFIX "host";
	auto_close int leaf = -1;

	if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
		return err_errno(e, "cgroup: make %s", name);
	leaf = openat(dir, name, DIR_FLAGS);
	if (leaf < 0)
		return err_errno(e, "cgroup: open %s", name);
	if (!move_us(dir, with, leaf))
		return err_set(e, "cgroup: other processes are in the "
				  "delegated one");
	return 0;
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
		snprintf(text, sizeof(text), "+%s", cgroup_dir_controllers[c]);
		if (cgroup_dir_write(dir, "cgroup.subtree_control", text) == 0)
			continue;
		if (errno == EBUSY && !room++) {
			if (make_room(dir, caps->with, e) < 0)
				return -1;
			c--; /* again */
		} else if (c == CGROUP_MEMORY) {
			return err_errno(
				e, "cgroup: hand on memory in %s", path);
		}
	}
	return 0;
}

static int hand_on_all(const struct cgroup_caps *caps, struct err *e)
{
	char above[CGROUP_PATH_MAX];

	cgroup_dir_parent(above, caps->dir[0]);
	if (!caps->shared && hand_on(above, caps, e) < 0)
		return -1;
	return hand_on(caps->dir[0], caps, e);
}

static const struct {
	enum cgroup_controller in; /* the freezer's are those of `guests` */
	enum cgroup_file file;
	const char *name;
	int flags;
} files[] = {
	{CGROUP_MEMORY, CGROUP_F_MEMORY, "memory.current", O_RDONLY},
	{CGROUP_MEMORY, CGROUP_F_MEMORY_STAT, "memory.stat", O_RDONLY},
	{CGROUP_MEMORY, CGROUP_F_PEAK, "memory.peak", O_RDONLY}, /* 5.19 */
	{CGROUP_MEMORY, CGROUP_F_OOM, "memory.events", O_RDONLY},
	{CGROUP_MEMORY, CGROUP_F_PIDS_EVENTS, "pids.events", O_RDONLY},
	{CGROUP_MEMORY, CGROUP_F_CPU, "cpu.stat", O_RDONLY},
	{CGROUP_FREEZER, CGROUP_F_FREEZE, "cgroup.freeze", O_RDWR},
	{CGROUP_FREEZER, CGROUP_F_EVENTS, "cgroup.events", O_RDONLY},
};

/* Our directory comes first, because it keeps others from removing the one
 * above. A controller that is handed on later reaches it too. */
static int make(
	struct cgroup *cg, const struct cgroup_caps *caps, struct err *e)
{
	auto_close int guests = -1;
	int dir = cg->held[0] = cgroup_dir_make(cg->dirs[0], e);

	if (dir < 0 || hand_on_all(caps, e) < 0)
		return -1;
	if (mkdirat(dir, CGROUP_GUESTS, 0755) < 0)
		return err_errno(e, "cgroup: make that of the guests");
	guests = openat(dir, CGROUP_GUESTS, DIR_FLAGS);
	if (guests < 0)
		return err_errno(e, "cgroup: open that of the guests");
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		cg->file[files[i].file] =
			openat(files[i].in == CGROUP_FREEZER ? guests : dir,
				files[i].name, files[i].flags | O_CLOEXEC);
	cg->enter[CGROUP_MEMORY] =
		openat(dir, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	cg->enter[CGROUP_FREEZER] =
		openat(guests, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	if (cg->enter[CGROUP_MEMORY] < 0 || cg->enter[CGROUP_FREEZER] < 0)
		return err_errno(e, "cgroup: open cgroup.procs");
	return 0;
}

/* A controller that is not there has no files either. */
static unsigned limit(const struct cgroup *cg, const struct limits *l)
{
	int dir = cg->held[0];
	unsigned kept = 0;
	char share[48];

	if (cgroup_dir_set_number(dir, "memory.max", l->memory_bytes))
		kept |= CGROUP_LIMIT_MEMORY;
	/* Does not exist without swap accounting. */
	if (cgroup_dir_set_text(dir, "memory.swap.max", "0"))
		kept |= CGROUP_LIMIT_SWAP;
	/* The kernel kills one process, not all: the checkpoint must live. */
	cgroup_dir_write(dir, "memory.oom.group", "0");
	if (cgroup_dir_set_number(dir, "pids.max",
		    (int64_t)l->processes + plan_spare_processes(l)))
		kept |= CGROUP_LIMIT_PIDS;
	snprintf(share, sizeof(share), "%d %d",
		l->cpus_milli * (CGROUP_CPU_PERIOD / 1000), CGROUP_CPU_PERIOD);
	if (cgroup_dir_set_text(dir, "cpu.max", share))
		kept |= CGROUP_LIMIT_CPU;
	return kept;
}

static int is_frozen(const struct cgroup *cg, int on)
{
	char buf[256];

	return cgroup_dir_reread(cg->file[CGROUP_F_EVENTS], buf, sizeof(buf)) >
		       0 &&
	       cgroup_dir_key(buf, "frozen") == on;
}

static int64_t cpu_ns(const struct cgroup *cg)
{
	char buf[4096];
	int64_t us = -1;

	if (cgroup_dir_reread(cg->file[CGROUP_F_CPU], buf, sizeof(buf)) > 0)
		us = cgroup_dir_key(buf, "usage_usec");
	return us < 0 ? -1 : us * 1000;
}

const struct cgroup_ops cgroup_v2 = {
	.probe = probe,
	.make = make,
	.limit = limit,
	.freeze = {"0", "1"},
	.is_frozen = is_frozen,
	.cpu_ns = cpu_ns,
	.stat_prefix = "",
};
