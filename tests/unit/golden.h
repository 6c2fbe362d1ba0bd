/* SPDX-License-Identifier: MIT */
/*
 * golden.h - compare text with a file, and show the difference
 *
 * With GOLDEN=write in the environment the file is written instead.
 */
#ifndef TESTS_GOLDEN_H
#define TESTS_GOLDEN_H

#include "forked.h"

#include <fcntl.h>

static inline void golden_write(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static inline int golden_diff_exec(void *paths)
{
	char *const *p = paths;

	dup2(2, 1);
	execlp("diff", "diff", "-u", "--label", "wanted", "--label", "got",
		p[0], p[1], (char *)NULL);
	return 2;
}

/* Print the output of diff; 0 when there is no difference. */
static inline int golden_diff(const char *path, const char *got)
{
	char temp[] = "/tmp/golden-XXXXXX";
	const char *paths[] = {path, temp};
	int fd = mkstemp(temp), status;

	assert_true(fd >= 0);
	assert_true(write(fd, got, strlen(got)) == (ssize_t)strlen(got));
	close(fd);
	status = forked(golden_diff_exec, paths);
	unlink(temp);
	return status;
}

static inline void golden_check(const char *path, const char *got)
{
	const char *mode = getenv("GOLDEN");

	if (mode && !strcmp(mode, "write")) {
		golden_write(path, got);
		return;
	}
	if (golden_diff(path, got) != 0)
		fail_msg("%s differs; if it should:  GOLDEN=write "
			 "build/tests/unit/test_plan",
			path);
}

#endif
