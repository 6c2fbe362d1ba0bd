/* SPDX-License-Identifier: MIT */
/*
 * keys.h - the one table of configuration keys
 *
 * The parser, --check-config, :limits, the manual page, the sample file and
 * the shell completions follow it. tests/unit/test_config_docs.c compares the
 * last three with it.
 */
#ifndef REPL_CONFIG_KEYS_H
#define REPL_CONFIG_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;

/* How a value is written, and the member of struct config that holds it. */
enum config_type {
	CONFIG_INT,	 /* int */
	CONFIG_SIZE,	 /* int64_t, bytes */
	CONFIG_TIME,	 /* int64_t, milliseconds */
	CONFIG_SHARE,	 /* int, thousandths */
	CONFIG_BOOL,	 /* bool */
	CONFIG_WORD,	 /* an enum */
	CONFIG_STRING,	 /* char * */
	CONFIG_DIR,	 /* char *, an absolute path */
	CONFIG_DIRS,	 /* struct strlist of absolute paths */
	CONFIG_NAMES,	 /* struct strlist of names, or "all" */
	CONFIG_DEMANDS,	 /* struct strlist of words of enforce.h */
	CONFIG_RANGE,	 /* struct config_range */
	CONFIG_VARIABLE, /* python.env.NAME: struct strlist of NAME=value */
};

/* The changes that a person may still make to a locked value. */
enum config_tighten {
	TIGHTEN_ANY,	/* harmless either way */
	TIGHTEN_LOWER,	/* a smaller number */
	TIGHTEN_HIGHER, /* a larger one; for a switch, on */
	TIGHTEN_RANK,	/* a word of no higher rank */
	TIGHTEN_SUBSET, /* some of the items, or none */
	TIGHTEN_UNION,	/* more items; they add to the locked ones */
	TIGHTEN_NEVER,	/* the same value alone */
};

/* A word of a CONFIG_WORD; the lower the rank, the stricter. */
struct config_word {
	const char *name;
	int value;
	int rank;
};

struct config_key {
	const char *section;
	const char *name;
	enum config_type type;
	size_t offset;	 /* in struct config */
	const char *def; /* as a file would have it */
	int64_t min,
		max; /* of numbers; else bytes of a text, items of a list */
	enum config_tighten tighten;
	const char *help;		 /* one line */
	const struct config_word *words; /* ends with a NULL name */
};

#define CONFIG_NKEYS 39

extern const struct config_key config_keys[CONFIG_NKEYS];

/* A key's place in the table. */
size_t config_keys_index(const struct config_key *key);

/* The key, or NULL. "env.ANYTHING" finds the key of all variables; no name the
 * first key of the section. */
const struct config_key *config_keys_find(
	const char *section, const char *name);

/* The same for "section.name". */
const struct config_key *config_keys_find_full(const char *full);

/* The key that the person probably meant, or without a name one of the section;
 * NULL when nothing is near. */
const struct config_key *config_keys_nearest(
	const char *section, const char *name);

#endif
