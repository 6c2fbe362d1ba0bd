/* SPDX-License-Identifier: MIT */
/*
 * config.h - what the administrator, the person and the command line want
 *
 * A merged configuration, key by key, and for every key where its value came
 * from. One table (config_keys.h) says what keys there are.
 */
#ifndef REPL_CONFIG_CONFIG_H
#define REPL_CONFIG_CONFIG_H

#include "jail/limits.h"
#include "keys.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct err;

/* Where the administrator's files live. */
#define CONFIG_SYSTEM_DIR "/etc/cellblock"

/* The source of a value that nobody set. */
#define CONFIG_BUILT_IN "built in"

enum config_escapes { ESCAPES_SAFE, ESCAPES_PLAIN, ESCAPES_RAW };
enum config_colour { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };

/* Owned strings. */
struct config_list {
	char **items;
	size_t n;
};

/* Both ends belong to it. */
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
	struct config_list upload_from; /* directories */
	struct config_list download_to;
	/* [python] */
	struct config_list executable;	/* never empty; first is the default */
	char *packages;			/* directory, or NULL */
	char *startup;			/* Python source, or NULL */
	struct config_list env;		/* NAME=value, as execve wants it */
	struct config_list env_sources; /* one for each of env */
	/* [jail] */
	struct config_list expose;
	struct config_range uids;
	struct config_list require; /* word, or word=word */
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
	struct config_list commands; /* names, or the one word "all" */
	/* file:line or --set for each key; NULL is built in */
	char *sources[CONFIG_NKEYS];
};

/* Everything that was wrong, each "file:line: what was expected". */
struct config_errors {
	char **text;
	size_t n;
	size_t dropped; /* past CONFIG_ERRORS_MAX, or out of memory */
};

#define CONFIG_ERRORS_MAX 100

/* Where to look. Everything is borrowed for the call; NULL is "none". */
struct config_where {
	const char *system_dir;	   /* CONFIG_SYSTEM_DIR */
	uid_t system_uid;	   /* who must own it: 0, but in tests */
	const char *user_file;	   /* of the person who started us */
	const char *explicit_file; /* --config */
	const char *home;	   /* ~ in a file of the system's */
	const char *own_home;	   /* ~ in all else; NULL: the same */
	const char *user;	   /* for users/USER.conf */
	const char *const *groups; /* for groups/GROUP.conf */
	size_t ngroups;
	const char *const *sets; /* SECTION.KEY=VALUE */
	size_t nsets;
	/* whether a command of that name is there to be allowed */
	bool (*is_command)(const char *name);
	bool login;    /* system configuration only */
	bool checking; /* --check-config FILE: judge FILE by itself */
};

/* Fill `cfg` with the built-in values. 0, or -1 with errno. */
int config_init(struct config *cfg);

/* Free what `cfg` owns; it may be initialised again. */
void config_fini(struct config *cfg);

/* Read every source in order into `cfg`, which needs no config_init but
 * always wants config_fini. 0, or -1 with at least one error added. */
int config_load(struct config *cfg, const struct config_where *where,
	struct config_errors *errors);

/* Where "section.key" (or "python.env.NAME") got its value, such as
 * "/etc/cellblock/cellblock.conf:4", "--set" or "built in". Borrowed. NULL
 * for a key that does not exist. */
const char *config_source(const struct config *cfg, const char *name);

/* Whether the session command `name` (without its colon) exists. */
bool config_allows_command(const struct config *cfg, const char *name);

/* The interpreter to run: the default when `wanted` is NULL, else what
 * `wanted` names, as a path or as the last part of a configured one. Locked,
 * only a configured one will do. Writes an absolute path. */
int config_choose_python(const struct config *cfg, const char *wanted,
	char *path, size_t size, struct err *e);

/* The file of the person's own, from XDG_CONFIG_HOME and HOME (either may be
 * NULL). 0, or -1 when there is no absolute one to name. */
int config_user_file(
	const char *xdg, const char *home, char *path, size_t size);

/* The directory where the history and the like are kept, from XDG_STATE_HOME
 * and HOME. 0 or -1, as above. */
int config_state_dir(
	const char *xdg, const char *home, char *path, size_t size);

/* Whether it was the administrator who locked it. */
bool config_is_bound(const struct config *cfg);

/* Print `cfg` as a configuration file, each value with its source. */
void config_check_print(FILE *f, const struct config *cfg);

/* Record "place: message"; what a terminal must not see is escaped. */
void config_errors_add(struct config_errors *errors, const char *place,
	const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Print every error, a line each, after `prefix`. */
void config_errors_print(
	FILE *f, const char *prefix, const struct config_errors *errors);

void config_errors_fini(struct config_errors *errors);

#endif
