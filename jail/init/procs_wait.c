/* SPDX-License-Identifier: MIT */
/*
 * procs_wait.c - whether the jail waits for the person
 *
 * Runs in:   warden, at random times while a cell runs
 * Holds:     CAP_SYS_PTRACE over the jail: /proc/PID/syscall and mem need it
 * Trusts:    the kernel's word on where a thread sleeps; the memory it reads
 *            is the guest's, and is only compared
 * Leaves:    nothing
 *
 * A guest can look like this while it is up to something else only for as
 * long as all of it really sleeps, and then it is up to nothing.
 */
#include "procs_walk.h"

#include "jail/base/io.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Most descriptors of one poll() looked at; a prompt waits for one. */
#define POLL_MAX 16

/* The tty that means "mine", whichever that is. */
#define DEV_TTY makedev(5, 0)

/* A thread, and the terminal in question. */
struct waiter {
	int fd; /* its directory */
	struct procstat st;
	dev_t tty;
};

/* A system call a thread is inside, with its arguments. */
struct waiter_call {
	long nr;
	uint64_t arg[6];
};

static int fd_is_tty(const struct waiter *w, int fd)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "fd/%d", fd);
	if (fd < 0 || fstatat(w->fd, path, &st, 0) < 0 || !S_ISCHR(st.st_mode))
		return 0;
	return st.st_rdev == w->tty ||
	       (st.st_rdev == DEV_TTY && w->st.tty == w->tty);
}

static int memory_read(const struct waiter *w, uint64_t at, void *buf, size_t n)
{
	auto_close int fd = openat(w->fd, "mem", O_RDONLY | O_CLOEXEC);

	return fd >= 0 && pread(fd, buf, n, (off_t)at) == (ssize_t)n ? 0 : -1;
}

/* The bytes of a descriptor set that select() looks at. 0 if all is well. */
static int set_read(
	const struct waiter *w, uint64_t at, uint64_t nfds, fd_set *set)
{
	FD_ZERO(set);
	/* The kernel reads whole words; a set is never shorter. */
	return at ? memory_read(w, at, set, (nfds + 63) / 64 * 8) : 0;
}

/* select(): reads from the tty and waits for nothing else, for ever. */
static int selects_tty(const struct waiter *w, const struct waiter_call *c)
{
	uint64_t nfds = c->arg[0] & 0xffffffff;
	fd_set set[3];
	int found = 0;

	if (c->arg[4] || nfds > FD_SETSIZE)
		return 0;
	for (int i = 0; i < 3; i++)
		if (set_read(w, c->arg[1 + i], nfds, &set[i]) < 0)
			return 0;
	for (int fd = 0; fd < (int)nfds; fd++) {
		if (FD_ISSET(fd, &set[1]) || FD_ISSET(fd, &set[2]))
			return 0;
		if (!FD_ISSET(fd, &set[0]))
			continue;
		if (!fd_is_tty(w, fd))
			return 0;
		found = 1;
	}
	return found;
}

/* poll(), likewise. */
static int polls_tty(const struct waiter *w, const struct waiter_call *c)
{
	struct pollfd p[POLL_MAX];
	uint64_t n = c->arg[1];
	int found = 0;

	if (n == 0 || n > POLL_MAX ||
		memory_read(w, c->arg[0], p, n * sizeof(p[0])) < 0)
		return 0;
	for (uint64_t i = 0; i < n; i++) {
		if (p[i].fd < 0)
			continue;
		if (!fd_is_tty(w, p[i].fd) || !(p[i].events & POLLIN))
			return 0;
		found = 1;
	}
	return found;
}

static int call_waits(const struct waiter *w, const struct waiter_call *c)
{
	switch (c->nr) {
	case SYS_read:
	case SYS_readv:
		return fd_is_tty(w, (int)c->arg[0]);
#ifdef SYS_select
	case SYS_select:
#endif
	case SYS_pselect6:
		return selects_tty(w, c);
#ifdef SYS_poll
	case SYS_poll:
		return (int)c->arg[2] < 0 && polls_tty(w, c);
#endif
	case SYS_ppoll:
		return c->arg[2] == 0 && polls_tty(w, c);
	}
	return 0;
}

/* 1 this thread waits for the tty, 0 it does not, -1 the kernel won't say. */
static int waiter_waits(const struct waiter *w)
{
	char buf[256];
	struct waiter_call c;
	uint64_t *a = c.arg;

	if (procs_read(w->fd, "syscall", buf, sizeof(buf)) <= 0)
		return -1;
	if (sscanf(buf,
		    "%ld %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
		    " %" SCNx64 " %" SCNx64,
		    &c.nr, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5]) != 7)
		return 0; /* running, or asleep outside a call */
	return call_waits(w, &c);
}

/* What a look at a process found. */
struct look {
	int awake;   /* something runs */
	int waits;   /* something waits for the tty */
	int unclear; /* something in the foreground would not say */
};

static int state_sleeps(char state)
{
	return strchr("STtZXI", state) != NULL;
}

/* Look at the threads of a process. The group that has the terminal is the
 * only one whose reads are answered by the person. */
static void look_at(int proc, dev_t tty, struct look *l)
{
	struct procs_walk w;
	struct procs_source tasks = {.proc_fd = -1};
	struct waiter t = {.tty = tty};
	int more = 0;
	auto_close int dir =
		openat(proc, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	tasks.proc_fd = dir;
	if (dir < 0 || procs_walk_begin(&w, &tasks) < 0)
		return; /* gone */
	while (!l->awake && (more = procs_walk_next(&w)) > 0) {
		int r;

		if (procstat_read(w.fd, "stat", &t.st) < 0)
			continue;
		if (!state_sleeps(t.st.state))
			l->awake = 1;
		if (t.st.state != 'S' || t.st.tty != tty ||
			t.st.pgrp != t.st.tpgid || l->waits)
			continue;
		t.fd = w.fd;
		r = waiter_waits(&t);
		l->waits |= r > 0;
		l->unclear |= r < 0;
	}
	l->awake |= more < 0;
	procs_walk_end(&w);
}

static int is_skipped(pid_t pid, const pid_t *skip, int nskip)
{
	for (int i = 0; i < nskip; i++)
		if (skip[i] == pid)
			return 1;
	return 0;
}

int procs_waits_for_tty(
	const struct procs_source *s, dev_t tty, const pid_t *skip, int nskip)
{
	struct look l = {0};
	struct procs_walk w;
	int more = 0;

	if (procs_walk_begin(&w, s) < 0)
		return -1;
	while (!l.awake && (more = procs_walk_next(&w)) > 0)
		if (!is_skipped(w.pid, skip, nskip))
			look_at(w.fd, tty, &l);
	l.awake |= more < 0;
	procs_walk_end(&w);
	if (l.awake)
		return 0;
	if (l.waits)
		return 1;
	return l.unclear ? -1 : 0;
}
