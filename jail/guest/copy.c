/* SPDX-License-Identifier: MIT */
/*
 * copy.c - a fork() that leaves no trace, for checkpoints
 *
 * Runs in:   the guest; park.py loads it as a library
 * Trusts:    nothing, and is not trusted: it can do what the guest can
 * Leaves:    a copy of this process that is a child of init, not of the guest
 *
 * A child of the guest would be seen by a thread in wait(), by a SIGCHLD
 * handler and by getrusage(). So the copy must be init's child from the start.
 * CLONE_PARENT makes a child of init, but only libc's fork() takes care of
 * locks and fork handlers (after a raw clone BLAS hangs), and fork() takes no
 * flags. So a process in the middle is cloned as init's child; as after
 * vfork() it shares all memory with this one. It forks and exits, and then
 * init is the parent of the copy too. The guest's thread waits meanwhile, so
 * its stack in the copy is intact, and the copy continues there by longjmp().
 *
 * A copy that has nothing to close or reopen goes to sleep before Python runs
 * in it. To run, Python writes to a few hundred pages, and each would be
 * copied. For a small session that is a quarter of what a checkpoint costs.
 *
 * Pages that the next cell would copy are copied ahead. After a fork the first
 * write to each page copies the page, and Python writes to the same two hundred
 * pages in each cell. A page that is private before a fork was written since
 * the last fork, or copied ahead then; it will be written again. It is copied
 * after the fork, while the person reads. Above COPY_MAX pages nothing is
 * copied ahead, and the next cell shows anew which pages are needed. Where
 * there is no /proc, or Linux is older than 5.14, no page is. Measured gain
 * (150 cells, in turns, two cores under load): from Enter to the answer 0.87 ms
 * with it, 1.23 ms without it (medians; best 0.51 and 0.78 ms).
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#include <sys/syscall.h>
#endif

/* Of Python's C API; Python.h is not needed for these. */
void PyOS_BeforeFork(void);
void PyOS_AfterFork_Parent(void);
void PyOS_AfterFork_Child(void);

#define EXPORT __attribute__((visibility("default")))

EXPORT int copy_make(int sock, int ctl, const char *asleep, int ahead);
EXPORT int copy_pages(int ctl);

/* ---- pages copied ahead ---- */

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Most pages that are copied ahead, and that are looked at. */
#define COPY_MAX 1024
#define LOOK_MAX 32768
#define RANGES_MAX 256
#define MAPPINGS_MAX 4096
/* How many ranges are copied before it is seen whether a cell waits. */
#define LISTEN 8

/* An entry of /proc/self/pagemap. */
#define PRESENT (UINT64_C(1) << 63)
#define OF_A_FILE (UINT64_C(1) << 61)
#define EXCLUSIVE (UINT64_C(1) << 56)

static struct range {
	uintptr_t from, to;
} ranges[RANGES_MAX], mappings[MAPPINGS_MAX];
static int nranges, nmappings;
static size_t found, looked;
static uint64_t entries[512];
static char text[8192];

static int remember_page(uintptr_t page, size_t size)
{
	if (++found > COPY_MAX)
		return -1;
	if (nranges && ranges[nranges - 1].to == page) {
		ranges[nranges - 1].to += size;
		return 0;
	}
	if (nranges == RANGES_MAX)
		return -1;
	ranges[nranges++] = (struct range){page, page + size};
	return 0;
}

/* The pages of one mapping. */
static int scan_mapping(int pagemap, uintptr_t from, uintptr_t to, size_t size)
{
	const size_t most = sizeof(entries) / sizeof(*entries);

	while (from < to && looked < LOOK_MAX) {
		size_t n =
			(to - from) / size < most ? (to - from) / size : most;
		ssize_t r = pread(pagemap, entries, n * sizeof(*entries),
			(off_t)(from / size * sizeof(*entries)));

		if (r <= 0)
			return -1;
		n = (size_t)r / sizeof(*entries);
		for (size_t i = 0; i < n; i++, from += size)
			if ((entries[i] & (PRESENT | OF_A_FILE | EXCLUSIVE)) ==
					(PRESENT | EXCLUSIVE) &&
				remember_page(from, size) < 0)
				return -1;
		looked += n;
	}
	return 0;
}

/* A line of /proc/self/maps: FROM-TO PERMISSIONS ... */
static int scan_line(const char *line)
{
	char *p;
	uintptr_t from = strtoul(line, &p, 16), to;

	if (*p != '-')
		return -1;
	to = strtoul(p + 1, &p, 16);
	if (strncmp(p, " rw", 3) != 0 || p[4] != 'p')
		return 0;
	if (nmappings == MAPPINGS_MAX)
		return -1;
	mappings[nmappings++] = (struct range){from, to};
	return 0;
}

/* Note the mappings that may have such pages. The driver closes the file right
 * afterwards: while it is open the warden cannot tell how much memory the
 * kernel holds for it. */
static int scan_maps(int maps)
{
	size_t n = 0;
	ssize_t r;

	nmappings = 0;
	while ((r = read(maps, text + n, sizeof(text) - 1 - n)) > 0) {
		char *line = text, *end;

		n += (size_t)r;
		text[n] = '\0';
		for (; (end = strchr(line, '\n')) != NULL; line = end + 1)
			if (scan_line(line) < 0)
				return -1;
		n -= (size_t)(line - text);
		memmove(text, line, n);
	}
	return r < 0 || n ? -1 : 0;
}

/* Before a fork: remember the pages that were written since the last one. */
static void pages_remember(void)
{
	int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	int r = maps < 0 ? -1 : scan_maps(maps), pagemap;
	size_t size = (size_t)sysconf(_SC_PAGESIZE);

	if (maps >= 0)
		close(maps);
	nranges = 0;
	found = looked = 0;
	pagemap = r < 0 ? -1 : open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	for (int i = 0; i < nmappings && pagemap >= 0 && r == 0; i++)
		r = scan_mapping(
			pagemap, mappings[i].from, mappings[i].to, size);
	if (pagemap >= 0)
		close(pagemap);
	if (r < 0 || pagemap < 0)
		nranges = 0;
}

/* ---- the copy ---- */

static _Alignas(64) char stack[256 * 1024];
static jmp_buf here;

/* A clone that shares memory makes the kernel forget the thread's restartable
 * sequences, in the copy as well. */
static void rseq_register(void)
{
#ifdef RSEQ_SIG
	if (__rseq_size)
		syscall(SYS_rseq,
			(char *)__builtin_thread_pointer() + __rseq_offset, 32,
			0, RSEQ_SIG);
#endif
}

static int run_middle(void *pid)
{
	pid_t n = fork();

	if (n == 0)
		longjmp(here, 1);
	*(pid_t *)pid = n > 0 ? n : -errno;
	return 0;
}

static void say_asleep(int sock, const char *rest)
{
	char line[128] = "ASLEEP ", digits[12];
	size_t n = 7, more = strlen(rest), at = sizeof(digits);

	for (pid_t pid = getpid(); pid > 0; pid /= 10)
		digits[--at] = (char)('0' + pid % 10);
	memcpy(line + n, digits + at, sizeof(digits) - at);
	n += sizeof(digits) - at;
	if (more > sizeof(line) - n)
		_exit(0);
	memcpy(line + n, rest, more);
	if (send(sock, line, n + more, MSG_NOSIGNAL) < 0)
		_exit(0);
}

/* In the copy: be a checkpoint until it is continued. Python has not run in the
 * copy yet, so that the copy has written to no page of its own but a few. */
static void sleep_here(int sock, int ctl, const char *asleep)
{
	char order[16];
	ssize_t n;

	if (setpgid(0, 0) < 0 || dup3(sock, ctl, O_CLOEXEC) < 0)
		_exit(0);
	close(sock);
	say_asleep(ctl, asleep);
	do
		n = recv(ctl, order, sizeof(order), 0);
	while (n < 0 && errno == EINTR);
	if (n != 6 || memcmp(order, "RESUME", 6) != 0)
		_exit(0);
}

/* Returns 0 in the copy; in the guest the copy's pid, or minus an errno. With
 * `asleep`, which follows the copy's pid in ASLEEP, the copy sleeps first, on
 * `sock`, which takes the place of `ctl`: it returns when it is live. `ahead`:
 * copy_pages() follows. */
int copy_make(int sock, int ctl, const char *asleep, int ahead)
{
	pid_t pid = -ECHILD; /* the process in the middle was killed */

	if (ahead)
		pages_remember();
	PyOS_BeforeFork();
	if (setjmp(here)) {
		if (asleep)
			sleep_here(sock, ctl, asleep);
		rseq_register();
		PyOS_AfterFork_Child();
		return 0;
	}
	if (clone(run_middle, stack + sizeof(stack),
		    CLONE_VM | CLONE_VFORK | CLONE_PARENT | SIGCHLD, &pid) < 0)
		pid = -errno;
	PyOS_AfterFork_Parent();
	return pid;
}

/* After copy_make(), in the guest and until a message waits on `ctl`: copy the
 * remembered pages. Returns 0. */
int copy_pages(int ctl)
{
	char c;

	for (int i = 0; i < nranges; i++)
		if ((i % LISTEN == 0 &&
			    recv(ctl, &c, 1, MSG_PEEK | MSG_DONTWAIT) >= 0) ||
			madvise((void *)ranges[i].from,
				ranges[i].to - ranges[i].from,
				MADV_POPULATE_WRITE) < 0)
			break;
	return 0;
}
