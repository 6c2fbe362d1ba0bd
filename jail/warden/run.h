/* SPDX-License-Identifier: MIT */
/*
 * run.h - a running cell, as the two files that deal with it share it
 */
#ifndef JAIL_WARDEN_RUN_H
#define JAIL_WARDEN_RUN_H

#include "state.h"

struct run {
	struct jail_done d;
	char *src;
	size_t n, at;
	int64_t start_ms, deadline_ms;
	int64_t kill_ms; /* 0 until it was interrupted */
	int64_t tick_ms, looked_ms, rested_ms;
	int64_t cpu_start_ms;
	int64_t oom_start, fork_fails_start;
	int slots_peak; /* of what the process limit counts, as far as seen */
	int took;	/* its source arrived */
	int over;
};

/* ---- warden_end.c ---- */

/* Keys that the cell did not read go back to the editor: they are taken from
 * the tty without waiting, and never run by themselves. */
void run_return_keys(struct warden *w);

/* It is over: recover what has to be, tell JAIL_DONE, take a checkpoint. */
void run_finish(struct warden *w, struct run *r);

#endif
