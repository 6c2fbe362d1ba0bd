/* SPDX-License-Identifier: MIT */
/*
 * ledger.h - what was uploaded and downloaded, and what has changed since
 */
#ifndef REPL_FILES_LEDGER_H
#define REPL_FILES_LEDGER_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct jail_file;
struct jail_files;

enum ledger_what { LEDGER_UPLOADED, LEDGER_DOWNLOADED };

struct ledger_entry {
	char *path; /* owned */
	enum ledger_what what;
	int64_t bytes, mtime; /* of the file in the home, then */
	time_t when;
};

/* All zero is empty. */
struct ledger {
	struct ledger_entry *v;
	size_t n;
};

/* What a file of the home is to the person. */
enum ledger_status {
	LEDGER_IS_NEW,	      /* made in the jail, never downloaded */
	LEDGER_IS_CHANGED,    /* since it was uploaded or downloaded */
	LEDGER_IS_UPLOADED,   /* as it was uploaded */
	LEDGER_IS_DOWNLOADED, /* as it was downloaded */
};

/* Note what was done to a file as `f` describes it. 0, or -1 (no memory). */
int ledger_note(struct ledger *l, const struct jail_file *f,
	enum ledger_what what, time_t when);

/* The status of a file, and since when (0 for LEDGER_IS_NEW). */
enum ledger_status ledger_status(
	const struct ledger *l, const struct jail_file *f, time_t *when);

/* Regular files that exist nowhere but in the home. At most `max` of their
 * indices go into `which`; returns how many there are. */
size_t ledger_unsaved(const struct ledger *l, const struct jail_files *files,
	size_t *which, size_t max);

void ledger_free(struct ledger *l);

#endif
