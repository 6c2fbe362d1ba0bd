/* SPDX-License-Identifier: MIT */
/*
 * asked.c - what guests must ask for: locks, anonymous shared memory
 *
 * Runs in:   init
 * Trusts:    the kernel's lists in /proc
 *
 * A filter (seccomp_hear()) has each call wait for init's answer.
 *
 * The kernel takes any number of record locks (fcntl(F_SETLK)) and counts their
 * memory for nobody, no cgroup either: gigabytes in seconds. Databases need
 * them. So init lets a call through while the guests cannot hold too many. A
 * call makes at most two locks more: it may cut one in three. When that sum is
 * too high, init counts the locks that exist. What is counted cannot be hidden.
 * A lock goes when its process closes any descriptor of the file, threads share
 * one table of descriptors (the filter sees to that), and every new lock has to
 * ask.
 *
 * A lock of a whole file (flock()) needs no count: there is one for each open
 * file. Of either kind init grants locks on files alone. Device nodes may be
 * the host's, and all event descriptors of a host share one inode: a lock there
 * would reach the host and every neighbour. The kernel looks at the descriptor
 * again after the answer. A process with one thread waits for the answer
 * meanwhile; one with more can put another file in its place. Init does not
 * take the lock for it: to get at a guest's descriptor, and to close it, can
 * mean to wait for the guest.
 *
 * Anonymous shared memory can hold pages that no process maps. Where no cgroup
 * counts them, only the call that makes it tells its size: init adds the sizes
 * up for the warden, and refuses what alone is more than the limit.
 */
#include "asked.h"

#include "apart.h"
#include "jail/base/io.h"
#include "jail/base/path.h"
#include "jail/base/procstat.h"
#include "jail/base/procstatus.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A lock takes about 200 bytes. */
#define LOCKS_MAX 32768
/* Without a /proc nothing can be counted: the calls of a jail's whole life. */
#define LOCKS_BLIND 262144
#define LOCKS_OF_A_CALL 2
/* The CPU, and the time, that one count may take: what takes longer is too
 * many. Guests that arrange for that get a tenth of init's time. */
#define COUNT_MS 50
#define COUNT_WALL_MS 1500
#define COUNT_SHARE 10
/* Larger than any version of the kernel's structs. */
#define ROOM 512

struct count {
	int proc_fd;
	int pid, tid; /* the table that is read */
	int fds;      /* descriptors seen in it */
	int locks;
	int64_t end_ms; /* in CPU time of this process */
};

/* ---- counting: each of these returns 1 when there are too many ---- */

/* A process that is gone holds nothing. One that hides is as good as full. */
static int unreadable(void)
{
	return errno != ENOENT && errno != ESRCH;
}

/* The name of what a descriptor leads to, cut where it is long. To look at the
 * file itself could mean to wait for a lock that a guest holds. */
static int link_read(int proc_fd, const char *path, char *buf, size_t size)
{
	ssize_t n = readlinkat(proc_fd, path, buf, size - 1);

	buf[n < 0 ? 0 : n] = '\0';
	return n < 0 ? -1 : 0;
}

static int count_fd(int number, void *arg)
{
	struct count *c = arg;
	char path[64], line[256];
	FILE *f;
	int fd;

	c->fds++;
	if (io_cpu_ns() / 1000000 > c->end_ms)
		return 1;
	snprintf(
		path, sizeof(path), "%d/task/%d/fd/%d", c->pid, c->tid, number);
	if (link_read(c->proc_fd, path, line, sizeof(line)) < 0)
		return unreadable();
	/* To show an epoll the kernel waits for a lock that a guest can hold.
	 * All of these share one inode, and a list of locks on one inode gets
	 * too slow to grow large. */
	if (!strncmp(line, "anon_inode:", 11))
		return 0;
	snprintf(path, sizeof(path), "%d/task/%d/fdinfo/%d", c->pid, c->tid,
		number);
	fd = openat(c->proc_fd, path, O_RDONLY | O_CLOEXEC);
	f = fd < 0 ? NULL : fdopen(fd, "r");
	if (!f)
		return unreadable();
	while (fgets(line, sizeof(line), f))
		c->locks += !strncmp(line, "lock:", 5);
	fclose(f);
	return c->locks >= LOCKS_MAX;
}

/* One thread stands for all, but for those that have ended: they no longer have
 * the table, and nobody may read what they have. */
static int count_thread(int tid, void *arg)
{
	struct count *c = arg;
	struct procstatus st;
	char path[64];
	int r;

	if (c->fds)
		return 0;
	snprintf(path, sizeof(path), "%d/task/%d/status", c->pid, tid);
	if (procstatus_read(c->proc_fd, path, &st) < 0)
		return unreadable();
	if (!st.has_memory)
		return 0;
	c->tid = tid;
	snprintf(path, sizeof(path), "%d/task/%d/fd", c->pid, tid);
	r = procstat_each(c->proc_fd, path, 0, count_fd, c);
	return r < 0 ? unreadable() : r;
}

static int count_process(int pid, void *arg)
{
	struct count *c = arg;
	char path[32];
	int r;

	c->pid = pid;
	c->fds = 0;
	snprintf(path, sizeof(path), "%d/task", pid);
	r = procstat_each(c->proc_fd, path, 1, count_thread, c);
	return r < 0 ? unreadable() : r;
}

static int64_t count_all(void *arg)
{
	struct count *c = arg;

	c->end_ms = io_cpu_ns() / 1000000 + COUNT_MS;
	return procstat_each(c->proc_fd, ".", 2, count_process, c) ? LOCKS_MAX
								   : c->locks;
}

/* To follow a link in /proc may mean to wait for an exec of its process. */
static int count(int proc_fd)
{
	struct count c = {.proc_fd = proc_fd};
	int64_t n = apart_do(count_all, &c, COUNT_WALL_MS);

	return n < 0 ? LOCKS_MAX : (int)n;
}

/* ---- answering ---- */

static int has_room(const struct asked *a)
{
	int max = a->proc_fd < 0 ? LOCKS_BLIND : LOCKS_MAX;

	return a->locks + LOCKS_OF_A_CALL <= max;
}

static int is_file(
	const struct asked *a, const struct seccomp_data *call, pid_t tid)
{
	char path[64], name[64];

	if (a->proc_fd < 0)
		return 1;
	snprintf(path, sizeof(path), "%d/fd/%u", (int)tid,
		(unsigned)call->args[0]);
	return link_read(a->proc_fd, path, name, sizeof(name)) == 0 &&
	       name[0] == '/' &&
	       (!path_is_beneath(name, "/dev") ||
		       path_is_beneath(name, "/dev/shm"));
}

static int grant_lock(struct asked *a)
{
	int64_t now = now_ms();

	if (!has_room(a) && a->proc_fd >= 0 && now >= a->due_ms) {
		a->locks = count(a->proc_fd);
		/* Else thousands of calls come before the next count. */
		if (a->locks > LOCKS_MAX / 2)
			a->due_ms = now_ms() + (now_ms() - now) * COUNT_SHARE;
	}
	if (!has_room(a))
		return -ENOLCK;
	a->locks += LOCKS_OF_A_CALL;
	return 0;
}

/* A guest that is interrupted asks again, and then it counts twice. */
static int grant_memory(struct asked *a, uint64_t length)
{
	int64_t page = sysconf(_SC_PAGESIZE), bytes;

	if (!a->memory || length > (uint64_t)a->memory_max)
		return -ENOMEM;
	bytes = ((int64_t)length + page - 1) / page * page;
	if (bytes > a->memory->largest)
		a->memory->largest = bytes;
	a->memory->bytes += bytes;
	return 0;
}

/* 0, or the errno that the call fails with, negative. With ENOSYS programs go
 * on without a lock, or lock in another way. */
static int grant(struct asked *a, const struct seccomp_data *call, pid_t tid)
{
	switch (call->nr) {
	case SYS_mmap:
		return grant_memory(a, call->args[1]);
	case SYS_flock:
		return is_file(a, call, tid) ? 0 : -ENOSYS;
	}
	return is_file(a, call, tid) ? grant_lock(a) : -EINVAL;
}

void asked_serve(struct asked *a)
{
	union {
		struct seccomp_notif asked;
		char room[ROOM];
	} in = {0};
	union {
		struct seccomp_notif_resp said;
		char room[ROOM];
	} out = {0};

	/* The call may have been interrupted meanwhile. */
	if (ioctl(a->fd, SECCOMP_IOCTL_NOTIF_RECV, &in) < 0)
		return;
	out.said.id = in.asked.id;
	out.said.error = grant(a, &in.asked.data, (pid_t)in.asked.pid);
	if (!out.said.error)
		out.said.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	ioctl(a->fd, SECCOMP_IOCTL_NOTIF_SEND, &out);
}
