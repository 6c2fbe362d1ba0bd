/* SPDX-License-Identifier: MIT */
/*
 * config.h - the configuration: its keys, their values and sources, its files
 *
 * The parser, --check-config, :limits, the manual page, the sample file and
 * the shell completions follow the table in keys.c. test_config_docs.c
 * compares the last three with it.
 */
#ifndef REPL_CONFIG_CONFIG_H
#define REPL_CONFIG_CONFIG_H

#include "jail/spec.h"
#include "repl/text/text.h"

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

/* ---- the keys: keys.c ---- */

/* The form of a value, and the member of struct config that holds it. */
enum config_type {
	CONFIG_INT,	 /* int */
	CONFIG_SIZE,	 /* int64_t, bytes */
	CONFIG_TIME,	 /* int64_t, milliseconds */
	CONFIG_SHARE,	 /* int, thousandths */
	CONFIG_BOOL,	 /* bool */
	CONFIG_WORD,	 /* an enum */
	CONFIG_MOMENT,	 /* int64_t, seconds since the epoch; 0: never */
	CONFIG_HOUR,	 /* int, minutes of the day, 1 to 1440; 0: never */
	CONFIG_STRING,	 /* char * */
	CONFIG_NAME,	 /* char *, that a directory can have */
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

#define CONFIG_NKEYS 91
/* Most variables of python.env. */
#define CONFIG_VARIABLES_MAX 64

extern const struct config_key config_keys[CONFIG_NKEYS];

/* A key's place in the table. */
size_t config_keys_index(const struct config_key *key);

/* Find a key, or NULL. "env.ANYTHING" finds the key of all variables, a NULL
 * name the first key of the section. */
const struct config_key *config_keys_find(
	const char *section, const char *name);
/* The key called "section.name", or NULL. */
const struct config_key *config_keys_find_full(const char *full);
/* The key that the person probably meant; with a NULL name, a key of the
 * section that they probably meant. NULL when none is near. */
const struct config_key *config_keys_nearest(
	const char *section, const char *name);

/* ---- the merged configuration: config.c ---- */

enum config_escapes { ESCAPES_SAFE, ESCAPES_PLAIN, ESCAPES_RAW };
enum config_maker { MAKER_AUTO, MAKER_REQUIRE, MAKER_OFF };
enum config_keys { KEYS_EMACS, KEYS_VI };
enum config_pictures { PICTURES_AUTO, PICTURES_BLOCKS, PICTURES_NO };
enum config_serve_log {
	SERVE_LOG_OFF,
	SERVE_LOG_ERRORS,
	SERVE_LOG_REQUESTS,
	SERVE_LOG_BODIES
};
enum config_serve_log_to {
	SERVE_LOG_TO_AUTO,
	SERVE_LOG_TO_STDERR,
	SERVE_LOG_TO_JOURNAL
};
enum config_colour { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };

/* From `lo` to `hi`, both included. */
struct config_range {
	uint32_t lo;
	uint32_t hi;
};

/* [serve] */
struct config_serve {
	int concurrent, queue, per_client, spare, clients;
	int sessions, sessions_per_client;
	int64_t request; /* bytes */
	int64_t upload, storage;
	int files;
	int64_t keep_ms, drain_ms, away_ms;
	int answers;
	int64_t answers_size, answers_keep_ms;
	char *directory;
	char *token_file; /* or NULL */
	char *name;	  /* or NULL: that of the host */
	enum config_serve_log log;
	enum config_serve_log_to log_to;
};

/* [lab] */
struct config_lab {
	char *course, *exercise; /* names; or NULL */
	char *submit;		 /* directory, with {course}; or NULL */
	int64_t due_s;		 /* the deadline; 0: none */
	int64_t quota;		 /* bytes */
};

/* Strings that may be absent are NULL, never empty. */
struct config {
	struct limits limits;
	enum config_maker maker; /* [session] */
	/* [home] */
	char *skeleton; /* directory, or NULL */
	/* [files] */
	char *pattern;		    /* of files in an answer */
	struct strlist upload_from; /* directories */
	struct strlist download_to;
	bool remote;  /* scp, sftp and rsync over ssh are served */
	bool history; /* of earlier sessions */
	bool share;   /* programs over ssh run in the home of a session */
	/* [python] */
	struct strlist executable;  /* never empty; first is the default */
	struct strlist packages;    /* directories */
	char *startup;		    /* Python source, or NULL */
	struct strlist env;	    /* NAME=value, as execve wants it */
	struct strlist env_sources; /* one for each of env */
	/* [jail] */
	struct strlist expose;
	struct config_range uids;
	struct strlist require; /* word, or word=word */
	struct config_serve serve;
	/* [maker] */
	int64_t all_memory; /* 0: as much as the host has */
	int64_t reserve; /* of the host's memory, for others than sessions */
	int all_sessions;
	int spares;  /* of each kind */
	char *hosts; /* directory, or NULL */
	char *reach; /* or NULL: "ssh " and the name of the host */
	bool drain;
	struct config_lab lab;
	/* [session] */
	int64_t linger_ms; /* without a terminal; 0: not at all */
	int until_min;	   /* of the day: the end of all sessions; 0: none */
	bool attach;	   /* a terminal may come to a running session */
	bool confirm;	   /* Ctrl-D asks before it loses variables */
	/* [terminal] */
	enum config_escapes escapes;
	enum config_colour colour;
	enum config_pictures pictures;
	enum config_keys keys;
	char *prompt;
	bool banner, suggest;
	/* [log] */
	bool syslog;
	char *transcript; /* directory, or NULL */
	char *accounting; /* file, or NULL */
	/* [exam] */
	int64_t exam_begin_s, exam_end_s; /* 0: none. Then limits.until_s is
					   * the end */
	char *exam_hand_in;		  /* pattern; NULL: nothing */
	/* [policy] */
	bool locked;
	bool programs;		 /* of a login */
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

struct config_line;

/* The sources. The pointers are borrowed for the call; NULL is "none". */
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
	const struct config_line *lines; /* of a plan (repl/grade) */
	size_t nlines;
	const char *const *sets; /* SECTION.KEY=VALUE */
	size_t nsets;
	/* true if a session command has that name */
	bool (*is_command)(const char *name);
	bool login;    /* system configuration only */
	bool checking; /* --check-config FILE: judge FILE alone */
};

/* Fill `cfg` with the built-in values. 0, or -1 with errno. */
int config_init(struct config *cfg);
/* Free the values; `cfg` may be initialised again. */
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

/* The largest home.size beside this session.memory, unless it was asked for. */
int64_t config_home_beside(int64_t memory);

/* The source of "section.key", or NULL if the value is built in. */
const char *config_set_in(const struct config *cfg, const char *name);

/* True if the policy allows the session command `name` (without its colon). */
bool config_allows_command(const struct config *cfg, const char *name);
/* Refuse an operation that does what the session command `name` does, if the
 * policy does not allow that command. NULL: no command does the same. 0, or -1
 * with e. */
int config_check_command(
	const struct config *cfg, const char *name, struct err *e);
/* True if the administrator locked the configuration. */
bool config_is_bound(const struct config *cfg);

/* Append the prompt for cell `n`: `format` is terminal.prompt, in which {n}
 * stands for the number, {left} for `left`, and {{ and }} for a brace. 0, or -1
 * with e. */
int config_value_prompt(struct strbuf *b, const char *format, uint32_t n,
	const char *left, struct err *e);

/* True if a source sets files.max_count, which then limits a person's
 * transfers. Otherwise home.files limits them. */
bool config_counts_transfers(const struct config *cfg);

/* Write the absolute path of the interpreter to run: the default when `wanted`
 * is NULL, else the one that `wanted` names, as a path or as the last part of a
 * configured path. A locked configuration allows only configured interpreters.
 * 0, or -1 with e. */
int config_choose_python(const struct config *cfg, const char *wanted,
	char *path, size_t size, struct err *e);

/* The person's own file, from XDG_CONFIG_HOME and HOME (either may be NULL);
 * the directory of the history, from XDG_STATE_HOME and HOME. 0, or -1 when
 * neither gives an absolute path. */
int config_user_file(
	const char *xdg, const char *home, char *path, size_t size);
int config_state_dir(
	const char *xdg, const char *home, char *path, size_t size);

/* Print `cfg` as a configuration file, each value with its source. */
void config_print_merged(FILE *f, const struct config *cfg);

/* ---- errors.c ---- */

/* Record "place: message", made safe for a terminal. Returns -1. */
int config_errors_add(struct config_errors *errors, const char *place,
	const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Print every error to standard error, a line each, with `print`. */
void config_errors_print(const struct config_errors *errors,
	void (*print)(FILE *f, const char *line));
void config_errors_fini(struct config_errors *errors);

/* ---- exam.c ---- */

/* True if there is an exam, at whatever time. */
bool exam_is_set(const struct config *cfg);

/* True if a session's home is handed in at its end. */
bool exam_hands_in(const struct config *cfg);

/* True if nothing of a session that ends at when_s is handed in, because the
 * deadline was before. */
bool exam_is_late(const struct config *cfg, int64_t when_s);

/* Have what begins now end at session.until, unless an exam ends it. */
void exam_end_day(const struct config *cfg, struct limits *limits);

/* Refuse what is before or after the exam, if there is one. 0, or -1 with e. */
int exam_check(const struct config *cfg, struct err *e);

/* ---- one value: value.c ---- */

/* Longest value. A line of a file is shorter; --set may be longer. */
#define CONFIG_VALUE_MAX 4095

union config_value {
	int64_t n;  /* also a switch or a word */
	char *text; /* NULL when absent */
	struct strlist list;
	struct config_range range;
};

/* Parse `text` for `key`; `home` is what ~ stands for, or NULL. 0, or -1 with
 * "expected …" in `e`. The text of a variable is a list of one item. The caller
 * ends with config_value_fini() either way. */
int config_value_parse(union config_value *v, const struct config_key *key,
	const char *text, const char *home, struct err *e);
void config_value_fini(union config_value *v, const struct config_key *key);

/* True if a key that comes again in a file adds to its value. */
bool config_value_is_list(const struct config_key *key);
/* True if the key, of a number or a word, may have the value `n`. */
bool config_value_may_be(const struct config_key *key, int64_t n);

/* Move `v` into `cfg` and free the value there. `v` is empty afterwards. */
void config_value_store(struct config *cfg, const struct config_key *key,
	union config_value *v);
/* Append the items of `v` to the list in `cfg`. 0, or -1 with errno: E2BIG when
 * the list would be longer than its key allows. */
int config_value_append(struct config *cfg, const struct config_key *key,
	const union config_value *v);
/* Copy the value of `key`; that of `to` is overwritten, not freed. 0, or -1
 * with errno. */
int config_value_copy(struct config *to, const struct config *from,
	const struct config_key *key);

/* True if `v` is no looser than the value in `base`. */
bool config_value_tightens(const struct config *base,
	const struct config_key *key, const union config_value *v);
/* The number that `cfg` has for `key`; a key of another type has none. */
int64_t config_value_number(
	const struct config *cfg, const struct config_key *key);

/* Write `n` as a file would have it, such as 512M or 10s. Returns `buf`, or a
 * constant. */
const char *config_value_format_number(
	const struct config_key *key, int64_t n, char *buf, size_t size);
/* Write the value that `cfg` has for `key` as a file would have it. A value
 * that does not fit ends in "...". Returns `buf`. */
const char *config_value_format(const struct config *cfg,
	const struct config_key *key, char *buf, size_t size);
/* Append that text to `b`. */
void config_value_write(const struct config *cfg, const struct config_key *key,
	struct strbuf *b);

/* Append `text` as a file would have it, in quotes if it needs them: as a
 * value, as one item of a list, or before a comment. */
enum config_value_quotes { QUOTES_VALUE, QUOTES_ITEM, QUOTES_COMMENTED };
void config_value_quote(
	struct strbuf *b, const char *text, enum config_value_quotes when);

/* ---- one file: file.c ---- */

/* Largest file, and longest line in it. */
#define CONFIG_FILE_MAX (1 << 20)
#define CONFIG_LINE_MAX 190

/* The condition for reading a file. */
enum config_trust {
	CONFIG_TRUST_SYSTEM, /* owned by `uid`, writable by it alone, no link */
	CONFIG_TRUST_OWN,    /* owned by the person or root */
	CONFIG_TRUST_NAMED,  /* any regular file: the person named it */
};

/* A file to read. The pointers are borrowed. */
struct config_file {
	int dirfd;	   /* where `name` is resolved */
	const char *name;  /* of the file in there */
	const char *shown; /* its name in errors about its lines */
	const char *asked; /* its name in errors about reading it, behind the
			    * option that named it, if one did */
	enum config_trust trust;
	uid_t uid; /* for CONFIG_TRUST_SYSTEM */
	/* True for the sections that a file of another kind has; NULL: those of
	 * the configuration. */
	bool (*knows)(const char *section);
};

/* One KEY = VALUE; borrowed for the call. */
struct config_line {
	const char *place; /* file:line */
	const char *section;
	const char *name;
	const char *value;
	int line;
	bool commented; /* a comment follows the value */
};

/* Read the file, if there is one, and hand each KEY = VALUE to `take`. Any
 * other line is an error. An unknown section is one error, and we skip its
 * keys. */
void config_file_read(const struct config_file *file,
	void (*take)(void *ctx, const struct config_line *line), void *ctx,
	struct config_errors *errors);

/* Open a directory of the administrator's files; `shown` is its name in errors.
 * 1 with a descriptor; 0 when there is none; -1 with an error added. */
int config_file_open_dir(int dirfd, const char *name, const char *shown,
	uid_t uid, int *fd, struct config_errors *errors);

#endif
