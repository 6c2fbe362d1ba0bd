/* SPDX-License-Identifier: MIT */
/*
 * mount_play.h - a place to build the root of a jail in
 */
#ifndef TESTS_MOUNT_PLAY_H
#define TESTS_MOUNT_PLAY_H

#include "jail/base/sys.h"

#include "own_ns.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define RO (SYS_ATTR_RDONLY | SYS_ATTR_NOSUID | SYS_ATTR_NODEV)

/* Make a tmpfs on /tmp that nobody else sees: /tmp/root is the new root,
 * /tmp/src is to be shown, /tmp/src/sub and /tmp/src/sub/sub are mounts of
 * their own. Everything is writable. */
static inline struct mount_root play(int no_setattr)
{
	struct mount_root r = {.path = "/tmp/root", .no_setattr = no_setattr};
	struct err e = {0};

	own_ns_enter(0);
	CHILD_CHECK(mount("t", "/tmp", "tmpfs", 0, "mode=0755") == 0, "%m");
	mkdir("/tmp/root", 0755);
	mkdir("/tmp/src", 0755);
	mkdir("/tmp/src/sub", 0755);
	CHILD_CHECK(
		mount("s", "/tmp/src/sub", "tmpfs", MS_NOEXEC, "") == 0, "%m");
	mkdir("/tmp/src/sub/sub", 0755);
	CHILD_CHECK(mount("s", "/tmp/src/sub/sub", "tmpfs", 0, "") == 0, "%m");
	r.fd = mount_tmpfs_over("/tmp/root", "size=65536", SYS_ATTR_NOSUID, &e);
	CHILD_CHECK(r.fd >= 0, "%s", e.msg);
	return r;
}

static inline int can_write(const char *dir)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/x", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return 0;
	close(fd);
	unlink(path);
	return 1;
}

static inline unsigned long flags_of(const char *path)
{
	struct statvfs st;

	CHILD_CHECK(statvfs(path, &st) == 0, "%s: %m", path);
	return st.f_flag;
}

/* The mounts of /tmp/src, relative to it. */
static const char *const below[] = {"", "/sub", "/sub/sub"};

/* Run fn without mount_setattr, and again with it. */
static inline void twice(int (*fn)(void *))
{
	int no_setattr = 1;

	own_ns_run(fn, &no_setattr);
	no_setattr = 0;
	own_ns_run(fn, &no_setattr);
}

#endif
