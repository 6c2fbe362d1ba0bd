/* SPDX-License-Identifier: MIT */
/*
 * copycost.c - what a page costs that a checkpoint makes the guest copy
 *
 * Runs in:   warden
 * Trusts:    the kernel's clock of its own CPU time, which runs no faster on a
 *            busy host
 * Leaves:    nothing: the child that shares the pages is killed and reaped
 *
 * After a fork the first write to a page copies it. That is done here as the
 * guest does it, with pages of the warden's own.
 */
#include "jail/warden/look/look.h"

#include "jail/base/io.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Pages that are copied for it. */
#define PAGES 256
/* Where it cannot be measured; and the least that is believed. */
#define SLOW_NS 6000
#define LEAST_NS 100

static void write_to(volatile char *pages, long size)
{
	for (long i = 0; i < PAGES; i++)
		pages[i * size]++;
}

/* 0 where it cannot be measured. */
static int64_t measure_page(volatile char *pages, long size)
{
	pid_t warden = getpid(), pid;
	int64_t ns;

	write_to(pages, size);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		while (getppid() == warden)
			pause();
		_exit(0);
	}
	if (pid < 0)
		return 0;
	ns = io_cpu_ns();
	write_to(pages, size);
	ns = io_cpu_ns() - ns;
	kill(pid, SIGKILL);
	link_reap(pid);
	return ns / PAGES;
}

int64_t copycost_page_ns(void)
{
	static int64_t ns;
	long size = sysconf(_SC_PAGESIZE);
	char *pages;

	if (ns)
		return ns;
	ns = SLOW_NS;
	pages = mmap(NULL, (size_t)(PAGES * size), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		return ns;
	/* A large page would be copied at once. */
	madvise(pages, (size_t)(PAGES * size), MADV_NOHUGEPAGE);
	ns = measure_page(pages, size);
	munmap(pages, (size_t)(PAGES * size));
	if (ns < LEAST_NS)
		ns = SLOW_NS;
	return ns;
}
