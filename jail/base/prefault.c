/* SPDX-License-Identifier: MIT */
/*
 * prefault.c - a process that waits has its pages before it needs them
 *
 * Runs in:   any process of ours that waits for a request
 * Leaves:    memory as it was; the process has pages of its own for it
 */
#include "prefault.h"

#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define STACK_BYTES (32 * 1024)
/* More than we ever have before a request. */
#define HEAP_MOST (1024 * 1024)

static uintptr_t page;
static uintptr_t heap; /* where it begins */

static __attribute__((constructor)) void note_heap(void)
{
	heap = (uintptr_t)sbrk(0);
}

static void populate_range(uintptr_t from, uintptr_t to, int how)
{
	from &= ~(page - 1);
	to = (to + page - 1) & ~(page - 1);
	if (from < to)
		madvise((void *)from, to - from, how);
}

/* Segments that the linker has closed for writing after relocation are only
 * read. */
static int populate_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	const ElfW(Phdr) *ph = info->dlpi_phdr, *end = ph + info->dlpi_phnum;
	uintptr_t closed = 0;

	(void)size;
	(void)arg;
	for (const ElfW(Phdr) *p = ph; p < end; p++)
		if (p->p_type == PT_GNU_RELRO)
			closed = info->dlpi_addr + p->p_vaddr + p->p_memsz;
	closed &= ~(page - 1);
	for (const ElfW(Phdr) *p = ph; p < end; p++) {
		uintptr_t from = info->dlpi_addr + p->p_vaddr;
		uintptr_t to = from + p->p_memsz;

		if (p->p_type != PT_LOAD)
			continue;
		if (p->p_flags & PF_W && closed > from && closed <= to) {
			populate_range(from, closed, PREFAULT_READ);
			from = closed;
		}
		populate_range(from, to,
			p->p_flags & PF_W ? PREFAULT_WRITE : PREFAULT_READ);
	}
	return 0;
}

static void touch_stack(void)
{
	volatile char below[STACK_BYTES];

	for (size_t i = 0; i < sizeof(below); i += page)
		below[i] = 0;
}

void prefault_own(void)
{
	uintptr_t top = (uintptr_t)sbrk(0), own = (uintptr_t)&errno;

	page = (uintptr_t)sysconf(_SC_PAGESIZE);
	dl_iterate_phdr(populate_object, NULL);
	if (top > heap && top - heap <= HEAP_MOST)
		populate_range(heap, top, PREFAULT_WRITE);
	populate_range(own, own + 1, PREFAULT_WRITE);
	touch_stack();
}
