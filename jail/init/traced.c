/* SPDX-License-Identifier: MIT */
/*
 * traced.c - another process makes system calls for us
 *
 * Runs in:   init
 * Holds:     the process as its tracer
 * Trusts:    the kernel; of the process, that it runs what is written into it
 * Leaves:    the process as it was, but for what the calls have done, once the
 *            caller has put back text and registers
 */
#include "jail/init/init.h"

#include "jail/base/io.h"
#include "regs.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int traced_open(struct traced *t, int proc_fd)
{
	char path[32];

	snprintf(path, sizeof(path), "%d/mem", (int)t->pid);
	t->mem = openat(proc_fd, path, O_RDWR | O_CLOEXEC);
	return t->mem < 0 ? -1 : 0;
}

int traced_keep_text(struct traced *t)
{
	errno = 0;
	t->text = ptrace(PTRACE_PEEKTEXT, t->pid, (void *)t->entry, NULL);
	return errno ? -1 : 0;
}

int traced_put_text(const struct traced *t, long text, long bits)
{
	long word = (t->text & ~bits) | (text & bits);

	return ptrace(PTRACE_POKETEXT, t->pid, (void *)t->entry, (void *)word) <
			       0
		       ? -1
		       : 0;
}

/* True if the process goes on after this stop as if there were none: the filter
 * asks (yes); the terminal has got its size before a person was there. */
static int stop_is_ignored(int status)
{
	return status >> 8 == (SIGTRAP | PTRACE_EVENT_SECCOMP << 8) ||
	       (WIFSTOPPED(status) && WSTOPSIG(status) == SIGWINCH);
}

int traced_wait(const struct traced *t, int *status)
{
	const int64_t end = now_ms() + t->patience_ms;
	pid_t pid;

	while ((pid = waitpid(t->pid, status,
			__WALL | (t->patience_ms ? WNOHANG : 0))) == 0 &&
		now_ms() < end)
		sched_yield();
	return pid == t->pid ? 0 : -1;
}

int traced_run(const struct traced *t)
{
	int status;

	do {
		if (ptrace(PTRACE_CONT, t->pid, NULL, NULL) < 0 ||
			traced_wait(t, &status) < 0)
			return -1;
	} while (stop_is_ignored(status));
	return WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP ? 0 : -1;
}

long traced_call(const struct traced *t, const struct regs *at, long nr,
	unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	struct regs g = *at;

	regs_call(&g, nr, (const unsigned long[]){a, b, c, d});
	regs_go(&g, t->entry, regs_sp(at));
	if (regs_set(t->pid, &g) < 0 || traced_run(t) < 0 ||
		regs_get(t->pid, &g) < 0)
		return -ESRCH;
	return regs_result(&g);
}

int traced_read(const struct traced *t, uintptr_t at, void *buf, size_t n)
{
	return pread(t->mem, buf, n, (off_t)at) == (ssize_t)n ? 0 : -1;
}

int traced_write(
	const struct traced *t, uintptr_t at, const void *buf, size_t n)
{
	return pwrite(t->mem, buf, n, (off_t)at) == (ssize_t)n ? 0 : -1;
}

int traced_visit_maps(const struct traced *t, int proc_fd,
	int (*visit)(unsigned long from, unsigned long to, const char *may,
		void *arg),
	void *arg)
{
	char path[32], line[512], may[5];
	unsigned long from, to;
	int fd, r = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%d/maps", (int)t->pid);
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	f = fd < 0 ? NULL : fdopen(fd, "r");
	if (!f)
		return -1;
	while (r == 0 && fgets(line, sizeof(line), f))
		/* [vdso] and its like are the kernel's. */
		if (sscanf(line, "%lx-%lx %4s", &from, &to, may) == 3 &&
			!strstr(line, " [v"))
			r = visit(from, to, may, arg);
	fclose(f);
	return r;
}
