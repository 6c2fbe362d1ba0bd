/* SPDX-License-Identifier: MIT */
/*
 * program.h - one program in a jail of its own
 */
#ifndef JAIL_WARDEN_PROGRAM_H
#define JAIL_WARDEN_PROGRAM_H

#include "link.h"

struct warden;

/* Run the program of the spec to its end, end the jail, tell JAIL_EXITED. 0;
 * SESSION_OVER, also when it could not be started, after JAIL_FAILED. */
LINK_CHECKED int warden_program_run(struct warden *w);

#endif
