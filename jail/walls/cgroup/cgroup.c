/* SPDX-License-Identifier: MIT */
/*
 * cgroup.c - limits on the jail as a whole, kept by the kernel
 *
 * Runs in:   warden: first with the right to make cgroups, then without
 * Holds:     descriptors opened in the first part; the kernel judges a write
 *            to cgroup.procs by who opened it
 * Trusts:    only values it read back: some hosts accept a limit and ignore it
 * Leaves:    directories, for the janitor
 *
 * Nothing outside directories of our own (`cellblock`, or `cellblock-NAME` in
 * a delegated subtree) is ever written to, with one exception that v2 asks
 * for: see cgroup_v2.c.
 */
#include "cgroup.h"

#include "impl.h"
#include "jail/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MOUNTS_MAX 16

const struct cgroup_names cgroup_names = {{
	[CGROUP_MEMORY] = "memory",
	[CGROUP_PIDS] = "pids",
	[CGROUP_CPU] = "cpu",
	[CGROUP_CPUACCT] = "cpuacct",
	[CGROUP_FREEZER] = "freezer",
}};

/* ---- small files ---- */

void cgroup_nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = CGROUP_NAP_NS}, NULL);
}

int cgroup_write_fd(int fd, const char *text)
{
	size_t n = strlen(text);
	ssize_t r = pwrite(fd, text, n, 0);

	if (r >= 0 && (size_t)r != n)
		errno = EIO;
	return r == (ssize_t)n ? 0 : -1;
}

int cgroup_write(int dirfd, const char *file, const char *text)
{
	auto_close int fd = openat(dirfd, file, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -1 : cgroup_write_fd(fd, text);
}

ssize_t cgroup_read_fd(int fd, char *buf, size_t size)
{
	ssize_t r = fd < 0 ? -1 : pread(fd, buf, size - 1, 0);

	buf[r < 0 ? 0 : r] = '\0';
	return r;
}

ssize_t cgroup_read(int dirfd, const char *file, char *buf, size_t size)
{
	auto_close int fd = openat(dirfd, file, O_RDONLY | O_CLOEXEC);

	return cgroup_read_fd(fd, buf, size);
}

int64_t cgroup_key(const char *text, const char *key)
{
	size_t n = strlen(key);

	for (const char *p = text; p; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (!strncmp(p, key, n) && p[n] == ' ')
			return strtoll(p + n + 1, NULL, 10);
	}
	return -1;
}

static int64_t file_number(int fd)
{
	char buf[64];

	if (cgroup_read_fd(fd, buf, sizeof(buf)) <= 0)
		return -1;
	return strtoll(buf, NULL, 10);
}

static int64_t file_key(int fd, const char *key)
{
	char buf[4096];

	if (cgroup_read_fd(fd, buf, sizeof(buf)) <= 0)
		return -1;
	return cgroup_key(buf, key);
}

/* ---- what is there ---- */

int cgroup_dir_writable(const char *path)
{
	return faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0;
}

/* 1 if the line is of a cgroup file system. The fields are: id, parent,
 * device, root, mount point, options, optional ones, "-", type, source,
 * options of the super block. */
static int mount_parse(char *line, struct cgroup_mount *m)
{
	char *dash = strstr(line, " - ");
	char type[32], super[sizeof(m->options)];

	if (!dash || sscanf(dash, " - %31s %*s %255s", type, super) != 2)
		return 0;
	if (strcmp(type, "cgroup") && strcmp(type, "cgroup2"))
		return 0;
	if (sscanf(line, "%*s %*s %*s %*s %511s", m->point) != 1)
		return 0;
	m->v2 = !strcmp(type, "cgroup2");
	memcpy(m->options, super, sizeof(super));
	return 1;
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
	if (cgroup_v2_probe(caps, mounts, n) > 0)
		return;
	if (cgroup_v1_probe(caps, mounts, n) > 0)
		return;
	caps->kind = CGROUP_NONE;
	if (!caps->why[0])
		snprintf(caps->why, sizeof(caps->why),
			n ? "no cgroup here may be written to"
			  : "no cgroup file system is mounted");
}

/* ---- making ---- */

void cgroup_parent_of(char *parent, const char *dir)
{
	memcpy(parent, dir, CGROUP_PATH_MAX);
	*strrchr(parent, '/') = '\0';
}

/* What a dead session left there is removed. -1 with errno, EBUSY if one
 * lives there. */
static int make_place(const char *path)
{
	auto_close int held = cgroup_dir_hold(path, CGROUP_CLEAR_MS);

	if (held < 0)
		return errno == ENOENT ? 0 : -1;
	return cgroup_dir_clear(path, CGROUP_CLEAR_MS);
}

int cgroup_dir_make(struct cgroup *cg, int i, struct err *e)
{
	const char *path = cg->dirs[i];
	char parent[CGROUP_PATH_MAX];
	int tries = 8;

	cgroup_parent_of(parent, path);
	/* Between two of our steps a session that ends may remove the parent,
	 * and one that sweeps what nobody holds yet. */
	while (tries--) {
		/* Nobody else's to look into: who can open it can hold it. */
		if (mkdir(path, 0700) == 0) {
			cg->held[i] = cgroup_dir_hold(path, CGROUP_CLEAR_MS);
			if (cg->held[i] >= 0)
				return 0;
			if (errno != ENOENT)
				return err_errno(e, "cgroup: hold %s", path);
		} else if (errno == EEXIST) {
			if (make_place(path) < 0)
				return err_errno(e,
					"cgroup: remove what is left in %s",
					path);
		} else if (errno != ENOENT ||
			   (mkdir(parent, 0755) < 0 && errno != EEXIST)) {
			break;
		}
	}
	return err_errno(e, "cgroup: make %s", path);
}

void cgroup_refuse(struct cgroup *cg, const char *word)
{
	size_t n = strlen(cg->refused);

	snprintf(cg->refused + n, sizeof(cg->refused) - n, "%s%s",
		n ? ", " : "", word);
}

int cgroup_set_limit(struct cgroup *cg, int dirfd, const char *file,
	int64_t value, const char *word)
{
	char text[32], back[64];
	int64_t kept;

	snprintf(text, sizeof(text), "%" PRId64, value);
	if (cgroup_write(dirfd, file, text) == 0 &&
		cgroup_read(dirfd, file, back, sizeof(back)) > 0) {
		char *end;

		kept = strtoll(back, &end, 10); /* "max": no number */
		if (end != back && kept <= value && kept > value / 2)
			return 1;
	}
	cgroup_refuse(cg, word);
	return 0;
}

static int name_is_sane(const char *name)
{
	return name[0] && name[0] != '.' && !strchr(name, '/') &&
	       strlen(name) < 64;
}

static void cgroup_init(struct cgroup *cg)
{
	memset(cg, 0, sizeof(*cg));
	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		cg->at[i] = cg->procs[i] = cg->tasks[i] = cg->held[i] = -1;
	for (int i = 0; i < CGROUP_FILES; i++)
		cg->file[i] = -1;
}

/* Where those of a controller are; -1: too long a path. */
static int place(struct cgroup *cg, const struct cgroup_caps *caps, int c,
	const char *name)
{
	/* Some are mounted together, and version 2 has them all in one. */
	for (int i = c + 1; i < CGROUP_CONTROLLERS; i++)
		if (cg->at[i] >= 0 && !strcmp(caps->dir[i], caps->dir[c])) {
			cg->at[c] = cg->at[i];
			return 0;
		}
	cg->at[c] = cg->ndirs++;
	return (size_t)snprintf(cg->dirs[cg->at[c]], CGROUP_PATH_MAX, "%s/%s%s",
		       caps->dir[c], caps->shared ? CGROUP_PREFIX : "",
		       name) < CGROUP_PATH_MAX
		       ? 0
		       : -1;
}

int cgroup_place(struct cgroup *cg, const struct cgroup_caps *caps,
	const char *name, struct err *e)
{
	char own[32];

	cgroup_init(cg);
	snprintf(own, sizeof(own), CGROUP_BY_PID "%d", (int)getpid());
	name = name ? name : own;
	if (caps->kind == CGROUP_NONE)
		return 0;
	if (!name_is_sane(name))
		return err_set(e, "cgroup: %s is no name for one", name);
	/* The freezer's first: that is where the janitor begins. */
	for (int c = CGROUP_CONTROLLERS - 1; c >= 0; c--) {
		if (caps->kind == CGROUP_V1 && !(caps->usable & 1u << c))
			continue;
		if (place(cg, caps, c, name) < 0) {
			cgroup_init(cg);
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
	int r = 0;

	switch (cg->kind) {
	case CGROUP_NONE:
		break;
	case CGROUP_V1:
		r = cgroup_v1_make(cg, caps, l, e);
		break;
	case CGROUP_V2:
		r = cgroup_v2_make(cg, caps, l, e);
		break;
	}
	if (r < 0) {
		cgroup_close(cg);
		cgroup_remove(cg, 0, NULL);
		cgroup_init(cg);
	}
	return r;
}

void cgroup_close(struct cgroup *cg)
{
	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		fd_drop(&cg->procs[i]);
		fd_drop(&cg->tasks[i]);
		fd_drop(&cg->held[i]);
	}
	for (int i = 0; i < CGROUP_FILES; i++)
		fd_drop(&cg->file[i]);
}

/* ---- in use ---- */

static int enter_fd(const struct cgroup *cg, int i)
{
	return cg->tasks[i] >= 0 ? cg->tasks[i] : cg->procs[i];
}

static int enter_one(const struct cgroup *cg, int i, struct err *e)
{
	int fd = enter_fd(cg, i);

	if (fd >= 0 && cgroup_write_fd(fd, "0") < 0)
		return err_errno(
			e, "cgroup: enter that of %s", cgroup_names.name[i]);
	return 0;
}

int cgroup_enter(const struct cgroup *cg, struct err *e)
{
	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		if (i != CGROUP_FREEZER && enter_one(cg, i, e) < 0)
			return -1;
	return 0;
}

int cgroup_enter_freezer(const struct cgroup *cg, struct err *e)
{
	return enter_one(cg, CGROUP_FREEZER, e);
}

int cgroup_freezer_fd(const struct cgroup *cg)
{
	return enter_fd(cg, CGROUP_FREEZER);
}

int cgroup_can_freeze(const struct cgroup *cg)
{
	return cg->file[CGROUP_F_FREEZE] >= 0;
}

int cgroup_freeze(
	const struct cgroup *cg, int on, int timeout_ms, struct err *e)
{
	if (!cgroup_can_freeze(cg))
		return err_set(e, "cgroup: there is no freezer");
	return cg->kind == CGROUP_V2 ? cgroup_v2_freeze(cg, on, timeout_ms, e)
				     : cgroup_v1_freeze(cg, on, timeout_ms, e);
}

/* Page cache of files goes when memory is short; tmpfs is not among it. */
static int64_t reclaimable(const struct cgroup *cg)
{
	char buf[8192];
	const char *total = cg->kind == CGROUP_V1 ? "total_" : "";
	static const char *const keys[] = {"inactive_file", "active_file"};
	int64_t sum = 0;

	cgroup_read_fd(cg->file[CGROUP_F_MEMORY_STAT], buf, sizeof(buf));
	for (int i = 0; i < 2; i++) {
		char key[32];
		int64_t v;

		snprintf(key, sizeof(key), "%s%s", total, keys[i]);
		v = cgroup_key(buf, key);
		sum += v > 0 ? v : 0;
	}
	return sum;
}

static int64_t at_least_0(int64_t v)
{
	return v < 0 ? 0 : v;
}

void cgroup_usage(const struct cgroup *cg, struct cgroup_usage *u)
{
	memset(u, 0, sizeof(*u));
	u->charged_bytes = at_least_0(file_number(cg->file[CGROUP_F_MEMORY]));
	u->memory_bytes = at_least_0(u->charged_bytes - reclaimable(cg));
	u->peak_bytes = at_least_0(file_number(cg->file[CGROUP_F_PEAK]));
	if (cg->kind == CGROUP_V2) {
		u->cpu_ns = file_key(cg->file[CGROUP_F_CPU], "usage_usec");
		u->cpu_ns *= u->cpu_ns > 0 ? 1000 : 1;
	} else {
		u->cpu_ns = file_number(cg->file[CGROUP_F_CPU]);
	}
	u->oom_kills = at_least_0(file_key(cg->file[CGROUP_F_OOM], "oom_kill"));
	u->fork_fails =
		at_least_0(file_key(cg->file[CGROUP_F_PIDS_EVENTS], "max"));
}
