/* SPDX-License-Identifier: MIT */
/*
 * test_host.c - paths that an interpreter needs in order to start
 *
 * Interpreters here are files that begin as a program does, in a directory
 * that each test makes and removes. No interpreter is run.
 */
#include "jail/host/host.h"
#include "jail/spec.h"
#include "tests/lib/tree.h"

#include "forked.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

static char top[64];

static int make_top(void **state)
{
	(void)state;
	strcpy(top, "/tmp/cellblock-host-XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}

static int remove_top(void **state)
{
	(void)state;
	return tree_remove(top);
}

/* The path below the top, in one of a few buffers. */
static const char *at(const char *rest)
{
	static char buf[8][PATH_MAX];
	static int i;

	i = (i + 1) % 8;
	snprintf(buf[i], sizeof(buf[i]), "%s%s", top, rest);
	return buf[i];
}

/* A file, and every directory above it. */
static void put(const char *rest, const char *content, mode_t mode)
{
	char path[PATH_MAX];
	int fd;

	strcpy(path, at(rest));
	for (char *p = path + strlen(top) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(path, 0755);
		*p = '/';
	}
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
	assert_true(fd >= 0);
	assert_int_equal(
		write(fd, content, strlen(content)), (ssize_t)strlen(content));
	close(fd);
}

static void put_program(const char *rest)
{
	put(rest, "\177ELF and so on", 0755);
}

static void put_link(const char *text, const char *rest)
{
	put(rest, "", 0600);
	assert_int_equal(unlink(at(rest)), 0);
	assert_int_equal(symlink(text, at(rest)), 0);
}

static void resolved(struct host_python *p, const char *path)
{
	struct err e = {0};

	if (host_python_resolve(p, path, &e) < 0)
		fail_msg("%s", e.msg);
	assert_string_equal(p->path, path);
}

static int has_prefix(const struct host_python *p, const char *path)
{
	for (int i = 0; i < p->nprefixes; i++)
		if (!strcmp(p->prefixes[i], path))
			return 1;
	return 0;
}

static int has_link(
	const struct host_python *p, const char *path, const char *text)
{
	for (int i = 0; i < p->nlinks; i++)
		if (!strcmp(p->links[i].path, path) &&
			!strcmp(p->links[i].text, text))
			return 1;
	return 0;
}

static void the_directory_above_bin_is_shown(void **state)
{
	struct host_python p;

	(void)state;
	put_program("/py/bin/python3.12");
	put_link("python3.12", "/py/bin/python3");
	resolved(&p, at("/py/bin/python3"));
	assert_int_equal(p.nprefixes, 1);
	assert_true(has_prefix(&p, at("/py")));
	assert_int_equal(p.nlinks, 1);
	assert_true(has_link(&p, at("/py/bin/python3"), "python3.12"));
	host_python_fini(&p);
}

static void links_to_files_and_directories_are_noted(void **state)
{
	struct host_python p;

	(void)state;
	put_program("/store/py-3.12/bin/python3.12");
	put_link("store/py-3.12", "/py");
	put_link(at("/py/bin/python3.12"), "/me/tools/python");
	resolved(&p, at("/me/tools/python"));
	assert_int_equal(p.nprefixes, 1);
	assert_true(has_prefix(&p, at("/store/py-3.12")));
	assert_int_equal(p.nlinks, 2);
	assert_true(
		has_link(&p, at("/me/tools/python"), at("/py/bin/python3.12")));
	assert_true(has_link(&p, at("/py"), "store/py-3.12"));
	host_python_fini(&p);
}

static void dots_in_a_link_are_resolved(void **state)
{
	struct host_python p;

	(void)state;
	put_program("/a/py/bin/python3");
	put_link("../.././a/py/bin/python3", "/b/c/python");
	resolved(&p, at("/b/c/python"));
	assert_true(has_prefix(&p, at("/a/py")));
	host_python_fini(&p);
}

static void a_virtual_environment_shows_its_base_too(void **state)
{
	struct host_python p;
	char cfg[PATH_MAX];

	(void)state;
	put_program("/base/bin/python3.12");
	put("/base/lib/python3.12/os.py", "", 0644);
	snprintf(cfg, sizeof(cfg),
		"include-system-site-packages = false\nhomes = /nowhere\n"
		"home = %s/base/bin  \r\nversion = 3.12.1\n",
		top);
	put("/venv/pyvenv.cfg", cfg, 0644);
	put_link(at("/base/bin/python3.12"), "/venv/bin/python");
	resolved(&p, at("/venv/bin/python"));
	assert_int_equal(p.nprefixes, 2);
	assert_true(has_prefix(&p, at("/venv")));
	assert_true(has_prefix(&p, at("/base")));
	host_python_fini(&p);
}

static void a_copied_interpreter_shows_its_base_too(void **state)
{
	struct host_python p;
	char cfg[PATH_MAX];

	(void)state;
	put_program("/base/bin/python3");
	put_program("/venv/bin/python");
	snprintf(cfg, sizeof(cfg), "home = %s/base/bin\n", top);
	put("/venv/pyvenv.cfg", cfg, 0644);
	resolved(&p, at("/venv/bin/python"));
	assert_true(has_prefix(&p, at("/venv")));
	assert_true(has_prefix(&p, at("/base")));
	host_python_fini(&p);
}

static void an_environment_without_its_base_is_an_error(void **state)
{
	struct host_python p;
	struct err e = {0};

	(void)state;
	put_program("/venv/bin/python");
	put("/venv/pyvenv.cfg", "home = /nowhere/bin\n", 0644);
	assert_int_equal(
		host_python_resolve(&p, at("/venv/bin/python"), &e), -1);
	assert_non_null(strstr(e.msg, "/nowhere"));
	assert_non_null(strstr(e.msg, "pyvenv.cfg"));
}

static void fails_saying(const char *path, const char *msg, const char *hint)
{
	struct host_python p;
	struct err e = {0};

	assert_int_equal(host_python_resolve(&p, path, &e), -1);
	if (!strstr(e.msg, msg))
		fail_msg("wanted \"%s\" in \"%s\"", msg, e.msg);
	if (!strstr(e.hint, hint))
		fail_msg("wanted \"%s\" in \"%s\"", hint, e.hint);
	assert_int_equal(e.kind, ERR_JAIL);
}

static void a_missing_interpreter_says_what_to_do(void **state)
{
	(void)state;
	fails_saying(at("/no/python3"), "No such file", "-p PATH");
	put_link("gone", "/bin/python3");
	fails_saying(at("/bin/python3"), "No such file", "apt install");
}

static void a_file_that_is_no_interpreter_is_an_error(void **state)
{
	(void)state;
	put("/shims/python", "#!/usr/bin/env bash\n", 0755);
	put("/plain", "\177ELF", 0644);
	put("/empty", "", 0755);
	fails_saying(at("/shims/python"), "script", "sys.executable");
	fails_saying(at("/plain"), "not a program", "");
	fails_saying(at("/empty"), "not a program", "");
	fails_saying(top, "not a program", "");
	fails_saying("python3", "absolute", "");
}

static void a_circle_of_links_is_an_error(void **state)
{
	(void)state;
	put_link("b", "/a");
	put_link("a", "/b");
	fails_saying(at("/a"), "symbolic links", "");
}

static void an_endless_path_is_an_error(void **state)
{
	char path[2 * PATH_MAX];

	(void)state;
	memset(path, 'a', sizeof(path) - 1);
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	fails_saying(path, "too long", "");
	path[NAME_MAX + 10] = '\0';
	fails_saying(path, "too long", "");
}

static void the_probe_describes_this_host(void **state)
{
	struct err e = {0};
	struct host h;
	struct stat st;

	(void)state;
	if (access("/usr/bin/python3", X_OK) < 0)
		SKIP("no /usr/bin/python3");
	assert_int_equal(host_probe(&h, "/usr/bin/python3", &e), 0);
	assert_int_equal(h.euid, geteuid());
	assert_true(h.kernel_major >= 5);
	assert_true(h.nattach > 0);
	assert_int_equal(lstat(h.roots[1].path, &st), 0);
	assert_int_equal(h.roots[1].kind == HOST_LINK, S_ISLNK(st.st_mode));
	for (int i = 0; i < h.netc; i++)
		assert_int_equal(access(h.etc[i], R_OK), 0);
	host_fini(&h);
}

static void links_of_shown_paths_are_resolved(void **state)
{
	char dir[] = "/tmp/host-XXXXXX", link[64], below[64];
	const char *const expose[] = {link, below, "/usr", "/no/such", NULL};
	const char *const packages[] = {link, NULL};
	struct jail_spec spec = {.packages = packages, .expose = expose};
	struct host h = {0};

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(link, sizeof(link), "%s/l", dir);
	snprintf(below, sizeof(below), "%s/l/bin", dir);
	assert_int_equal(symlink("/usr", link), 0);
	host_resolve(&h, &spec);
	assert_string_equal(host_real(&h, link), "/usr");
	assert_string_equal(host_real(&h, below), "/usr/bin");
	assert_string_equal(host_real(&h, "/usr"), "/usr");
	assert_string_equal(host_real(&h, "/no/such"), "/no/such");
	host_fini(&h);
	unlink(link);
	rmdir(dir);
}

static void an_error_about_namespaces_gets_a_remedy(void **state)
{
	struct err e = {.code = ENOSPC};

	(void)state;
	assert_int_equal(host_explain_userns(&e), -1);
	assert_true(e.hint[0] != '\0');
	assert_int_equal(host_explain_userns(NULL), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_top, remove_top)
		TEST(the_directory_above_bin_is_shown),
		TEST(links_to_files_and_directories_are_noted),
		TEST(dots_in_a_link_are_resolved),
		TEST(a_virtual_environment_shows_its_base_too),
		TEST(a_copied_interpreter_shows_its_base_too),
		TEST(an_environment_without_its_base_is_an_error),
		TEST(a_missing_interpreter_says_what_to_do),
		TEST(a_file_that_is_no_interpreter_is_an_error),
		TEST(a_circle_of_links_is_an_error),
		TEST(an_endless_path_is_an_error),
		cmocka_unit_test(the_probe_describes_this_host),
		cmocka_unit_test(links_of_shown_paths_are_resolved),
		cmocka_unit_test(an_error_about_namespaces_gets_a_remedy),
	};

	return cmocka_run_group_tests_name("host", tests, NULL, NULL);
}
