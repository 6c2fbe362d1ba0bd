/* SPDX-License-Identifier: MIT */
/*
 * jail.c - the times of the jail alone, without the front end
 *
 * Prints "WHAT MEDIAN BEST 95%" lines, tab separated, in milliseconds: until
 * the jail is built, until Python answers, and a cell's round trip.
 */
#include "jail/jail.h"
#include "jail/base/err.h"
#include "jail/spec.h"
#include "table.h"
#include "tests/lib/defaults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JAILS 40
#define CELLS 300

static void fail(const struct err *e)
{
	fprintf(stderr, "%s\n", e->msg);
	exit(1);
}

/* Wait for an event. Returns the time of that moment. */
static double await(struct jail *j, enum jail_event_type wanted)
{
	struct jail_event ev;
	struct err e = {0};

	do {
		if (jail_wait(j, &ev, -1, &e) <= 0)
			fail(&e);
		if (ev.type == JAIL_FAILED)
			fail(&ev.err);
		jail_event_close(&ev);
	} while (ev.type != wanted);
	return now();
}

/* Wait for the tty, and keep it open: closing it would hang up the guest. */
static int await_tty(struct jail *j)
{
	struct jail_event ev;
	struct err e = {0};

	do {
		if (jail_wait(j, &ev, -1, &e) <= 0)
			fail(&e);
	} while (ev.type != JAIL_UP);
	return ev.fds[0];
}

int main(int argc, char **argv)
{
	struct jail_spec spec = {.mode = SPEC_SESSION,
		.python = strdup(argc > 1 ? argv[1] : "/usr/bin/python3"),
		.term = "dumb",
		.uid_lo = 2130706432,
		.uid_hi = 2130771967,
		.rows = 24,
		.cols = 80};
	static double built[JAILS], up[JAILS], cell[CELLS], parked[CELLS];
	struct err e = {0};
	struct jail *j;

	spec.limits = default_limits();
	for (int i = 0; i < JAILS; i++) {
		double start = now();

		if (jail_open(&j, &spec, &e) < 0)
			fail(&e);
		built[i] = await(j, JAIL_BUILT) - start;
		up[i] = await(j, JAIL_UP) - start;
		jail_close(j, &e);
	}
	print("jail: open -> built", built, JAILS);
	print("jail: open -> Python answers", up, JAILS);

	if (jail_open(&j, &spec, &e) < 0)
		fail(&e);
	await_tty(j);
	for (int i = 0; i < CELLS; i++) {
		const struct jail_run run = {.cell = (uint32_t)i + 1,
			.src = "x=1\n",
			.n = 4,
			.report = -1};
		double start = now(), done;

		if (jail_run(j, &run, &e) < 0)
			fail(&e);
		done = await(j, JAIL_DONE);
		cell[i] = done - start;
		parked[i] = await(j, JAIL_PARKED) - done;
	}
	jail_close(j, &e);
	print("jail: a cell, handed over -> done", cell, CELLS);
	print("jail: done -> checkpoint taken, stopped", parked, CELLS);
	return 0;
}
