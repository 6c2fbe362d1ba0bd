/* SPDX-License-Identifier: MIT */
/*
 * copy.c - fork() without a trace
 *
 * Runs in:   the guest, whose driver loads it (guest_park.py)
 * Trusts:    nothing, and is not trusted: it can do what the guest can
 * Leaves:    a copy of this process that is a child of init, not of ours
 *
 * A child of the guest's own would be seen: by a thread that sits in wait(),
 * by SIGCHLD, by getrusage(). So the copy must be init's from the start, and
 * CLONE_PARENT makes it so; but it must be libc's fork() that copies, which
 * knows locks and handlers that a raw clone leaves as they are (BLAS hangs),
 * and that takes no flags. Between the two stands a process that is init's
 * child and shares all of this memory, as after vfork(). It forks, and ends,
 * and then init is the parent of the copy as well. This thread waits for it,
 * so its stack is in the copy as it is here: there the copy goes on.
 */
#include "pages.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#include <sys/syscall.h>
#endif

/* Python's own care for what it holds: Python.h is not needed for that. */
void PyOS_BeforeFork(void);
void PyOS_AfterFork_Parent(void);
void PyOS_AfterFork_Child(void);

#define EXPORT __attribute__((visibility("default")))

EXPORT int guest_copy(void);
EXPORT int guest_take(void);

static _Alignas(64) char stack[256 * 1024];
static jmp_buf here;

/* The kernel takes a thread that shares memory to be a new one, and no longer
 * tells it on which CPU it runs; nor, therefore, the copy. */
static void rseq_again(void)
{
#ifdef RSEQ_SIG
	if (__rseq_size)
		syscall(SYS_rseq,
			(char *)__builtin_thread_pointer() + __rseq_offset, 32,
			0, RSEQ_SIG);
#endif
}

static int between(void *pid)
{
	pid_t n = fork();

	if (n == 0)
		longjmp(here, 1);
	*(pid_t *)pid = n > 0 ? n : -errno;
	return 0;
}

/* 0 in the copy; here its pid, or minus an errno. */
int guest_copy(void)
{
	pid_t pid = -ECHILD; /* of a process that was killed in between */

	pages_note();
	PyOS_BeforeFork();
	if (setjmp(here)) {
		rseq_again();
		PyOS_AfterFork_Child();
		return 0;
	}
	if (clone(between, stack + sizeof(stack),
		    CLONE_VM | CLONE_VFORK | CLONE_PARENT | SIGCHLD, &pid) < 0)
		pid = -errno;
	PyOS_AfterFork_Parent();
	return pid;
}

/* Later, in the one that went on: see guest_pages.h. 0. */
int guest_take(void)
{
	pages_take();
	return 0;
}
