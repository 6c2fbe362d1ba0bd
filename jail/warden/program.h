/* SPDX-License-Identifier: MIT */
/*
 * program.h - one program in a jail of its own
 */
#ifndef JAIL_WARDEN_PROGRAM_H
#define JAIL_WARDEN_PROGRAM_H

#include "link.h"

struct warden;

/* Run a program to its end, tell JAIL_EXITED when none of its processes is
 * left. The jail need not be built yet at the start. `args` holds its
 * arguments, or the cell (borrowed, wire.h); `wall_ms` may shorten
 * cell.timeout; `merged`: stdout and stderr are one pipe. 0; SESSION_OVER, also
 * when it could not be started, after JAIL_FAILED. */
LINK_CHECKED int warden_program_run(
	struct warden *w, int args, int64_t wall_ms, int merged);

#endif
