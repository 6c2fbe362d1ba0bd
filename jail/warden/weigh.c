/* SPDX-License-Identifier: MIT */
/*
 * weigh.c - what checkpoints cost, and when they are given up
 *
 * Runs in:   warden, while a cell runs
 * Trusts:    the kernel's counts of pages
 *
 * A checkpoint shares every page with the live guest until one of them writes
 * to it; then the page is copied. Right after parking the live guest has no
 * page for itself (but for the few of copy.c), so what is private to
 * it later, less what it has grown by, was copied: that is both the memory
 * that the checkpoints cost and the copying they have caused. Python writes to
 * what it only reads (reference counts), so a cell that walks through 350 MB
 * of small objects copies 350 MB.
 */
#include "state.h"

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

void warden_weigh_start(struct warden *w)
{
	struct procstat st;

	if (w->nkept == 0 || procs_stat(&w->procs, w->live, &st) < 0)
		return;
	w->faults = st.minor_faults;
	w->rss_bytes = st.rss_bytes;
}

/* Bytes the live guest has copied since it was parked, less where that is not
 * worth asking: counting pages takes a while. */
static int64_t copied_bytes(struct warden *w)
{
	int64_t bytes = 0, grown;
	struct procstat st;

	if (procs_stat(&w->procs, w->live, &st) < 0 ||
		(st.minor_faults - w->faults) * sysconf(_SC_PAGESIZE) <
			FAULTS_MIN_BYTES)
		return 0;
	w->faults = st.minor_faults;
	if (procs_memory(&w->procs, w->live, &bytes, NULL) < 0)
		return 0;
	grown = st.rss_bytes - w->rss_bytes;
	return grown > 0 ? bytes - grown : bytes;
}

static int64_t copy_ms(int64_t bytes)
{
	int64_t pages = bytes / sysconf(_SC_PAGESIZE);

	return (pages * COPY_NS + bytes / 1024 * COPY_KIB_NS) / 1000000;
}

static void give_up_for_memory(struct warden *w)
{
	warden_give_up(w, w->nkept, NO_CHECKPOINT_MEMORY);
	warden_notice(w, "memory is nearly used up: the checkpoint was given "
			 "up · a crash would now lose the variables");
}

static void give_up_for_cost(struct warden *w)
{
	warden_give_up(w, w->nkept, NO_CHECKPOINT_COST);
	w->skip_next = w->skip_next ? w->skip_next * 2 : SKIP_FIRST;
	if (w->skip_next > SKIP_MAX)
		w->skip_next = SKIP_MAX;
	w->skip = w->skip_next;
	w->skip_why = NO_CHECKPOINT_COST;
	if (w->said_cost++)
		return;
	warden_notice(w, "copying memory for checkpoints costs more than it is "
			 "worth here: some cells go without · a crash in one "
			 "would lose the variables");
}

void warden_weigh(struct warden *w, const struct measure *m, int64_t ran_ms)
{
	const struct limits *l = &w->spec->limits;
	int64_t copied, cost_ms;

	if (w->nkept == 0 || !w->live)
		return;
	copied = copied_bytes(w);
	if (copied > l->memory_bytes / PRIVATE_DEN &&
		m->bytes > l->memory_bytes / NEAR_DEN * NEAR_NUM) {
		give_up_for_memory(w);
		return;
	}
	cost_ms = copy_ms(copied);
	if (l->checkpoint == CHECKPOINT_AUTO && cost_ms >= COPY_MIN_MS &&
		cost_ms >= ran_ms / COPY_DEN)
		give_up_for_cost(w);
}

void warden_weigh_hung(struct warden *w)
{
	w->skip = SKIP_FIRST;
	w->skip_why = NO_CHECKPOINT_FAILED;
}

int warden_weigh_skip(struct warden *w)
{
	if (w->skip == 0)
		return 0;
	w->skip--;
	return 1;
}
