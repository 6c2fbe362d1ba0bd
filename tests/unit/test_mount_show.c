/* SPDX-License-Identifier: MIT */
/*
 * test_mount_show.c - shown files and directories have locks of the jail's own
 *
 * As in test_mount.c, every test makes real mounts, with mount_setattr and
 * without.
 */
#include "mount_play.h"

#include <sys/file.h>

/* Make a file of `size` bytes at `path`, and keep a lock on it. */
static void make_locked(const char *path, off_t size)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0755);

	CHILD_CHECK(fd >= 0 && write(fd, "hello", 5) == 5, "%s: %m", path);
	CHILD_CHECK(ftruncate(fd, size) == 0, "%s: %m", path);
	CHILD_CHECK(flock(fd, LOCK_EX | LOCK_NB) == 0, "%s: %m", path);
}

static int can_lock(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), r;

	CHILD_CHECK(fd >= 0, "%s: %m", path);
	r = flock(fd, LOCK_EX | LOCK_NB);
	CHILD_CHECK(r == 0 || errno == EWOULDBLOCK, "%s: %m", path);
	close(fd);
	return r == 0;
}

/* Like init: all mounts below a directory came with its namespace. */
static struct mount_root play_as_init(int no_setattr)
{
	struct mount_root r = play(no_setattr);
	struct err e = {0};

	close(r.fd);
	CHILD_CHECK(unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0, "%m");
	CHILD_CHECK(
		ident_map_self(1000, 1000, 1000, 1000, &e) == 0, "%s", e.msg);
	r.fd = mount_tmpfs_over("/tmp/root", "size=4194304", 0, &e);
	CHILD_CHECK(r.fd >= 0, "%s", e.msg);
	return r;
}

/* Exit status of a child that cannot mount an overlay. */
#define NO_OVERLAY 76

static void need_overlay(void)
{
	mkdir("/tmp/try", 0755);
	mkdir("/tmp/empty", 0755);
	if (mount("o", "/tmp/try", "overlay", 0,
		    "lowerdir=/tmp/try:/tmp/empty,userxattr") < 0)
		_exit(NO_OVERLAY);
}

static void twice_with_overlay(int (*fn)(void *))
{
	for (int no_setattr = 0; no_setattr < 2; no_setattr++) {
		int status = forked(fn, &no_setattr);

		if (status == NO_OVERLAY)
			SKIP("this kernel has no overlay for user namespaces");
		if (status == OWN_NS_NONE)
			SKIP("this host lets nobody make a user namespace");
		assert_int_equal(status, 0);
	}
}

static int child_directory_locks(void *no_setattr)
{
	struct mount_root r;
	struct err e = {0};
	unsigned long flags;

	r = play_as_init(*(int *)no_setattr);
	need_overlay();
	mkdir("/tmp/plain", 0755);
	make_locked("/tmp/plain/f", 5);
	CHILD_CHECK(mount_bind(&r, "/tmp/plain", "/bound", RO, &e) == 0, "%s",
		e.msg);
	CHILD_CHECK(!can_lock("/tmp/root/bound/f"), "control");
	CHILD_CHECK(
		mount_show(&r, "/tmp/plain", "/own", RO, &e) == 1, "%s", e.msg);
	CHILD_CHECK(can_lock("/tmp/root/own/f"), "the lock is shared");
	CHILD_CHECK(access("/tmp/root/own/f", X_OK) == 0, "%m");
	CHILD_CHECK(!can_write("/tmp/root/own"), "writable");
	CHILD_CHECK(can_write("/tmp/plain"), "the source changed");
	flags = flags_of("/tmp/root/own");
	CHILD_CHECK((flags & (ST_RDONLY | ST_NOSUID | ST_NODEV)) ==
			    (ST_RDONLY | ST_NOSUID | ST_NODEV),
		"%lx", flags);
	CHILD_CHECK(!(flags & ST_NOEXEC), "what was in it cannot be run");
	return 0;
}

static int child_noexec(void *no_setattr)
{
	struct mount_root r;
	struct err e = {0};

	r = play_as_init(*(int *)no_setattr);
	CHILD_CHECK(
		mount("s", "/tmp/src/sub", "tmpfs", MS_NOEXEC, "") == 0, "%m");
	CHILD_CHECK(
		mount_show(&r, "/tmp/src/sub", "/a", RO, &e) >= 0, "%s", e.msg);
	CHILD_CHECK(flags_of("/tmp/root/a") & ST_NOEXEC, "executable");
	return 0;
}

/* An overlay would hide the mounts, or show what they cover. */
static int child_submounts(void *no_setattr)
{
	struct mount_root r;
	struct err e = {0};
	char path[64];

	r = play_as_init(*(int *)no_setattr);
	CHILD_CHECK(can_write("/tmp/src/sub/sub"), "control");
	CHILD_CHECK(close(open("/tmp/src/sub/sub/f", O_CREAT | O_WRONLY,
			    0644)) == 0,
		"%m");
	CHILD_CHECK(
		mount_show(&r, "/tmp/src", "/a/b", RO, &e) == 0, "%s", e.msg);
	CHILD_CHECK(access("/tmp/root/a/b/sub/sub/f", F_OK) == 0, "%m");
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "/tmp/root/a/b%s", below[i]);
		CHILD_CHECK(!can_write(path), "%s", path);
	}
	return 0;
}

/* The kernel stacks at most two overlays. */
static int child_refused(void *no_setattr)
{
	struct mount_root r;
	struct err e = {0};

	r = play_as_init(*(int *)no_setattr);
	need_overlay();
	mkdir("/tmp/plain", 0755);
	make_locked("/tmp/plain/f", 5);
	for (int i = 0; i < 2; i++)
		CHILD_CHECK(mount("o", "/tmp/plain", "overlay", 0,
				    "lowerdir=/tmp/plain:/tmp/empty,"
				    "userxattr") == 0,
			"%m");
	CHILD_CHECK(
		mount_show(&r, "/tmp/plain", "/a", RO, &e) == 0, "%s", e.msg);
	CHILD_CHECK(!e.msg[0], "%s", e.msg);
	CHILD_CHECK(access("/tmp/root/a/f", F_OK) == 0, "%m");
	CHILD_CHECK(!can_write("/tmp/root/a"), "writable");
	return 0;
}

static int child_file_locks(void *no_setattr)
{
	struct mount_root r;
	struct err e = {0};
	struct stat st;

	r = play_as_init(*(int *)no_setattr);
	make_locked("/tmp/small", 100 * 1000);
	make_locked("/tmp/large", 1024 * 1024 + 1);
	CHILD_CHECK(mount_show(&r, "/tmp/small", "/d/small", RO, &e) == 1, "%s",
		e.msg);
	CHILD_CHECK(can_lock("/tmp/root/d/small"), "the lock is shared");
	CHILD_CHECK(stat("/tmp/root/d/small", &st) == 0 &&
			    st.st_size == 100 * 1000 &&
			    (st.st_mode & 0777) == 0555,
		"%lld, %o", (long long)st.st_size, st.st_mode);
	CHILD_CHECK(mount_show(&r, "/tmp/large", "/d/large", RO, &e) == 0, "%s",
		e.msg);
	CHILD_CHECK(!can_lock("/tmp/root/d/large"), "not the file itself");
	CHILD_CHECK(open("/tmp/root/d/large", O_WRONLY) < 0 && errno == EROFS,
		"%m");
	CHILD_CHECK(mkfifo("/tmp/fifo", 0600) == 0, "%m");
	CHILD_CHECK(mount_show(&r, "/tmp/fifo", "/f", RO, &e) < 0, "fifo");
	CHILD_CHECK(mount_show(&r, "/tmp/none", "/n", RO, &e) < 0, "nothing");
	return 0;
}

/* A nearly full root holds no partial copy of a file. */
static int child_no_room(void *no_setattr)
{
	struct mount_root r;
	struct err e = {0};
	struct stat st;

	r = play_as_init(*(int *)no_setattr);
	close(r.fd);
	r.fd = mount_tmpfs_over("/tmp/root", "size=65536", 0, &e);
	make_locked("/tmp/f", 100 * 1000);
	CHILD_CHECK(mount_show(&r, "/tmp/f", "/f", RO, &e) == 0, "%s", e.msg);
	CHILD_CHECK(stat("/tmp/root/f", &st) == 0 && st.st_size == 100 * 1000,
		"%lld", (long long)st.st_size);
	return 0;
}

static void locks_in_a_shown_directory_are_not_shared_with_the_host(
	void **state)
{
	(void)state;
	twice_with_overlay(child_directory_locks);
}

static void a_shown_directory_stays_noexec(void **state)
{
	(void)state;
	twice(child_noexec);
}

static void a_directory_with_mounts_below_is_shown_whole(void **state)
{
	(void)state;
	twice(child_submounts);
}

static void a_directory_that_cannot_be_overlaid_is_bound(void **state)
{
	(void)state;
	twice_with_overlay(child_refused);
}

static void locks_of_a_small_shown_file_are_not_shared_with_the_host(
	void **state)
{
	(void)state;
	twice(child_file_locks);
}

static void a_file_too_large_for_the_root_is_bound(void **state)
{
	(void)state;
	twice(child_no_room);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			locks_in_a_shown_directory_are_not_shared_with_the_host),
		cmocka_unit_test(a_shown_directory_stays_noexec),
		cmocka_unit_test(a_directory_with_mounts_below_is_shown_whole),
		cmocka_unit_test(a_directory_that_cannot_be_overlaid_is_bound),
		cmocka_unit_test(
			locks_of_a_small_shown_file_are_not_shared_with_the_host),
		cmocka_unit_test(a_file_too_large_for_the_root_is_bound),
	};

	return cmocka_run_group_tests_name("mount_show", tests, NULL, NULL);
}
