/* SPDX-License-Identifier: MIT */
/*
 * end.c - nothing is left of a session's cgroup
 *
 * Runs in:   janitor; whoever makes a cgroup, for what is in its way
 * Holds:     while it kills and removes, the directory
 * Trusts:    a lock: whoever makes a session's directory holds it (flock(2))
 *            for as long as the session lives, across whatever else divides
 *            this host, and the kernel lets go for the dead
 * Leaves:    nothing; what would not go in time, to the next janitor
 */
#include "impl.h"
#include "jail/base/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- whether it lives ---- */

/* It may have been removed, and made anew, since it was opened. */
static int is_still(int fd, const char *path)
{
	struct stat ours, now;

	return fstat(fd, &ours) == 0 && lstat(path, &now) == 0 &&
	       ours.st_dev == now.st_dev && ours.st_ino == now.st_ino;
}

int cgroup_dir_hold(const char *path, int timeout_ms)
{
	int64_t until = now_ms() + timeout_ms;

	for (;;) {
		auto_close int fd = open(
			path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (fd < 0)
			return -1;
		if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
			if (is_still(fd, path))
				return fd_take(&fd);
		} else if (errno != EWOULDBLOCK) {
			return -1;
		}
		errno = EBUSY;
		if (now_ms() >= until)
			return -1;
		cgroup_nap();
	}
}

/* ---- removal ---- */

static int kill_listed(int dirfd)
{
	char buf[8192];
	int n = 0;

	/* Opened each time: v1 keeps showing an open file the same list. It is
	 * longer than this only for thousands of processes, and the callers
	 * come again until it is empty. */
	if (cgroup_read(dirfd, "cgroup.procs", buf, sizeof(buf)) <= 0)
		return 0;
	for (char *p = buf, *end; *p; p = *end ? end + 1 : end) {
		long pid = strtol(p, &end, 10);

		if (end == p)
			break;
		if (pid > 1 && *end == '\n')
			kill((pid_t)pid, SIGKILL);
		n++;
	}
	return n;
}

/* Kill whatever is in a cgroup, and remove it. Stopped first where that can
 * be, so that nothing forks away from the kill; then let go, because a frozen
 * process of v1 does not even die. */
static int dir_clear_one(const char *path, int timeout_ms)
{
	int64_t until = now_ms() + timeout_ms;
	auto_close int dir =
		open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dir < 0)
		return errno == ENOENT ? 0 : -1;
	while (rmdir(path) < 0 && errno != ENOENT) {
		if (errno != EBUSY || now_ms() > until)
			return -1;
		cgroup_write(dir, "freezer.state", "FROZEN");
		/* By number only where there is no other way: one of them may
		 * be somebody else's by now. */
		if (cgroup_write(dir, "cgroup.kill", "1") < 0)
			kill_listed(dir);
		cgroup_write(dir, "freezer.state", "THAWED");
		cgroup_write(dir, "cgroup.freeze", "0");
		cgroup_nap();
	}
	return 0;
}

static void guests_path(char *guests, const char *path)
{
	snprintf(guests, CGROUP_PATH_MAX + sizeof(CGROUP_GUESTS),
		"%s/" CGROUP_GUESTS, path);
}

int cgroup_dir_clear(const char *path, int timeout_ms)
{
	char guests[CGROUP_PATH_MAX + sizeof(CGROUP_GUESTS)];

	guests_path(guests, path);
	/* First what is within. */
	return dir_clear_one(guests, timeout_ms) < 0
		       ? -1
		       : dir_clear_one(path, timeout_ms);
}

static int ms_until(int64_t until)
{
	int64_t left = until - now_ms();

	return left > 0 ? (int)left : 0;
}

/* Ours by its name, which may be somebody else's too when we made nothing. 1 it
 * is held, 0 there is none, -1 with errno. */
static int dir_take(const struct cgroup *cg, int i, int timeout_ms, int *held)
{
	*held = -1;
	if (cg->held[i] >= 0)
		return 1;
	*held = cgroup_dir_hold(cg->dirs[i], timeout_ms);
	return *held >= 0 ? 1 : errno == ENOENT ? 0 : -1;
}

/* Who dies where the share of the cores is used up may have to wait for the
 * next, again and again. */
static void lift_cpu(const char *path)
{
	auto_close int dir =
		open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dir >= 0 && cgroup_write(dir, "cpu.max", "max") < 0)
		cgroup_write(dir, "cpu.cfs_quota_us", "-1");
}

static int dir_remove(const struct cgroup *cg, int i, int timeout_ms)
{
	char parent[CGROUP_PATH_MAX];

	if (cgroup_dir_clear(cg->dirs[i], timeout_ms) < 0)
		return -1;
	cgroup_parent_of(parent, cg->dirs[i]);
	if (cg->own_parent)
		rmdir(parent); /* unless another session is there */
	return 0;
}

int cgroup_remove(const struct cgroup *cg, int timeout_ms, struct err *e)
{
	int64_t until = now_ms() + timeout_ms;
	int held[CGROUP_CONTROLLERS], is[CGROUP_CONTROLLERS], r = 0;

	for (int i = 0; i < cg->ndirs; i++) {
		is[i] = dir_take(cg, i, ms_until(until), &held[i]);
		if (is[i] < 0)
			r = err_errno(e, "cgroup: hold %s", cg->dirs[i]);
		if (is[i] > 0 && i == cg->at[CGROUP_CPU])
			lift_cpu(cg->dirs[i]);
	}
	for (int i = 0; i < cg->ndirs; i++) {
		if (is[i] > 0 && dir_remove(cg, i, ms_until(until)) < 0)
			r = err_errno(e, "cgroup: remove %s", cg->dirs[i]);
		fd_drop(&held[i]);
	}
	return r;
}

/* ---- the remains of others ---- */

/* Whether there are processes in it that cannot be seen from here. */
static int holds_unseen(const char *path)
{
	auto_close int dir =
		open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char buf[64];

	return dir >= 0 &&
	       cgroup_read(dir, "cgroup.procs", buf, sizeof(buf)) > 0 &&
	       strtol(buf, NULL, 10) == 0;
}

/* Those are a container's, which has locks of its own but our cgroups. */
static void remains_clear(const char *path)
{
	char guests[CGROUP_PATH_MAX + sizeof(CGROUP_GUESTS)];

	guests_path(guests, path);
	if (!holds_unseen(path) && !holds_unseen(guests))
		cgroup_dir_clear(path, CGROUP_CLEAR_MS);
}

/* That of a session with no claimed uid. */
static int is_by_pid(const char *name)
{
	size_t n = strlen(CGROUP_BY_PID);

	return !strncmp(name, CGROUP_BY_PID, n) && name[n] &&
	       name[n + strspn(name + n, "0123456789")] == '\0';
}

/* Whether a session may have this name, and if it is that of a claimed uid,
 * that nobody has it. What is in a delegated cgroup beside ours is not for us
 * to touch: `cellblock-host`, which nobody holds, among it. */
static int may_be_dead(const struct cgroup *cg, const char *name,
	int (*is_dead)(const char *name, void *arg), void *arg)
{
	size_t n = strlen(CGROUP_PREFIX);

	if (!cg->own_parent)
		return !strncmp(name, CGROUP_PREFIX, n) && is_by_pid(name + n);
	return is_by_pid(name) || (is_dead && is_dead(name, arg));
}

void cgroup_sweep(const struct cgroup *cg,
	int (*is_dead)(const char *name, void *arg), void *arg)
{
	for (int i = 0; i < cg->ndirs; i++) {
		char parent[CGROUP_PATH_MAX], path[CGROUP_PATH_MAX];
		struct dirent *de;
		DIR *d;

		cgroup_parent_of(parent, cg->dirs[i]);
		d = opendir(parent);
		while (d && (de = readdir(d))) {
			auto_close int held = -1;

			if (de->d_type != DT_DIR ||
				!may_be_dead(cg, de->d_name, is_dead, arg) ||
				(size_t)snprintf(path, sizeof(path), "%s/%s",
					parent, de->d_name) >= sizeof(path))
				continue;
			held = cgroup_dir_hold(path, 0);
			if (held >= 0)
				remains_clear(path);
		}
		if (d)
			closedir(d);
		if (cg->own_parent)
			rmdir(parent);
	}
}
