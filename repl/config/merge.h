/* SPDX-License-Identifier: MIT */
/*
 * merge.h - one KEY = VALUE, laid over what came before it
 */
#ifndef REPL_CONFIG_MERGE_H
#define REPL_CONFIG_MERGE_H

#include "config.h"
#include "file.h"

#include <stdbool.h>
#include <stddef.h>

/* Most of a name or value that an error repeats. */
#define CONFIG_SHOWN_MAX 60

/* What is being filled, and against what it is held. Everything but
 * `seen_env` is borrowed. */
struct config_merge {
	struct config *cfg;
	const struct config *base; /* the locked values, or NULL */
	const struct config_where *where;
	const char *home; /* what ~ stands for by now */
	struct config_errors *errors;
	bool again;		     /* a key may come twice: --set */
	int seen[CONFIG_NKEYS];	     /* lines in this file; 0 is never */
	struct config_list seen_env; /* variables in this file */
};

/* A new file begins, or with `again` the command line. */
void config_merge_start(struct config_merge *m, bool again);

/* Apply one line; `ctx` is a struct config_merge. */
void config_merge_apply(void *ctx, const struct config_line *line);

/* Say that memory ran out. Returns -1. */
int config_merge_oom(struct config_merge *m, const char *place);

/* Where the variable of that name is in cfg->env; cfg->env.n when nowhere. */
size_t config_env_find(const struct config *cfg, const char *name, size_t len);

#endif
