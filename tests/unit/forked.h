/* SPDX-License-Identifier: MIT */
/*
 * forked.h - run a function in a child and return its result
 *
 * A filter, a namespace or a change of identity cannot be undone, so each
 * trial runs in a process of its own.
 */
#ifndef TESTS_FORKED_H
#define TESTS_FORKED_H

#include <errno.h>
#include <grp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A child that died by a signal. */
#define FORKED_SIGNAL 1000

/* cmocka catches these signals and continues with the next test. The child must
 * die of them, or two processes would run the tests. */
static inline void forked_signals(void)
{
	static const int caught[] = {
		SIGFPE, SIGILL, SIGSEGV, SIGBUS, SIGSYS, SIGABRT};

	for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
		signal(caught[i], SIG_DFL);
}

/* Run fn(arg) in a child: what it returned (0 to 255), or FORKED_SIGNAL plus
 * the signal that ended it. */
static inline int forked(int (*fn)(void *), void *arg)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		forked_signals();
		_exit(fn(arg));
	}
	while (waitpid(pid, &status, 0) < 0)
		assert_int_equal(errno, EINTR);
	return WIFSIGNALED(status) ? FORKED_SIGNAL + WTERMSIG(status)
				   : WEXITSTATUS(status);
}

/* 0 for a result that is no error, else errno. */
static inline int errno_of(long r)
{
	return r < 0 ? errno : 0;
}

/* Skip, saying why. */
#define SKIP(...)                                                              \
	do {                                                                   \
		print_message("SKIP: " __VA_ARGS__);                           \
		print_message("\n");                                           \
		skip();                                                        \
	} while (0)

/* A check in a child: print the failure and exit. */
#define CHILD_CHECK(cond, ...)                                                 \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__,     \
				#cond);                                        \
			fprintf(stderr, __VA_ARGS__);                          \
			fprintf(stderr, "\n");                                 \
			_exit(255);                                            \
		}                                                              \
	} while (0)

/* In a child: go on as an ordinary user, who may look at its own /proc/PID. */
static inline void forked_as_user(void)
{
	const gid_t nobody = 65534;

	if (geteuid() != 0)
		return;
	CHILD_CHECK(setgroups(0, NULL) == 0 &&
			    setresgid(nobody, nobody, nobody) == 0 &&
			    setresuid(nobody, nobody, nobody) == 0 &&
			    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0,
		"give up being root");
}

#endif
