/* SPDX-License-Identifier: MIT */
/*
 * files.h - files between the host and a home
 *
 *	download.c	copies of the home's files on the host
 *	hostfs.c	the host's files, as far as a session may touch them
 *	ledger.c	what was transferred, and what has changed since
 *	manifest.c	what is to be copied, known before the first byte moves
 *	transfer.c	what a copy between host and home has, whichever way it
 *			goes
 *	upload.c	copies of the host's files in the home
 */
#ifndef REPL_FILES_FILES_H
#define REPL_FILES_FILES_H

#include "jail/base/io.h"
#include "repl/config/config.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct err;
struct hostfs;
struct jail;
struct jail_file;
struct jail_files;
struct signals;
struct stat;
struct terminal;
struct transfer;

/* ---- download.c ---- */

/* Copy the files and directories of the home that match into the directory `to`
 * of the host; NULL is the working directory. A link is read through if it
 * stays in the home. 0, or -1 with e, and then nothing was copied or e says
 * what failed. */
int download_run(struct transfer *t, const struct lexer_word *from, int n,
	const char *to, struct err *e);

/* PATTERN[:DIR] of -d, with a copy of `with`. A file that exists already, or
 * cannot be copied, is left out, so that the others are not lost. 0, or -1 when
 * any was refused; with->refuse was called for it. */
int download_pair(
	const struct transfer *with, const char *from, const char *to);

/* Try whether files can be made in `to` (NULL: the working directory). 0, or -1
 * with e (ERR_USAGE). */
int download_check(const struct hostfs *host, const char *to, struct err *e);

/* ---- hostfs.c ---- */

/*
 * In an ordinary session the person may name any path. In a locked session a
 * path must lie beneath a directory that the configuration names: these roots
 * are opened at the start, and the kernel resolves every path beneath one of
 * them without following a link.
 */

enum hostfs_use { HOSTFS_READ, HOSTFS_WRITE };

struct hostfs_root {
	const char *path; /* borrowed from the configuration */
	int fd;
};

/* Caller's storage. */
struct hostfs {
	bool locked;
	const char *home; /* what ~ stands for; borrowed, may be NULL */
	struct hostfs_root *roots[2];
	size_t n_roots[2]; /* by enum hostfs_use */
};

/* Open the roots of a locked session. A missing root is skipped and counts as
 * not configured. */
int hostfs_open(struct hostfs *h, const struct config *cfg, const char *home,
	struct err *e);
void hostfs_close(struct hostfs *h);

/* `path` with a leading ~ or ~/ replaced. Caller frees; NULL: no memory. */
char *hostfs_expand(const struct hostfs *h, const char *path);

/* Open a regular file for reading: descriptor, or -1 with e. Never waits for
 * the writer of a FIFO. */
int hostfs_open_file(const struct hostfs *h, const char *path, struct stat *st,
	struct err *e);

/* Open a directory: for HOSTFS_READ to list it, for HOSTFS_WRITE to make
 * files in it. Descriptor, or -1 with e. */
int hostfs_open_dir(const struct hostfs *h, enum hostfs_use use,
	const char *path, struct err *e);

/* Open beneath a directory that was opened so: descriptor, or -1 with errno. No
 * link leads out of that directory; without `links` none is followed at all,
 * nor is one in a locked session. */
int hostfs_open_beneath(const struct hostfs *h, int dir, const char *path,
	int flags, bool links);

/* Words for a file that is not regular: "is a FIFO, not a regular file". */
const char *hostfs_kind(mode_t mode);

/* The name of such a directory for a message: in a locked session the full
 * path. Caller frees; NULL: no memory. */
char *hostfs_place(
	const struct hostfs *h, enum hostfs_use use, const char *path);

/* True if such a directory can be opened. */
bool hostfs_is_dir(
	const struct hostfs *h, enum hostfs_use use, const char *path);

/* Names that match a pattern (fnmatch(3), '*' never a leading dot, "**" any
 * number of directories), sorted, at most `max`. 0, also when there is none;
 * -1 with e. Free with strlist_fini(). */
int hostfs_glob(const struct hostfs *h, const char *pattern, size_t max,
	struct strlist *out, struct err *e);

/* Begin a new file in the directory `dir`. It gets the permissions of the file
 * `replaces` in that directory; with NULL those of `mode` that the umask
 * allows. */
int hostfs_create(struct io_newfile *f, int dir, mode_t mode,
	const char *replaces, struct err *e);

/* Give the file its name, as io_newfile_commit(); -1 with e. io_newfile_abort()
 * must follow either way. */
int hostfs_commit(
	struct io_newfile *f, const char *name, bool replace, struct err *e);

/* True if `dir` has an entry of that name, link or not. */
bool hostfs_has(int dir, const char *name);

/* A name from the jail as a name on the host: controls, invisible characters
 * and invalid UTF-8 become '_'. 0; -1 when it cannot be a name ("..", empty,
 * too long, a slash in it). */
int hostfs_safe_name(const char *name, char out[static NAME_MAX + 1]);

/* ---- ledger.c ---- */

/* Copies of a file of the home that the person has. */
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

/* ---- manifest.c ---- */

struct manifest_item {
	char *from; /* owned: its name at the origin, as a person may say it */
	char *to;   /* owned: its path beneath the target */
	size_t rel; /* from here on `from` lies beneath the directory `base` */
	int base;   /* which one, as the caller counts them; -1: none */
	char type;  /* 'f' file, 'd' directory */
	bool implied; /* a directory only because something is in it */
	bool walk;    /* a directory whose entries are to come, too */
	bool there;   /* a file that would be replaced; a directory to stay */
	bool left;    /* it was left out */
	bool done;
	int mode;
	int64_t bytes, mtime_ns;
};

/* All zero is empty. */
struct manifest {
	struct manifest_item *v;
	size_t n;
	size_t files; /* that were added */
};

/* Add an item; the strings are copied. 0, or -1 with e: no memory. */
int manifest_add(
	struct manifest *m, const struct manifest_item *item, struct err *e);

/* The same, for an entry `name` of `above`; "" is `above` itself. */
int manifest_add_beneath(struct manifest *m, const struct manifest_item *above,
	const char *name, const struct manifest_item *item, struct err *e);

/* Take the item that was added last out again. */
void manifest_drop_last(struct manifest *m);

/* Add the directories on the way to each item, put all in order (a directory
 * before what is in it), and leave out what was said twice. Two things that
 * would get one name are objected to; where that returns 0, the second is left
 * out. 0, or -1 with e. */
int manifest_settle(struct manifest *m,
	int (*object)(void *arg, const struct err *e), void *arg,
	struct err *e);

/* True if nothing that is copied lies beneath the i-th item. */
bool manifest_is_empty(const struct manifest *m, size_t i);

/* The directory that all files lie in that are done: how much of their `to`. */
size_t manifest_shared(const struct manifest *m);

void manifest_free(struct manifest *m);

/* ---- transfer.c ---- */

/*
 * All of a transfer is known before its first byte moves: sources, collisions,
 * target, sizes. An error in any of them ends it. Then each file arrives whole
 * or not at all, and none is overwritten unless the person said so.
 */

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

/* True if a path of the home matches a pattern: fnmatch(3) by components,
 * '*' never a leading dot, "**" any number of directories. */
bool transfer_matches(const char *pattern, const char *path);

/* How many bytes of a path that matches `pattern` are leading directories
 * without wildcards. Its name at the target leaves them out. */
size_t transfer_prefix(const char *pattern);

/* True if the pattern says itself how deep it goes, with "**". Otherwise a
 * directory that matches stands for all beneath it. */
bool transfer_is_deep(const char *pattern);

/* The entry of that path, or NULL. */
const struct jail_file *transfer_find(
	const struct jail_files *files, const char *path);

/* True if the home has a directory of that name; "" is one. */
bool transfer_has_dir(const struct jail_files *files, const char *name);

/* ---- before the first byte ---- */

/* Something is wrong with the transfer: 0, and it was reported, where the rest
 * is copied all the same; else -1. */
int transfer_object(void *transfer, const struct err *e);

/* A file in a tree, or one that matched, cannot be copied: report its name, and
 * copy the rest. */
void transfer_leave_out(struct transfer *t, const struct err *e);

/* Check that there are no more files, so far, than may be copied at once. 0, or
 * -1 with e. */
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

/* True if the person has interrupted it. */
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

/* ---- upload.c ---- */

/* Copy files and directories of the host, named or matched, into the home: to
 * `to`, which is a directory if it ends in '/', if the home has such a
 * directory, or if there is more to copy than one name. NULL is the home
 * itself. A link is read through if it is named, or if it stays in the
 * directory that is copied. 0, or -1 with e, and then nothing was copied or e
 * says how much. */
int upload_run(struct transfer *t, const struct lexer_word *from, int n,
	const char *to, struct err *e);

/* Uploads that nobody types, each with a copy of `with`: all in the directory
 * of the skeleton (NULL: none), and SRC[:DST] of -u. 0, or -1 when anything was
 * refused; with->refuse was called for it. */
int upload_skeleton(const struct transfer *with, const char *dir);
int upload_pair(const struct transfer *with, const char *from, const char *to);

#endif
