/* SPDX-License-Identifier: MIT */
/*
 * test_newfile.c - a file that gets its name when it is whole
 */
#include "jail/base/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

struct play {
	char name[32];
	int fd;
};

static int setup(void **state)
{
	static struct play p;

	strcpy(p.name, "/tmp/test_newfile.XXXXXX");
	if (!mkdtemp(p.name))
		return -1;
	p.fd = open(p.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = &p;
	return p.fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	struct play *p = *state;

	unlinkat(p->fd, "a", 0);
	close(p->fd);
	return rmdir(p->name);
}

static void write_one(
	struct io_newfile *f, const struct play *p, const char *text)
{
	assert_int_equal(io_newfile_create(f, p->fd, 0640), 0);
	assert_int_equal(io_write_full(f->fd, text, strlen(text)), 0);
}

static void assert_holds(const struct play *p, const char *text)
{
	auto_free char *got = NULL;
	size_t n;

	assert_int_equal(io_read_file(p->fd, "a", 100, &got, &n), 0);
	assert_string_equal(got, text);
}

/* Names in the directory. */
static int count(const struct play *p)
{
	DIR *d = opendir(p->name);
	int n = 0;

	while (d && readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static void a_file_has_no_name_before_it_is_whole(void **state)
{
	const struct play *p = *state;
	struct io_newfile f;
	struct stat st;

	write_one(&f, p, "one");
	assert_int_equal(fstatat(p->fd, "a", &st, 0), -1);
	assert_int_equal(io_newfile_commit(&f, "a", false), 0);
	assert_int_equal(f.fd, -1);
	io_newfile_abort(&f); /* does nothing now */
	assert_holds(p, "one");
	assert_int_equal(fstatat(p->fd, "a", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	assert_int_equal(count(p), 1);
}

static void a_file_replaces_another_only_on_request(void **state)
{
	const struct play *p = *state;
	struct io_newfile f;

	write_one(&f, p, "one");
	assert_int_equal(io_newfile_commit(&f, "a", false), 0);
	write_one(&f, p, "two");
	assert_int_equal(io_newfile_commit(&f, "a", false), -1);
	assert_int_equal(errno, EEXIST);
	assert_holds(p, "one");
	assert_int_equal(io_newfile_commit(&f, "a", true), 0);
	assert_holds(p, "two");
}

static void an_aborted_file_leaves_nothing(void **state)
{
	const struct play *p = *state;
	struct io_newfile f;

	write_one(&f, p, "half");
	assert_int_equal(count(p), 1);
	io_newfile_abort(&f);
	assert_int_equal(count(p), 0);
	assert_true(f.fd < 0 && f.dir < 0);
}

/* A link of that name is replaced; the target of the link is unchanged. */
static void a_link_is_not_followed(void **state)
{
	const struct play *p = *state;
	struct io_newfile f;
	struct stat st;

	assert_int_equal(symlinkat("/dev/null", p->fd, "a"), 0);
	write_one(&f, p, "mine");
	assert_int_equal(io_newfile_commit(&f, "a", false), -1);
	assert_int_equal(io_newfile_commit(&f, "a", true), 0);
	assert_int_equal(fstatat(p->fd, "a", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISREG(st.st_mode));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_file_has_no_name_before_it_is_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_file_replaces_another_only_on_request, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			an_aborted_file_leaves_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_link_is_not_followed, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
