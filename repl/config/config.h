/* SPDX-License-Identifier: MIT */
/*
 * config.h - the configuration: files, options and policy
 *
 * The merged configuration, and the source of each value. The table in keys.c
 * says which keys there are.
 */
#ifndef REPL_CONFIG_CONFIG_H
#define REPL_CONFIG_CONFIG_H

#include "jail/spec.h"
#include "keys.h"
#include "repl/text/strlist.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct err;

/* Where the administrator's files live. */
#define CONFIG_SYSTEM_DIR "/etc/cellblock"

/* The source of a value that no file and no option set. */
#define CONFIG_BUILT_IN "built in"

enum config_escapes { ESCAPES_SAFE, ESCAPES_PLAIN, ESCAPES_RAW };
enum config_colour { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };

/* From `lo` to `hi`, both included. */
struct config_range {
	uint32_t lo;
	uint32_t hi;
};

/* Strings that may be absent are NULL, never empty. */
struct config {
	struct limits limits;
	/* [home] */
	char *skeleton; /* directory, or NULL */
	/* [files] */
	struct strlist upload_from; /* directories */
	struct strlist download_to;
	/* [python] */
	struct strlist executable;  /* never empty; first is the default */
	char *packages;		    /* directory, or NULL */
	char *startup;		    /* Python source, or NULL */
	struct strlist env;	    /* NAME=value, as execve wants it */
	struct strlist env_sources; /* one for each of env */
	/* [jail] */
	struct strlist expose;
	struct config_range uids;
	struct strlist require; /* word, or word=word */
	/* [terminal] */
	enum config_escapes escapes;
	enum config_colour colour;
	char *prompt;
	bool banner;
	/* [log] */
	bool syslog;
	char *transcript; /* directory, or NULL */
	/* [policy] */
	bool locked;
	struct strlist commands; /* names, or the one word "all" */
	/* file:line or --set for each key; NULL is built in */
	char *sources[CONFIG_NKEYS];
};

/* All errors, each "file:line: what was expected". */
struct config_errors {
	struct strlist list;
	size_t dropped; /* past CONFIG_ERRORS_MAX, or out of memory */
};

#define CONFIG_ERRORS_MAX 100

/* Where to look. The pointers are borrowed for the call; NULL is "none". */
struct config_where {
	const char *system_dir;	   /* CONFIG_SYSTEM_DIR */
	uid_t system_uid;	   /* its owner: 0, except in tests */
	const char *user_file;	   /* the person's own */
	const char *explicit_file; /* --config */
	const char *home;	   /* ~ in a file of the system */
	const char *own_home;	   /* ~ elsewhere; NULL: the same */
	const char *user;	   /* for users/USER.conf */
	const char *const *groups; /* for groups/GROUP.conf */
	size_t ngroups;
	const char *const *sets; /* SECTION.KEY=VALUE */
	size_t nsets;
	/* true if a session command has that name */
	bool (*is_command)(const char *name);
	bool login;    /* system configuration only */
	bool checking; /* --check-config FILE: judge FILE alone */
};

/* Fill `cfg` with the built-in values. 0, or -1 with errno. */
int config_init(struct config *cfg);

/* Free what `cfg` owns; it may be initialised again. */
void config_fini(struct config *cfg);

/* Read every source in order into `cfg`, which needs no config_init. 0, or -1
 * with at least one error added. The caller ends with config_fini() and
 * config_errors_fini() either way. */
int config_load(struct config *cfg, const struct config_where *where,
	struct config_errors *errors);

/* The source of "section.key" (or "python.env.NAME"), such as
 * "/etc/cellblock/cellblock.conf:4", "--set" or "built in". Borrowed. NULL
 * for a key that does not exist. */
const char *config_source(const struct config *cfg, const char *name);

/* True if the policy allows the session command `name` (without its colon). */
bool config_allows_command(const struct config *cfg, const char *name);

/* True if the administrator locked the configuration. */
bool config_is_bound(const struct config *cfg);

/* The interpreter to run, as an absolute path: the default when `wanted` is
 * NULL, else the one that `wanted` names, as a path or as the last part of a
 * configured one. A locked configuration allows no other than those
 * configured. */
int config_choose_python(const struct config *cfg, const char *wanted,
	char *path, size_t size, struct err *e);

/* The person's own file, from XDG_CONFIG_HOME and HOME (either may be NULL).
 * 0, or -1 when neither gives an absolute path. */
int config_user_file(
	const char *xdg, const char *home, char *path, size_t size);

/* The directory of the history, from XDG_STATE_HOME and HOME. 0 or -1, as
 * above. */
int config_state_dir(
	const char *xdg, const char *home, char *path, size_t size);

/* Print `cfg` as a configuration file, each value with its source. */
void config_print_merged(FILE *f, const struct config *cfg);

/* Record "place: message", made safe for a terminal. Returns -1. */
int config_errors_add(struct config_errors *errors, const char *place,
	const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Print every error after `prefix`, a line each, with `print`. */
void config_errors_print(const struct config_errors *errors, const char *prefix,
	void (*print)(FILE *f, const char *line), FILE *f);

void config_errors_fini(struct config_errors *errors);

#endif
