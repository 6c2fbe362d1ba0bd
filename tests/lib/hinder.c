/* SPDX-License-Identifier: MIT */
/*
 * hinder.c - a host that runs a process slowly, or has no memory for it
 *
 * LD_PRELOAD. The environment says how it hinders:
 *
 *	HINDER_JUMP_MS=N    the monotonic clock of the process, not of its
 *	                    children, goes on by N ms at each look, as if others
 *	                    ran before each
 *	HINDER_CALLOC=NxM   there is no memory for N items of M bytes
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long jump_ms;
static size_t items, bytes;
static atomic_long looks;
static pid_t whom;

__attribute__((constructor)) static void read_environment(void)
{
	const char *jump = getenv("HINDER_JUMP_MS");
	const char *missing = getenv("HINDER_CALLOC");

	whom = getpid();
	jump_ms = jump ? atol(jump) : 0;
	if (missing)
		sscanf(missing, "%zux%zu", &items, &bytes);
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	long r = syscall(SYS_clock_gettime, clock, t);

	if (r == 0 && clock == CLOCK_MONOTONIC && getpid() == whom) {
		long ms = jump_ms * atomic_fetch_add(&looks, 1);

		t->tv_sec += ms / 1000;
		t->tv_nsec += ms % 1000 * 1000000;
		if (t->tv_nsec >= 1000000000) {
			t->tv_sec++;
			t->tv_nsec -= 1000000000;
		}
	}
	return (int)r;
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
