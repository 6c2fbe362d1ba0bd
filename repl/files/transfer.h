/* SPDX-License-Identifier: MIT */
/*
 * transfer.h - what a copy between host and home has, whichever way it goes
 *
 * All of a transfer is known before its first byte moves: sources, collisions,
 * target, sizes. What is wrong with any of that ends it. Then each file arrives
 * whole or not at all, and none is overwritten unless the person said so.
 */
#ifndef REPL_FILES_TRANSFER_H
#define REPL_FILES_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct hostfs;
struct jail;
struct jail_files;
struct ledger;
struct limits;
struct manifest;
struct manifest_item;
struct signals;
struct terminal;

/* One transfer; everything is borrowed. `say` prints lines, which are safe;
 * `refuse` reports a file that was left out. */
struct transfer {
	struct jail *jail;
	const struct hostfs *host;
	const struct limits *limits;
	struct ledger *ledger;
	struct terminal *term;	 /* for the bar; NULL: none */
	struct signals *signals; /* Ctrl-C */
	void (*say)(void *arg, const char *lines);
	void (*refuse)(void *arg, const struct err *e);
	bool (*ask)(void *arg, const char *question); /* NULL: nobody can be */
	const char *force; /* what allows to overwrite, for who is not asked */
	bool overwrite;	   /* it is allowed */
	bool partial;	   /* leave out what is wrong, and copy the rest */
	bool one_file;	   /* and no directory */
	bool trusted;	   /* the administrator's: no limits, links are read */
	bool skip_saved;   /* leave out what was downloaded and is unchanged */
	void *arg;
	/* results */
	int done, failed;
	bool cancelled;
	/* transfer.c's own */
	int left;	/* were left out */
	char *buf;	/* of a copy */
	int64_t bytes;	/* of all, as far as that is known; 0: unknown */
	int64_t copied; /* of these */
	int64_t start_ms, drawn_ms;
	size_t files; /* of all */
};

/* ---- names and patterns; pure ---- */

/* A name in the home, without a leading /home/ or ./. "" is the home itself. */
const char *transfer_home_name(const char *s);

/* Whether a path of the home matches a pattern: fnmatch(3) by components,
 * '*' never a leading dot, "**" any number of directories. */
bool transfer_matches(const char *pattern, const char *path);

/* How many bytes of a path that matches `pattern` are leading directories
 * without wildcards. Its name at the target leaves them out. */
size_t transfer_prefix(const char *pattern);

/* Whether the pattern says itself how deep it goes, with "**". Otherwise a
 * directory that matches stands for all beneath it. */
bool transfer_is_deep(const char *pattern);

/* The entry of that path, or NULL. */
const struct jail_file *transfer_find(
	const struct jail_files *files, const char *path);

/* Whether the home has a directory of that name; "" is one. */
bool transfer_has_dir(const struct jail_files *files, const char *name);

/* ---- before the first byte ---- */

/* Something is wrong with the transfer: 0, and it was reported, where the rest
 * is copied all the same; else -1. */
int transfer_object(void *transfer, const struct err *e);

/* What lies in a tree, or matched, and cannot be copied: reported by its name,
 * and the rest is copied. */
void transfer_leave_out(struct transfer *t, const struct err *e);

/* Whether there are more files than may be copied at once, so far. 0, or -1
 * with e. */
int transfer_check_count(
	const struct transfer *t, const struct manifest *m, struct err *e);

/* The same, and all sizes. Where the rest is copied all the same, items are
 * left out. */
int transfer_check(struct transfer *t, struct manifest *m, struct err *e);

/* Have `look` say of each item what is there already, at `where`/to, and get
 * the consent to replace that. `look` returns 0, or -1 with e when the item
 * cannot go there. 0, or -1 with e. */
int transfer_check_target(struct transfer *t, struct manifest *m,
	const char *where,
	int (*look)(void *arg, struct manifest_item *item, struct err *e),
	void *arg, struct err *e);

/* For `look`: something is there, a directory or not. A directory stays, and a
 * file is replaced: 0; or -1 with e: the item is not of the same kind. */
int transfer_meet(struct manifest_item *item, bool is_dir, const char *where,
	struct err *e);

/* ---- the copy ---- */

/* Whether the person has interrupted it. */
bool transfer_is_cancelled(struct transfer *t);

/* Copy a file from `in` to `out` until its end, with a bar: *bytes. 0; -1 with
 * e: it failed, was interrupted (EINTR), or is larger than is allowed. */
int transfer_copy(struct transfer *t, const char *name, int in, int out,
	int64_t *bytes, struct err *e);

/* Say what was copied, to `where`, in the names of the target from the byte
 * `skip` on; and end the transfer. */
void transfer_end(struct transfer *t, const struct manifest *m,
	const char *where, size_t skip);

/* The transfer ended with `e`, if that has a message: 0, or -1 when anything
 * was refused, and then that was said. */
int transfer_result(struct transfer *t, int r, const struct err *e);

/* If `e` says that there is no room, say how much there is in the home. -1. */
int transfer_explain_full(
	struct jail *j, const struct limits *l, struct err *e);

#endif
