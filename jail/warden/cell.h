/* SPDX-License-Identifier: MIT */
/*
 * cell.h - one cell, from its source to its verdict
 */
#ifndef JAIL_WARDEN_CELL_H
#define JAIL_WARDEN_CELL_H

#include "jail/jail.h"
#include "link.h"

struct warden;

/* Run one cell, whose source is in a file (borrowed), to its end: tells
 * JAIL_DONE, takes a checkpoint, stops the jail. `report_fd` goes to the guest
 * (borrowed; -1: none). 0, or SESSION_OVER. */
LINK_CHECKED int warden_cell_run(struct warden *w, uint32_t cell,
	enum jail_cell kind, int source_fd, int report_fd);

#endif
