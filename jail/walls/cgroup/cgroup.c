/* SPDX-License-Identifier: MIT */
/*
 * cgroup.c - limits on the jail as a whole, kept by the kernel
 *
 * Runs in:   warden, first with the right to make cgroups, then without;
 *            janitor, to remove them
 * Holds:     descriptors opened while it had that right; the kernel judges a
 *            write to cgroup.procs by the credentials of the opener
 * Trusts:    only values it read back: some hosts accept a limit and ignore it
 * Leaves:    directories, for the janitor; after the janitor, nothing
 *
 * Only directories of our own (`cellblock`, or `cellblock-NAME` in a delegated
 * subtree) are written to. v2 needs one exception: see v2.c.
 */
#include "cgroup.h"

#include "dir.h"
#include "jail/base/io.h"
#include "ops.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MOUNTS_MAX 16
/* Names of sessions without a claimed uid begin with this. */
#define BY_PID "pid-"

static const struct cgroup_ops *const versions[] = {
	[CGROUP_NONE] = NULL,
	[CGROUP_V1] = &cgroup_v1,
	[CGROUP_V2] = &cgroup_v2,
};

/* ---- what this host offers ---- */

/* 1 if the line is of a cgroup file system. The fields are: id, parent,
 * device, root, mount point, options, optional ones, "-", type, source,
 * options of the super block. */
static int mount_parse(char *line, struct cgroup_mount *m)
{
	char *dash = strstr(line, " - ");
	char type[32];

	if (!dash || sscanf(dash, " - %31s %*s %255s", type, m->options) != 2 ||
		(strcmp(type, "cgroup") && strcmp(type, "cgroup2")))
		return 0;
	m->v2 = !strcmp(type, "cgroup2");
	return sscanf(line, "%*s %*s %*s %*s %511s", m->point) == 1;
}

static int mounts_read(struct cgroup_mount *m, int max)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	auto_free char *line = NULL;
	size_t size = 0;
	int n = 0;

	while (f && n < max && getline(&line, &size, f) > 0)
		n += mount_parse(line, &m[n]);
	if (f)
		fclose(f);
	return n;
}

void cgroup_probe(struct cgroup_caps *caps, pid_t with)
{
	struct cgroup_mount mounts[MOUNTS_MAX];
	int n = mounts_read(mounts, MOUNTS_MAX);

	*caps = (struct cgroup_caps){.with = {with}};
	if (cgroup_v2.probe(caps, mounts, n) > 0 ||
		cgroup_v1.probe(caps, mounts, n) > 0)
		return;
	caps->kind = CGROUP_NONE;
	if (!caps->why[0])
		snprintf(caps->why, sizeof(caps->why),
			n ? "no cgroup here may be written to"
			  : "no cgroup file system is mounted");
}

/* ---- making ---- */

static int name_is_sane(const char *name)
{
	return name[0] && name[0] != '.' && !strchr(name, '/') &&
	       strlen(name) < 64;
}

static void make_empty(struct cgroup *cg)
{
	memset(cg, 0, sizeof(*cg));
	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		cg->at[i] = cg->enter[i] = cg->held[i] = -1;
	for (int i = 0; i < CGROUP_FILES; i++)
		cg->file[i] = -1;
}

/* Place the directory of a controller. -1 if the path is too long. */
static int place(struct cgroup *cg, const struct cgroup_caps *caps, int c,
	const char *name)
{
	int n;

	/* v1 mounts some controllers together, v2 all. */
	for (int i = c + 1; i < CGROUP_CONTROLLERS; i++)
		if (cg->at[i] >= 0 && !strcmp(caps->dir[i], caps->dir[c])) {
			cg->at[c] = cg->at[i];
			return 0;
		}
	cg->at[c] = cg->ndirs++;
	n = snprintf(cg->dirs[cg->at[c]], CGROUP_PATH_MAX, "%s/%s%s",
		caps->dir[c], caps->shared ? CGROUP_PREFIX : "", name);
	return n < CGROUP_PATH_MAX ? 0 : -1;
}

int cgroup_place(struct cgroup *cg, const struct cgroup_caps *caps,
	const char *name, struct err *e)
{
	char own[32];

	make_empty(cg);
	snprintf(own, sizeof(own), BY_PID "%d", (int)getpid());
	name = name ? name : own;
	if (caps->kind == CGROUP_NONE)
		return 0;
	if (!name_is_sane(name))
		return err_set(e, "cgroup: %s is no name for one", name);
	/* The freezer's first: the janitor begins there. */
	for (int c = CGROUP_CONTROLLERS - 1; c >= 0; c--) {
		if (caps->kind == CGROUP_V1 && !(caps->usable & 1u << c))
			continue;
		if (place(cg, caps, c, name) < 0) {
			make_empty(cg);
			return err_set(e, "cgroup: %s is too long a path",
				caps->dir[c]);
		}
	}
	cg->kind = caps->kind;
	cg->own_parent = !caps->shared;
	return 0;
}

int cgroup_open(struct cgroup *cg, const struct cgroup_caps *caps,
	const struct limits *l, struct err *e)
{
	const struct cgroup_ops *ops = versions[cg->kind];

	if (!ops)
		return 0;
	if (ops->make(cg, caps, e) == 0) {
		cg->enforced = ops->limit(cg, l);
		return 0;
	}
	cgroup_close(cg);
	cgroup_remove(cg, 0, NULL);
	make_empty(cg);
	return -1;
}

void cgroup_close(struct cgroup *cg)
{
	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		fd_drop(&cg->enter[i]);
		fd_drop(&cg->held[i]);
	}
	for (int i = 0; i < CGROUP_FILES; i++)
		fd_drop(&cg->file[i]);
}

/* ---- in use ---- */

static int enter_one(const struct cgroup *cg, int c, struct err *e)
{
	if (cg->enter[c] >= 0 && cgroup_dir_rewrite(cg->enter[c], "0") < 0)
		return err_errno(e, "cgroup: enter that of %s",
			cgroup_dir_controllers[c]);
	return 0;
}

int cgroup_enter(const struct cgroup *cg, struct err *e)
{
	for (int c = 0; c < CGROUP_CONTROLLERS; c++)
		if (c != CGROUP_FREEZER && enter_one(cg, c, e) < 0)
			return -1;
	return 0;
}

int cgroup_enter_freezer(const struct cgroup *cg, struct err *e)
{
	return enter_one(cg, CGROUP_FREEZER, e);
}

int cgroup_freezer_fd(const struct cgroup *cg)
{
	return cg->enter[CGROUP_FREEZER];
}

int cgroup_can_freeze(const struct cgroup *cg)
{
	return cg->file[CGROUP_F_FREEZE] >= 0;
}

int cgroup_freeze(
	const struct cgroup *cg, int on, int timeout_ms, struct err *e)
{
	const struct cgroup_ops *ops = versions[cg->kind];
	int64_t until = now_ms() + timeout_ms;
	const char *verb = on ? "freeze" : "thaw";

	if (!ops || !cgroup_can_freeze(cg))
		return err_set(e, "cgroup: there is no freezer");
	if (cgroup_dir_rewrite(cg->file[CGROUP_F_FREEZE], ops->freeze[!!on]) <
		0)
		return err_errno(e, "cgroup: %s", verb);
	/* v1 has no notification, and looks itself only when it is read; the
	 * kernel holds the notification of v2 back for up to 10 ms. */
	while (!ops->is_frozen(cg, on)) {
		if (now_ms() >= until) {
			errno = ETIMEDOUT;
			return err_errno(e, "cgroup: %s", verb);
		}
		cgroup_dir_nap();
	}
	return 0;
}

static int64_t at_least_0(int64_t v)
{
	return v < 0 ? 0 : v;
}

static int64_t file_number(int fd)
{
	char buf[64];

	if (cgroup_dir_reread(fd, buf, sizeof(buf)) <= 0)
		return 0;
	return at_least_0(strtoll(buf, NULL, 10));
}

static int64_t file_key(int fd, const char *key)
{
	char buf[4096];

	if (cgroup_dir_reread(fd, buf, sizeof(buf)) <= 0)
		return 0;
	return at_least_0(cgroup_dir_key(buf, key));
}

/* The page cache of files, which the kernel takes back when memory is short.
 * tmpfs is not part of it. */
static int64_t reclaimable(const struct cgroup *cg, const char *prefix)
{
	static const char *const keys[] = {"inactive_file", "active_file"};
	int64_t sum = 0;
	char buf[8192], key[32];

	cgroup_dir_reread(cg->file[CGROUP_F_MEMORY_STAT], buf, sizeof(buf));
	for (int i = 0; i < 2; i++) {
		snprintf(key, sizeof(key), "%s%s", prefix, keys[i]);
		sum += at_least_0(cgroup_dir_key(buf, key));
	}
	return sum;
}

void cgroup_usage(const struct cgroup *cg, struct cgroup_usage *u)
{
	const struct cgroup_ops *ops = versions[cg->kind];

	*u = (struct cgroup_usage){.cpu_ns = -1};
	if (!ops)
		return;
	u->memory_bytes = at_least_0(file_number(cg->file[CGROUP_F_MEMORY]) -
				     reclaimable(cg, ops->stat_prefix));
	u->peak_bytes = file_number(cg->file[CGROUP_F_PEAK]);
	u->cpu_ns = ops->cpu_ns(cg);
	u->oom_kills = file_key(cg->file[CGROUP_F_OOM], "oom_kill");
	u->fork_fails = file_key(cg->file[CGROUP_F_PIDS_EVENTS], "max");
}

/* ---- the end ---- */

static int ms_until(int64_t until)
{
	return (int)at_least_0(until - now_ms());
}

/* Hold a directory that has our name, unless we hold it already. The name may
 * be another session's when we made nothing. 1 it is held, 0 it does not exist,
 * -1 with errno. */
static int hold_one(const struct cgroup *cg, int i, int timeout_ms, int *held)
{
	*held = -1;
	if (cg->held[i] >= 0)
		return 1;
	*held = cgroup_dir_hold(cg->dirs[i], timeout_ms);
	return *held >= 0 ? 1 : errno == ENOENT ? 0 : -1;
}

/* A process that dies where the share of the cores is used up would have to
 * wait for the next period, again and again. */
static void lift_cpu(const char *path)
{
	auto_close int dir = cgroup_dir_open(path);

	if (dir >= 0 && cgroup_dir_write(dir, "cpu.max", "max") < 0)
		cgroup_dir_write(dir, "cpu.cfs_quota_us", "-1");
}

static int remove_one(const struct cgroup *cg, int i, int timeout_ms)
{
	char parent[CGROUP_PATH_MAX];

	if (cgroup_dir_clear(cg->dirs[i], timeout_ms) < 0)
		return -1;
	cgroup_dir_parent(parent, cg->dirs[i]);
	if (cg->own_parent)
		rmdir(parent); /* fails while another session is there */
	return 0;
}

int cgroup_remove(const struct cgroup *cg, int timeout_ms, struct err *e)
{
	int64_t until = now_ms() + timeout_ms;
	int held[CGROUP_CONTROLLERS], is[CGROUP_CONTROLLERS], r = 0;

	for (int i = 0; i < cg->ndirs; i++) {
		is[i] = hold_one(cg, i, ms_until(until), &held[i]);
		if (is[i] < 0)
			r = err_errno(e, "cgroup: hold %s", cg->dirs[i]);
		if (is[i] > 0 && i == cg->at[CGROUP_CPU])
			lift_cpu(cg->dirs[i]);
	}
	for (int i = 0; i < cg->ndirs; i++) {
		if (is[i] > 0 && remove_one(cg, i, ms_until(until)) < 0)
			r = err_errno(e, "cgroup: remove %s", cg->dirs[i]);
		fd_drop(&held[i]);
	}
	return r;
}

static int is_by_pid(const char *name)
{
	size_t n = strlen(BY_PID);

	return !strncmp(name, BY_PID, n) && name[n] &&
	       name[n + strspn(name + n, "0123456789")] == '\0';
}

/* Whether a directory has the name of a session; of a session with a claimed
 * uid only when nobody has that uid. Other directories in a delegated cgroup
 * are not ours to touch, not even `cellblock-host`, which nobody holds. */
static int may_be_dead(const struct cgroup *cg, const char *name,
	int (*is_dead)(const char *name, void *arg), void *arg)
{
	size_t n = strlen(CGROUP_PREFIX);

	if (!cg->own_parent)
		return !strncmp(name, CGROUP_PREFIX, n) && is_by_pid(name + n);
	return is_by_pid(name) || (is_dead && is_dead(name, arg));
}

static void clear_if_dead(const char *parent, const char *name)
{
	char path[CGROUP_PATH_MAX];
	auto_close int held = -1;

	if (snprintf(path, sizeof(path), "%s/%s", parent, name) >=
		CGROUP_PATH_MAX)
		return;
	held = cgroup_dir_hold(path, 0);
	if (held >= 0 && !cgroup_dir_is_foreign(path))
		cgroup_dir_clear(path, CGROUP_CLEAR_MS);
}

void cgroup_clear_dead(const struct cgroup *cg,
	int (*is_dead)(const char *name, void *arg), void *arg)
{
	for (int i = 0; i < cg->ndirs; i++) {
		char parent[CGROUP_PATH_MAX];
		struct dirent *de;
		DIR *d;

		cgroup_dir_parent(parent, cg->dirs[i]);
		d = opendir(parent);
		while (d && (de = readdir(d)))
			if (de->d_type == DT_DIR &&
				may_be_dead(cg, de->d_name, is_dead, arg))
				clear_if_dead(parent, de->d_name);
		if (d)
			closedir(d);
		if (cg->own_parent)
			rmdir(parent);
	}
}
