/* SPDX-License-Identifier: MIT */
/*
 * test_path.c - paths as text, and directories opened one component at a time
 */
#include "jail/base/path.h"

#include "jail/base/io.h"
#include "jail/base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- text ---- */

static void beneath_is_by_whole_components(void **state)
{
	static const struct {
		const char *path, *dir, *rest;
	} cases[] = {
		{"/a/b", "/a", "b"},
		{"/a/b/c", "/a/b/", "c"},
		{"/a//b", "/a", "b"},
		{"/a", "/a", ""},
		{"/a/", "/a", ""},
		{"/a", "/a/", ""},
		{"/ab", "/a", NULL},
		{"/a", "/a/b", NULL},
		{"/", "/", ""},
		{"/a", "/", "a"},
		{"a", "/", NULL},
		{"", "/", NULL},
		{"a/b", "a", "b"},
		{"a", "", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *rest = path_beneath(cases[i].path, cases[i].dir);

		if (!cases[i].rest != !rest ||
			(rest && strcmp(rest, cases[i].rest) != 0))
			fail_msg("%s beneath %s is %s, not %s", cases[i].path,
				cases[i].dir, rest ? rest : "(none)",
				cases[i].rest ? cases[i].rest : "(none)");
		assert_int_equal(path_is_beneath(cases[i].path, cases[i].dir),
			cases[i].rest != NULL);
	}
}

static void a_clean_path_is_the_shortest(void **state)
{
	static const struct {
		const char *path, *clean, *climbed;
	} cases[] = {
		{"/", "/", "/"},
		{"//a///b/", "/a/b", "/a/b"},
		{"/./a/./b/.", "/a/b", "/a/b"},
		{"/a/../b", NULL, "/b"},
		{"/..", NULL, "/"},
		{"/../../a", NULL, "/a"},
		{"/a/b/../../..", NULL, "/"},
		{"/...", "/...", "/..."},
		{"/.a/..b", "/.a/..b", "/.a/..b"},
	};
	char path[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(path, sizeof(path), "%s", cases[i].path);
		assert_int_equal(
			path_clean(path, false), cases[i].clean ? 0 : -1);
		if (cases[i].clean)
			assert_string_equal(path, cases[i].clean);
		snprintf(path, sizeof(path), "%s", cases[i].path);
		assert_int_equal(path_clean(path, true), 0);
		assert_string_equal(path, cases[i].climbed);
	}
}

static void a_name_is_one_component(void **state)
{
	char longest[NAME_MAX + 2];

	(void)state;
	memset(longest, 'x', sizeof(longest));
	longest[NAME_MAX + 1] = '\0';
	assert_true(path_is_name("a") && path_is_name("...") &&
		    path_is_name(longest + 1));
	assert_false(path_is_name("") || path_is_name(".") ||
		     path_is_name("..") || path_is_name("a/b") ||
		     path_is_name("/") || path_is_name(longest));
	assert_string_equal(path_last("/a/b"), "b");
	assert_string_equal(path_last("b"), "b");
	assert_string_equal(path_last("a/"), "");
}

/* ---- directories ---- */

struct play {
	char name[32];
	int fd;
};

static int setup(void **state)
{
	static struct play p;

	strcpy(p.name, "/tmp/test_path.XXXXXX");
	if (!mkdtemp(p.name))
		return -1;
	p.fd = open(p.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = &p;
	return p.fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	struct play *p = *state;

	unlinkat(p->fd, "a/up", 0);
	unlinkat(p->fd, "a/away", 0);
	unlinkat(p->fd, "a/file", 0);
	unlinkat(p->fd, "a/b/c", AT_REMOVEDIR);
	unlinkat(p->fd, "a/b", AT_REMOVEDIR);
	unlinkat(p->fd, "a", AT_REMOVEDIR);
	close(p->fd);
	return rmdir(p->name);
}

static const struct path_walk ways[] = {
	{.flags = O_PATH, .mode = 0700},
	{.flags = O_RDONLY,
		.mode = 0700,
		.resolve = SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_SYMLINKS},
};

static void missing_directories_are_made_on_request(void **state)
{
	const struct play *p = *state;
	struct stat there, walked;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct path_walk look = ways[i];
		auto_close int made = -1, found = -1, root = -1;

		look.mode = 0;
		assert_int_equal(path_walk(p->fd, "a/b/c", &look), -1);
		assert_int_equal(errno, ENOENT);
		made = path_walk(p->fd, "/a//b/./c/", &ways[i]);
		assert_true(made >= 0);
		found = path_walk(p->fd, "a/b/c", &look);
		assert_int_equal(fstatat(p->fd, "a/b/c", &there, 0), 0);
		assert_int_equal(fstat(found, &walked), 0);
		assert_int_equal(there.st_ino, walked.st_ino);
		assert_int_equal(there.st_mode & 0777, 0700);
		root = path_walk(p->fd, "", &look);
		assert_true(root >= 0 && root != p->fd);
		assert_int_equal(unlinkat(p->fd, "a/b/c", AT_REMOVEDIR), 0);
		assert_int_equal(unlinkat(p->fd, "a/b", AT_REMOVEDIR), 0);
		assert_int_equal(unlinkat(p->fd, "a", AT_REMOVEDIR), 0);
	}
}

static void dots_and_links_do_not_leave_the_directory(void **state)
{
	const struct play *p = *state;

	assert_int_equal(mkdirat(p->fd, "a", 0700), 0);
	assert_int_equal(symlinkat("/tmp", p->fd, "a/away"), 0);
	assert_int_equal(symlinkat("..", p->fd, "a/up"), 0);
	close(openat(p->fd, "a/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		assert_int_equal(path_walk(p->fd, "a/..", &ways[i]), -1);
		assert_int_equal(errno, EXDEV);
		assert_int_equal(path_walk(p->fd, "a/away/x", &ways[i]), -1);
		assert_true(errno == ELOOP || errno == ENOTDIR);
		assert_int_equal(path_walk(p->fd, "a/up", &ways[i]), -1);
		assert_true(errno == ELOOP || errno == ENOTDIR);
		assert_int_equal(path_walk(p->fd, "a/file/x", &ways[i]), -1);
		assert_int_equal(errno, ENOTDIR);
	}
}

/* The kernel refuses ".." beneath a directory while anything is renamed. */
static void renames_elsewhere_refuse_no_path(void **state)
{
	const struct play *p = *state;
	pid_t pid;

	assert_int_equal(mkdirat(p->fd, "a", 0700), 0);
	assert_int_equal(mkdirat(p->fd, "b", 0700), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			if (renameat(p->fd, "b", p->fd, "c") < 0 ||
				renameat(p->fd, "c", p->fd, "b") < 0)
				_exit(1);
	}
	assert_true(pid > 0);
	for (int i = 0; i < 20000; i++) {
		int fd = sys_openat2(p->fd, "a/../a/../a", O_PATH | O_DIRECTORY,
			SYS_RESOLVE_BENEATH);

		if (fd < 0)
			fail_msg("opening %d: %s", i, strerror(errno));
		close(fd);
	}
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	for (int i = 0; i < 3; i++)
		unlinkat(p->fd, ((const char *[]){"a", "b", "c"})[i],
			AT_REMOVEDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(beneath_is_by_whole_components),
		cmocka_unit_test(a_clean_path_is_the_shortest),
		cmocka_unit_test(a_name_is_one_component),
		cmocka_unit_test_setup_teardown(
			missing_directories_are_made_on_request, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			dots_and_links_do_not_leave_the_directory, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			renames_elsewhere_refuse_no_path, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
