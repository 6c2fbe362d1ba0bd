/* SPDX-License-Identifier: MIT */
/*
 * ledger.h - what was transferred, and what has changed since
 */
#ifndef REPL_FILES_LEDGER_H
#define REPL_FILES_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct jail_file;
struct jail_files;

/* What a file of the home is to the person. */
enum ledger_status {
	LEDGER_NEW,	   /* made in the jail, never downloaded */
	LEDGER_CHANGED,	   /* since it was uploaded or downloaded */
	LEDGER_UPLOADED,   /* as it was uploaded */
	LEDGER_DOWNLOADED, /* as it was downloaded */
};

struct ledger_entry {
	char *path; /* owned */
	enum ledger_status status;
	int64_t bytes, mtime_ns; /* of the file in the home, then */
	time_t when;
};

/* All zero is empty. Sorted by path. */
struct ledger {
	struct ledger_entry *v;
	size_t n;
};

/* Note that the file was just uploaded or downloaded. Without memory for it the
 * file counts as new. */
void ledger_note(struct ledger *l, const char *path, int64_t bytes,
	int64_t mtime_ns, enum ledger_status status);

/* The status of a file, and since when (0 for LEDGER_NEW). */
enum ledger_status ledger_status(
	const struct ledger *l, const struct jail_file *f, time_t *when);

/* Count the regular files that exist only in the home. The indices of the first
 * `max` go into `which`. */
size_t ledger_unsaved(const struct ledger *l, const struct jail_files *files,
	size_t *which, size_t max);

/* Programs keep such files for themselves: a component begins with a dot. */
bool ledger_is_hidden(const char *path);

void ledger_free(struct ledger *l);

#endif
