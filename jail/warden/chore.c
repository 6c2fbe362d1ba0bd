/* SPDX-License-Identifier: MIT */
/*
 * chore.c - what may have to wait for a guest
 *
 * Runs in:   the warden's stand-in; the warden itself while the jail is stopped
 * Trusts:    the kernel's numbers. A guest that runs can hold the locks of its
 *            memory map and of its tty for as long as it likes
 * Leaves:    the ttys as they are to be
 */
#include "chore.h"

#include "jail/base/io.h"
#include "jail/walls/pty.h"

#include <sys/ioctl.h>
#include <unistd.h>

/* A sample is one look, not a walk that a guest interrupts as it likes. */
#define SAMPLE_MS 20

/* Whether the person has typed nothing that is not read, and the front end has
 * read all that was written: a process that sleeps until its output is read is
 * not idle. */
static int tty_is_empty(const struct chore_place *p)
{
	struct pollfd written = {.fd = p->tty_master, .events = POLLIN};
	int typed = 0;

	return poll(&written, 1, 0) == 0 &&
	       (ioctl(p->tty_slave, FIONREAD, &typed) < 0 || typed == 0);
}

static void look(const struct chore_place *p, const struct chore *q,
	struct chore_result *r)
{
	struct procs all;

	if (q->what & CHORE_WAITS) {
		r->waits = procs_waits_for_tty(&p->procs, p->tty_dev, q->kept.v,
				   q->kept.n) == 1 &&
			   tty_is_empty(p) &&
			   now_ms() - r->began_ms <= SAMPLE_MS;
		r->what |= CHORE_WAITS;
	}
	if (q->what & CHORE_WEIGHT &&
		procs_sample(&p->procs, PROCS_WEIGHT, &all, NULL) == 0) {
		r->weight_bytes = all.bytes;
		r->what |= CHORE_WEIGHT;
	}
	if (q->what & CHORE_PRIVATE) {
		r->private_bytes = procs_private(&p->procs, q->pid);
		if (r->private_bytes >= 0)
			r->what |= CHORE_PRIVATE;
	}
}

/* Reading, unlike FIONREAD, waits for bytes that were written and are still on
 * their way through the kernel. */
static void take_keys(int slave, struct chore_result *r)
{
	ssize_t n;

	pty_set_raw(slave, NULL);
	while (r->nkeys < sizeof(r->keys) &&
		(n = read(slave, r->keys + r->nkeys,
			 sizeof(r->keys) - r->nkeys)) > 0)
		r->nkeys += (size_t)n;
}

void chore_do(const struct chore_place *p, const struct chore *q,
	struct chore_result *r)
{
	r->what = 0;
	r->began_ms = now_ms();
	r->nkeys = 0;
	look(p, q, r);
	if (q->what & CHORE_KEYS)
		take_keys(p->tty_slave, r);
	if (q->what & CHORE_TTYS) {
		pty_set_cooked(p->tty_slave, NULL);
		pty_set_raw(p->line, NULL);
	}
	if (q->what & (CHORE_SIZE | CHORE_TTYS) && q->rows > 0)
		pty_set_size(p->tty_slave, q->rows, q->cols, NULL);
}
