/* SPDX-License-Identifier: MIT */
/*
 * limits.c - the built-in limits of a session
 *
 * Runs in:   every process
 * Trusts:    nobody; it only states numbers
 */
#include "limits.h"

void limits_init(struct limits *l)
{
	*l = (struct limits){
		.cell_wall_ms = 10 * 1000,
		.cell_grace_ms = 1000,
		.cell_cpu_ms = 10 * 1000,
		.output_bytes = 1 << 20,
		.tail_bytes = 8 << 10,
		.source_bytes = 1 << 20,
		.background = BACKGROUND_STOP,
		.undo = 1,
		.checkpoint = CHECKPOINT_AUTO,
		.memory_bytes = 512LL << 20,
		.processes = 64,
		.cpus_milli = 1000,
		.idle_ms = 30 * 60 * 1000,
		.lifetime_ms = 12 * 3600 * 1000,
		.per_user = 4,
		.home_bytes = 64LL << 20,
		.home_files = 4096,
		.max_file_bytes = 16LL << 20,
		.max_count = 100,
		.recursion = 1000,
		.network = NETWORK_NONE,
	};
}
