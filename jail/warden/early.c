/* SPDX-License-Identifier: MIT */
/*
 * early.c - Python, up before it knows its one cell (SPEC_CELL)
 *
 * Runs in:   warden
 * Trusts:    the driver, as long as it waits: nothing of a request is in the
 *            jail then, and no clock runs
 *
 * Clocks and counters begin when the cell is handed over.
 */
#include "early.h"

#include "guest.h"
#include "jail.h"
#include "jail/base/err.h"
#include "jail/base/io.h"

#include <string.h>

void early_init(struct early *a, struct guest *g, struct warden_jail *j)
{
	*a = (struct early){.guest = g, .jail = j, .outer = {-1, -1, -1, -1}};
}

int early_start(struct early *a, struct err *e)
{
	int inner[PIPES] = {-1, -1, -1, -1};
	int r = pipes_open(inner, a->outer, PIPES, 0, e);

	if (r == 0)
		r = guest_start_cell(a->guest, inner, PIPES, e);
	pipes_drop(inner);
	return r;
}

int early_await(struct early *a, struct err *e)
{
	struct warden_jail_usage u;
	struct guest_message m;
	int r = guest_start_await(a->guest, &m, e);

	if (r < 0)
		return r;
	warden_jail_note_quiet(a->jail, 1);
	warden_jail_measure(a->jail, &u);
	a->cpu_ms = u.cpu_ms;
	return 0;
}

int early_give(struct early *a, int fd, int *outer, struct err *e)
{
	warden_jail_note_quiet(a->jail, 0);
	memcpy(outer, a->outer, sizeof(a->outer));
	return guest_give_cell(a->guest, fd, e);
}
