/* SPDX-License-Identifier: MIT */
/*
 * covered.c - which blocks of the program ran, for `make coverage`
 *
 * gcc's -fsanitize-coverage=trace-pc calls __sanitizer_cov_trace_pc() at the
 * start of each block. It sets a byte of a file that all processes share, which
 * therefore knows what a process did that was killed, or that may write no
 * file: every process of a jail is of that kind, and gcov's counters end with
 * it.
 *
 * Runs in:  every process of a program built for `make coverage`; none else.
 * Holds:    the mapping of COVERAGE_DIR/NAME, NAME being that of the program.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

extern const char __executable_start, etext;

void __sanitizer_cov_trace_pc(void);

/* A byte for each byte of the program's text; NULL before it is mapped. */
static unsigned char *ran;

/* Opens the file of this program, or returns -1. Any user's process writes it.
 */
static int open_map(void)
{
	char exe[4096], path[4096];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	int fd;

	if (n <= 0)
		return -1;
	exe[n] = '\0';
	snprintf(path, sizeof(path), "%s%s", COVERAGE_DIR, strrchr(exe, '/'));
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (fd >= 0)
		(void)fchmod(fd, 0666);
	return fd;
}

__attribute__((constructor(101))) static void map_file(void)
{
	size_t size = (size_t)(&etext - &__executable_start);
	int fd = open_map();
	void *at;

	if (fd < 0)
		return;
	if (ftruncate(fd, (off_t)size) == 0) {
		at = mmap(
			NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (at != MAP_FAILED)
			ran = at;
	}
	close(fd);
}

void __sanitizer_cov_trace_pc(void)
{
	uintptr_t at = (uintptr_t)__builtin_return_address(0) -
		       (uintptr_t)&__executable_start;

	if (ran)
		ran[at] = 1;
}
