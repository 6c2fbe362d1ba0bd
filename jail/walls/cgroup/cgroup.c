/* SPDX-License-Identifier: MIT */
/*
 * cgroup.c - limits on a session as a whole, kept by the kernel
 *
 * Runs in:   warden, first with the right to make cgroups, then without;
 *            janitor, to remove them
 * Holds:     descriptors opened while it had that right; the kernel judges a
 *            write to cgroup.procs by the credentials of the opener
 * Trusts:    only values it read back: some hosts accept a limit and ignore it
 * Leaves:    directories, for the janitor; after the janitor, nothing
 *
 * Only directories of our own (`cellblock`, or `cellblock-NAME` in a delegated
 * subtree) are written to. v2 needs one exception: see versions.c.
 */

#include "impl.h"
#include "jail/base/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

/* Names of sessions without an allocated uid begin with this. */
#define BY_PID "pid-"
/* The directory whose memory limit we set has this attribute, which only root
 * writes and reads. */
#define BOUND_MARK "trusted.cellblock.memory"

static const struct cgroup_ops *const versions[] = {
	[CGROUP_V1] = &cgroup_v1,
	[CGROUP_V2] = &cgroup_v2,
};

/* ---- what this host offers ---- */

/* Look at a mount: 1 if it is of a cgroup file system. A version 2 that can be
 * used takes the place of version 1. */
static int probe_mount(struct cgroup_caps *caps, const struct mntent *m)
{
	for (int v = CGROUP_V1; v <= CGROUP_V2; v++)
		if (!strcmp(m->mnt_type, versions[v]->fstype)) {
			versions[v]->probe(caps, m);
			return 1;
		}
	return 0;
}

void cgroup_probe(
	struct cgroup_caps *caps, pid_t with, pid_t also, const char *below)
{
	FILE *f = setmntent("/proc/self/mounts", "re");
	const struct mntent *m;
	int n = 0;

	*caps = (struct cgroup_caps){
		.below = below, .with = {with, 0, also}, .person = -1};
	while (f && caps->kind != CGROUP_V2 && (m = getmntent(f)))
		n += probe_mount(caps, m);
	if (f)
		endmntent(f);
	if (caps->kind == CGROUP_NONE && !caps->why[0])
		strcpy(caps->why,
			geteuid() != 0 ? "no cgroup is delegated to this user"
			: n	       ? "no cgroup here may be written to"
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
	cg->enter[CGROUP_ABOVE] = -1;
	cg->person = -1;
	for (int i = 0; i < CGROUP_FILES; i++)
		cg->file[i] = -1;
}

/* Place the directory of a controller. -1 if the path is too long. */
static int place_controller(struct cgroup *cg, const struct cgroup_caps *caps,
	int c, const char *name)
{
	int in = caps->in[0] && !strcmp(caps->dir[c], caps->dir[CGROUP_CPU]);
	int n;

	/* v1 mounts some controllers together, v2 all. */
	for (int i = c + 1; i < CGROUP_CONTROLLERS; i++)
		if (cg->at[i] >= 0 && !strcmp(caps->dir[i], caps->dir[c])) {
			cg->at[c] = cg->at[i];
			return 0;
		}
	cg->at[c] = cg->ndirs++;
	cg->above[cg->at[c]] = caps->shared ? 0 : in ? 2 : 1;
	n = snprintf(cg->dirs[cg->at[c]], CGROUP_PATH_MAX, "%s/%s%s%s%s",
		caps->dir[c], in ? caps->in : "", in ? "/" : "",
		caps->shared ? CGROUP_PREFIX : "", name);
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
		if (place_controller(cg, caps, c, name) < 0) {
			make_empty(cg);
			return err_set(e, "cgroup: %s is too long a path",
				caps->dir[c]);
		}
	}
	cg->kind = caps->kind;
	cg->person = caps->person;
	return 0;
}

static void open_files(
	struct cgroup *cg, const struct cgroup_ops *ops, int first, int n)
{
	for (int i = first; i < n; i++) {
		int dir = cgroup_fd_of(cg, ops->files[i].in);
		int mode = i >= CGROUP_F_MOST || i == CGROUP_F_FREEZE
				   ? O_RDWR
				   : O_RDONLY;

		if (dir >= 0 && ops->files[i].name)
			cg->file[i] = openat(
				dir, ops->files[i].name, mode | O_CLOEXEC);
	}
}

int cgroup_open(struct cgroup *cg, const struct cgroup_caps *caps,
	const struct limits *l, struct err *e)
{
	const struct cgroup_ops *ops = versions[cg->kind];

	if (!ops)
		return 0;
	if (ops->make(cg, caps, l, e) == 0) {
		open_files(cg, ops, 0, CGROUP_F_MOST);
		cg->enforced = ops->limit(cg, l);
		/* Without a mark the next session goes by the number. */
		if (cg->person >= 0)
			cgroup_person_mark(cg, (uid_t)cg->person, NULL);
		return 0;
	}
	cgroup_close(cg);
	cgroup_remove(cg, 0, NULL);
	make_empty(cg);
	return -1;
}

int cgroup_lower(const struct cgroup *cg, const struct limits *l, struct err *e)
{
	const struct cgroup_ops *ops = versions[cg->kind];
	unsigned kept = ops ? ops->limit(cg, l) : 0;

	return (cg->enforced & ~kept) == 0
		       ? 0
		       : err_set(e, "cgroup: the limits were not lowered");
}

void cgroup_hold_memory(struct cgroup *cg)
{
	if (cg->enforced & CGROUP_LIMIT_MEMORY)
		open_files(cg, versions[cg->kind], CGROUP_F_MOST, CGROUP_FILES);
}

void cgroup_fix_memory(struct cgroup *cg)
{
	fds_drop(cg->file + CGROUP_F_MOST, CGROUP_FILES - CGROUP_F_MOST);
}

int cgroup_lower_memory(const struct cgroup *cg, int64_t bytes, struct err *e)
{
	const struct cgroup_ops *ops = versions[cg->kind];
	const int *file = cg->file;

	if (!(cg->enforced & CGROUP_LIMIT_MEMORY))
		return 0;
	/* Memory and swap together may not be less than memory alone. */
	if (!cgroup_dir_reset_number(file[CGROUP_F_MOST], bytes) ||
		(file[CGROUP_F_MOST_SWAP] >= 0 &&
			!cgroup_dir_reset_number(
				file[CGROUP_F_MOST_SWAP], bytes)))
		return err_set(e, "cgroup: the memory limit was not lowered");
	if (file[CGROUP_F_MOST_SOCKETS] >= 0)
		cgroup_dir_reset_number(
			file[CGROUP_F_MOST_SOCKETS], bytes / ops->sockets_den);
	return 0;
}

int cgroup_move_below(const struct cgroup_caps *caps, struct err *e)
{
	const struct cgroup_ops *ops = versions[caps->kind];

	if (caps->below && caps->kind == CGROUP_NONE)
		return err_set(e, "cgroup: %.220s", caps->why);
	return ops && ops->move_below ? ops->move_below(caps, e) : 0;
}

/* Take back a bound of ours. The unit in which sessions lie may have one of its
 * administrator's. */
static void unbound_all(int dir, const struct cgroup_ops *ops)
{
	char mark;

	if (dir >= 0 && fgetxattr(dir, BOUND_MARK, &mark, 1) >= 0 &&
		cgroup_dir_write(dir, ops->memory_max, ops->no_max) == 0)
		fremovexattr(dir, BOUND_MARK);
}

int cgroup_bound_all(const struct cgroup *cg, int64_t bytes, struct err *e)
{
	const struct cgroup_ops *ops = versions[cg->kind];
	int i = cg->at[CGROUP_MEMORY];
	char above[CGROUP_PATH_MAX] = "";
	auto_close int dir = -1;

	if (ops && i >= 0) {
		cgroup_dir_top(above, cg, i);
		dir = cgroup_dir_open(above);
	}
	if (!bytes) {
		unbound_all(dir, ops);
		return 0;
	}
	if (dir >= 0 && fsetxattr(dir, BOUND_MARK, "1", 1, 0) == 0 &&
		cgroup_dir_set_number(dir, ops->memory_max, bytes))
		return 0;
	err_set(e, "bound the memory of all sessions together: this host does "
		   "not keep such a limit");
	err_hint(e, "maker.memory asks for it");
	return err_kind_set(e, ERR_CONFIG);
}

static int64_t at_least_0(int64_t v)
{
	return v < 0 ? 0 : v;
}

/* The page cache of files, which the kernel takes back when memory is short.
 * tmpfs is not part of it. */
static int64_t reclaimable_bytes(int fd, const char *const keys[2])
{
	char buf[8192];

	cgroup_dir_reread(fd, buf, sizeof(buf));
	return at_least_0(cgroup_dir_key(buf, keys[0])) +
	       at_least_0(cgroup_dir_key(buf, keys[1]));
}

static int64_t number_in(int dir, const char *name)
{
	char buf[64];
	char *end;
	int64_t v;

	if (io_read_small(dir, name, buf, sizeof(buf)) <= 0)
		return -1;
	v = strtoll(buf, &end, 10);
	return end == buf ? -1 : v; /* "max" is no number */
}

/* The name of a file that each cgroup has. */
static const char *file_name(const struct cgroup_ops *ops, enum cgroup_file f)
{
	return strrchr(ops->files[f].name, '/') + 1;
}

int64_t cgroup_left_of_all(const struct cgroup *cg)
{
	const struct cgroup_ops *ops = versions[cg->kind];
	int i = cg->at[CGROUP_MEMORY];
	char top[CGROUP_PATH_MAX];
	auto_close int dir = -1, stat = -1;
	int64_t most, used;

	if (!ops || i < 0)
		return INT64_MAX;
	cgroup_dir_top(top, cg, i);
	dir = cgroup_dir_open(top);
	most = number_in(dir, ops->memory_max);
	used = number_in(dir, file_name(ops, CGROUP_F_MEMORY));
	if (most < 0 || used < 0)
		return INT64_MAX;
	stat = openat(dir, file_name(ops, CGROUP_F_MEMORY_STAT),
		O_RDONLY | O_CLOEXEC);
	return most - used + reclaimable_bytes(stat, ops->cache);
}

void cgroup_close(struct cgroup *cg)
{
	fds_drop(cg->enter, CGROUP_CONTROLLERS);
	fds_drop(cg->held, CGROUP_CONTROLLERS);
	fd_drop(&cg->enter[CGROUP_ABOVE]);
	fds_drop(cg->file, CGROUP_FILES);
}

/* ---- in use ---- */

int cgroup_enter_warden(const struct cgroup *cg, struct err *e)
{
	char file[64];

	for (int i = 0; i < cg->ndirs; i++) {
		snprintf(file, sizeof(file), CGROUP_WARDEN "/%s",
			versions[cg->kind]->enter);
		if (cgroup_dir_write(cg->held[i], file, "0") < 0 &&
			errno != ENOENT)
			return err_errno(e, "cgroup: enter that of the warden");
	}
	return 0;
}

int cgroup_enter(const struct cgroup *cg, int freezer, struct err *e)
{
	for (int c = 0; c <= CGROUP_ABOVE; c++)
		if ((c == CGROUP_FREEZER) == freezer && cg->enter[c] >= 0 &&
			cgroup_dir_rewrite(cg->enter[c], "0") < 0)
			return err_errno(e, "cgroup: enter that of %s",
				cgroup_controllers[c]);
	return 0;
}

int cgroup_can_freeze(const struct cgroup *cg)
{
	return cg->file[CGROUP_F_FREEZE] >= 0;
}

static int is_frozen(
	const struct cgroup *cg, const struct cgroup_ops *ops, int on)
{
	char buf[256];

	return cgroup_dir_reread(cg->file[CGROUP_F_EVENTS], buf, sizeof(buf)) >
		       0 &&
	       strstr(buf, ops->frozen[on]);
}

int cgroup_freeze(
	const struct cgroup *cg, int on, int timeout_ms, struct err *e)
{
	const struct cgroup_ops *ops = versions[cg->kind];
	int64_t until = now_ms() + timeout_ms;
	const char *verb = on ? "freeze" : "thaw";

	if (!ops || !cgroup_can_freeze(cg))
		return err_set(e, "cgroup: there is no freezer");
	if (cgroup_dir_rewrite(cg->file[CGROUP_F_FREEZE], ops->freeze[on]) < 0)
		return err_errno(e, "cgroup: %s", verb);
	/* v1 has no notification, and looks itself only when it is read; the
	 * kernel holds the notification of v2 back for up to 10 ms. */
	while (!is_frozen(cg, ops, on)) {
		if (now_ms() >= until) {
			errno = ETIMEDOUT;
			return err_errno(e, "cgroup: %s", verb);
		}
		cgroup_dir_nap();
	}
	return 0;
}

/* The number after `key` in a file that is open, or, with NULL, that the file
 * holds alone; -1 unknown. */
static int64_t file_number(int fd, const char *key)
{
	char buf[4096];

	if (cgroup_dir_reread(fd, buf, sizeof(buf)) <= 0)
		return -1;
	return key ? cgroup_dir_key(buf, key) : strtoll(buf, NULL, 10);
}

void cgroup_usage(const struct cgroup *cg, struct cgroup_usage *u)
{
	const struct cgroup_ops *ops = versions[cg->kind];
	const int *file = cg->file;

	*u = (struct cgroup_usage){.cpu_ns = -1, .limit_hits = -1};
	if (!ops)
		return;
	u->peak_bytes = at_least_0(file_number(file[CGROUP_F_PEAK], NULL));
	u->cpu_ns = file_number(file[CGROUP_F_CPU], ops->cpu_key);
	if (u->cpu_ns > 0)
		u->cpu_ns *= ops->cpu_unit_ns;
	u->oom_kills = at_least_0(file_number(file[CGROUP_F_OOM], "oom_kill"));
	u->limit_hits = file_number(file[CGROUP_F_HITS], ops->hits_key);
	u->fork_fails =
		at_least_0(file_number(file[CGROUP_F_PIDS_EVENTS], "max"));
}

void cgroup_usage_by_path(const struct cgroup *cg, struct cgroup_usage *u)
{
	struct cgroup look = *cg;

	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		look.held[i] =
			i < cg->ndirs ? cgroup_dir_open(cg->dirs[i]) : -1;
	for (int i = 0; i < CGROUP_FILES; i++)
		look.file[i] = -1;
	for (int i = 0; i < CGROUP_ABOVE + 1; i++)
		look.enter[i] = -1;
	if (versions[cg->kind])
		open_files(&look, versions[cg->kind], 0, CGROUP_F_FREEZE);
	cgroup_usage(&look, u);
	cgroup_close(&look);
}

int64_t cgroup_memory(const struct cgroup *cg)
{
	const struct cgroup_ops *ops = versions[cg->kind];
	const int *file = cg->file;

	if (!ops)
		return 0;
	return at_least_0(
		at_least_0(file_number(file[CGROUP_F_MEMORY], NULL)) -
		reclaimable_bytes(file[CGROUP_F_MEMORY_STAT], ops->cache));
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
	char above[CGROUP_PATH_MAX];

	if (cgroup_dir_clear(cg->dirs[i], timeout_ms) < 0)
		return -1;
	strcpy(above, cg->dirs[i]);
	for (int n = cg->above[i]; n > 0; n--) {
		*strrchr(above, '/') = '\0';
		rmdir(above); /* fails while another session is there */
	}
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

/* True if a directory has the name of a session; of a session with an allocated
 * uid only when no session has that uid. Other directories in a delegated
 * cgroup are not ours to touch, not even `cellblock-host`, which nobody holds.
 */
static int may_be_dead(int shared, const char *name,
	int (*is_dead)(const char *name, void *arg), void *arg)
{
	size_t n = strlen(CGROUP_PREFIX);

	if (shared)
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

/* Clear the dead sessions in one directory. In one of ours (`above` is not 0)
 * persons' directories lie beside the sessions of earlier builds. */
static void clear_in(const char *parent, int above,
	int (*is_dead)(const char *name, void *arg), void *arg)
{
	DIR *d = opendir(parent);
	struct dirent *de;

	while (d && (de = readdir(d))) {
		char path[CGROUP_PATH_MAX];

		if (de->d_type != DT_DIR)
			continue;
		if (may_be_dead(!above, de->d_name, is_dead, arg))
			clear_if_dead(parent, de->d_name);
		else if (above > 1 && cgroup_person_is_one(de->d_name) &&
			 snprintf(path, sizeof(path), "%s/%s", parent,
				 de->d_name) < CGROUP_PATH_MAX)
			clear_in(path, 1, is_dead, arg);
	}
	if (d)
		closedir(d);
	if (above)
		rmdir(parent); /* fails while another session is there */
}

void cgroup_clear_dead(const struct cgroup *cg,
	int (*is_dead)(const char *name, void *arg), void *arg)
{
	for (int i = 0; i < cg->ndirs; i++) {
		char top[CGROUP_PATH_MAX];

		cgroup_dir_top(top, cg, i);
		clear_in(top, cg->above[i], is_dead, arg);
	}
}
