/* SPDX-License-Identifier: MIT */
/*
 * weigh.c - what checkpoints cost
 *
 * Runs in:   warden, while a cell runs
 * Trusts:    the kernel's counts of pages
 *
 * A checkpoint shares every page with the live guest until one of them writes
 * to it; then the page is copied. Right after parking the live guest has no
 * page for itself (but for the few of jail/guest/copy.c). So what is private
 * to it later, less what it has grown by, was copied: that is both the memory
 * that the checkpoints cost and the copying they have caused. Python writes to
 * what it only reads (reference counts), so a cell that walks through 350 MB
 * of small objects copies 350 MB.
 */
#include "weigh.h"

#include "jail/init/procs.h"

#include <unistd.h>

/* Memory is near its limit from here on, in parts of the limit. */
#define NEAR_NUM 3
#define NEAR_DEN 4
/* Private pages worth giving a checkpoint up for, as a part of the limit. */
#define PRIVATE_DEN 10
/* Bytes of pages, of 4 to 64 KiB, that faulted, before it is worth asking how
 * many of them were copies. */
#define FAULTS_MIN_BYTES (16 << 20)
/* What copying a page costs, and each KiB of it; and the least that is worth a
 * checkpoint. */
#define COPY_NS 5000
#define COPY_KIB_NS 250
#define COPY_MIN_MS 20
/* Copying may take this part of a cell's time. */
#define COPY_DEN 4
/* Cells to go without after that, and at most. */
#define SKIP_FIRST 8
#define SKIP_MAX 64

void weigh_start(struct weigh *w, const struct procs_source *s, pid_t live)
{
	struct procstat st;

	if (procs_stat(s, live, &st) < 0)
		return;
	w->faults = st.minor_faults;
	w->rss_bytes = st.rss_bytes;
}

/* Bytes the live guest has copied since it was parked; 0 where that is not
 * worth asking: counting pages takes a while. */
static int64_t copied_bytes(
	struct weigh *w, const struct procs_source *s, pid_t live)
{
	int64_t bytes = 0, grown;
	struct procstat st;

	if (procs_stat(s, live, &st) < 0 ||
		(st.minor_faults - w->faults) * sysconf(_SC_PAGESIZE) <
			FAULTS_MIN_BYTES)
		return 0;
	w->faults = st.minor_faults;
	if (procs_memory(s, live, &bytes, NULL) < 0)
		return 0;
	grown = st.rss_bytes - w->rss_bytes;
	return grown > 0 ? bytes - grown : bytes;
}

static int64_t copy_ms(int64_t bytes)
{
	int64_t pages = bytes / sysconf(_SC_PAGESIZE);

	return (pages * COPY_NS + bytes / 1024 * COPY_KIB_NS) / 1000000;
}

enum jail_no_checkpoint weigh_look(struct weigh *w,
	const struct procs_source *s, pid_t live, const struct limits *l,
	int64_t used_bytes, int64_t ran_ms)
{
	int64_t copied = copied_bytes(w, s, live), cost_ms = copy_ms(copied);

	if (copied > l->memory_bytes / PRIVATE_DEN &&
		used_bytes > l->memory_bytes / NEAR_DEN * NEAR_NUM)
		return NO_CHECKPOINT_MEMORY;
	if (l->checkpoint != CHECKPOINT_AUTO || cost_ms < COPY_MIN_MS ||
		cost_ms < ran_ms / COPY_DEN)
		return NO_CHECKPOINT_NONE;
	w->skip_next = w->skip_next ? w->skip_next * 2 : SKIP_FIRST;
	if (w->skip_next > SKIP_MAX)
		w->skip_next = SKIP_MAX;
	w->skip = w->skip_next;
	w->skip_why = NO_CHECKPOINT_COST;
	return NO_CHECKPOINT_COST;
}

void weigh_note_hung(struct weigh *w)
{
	w->skip = SKIP_FIRST;
	w->skip_why = NO_CHECKPOINT_FAILED;
}

enum jail_no_checkpoint weigh_skip(struct weigh *w)
{
	if (w->skip == 0)
		return NO_CHECKPOINT_NONE;
	w->skip--;
	return w->skip_why;
}
