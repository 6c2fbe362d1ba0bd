/* SPDX-License-Identifier: MIT */
/*
 * hinder.c - a host with other clocks, or without memory or processes, for one
 * process
 *
 * LD_PRELOAD, because the product has nothing by which anybody could change its
 * clocks, and the host's clocks are everybody's. The environment says what is
 * other:
 *
 *	HINDER_SPEED=N      the monotonic clock runs N times as fast, also in
 *	                    children; poll(2) and an alarm of setitimer(2) wait
 *	                    for an Nth of the time
 *	HINDER_SLOW=N       the monotonic clock is N times as slow, and poll(2)
 *	HINDER_JUMP_US=N    the monotonic clock of the process, not of its
 *	                    children, goes on by N µs at each look, as if others
 *	                    ran before each
 *	HINDER_CLOCKS=FILE  two 64-bit numbers: the seconds that the time of day
 *	                    is ahead, and those that the machine seems to have
 *	                    slept
 *	HINDER_CALLOC=NxM   there is no memory for N items of M bytes
 *	HINDER_FORK=FILE    there is no process while this file is there
 *	HINDER_MKDIRAT=NAME there is no room for a directory of that name
 *	HINDER_WRITE_MS=N   the disk is slow: a write of 8 KiB and more to a
 *	                    file takes N ms
 *	HINDER_ALARM_DEN=N  an alarm of alarm(2), of a minute or more, waits for an
 *	                    Nth of the time
 *	HINDER_ALARM_NUM=N  and any for N times as long
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000

static long speed = 1, slow = 1, jump_us, write_ms, alarm_den, alarm_num;
static size_t items, bytes;
static atomic_long looks;
static pid_t whom;
static const volatile int64_t *ahead;
static int (*real_poll)(struct pollfd *, nfds_t, int);

static long number(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text ? atol(text) : otherwise;
}

__attribute__((constructor)) static void read_environment(void)
{
	const char *missing = getenv("HINDER_CALLOC");
	const char *clocks = getenv("HINDER_CLOCKS");
	int fd = clocks ? open(clocks, O_RDONLY | O_CLOEXEC) : -1;
	void *at = mmap(NULL, 16, PROT_READ, MAP_SHARED, fd, 0);

	real_poll =
		(int (*)(struct pollfd *, nfds_t, int))dlsym(RTLD_NEXT, "poll");
	whom = getpid();
	speed = number("HINDER_SPEED", 1);
	slow = number("HINDER_SLOW", 1);
	jump_us = number("HINDER_JUMP_US", 0);
	write_ms = number("HINDER_WRITE_MS", 0);
	alarm_den = number("HINDER_ALARM_DEN", 1);
	alarm_num = number("HINDER_ALARM_NUM", 1);
	if (missing)
		sscanf(missing, "%zux%zu", &items, &bytes);
	ahead = at == MAP_FAILED ? NULL : at;
	if (fd >= 0)
		close(fd);
}

static void hasten(struct timespec *t)
{
	int64_t ns =
		(t->tv_sec * (int64_t)SECOND_NS + t->tv_nsec) * speed / slow;

	if (jump_us && getpid() == whom)
		ns += jump_us * 1000 * atomic_fetch_add(&looks, 1);
	t->tv_sec = ns / SECOND_NS;
	t->tv_nsec = ns % SECOND_NS;
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	long r = syscall(SYS_clock_gettime, clock, t);

	if (r == 0 && clock == CLOCK_MONOTONIC)
		hasten(t);
	if (r == 0 && ahead && clock == CLOCK_REALTIME)
		t->tv_sec += ahead[0];
	if (r == 0 && ahead && clock == CLOCK_BOOTTIME)
		t->tv_sec += ahead[1];
	return (int)r;
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

int poll(struct pollfd *p, nfds_t n, int ms)
{
	return real_poll(
		p, n, ms > 0 ? (int)((ms * slow + speed - 1) / speed) : ms);
}

#ifndef __GLIBC__
typedef int __itimer_which_t;
#endif

int setitimer(__itimer_which_t which, const struct itimerval *restrict t,
	struct itimerval *restrict before)
{
	struct itimerval soon = *t;
	int64_t us = (t->it_value.tv_sec * INT64_C(1000000) +
			     t->it_value.tv_usec + speed - 1) /
		     speed;

	if (which == ITIMER_REAL)
		soon.it_value = (struct timeval){us / 1000000, us % 1000000};
	return (int)syscall(SYS_setitimer, which, &soon, before);
}

unsigned alarm(unsigned seconds)
{
	/* One of seconds would strike what only waits for a processor. */
	int64_t us = seconds * INT64_C(1000000) * alarm_num /
		     (seconds >= 60 ? alarm_den : 1);
	const struct itimerval soon = {
		.it_value = {us / 1000000, us % 1000000}};

	return (unsigned)syscall(SYS_setitimer, ITIMER_REAL, &soon, NULL);
}

ssize_t write(int fd, const void *buf, size_t n)
{
	const struct timespec slow = {
		write_ms / 1000, write_ms % 1000 * 1000000};
	struct stat st;

	if (write_ms && n >= 8192 && fstat(fd, &st) == 0 &&
		S_ISREG(st.st_mode) && st.st_nlink)
		nanosleep(&slow, NULL);
	return syscall(SYS_write, fd, buf, n);
}

/* poll() is this function where the compiler knows the size of the array. */
int __poll_chk(struct pollfd *p, nfds_t n, int ms, size_t size);
int __poll_chk(struct pollfd *p, nfds_t n, int ms, size_t size)
{
	return n * sizeof(*p) <= size ? poll(p, n, ms) : (abort(), -1);
}

void *calloc(size_t n, size_t size)
{
	void *p;

	if (items && n == items && size == bytes) {
		errno = ENOMEM;
		return NULL;
	}
	if (size && n > (size_t)-1 / size) {
		errno = ENOMEM;
		return NULL;
	}
	p = malloc(n * size);
	if (p)
		__builtin_memset(p, 0, n * size);
	return p;
}

pid_t fork(void)
{
	const char *file = getenv("HINDER_FORK");

	if (file && access(file, F_OK) == 0) {
		errno = EAGAIN;
		return -1;
	}
	return ((pid_t(*)(void))dlsym(RTLD_NEXT, "fork"))();
}

int mkdirat(int dir, const char *path, mode_t mode)
{
	const char *name = getenv("HINDER_MKDIRAT");

	if (name && !__builtin_strcmp(path, name)) {
		errno = ENOSPC;
		return -1;
	}
	return (int)syscall(SYS_mkdirat, dir, path, mode);
}
