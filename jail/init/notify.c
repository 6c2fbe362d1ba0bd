/* SPDX-License-Identifier: MIT */
/*
 * notify.c - what guests must ask for: locks, anonymous shared memory
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
 * too high, init counts the locks that exist. A guest cannot hide the locks
 * that init counts. A lock goes when its process closes any descriptor of the
 * file, threads share one table of descriptors (the filter sees to that), and
 * every new lock has to ask.
 *
 * A lock of a whole file (flock()) needs no count: there is one for each open
 * file. Init grants locks of both kinds on files alone. Device nodes may be
 * the host's, and all event descriptors of a host share one inode: a lock there
 * would reach the host and every neighbour. The kernel looks at the descriptor
 * again after the answer. A process with one thread waits for the answer
 * meanwhile; one with more can put another file in its place. For such a one
 * init takes the lock of a whole file itself (locker.c). A record lock belongs
 * to the process, so init cannot take it; but the kernel lets it go when
 * any descriptor of its file is closed, and so the wrong file still is where
 * the lock was taken. There init looks before the thread may have another one.
 * A process that has a lock on what is no file is killed.
 *
 * Anonymous shared memory can hold pages that no process maps. Where no cgroup
 * counts them, only the call that makes it tells its size: init adds the sizes
 * up for the warden, and refuses what alone is more than the limit.
 */
#include "jail/init/init.h"

#include "jail/base/io.h"
#include "jail/base/procstat.h"
#include "jail/base/procstatus.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A lock takes about 200 bytes. */
#define LOCKS_MAX 32768
/* Without a /proc nothing can be counted: the calls of a jail's whole life. */
#define LOCKS_BLIND 262144
#define LOCKS_OF_A_CALL 2
#define LATER 1
/* The CPU, and the time, that one count may take: a longer count finds too many
 * locks. Guests that arrange for that get a tenth of init's time. */
#define COUNT_MS 50
#define COUNT_WALL_MS 1500
#define COUNT_SHARE 10
/* Slots that one child looks at: a bit for each fits into its answer. */
#define PART_SLOTS 62
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
static int is_hidden(void)
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

/* Of one descriptor, by its file in fdinfo; -1 with errno. */
static int count_locks(int proc_fd, const char *path)
{
	int fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC), n = 0;
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	char line[256];

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		n += !strncmp(line, "lock:", 5);
	fclose(f);
	return n;
}

static int count_fd(int number, void *arg)
{
	struct count *c = arg;
	char path[64], name[64];
	int n;

	c->fds++;
	if (io_cpu_ns() / 1000000 > c->end_ms)
		return 1;
	snprintf(
		path, sizeof(path), "%d/task/%d/fd/%d", c->pid, c->tid, number);
	if (link_read(c->proc_fd, path, name, sizeof(name)) < 0)
		return is_hidden();
	/* To show an epoll the kernel waits for a lock that a guest can hold.
	 * No process keeps more than one lock on these for each thread. */
	if (!strncmp(name, "anon_inode:", 11))
		return 0;
	snprintf(path, sizeof(path), "%d/task/%d/fdinfo/%d", c->pid, c->tid,
		number);
	n = count_locks(c->proc_fd, path);
	if (n < 0)
		return is_hidden();
	c->locks += n;
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
		return is_hidden();
	if (!st.has_memory)
		return 0;
	c->tid = tid;
	snprintf(path, sizeof(path), "%d/task/%d/fd", c->pid, tid);
	r = procstat_each(c->proc_fd, path, 0, count_fd, c);
	return r < 0 ? is_hidden() : r;
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
	return r < 0 ? is_hidden() : r;
}

static int64_t count_all(void *arg)
{
	struct count *c = arg;

	c->end_ms = io_cpu_ns() / 1000000 + COUNT_MS;
	return procstat_each(c->proc_fd, ".", 2, count_process, c) ? LOCKS_MAX
								   : c->locks;
}

/* To follow a link in /proc may mean to wait for an exec of its process. */
static int count_all_locks(int proc_fd)
{
	struct count c = {.proc_fd = proc_fd};
	int64_t n = init_helper_run(count_all, &c, COUNT_WALL_MS);

	return n < 0 ? LOCKS_MAX : (int)n;
}

/* ---- where threads have locked parts of files ---- */

struct look {
	int proc_fd;
	const struct notify_slot *slot;
	pid_t tid; /* of a thread that shows no file there */
};

/* A process that cannot be looked at, as its program cannot be read, may have
 * anything. A thread that has ended has nothing, and cannot be looked at
 * either. */
static int look_at(pid_t tid, void *arg)
{
	struct look *l = arg;
	struct procstatus st;
	char path[64], name[64];

	snprintf(path, sizeof(path), "%d/task/%d/fd/%d", l->slot->leader, tid,
		l->slot->number);
	l->tid = tid;
	if (link_read(l->proc_fd, path, name, sizeof(name)) == 0)
		return !locker_is_file(l->proc_fd, tid, l->slot->number);
	if (!is_hidden())
		return 0;
	snprintf(path, sizeof(path), "%d/task/%d/status", l->slot->leader, tid);
	return procstatus_read(l->proc_fd, path, &st) < 0 ? is_hidden()
							  : st.has_memory;
}

/* How many locks there are, where something else than a file is. */
static int64_t count_at(void *arg)
{
	struct look *l = arg;
	char path[64];

	snprintf(path, sizeof(path), "%d/task/%d/fdinfo/%d", l->slot->leader,
		l->tid, l->slot->number);
	return count_locks(l->proc_fd, path);
}

/* A process that is gone has nothing; of one that cannot be looked at nobody
 * can tell. */
static int is_no_file(struct look *l)
{
	char path[32];
	int r;

	snprintf(path, sizeof(path), "%d/task", l->slot->leader);
	r = procstat_each(l->proc_fd, path, 1, look_at, l);
	return r > 0 || (r < 0 && is_hidden());
}

/* True if there are no locks where no file is. 0 also when that cannot be told.
 */
static int judge_slot(const struct notify_slot *slot, int64_t locks)
{
	if (locks > 0)
		kill(slot->leader, SIGKILL);
	return locks == 0;
}

/* When it comes to nothing, a guest may have arranged for that. */
static int64_t look_in_helper(
	struct notify *a, int64_t (*work)(void *), void *arg)
{
	int64_t began = now_ms(), r;

	if (began < a->look_ms)
		return -1;
	r = init_helper_run(work, arg, COUNT_WALL_MS);
	if (r < 0)
		a->look_ms = now_ms() + (now_ms() - began) * COUNT_SHARE;
	return r;
}

/* True if the last lock that was granted turned out well, where the thread asks
 * again: its process is not in an exec, so init can look at it without waiting.
 */
static int slot_is_right(struct notify *a, const struct notify_slot *slot)
{
	struct look l = {a->proc_fd, slot, 0};

	return !is_no_file(&l) ||
	       judge_slot(slot, look_in_helper(a, count_at, &l));
}

static int is_alive(const struct notify *a, const struct notify_slot *slot)
{
	char path[64];

	snprintf(path, sizeof(path), "%d/task/%d", slot->leader, slot->tid);
	return faccessat(a->proc_fd, path, F_OK, 0) == 0;
}

/* Some of the slots. */
struct part {
	const struct notify *a;
	int from, n;
};

/* A bit for each slot whose thread has ended, and that turned out well. */
static int64_t look_at_part(void *arg)
{
	const struct part *p = arg;
	int64_t right = 0;

	for (int i = 0; i < p->n; i++) {
		const struct notify_slot *slot = &p->a->slots[p->from + i];
		struct look l = {p->a->proc_fd, slot, 0};

		if (!is_alive(p->a, slot) &&
			(!is_no_file(&l) || judge_slot(slot, count_at(&l))))
			right |= (int64_t)1 << i;
	}
	return right;
}

/* Forget threads that have ended: they have no call under way. The rest of
 * their process may be in an exec. */
static void slots_free(struct notify *a)
{
	struct part p = {a, a->nslots, 0};
	int64_t right = 0;

	while (right >= 0 && p.from > 0) {
		p.n = p.from < PART_SLOTS ? p.from : PART_SLOTS;
		p.from -= p.n;
		right = look_in_helper(a, look_at_part, &p);
		for (int i = p.n - 1; right > 0 && i >= 0; i--)
			if (right >> i & 1)
				a->slots[p.from + i] = a->slots[--a->nslots];
	}
}

/* The number of the thread was that of another process's before. */
static int is_reused(struct notify *a, const struct notify_slot *slot)
{
	struct part p = {a, (int)(slot - a->slots), 1};

	return look_in_helper(a, look_at_part, &p) == 1;
}

static struct notify_slot *slot_of(struct notify *a, pid_t tid)
{
	for (int i = 0; i < a->nslots; i++)
		if (a->slots[i].tid == tid)
			return &a->slots[i];
	return NULL;
}

/* Note that a thread may lock a part of what `number` leads to. It asks, so its
 * last call is done. 0, or -1 when it must not. */
static int slot_take(struct notify *a, pid_t tid, int number)
{
	struct notify_slot *slot = slot_of(a, tid);
	struct procstatus st;
	char path[32];

	snprintf(path, sizeof(path), "%d/status", (int)tid);
	if (procstatus_read(a->proc_fd, path, &st) < 0)
		return -1;
	if (slot && !(slot->leader == st.leader ? slot_is_right(a, slot)
						: is_reused(a, slot)))
		return -1;
	if (!slot && a->nslots == NOTIFY_SLOTS)
		slots_free(a);
	if (!slot && a->nslots == NOTIFY_SLOTS)
		return -1;
	if (!slot)
		slot = &a->slots[a->nslots++];
	*slot = (struct notify_slot){st.leader, tid, number};
	return 0;
}

/* ---- answering ---- */

static int has_room(const struct notify *a)
{
	int max = a->proc_fd < 0 ? LOCKS_BLIND : LOCKS_MAX;

	return a->locks + LOCKS_OF_A_CALL <= max;
}

static int is_file(const struct notify *a, const struct seccomp_notif *n)
{
	return a->proc_fd < 0 ||
	       locker_is_file(a->proc_fd, (pid_t)n->pid, (int)n->data.args[0]);
}

/* A thread that waits for its answer, and is alone, stays alone. */
static int has_company(const struct notify *a, pid_t tid)
{
	char path[32];
	struct stat st;

	if (a->proc_fd < 0)
		return 0;
	/* A directory has three links when it has one below it. */
	snprintf(path, sizeof(path), "%d/task", (int)tid);
	return fstatat(a->proc_fd, path, &st, 0) < 0 || st.st_nlink != 3;
}

static int grant_lock(struct notify *a)
{
	int64_t now = now_ms();

	if (!has_room(a) && a->proc_fd >= 0 && now >= a->due_ms) {
		a->locks = count_all_locks(a->proc_fd);
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
static int grant_memory(struct notify *a, uint64_t length)
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

/* With ENOSYS programs go on without a lock, or lock in another way. */
static int grant_whole(struct notify *a, const struct seccomp_notif *n)
{
	const struct locker_want want = {.id = n->id,
		.tid = (pid_t)n->pid,
		.number = (int)n->data.args[0],
		.how = (int)n->data.args[1]};

	if (locker_asks(want.tid))
		return 0;
	if (!is_file(a, n))
		return -ENOSYS;
	if (!has_company(a, want.tid))
		return 0;
	return locker_take(&a->locker, &want) < 0 ? -ENOLCK : LATER;
}

static int grant_part(struct notify *a, const struct seccomp_notif *n)
{
	pid_t tid = (pid_t)n->pid;

	if (!is_file(a, n))
		return -EINVAL;
	if ((slot_of(a, tid) || has_company(a, tid)) &&
		slot_take(a, tid, (int)n->data.args[0]) < 0)
		return -ENOLCK;
	return grant_lock(a);
}

/* 0, or the errno that the call fails with, negative; LATER: a thread of init
 * answers. */
static int grant_call(struct notify *a, const struct seccomp_notif *n)
{
	switch (n->data.nr) {
	case SYS_mmap:
		return grant_memory(a, n->data.args[1]);
	case SYS_flock:
		return grant_whole(a, n);
	}
	return grant_part(a, n);
}

void notify_serve(struct notify *a)
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
	out.said.error = grant_call(a, &in.asked);
	if (out.said.error == LATER)
		return;
	if (!out.said.error)
		out.said.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	ioctl(a->fd, SECCOMP_IOCTL_NOTIF_SEND, &out);
}
