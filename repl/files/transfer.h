/* SPDX-License-Identifier: MIT */
/*
 * transfer.h - safe copies between the host and the home
 *
 * A file arrives whole or not at all, on either side, and nothing is
 * overwritten on the host unless the person said so.
 */
#ifndef REPL_FILES_TRANSFER_H
#define REPL_FILES_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct err;
struct hostfs;
struct strlist;
struct jail;
struct jail_file;
struct jail_files;
struct lexer_word;
struct limits;
struct signals;
struct terminal;

/* One transfer; everything is borrowed. `say` prints a line, which is safe;
 * `refuse` reports a file that was left out. */
struct transfer {
	struct jail *jail;
	const struct hostfs *host;
	const struct limits *limits;
	struct transfer_ledger *ledger;
	struct terminal *term;	 /* for the bar; NULL: none */
	struct signals *signals; /* Ctrl-C */
	void (*say)(void *arg, const char *line);
	void (*refuse)(void *arg, const struct err *e);
	/* Whether to overwrite `name` on the host; NULL: never. */
	bool (*overwrite)(void *arg, const char *name);
	bool skip_saved; /* leave out what was downloaded and is unchanged */
	void *arg;
	/* results */
	int done, failed, left; /* left: there were too many */
	bool cancelled;
	struct strlist *arrived; /* transfer.c's own */
};

/* Copy files of the host, named or matched, into the home: to `to`, which is
 * a directory if it ends in '/', if the home has such a directory, or if there
 * is more than one file. NULL is the home itself. Files that cannot be copied
 * are refused one by one. 0, or -1 with e when nothing could be begun. */
int transfer_upload(struct transfer *t, const struct lexer_word *from, int n,
	const char *to, struct err *e);

/* A name in the home, without a leading /home/ or ./. "" is the home itself.
 * Pure. */
const char *transfer_home_name(const char *s);

/* Whether the home has a directory of that name; "" is one. */
bool transfer_home_has_dir(struct jail *j, const char *name);

/* Copy the files of the home that match into the directory `to` of the host;
 * NULL is the working directory. */
int transfer_download(struct transfer *t, const struct lexer_word *from, int n,
	const char *to, struct err *e);

/* Transfers that nobody types, each with a copy of `with`: the files of the
 * skeleton (NULL: none), SRC[:DST] of -u, PATTERN[:DIR] of -d. 0, or -1 when
 * anything was refused; with->refuse was called for it. */
int transfer_skeleton(const struct transfer *with, const char *dir);
int transfer_upload_pair(
	const struct transfer *with, const char *from, const char *to);
int transfer_download_pair(
	const struct transfer *with, const char *from, const char *to);

/* Try whether files can be made in `to` (NULL: the working directory). 0, or -1
 * with e. */
int transfer_check_target(
	const struct hostfs *host, const char *to, struct err *e);

/* Whether a path of the home matches a pattern: fnmatch(3) by components,
 * '*' never a leading dot, "**" any number of directories. Pure. */
bool transfer_matches(const char *pattern, const char *path);

/* How many bytes of a path that matches `pattern` are leading directories
 * without wildcards. Its name on the host leaves them out. Pure. */
size_t transfer_prefix(const char *pattern);

/* ---- the ledger: what was transferred, and what has changed since ---- */

/* What a file of the home is to the person. */
enum transfer_ledger_status {
	TRANSFER_NEW,	     /* made in the jail, never downloaded */
	TRANSFER_CHANGED,    /* since it was uploaded or downloaded */
	TRANSFER_UPLOADED,   /* as it was uploaded */
	TRANSFER_DOWNLOADED, /* as it was downloaded */
};

struct transfer_ledger_entry {
	char *path; /* owned */
	enum transfer_ledger_status status;
	int64_t bytes, mtime_ns; /* of the file in the home, then */
	time_t when;
};

/* All zero is empty. */
struct transfer_ledger {
	struct transfer_ledger_entry *v;
	size_t n;
};

/* The status of a file, and since when (0 for TRANSFER_NEW). */
enum transfer_ledger_status transfer_ledger_status(
	const struct transfer_ledger *l, const struct jail_file *f,
	time_t *when);

/* Count the regular files that exist only in the home. The indices of the first
 * `max` go into `which`. */
size_t transfer_ledger_unsaved(const struct transfer_ledger *l,
	const struct jail_files *files, size_t *which, size_t max);

void transfer_ledger_free(struct transfer_ledger *l);

#endif
