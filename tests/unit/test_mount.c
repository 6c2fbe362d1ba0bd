/* SPDX-License-Identifier: MIT */
/*
 * test_mount.c - building the root of a jail
 *
 * Every test makes real mounts, in a user and mount namespace of a child, which
 * end with the child. Tests of restricting run twice: with mount_setattr, and
 * one mount after the other as before Linux 5.12.
 */
#include "jail/base/io.h"
#include "jail/base/sys.h"

#include "mount_play.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>

/* ---- showing ---- */

static int child_read_only(void *no_setattr)
{
	struct mount_root r = play(*(int *)no_setattr);
	struct err e = {0};
	char path[64];

	CHILD_CHECK(
		mount_bind(&r, "/tmp/src", "/a/b", RO, &e) == 0, "%s", e.msg);
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "/tmp/root/a/b%s", below[i]);
		CHILD_CHECK(!can_write(path), "%s", path);
		CHILD_CHECK((flags_of(path) & (ST_RDONLY | ST_NOSUID)) ==
				    (ST_RDONLY | ST_NOSUID),
			"%s", path);
		snprintf(path, sizeof(path), "/tmp/src%s", below[i]);
		CHILD_CHECK(can_write(path), "%s", path);
	}
	CHILD_CHECK(flags_of("/tmp/root/a/b/sub") & ST_NOEXEC,
		"a flag it had is gone");
	return 0;
}

/* The kernel's list of mounts escapes these letters, and only these. */
static int child_odd_name(void *no_setattr)
{
	static const char odd[] = "/a b\\\tc\\040\n#d";
	struct mount_root r = play(*(int *)no_setattr);
	struct err e = {0};
	char path[64];

	snprintf(path, sizeof(path), "/tmp/src%s", odd);
	mkdir(path, 0755);
	CHILD_CHECK(mount("#s o", path, "tmpfs", 0, "") == 0, "%m");
	CHILD_CHECK(mount_bind(&r, "/tmp/src", "/o d\\d", RO, &e) == 0, "%s",
		e.msg);
	snprintf(path, sizeof(path), "/tmp/root/o d\\d%s", odd);
	CHILD_CHECK(flags_of(path) & ST_RDONLY, "%s", path);
	snprintf(path, sizeof(path), "/tmp/src%s", odd);
	CHILD_CHECK(can_write(path), "%s", path);
	return 0;
}

static void a_mount_with_an_odd_name_is_restricted_too(void **state)
{
	(void)state;
	twice(child_odd_name);
}

/* Like init: in a user namespace below the one that owns the mounts, where the
 * flags of the mounts are locked. */
static int child_locked(void *no_setattr)
{
	struct mount_root r = play(*(int *)no_setattr);
	struct err e = {0};

	CHILD_CHECK(mount(NULL, "/tmp/src/sub/sub", NULL,
			    MS_REMOUNT | MS_BIND | MS_NOEXEC | MS_NODEV |
				    MS_NOATIME,
			    NULL) == 0,
		"%m");
	close(r.fd);
	CHILD_CHECK(unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0, "%m");
	CHILD_CHECK(
		ident_map_self(1000, 1000, 1000, 1000, &e) == 0, "%s", e.msg);
	r.fd = mount_tmpfs_over("/tmp/root", "", 0, &e);
	CHILD_CHECK(r.fd >= 0, "%s", e.msg);
	CHILD_CHECK(mount_bind(&r, "/tmp/src", "/a", RO, &e) == 0, "%s", e.msg);
	CHILD_CHECK(!can_write("/tmp/root/a/sub/sub"), "writable");
	CHILD_CHECK((flags_of("/tmp/root/a/sub/sub") &
			    (ST_NOEXEC | ST_NODEV | ST_NOATIME)) ==
			    (ST_NOEXEC | ST_NODEV | ST_NOATIME),
		"a locked flag is gone");
	CHILD_CHECK(can_write("/tmp/src/sub/sub"), "the source changed");
	return 0;
}

static int child_restrict(void *no_setattr)
{
	struct mount_root r = play(*(int *)no_setattr);
	struct err e = {0};

	CHILD_CHECK(mount_fs(&r, "tmpfs", "/in", "", 0, &e) == 0, "%s", e.msg);
	CHILD_CHECK(can_write("/tmp/root"), "control");
	CHILD_CHECK(
		mount_restrict(&r, "/", SYS_ATTR_RDONLY, &e) == 0, "%s", e.msg);
	CHILD_CHECK(!can_write("/tmp/root"), "writable");
	CHILD_CHECK(flags_of("/tmp/root") & ST_NOSUID, "a flag is gone");
	CHILD_CHECK(can_write("/tmp/root/in"), "the mount below changed too");
	return 0;
}

static void every_submount_of_a_shown_path_is_read_only(void **state)
{
	(void)state;
	twice(child_read_only);
}

static void locked_flags_of_inherited_mounts_stay(void **state)
{
	(void)state;
	twice(child_locked);
}

static void restricting_a_mount_spares_its_submounts(void **state)
{
	(void)state;
	twice(child_restrict);
}

static int child_file(void *arg)
{
	struct mount_root r = play(0);
	struct err e = {0};

	(void)arg;
	CHILD_CHECK(mount_file(&r, "/src", "hello", &e) == 0, "%s", e.msg);
	CHILD_CHECK(mount_bind(&r, "/tmp/root/src", "/d/f", RO, &e) == 0, "%s",
		e.msg);
	CHILD_CHECK(
		open("/tmp/root/d/f", O_WRONLY) < 0 && errno == EROFS, "%m");
	CHILD_CHECK(open("/tmp/root/d/f", O_RDONLY) >= 0, "%m");
	CHILD_CHECK(mount_bind(&r, "/dev/null", "/d/null", 0, &e) == 0, "%s",
		e.msg);
	CHILD_CHECK(open("/tmp/root/d/null", O_WRONLY) >= 0, "%m");
	return 0;
}

/* Errors for a link at the end and in the middle of a path. */
static int is_refused(int code)
{
	return code == ELOOP || code == ENOTDIR;
}

/* The source became a link after it was checked. */
static int child_link(void *arg)
{
	static const char *const links[] = {
		"/tmp/l", "/tmp/l/sub", "/tmp/null", "/proc/self/cwd"};
	struct mount_root r = play(0);
	struct err e = {0};

	(void)arg;
	CHILD_CHECK(symlink("/tmp/src", "/tmp/l") == 0, "%m");
	CHILD_CHECK(symlink("/dev/null", "/tmp/null") == 0, "%m");
	for (int i = 0; i < 4; i++) {
		CHILD_CHECK(mount_bind(&r, links[i], "/b", RO, &e) < 0 &&
				    is_refused(e.code),
			"%s: %s", links[i], e.msg);
		CHILD_CHECK(mount_show(&r, links[i], "/s", RO, &e) < 0 &&
				    is_refused(e.code),
			"%s: %s", links[i], e.msg);
	}
	CHILD_CHECK(mount_bind(&r, "/tmp/src", "/b", RO, &e) == 0, "control");
	CHILD_CHECK(mount_show(&r, "/tmp/src", "/s", RO, &e) >= 0, "control");
	return 0;
}

static void a_link_in_a_source_path_is_refused(void **state)
{
	(void)state;
	own_ns_run(child_link, NULL);
}

static void a_file_and_a_device_can_be_shown(void **state)
{
	(void)state;
	own_ns_run(child_file, NULL);
}

static int child_odd(void *arg)
{
	struct mount_root r = play(0);
	struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "/tmp/sock"};
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	struct err e = {0};

	(void)arg;
	CHILD_CHECK(bind(s, (struct sockaddr *)&a, sizeof(a)) == 0, "%m");
	CHILD_CHECK(mkfifo("/tmp/fifo", 0600) == 0, "%m");
	CHILD_CHECK(mount_bind(&r, "/tmp/sock", "/s", RO, &e) < 0, "socket");
	CHILD_CHECK(mount_bind(&r, "/tmp/fifo", "/f", RO, &e) < 0, "fifo");
	CHILD_CHECK(mount_bind(&r, "/tmp/none", "/n", RO, &e) < 0, "nothing");
	CHILD_CHECK(strstr(e.msg, "/tmp/none"), "%s", e.msg);
	CHILD_CHECK(access("/tmp/root/n", F_OK) < 0, "a target was left");
	return 0;
}

static void sockets_and_fifos_cannot_be_shown(void **state)
{
	(void)state;
	own_ns_run(child_odd, NULL);
}

/* ---- targets ---- */

static int child_links(void *arg)
{
	struct mount_root r = play(0);
	struct err e = {0};

	(void)arg;
	mkdir("/tmp/outside", 0755);
	CHILD_CHECK(symlink("/tmp/outside", "/tmp/root/link") == 0, "%m");
	CHILD_CHECK(symlink("../outside", "/tmp/root/up") == 0, "%m");
	CHILD_CHECK(mount_bind(&r, "/tmp/src", "/link", RO, &e) < 0, "last");
	CHILD_CHECK(mount_bind(&r, "/tmp/src", "/link/x", RO, &e) < 0, "on it");
	CHILD_CHECK(mount_bind(&r, "/tmp/src", "/../x", RO, &e) < 0, "dots");
	CHILD_CHECK(mount_fs(&r, "tmpfs", "/up/x", "", 0, &e) < 0, "fs");
	CHILD_CHECK(mount_file(&r, "/up/x", "", &e) < 0, "file");
	CHILD_CHECK(mount_symlink(&r, "y", "/up/x", &e) < 0, "link");
	CHILD_CHECK(mount_open_dir(&r, "/up", &e) < 0, "open");
	CHILD_CHECK(mount_restrict(&r, "/up", RO, &e) < 0, "restrict");
	CHILD_CHECK(rmdir("/tmp/outside") == 0, "something was made outside");
	CHILD_CHECK(access("/tmp/x", F_OK) < 0, "something was made outside");
	CHILD_CHECK(mount_bind(&r, "/tmp/src", "/real/x", RO, &e) == 0, "%s",
		e.msg);
	return 0;
}

static void a_link_in_a_target_path_is_refused(void **state)
{
	(void)state;
	own_ns_run(child_links, NULL);
}

static int child_same_link(void *arg)
{
	struct mount_root r = play(0);
	struct err e = {0};

	(void)arg;
	CHILD_CHECK(mount_symlink(&r, "usr/bin", "/bin", &e) == 0, "%s", e.msg);
	CHILD_CHECK(mount_symlink(&r, "usr/bin", "/bin", &e) == 0, "%s", e.msg);
	CHILD_CHECK(mount_symlink(&r, "usr/b", "/bin", &e) < 0, "another");
	return 0;
}

static void an_identical_link_may_exist_already(void **state)
{
	(void)state;
	own_ns_run(child_same_link, NULL);
}

/* ---- the home ---- */

static int child_home(void *arg)
{
	struct mount_root r = play(0);
	struct err e = {0};
	int home, copy;

	(void)arg;
	mkdir("/tmp/at", 0755);
	home = mount_tmpfs_over(
		"/tmp/at", "size=65536,nr_inodes=3,mode=0700", 0, &e);
	CHILD_CHECK(home >= 0, "%s", e.msg);
	copy = mount_copy("/tmp/at", home, &e);
	CHILD_CHECK(copy >= 0, "%s", e.msg);
	CHILD_CHECK(mount_attach(&r, copy, "/home", &e) == 0, "%s", e.msg);
	CHILD_CHECK(openat(home, "f", O_CREAT | O_WRONLY, 0600) >= 0, "%m");
	CHILD_CHECK(access("/tmp/root/home/f", F_OK) == 0, "not the same");
	CHILD_CHECK(openat(home, "g", O_CREAT | O_WRONLY, 0600) >= 0, "%m");
	CHILD_CHECK(openat(home, "h", O_CREAT | O_WRONLY, 0600) < 0 &&
			    errno == ENOSPC,
		"more files than it may have");
	CHILD_CHECK(mount("x", "/tmp/at", "tmpfs", 0, "") == 0, "%m");
	CHILD_CHECK(mount_copy("/tmp/at", home, &e) < 0, "another mount");
	return 0;
}

static void copies_of_the_home_are_the_same_home(void **state)
{
	(void)state;
	own_ns_run(child_home, NULL);
}

static int child_bad_option(void *arg)
{
	struct mount_root r = play(0);
	struct err e = {0};

	(void)arg;
	CHILD_CHECK(mount_fs(&r, "tmpfs", "/t", "size=lots", 0, &e) < 0,
		"bad size");
	CHILD_CHECK(strstr(e.msg, "mount tmpfs on /t"), "%s", e.msg);
	CHILD_CHECK(mount_fs(&r, "nosuchfs", "/t", "", 0, &e) < 0, "bad type");
	CHILD_CHECK(strstr(e.msg, "nosuchfs"), "%s", e.msg);
	CHILD_CHECK(mount_fs(&r, "tmpfs", "/t", "size=4096", 0, &e) == 0, "%s",
		e.msg);
	return 0;
}

static void a_failed_mount_names_its_file_system_and_target(void **state)
{
	(void)state;
	own_ns_run(child_bad_option, NULL);
}

/* ---- the switch ---- */

static int child_pivot(void *arg)
{
	struct mount_root r = play(0);
	struct err e = {0};
	struct dirent *de;
	struct stat st;
	int fd, n = 0;
	DIR *d;

	(void)arg;
	CHILD_CHECK(mount_file(&r, "/mine", "x", &e) == 0, "%s", e.msg);
	CHILD_CHECK(access("/usr", F_OK) == 0, "control");
	CHILD_CHECK(mount_pivot(&r, &e) == 0, "%s", e.msg);
	CHILD_CHECK(access("/usr", F_OK) < 0, "the host is still there");
	CHILD_CHECK(access("/../usr", F_OK) < 0, "the host is above");
	d = opendir("/");
	while ((de = readdir(d)))
		n++;
	CHILD_CHECK(n == 3, "%d entries", n); /* . .. mine */
	closedir(d);
	/* The classic way out of a chroot. */
	mkdir("/d", 0755);
	fd = open("/", O_RDONLY | O_DIRECTORY);
	CHILD_CHECK(chroot("/d") == 0 && fchdir(fd) == 0, "%m");
	for (int i = 0; i < 16; i++)
		CHILD_CHECK(chdir("..") == 0, "%m");
	CHILD_CHECK(stat("usr", &st) < 0 && stat("mine", &st) == 0, "escaped");
	return 0;
}

static void nothing_of_the_host_is_left_after_the_switch(void **state)
{
	(void)state;
	own_ns_run(child_pivot, NULL);
}

static ssize_t table_read(int proc)
{
	char text[256];
	int fd = openat(proc, "self/mountinfo", O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

	close(fd);
	return n;
}

static int child_hide(void *arg)
{
	struct mount_root r = play(0);
	struct err e = {0};
	int proc = open("/proc", O_PATH | O_DIRECTORY), tree;

	(void)arg;
	CHILD_CHECK(mount_file(&r, "/mine", "x", &e) == 0, "%s", e.msg);
	CHILD_CHECK(
		mount_fs(&r, "tmpfs", "/below", "", 0, &e) == 0, "%s", e.msg);
	CHILD_CHECK(mount_pivot(&r, &e) == 0, "%s", e.msg);
	CHILD_CHECK(table_read(proc) > 0, "control");
	tree = mount_hide(&e);
	CHILD_CHECK(tree >= 0, "%s", e.msg);
	CHILD_CHECK(table_read(proc) == 0, "mounts are listed");
	CHILD_CHECK(access("/mine", F_OK) == 0, "%m");
	CHILD_CHECK(access("/../mine", F_OK) == 0, "%m");
	CHILD_CHECK(creat("/below/new", 0600) >= 0, "%m");
	CHILD_CHECK(mount("x", "/below", "tmpfs", 0, "") < 0, "mounted");
	return 0;
}

static void no_table_lists_the_mounts_that_are_hidden(void **state)
{
	(void)state;
	own_ns_run(child_hide, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_submount_of_a_shown_path_is_read_only),
		cmocka_unit_test(a_mount_with_an_odd_name_is_restricted_too),
		cmocka_unit_test(locked_flags_of_inherited_mounts_stay),
		cmocka_unit_test(restricting_a_mount_spares_its_submounts),
		cmocka_unit_test(a_file_and_a_device_can_be_shown),
		cmocka_unit_test(a_link_in_a_source_path_is_refused),
		cmocka_unit_test(sockets_and_fifos_cannot_be_shown),
		cmocka_unit_test(a_link_in_a_target_path_is_refused),
		cmocka_unit_test(an_identical_link_may_exist_already),
		cmocka_unit_test(copies_of_the_home_are_the_same_home),
		cmocka_unit_test(
			a_failed_mount_names_its_file_system_and_target),
		cmocka_unit_test(nothing_of_the_host_is_left_after_the_switch),
		cmocka_unit_test(no_table_lists_the_mounts_that_are_hidden),
	};

	return cmocka_run_group_tests_name("mount", tests, NULL, NULL);
}
