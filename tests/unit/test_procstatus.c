/* SPDX-License-Identifier: MIT */
/*
 * test_procstatus.c - what /proc/PID/status tells
 */
#include "forked.h"

#include "jail/base/procstatus.h"

#include <fcntl.h>
#include <sys/prctl.h>

static void every_field_is_found(void **state)
{
	static const char text[] = "Name:\ta\\nState:\tZ\\n\n"
				   "Umask:\t0022\n"
				   "State:\tt (tracing stop)\n"
				   "NSpid:\t17\t4\t2\n"
				   "SigPnd:\t0000000000000100\n"
				   "ShdPnd:\t0000000000000200\n"
				   "VmSize:\t  9 kB\n"
				   "VmRSS:\t  103 kB\n"
				   "RssAnon:\t  3 kB\n"
				   "RssFile:\t  100 kB\n"
				   "VmPTE:\t  5 kB\n"
				   "VmSwap:\t  4 kB\n"
				   "Threads:\t12\n"
				   "voluntary_ctxt_switches:\t7\n"
				   "nonvoluntary_ctxt_switches:\t30\n";
	struct procstatus st;

	(void)state;
	assert_int_equal(procstatus_parse(text, &st), 0);
	assert_int_equal(st.state, 't');
	assert_int_equal(st.threads, 12);
	assert_int_equal(st.inside, 2);
	assert_true(st.has_memory);
	assert_true(st.is_killed);
	assert_int_equal(st.size_bytes, 107 * 1024);
	assert_int_equal(st.pages_bytes, 7 * 1024);
	assert_int_equal(st.tables_bytes, 5 * 1024);
	assert_int_equal(st.switches, 37);
}

static void what_is_cut_off_is_refused(void **state)
{
	static const char *const texts[] = {"", "\n", "Name:\tx", "Name:\tx\n",
		"Name:\tx\nState:", "Name:\tx\nState:\t", "State:\tR\n"};
	struct procstatus st;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(procstatus_parse(texts[i], &st), -1);
}

static void a_process_reads_its_own(void **state)
{
	struct procstatus st;

	(void)state;
	prctl(PR_SET_NAME, "\nState:\tZ\n");
	assert_int_equal(
		procstatus_read(AT_FDCWD, "/proc/self/status", &st), 0);
	assert_int_equal(st.state, 'R');
	assert_int_equal(st.threads, 1);
	assert_int_equal(st.inside, getpid());
	assert_true(st.has_memory && st.pages_bytes > 0 && st.tables_bytes > 0);
	assert_int_equal(procstatus_read(AT_FDCWD, "/proc/0/status", &st), -1);
	assert_int_equal(errno, ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_is_found),
		cmocka_unit_test(what_is_cut_off_is_refused),
		cmocka_unit_test(a_process_reads_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
