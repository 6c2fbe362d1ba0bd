/* SPDX-License-Identifier: MIT */
/*
 * keys.c - the one table of configuration keys
 *
 * Runs in:   front end, before the warden is forked
 * Trusts:    nobody; it only states facts and looks them up
 *
 * jail.uids starts at 0x7f000000 because everything below is spoken for:
 * people and services up to 60000, systemd's dynamic users up to 65519,
 * nobody and the invalid ids at 65534 and 65535, subordinate ids from useradd
 * up to 600100000, containers of systemd-nspawn up to 1879048191, directory
 * users mapped by SSSD up to 2000200000. From 2147352576 on systemd keeps
 * foreign ids, and from 2^31 on some programs see a negative number.
 */
#include "keys.h"

#include "config.h"

#include <string.h>

#define KIB 1024LL
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define SECOND 1000LL
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)

#define LIMIT(member) offsetof(struct config, limits.member)
#define FIELD(member) offsetof(struct config, member)

static const struct config_word background_words[] = {
	{"stop", BACKGROUND_STOP, 1},
	{"kill", BACKGROUND_KILL, 0},
	{"run", BACKGROUND_RUN, 2},
	{NULL, 0, 0},
};

static const struct config_word checkpoint_words[] = {
	{"auto", CHECKPOINT_AUTO, 0},
	{"always", CHECKPOINT_ALWAYS, 0},
	{"never", CHECKPOINT_NEVER, 0},
	{NULL, 0, 0},
};

static const struct config_word network_words[] = {
	{"none", NETWORK_NONE, 0},
	{"loopback", NETWORK_LOOPBACK, 1},
	{NULL, 0, 0},
};

static const struct config_word escapes_words[] = {
	{"safe", ESCAPES_SAFE, 1},
	{"plain", ESCAPES_PLAIN, 0},
	{"raw", ESCAPES_RAW, 2},
	{NULL, 0, 0},
};

static const struct config_word colour_words[] = {
	{"auto", COLOUR_AUTO, 0},
	{"always", COLOUR_ALWAYS, 0},
	{"never", COLOUR_NEVER, 0},
	{NULL, 0, 0},
};

/* clang-format off */
const struct config_key config_keys[CONFIG_NKEYS] = {
	{"cell", "timeout", CONFIG_TIME, LIMIT(cell_wall_ms), "10s",
		10, 24 * HOUR, TIGHTEN_LOWER, NULL,
		"wall clock for each cell"},
	{"cell", "grace", CONFIG_TIME, LIMIT(cell_grace_ms), "1s",
		0, MINUTE, TIGHTEN_LOWER, NULL,
		"time from the interrupt to the kill"},
	{"cell", "cpu", CONFIG_TIME, LIMIT(cell_cpu_ms), "10s",
		10, 24 * HOUR, TIGHTEN_LOWER, NULL,
		"CPU time for each cell, all its processes together"},
	{"cell", "output", CONFIG_SIZE, LIMIT(output_bytes), "1M",
		0, GIB, TIGHTEN_LOWER, NULL,
		"output shown before the rest is only counted"},
	{"cell", "tail", CONFIG_SIZE, LIMIT(tail_bytes), "8K",
		0, MIB, TIGHTEN_LOWER, NULL,
		"last output shown after a cut"},
	{"cell", "source", CONFIG_SIZE, LIMIT(source_bytes), "1M",
		1, 16 * MIB, TIGHTEN_LOWER, NULL,
		"longest cell"},
	{"cell", "background", CONFIG_WORD, LIMIT(background), "stop",
		0, 0, TIGHTEN_RANK, background_words,
		"what becomes of running processes between cells"},
	{"cell", "undo", CONFIG_INT, LIMIT(undo), "1",
		0, 16, TIGHTEN_LOWER, NULL,
		"checkpoints kept for :undo"},
	{"cell", "checkpoint", CONFIG_WORD, LIMIT(checkpoint), "auto",
		0, 0, TIGHTEN_ANY, checkpoint_words,
		"when to take a checkpoint after a cell"},
	{"session", "memory", CONFIG_SIZE, LIMIT(memory_bytes), "512M",
		16 * MIB, 1024 * GIB, TIGHTEN_LOWER, NULL,
		"memory for the whole jail"},
	{"session", "processes", CONFIG_INT, LIMIT(processes), "64",
		1, 32768, TIGHTEN_LOWER, NULL,
		"processes and threads for the whole jail"},
	{"session", "cpus", CONFIG_SHARE, LIMIT(cpus_milli), "1.0",
		10, 1024 * 1000, TIGHTEN_LOWER, NULL,
		"processor cores for the whole jail"},
	{"session", "idle", CONFIG_TIME, LIMIT(idle_ms), "30m",
		SECOND, 168 * HOUR, TIGHTEN_LOWER, NULL,
		"end a session that waits this long for the person"},
	{"session", "lifetime", CONFIG_TIME, LIMIT(lifetime_ms), "12h",
		SECOND, 720 * HOUR, TIGHTEN_LOWER, NULL,
		"end a session after this long"},
	{"session", "per_user", CONFIG_INT, LIMIT(per_user), "4",
		1, 1000, TIGHTEN_LOWER, NULL,
		"sessions one person may have at once"},
	{"home", "size", CONFIG_SIZE, LIMIT(home_bytes), "64M",
		64 * KIB, 1024 * GIB, TIGHTEN_LOWER, NULL,
		"bytes the home may hold"},
	{"home", "files", CONFIG_INT, LIMIT(home_files), "4096",
		16, 10 * 1000 * 1000, TIGHTEN_LOWER, NULL,
		"files and directories the home may hold"},
	{"home", "skeleton", CONFIG_DIR, FIELD(skeleton), "",
		0, 0, TIGHTEN_NEVER, NULL,
		"directory copied into the home at the start"},
	{"files", "max_file", CONFIG_SIZE, LIMIT(max_file_bytes), "16M",
		0, 1024 * GIB, TIGHTEN_LOWER, NULL,
		"largest file of a transfer"},
	{"files", "max_count", CONFIG_INT, LIMIT(max_count), "100",
		0, 1000 * 1000, TIGHTEN_LOWER, NULL,
		"most files of a transfer"},
	{"files", "upload_from", CONFIG_DIRS, FIELD(upload_from), "",
		0, 64, TIGHTEN_SUBSET, NULL,
		"host directories a locked session may upload from"},
	{"files", "download_to", CONFIG_DIRS, FIELD(download_to), "",
		0, 64, TIGHTEN_SUBSET, NULL,
		"host directories a locked session may download to"},
	{"python", "executable", CONFIG_FILES, FIELD(executable),
		"/usr/bin/python3", 1, 64, TIGHTEN_SUBSET, NULL,
		"interpreters; the first is the default"},
	{"python", "packages", CONFIG_DIR, FIELD(packages), "",
		0, 0, TIGHTEN_NEVER, NULL,
		"directory of packages, read-only in the jail"},
	{"python", "startup", CONFIG_STRING, FIELD(startup), "",
		0, 4096, TIGHTEN_ANY, NULL,
		"a cell run at the start of a session"},
	{"python", "env.NAME", CONFIG_VARIABLE, FIELD(env), "",
		0, 64, TIGHTEN_NEVER, NULL,
		"a variable in the environment of Python"},
	{"python", "recursion", CONFIG_INT, LIMIT(recursion), "1000",
		50, 1000 * 1000, TIGHTEN_LOWER, NULL,
		"Python's recursion limit"},
	{"jail", "expose", CONFIG_DIRS, FIELD(expose), "",
		0, 64, TIGHTEN_SUBSET, NULL,
		"host files and directories shown read-only in the jail"},
	{"jail", "network", CONFIG_WORD, LIMIT(network), "none",
		0, 0, TIGHTEN_RANK, network_words,
		"no interface at all, or the jail's own loopback"},
	{"jail", "uids", CONFIG_RANGE, FIELD(uids), "2130706432-2130771967",
		1000, 4294967293LL, TIGHTEN_NEVER, NULL,
		"host ids for the jails of sessions started by root"},
	{"jail", "require", CONFIG_DEMANDS, FIELD(require), "",
		0, 64, TIGHTEN_UNION, NULL,
		"what this host must enforce, or nothing starts"},
	{"terminal", "escapes", CONFIG_WORD, FIELD(escapes), "safe",
		0, 0, TIGHTEN_RANK, escapes_words,
		"which terminal sequences of a cell pass"},
	{"terminal", "prompt", CONFIG_STRING, FIELD(prompt), "\">>> \"",
		0, 64, TIGHTEN_ANY, NULL,
		"the prompt"},
	{"terminal", "colour", CONFIG_WORD, FIELD(colour), "auto",
		0, 0, TIGHTEN_ANY, colour_words,
		"colour of our own lines"},
	{"terminal", "banner", CONFIG_BOOL, FIELD(banner), "yes",
		0, 0, TIGHTEN_ANY, NULL,
		"greet with version and limits"},
	{"log", "syslog", CONFIG_BOOL, FIELD(syslog), "yes",
		0, 0, TIGHTEN_HIGHER, NULL,
		"record who, when and which limit struck"},
	{"log", "transcript", CONFIG_DIR, FIELD(transcript), "",
		0, 0, TIGHTEN_NEVER, NULL,
		"directory for transcripts of sessions"},
	{"policy", "locked", CONFIG_BOOL, FIELD(locked), "no",
		0, 0, TIGHTEN_HIGHER, NULL,
		"the person's own settings may only be stricter"},
	{"policy", "commands", CONFIG_NAMES, FIELD(commands), "all",
		0, 64, TIGHTEN_SUBSET, NULL,
		"which : commands exist"},
};
/* clang-format on */

size_t config_key_index(const struct config_key *key)
{
	return (size_t)(key - config_keys);
}

static int key_matches(const struct config_key *k, const char *name)
{
	if (k->type == CONFIG_VARIABLE)
		return !strncmp(name, "env.", 4);
	return !strcmp(k->name, name);
}

const struct config_key *config_key_find(const char *section, const char *name)
{
	for (size_t i = 0; i < CONFIG_NKEYS; i++) {
		const struct config_key *k = &config_keys[i];

		if (!strcmp(k->section, section) && key_matches(k, name))
			return k;
	}
	return NULL;
}

const struct config_key *config_key_find_full(const char *full)
{
	const char *dot = strchr(full, '.');
	char section[32];

	if (!dot || (size_t)(dot - full) >= sizeof(section))
		return NULL;
	memcpy(section, full, (size_t)(dot - full));
	section[dot - full] = '\0';
	return config_key_find(section, dot + 1);
}

int config_section_exists(const char *section)
{
	for (size_t i = 0; i < CONFIG_NKEYS; i++)
		if (!strcmp(config_keys[i].section, section))
			return 1;
	return 0;
}

/* Levenshtein distance, of names no longer than a key's may be. */
static size_t distance(const char *a, const char *b)
{
	enum { MAX = 32 };
	size_t row[MAX + 1], la = strlen(a), lb = strlen(b);

	if (la > MAX || lb > MAX)
		return SIZE_MAX / 4;
	for (size_t j = 0; j <= lb; j++)
		row[j] = j;
	for (size_t i = 1; i <= la; i++) {
		size_t corner = row[0];

		row[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			size_t best = corner + (a[i - 1] != b[j - 1]);

			if (best > row[j] + 1)
				best = row[j] + 1;
			if (best > row[j - 1] + 1)
				best = row[j - 1] + 1;
			corner = row[j];
			row[j] = best;
		}
	}
	return row[lb];
}

/* Near enough to be a slip: a third of the word, but one at least. */
static int is_near(size_t d, const char *word)
{
	return d <= 1 || d * 3 <= strlen(word);
}

const char *config_section_nearest(const char *section)
{
	const char *best = NULL;
	size_t best_d = SIZE_MAX;

	for (size_t i = 0; i < CONFIG_NKEYS; i++) {
		size_t d = distance(section, config_keys[i].section);

		if (d < best_d) {
			best_d = d;
			best = config_keys[i].section;
		}
	}
	return is_near(best_d, section) ? best : NULL;
}

/* The right name in another section beats a near one in this. */
const struct config_key *config_key_nearest(
	const char *section, const char *name)
{
	const struct config_key *best = NULL;
	size_t best_d = SIZE_MAX;

	for (size_t i = 0; i < CONFIG_NKEYS; i++) {
		const struct config_key *k = &config_keys[i];
		size_t d = 2 * distance(name, k->name) +
			   !!strcmp(section, k->section);

		if (d < best_d) {
			best_d = d;
			best = k;
		}
	}
	return is_near(best_d / 2, name) ? best : NULL;
}
