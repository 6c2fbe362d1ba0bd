/* SPDX-License-Identifier: MIT */
/*
 * locker.c - locks of whole files (flock()), taken for guests with threads
 *
 * Runs in:   a thread of init
 * Trusts:    the kernel's names in /proc
 * Leaves:    locks of guests, which go with their open files
 *
 * While a thread waits for init's answer, another thread can put another file
 * in the place of the one that init has looked at. So the call of a process
 * with threads never goes on: init fetches the open file itself, looks at what
 * it has fetched, and locks that. A lock belongs to the open file and not to a
 * process.
 *
 * To fetch an open file, and to close it, can mean to wait for a guest. A
 * thread does it, so that init waits for nobody. A child would not do: where
 * Yama restricts ptrace only an ancestor may fetch, and init is one.
 *
 * The thread uses no memory of the heap and no stdio: init forks.
 */
#include "jail/init/init.h"

#include "jail/base/io.h"
#include "jail/base/path.h"
#include "jail/base/procstatus.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Guests that wait for a lock that somebody else has. */
#define WAITING_MAX 64
#define RETRY_MS 20
#define STACK_BYTES (64 * 1024)
/* A pidfd of a thread (Linux 6.9). Older kernels have those of processes. */
#define OF_A_THREAD O_EXCL
/* Larger than any version of the kernel's struct. */
#define ROOM 512

int locker_is_file(int proc_fd, pid_t tid, int number)
{
	char path[64], name[64];
	ssize_t n;

	/* To look at the file itself could mean to wait for a lock that a guest
	 * holds. */
	snprintf(path, sizeof(path), "%d/fd/%d", (int)tid, number);
	n = readlinkat(proc_fd, path, name, sizeof(name) - 1);
	name[n < 0 ? 0 : n] = '\0';
	return name[0] == '/' && (!path_is_beneath(name, "/dev") ||
					 path_is_beneath(name, "/dev/shm"));
}

/* ---- the thread ---- */

struct locker_waiting {
	struct locker_want want;
	int fd; /* the guest's open file */
};

struct thread {
	struct locker l;
	int wants_fd;
	struct locker_waiting list[WAITING_MAX];
	int n;
};

/* 0, or -1: the guest does not wait any more. */
static int answer_guest(struct thread *t, uint64_t id, int error)
{
	union {
		struct seccomp_notif_resp said;
		char room[ROOM];
	} out = {.said = {.id = id, .error = -error}};

	return ioctl(t->l.heard_fd, SECCOMP_IOCTL_NOTIF_SEND, &out);
}

static int still_waits(struct thread *t, uint64_t id)
{
	return ioctl(t->l.heard_fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0 ||
	       errno != ENOENT;
}

/* The open file behind a guest's descriptor, or -1. */
static int fetch_file(struct thread *t, const struct locker_want *want)
{
	auto_close int pidfd =
		(int)syscall(SYS_pidfd_open, want->tid, OF_A_THREAD);
	auto_close int fd = -1;
	struct procstatus st;
	char path[32];

	snprintf(path, sizeof(path), "%d/status", (int)want->tid);
	if (pidfd < 0 && procstatus_read(t->l.proc_fd, path, &st) == 0)
		pidfd = (int)syscall(SYS_pidfd_open, st.leader, 0);
	if (pidfd >= 0)
		fd = (int)syscall(SYS_pidfd_getfd, pidfd, want->number, 0);
	/* The number may belong to another thread by now. */
	if (fd < 0 || !still_waits(t, want->id) ||
		!locker_is_file(t->l.proc_fd, getpid(), fd))
		return -1;
	return fd_take(&fd);
}

/* True if there is nothing left to wait for. */
static int try_lock(struct thread *t, struct locker_waiting *w)
{
	int r = flock(w->fd, w->want.how | LOCK_NB);

	if (r < 0 && errno == EWOULDBLOCK && !(w->want.how & LOCK_NB) &&
		still_waits(t, w->want.id))
		return 0;
	/* A guest that was interrupted meanwhile has no lock. */
	if (answer_guest(t, w->want.id, r < 0 ? errno : 0) < 0 && r == 0)
		flock(w->fd, LOCK_UN);
	close(w->fd);
	return 1;
}

static void take_want(struct thread *t, const struct locker_want *want)
{
	struct locker_waiting w = {*want, fetch_file(t, want)};

	if (w.fd < 0) {
		answer_guest(t, want->id, ENOSYS);
	} else if (!try_lock(t, &w)) {
		if (t->n < WAITING_MAX) {
			t->list[t->n++] = w;
		} else {
			answer_guest(t, want->id, ENOLCK);
			close(w.fd);
		}
	}
}

static void *run_thread(void *arg)
{
	struct thread *t = arg;
	struct pollfd p = {.fd = t->wants_fd, .events = POLLIN};
	struct locker_want want;

	for (;;) {
		poll(&p, 1, t->n ? RETRY_MS : -1);
		if (p.revents &&
			read(p.fd, &want, sizeof(want)) == sizeof(want))
			take_want(t, &want);
		for (int i = t->n - 1; i >= 0; i--)
			if (try_lock(t, &t->list[i]))
				t->list[i] = t->list[--t->n];
	}
	return NULL;
}

/* ---- init ---- */

static int start_thread(struct thread *t)
{
	size_t bytes = STACK_BYTES;
	pthread_attr_t attr;
	pthread_t id;
	int r = pthread_attr_init(&attr);

	if (bytes < (size_t)PTHREAD_STACK_MIN)
		bytes = (size_t)PTHREAD_STACK_MIN;
	if (r == 0)
		r = pthread_attr_setstacksize(&attr, bytes);
	if (r == 0)
		r = pthread_create(&id, &attr, run_thread, t);
	return r;
}

static int start_locker(struct locker *l)
{
	struct thread *t = calloc(1, sizeof(*t));
	int ends[2], r;

	if (!t)
		return -1;
	if (pipe2(ends, O_CLOEXEC) < 0) {
		free(t);
		return -1;
	}
	*t = (struct thread){.l = *l, .wants_fd = ends[0]};
	r = fcntl(ends[1], F_SETFL, O_NONBLOCK) < 0 ? errno : start_thread(t);
	if (r == 0) {
		l->wants_fd = ends[1];
		return 0;
	}
	close(ends[0]);
	close(ends[1]);
	free(t);
	errno = r;
	return -1;
}

int locker_asks(pid_t tid)
{
	return syscall(SYS_tgkill, getpid(), tid, 0) == 0;
}

int locker_take(struct locker *l, const struct locker_want *want)
{
	if (!l->wants_fd && start_locker(l) < 0)
		return -1;
	return write(l->wants_fd, want, sizeof(*want)) == sizeof(*want) ? 0
									: -1;
}
