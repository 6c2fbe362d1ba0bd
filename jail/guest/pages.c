/* SPDX-License-Identifier: MIT */
/*
 * pages.c - pages that the next cell would copy are copied before it
 *
 * Runs in:   the guest, around the fork of guest_copy.c
 * Trusts:    nothing, and is not trusted: it can do what the guest can
 * Leaves:    pages that are no longer shared with the copy; all as it was
 *            where there is no /proc, or Linux is older than 5.14
 *
 * Behind a fork the first write to each page copies it, and Python writes to
 * the same two hundred in each cell: that is half of the time of a short one.
 * What is ours alone before a fork has been written since the one before it,
 * or was copied here. It will be written again, so it is copied while nobody
 * waits. Once that would be much, nothing is: the next cell then shows anew
 * what is needed.
 */
#include "pages.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Pages copied at most, and looked at. */
#define TAKE_MAX 1024
#define LOOK_MAX 32768
#define RUNS_MAX 256

/* An entry of /proc/self/pagemap. */
#define PRESENT (UINT64_C(1) << 63)
#define OF_A_FILE (UINT64_C(1) << 61)
#define EXCLUSIVE (UINT64_C(1) << 56)

static struct run {
	uintptr_t from, to;
} runs[RUNS_MAX];
static int nruns;
static size_t taken, looked;
static uint64_t entries[512];
static char text[8192];

static int add(uintptr_t page, size_t size)
{
	if (++taken > TAKE_MAX)
		return -1;
	if (nruns && runs[nruns - 1].to == page) {
		runs[nruns - 1].to += size;
		return 0;
	}
	if (nruns == RUNS_MAX)
		return -1;
	runs[nruns++] = (struct run){page, page + size};
	return 0;
}

/* The pages of one mapping. */
static int look(int pagemap, uintptr_t from, uintptr_t to, size_t size)
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
				add(from, size) < 0)
				return -1;
		looked += n;
	}
	return 0;
}

/* A line of /proc/self/maps: FROM-TO PERMISSIONS ... */
static int look_at_line(int pagemap, const char *line, size_t size)
{
	char *p;
	uintptr_t from = strtoul(line, &p, 16), to;

	if (*p != '-')
		return -1;
	to = strtoul(p + 1, &p, 16);
	if (strncmp(p, " rw", 3) != 0 || p[4] != 'p')
		return 0;
	return look(pagemap, from, to, size);
}

static int look_at_all(int maps, int pagemap)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE), n = 0;
	ssize_t r;

	while ((r = read(maps, text + n, sizeof(text) - 1 - n)) > 0) {
		char *line = text, *end;

		n += (size_t)r;
		text[n] = '\0';
		for (; (end = strchr(line, '\n')) != NULL; line = end + 1)
			if (look_at_line(pagemap, line, size) < 0)
				return -1;
		n -= (size_t)(line - text);
		memmove(text, line, n);
	}
	return r < 0 || n ? -1 : 0;
}

void pages_note(void)
{
	int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	nruns = 0;
	taken = looked = 0;
	if (maps < 0 || pagemap < 0 || look_at_all(maps, pagemap) < 0)
		nruns = 0;
	if (maps >= 0)
		close(maps);
	if (pagemap >= 0)
		close(pagemap);
}

void pages_take(void)
{
	for (int i = 0; i < nruns; i++)
		if (madvise((void *)runs[i].from, runs[i].to - runs[i].from,
			    MADV_POPULATE_WRITE) < 0)
			return;
}
