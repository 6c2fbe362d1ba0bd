/* SPDX-License-Identifier: MIT */
/*
 * procs.c - what the jail's processes are doing, read from /proc
 *
 * Runs in:   warden
 * Holds:     CAP_SYS_PTRACE over the jail, as the owner of the user namespace
 *            above it: /proc shows memory maps and system calls only to such
 * Trusts:    the kernel's numbers; names in there are the guest's and may
 *            hold any byte
 * Leaves:    nothing
 */
#include "procs_walk.h"

#include "jail/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- files of one process ---- */

/* "Key:   123 kB" in bytes, 0 if it is not there. */
static int64_t kb_after(const char *text, const char *key)
{
	const char *p = strstr(text, key);

	return p ? strtoll(p + strlen(key), NULL, 10) * 1024 : 0;
}

/* Swapped pages count: they are only elsewhere. */
static int memory_read(int dirfd, int64_t *private_bytes, int64_t *pss_bytes)
{
	char buf[2048];

	errno = ESRCH; /* as an empty file, which sets none, means */
	if (procs_read(dirfd, "smaps_rollup", buf, sizeof(buf)) <= 0)
		return -1;
	if (pss_bytes)
		*pss_bytes =
			kb_after(buf, "\nPss:") + kb_after(buf, "\nSwapPss:");
	if (private_bytes)
		*private_bytes = kb_after(buf, "\nPrivate_Clean:") +
				 kb_after(buf, "\nPrivate_Dirty:") +
				 kb_after(buf, "\nSwapPss:");
	return 0;
}

/* Open the directory of one process. */
static int proc_open(const struct procs_source *s, pid_t pid)
{
	char name[16];
	struct procs_walk w;
	int fd = -1;

	if (!s->foreign) {
		snprintf(name, sizeof(name), "%d", (int)pid);
		return openat(
			s->proc_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (procs_walk_begin(&w, s) < 0)
		return -1;
	while (fd < 0 && procs_walk_next(&w) > 0)
		if (w.pid == pid)
			fd = fd_take(&w.fd);
	procs_walk_end(&w);
	return fd;
}

/* ---- sums ---- */

static int is_alive(char state)
{
	return state != 'Z' && state != 'X';
}

static int is_awake(char state)
{
	return is_alive(state) && state != 'T' && state != 't';
}

static int is_ready(char state)
{
	return state == 'R' || state == 'D';
}

/* The directory of a thread of the process that is as asked, or -1. */
static int thread_find(int proc, int (*is)(char state))
{
	auto_close int dir =
		openat(proc, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct procs_source tasks = {.proc_fd = dir};
	struct procstat st;
	struct procs_walk w;
	int fd = -1;

	if (dir < 0 || procs_walk_begin(&w, &tasks) < 0)
		return -1;
	while (fd < 0 && procs_walk_next(&w) > 0)
		if (procstat_read(w.fd, "stat", &st) == 0 && is(st.state))
			fd = fd_take(&w.fd);
	procs_walk_end(&w);
	return fd;
}

static int any_thread(int fd, const struct procstat *st, int (*is)(char state))
{
	auto_close int thread = -1;

	if (is(st->state) || st->threads < 2)
		return is(st->state);
	thread = thread_find(fd, is);
	return thread >= 0;
}

/* Tables of more than this part of what they map are not looked through. */
#define TABLES_DEN 8

/*
 * What a process, or a thread of it, takes of memory, its tables among it:
 * they need no page that they map. Where they are large for what is resident,
 * to look through them takes long and tells little; and the maps of a program
 * that nobody may read are closed even to us: then nothing is taken to be
 * shared.
 */
static int64_t memory_whole(int fd)
{
	int64_t tables, whole, pss;
	char buf[4096];

	if (procs_read(fd, "status", buf, sizeof(buf)) <= 0)
		return 0;
	tables = kb_after(buf, "\nVmPTE:");
	whole = kb_after(buf, "\nVmRSS:") + kb_after(buf, "\nVmSwap:");
	if (tables > whole / TABLES_DEN)
		return tables + whole;
	if (memory_read(fd, NULL, &pss) == 0)
		return tables + pss;
	return errno == ENOENT || errno == ESRCH ? 0 : tables + whole;
}

static void count_process(
	int fd, unsigned flags, struct procs *out, int64_t *ticks)
{
	auto_close int thread = -1;
	struct procstat st;

	if (procstat_read(fd, "stat", &st) < 0)
		return;
	*ticks += st.cpu_ticks + st.dead_ticks;
	if (!is_alive(st.state) && st.threads < 2) {
		out->zombies++;
		return;
	}
	out->n++;
	out->threads += st.threads;
	if (flags & PROCS_RUNNING)
		out->running += any_thread(fd, &st, is_awake);
	if (flags & PROCS_READY)
		out->ready += any_thread(fd, &st, is_ready);
	if (!(flags & PROCS_MEMORY))
		return;
	/* Its first thread has ended, and shows none: another does. */
	if (!is_alive(st.state))
		thread = thread_find(fd, is_alive);
	out->bytes += memory_whole(thread < 0 ? fd : thread);
}

int procs_sample(const struct procs_source *s, unsigned flags,
	struct procs *out, struct err *e)
{
	struct procstat init;
	struct procs_walk w;
	int64_t ticks = 0;
	char path[32];
	int r;

	memset(out, 0, sizeof(*out));
	if (procs_walk_begin(&w, s) < 0)
		return err_errno(e, "processes: read /proc");
	while ((r = procs_walk_next(&w)) > 0)
		count_process(w.fd, flags, out, &ticks);
	procs_walk_end(&w);
	if (r < 0)
		return err_errno(e, "processes: read /proc");
	/* Orphans that init has reaped. */
	snprintf(path, sizeof(path), "%d/stat", (int)s->self);
	if (procstat_read(s->proc_fd, path, &init) == 0)
		ticks += init.dead_ticks;
	out->cpu_ms = ticks * 1000 / sysconf(_SC_CLK_TCK);
	return 0;
}

int procs_memory(const struct procs_source *s, pid_t pid,
	int64_t *private_bytes, int64_t *pss_bytes)
{
	auto_close int fd = proc_open(s, pid);

	return fd < 0 ? -1 : memory_read(fd, private_bytes, pss_bytes);
}

int procs_stat(const struct procs_source *s, pid_t pid, struct procstat *st)
{
	auto_close int fd = proc_open(s, pid);

	return fd < 0 ? -1 : procstat_read(fd, "stat", st);
}
