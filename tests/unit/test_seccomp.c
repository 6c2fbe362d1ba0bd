/* SPDX-License-Identifier: MIT */
/*
 * test_seccomp.c - system calls that each filter refuses or allows
 *
 * Every trial is a system call in a child of its own: once without the filter,
 * where that is harmless, and once with it. A call that also fails without the
 * filter proves nothing.
 */
#include "seccomp_trial.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

/* Calls that without the filter succeed for anyone (the control), or fail with
 * another errno. */
static void a_guest_is_refused_calls_that_work_without_a_filter(void **state)
{
	static char byte;
	const struct trial trials[] = {
		{"unshare(0), control", NO_FILTER, SYS_unshare, {0}, 0},
		{"unshare(0)", SECCOMP_GUEST, SYS_unshare, {0}, EPERM},
		{"keyctl, control", NO_FILTER, SYS_keyctl, {0, -3, 1}, 0},
		{"keyctl", SECCOMP_GUEST, SYS_keyctl, {0, -3, 1}, EPERM},
		{"prlimit of the parent, control", NO_FILTER, SYS_prlimit64,
			{getpid(), RLIMIT_CORE}, 0},
		{"prlimit of the parent", SECCOMP_GUEST, SYS_prlimit64,
			{getpid(), RLIMIT_CORE}, EPERM},
		{"prlimit of oneself", SECCOMP_GUEST, SYS_prlimit64,
			{0, RLIMIT_CORE}, 0},
		{"no core limit of its own", SECCOMP_GUEST, SYS_prlimit64,
			{0, RLIMIT_CORE, 1}, 0},
		{"no core limit, control", NO_FILTER, SYS_prlimit64,
			{0, RLIMIT_CORE, 1}, EFAULT},
		{"another limit, control", SECCOMP_GUEST, SYS_prlimit64,
			{0, RLIMIT_STACK, 1}, EFAULT},
		{"setpriority of the group, control", NO_FILTER,
			SYS_setpriority, {PRIO_PGRP, 0, 19}, 0},
		{"setpriority of the group", SECCOMP_GUEST, SYS_setpriority,
			{PRIO_PGRP, 0, 19}, EPERM},
		{"setpriority of the user", SECCOMP_GUEST, SYS_setpriority,
			{PRIO_USER, 0, 19}, EPERM},
		{"setpriority of oneself", SECCOMP_GUEST, SYS_setpriority,
			{PRIO_PROCESS, 0, 19}, 0},
		{"clone3", SECCOMP_GUEST, SYS_clone3, {0, 0}, ENOSYS},
		{"a call of tomorrow", SECCOMP_GUEST, 1000, {0}, ENOSYS},
		{"call -1", SECCOMP_GUEST, -1, {0}, ENOSYS},
		{"kill(-1, 0), control: signals everyone or no one", NO_FILTER,
			SYS_kill, {-1, 0}, 0},
		{"kill(-1, 0)", SECCOMP_GUEST, SYS_kill, {-1, 0}, EPERM},
		{"kill(-1) with high bits", SECCOMP_GUEST, SYS_kill,
			{0x5ffffffff, 0}, EPERM},
		{"kill(self, 0)", SECCOMP_GUEST, SYS_kill, {0, 0}, 0},
		{"personality ADDR_NO_RANDOMIZE, control", NO_FILTER,
			SYS_personality, {ADDR_NO_RANDOMIZE}, 0},
		{"personality ADDR_NO_RANDOMIZE", SECCOMP_GUEST,
			SYS_personality, {ADDR_NO_RANDOMIZE}, EPERM},
		{"personality, asked", SECCOMP_GUEST, SYS_personality,
			{0xffffffff}, 0},
		{"death signal SIGCONT, control", NO_FILTER, SYS_prctl,
			{PR_SET_PDEATHSIG, SIGCONT}, 0},
		{"death signal SIGCONT", SECCOMP_GUEST, SYS_prctl,
			{PR_SET_PDEATHSIG, SIGCONT}, EPERM},
		{"death signal SIGTERM", SECCOMP_GUEST, SYS_prctl,
			{PR_SET_PDEATHSIG, SIGTERM}, 0},
		{"subreaper, control", NO_FILTER, SYS_prctl,
			{PR_SET_CHILD_SUBREAPER, 1}, 0},
		{"fcntl F_SETSIG, control", NO_FILTER, SYS_fcntl,
			{2, F_SETSIG, SIGCONT}, 0},
		{"fcntl F_SETSIG", SECCOMP_GUEST, SYS_fcntl,
			{2, F_SETSIG, SIGCONT}, EPERM},
		{"fcntl F_GETFL", SECCOMP_GUEST, SYS_fcntl, {2, F_GETFL}, 0},
		{"sync, control is not for a test", SECCOMP_GUEST, SYS_sync,
			{0}, EPERM},
		{"mincore, control", SECCOMP_GUEST, SYS_mincore,
			{(long)&byte & ~4095L, 1, (long)&byte}, 0},
	};

	(void)state;
	RUN(trials);
}

static void a_guest_sets_of_itself_what_concerns_it_alone(void **state)
{
	const struct trial trials[] = {
		{"subreaper", SECCOMP_GUEST, SYS_prctl,
			{PR_SET_CHILD_SUBREAPER, 1}, EPERM},
		{"undumpable, control", NO_FILTER, SYS_prctl,
			{PR_SET_DUMPABLE, 0}, 0},
		{"undumpable, which is only said to be done", SECCOMP_GUEST,
			SYS_prctl, {PR_SET_DUMPABLE, 0}, 0},
		{"dumpable", SECCOMP_GUEST, SYS_prctl, {PR_SET_DUMPABLE, 1},
			EPERM},
		{"memory map, control", NO_FILTER, SYS_prctl,
			{PR_SET_MM, PR_SET_MM_MAP, 0,
				sizeof(struct prctl_mm_map)},
			EFAULT},
		{"memory map, of which there is no tracer to ask",
			SECCOMP_GUEST, SYS_prctl,
			{PR_SET_MM, PR_SET_MM_MAP, 0,
				sizeof(struct prctl_mm_map)},
			ENOSYS},
		{"a part of it", SECCOMP_GUEST, SYS_prctl,
			{PR_SET_MM, PR_SET_MM_ARG_START, 4096}, EPERM},
		{"name", SECCOMP_GUEST, SYS_prctl, {PR_SET_NAME, (long)"x"}, 0},
	};

	(void)state;
	RUN(trials);
}

static void a_guest_gets_only_three_socket_families(void **state)
{
	const struct trial trials[] = {
		{"unix", SECCOMP_GUEST, SYS_socket, {AF_UNIX, SOCK_STREAM}, 0},
		{"inet", SECCOMP_GUEST, SYS_socket, {AF_INET, SOCK_STREAM, 6},
			0},
		{"inet udp", SECCOMP_GUEST, SYS_socket,
			{AF_INET, SOCK_DGRAM, 17}, 0},
		{"inet of another type, control", NO_FILTER, SYS_socket,
			{AF_INET, SOCK_RDM, 0}, ESOCKTNOSUPPORT},
		{"inet of another type", SECCOMP_GUEST, SYS_socket,
			{AF_INET, SOCK_RDM, 0}, EPERM},
		{"inet udp in a stream", SECCOMP_GUEST, SYS_socket,
			{AF_INET, SOCK_STREAM, 17}, EPERM},
		{"inet datagrams", SECCOMP_GUEST, SYS_socket,
			{AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0}, 0},
		{"netlink route, control", NO_FILTER, SYS_socket,
			{AF_NETLINK, SOCK_RAW, 0}, 0},
		{"netlink route", SECCOMP_GUEST, SYS_socket,
			{AF_NETLINK, SOCK_RAW, 0}, EPERM},
		{"netlink generic, control", NO_FILTER, SYS_socket,
			{AF_NETLINK, SOCK_RAW, 16}, 0},
		{"netlink generic", SECCOMP_GUEST, SYS_socket,
			{AF_NETLINK, SOCK_RAW, 16}, EPERM},
		{"vsock", SECCOMP_GUEST, SYS_socket, {AF_VSOCK, SOCK_STREAM},
			EPERM},
		{"alg", SECCOMP_GUEST, SYS_socket, {AF_ALG, SOCK_SEQPACKET},
			EPERM},
		{"packet", SECCOMP_GUEST, SYS_socket, {AF_PACKET, SOCK_RAW},
			EPERM},
		{"mptcp", SECCOMP_GUEST, SYS_socket,
			{AF_INET, SOCK_STREAM, 262}, EPERM},
		{"unix with high bits", SECCOMP_GUEST, SYS_socket,
			{AF_UNIX | 1L << 32, SOCK_STREAM}, 0},
	};

	(void)state;
	RUN(trials);
}

static void namespaces_and_death_signals_are_refused_in_clone(void **state)
{
	const unsigned long flags[] = {CLONE_NEWNS, CLONE_NEWCGROUP,
		CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID,
		CLONE_NEWNET, 0x80 /* CLONE_NEWTIME, or half a signal */};

	(void)state;
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		struct trial t = {"clone", SECCOMP_GUEST, SYS_clone,
			{(long)(flags[i] | SIGCHLD)}, EPERM};

		run_trials(&t, 1);
		t.a[0] |= CLONE_NEWUSER;
		run_trials(&t, 1);
	}
	for (int sig = 1; sig < 65; sig++) {
		struct trial t = {"clone with an exit signal", SECCOMP_GUEST,
			SYS_clone, {sig}, sig == SIGCHLD ? 0 : EPERM};

		run_trials(&t, 1);
	}
}

static void a_guest_cannot_continue_a_stopped_process(void **state)
{
	struct sigevent ev = {
		.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGCONT};
	timer_t id;
	const struct trial trials[] = {
		{"timer_create, control", NO_FILTER, SYS_timer_create,
			{CLOCK_MONOTONIC, (long)&ev, (long)&id}, 0},
		{"timer_create", SECCOMP_GUEST, SYS_timer_create,
			{CLOCK_MONOTONIC, (long)&ev, (long)&id}, ENOSYS},
		{"mq_notify, control", NO_FILTER, SYS_mq_notify, {-1}, EBADF},
		{"mq_notify", SECCOMP_GUEST, SYS_mq_notify, {-1}, EPERM},
	};

	(void)state;
	RUN(trials);
}

/* On a pipe every terminal request fails with ENOTTY, but the filter answers
 * first. */
static void terminal_input_cannot_be_faked_in_any_encoding(void **state)
{
	const unsigned long refused[] = {
		TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS, TIOCEXCL};
	int p[2];

	(void)state;
	assert_int_equal(pipe(p), 0);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct trial t = {"ioctl", NO_FILTER, SYS_ioctl,
			{p[0], (long)refused[i], 0}, ENOTTY};

		run_trials(&t, 1);
		t.want = EPERM;
		for (int profile = 0; profile < SECCOMP_PROFILES; profile++) {
			t.profile = profile;
			t.a[1] = (long)refused[i];
			run_trials(&t, 1);
			t.a[1] |= 1L << 32;
			run_trials(&t, 1);
			t.a[1] |= LONG_MIN;
			run_trials(&t, 1);
		}
	}
	close(p[0]);
	close(p[1]);
}

static void unknown_ioctls_fail_with_enotty(void **state)
{
	int fd = open("/dev/null", O_RDONLY), n = 0;
	const struct trial trials[] = {
		{"unknown request", SECCOMP_GUEST, SYS_ioctl, {fd, 0x1234},
			ENOTTY},
		{"FIOCLEX", SECCOMP_GUEST, SYS_ioctl, {fd, FIOCLEX}, 0},
		{"FIONBIO", SECCOMP_GUEST, SYS_ioctl, {fd, FIONBIO, (long)&n},
			0},
		/* musl hands a request over as a signed int */
		{"TIOCGPTN of a non-pty", SECCOMP_GUEST, SYS_ioctl,
			{fd, (long)(int)TIOCGPTN, (long)&n}, ENOTTY},
	};

	(void)state;
	RUN(trials);
	close(fd);
}

static void without_a_memory_cgroup_uncounted_memory_is_refused(void **state)
{
	const long private = MAP_PRIVATE | MAP_ANONYMOUS;
	const long name = (long)"x";

	(void)state;
	for (int profile = SECCOMP_GUEST; profile <= SECCOMP_GUEST_NOMEM;
		profile++) {
		int want = profile == SECCOMP_GUEST ? 0 : EPERM;
		int p[2];
		struct trial trials[] = {
			{"larger pipe", profile, SYS_fcntl,
				{0, F_SETPIPE_SZ, 65536}, want},
			{"private anonymous", profile, SYS_mmap,
				{0, 4096, PROT_READ, private, -1, 0}, 0},
			{"memfd", profile, SYS_memfd_create, {name, 0}, want},
			{"huge pages", profile, SYS_mmap,
				{0, 2 << 20, PROT_READ, private | MAP_HUGETLB,
					-1, 0},
				EPERM},
			{"huge page", profile, SYS_madvise,
				{0, 0, MADV_HUGEPAGE}, want ? EINVAL : 0},
			{"huge page now", profile, SYS_madvise,
				{1, 0, 25 /* MADV_COLLAPSE */}, EINVAL},
			{"small pages", profile, SYS_madvise,
				{0, 0, MADV_NOHUGEPAGE}, 0},
			{"huge pages on", profile, SYS_prctl,
				{PR_SET_THP_DISABLE, 0}, want},
			{"huge pages off", profile, SYS_prctl,
				{PR_SET_THP_DISABLE, 1}, 0},
			{"huge memfd", profile, SYS_memfd_create,
				{name, MFD_HUGETLB}, EPERM},
			{"shmget", profile, SYS_shmget,
				{12345, 4096, 0 /* ENOENT: makes none */},
				want ? want : ENOENT},
			{"semget", profile, SYS_semget, {12345, 1, 0}, ENOSYS},
			{"larger buffer", profile, SYS_setsockopt,
				{-1, SOL_SOCKET, SO_SNDBUF, 0, 0},
				want ? want : EBADF},
			{"reused address", profile, SYS_setsockopt,
				{-1, SOL_SOCKET, SO_REUSEADDR, 0, 0}, EBADF},
		};

		assert_int_equal(pipe(p), 0);
		trials[0].a[0] = p[0];
		RUN(trials);
		close(p[0]);
		close(p[1]);
	}
}

static int stack_and_call(void *arg)
{
	struct trial *t = arg;

	enter(SECCOMP_INIT);
	return make_call(t);
}

static void a_guest_loads_its_filter_under_inits(void **state)
{
	struct trial trials[] = {
		{"getpid", SECCOMP_GUEST, SYS_getpid, {0}, 0},
		{"kill(-1)", SECCOMP_GUEST, SYS_kill, {-1, 0}, EPERM},
		{"a third filter", SECCOMP_GUEST, SYS_seccomp, {0, 0, 0},
			EPERM},
	};

	(void)state;
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(
			forked(stack_and_call, &trials[i]), i == 0 ? 0 : EPERM);
	/* control: init itself may signal everyone */
	trials[0] = (struct trial){
		"kill(-1, 0)", SECCOMP_INIT, SYS_kill, {-1, 0}, 0};
	run_trials(trials, 1);
}

/* A guest has init's filter and its own: a call that init's filter refuses is
 * refused to every guest, whatever the guest's own filter says. */
static void inits_filter_allows_every_call_of_a_guest(void **state)
{
	(void)state;
	/* 335 and 336 are uprobe calls, which no filter sees. */
	for (long nr = 0; nr < 480; nr += nr == 334 ? 3 : 1) {
		/* with these arguments every call fails or does nothing */
		struct trial t = {"", SECCOMP_GUEST, nr, {-1, -1, -1, -1}, 0};
		int guest, init;

		switch (nr) {
		case SYS_exit:
		case SYS_exit_group:
		case SYS_rt_sigreturn:
		case SYS_rt_sigsuspend:
		case SYS_restart_syscall:
		case SYS_kill:
		case SYS_pselect6:
		case SYS_ppoll:
		case SYS_msgget: /* would make objects on the host */
		case SYS_semget:
		case SYS_shmget:
#ifdef SYS_pause
		case SYS_pause:
		case SYS_fork:
		case SYS_vfork:
		case SYS_select:
		case SYS_poll:
#endif
			continue;
		}
		guest = forked(make_call, &t);
		t.profile = SECCOMP_INIT;
		init = forked(make_call, &t);
		if (guest != EPERM && guest != ENOSYS && guest != init)
			fail_msg(
				"call %ld: guest %d, init %d", nr, guest, init);
	}
}

static void filters_are_small(void **state)
{
	(void)state;
	for (int profile = 0; profile < SECCOMP_PROFILES; profile++) {
		int n = seccomp_size((enum seccomp_profile)profile);

		assert_in_range(n, 50, 4096);
	}
}

static int without_nnp(void *arg)
{
	struct err e = {0};

	(void)arg;
	forked_as_user();
	return seccomp_load(SECCOMP_GUEST, &e) < 0 && strstr(e.msg, "seccomp");
}

static void loading_without_no_new_privs_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(forked(without_nnp, NULL), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_guest_is_refused_calls_that_work_without_a_filter),
		cmocka_unit_test(a_guest_sets_of_itself_what_concerns_it_alone),
		cmocka_unit_test(a_guest_gets_only_three_socket_families),
		cmocka_unit_test(
			namespaces_and_death_signals_are_refused_in_clone),
		cmocka_unit_test(a_guest_cannot_continue_a_stopped_process),
		cmocka_unit_test(
			terminal_input_cannot_be_faked_in_any_encoding),
		cmocka_unit_test(unknown_ioctls_fail_with_enotty),
		cmocka_unit_test(
			without_a_memory_cgroup_uncounted_memory_is_refused),
		cmocka_unit_test(a_guest_loads_its_filter_under_inits),
		cmocka_unit_test(inits_filter_allows_every_call_of_a_guest),
		cmocka_unit_test(filters_are_small),
		cmocka_unit_test(loading_without_no_new_privs_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
