/* SPDX-License-Identifier: MIT */
/*
 * clocks.c - a clock that jumps, for one program
 *
 * Usage: LD_PRELOAD, with CLOCKS=FILE of two 64-bit numbers: the seconds that
 * the time of day is ahead, and those that the machine seems to have slept. To
 * set the host's clock would be everybody's.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *ahead;
static int (*real)(clockid_t clock, struct timespec *t);

__attribute__((constructor)) static void open_clocks(void)
{
	const char *path = getenv("CLOCKS");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *at = mmap(NULL, 16, PROT_READ, MAP_SHARED, fd, 0);

	real = (int (*)(clockid_t, struct timespec *))dlsym(
		RTLD_NEXT, "clock_gettime");
	ahead = at == MAP_FAILED ? NULL : at;
	if (fd >= 0)
		close(fd);
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	int r = real(clock, t);

	if (r == 0 && ahead && clock == CLOCK_REALTIME)
		t->tv_sec += ahead[0];
	if (r == 0 && ahead && clock == CLOCK_BOOTTIME)
		t->tv_sec += ahead[1];
	return r;
}

time_t time(time_t *to)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	if (to)
		*to = t.tv_sec;
	return t.tv_sec;
}

int gettimeofday(struct timeval *t, void *zone)
{
	struct timespec now;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	*t = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
	return 0;
}
