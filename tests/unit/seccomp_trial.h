/* SPDX-License-Identifier: MIT */
/*
 * seccomp_trial.h - a system call in a child, with a filter or without
 */
#ifndef TESTS_SECCOMP_TRIAL_H
#define TESTS_SECCOMP_TRIAL_H

#include "forked.h"

#include "jail/walls/walls.h"

#include <sys/prctl.h>
#include <sys/syscall.h>

#define NO_FILTER (-1)

/* A system call, and its expected result under a profile. */
struct trial {
	const char *name;
	int profile;
	long nr, a[6];
	int want; /* errno, 0 for success, or FORKED_SIGNAL + n */
};

static inline void enter(int profile)
{
	struct err e;

	if (profile == NO_FILTER)
		return;
	CHILD_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "nnp");
	CHILD_CHECK(seccomp_load((enum seccomp_profile)profile, &e) == 0, "%s",
		e.msg);
}

static inline int make_call(void *arg)
{
	const struct trial *t = arg;

	setpgid(0, 0); /* a call on the group must not reach the runner */
	enter(t->profile);
	return errno_of(syscall(
		t->nr, t->a[0], t->a[1], t->a[2], t->a[3], t->a[4], t->a[5]));
}

static inline void run_trials(const struct trial *t, size_t n)
{
	int wrong = 0;

	for (size_t i = 0; i < n; i++) {
		int got = forked(make_call, (void *)&t[i]);

		if (got == t[i].want)
			continue;
		print_error("%s: wanted %d (%s), came %d (%s)\n", t[i].name,
			t[i].want, strerror(t[i].want), got, strerror(got));
		wrong++;
	}
	assert_int_equal(wrong, 0);
}

#define RUN(trials) run_trials(trials, sizeof(trials) / sizeof(trials[0]))

#endif
