/* SPDX-License-Identifier: MIT */
/*
 * test_allocate.c - each session that root starts has a uid of its own
 */
#include "forked.h"

#include "jail/walls/walls.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Below the range of uids for sessions. */
#define SOME_UID 2130600001

struct allocations {
	char dir[64];
};

static int allocations_begin(void **state)
{
	struct allocations *c = calloc(1, sizeof(*c));

	strcpy(c->dir, "/tmp/cellblock-ident-XXXXXX");
	*state = c;
	return mkdtemp(c->dir) ? 0 : -1;
}

static int allocations_end(void **state)
{
	struct allocations *c = *state;
	DIR *d = opendir(c->dir);

	for (struct dirent *de; d && (de = readdir(d));)
		unlinkat(dirfd(d), de->d_name, 0);
	closedir(d);
	rmdir(c->dir);
	free(c);
	return 0;
}

static void no_two_sessions_share_a_uid(void **state)
{
	struct allocations *c = *state;
	int fd[3], again;
	uid_t uid[3], more;
	struct err e;

	if (geteuid() != 0)
		SKIP("only root allocates uids");
	for (int i = 0; i < 3; i++)
		assert_int_equal(ident_allocate(c->dir, SOME_UID, SOME_UID + 2,
					 &uid[i], &fd[i], &e),
			0);
	assert_int_not_equal(uid[0], uid[1]);
	assert_int_not_equal(uid[0], uid[2]);
	assert_int_not_equal(uid[1], uid[2]);
	assert_int_equal(ident_allocate(c->dir, SOME_UID, SOME_UID + 2, &more,
				 &again, &e),
		-1);
	assert_non_null(strstr(e.msg, "in use"));
	assert_non_null(strstr(e.hint, "uids"));
	/* control: a uid that was given back can be allocated */
	close(fd[1]);
	assert_int_equal(ident_allocate(c->dir, SOME_UID, SOME_UID + 2, &more,
				 &again, &e),
		0);
	assert_int_equal(more, uid[1]);
	close(again);
	close(fd[0]);
	close(fd[2]);
}

static void a_uid_stays_allocated_until_the_last_holder_ends(void **state)
{
	struct allocations *c = *state;
	int fd, again;
	uid_t uid;
	struct err e;
	pid_t pid;

	if (geteuid() != 0)
		SKIP("only root allocates uids");
	assert_int_equal(
		ident_allocate(c->dir, SOME_UID, SOME_UID, &uid, &fd, &e), 0);
	pid = fork(); /* as the janitor is */
	if (pid == 0)
		for (;;)
			pause();
	close(fd);
	assert_int_equal(
		ident_allocate(c->dir, SOME_UID, SOME_UID, &uid, &again, &e),
		-1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(
		ident_allocate(c->dir, SOME_UID, SOME_UID, &uid, &again, &e),
		0);
	close(again);
}

static void a_uid_without_a_holder_is_free(void **state)
{
	struct allocations *c = *state;
	static const char *const never[] = {"", "0", "65534", "4294967295",
		"4294967297", "-1", "+7", " 7", "07", "7x", "x", "."};
	int mine, theirs, elsewhere = memfd_create("uids", 0);
	char name[IDENT_NAME_MAX], number[16], wrong[IDENT_NAME_MAX + 16];
	struct err e;
	uid_t uid;

	if (geteuid() != 0)
		SKIP("only root allocates uids");
	assert_int_equal(
		ident_allocate(c->dir, SOME_UID, SOME_UID, &uid, &theirs, &e),
		0);
	assert_int_equal(ident_allocate(c->dir, SOME_UID + 1, SOME_UID + 1,
				 &uid, &mine, &e),
		0);
	assert_int_equal(ident_allocation_name(mine, SOME_UID, name, &e), 0);
	assert_false(ident_allocation_is_free(mine, name));
	snprintf(number, sizeof(number), "%u", SOME_UID);
	assert_int_equal(strncmp(name, number, strlen(number)), 0);
	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
		assert_false(ident_allocation_is_free(mine, never[i]));
		snprintf(wrong, sizeof(wrong), "%s%s", never[i],
			name + strlen(number));
		assert_false(ident_allocation_is_free(mine, wrong));
	}
	/* control: it is free once they have given it back */
	ident_allocation_release(theirs);
	assert_false(ident_allocation_is_free(mine, number));
	assert_true(ident_allocation_is_free(mine, name));
	/* a lock in another lock file does not count */
	assert_false(ident_allocation_is_free(elsewhere, name));
	close(elsewhere);
	/* from then on it is allocated */
	assert_false(ident_allocation_is_free(theirs, name));
	close(mine);
	assert_true(ident_allocation_is_free(theirs, name));
	close(theirs);
}

static int sleep_as(void *arg)
{
	int *ready = arg;
	struct err e;

	CHILD_CHECK(ident_become(SOME_UID, SOME_UID, &e) == 0, "%s", e.msg);
	/* Like pid 1 of a jail: root owns its directory in /proc. */
	CHILD_CHECK(ident_set_undumpable(&e) == 0, "%s", e.msg);
	CHILD_CHECK(write(ready[1], "x", 1) == 1, "write");
	for (;;)
		pause();
	return 0;
}

static void a_uid_with_running_processes_is_not_allocated(void **state)
{
	struct allocations *c = *state;
	int ready[2], fd = -1;
	uid_t uid;
	struct err e;
	pid_t pid;
	char ch;

	if (geteuid() != 0)
		SKIP("only root allocates uids");
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0)
		_exit(sleep_as(ready));
	assert_int_equal(read(ready[0], &ch, 1), 1);
	assert_int_equal(
		ident_allocate(c->dir, SOME_UID, SOME_UID, &uid, &fd, &e), -1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(
		ident_allocate(c->dir, SOME_UID, SOME_UID, &uid, &fd, &e), 0);
	close(fd);
}

static void root_and_nobody_are_never_allocated(void **state)
{
	struct allocations *c = *state;
	const uid_t never[] = {0, 65534, (uid_t)-1};
	struct err e;
	uid_t uid;
	int fd;

	if (geteuid() != 0)
		SKIP("only root allocates uids");
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(ident_allocate(c->dir, never[i], never[i],
					 &uid, &fd, &e),
			-1);
}

static void a_lock_directory_of_another_user_is_refused(void **state)
{
	struct allocations *c = *state;
	struct err e;
	uid_t uid;
	int fd;

	if (geteuid() != 0)
		SKIP("only root allocates uids");
	chmod(c->dir, 0777);
	assert_int_equal(
		ident_allocate(c->dir, SOME_UID, SOME_UID, &uid, &fd, &e), -1);
	assert_non_null(strstr(e.msg, "must be root's"));
	chmod(c->dir, 0700);
	assert_int_equal(chown(c->dir, SOME_UID, 0), 0);
	assert_int_equal(
		ident_allocate(c->dir, SOME_UID, SOME_UID, &uid, &fd, &e), -1);
}

#define TEST(f)                                                                \
	cmocka_unit_test_setup_teardown(f, allocations_begin, allocations_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(no_two_sessions_share_a_uid),
		TEST(a_uid_stays_allocated_until_the_last_holder_ends),
		TEST(a_uid_without_a_holder_is_free),
		TEST(a_uid_with_running_processes_is_not_allocated),
		TEST(root_and_nobody_are_never_allocated),
		TEST(a_lock_directory_of_another_user_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
