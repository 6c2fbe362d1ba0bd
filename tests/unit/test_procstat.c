/* SPDX-License-Identifier: MIT */
/*
 * test_procstat.c - one line of /proc/PID/stat
 */
#include "jail/base/procstat.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#define REST                                                                   \
	" S 1 7 7 34816 9 4194304 100 0 0 0 150 50 20 30 20 0 3 0 100 1000 "   \
	"2 18446744073709551615 0 0"

static void a_process_name_may_hold_any_byte(void **state)
{
	static const char *const lines[] = {
		"7 (python3)" REST,
		"7 (a) S 1 1 (b)" REST,
		"7 (x\n9 (y) R 0)" REST,
		"7 ())" REST,
		"7 ()" REST,
		"7 (\xff\xfe)" REST,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct procstat st;

		assert_int_equal(
			procstat_parse(lines[i], strlen(lines[i]), &st), 0);
		assert_int_equal(st.pid, 7);
		assert_int_equal(st.ppid, 1);
		assert_int_equal(st.pgrp, 7);
		assert_int_equal(st.tpgid, 9);
		assert_int_equal(st.state, 'S');
		assert_int_equal(st.threads, 3);
		assert_int_equal(st.cpu_ticks, 200);
		assert_int_equal(st.dead_ticks, 50);
		assert_true(st.tty == makedev(136, 0));
	}
}

static void half_a_line_is_refused(void **state)
{
	static const char *const lines[] = {
		"", "7", "7 (x", "(x)" REST, "7 (x) S 1 7", "7 (x)"};
	struct procstat st;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_int_equal(
			procstat_parse(lines[i], strlen(lines[i]), &st), -1);
}

/* ---- the kernel's own ---- */

static void a_process_reads_its_own_stat(void **state)
{
	extern char **environ;
	struct procstat st;

	(void)state;
	assert_int_equal(procstat_read(AT_FDCWD, "/proc/self/stat", &st), 0);
	assert_int_equal(st.pid, getpid());
	assert_int_equal(st.ppid, getppid());
	assert_int_equal(st.session, getsid(0));
	assert_int_equal(st.state, 'R');
	assert_int_equal(st.threads, 1);
	assert_true(st.start_ticks > 0);
	/* The kernel puts the environment's texts behind the arguments. */
	assert_true(st.args && st.args < st.args_end);
	assert_true(st.args_end == (uintptr_t)environ[0]);
}

static void a_missing_file_and_a_malformed_line_differ(void **state)
{
	struct procstat st;

	(void)state;
	assert_int_equal(procstat_read(AT_FDCWD, "/proc/0/stat", &st), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(procstat_read(AT_FDCWD, "/proc/uptime", &st), -1);
	assert_int_equal(errno, EBADMSG);
	assert_int_equal(procstat_read(AT_FDCWD, "/dev/null", &st), -1);
	assert_int_equal(errno, EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_name_may_hold_any_byte),
		cmocka_unit_test(half_a_line_is_refused),
		cmocka_unit_test(a_process_reads_its_own_stat),
		cmocka_unit_test(a_missing_file_and_a_malformed_line_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
