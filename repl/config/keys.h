/* SPDX-License-Identifier: MIT */
/*
 * keys.h - the one table of configuration keys
 *
 * The parser, --check-config, :limits, the manual page, the sample file and
 * the shell completions all follow it; tests/unit/test_config.c checks that
 * the last three have not drifted.
 */
#ifndef REPL_CONFIG_KEYS_H
#define REPL_CONFIG_KEYS_H

#include <stddef.h>
#include <stdint.h>

struct config;

/* How a value is written, and what it is stored as. */
enum config_type {
	CONFIG_INT,	 /* int */
	CONFIG_SIZE,	 /* int64_t, bytes */
	CONFIG_TIME,	 /* int64_t, milliseconds */
	CONFIG_SHARE,	 /* int, thousandths */
	CONFIG_BOOL,	 /* bool */
	CONFIG_WORD,	 /* an enum */
	CONFIG_STRING,	 /* char * */
	CONFIG_DIR,	 /* char *, an absolute path */
	CONFIG_DIRS,	 /* struct config_list of absolute paths */
	CONFIG_FILES,	 /* the same, at least one */
	CONFIG_NAMES,	 /* struct config_list of names, or "all" */
	CONFIG_DEMANDS,	 /* struct config_list of words of enforce.h */
	CONFIG_RANGE,	 /* struct config_range */
	CONFIG_VARIABLE, /* python.env.NAME */
};

/* What may still be done to a value that the administrator locked. */
enum config_tighten {
	TIGHTEN_ANY,	/* harmless either way */
	TIGHTEN_LOWER,	/* a smaller number */
	TIGHTEN_HIGHER, /* a larger one; for a switch, on */
	TIGHTEN_RANK,	/* a word of no higher rank */
	TIGHTEN_SUBSET, /* some of the items, or none */
	TIGHTEN_UNION,	/* more items; they add to the locked ones */
	TIGHTEN_NEVER,	/* nothing but the same value */
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
	const char *def; /* as it would be written in a file */
	int64_t min, max;
	enum config_tighten tighten;
	const struct config_word *words; /* ends with a NULL name */
	const char *help;		 /* one line */
};

#define CONFIG_NKEYS 39

extern const struct config_key config_keys[CONFIG_NKEYS];

/* The key, or NULL. "env.ANYTHING" finds the variables' key. */
const struct config_key *config_key_find(const char *section, const char *name);

/* The same for "section.name". */
const struct config_key *config_key_find_full(const char *full);

/* Whether there is such a section. */
int config_section_exists(const char *section);

/* What was probably meant, or NULL when nothing is near. */
const char *config_section_nearest(const char *section);
const struct config_key *config_key_nearest(
	const char *section, const char *name);

/* A key's place in the table. */
size_t config_key_index(const struct config_key *key);

#endif
