/* SPDX-License-Identifier: MIT */
/*
 * procs.c - what the jail's processes do and use, read from /proc
 *
 * Runs in:   warden; what may wait for a guest, in the warden's helper alone
 * Holds:     CAP_SYS_PTRACE over the jail, as the owner of the user namespace
 *            above it: /proc/PID/smaps_rollup, syscall and mem need it
 * Trusts:    the kernel's numbers. Names are the guest's and may hold any
 *            byte; memory of the guest is only compared.
 * Leaves:    nothing
 *
 * The files status and task of a process are read without waiting. The files
 * smaps_rollup, syscall, mem, in newer kernels also stat and all links, and
 * what fd/N leads to have locks that a guest can hold: threads that change its
 * memory map without end, an exec that waits for them, a file that it writes
 * to.
 *
 * Waiting for the person is sampled at random times. A guest
 * can only pretend to wait while all of it really sleeps, and then it does
 * nothing else. A timeout lets it do no more than a thread that sleeps beside
 * one that reads.
 */
#include "jail/init/init.h"

#include "jail/base/array.h"
#include "jail/base/io.h"
#include "jail/base/procstat.h"
#include "jail/base/procstatus.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

/* A process with at most so many descriptors has them for nothing; with more,
 * each counts as what a new pipe may hold. */
#define FDS_FREE 64
#define FD_BYTES 8192
/* The most that the kernel keeps for a mapping, and for what an epoll watches;
 * and for each ancestor of a mapping that was forked again and again. */
#define MAP_BYTES 512
#define MAP_FORK_BYTES 64
#define WATCH_BYTES 256
/* Anonymous shared memory is an open file without a name. */
#define SHARED_BYTES 2048
/* Bytes of what an epoll waits for that are looked at. */
#define EPOLL_BYTES 2048
/* Most descriptors of one poll() that are looked at; a prompt waits for one. */
#define POLL_MAX 16
/* The tty that stands for a process's own controlling terminal. */
#define DEV_TTY makedev(5, 0)

int procs_is_gone(void)
{
	return errno == ENOENT || errno == ESRCH;
}

/* ---- one process after the other, or one thread ---- */

struct procs_walk {
	const struct procs_source *s; /* NULL: the threads of one process */
	DIR *dir;
	int seen;
	int fd;	   /* directory of the process or thread, until the next step */
	pid_t pid; /* in the jail's numbers */
};

void procs_source_jail(struct procs_source *s, int proc_fd)
{
	*s = (struct procs_source){.proc_fd = proc_fd, .self = 1};
}

void procs_source_host(struct procs_source *s, int proc_fd, pid_t init_pid,
	dev_t ns_dev, ino_t ns_ino)
{
	*s = (struct procs_source){.proc_fd = proc_fd,
		.foreign = 1,
		.self = init_pid,
		.ns_dev = ns_dev,
		.ns_ino = ns_ino};
}

/* A directory entry that is a number, or 0. */
static pid_t entry_number(const char *name)
{
	if (!isdigit((unsigned char)*name) ||
		name[strspn(name, "0123456789")] != '\0')
		return 0;
	return (pid_t)strtol(name, NULL, 10);
}

/* The number of a process in the jail, or -1 if it is not in the jail. */
static pid_t jail_pid(const struct procs_source *s, int dirfd, pid_t pid)
{
	struct procstatus st;
	struct stat ns;

	if (!s || !s->foreign)
		return pid;
	if (fstatat(dirfd, "ns/pid", &ns, 0) < 0 || ns.st_dev != s->ns_dev ||
		ns.st_ino != s->ns_ino)
		return -1;
	return procstatus_read(dirfd, "status", &st) < 0 ? -1 : st.inside;
}

/* Walk the numbers in a directory. 0, or -1 with errno; end the walk only if it
 * began. */
static int walk_begin(struct procs_walk *w, int dirfd, const char *path,
	const struct procs_source *s)
{
	*w = (struct procs_walk){.s = s, .fd = -1};
	/* Opened anew: dup() would share the position in the directory. */
	w->dir = io_list_taken(
		openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	return w->dir ? 0 : -1;
}

static int walk_processes(struct procs_walk *w, const struct procs_source *s)
{
	return walk_begin(w, s->proc_fd, ".", s);
}

static int walk_threads(struct procs_walk *w, int proc)
{
	return walk_begin(w, proc, "task", NULL);
}

static void walk_end(struct procs_walk *w)
{
	int saved = errno;

	fd_drop(&w->fd);
	if (w->dir)
		closedir(w->dir);
	errno = saved;
}

/* True if a process that cannot be opened may exist all the same. */
static int is_out_of_means(void)
{
	return errno == EMFILE || errno == ENFILE || errno == ENOMEM;
}

/* 1 and w->pid, w->fd; 0 at the end; -1 with errno when there is more, but it
 * cannot be seen. Never returns init. */
static int walk_next(struct procs_walk *w)
{
	struct dirent *de;

	fd_drop(&w->fd);
	while (w->seen < PROCS_MAX && (errno = 0, de = readdir(w->dir))) {
		pid_t pid = entry_number(de->d_name);

		if (!pid || (w->s && pid == w->s->self))
			continue;
		w->fd = openat(dirfd(w->dir), de->d_name,
			O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (w->fd < 0 && is_out_of_means())
			return -1;
		if (w->fd < 0)
			continue; /* gone */
		w->pid = jail_pid(w->s, w->fd, pid);
		if (w->pid > 0) {
			w->seen++;
			return 1;
		}
		fd_drop(&w->fd);
	}
	if (w->seen == PROCS_MAX)
		errno = E2BIG;
	return errno ? -1 : 0;
}

/* ---- files of one process ---- */

/* "Key:   123 kB" in bytes, 0 if it is not there. */
static int64_t kb_after(const char *text, const char *key)
{
	const char *p = strstr(text, key);

	return p ? strtoll(p + strlen(key), NULL, 10) * 1024 : 0;
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
	if (walk_processes(&w, s) < 0)
		return -1;
	while (fd < 0 && walk_next(&w) > 0)
		if (w.pid == pid)
			fd = fd_take(&w.fd);
	walk_end(&w);
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
	return state == 'R';
}

static int is_kept(char state)
{
	return state == 'D';
}

/* The directory of a thread whose state passes the test, or -1. */
static int thread_find(int proc, int (*is)(char state))
{
	struct procstatus st;
	struct procs_walk w;
	int fd = -1;

	if (walk_threads(&w, proc) < 0)
		return -1;
	while (fd < 0 && walk_next(&w) > 0)
		if (procstatus_read(w.fd, "status", &st) == 0 && is(st.state))
			fd = fd_take(&w.fd);
	walk_end(&w);
	return fd;
}

static int any_thread(
	int fd, const struct procstatus *st, int (*is)(char state))
{
	auto_close int thread = -1;

	if (is(st->state) || st->threads < 2)
		return is(st->state);
	thread = thread_find(fd, is);
	return thread >= 0;
}

/* After vfork() a parent waits in the kernel for its child, as long as that
 * likes. Every other wait there is for the kernel: for a page, for memory, for
 * a lock that each fork and exit of the host takes. Where the kernel does not
 * say where a thread waits, it is taken to wait for the kernel. No guest can
 * make a reader of this file wait. */
static int awaits_child(int thread)
{
	char where[64];

	return io_read_small(thread, "wchan", where, sizeof(where)) > 0 &&
	       (strcmp(where, "kernel_clone") == 0 ||
		       strcmp(where, "wait_for_vfork_done") == 0);
}

/* True if the host keeps one of its threads waiting. */
static int is_held_back(int fd, const struct procstatus *st)
{
	auto_close int thread = -1;

	if (any_thread(fd, st, is_ready))
		return 1;
	if (is_kept(st->state))
		return !awaits_child(fd);
	if (st->threads > 1)
		thread = thread_find(fd, is_kept);
	return thread >= 0 && !awaits_child(thread);
}

/* smaps_rollup waits for a lock that the guest can hold. */
static int rollup_read(int dirfd, char *buf, size_t size)
{
	return io_read_small(dirfd, "smaps_rollup", buf, size) > 0;
}

/*
 * The memory of a process, by its directory or a thread's. Page tables count: a
 * guest can make large ones that map nothing. Files do not: those of the jail's
 * own are counted where they are kept. Swapped pages do. By weight a page
 * counts in part for each of those who share it after a fork, otherwise for
 * each of them as a whole; so it does in a program that nobody may read, whose
 * maps are closed even to the warden.
 */
static void count_pages(
	int fd, const struct procstatus *st, int by_weight, struct procs *out)
{
	int64_t pages = st->pages_bytes;
	char maps[2048];

	if (by_weight && rollup_read(fd, maps, sizeof(maps)) &&
		strstr(maps, "\nPss_Anon:"))
		pages = kb_after(maps, "\nPss_Anon:") +
			kb_after(maps, "\nSwapPss:");
	out->bytes += pages + st->tables_bytes;
	out->own_bytes += st->tables_bytes;
}

/*
 * The memory that the kernel may hold for the descriptors of a process that has
 * more than any program needs. Linux 6.2 tells their number; before that they
 * do not count.
 */
static int64_t descriptors_bytes(int fd)
{
	struct stat st;

	if (fstatat(fd, "fd", &st, 0) < 0 || st.st_size <= FDS_FREE)
		return 0;
	return st.st_size * FD_BYTES;
}

/* ---- what the kernel keeps for a process ---- */

/*
 * A file of /proc prints into a buffer that becomes as large as its largest
 * record, and keeps it until it is closed: megabytes where a record is all that
 * an epoll watches, or has the name of a mapped file. The kernel does not tell
 * its size, and the watches and mappings may be gone. So there may be more than
 * is seen while a process has such a file open. A file that is closed while it
 * is read has a buffer for each thread that reads, as large as a record is now.
 */
struct kept {
	int fd;	   /* the process */
	ino_t ctl; /* of struct procs_source */
	int64_t maps, shared, watches;
	int64_t record; /* the largest */
	int hidden;	/* there may be more that nobody sees */
};

static void keep_map(const char *line, struct kept *k)
{
	k->maps += strchr(line, '\n') != NULL;
	k->shared += strstr(line, " /dev/zero (deleted)\n") != NULL;
}

/* A descriptor in a socket, on its way to another process, can be an epoll. */
static void keep_watch(const char *line, struct kept *k)
{
	static const char in_flight[] = "scm_fds:";

	k->watches += !strncmp(line, "tfd:", 4);
	if (!strncmp(line, in_flight, sizeof(in_flight) - 1))
		k->hidden |= atoi(line + sizeof(in_flight) - 1) > 0;
}

/* Files that wait for locks which a guest can hold. They are one record, or one
 * for each line. */
static void keep_lines(struct kept *k, const char *path, int is_record,
	void (*keep)(const char *line, struct kept *k))
{
	int64_t record = 0;
	int fd = openat(k->fd, path, O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	char line[256], room[16384];

	if (!f) {
		k->hidden |= !procs_is_gone();
		fd_drop(&fd);
		return;
	}
	setvbuf(f, room, _IOFBF, sizeof(room));
	while (fgets(line, sizeof(line), f)) {
		keep(line, k);
		record += (int64_t)strlen(line);
		if (record > k->record)
			k->record = record;
		if (!is_record && strchr(line, '\n'))
			record = 0;
	}
	k->hidden |= ferror(f) && !procs_is_gone();
	fclose(f);
}

/* The jail's /proc has mounts, and devices, of more than one kind. */
static int is_of_proc(int proc, const char *path)
{
	auto_close int fd = openat(proc, path, O_PATH | O_CLOEXEC);
	struct statfs fs;

	return fd < 0 ? !procs_is_gone()
		      : fstatfs(fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC;
}

/* Files of /proc that programs may watch themselves with: no record is large.
 */
static int prints_little(int proc, const char *path)
{
	static const char *const names[] = {"/stat", "/statm", "/status", "/io",
		"/cmdline", "/comm", "/environ", "/limits", "/pagemap"};
	char link[PATH_MAX];
	ssize_t n = readlinkat(proc, path, link, sizeof(link) - 1);
	const char *name;

	link[n < 0 ? 0 : n] = '\0';
	name = strrchr(link, '/');
	for (size_t i = 0; name && i < COUNT(names); i++)
		if (!strcmp(name, names[i]))
			return 1;
	return 0;
}

static int keep_descriptor(int number, void *arg)
{
	struct kept *k = arg;
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "fd/%d", number);
	if (fstatat(k->fd, path, &st, 0) < 0)
		k->hidden |= !procs_is_gone();
	else if (S_ISREG(st.st_mode) && st.st_size == 0 &&
		 is_of_proc(k->fd, path))
		k->hidden |= !prints_little(k->fd, path);
	else if (S_ISSOCK(st.st_mode) && st.st_ino == k->ctl)
		return 0;
	snprintf(path, sizeof(path), "fdinfo/%d", number);
	keep_lines(k, path, 1, keep_watch);
	return 0;
}

static void count_kept(const struct procs_source *s, int fd, struct procs *out)
{
	struct kept k = {.fd = fd, .ctl = s->ctl};

	keep_lines(&k, "maps", 0, keep_map);
	if (procstat_each(fd, "fdinfo", 0, keep_descriptor, &k) < 0)
		k.hidden |= !procs_is_gone();
	out->kernel_bytes += k.maps * MAP_BYTES + k.shared * SHARED_BYTES +
			     k.watches * WATCH_BYTES;
	out->forks_bytes += k.maps * MAP_FORK_BYTES * (out->n - 1);
	out->shared += k.shared;
	if (k.record > out->record_bytes)
		out->record_bytes = k.record;
	out->hidden |= k.hidden;
}

/* ---- one sample ---- */

static void count_memory(const struct procs_source *s, int fd,
	const struct procstatus *first, unsigned flags, struct procs *out)
{
	auto_close int thread = -1;
	struct procstatus st = *first;
	int64_t descriptors;

	/* The first thread has ended and shows no memory; another does. */
	if (!is_alive(st.state))
		thread = thread_find(fd, is_alive);
	if (thread >= 0) {
		fd = thread;
		if (procstatus_read(fd, "status", &st) < 0)
			return;
	}
	count_pages(fd, &st, (flags & PROCS_WEIGHT) != 0, out);
	descriptors = descriptors_bytes(fd);
	out->bytes += descriptors;
	out->own_bytes += descriptors;
	if (flags & PROCS_WEIGHT)
		count_kept(s, fd, out);
}

static void count_process(const struct procs_source *s, int fd, unsigned flags,
	struct procs *out, int64_t *ticks)
{
	struct procstatus st;
	struct procstat cpu;

	if (procstatus_read(fd, "status", &st) < 0)
		return;
	if (flags & PROCS_CPU && procstat_read(fd, "stat", &cpu) == 0)
		*ticks += cpu.cpu_ticks + cpu.dead_ticks;
	if (!is_alive(st.state) && st.threads < 2) {
		out->zombies++;
		return;
	}
	/* A process without memory is on its way out, and runs no code of a
	 * guest's. The files that it has open are still its own. */
	if (st.threads < 2 && !st.has_memory) {
		out->zombies++;
	} else {
		out->n++;
		out->threads += st.threads;
	}
	if (flags & PROCS_RUNNING)
		out->running += any_thread(fd, &st, is_awake);
	if (flags & PROCS_READY)
		out->ready += is_held_back(fd, &st);
	if (flags & (PROCS_MEMORY | PROCS_WEIGHT))
		count_memory(s, fd, &st, flags, out);
}

static int64_t ticks_ms(int64_t ticks)
{
	return ticks * 1000 / sysconf(_SC_CLK_TCK);
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
	/* First: the time of one that dies meanwhile must not count twice. */
	snprintf(path, sizeof(path), "%d/stat", (int)s->self);
	if (procstat_read(s->proc_fd, path, &init) == 0) {
		ticks += init.dead_ticks; /* orphans that it has reaped */
		out->init_ms = ticks_ms(init.cpu_ticks);
		/* Guests wait for it. */
		out->ready += is_ready(init.state) || is_kept(init.state);
	}
	if (walk_processes(&w, s) < 0)
		return err_errno(e, "processes: read /proc");
	while ((r = walk_next(&w)) > 0)
		count_process(s, w.fd, flags, out, &ticks);
	walk_end(&w);
	if (r < 0)
		return err_errno(e, "processes: read /proc");
	/* A buffer is doubled until the record fits. */
	out->kernel_bytes += 2 * out->record_bytes * out->threads;
	out->cpu_ms = ticks_ms(ticks);
	return 0;
}

int procs_status(const struct procs_source *s, pid_t pid, struct procstatus *st)
{
	auto_close int fd = proc_open(s, pid);

	return fd < 0 ? -1 : procstatus_read(fd, "status", st);
}

int procs_stat(const struct procs_source *s, pid_t pid, struct procstat *st)
{
	auto_close int fd = proc_open(s, pid);

	return fd < 0 ? -1 : procstat_read(fd, "stat", st);
}

int procs_pages(const struct procs_source *s, pid_t pid, struct procs_pages *p)
{
	auto_close int fd = proc_open(s, pid);
	char maps[2048];

	if (fd < 0 || !rollup_read(fd, maps, sizeof(maps)))
		return -1;
	*p = (struct procs_pages){
		.all = kb_after(maps, "\nRss:") + kb_after(maps, "\nSwap:"),
		.private = kb_after(maps, "\nPrivate_Clean:") +
			   kb_after(maps, "\nPrivate_Dirty:") +
			   kb_after(maps, "\nSwapPss:")};
	return 0;
}

/* ---- waiting for the person ---- */

/* A thread, and the terminal that it may wait for. */
struct waiter {
	int fd; /* the thread's directory */
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

static int guest_read(const struct waiter *w, uint64_t at, void *buf, size_t n)
{
	auto_close int fd = openat(w->fd, "mem", O_RDONLY | O_CLOEXEC);

	return fd >= 0 && pread(fd, buf, n, (off_t)at) == (ssize_t)n ? 0 : -1;
}

/* Read a descriptor set of select(). 0, or -1. */
static int set_read(
	const struct waiter *w, uint64_t at, uint64_t nfds, fd_set *set)
{
	FD_ZERO(set);
	/* Whole words, as the kernel does. */
	return at ? guest_read(w, at, set, (nfds + 63) / 64 * 8) : 0;
}

/* select(), with the tty among what it would read. */
static int selects_tty(const struct waiter *w, const struct waiter_call *c)
{
	uint64_t nfds = c->arg[0] & 0xffffffff;
	fd_set set;

	if (nfds > FD_SETSIZE || set_read(w, c->arg[1], nfds, &set) < 0)
		return 0;
	for (int fd = 0; fd < (int)nfds; fd++)
		if (FD_ISSET(fd, &set) && fd_is_tty(w, fd))
			return 1;
	return 0;
}

/* poll(), the same. */
static int polls_tty(const struct waiter *w, const struct waiter_call *c)
{
	struct pollfd p[POLL_MAX];
	uint64_t n = c->arg[1];

	if (n > POLL_MAX || guest_read(w, c->arg[0], p, n * sizeof(p[0])) < 0)
		return 0;
	for (uint64_t i = 0; i < n; i++)
		if (p[i].events & POLLIN && fd_is_tty(w, p[i].fd))
			return 1;
	return 0;
}

/* epoll_wait(), the same. */
static int epolls_tty(const struct waiter *w, const struct waiter_call *c)
{
	char path[40], buf[EPOLL_BYTES];
	unsigned events;
	int fd;

	snprintf(path, sizeof(path), "fdinfo/%d", (int)c->arg[0]);
	if (io_read_small(w->fd, path, buf, sizeof(buf)) <= 0)
		return 0;
	for (const char *s = buf; (s = strstr(s, "\ntfd:")); s++)
		if (sscanf(s, " tfd: %d events: %x", &fd, &events) == 2 &&
			events & EPOLLIN && fd_is_tty(w, fd))
			return 1;
	return 0;
}

/* A full-screen program waits for a key with a timeout, and among other things.
 * Work that the program does when the time is up counts as work. */
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
#endif
	case SYS_ppoll:
		return polls_tty(w, c);
#ifdef SYS_epoll_wait
	case SYS_epoll_wait:
#endif
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
		return epolls_tty(w, c);
	}
	return 0;
}

/* 1 the thread waits for the tty, 0 it does not, -1 the kernel does not say. */
static int waiter_waits(const struct waiter *w)
{
	char buf[256];
	struct waiter_call c;
	uint64_t *a = c.arg;

	if (io_read_small(w->fd, "syscall", buf, sizeof(buf)) <= 0)
		return -1;
	if (sscanf(buf,
		    "%ld %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
		    " %" SCNx64 " %" SCNx64,
		    &c.nr, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5]) != 7)
		return 0; /* running, or asleep outside a system call */
	return call_waits(w, &c);
}

/* The findings of a sample. */
struct sample {
	int awake;   /* a thread runs */
	int waits;   /* a thread waits for the tty */
	int unclear; /* of a foreground thread the kernel does not say */
};

static int state_sleeps(char state)
{
	return strchr("STtZXI", state) != NULL;
}

/* Sample the threads of a process. The person answers only the reads of the
 * foreground group. */
static void sample_threads(int proc, dev_t tty, struct sample *x)
{
	struct waiter t = {.tty = tty};
	struct procs_walk w;
	int more = 0;

	if (walk_threads(&w, proc) < 0) {
		x->awake |= !procs_is_gone();
		return;
	}
	while (!x->awake && (more = walk_next(&w)) > 0) {
		int r;

		if (procstat_read(w.fd, "stat", &t.st) < 0) {
			x->awake |= !procs_is_gone();
			continue;
		}
		if (!state_sleeps(t.st.state))
			x->awake = 1;
		if (t.st.state != 'S' || t.st.tty != tty ||
			t.st.pgrp != t.st.tpgid || x->waits)
			continue;
		t.fd = w.fd;
		r = waiter_waits(&t);
		x->waits |= r > 0;
		x->unclear |= r < 0;
	}
	x->awake |= more < 0;
	walk_end(&w);
}

int procs_is_among(pid_t pid, const pid_t *v, int n)
{
	for (int i = 0; i < n; i++)
		if (v[i] == pid)
			return 1;
	return 0;
}

int procs_waits_for_tty(
	const struct procs_source *s, dev_t tty, const pid_t *skip, int nskip)
{
	struct sample x = {0};
	struct procs_walk w;
	int more = 0;

	if (walk_processes(&w, s) < 0)
		return -1;
	while (!x.awake && (more = walk_next(&w)) > 0)
		if (!procs_is_among(w.pid, skip, nskip))
			sample_threads(w.fd, tty, &x);
	x.awake |= more < 0;
	walk_end(&w);
	if (x.awake)
		return 0;
	if (x.waits)
		return 1;
	return x.unclear ? -1 : 0;
}
