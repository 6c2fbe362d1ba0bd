/* SPDX-License-Identifier: MIT */
/*
 * limits.h - what one session may do
 *
 * A plain value without pointers. repl/config/config.c fills it from the key
 * table, fork carries it into the warden, plan.c turns it into a plan. Times
 * are milliseconds, sizes bytes, CPU shares thousandths of a core.
 */
#ifndef JAIL_LIMITS_H
#define JAIL_LIMITS_H

#include <stdint.h>

enum limits_background { BACKGROUND_STOP, BACKGROUND_KILL, BACKGROUND_RUN };
enum limits_checkpoint { CHECKPOINT_AUTO, CHECKPOINT_ALWAYS, CHECKPOINT_NEVER };
enum limits_network { NETWORK_NONE, NETWORK_LOOPBACK };

struct limits {
	/* [cell] */
	int64_t cell_wall_ms;  /* timeout */
	int64_t cell_grace_ms; /* grace: interrupt to kill */
	int64_t cell_cpu_ms;   /* cpu: all processes of the cell */
	int64_t output_bytes;  /* output: head shown, per cell */
	int64_t tail_bytes;    /* tail: shown after the cut */
	int64_t source_bytes;  /* source: longest cell */
	enum limits_background background;
	int undo; /* checkpoints kept */
	enum limits_checkpoint checkpoint;
	/* [session] */
	int64_t memory_bytes;
	int processes;
	int cpus_milli;
	int64_t idle_ms;
	int64_t lifetime_ms;
	int per_user;
	/* [home] */
	int64_t home_bytes;
	int home_files;
	/* [files] */
	int64_t max_file_bytes;
	int max_count;
	/* [python] */
	int recursion;
	/* [jail] */
	enum limits_network network;
};

#endif
