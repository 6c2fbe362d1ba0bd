/* SPDX-License-Identifier: MIT */
/*
 * early.c - Python, up before it knows its one cell (SPEC_CELL, SPEC_EVAL)
 *
 * Runs in:   warden
 * Trusts:    the driver, as long as it waits: nothing of a request is in the
 *            jail then, and no clock runs
 *
 * Clocks and counters begin when the cell is handed over.
 */
#include "jail/warden/parts.h"

#include "jail/base/err.h"
#include "jail/base/io.h"

#include <string.h>

void early_init(struct early *a, struct guest *g, struct warden_jail *j)
{
	*a = (struct early){.guest = g, .jail = j, .outer = {-1, -1, -1, -1}};
}

int early_start(struct early *a, enum spec_mode mode, struct err *e)
{
	int inner[PIPES] = {-1, -1, -1, -1}, r;

	if (mode == SPEC_EVAL)
		return guest_start_cell(a->guest, NULL, 0, e);
	r = pipes_open(inner, a->outer, PIPES, 0, e);

	if (r == 0)
		r = guest_start_cell(a->guest, inner, PIPES, e);
	pipes_drop(inner);
	return r;
}

void early_note_rest(struct early *a)
{
	struct warden_jail_usage u;

	warden_jail_note_quiet(a->jail, 1);
	warden_jail_measure(a->jail, &u);
	a->cpu_ms = u.cpu_ms;
}

int early_await(struct early *a, struct err *e)
{
	struct guest_message m;
	int r = guest_start_await(a->guest, &m, e);

	if (r == 0)
		early_note_rest(a);
	return r;
}

int early_give_program(struct early *a, int args, const int *inner,
	unsigned tty_bits, struct err *e)
{
	int fds[1 + PIPES_PROGRAM] = {args}, n = 1;

	for (int i = 0; i < PIPES_PROGRAM; i++)
		if (!(tty_bits & 1u << i))
			fds[n++] = inner[i];
	warden_jail_note_quiet(a->jail, 0);
	return guest_give_program(a->guest, tty_bits, fds, n, e);
}

int early_give(struct early *a, int fd, int *outer, struct err *e)
{
	warden_jail_note_quiet(a->jail, 0);
	memcpy(outer, a->outer, sizeof(a->outer));
	return guest_give_cell(a->guest, fd, e);
}
