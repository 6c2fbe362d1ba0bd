/* SPDX-License-Identifier: MIT */
/*
 * deadlines.c - how long the warden waits for what
 *
 * Runs in:   warden
 */
#include "deadlines.h"

const struct deadlines deadlines_default = {
	.build_ms = 20000,
	.boot_ms = 30000,
	.stop_ms = 3000,
	.verify_ms = 50,
	.freeze_ms = 1000,
	.kill_ms = 25000,
	.quiet_ms = 1000,
	.park_ms = 2000,
	.park_again_ms = 700,
	.unhang_ms = 300,
	.end_ms = 400,
	.wake_ms = 4000,
	.fair_look_ms = 200,
	.fair_ms = 30000,
	.ask_ms = 1000,
	.ask_grace_ms = 300,
	.dying_ms = 3000,
	.leave_ms = 50,
	.stack_ms = 1000,
	.stack_silent_ms = 250,
};
