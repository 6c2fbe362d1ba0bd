/* SPDX-License-Identifier: MIT */
/*
 * test_home.c - every tree in a home can be listed and removed
 *
 * The home is a tmpfs of the test's own, in a namespace that a child enters.
 */
#include "jail/base/io.h"
#include "jail/walls/walls.h"

#include "own_ns.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* /tmp/home is the home; /tmp/out beside it is not, though on the same file
 * system. */
static struct home play(void)
{
	struct home h;
	int fd;

	own_ns_enter(0);
	CHILD_CHECK(
		mount("t", "/tmp", "tmpfs", 0, "nr_inodes=20000") == 0, "%m");
	mkdir("/tmp/home", 0700);
	mkdir("/tmp/out", 0700);
	fd = open("/tmp/home", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHILD_CHECK(fd >= 0, "%m");
	home_init(&h, fd);
	return h;
}

static void make_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	CHILD_CHECK(fd >= 0, "%s: %m", path);
	close(fd);
}

/* `depth` directories, each in the one before, a file in the last. */
static void make_deep(const char *top, const char *name, int depth)
{
	CHILD_CHECK(chdir(top) == 0, "%m");
	for (int i = 0; i < depth; i++)
		CHILD_CHECK(
			mkdir(name, 0700) == 0 && chdir(name) == 0, "%d %m", i);
	make_file("last");
	CHILD_CHECK(chdir("/") == 0, "%m");
}

/* The count of entries listed; *has tells whether `path` is among them. */
static int list(struct home *h, const char *path, int *has, int *truncated)
{
	struct err e = {0};
	size_t n;
	auto_free char *text = home_list(h, &n, truncated, &e);
	int count = 0;

	CHILD_CHECK(text != NULL, "%s", e.msg);
	*has = 0;
	for (size_t at = 0; at < n; at += strlen(text + at) + 1) {
		const char *p = text + at;

		for (int i = 0; i < 6; i++)
			p = strchr(p, ' ') + 1;
		*has |= !strcmp(p, path);
		count++;
	}
	return count;
}

static int child_deep(void *arg)
{
	struct home h = play();
	struct err e = {0};
	int64_t bytes;
	int has, truncated, files;

	(void)arg;
	make_deep("/tmp/home", "d", 1000);
	CHILD_CHECK(list(&h, "d/d/d", &has, &truncated) == 1001, "a list");
	CHILD_CHECK(has && !truncated, "%d %d", has, truncated);
	home_usage(&h, &bytes, &files);
	CHILD_CHECK(files == 1001, "%d", files);
	CHILD_CHECK(home_remove(&h, "d", &e) == 0, "%s", e.msg);
	CHILD_CHECK(list(&h, "d", &has, &truncated) == 0, "something is left");
	home_usage(&h, &bytes, &files);
	CHILD_CHECK(files == 0, "%d", files);
	CHILD_CHECK(access("/tmp/out", F_OK) == 0, "%m");
	return 0;
}

/* The tree is deeper than the longest path. */
static int child_long(void *arg)
{
	struct home h = play();
	struct err e = {0};
	char name[256];
	int has, truncated;

	(void)arg;
	memset(name, 'x', 255);
	name[255] = '\0';
	make_deep("/tmp/home", name, 100);
	make_file("/tmp/home/short");
	list(&h, "short", &has, &truncated);
	CHILD_CHECK(has && truncated, "%d %d", has, truncated);
	CHILD_CHECK(home_remove(&h, name, &e) == 0, "%s", e.msg);
	CHILD_CHECK(list(&h, "short", &has, &truncated) == 1, "what is left");
	CHILD_CHECK(has && !truncated, "%d %d", has, truncated);
	return 0;
}

/* The top of the home is listed before the list is full, so a person can remove
 * everything by names from the list. */
static int child_many(void *arg)
{
	struct home h = play();
	char path[64];
	int has, truncated;

	(void)arg;
	mkdir("/tmp/home/a", 0700);
	for (int i = 0; i < HOME_LIST_MAX; i++) {
		snprintf(path, sizeof(path), "/tmp/home/a/%d", i);
		make_file(path);
	}
	make_file("/tmp/home/z");
	CHILD_CHECK(list(&h, "z", &has, &truncated) == HOME_LIST_MAX, "a list");
	CHILD_CHECK(has && truncated, "%d %d", has, truncated);
	return 0;
}

/* Only an unfinished upload is hidden; a file of a similar name is not. */
static int child_upload(void *arg)
{
	struct home h = play();
	struct err e = {0};
	int has, truncated, fd;
	uint32_t token;

	(void)arg;
	make_file("/tmp/home/.cellblock-1");
	mkdir("/tmp/home/.cellblock-d", 0700);
	fd = home_create(&h, "new", 0644, &token, &e);
	CHILD_CHECK(fd >= 0, "%s", e.msg);
	CHILD_CHECK(list(&h, ".cellblock-1", &has, &truncated) == 2, "a list");
	CHILD_CHECK(has, "a guest's file is hidden");
	CHILD_CHECK(
		home_commit(&h, &(struct jail_end){.token = token, .mode = -1},
			&e) == 0,
		"%s", e.msg);
	CHILD_CHECK(list(&h, "new", &has, &truncated) == 3 && has, "a list");
	CHILD_CHECK(home_remove(&h, ".cellblock-1", &e) == 0, "%s", e.msg);
	return 0;
}

/* Before the beginning of the numbers, too. */
static int child_ends(void *arg)
{
	static const int64_t times[] = {1234567890123456789, 0, -1};
	struct home h = play();
	struct err e = {0};
	struct stat st;
	uint32_t token;

	(void)arg;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		struct jail_end end = {.mode = 0451 + (int)i,
			.replace = 1,
			.mtime_ns = times[i]};

		CHILD_CHECK(home_create(&h, "d/f", 0600, &token, &e) >= 0, "%s",
			e.msg);
		end.token = token;
		CHILD_CHECK(home_commit(&h, &end, &e) == 0, "%s", e.msg);
		CHILD_CHECK(home_mkdir(&h, "d/e", &end, &e) == 0, "%s", e.msg);
		for (int k = 0; k < 2; k++) {
			CHILD_CHECK(stat(k ? "/tmp/home/d/f" : "/tmp/home/d/e",
					    &st) == 0,
				"%m");
			CHILD_CHECK((st.st_mode & 0777) == (mode_t)end.mode,
				"%o", st.st_mode);
			CHILD_CHECK(st.st_mtim.tv_sec * 1000000000 +
						    st.st_mtim.tv_nsec ==
					    times[i],
				"%lld", (long long)st.st_mtim.tv_sec);
		}
	}
	return 0;
}

/* A file in the way of a directory stays, and no link is followed. */
static int child_in_the_way(void *arg)
{
	static const char *const paths[] = {"file", "file/d", "link", "link/d",
		"../out/d", "d/../../out/e"};
	const struct jail_end end = {.mode = 0700};
	struct home h = play();
	struct err e = {0};
	struct stat st;

	(void)arg;
	make_file("/tmp/home/file");
	CHILD_CHECK(symlink("../out", "/tmp/home/link") == 0, "%m");
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		CHILD_CHECK(
			home_mkdir(&h, paths[i], &end, &e) < 0, "%s", paths[i]);
	CHILD_CHECK(lstat("/tmp/home/link", &st) == 0 && S_ISLNK(st.st_mode),
		"the link is gone");
	CHILD_CHECK(rmdir("/tmp/out") == 0, "something is in it: %m");
	CHILD_CHECK(home_mkdir(&h, "a/b", &end, &e) == 0, "%s", e.msg);
	return 0;
}

/* A mount point below /home is not the session's. */
static int child_mount(void *arg)
{
	struct home h = play(), again;
	struct err e = {0};
	int has, truncated, files;
	int64_t bytes;

	(void)arg;
	mkdir("/tmp/home/ann", 0700);
	CHILD_CHECK(mount("p", "/tmp/home/ann", "tmpfs", 0, "") == 0, "%m");
	make_file("/tmp/home/ann/f");
	home_init(&again, h.root);
	make_file("/tmp/home/mine");
	CHILD_CHECK(list(&again, "mine", &has, &truncated) == 1, "a list");
	CHILD_CHECK(has, "the session's own");
	home_usage(&again, &bytes, &files);
	CHILD_CHECK(files == 1, "%d", files);
	CHILD_CHECK(home_remove(&again, "ann", &e) < 0, "removed");
	CHILD_CHECK(home_remove(&again, "ann/f", &e) < 0, "removed");
	CHILD_CHECK(access("/tmp/home/ann/f", F_OK) == 0, "%m");
	return 0;
}

#define CROWD 3000

/* /tmp/home/a/b/c/d, with a crowd of files in d. */
static void make_crowd(void)
{
	char path[64];

	CHILD_CHECK(chdir("/tmp/home") == 0, "%m");
	mkdir("a", 0700);
	mkdir("a/b", 0700);
	mkdir("a/b/c", 0700);
	mkdir("a/b/c/d", 0700);
	for (int i = 0; i < CROWD; i++) {
		snprintf(path, sizeof(path), "a/b/c/d/%d", i);
		make_file(path);
	}
}

/* Play a running guest. During the removal it moves the directory to the top
 * of the home, where ".." leads out of the tree. */
static void move_up(void)
{
	char last[64];

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	snprintf(last, sizeof(last), "a/b/c/d/%d", CROWD - 1);
	while (access("a/b/c/d/0", F_OK) == 0 && access(last, F_OK) == 0)
		sched_yield();
	_exit(rename("a/b/c", "c") < 0);
}

static int child_moving(void *arg)
{
	struct home h = play();
	int seen = 0;

	(void)arg;
	make_file("/tmp/out/f");
	for (int i = 0; i < 200 && seen < 5; i++) {
		struct err e = {0};
		pid_t mover;

		make_crowd();
		mover = fork();
		CHILD_CHECK(mover >= 0, "%m");
		if (mover == 0)
			move_up();
		if (home_remove(&h, "a", &e) < 0)
			seen += strstr(e.msg, "changes while") != NULL;
		kill(mover, SIGKILL);
		waitpid(mover, NULL, 0);
		CHILD_CHECK(access("/tmp/out/f", F_OK) == 0, "got out: %m");
		CHILD_CHECK(access("/tmp/home", F_OK) == 0, "too far up: %m");
		home_remove(&h, "a", NULL);
		home_remove(&h, "c", NULL);
	}
	CHILD_CHECK(seen > 0, "never moved in time");
	return 0;
}

static void a_deep_tree_is_listed_and_removed(void **state)
{
	(void)state;
	own_ns_run(child_deep, NULL);
}

static void a_tree_that_no_path_reaches_is_removed(void **state)
{
	(void)state;
	own_ns_run(child_long, NULL);
}

static void a_truncated_list_names_the_top_level(void **state)
{
	(void)state;
	own_ns_run(child_many, NULL);
}

static void only_an_unfinished_upload_is_hidden(void **state)
{
	(void)state;
	own_ns_run(child_upload, NULL);
}

static void a_mount_in_the_home_is_not_listed_or_removed(void **state)
{
	(void)state;
	own_ns_run(child_mount, NULL);
}

static void files_and_directories_get_their_mode_and_time(void **state)
{
	(void)state;
	own_ns_run(child_ends, NULL);
}

static void a_directory_is_made_over_nothing_and_through_no_link(void **state)
{
	(void)state;
	own_ns_run(child_in_the_way, NULL);
}

static void a_moving_tree_does_not_lead_removal_outside(void **state)
{
	(void)state;
	own_ns_run(child_moving, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_deep_tree_is_listed_and_removed),
		cmocka_unit_test(a_tree_that_no_path_reaches_is_removed),
		cmocka_unit_test(a_truncated_list_names_the_top_level),
		cmocka_unit_test(only_an_unfinished_upload_is_hidden),
		cmocka_unit_test(a_mount_in_the_home_is_not_listed_or_removed),
		cmocka_unit_test(a_moving_tree_does_not_lead_removal_outside),
		cmocka_unit_test(files_and_directories_get_their_mode_and_time),
		cmocka_unit_test(
			a_directory_is_made_over_nothing_and_through_no_link),
	};

	return cmocka_run_group_tests_name("home", tests, NULL, NULL);
}
