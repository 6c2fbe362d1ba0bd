/* SPDX-License-Identifier: MIT */
/*
 * test_setup.c - the number of sessions of a person is limited
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "jail/base/err.h"
#include "repl/session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct place {
	char dir[64];
};

static int make_dir(void **state)
{
	static struct place p;

	strcpy(p.dir, "/tmp/slots-XXXXXX");
	*state = &p;
	return mkdtemp(p.dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	struct place *p = *state;
	char path[80];

	snprintf(path, sizeof(path), "%s/sessions", p->dir);
	unlink(path);
	rmdir(path);
	return rmdir(p->dir);
}

/* Take a place of `most`: the descriptor that holds it, or -1 with e. */
static int claim(const struct place *p, int most, struct err *e)
{
	struct setup_slots s = {.most = most};

	s.fd = setup_open_slots(p->dir, &s.why);
	if (setup_claim_slot(&s, e) == 0)
		return s.fd;
	close(s.fd);
	return -1;
}

static void a_session_beyond_the_limit_is_refused(void **state)
{
	struct place *p = *state;
	struct err e = {0};
	int a = claim(p, 2, &e), b = claim(p, 2, &e);

	assert_true(a >= 0);
	assert_true(b >= 0);
	assert_int_equal(claim(p, 2, &e), -1);
	assert_int_equal(e.kind, ERR_BUSY);
	assert_non_null(strstr(e.msg, "2 sessions"));
	close(a);
	a = claim(p, 2, &e);
	assert_true(a >= 0);
	close(a);
	close(b);
}

static void who_cannot_be_counted_starts_unless_counting_is_a_must(void **state)
{
	struct setup_slots s = {.fd = -1, .most = 1};
	struct err e = {0};

	(void)state;
	err_set(&s.why, "no home");
	assert_int_equal(setup_claim_slot(&s, &e), 0);
	s.must = true;
	assert_int_equal(setup_claim_slot(&s, &e), -1);
	assert_int_equal(e.kind, ERR_CONFIG);
	assert_string_equal(e.msg, "no home");
}

static void a_slot_is_free_when_its_process_ends(void **state)
{
	struct place *p = *state;
	struct err e = {0};
	pid_t pid = fork();
	int fd;

	if (pid == 0)
		_exit(claim(p, 1, &e) < 0);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &fd, 0), pid);
	assert_int_equal(fd, 0);
	fd = claim(p, 1, &e);
	assert_true(fd >= 0);
	close(fd);
}

static void a_planted_fifo_is_refused(void **state)
{
	struct place *p = *state;
	char path[80];

	snprintf(path, sizeof(path), "%s/sessions", p->dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(setup_open_slots(p->dir, NULL), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_session_beyond_the_limit_is_refused, make_dir,
			remove_dir),
		cmocka_unit_test(
			who_cannot_be_counted_starts_unless_counting_is_a_must),
		cmocka_unit_test_setup_teardown(
			a_slot_is_free_when_its_process_ends, make_dir,
			remove_dir),
		cmocka_unit_test_setup_teardown(
			a_planted_fifo_is_refused, make_dir, remove_dir),
	};

	return cmocka_run_group_tests_name("setup", tests, NULL, NULL);
}
