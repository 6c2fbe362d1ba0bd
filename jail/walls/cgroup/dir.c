/* SPDX-License-Identifier: MIT */
/*
 * dir.c - one directory of a cgroup file system, and the files in it
 *
 * Runs in:   warden, janitor
 * Holds:     the directory, while it kills and removes what is in it
 * Trusts:    values it read back; a lock: the maker of a session's directory
 *            holds it (flock(2)) as long as the session lives, whatever
 *            namespaces divide this host, and the kernel lets go for the dead
 * Leaves:    what would not die in time, for the next janitor
 */
#include "impl.h"

#include "jail/base/array.h"
#include "jail/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#define NAP_NS 200000
/* How long killed processes have to die before they are killed again. */
#define MOST_WAIT_MS 500

/* The leaves of a session's directory, the innermost first. */
static const char *const leaves[] = {CGROUP_GUESTS, CGROUP_JAIL, CGROUP_WARDEN};

/* ---- files ---- */

int cgroup_dir_rewrite(int fd, const char *text)
{
	size_t n = strlen(text);
	ssize_t r = pwrite(fd, text, n, 0);

	if (r >= 0 && (size_t)r != n)
		errno = EIO;
	return r == (ssize_t)n ? 0 : -1;
}

int cgroup_dir_write(int dir, const char *file, const char *text)
{
	auto_close int fd = openat(dir, file, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -1 : cgroup_dir_rewrite(fd, text);
}

ssize_t cgroup_dir_reread(int fd, char *buf, size_t size)
{
	ssize_t r = fd < 0 ? -1 : pread(fd, buf, size - 1, 0);

	buf[r < 0 ? 0 : r] = '\0';
	return r;
}

int cgroup_dir_set_number(int dir, const char *file, int64_t value)
{
	auto_close int fd = openat(dir, file, O_RDWR | O_CLOEXEC);

	return fd >= 0 && cgroup_dir_reset_number(fd, value);
}

int cgroup_dir_reset_number(int fd, int64_t value)
{
	char text[32], back[64], *end;
	int64_t kept;

	snprintf(text, sizeof(text), "%" PRId64, value);
	if (cgroup_dir_rewrite(fd, text) < 0 ||
		cgroup_dir_reread(fd, back, sizeof(back)) <= 0)
		return 0;
	kept = strtoll(back, &end, 10); /* "max" is no number */
	return end != back && kept <= value && kept > value / 2;
}

int cgroup_dir_set_text(int dir, const char *file, const char *text)
{
	size_t n = strlen(text);
	char back[64];

	return cgroup_dir_write(dir, file, text) == 0 &&
	       io_read_small(dir, file, back, sizeof(back)) > (ssize_t)n &&
	       !strncmp(back, text, n) && back[n] == '\n';
}

int64_t cgroup_dir_key(const char *text, const char *key)
{
	size_t n = strlen(key);

	for (const char *p = text; p; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (!strncmp(p, key, n) && p[n] == ' ')
			return strtoll(p + n + 1, NULL, 10);
	}
	return -1;
}

static void nap(int64_t ns)
{
	nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

void cgroup_dir_nap(void)
{
	nap(NAP_NS);
}

/* ---- a directory and its lock ---- */

void cgroup_dir_parent(char parent[CGROUP_PATH_MAX], const char *path)
{
	memcpy(parent, path, CGROUP_PATH_MAX);
	*strrchr(parent, '/') = '\0';
}

void cgroup_dir_top(char top[CGROUP_PATH_MAX], const struct cgroup *cg, int i)
{
	cgroup_dir_parent(top, cg->dirs[i]);
	if (cg->above[i] > 1)
		*strrchr(top, '/') = '\0';
}

int cgroup_dir_open(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Since it was opened it may have been removed, and made anew. */
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
		auto_close int fd = cgroup_dir_open(path);

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
		cgroup_dir_nap();
	}
}

/* Remove the remains of a dead session. -1 with errno, EBUSY if a session
 * lives there. */
static int clear_remains(const char *path)
{
	auto_close int held = cgroup_dir_hold(path, CGROUP_CLEAR_MS);

	if (held < 0)
		return errno == ENOENT ? 0 : -1;
	return cgroup_dir_clear(path, CGROUP_CLEAR_MS);
}

/* Make the directory above `path`, and the one above that. */
static int make_above(const char *path)
{
	char parent[CGROUP_PATH_MAX], top[CGROUP_PATH_MAX];

	cgroup_dir_parent(parent, path);
	if (mkdir(parent, 0755) == 0 || errno == EEXIST)
		return 0;
	cgroup_dir_parent(top, parent);
	if (errno != ENOENT || (mkdir(top, 0755) < 0 && errno != EEXIST))
		return -1;
	return mkdir(parent, 0755) == 0 || errno == EEXIST ||
			       errno == ENOENT /* removed again: once more */
		       ? 0
		       : -1;
}

int cgroup_dir_make(const char *path, struct err *e)
{
	/* Between two of these steps a session that ends may remove what is
	 * above, and a janitor may remove what nobody holds yet. */
	for (int tries = 16; tries > 0; tries--) {
		/* Mode 0700: a process that can open the directory can hold
		 * it. */
		if (mkdir(path, 0700) == 0) {
			int held = cgroup_dir_hold(path, CGROUP_CLEAR_MS);

			if (held >= 0)
				return held;
			if (errno != ENOENT)
				return err_errno(e, "cgroup: hold %s", path);
		} else if (errno == EEXIST) {
			if (clear_remains(path) < 0)
				return err_errno(e,
					"cgroup: remove what is left in %s",
					path);
		} else if (errno != ENOENT || make_above(path) < 0) {
			break;
		}
	}
	return err_errno(e, "cgroup: make %s", path);
}

/* ---- removal ---- */

static void kill_listed(int dir)
{
	char buf[8192];

	/* Opened each time: v1 keeps showing an open file the same list. The
	 * list is longer than this only for thousands of processes, and the
	 * caller comes again until it is empty. */
	if (io_read_small(dir, "cgroup.procs", buf, sizeof(buf)) <= 0)
		return;
	for (char *p = buf, *end; *p; p = *end ? end + 1 : end) {
		long pid = strtol(p, &end, 10);

		if (end == p)
			break;
		if (pid > 1 && *end == '\n')
			kill((pid_t)pid, SIGKILL);
	}
}

/* Remove a cgroup as soon as nothing is in it: 0, or -1 with errno. The longer
 * we may wait, the less often we look. */
static int remove_within(const char *path, int64_t ms)
{
	int64_t end = now_ms() + ms, look_ns = NAP_NS + ms * 1000000 / 20;

	while (rmdir(path) < 0 && errno != ENOENT) {
		if (errno != EBUSY || now_ms() >= end)
			return -1;
		nap(look_ns);
	}
	return 0;
}

/* Kill whatever is in a cgroup, and remove it. Where possible it is frozen
 * first, so that nothing forks away from the kill; and then thawed, because a
 * frozen process of v1 does not die. On a busy host a killed process waits long
 * for the CPU time that it needs to die: after each round it has more time. */
static int clear_one(const char *path, int timeout_ms)
{
	int64_t until = now_ms() + timeout_ms, wait_ms = 0;
	auto_close int dir = cgroup_dir_open(path);

	if (dir < 0)
		return errno == ENOENT ? 0 : -1;
	while (remove_within(path, wait_ms) < 0) {
		if (errno != EBUSY || now_ms() > until)
			return -1;
		cgroup_dir_write(dir, "freezer.state", "FROZEN");
		/* By number only where there is no other way: a number may
		 * belong to another process by now. */
		if (cgroup_dir_write(dir, "cgroup.kill", "1") < 0)
			kill_listed(dir);
		cgroup_dir_write(dir, "freezer.state", "THAWED");
		cgroup_dir_write(dir, "cgroup.freeze", "0");
		if (wait_ms < MOST_WAIT_MS)
			wait_ms = 2 * wait_ms + 1;
	}
	return 0;
}

int cgroup_dir_clear(const char *path, int timeout_ms)
{
	char leaf[CGROUP_PATH_MAX + sizeof(CGROUP_GUESTS)];

	for (size_t i = 0; i < COUNT(leaves); i++) {
		snprintf(leaf, sizeof(leaf), "%s/%s", path, leaves[i]);
		if (clear_one(leaf, timeout_ms) < 0)
			return -1;
	}
	return clear_one(path, timeout_ms);
}

/* A process outside our pid namespace is listed as 0. */
static int lists_unseen(int dir, const char *file)
{
	char buf[64];

	return io_read_small(dir, file, buf, sizeof(buf)) > 0 &&
	       strtol(buf, NULL, 10) == 0;
}

int cgroup_dir_is_foreign(const char *path)
{
	auto_close int dir = cgroup_dir_open(path);
	int unseen = dir >= 0 && lists_unseen(dir, "cgroup.procs");
	char file[64];

	for (size_t i = 0; dir >= 0 && i < COUNT(leaves); i++) {
		snprintf(file, sizeof(file), "%s/cgroup.procs", leaves[i]);
		unseen |= lists_unseen(dir, file);
	}
	return unseen;
}
