/* SPDX-License-Identifier: MIT */
/*
 * tally.c - what a jail uses, added up where no cgroup does it
 *
 * Runs in:   warden
 * Trusts:    the kernel's counters, what init has granted, and what the
 *            helper has seen
 */
#include "jail/warden/look/look.h"

#include "jail/apply/apply.h"
#include "jail/base/array.h"
#include "jail/base/io.h"
#include "jail/init/init.h"
#include "jail/walls/walls.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

/* The kernel's own memory to keep what a socket holds. */
#define SOCKET_MORE (48 << 10)
/* The most that one socket counts for, and the share that all sockets have for
 * nothing, as forked mappings have one: parts of the limit. */
#define SOCKET_DEN 32
#define SOCKETS_DEN 8
#define FORKS_DEN 8

/* How long a jail may go on that may have passed its limit. */
#define UNKNOWN_MS 1000

/* ---- the host ---- */

/* Read how much memory of the whole host belongs to processes and to the kernel
 * itself. Pieces of kernel memory that are large, such as buffers over 4 MiB,
 * are in VmallocUsed alone. */
static void look_at_host(struct tally *t)
{
	static const char *const keys[] = {"\nAnonPages:", "\nSwapTotal:",
		"\nSwapFree:", "\nShmem:", "\nSUnreclaim:", "\nVmallocUsed:"};
	enum { KEYS = COUNT(keys) };
	int64_t bytes[KEYS], swapped;
	char text[4096];

	io_read_small(AT_FDCWD, "/proc/meminfo", text, sizeof(text));
	for (int i = 0; i < KEYS; i++) {
		const char *at = strstr(text, keys[i]);

		if (!at)
			return;
		bytes[i] = strtoll(at + strlen(keys[i]), NULL, 10) * 1024;
	}
	swapped = bytes[1] - bytes[2];
	t->shmem_bytes = bytes[3] + swapped;
	t->kernel_bytes = bytes[4] + bytes[5];
	t->host_bytes = bytes[0] + swapped + t->kernel_bytes;
	if (t->kernel_bytes - t->kernel_others < t->kernel_ours)
		t->kernel_others = t->kernel_bytes - t->kernel_ours;
}

/* ---- one jail after the other ---- */

void tally_init(struct tally *t, const struct tally_place *place)
{
	*t = (struct tally){.place = *place};
}

int64_t tally_files_bytes(const struct tally *t)
{
	int64_t bytes = 0, home = 0;
	struct statfs st;
	int files;

	for (int i = 0; i < APPLY_TMPFS; i++)
		if (t->place.tmp[i] >= 0 && fstatfs(t->place.tmp[i], &st) == 0)
			bytes += (int64_t)(st.f_blocks - st.f_bfree) *
				 st.f_bsize;
	home_usage(t->place.home, &home, &files);
	return bytes + home;
}

int tally_begin(struct tally *t, int64_t limit)
{
	void *page = t->memory;

	if (!page)
		page = mmap(NULL, sizeof(*t->memory), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return -1;
	t->memory = page;
	t->limit = limit;
	*t->memory = (struct notify_memory){0};
	t->shared_asked = t->shared_left = t->shared_seen = 0;
	look_at_host(t);
	t->kernel_others = t->kernel_bytes;
	t->shmem_others = t->shmem_bytes - tally_files_bytes(t);
	return 0;
}

void tally_lower(struct tally *t, int64_t limit)
{
	t->limit = limit;
}

void tally_end(struct tally *t, int64_t cpu_ms)
{
	t->weight_bytes = t->kernel_ours = 0;
	t->weighed = 0;
	t->cpu_gone_ms = t->cpu_ms = cpu_ms;
	memset(t->sums_ms, 0, sizeof(t->sums_ms));
}

/* ---- what is held outside processes ---- */

/* Bytes that a socket holds, sent and not yet read: net.core.wmem_default, as
 * our own socket has it. Where that is large, a few sockets must not use up the
 * limit. */
static int64_t socket_bytes(const struct tally *t)
{
	int64_t most = t->limit / SOCKET_DEN;
	socklen_t size = sizeof(int);
	int n = 0;

	getsockopt(*t->place.front, SOL_SOCKET, SO_SNDBUF, &n, &size);
	n += SOCKET_MORE;
	return n < most ? n : most;
}

/*
 * Bytes that the sockets of the jail may hold, beyond a part of the memory
 * limit that is theirs, as it is where a cgroup counts them. The kernel tells
 * only their number. It includes those that no process has any more, as long as
 * their data waits to be read.
 */
static int64_t sockets_bytes(const struct tally *t)
{
	int64_t free = t->limit / SOCKETS_DEN;
	char path[48], text[512];
	long long n = 0;

	snprintf(path, sizeof(path), "%d/net/sockstat",
		(int)t->place.procs->self);
	io_read_small(t->place.procs->proc_fd, path, text, sizeof(text));
	if (sscanf(text, "sockets: used %lld", &n) != 1)
		return 0;
	n *= socket_bytes(t);
	return n > free ? n - free : 0;
}

/*
 * Anonymous shared memory that the jail may have: no more than init has granted
 * since the last look, with what was left then; and than all shared memory of
 * the host has grown by, but for the jail's files. Each may be too much, for
 * memory that was granted is given back, and the host is not only ours.
 */
static int64_t shared_bytes(struct tally *t, int64_t files)
{
	int64_t others = t->shmem_bytes - files, granted, left;

	if (others < t->shmem_others)
		t->shmem_others = others;
	if (!t->memory)
		return 0;
	others -= t->shmem_others;
	granted = t->memory->bytes;
	left = t->shared_left + granted - t->shared_seen;
	granted = left < granted ? left : granted;
	return granted < others ? granted : others;
}

/* Bytes kept in files, in sockets, and in anonymous shared memory. */
static int64_t files_bytes(struct tally *t)
{
	int64_t files = tally_files_bytes(t);

	return files + sockets_bytes(t) + shared_bytes(t, files);
}

/* ---- memory ---- */

/* Pages that the kernel has not added to a process's count yet: since Linux 6.2
 * it counts for each core first (percpu_counter_batch). */
static int64_t unseen_bytes(void)
{
	long cores = sysconf(_SC_NPROCESSORS_CONF);

	return cores * (cores < 16 ? 32 : 2 * cores) * sysconf(_SC_PAGESIZE);
}

/* The kernel's memory that may be the jail's: its growth. */
static int64_t kernel_most(const struct tally *t)
{
	return t->kernel_bytes - t->kernel_others;
}

/*
 * Where no cgroup counts memory, an upper bound is always at hand: the sum over
 * all processes, and what the kernel's own memory has grown by on the whole
 * host. Beyond the limit the helper weighs, because a page that a fork shares
 * is in that sum more than once, and the host is not only ours. Memory is over
 * the limit when its answer for a jail that stands still says so, or when what
 * no fork shares passes it alone. It is in doubt when one that runs weighs
 * more: a process that forks meanwhile counts twice. It is, too, when the
 * helper does not come to an answer in time, and when the host's memory has
 * grown by as much as the limit before that. Others may have given back as much
 * as the jail has taken, so time counts as well.
 */
static enum tally_verdict judge(
	struct tally *t, int64_t own_bytes, enum tally_waits waits)
{
	int64_t limit = t->limit - t->others_bytes;
	int weighed = t->weighed, late;

	t->weighed = 0;
	if (weighed > 0)
		t->host_known = t->host_asked;
	else if (t->most_bytes <= limit)
		t->host_known = t->host_bytes;
	if (weighed > 0 || !tally_is_doubtful(t))
		t->unknown_ms = 0;
	else if (!t->unknown_ms)
		t->unknown_ms = now_ms();
	if (weighed > 0 && t->weight_bytes <= limit)
		return TALLY_FITS;
	if (weighed > 0 && t->still)
		return TALLY_OVER;
	if (t->most_bytes <= limit)
		return TALLY_FITS;
	late = waits == TALLY_STOPPED ||
	       (waits == TALLY_ASKED &&
		       (t->host_bytes - t->host_known > limit ||
			       (t->unknown_ms &&
				       now_ms() - t->unknown_ms > UNKNOWN_MS)));
	if (weighed == 0 && own_bytes <= limit && !late)
		return TALLY_FITS;
	t->weight_bytes = 0; /* not known any more */
	return own_bytes > limit ? TALLY_OVER : TALLY_DOUBTFUL;
}

enum tally_verdict tally_add(
	struct tally *t, const struct procs *p, enum tally_waits waits)
{
	enum tally_verdict v;
	int64_t files;

	look_at_host(t);
	files = files_bytes(t);
	t->most_bytes =
		p->bytes + p->n * unseen_bytes() + files + kernel_most(t);
	if (waits == TALLY_SHOWN)
		return TALLY_FITS;
	v = judge(t, p->own_bytes + files, waits);
	if (v == TALLY_OVER && t->peak_bytes < t->limit)
		t->peak_bytes = t->limit;
	return v;
}

int tally_is_weighed(const struct tally *t)
{
	return t->weighed > 0;
}

/* The host's growth is not known to be ours. */
int64_t tally_bytes(const struct tally *t)
{
	int64_t grown = t->most_bytes - t->weight_most;
	int64_t bytes = t->weight_bytes + (grown > 0 ? grown : 0);
	int64_t seen = t->most_bytes - kernel_most(t) + t->kernel_ours;

	return t->weight_bytes && bytes < seen ? bytes : seen;
}

int tally_is_doubtful(const struct tally *t)
{
	int64_t limit = t->limit - t->others_bytes;
	int64_t room = limit - t->weight_bytes;

	return t->most_bytes > limit &&
	       (!t->weight_bytes || t->host_bytes - t->host_known > room ||
		       t->most_bytes - t->weight_most > room);
}

/* Each mapping may be all that is left of the largest that was granted. */
static void note_shared(struct tally *t, const struct work_result *a)
{
	int64_t largest = t->memory ? t->memory->largest : 0;

	t->shared_seen = t->shared_left = t->shared_asked;
	if (!a->hidden && (!largest || a->shared < t->shared_asked / largest))
		t->shared_left = a->shared * largest;
}

/* Take the helper's numbers, and, where it could not see everything, the
 * growth of the kernel's memory. The rest of that was not ours. */
void tally_weigh(struct tally *t, const struct work_result *a, int still)
{
	int64_t forks = a->forks_bytes - t->limit / FORKS_DEN;
	int64_t ours = a->kernel_bytes + (forks > 0 ? forks : 0);
	int64_t most = kernel_most(t);

	look_at_host(t);
	if (a->hidden && kernel_most(t) > ours)
		ours = kernel_most(t);
	note_shared(t, a);
	t->kernel_ours = ours;
	t->kernel_others = t->kernel_asked - ours;
	t->most_bytes += kernel_most(t) - most;
	t->weighed = 1;
	t->still = still;
	t->weight_bytes = a->weight_bytes + ours + files_bytes(t);
	t->weight_most = t->most_bytes;
	if (t->weight_bytes > t->peak_bytes &&
		(still || t->weight_bytes <= t->limit))
		t->peak_bytes = t->weight_bytes;
}

void tally_forget(struct tally *t)
{
	t->weight_bytes = 0;
	t->weighed = 0;
}

void tally_note_others(struct tally *t, int64_t bytes)
{
	t->others_bytes = bytes;
}

void tally_asked(struct tally *t)
{
	t->kernel_asked = t->kernel_bytes;
	t->host_asked = t->host_bytes;
	t->shared_asked = t->memory ? t->memory->bytes : 0;
}

void tally_fail(struct tally *t)
{
	t->weighed = -1;
}

/* ---- CPU time ---- */

/*
 * A parent that ignores the deaths of its children takes over nothing of their
 * CPU time, and the sum falls: that much is kept. While a parent does take it
 * over, a single sum may have it twice or not at all, so the middle one of
 * three counts.
 */
void tally_add_cpu(struct tally *t, int64_t sum_ms)
{
	int64_t *s = t->sums_ms, least, most, middle;

	least = s[0] < s[1] ? s[0] : s[1];
	most = s[0] < s[1] ? s[1] : s[0];
	middle = sum_ms < least ? least : sum_ms > most ? most : sum_ms;
	if (middle < s[2])
		t->cpu_gone_ms += s[2] - middle;
	s[0] = s[1];
	s[1] = sum_ms;
	s[2] = middle;
	t->cpu_ms = t->cpu_gone_ms + sum_ms;
}
