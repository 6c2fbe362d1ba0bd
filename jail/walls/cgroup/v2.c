/* SPDX-License-Identifier: MIT */
/*
 * v2.c - one hierarchy, in a part of it that was handed to us
 *
 * Runs in:   warden, see cgroup.c
 * Leaves:    MOUNT/cellblock/NAME (root), or BASE/cellblock-NAME (delegated),
 *            with `guests` in it; controllers handed on above it; in a
 *            delegated one that was ours alone, the leaf we moved into
 *
 * The limits are NAME's. Pid 1 is in there, and the guests are in its one
 * leaf, which has no controller: to the limits they are one, and the leaf can
 * be frozen while pid 1 goes on serving.
 *
 * A cgroup with processes of its own cannot hand controllers on. So either we
 * are in a leaf of what was delegated, or it holds nothing but this program
 * (as under systemd-run --scope -p Delegate=yes), which then moves itself into
 * a leaf. Nobody else's processes are ever moved.
 */
#include "impl.h"
#include "jail/base/io.h"
#include "jail/plan/plan.h"

#include <errno.h>
#include <fcntl.h>
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

static int ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && !strcmp(s + n - m, end);
}

/* The controllers that a file of a cgroup names, as bits. */
static unsigned controllers(int dir, const char *file)
{
	char buf[512];
	char *save = NULL;
	unsigned found = 0;

	if (cgroup_read(dir, file, buf, sizeof(buf)) < 0)
		return 0;
	for (char *w = strtok_r(buf, " \n", &save); w;
		w = strtok_r(NULL, " \n", &save))
		for (int c = 0; c <= CGROUP_CPU; c++)
			if (!strcmp(w, cgroup_names.name[c]))
				found |= 1u << c;
	return found;
}

/* Whether a cgroup was handed to us whole: we may make others in it, hand
 * controllers on, and move ourselves about below it. */
static int is_delegated(int dir)
{
	static const char *const files[] = {
		".", "cgroup.subtree_control", "cgroup.procs"};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (faccessat(dir, files[i], W_OK, AT_EACCESS) < 0)
			return 0;
	return 1;
}

/* Move who is in a cgroup to `leaf`, or with -1 only look whether all of them
 * may be moved: ourselves, and `with`. */
static int move_us(int dir, const pid_t *with, int leaf)
{
	char buf[4096], text[16];
	char *end;

	if (cgroup_read(dir, "cgroup.procs", buf, sizeof(buf)) < 0)
		return 0;
	for (char *p = buf; *p; p = end + 1) {
		long pid = strtol(p, &end, 10);

		if (*end != '\n' || pid == 0 ||
			(pid != getpid() && pid != with[0] && pid != with[1]))
			return 0;
		snprintf(text, sizeof(text), "%ld", pid);
		if (leaf >= 0 && cgroup_write(leaf, "cgroup.procs", text) < 0)
			return 0;
	}
	return 1;
}

/* Whether a cgroup can hand controllers on: it does so already, or it is the
 * root of all (which has no cgroup.events), or nobody is in the way. */
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

static int take_base(struct cgroup_caps *caps, const char *base)
{
	auto_close int dir = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unsigned usable;

	if (dir < 0 || !is_delegated(dir))
		return 0;
	/* Without the memory controller v1 may offer more. */
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

/* Root's sessions go below the mount; others' into what was delegated to
 * them: the cgroup they are in, or that of which it is a leaf. Never into a
 * slice of systemd's, who takes controllers away there as it sees fit. */
static int probe_mount(struct cgroup_caps *caps, const char *mount)
{
	char own[CGROUP_PATH_MAX], base[CGROUP_PATH_MAX * 2];
	char *slash;

	if (geteuid() == 0)
		return take_base(caps, mount);
	own_path(own, sizeof(own));
	if (!own[0])
		return 0;
	snprintf(base, sizeof(base), "%s%s", mount, own);
	if (take_base(caps, base))
		return 1;
	slash = strrchr(base, '/');
	if (slash == base + strlen(mount))
		return 0;
	*slash = '\0';
	return !ends_with(base, ".slice") && take_base(caps, base);
}

int cgroup_v2_probe(
	struct cgroup_caps *caps, const struct cgroup_mount *m, int n)
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
	leaf = openat(
		dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (leaf < 0)
		return err_errno(e, "cgroup: open %s", name);
	if (!move_us(dir, with, leaf))
		return err_set(e, "cgroup: other processes are in the "
				  "delegated one");
	return 0;
}

/* Hand the controllers on from `path` to what is below it. One that cannot be
 * (cores, beside real-time processes) leaves its limit unset, which is seen
 * when that is read back; without memory there is little point. */
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
		snprintf(text, sizeof(text), "+%s", cgroup_names.name[c]);
		if (cgroup_write(dir, "cgroup.subtree_control", text) == 0)
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
	const char *dir = caps->dir[0];
	char above[CGROUP_PATH_MAX];

	if (!caps->shared) {
		memcpy(above, dir, sizeof(above));
		*strrchr(above, '/') = '\0';
		if (hand_on(above, caps, e) < 0)
			return -1;
	}
	return hand_on(dir, caps, e);
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
	{CGROUP_F_PEAK, "memory.peak", O_RDONLY}, /* Linux 5.19 */
	{CGROUP_F_OOM, "memory.events", O_RDONLY},
	{CGROUP_F_PIDS_EVENTS, "pids.events", O_RDONLY},
	{CGROUP_F_CPU, "cpu.stat", O_RDONLY},
};

static const struct v2_file guests_files[] = {
	{CGROUP_F_FREEZE, "cgroup.freeze", O_RDWR},
	{CGROUP_F_EVENTS, "cgroup.events", O_RDONLY},
};

static void open_files(struct cgroup *cg, int dir, int guests)
{
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		cg->file[files[i].file] =
			openat(dir, files[i].name, files[i].flags | O_CLOEXEC);
	for (size_t i = 0; i < sizeof(guests_files) / sizeof(guests_files[0]);
		i++)
		cg->file[guests_files[i].file] =
			openat(guests, guests_files[i].name,
				guests_files[i].flags | O_CLOEXEC);
}

/* First the directory, so that nobody removes the one above it: a controller
 * that is handed on later comes to it too. */
int cgroup_v2_make(struct cgroup *cg, const struct cgroup_caps *caps,
	const struct limits *l, struct err *e)
{
	auto_close int guests = -1;
	int dir;

	if (cgroup_dir_make(cg, 0, e) < 0 || hand_on_all(caps, e) < 0)
		return -1;
	dir = cg->held[0];
	if (mkdirat(dir, CGROUP_GUESTS, 0755) < 0)
		return err_errno(e, "cgroup: make that of the guests");
	guests = openat(dir, CGROUP_GUESTS,
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (guests < 0)
		return err_errno(e, "cgroup: open that of the guests");
	set_limits(cg, dir, caps, l);
	open_files(cg, dir, guests);
	cg->procs[CGROUP_MEMORY] =
		openat(dir, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	cg->procs[CGROUP_FREEZER] =
		openat(guests, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	if (cg->procs[CGROUP_MEMORY] < 0 || cg->procs[CGROUP_FREEZER] < 0)
		return err_errno(e, "cgroup: open cgroup.procs");
	return 0;
}

int cgroup_v2_freeze(
	const struct cgroup *cg, int on, int timeout_ms, struct err *e)
{
	int64_t until = now_ms() + timeout_ms;

	if (cgroup_write_fd(cg->file[CGROUP_F_FREEZE], on ? "1" : "0") < 0)
		return err_errno(e, "cgroup: write cgroup.freeze");
	/* There is a notification; the kernel holds it back for up to 10 ms. */
	for (;;) {
		char buf[256];

		if (cgroup_read_fd(
			    cg->file[CGROUP_F_EVENTS], buf, sizeof(buf)) > 0 &&
			cgroup_key(buf, "frozen") == on)
			return 0;
		if (now_ms() >= until)
			break;
		cgroup_nap();
	}
	errno = ETIMEDOUT;
	return err_errno(e, "cgroup: %s", on ? "freeze" : "thaw");
}
