/* SPDX-License-Identifier: MIT */
/*
 * merge.h - sources laid one over the other, a KEY = VALUE at a time
 */
#ifndef REPL_CONFIG_MERGE_H
#define REPL_CONFIG_MERGE_H

#include "config.h"
#include "file.h"

#include <stdbool.h>
#include <stddef.h>

/* Bytes of a name or value that an error repeats. */
#define CONFIG_SHOWN_MAX 60

/* The pointers are borrowed; config_merge_fini() frees the rest. */
struct config_merge {
	struct config *cfg;
	const struct config_where *where;
	const char *home; /* what ~ stands for in this source */
	struct config_errors *errors;
	bool locked;		     /* values may only be stricter than base */
	struct config base;	     /* the values when the lock closed */
	bool again;		     /* a key may come twice: --set */
	int seen[CONFIG_NKEYS];	     /* its line in this file; 0 is none */
	struct config_list seen_env; /* variables in this file */
};

/* A new file begins, or with `again` the command line. */
void config_merge_start(struct config_merge *m, bool again);

/* Apply one line; `ctx` is a struct config_merge. */
void config_merge_apply(void *ctx, const struct config_line *line);

/* Let only stricter values pass from here on, if policy.locked is set. */
void config_merge_lock(struct config_merge *m);

/* All sources are read: fit the values that follow others, and refuse those
 * that contradict each other. */
void config_merge_check(struct config_merge *m);

/* Record that memory ran out. Returns -1. */
int config_merge_oom(struct config_merge *m, const char *place);

void config_merge_fini(struct config_merge *m);

#endif
