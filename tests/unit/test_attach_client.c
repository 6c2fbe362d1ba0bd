/* SPDX-License-Identifier: MIT */
/*
 * test_attach_client.c - a client that cannot begin has no front end either
 */
#include "forked.h"

#include "jail/base/err.h"
#include "repl/attach/attach.h"

#include <sys/signalfd.h>
#include <sys/syscall.h>

static int failing; /* errno of what cannot be had; 0: all can */

int signalfd(int fd, const sigset_t *set, int flags)
{
	errno = failing;
	return failing ? -1
		       : (int)syscall(SYS_signalfd4, fd, set, _NSIG / 8, flags);
}

/* In a child, so that nothing of a client is left in the tests. The parent of
 * a front end never returns. */
static int begin(void *said)
{
	struct err e = {0};
	pid_t us = getpid();
	int link = client_begin(NULL, &e);

	if (getpid() != us || link >= 0)
		_exit(0);
	return strcmp(e.msg, said) == 0 && waitpid(-1, NULL, 0) < 0 &&
			       errno == ECHILD
		       ? 7
		       : 8;
}

static void it_fails_before_there_is_a_front_end(void **state)
{
	char said[] = "wait for signals: Too many open files";

	(void)state;
	failing = EMFILE;
	assert_int_equal(forked(begin, said), 7);
	/* control: its front end ends at once, with status 0, which is the
	 * client's then */
	failing = 0;
	assert_int_equal(forked(begin, said), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_fails_before_there_is_a_front_end),
	};

	return cmocka_run_group_tests_name("attach_client", tests, NULL, NULL);
}
