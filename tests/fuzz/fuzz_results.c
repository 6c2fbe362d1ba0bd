/* SPDX-License-Identifier: MIT */
/* fuzz-sources: repl/grade/results.c repl/grade/report.c repl/drive/verdict.c
 * repl/json/emit.c */
/* fuzz-libs: -ljansson */
/*
 * fuzz_results.c - any bytes as a file of results
 *
 * A file that is refused stays as it is; of one that is taken no whole line
 * changes. Reports of what it says have no control character.
 */
#include "must.h"

#include "repl/grade/grade.h"

#include "jail/base/err.h"
#include "jail/base/io.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX 8000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A file of the corpus has the digest of these: 1 and 2. */
static struct exercise plan = {.program = (char *)"hw.py", .digest = 1};
static struct submission students[] = {
	{.name = (char *)"ada", .digest = 2},
	{.name = (char *)"bob", .digest = 2},
};
static struct submissions all = {.v = students, .n = 2};

/* The text of an open file, which ends in NUL. */
static char *text_of(int fd, size_t *n)
{
	static char text[1 << 20];
	ssize_t got = pread(fd, text, sizeof(text) - 1, 0);

	must(got >= 0);
	text[got] = '\0';
	*n = (size_t)got;
	return text;
}

static void must_be_text(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		must((unsigned char)s[i] >= 0x20 || s[i] == '\n' ||
			s[i] == '\t');
}

static void report(const struct results *r, int fd)
{
	struct err e = {0};
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	must(f != NULL);
	report_table(r, &all, 80, f);
	report_json(r, &all, f);
	fclose(f);
	must_be_text(text, n);
	free(text);
	must(ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0);
	must(report_junit(r, &all, fd, &e) == 0);
	text = text_of(fd, &n);
	must_be_text(text, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	auto_close int fd = memfd_create("results", MFD_CLOEXEC);
	auto_close int xml = memfd_create("xml", MFD_CLOEXEC);
	struct results r;
	struct err e = {0};
	char path[40];
	const char *text;
	size_t left;

	if (n > MAX)
		return 0;
	must(fd >= 0 && xml >= 0 && io_write_full(fd, data, n) == 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (results_open(&r, &plan, path, &e) < 0) {
		must(e.msg[0]);
		text = text_of(fd, &left);
		must(left == n && !memcmp(text, data, n));
	} else {
		text = text_of(fd, &left);
		must(left <= n && !memcmp(text, data, left));
		must(!left || text[left - 1] == '\n');
		must(!memchr(data + left, '\n', n - left));
		report(&r, xml);
	}
	results_close(&r);
	return 0;
}
