/* SPDX-License-Identifier: MIT */
/*
 * weigh.h - what checkpoints cost
 */
#ifndef JAIL_WARDEN_WEIGH_H
#define JAIL_WARDEN_WEIGH_H

#include "jail/jail.h"

#include <stdint.h>
#include <sys/types.h>

struct procs_source;

/* Only weigh.c writes it. */
struct weigh {
	int64_t faults;	     /* the live guest's, when last looked at */
	int64_t rss_bytes;   /* its size when the cell began */
	int skip, skip_next; /* cells to go without a checkpoint */
	enum jail_no_checkpoint skip_why;
};

/* The live guest has a checkpoint, and a cell begins. */
void weigh_start(struct weigh *w, const struct procs_source *s, pid_t live);

/* While the cell runs: why the checkpoints are to be given up now, in a jail
 * that uses so much; or NO_CHECKPOINT_NONE. */
enum jail_no_checkpoint weigh_look(struct weigh *w,
	const struct procs_source *s, pid_t live, const struct limits *l,
	int64_t used_bytes, int64_t ran_ms);

/* Taking one took too long: go without for some cells. */
void weigh_note_hung(struct weigh *w);

/* Why this cell goes without one, or NO_CHECKPOINT_NONE. */
enum jail_no_checkpoint weigh_skip(struct weigh *w);

#endif
