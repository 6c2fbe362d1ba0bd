/* SPDX-License-Identifier: MIT */
/*
 * work.c - what may have to wait for a guest
 *
 * Runs in:   the warden's helper; the warden itself while the jail is stopped
 * Trusts:    the kernel's numbers. A guest that runs can hold the locks of its
 *            memory map, of an exec and of its tty for as long as it likes
 * Leaves:    the ttys as they are to be
 */
#include "jail/warden/look/look.h"

#include "jail/base/io.h"
#include "jail/walls/walls.h"

#include <sys/ioctl.h>
#include <unistd.h>

/* A sample is one look, not a walk that a guest interrupts as it likes. */
#define SAMPLE_MS 20
/* Bytes of pages, of 4 to 64 KiB, that faulted, before it is worth counting
 * those that are private. */
#define FAULTS_MIN_BYTES (16 << 20)

/* True if the person has typed nothing that is not read, and the front end has
 * read all that was written: a process that sleeps until its output is read is
 * not idle. */
static int tty_is_empty(const struct work_place *p)
{
	struct pollfd ends[] = {
		{.fd = p->tty_master, .events = POLLIN},
		{.fd = p->tty_slave, .events = POLLIN},
	};
	int typed = 0;

	/* poll(), unlike FIONREAD, waits for bytes that were written and are
	 * still on their way through the kernel. */
	poll(ends, 2, 0);
	return !ends[0].revents &&
	       (ioctl(p->tty_slave, FIONREAD, &typed) < 0 || typed == 0);
}

static void sum_processes(
	const struct work_place *p, const struct work *q, struct work_result *r)
{
	unsigned flags = (q->what & WORK_WEIGHT ? PROCS_WEIGHT : 0) |
			 (q->what & WORK_CPU ? PROCS_CPU : 0);
	struct procs_source from = p->procs;
	struct procs all;

	from.ctl = q->ctl;
	if (procs_sample(&from, flags, &all, NULL) < 0)
		return;
	r->what |= q->what & (WORK_WEIGHT | WORK_CPU);
	r->weight_bytes = all.bytes;
	r->kernel_bytes = all.kernel_bytes;
	r->forks_bytes = all.forks_bytes;
	r->hidden = all.hidden;
	r->shared = all.shared;
	r->cpu_ms = all.cpu_ms + all.init_ms;
}

static void count_private(
	const struct work_place *p, const struct work *q, struct work_result *r)
{
	struct procs_pages now;
	struct procstat st;

	if (procs_stat(&p->procs, q->pid, &st) < 0)
		return;
	r->what |= WORK_PRIVATE;
	r->faults = st.minor_faults;
	r->private_bytes = -1;
	if (st.minor_faults - q->faults <
			FAULTS_MIN_BYTES / sysconf(_SC_PAGESIZE) ||
		procs_pages(&p->procs, q->pid, &now) < 0)
		return;
	r->size_bytes = now.all;
	r->private_bytes = now.private;
}

static void sample_waits(
	const struct work_place *p, const struct work *q, struct work_result *r)
{
	if (q->what & WORK_WAITS) {
		/* Before, too: a process that has just been given a line may
		 * read it between the two. */
		r->waits = tty_is_empty(p) &&
			   procs_waits_for_tty(&p->procs, p->tty_dev, q->kept.v,
				   q->kept.n) == 1 &&
			   tty_is_empty(p) &&
			   now_ms() - r->began_ms <= SAMPLE_MS;
		r->what |= WORK_WAITS;
	}
	if (q->what & (WORK_WEIGHT | WORK_CPU))
		sum_processes(p, q, r);
	if (q->what & WORK_PRIVATE)
		count_private(p, q, r);
}

/* Reading waits for bytes on their way, as poll() does. Processes that a cell
 * has left may print meanwhile, and until the next cell. */
static void take_keys(int slave, struct work_result *r)
{
	ssize_t n;

	pty_set_keys(slave, NULL);
	while (r->nkeys < sizeof(r->keys) &&
		(n = read(slave, r->keys + r->nkeys,
			 sizeof(r->keys) - r->nkeys)) > 0)
		r->nkeys += (size_t)n;
}

void work_do(
	const struct work_place *p, const struct work *q, struct work_result *r)
{
	r->what = 0;
	r->began_ms = now_ms();
	r->nkeys = 0;
	sample_waits(p, q, r);
	if (q->what & WORK_KEYS)
		take_keys(p->tty_slave, r);
	if (q->what & WORK_TTYS) {
		pty_set_cooked(p->tty_slave, NULL);
		pty_set_raw(p->line, NULL);
	}
	if (q->what & (WORK_SIZE | WORK_TTYS) && q->rows > 0)
		pty_set_size(p->tty_slave, q->rows, q->cols, NULL);
}
