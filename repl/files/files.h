/* SPDX-License-Identifier: MIT */
/*
 * files.h - files between the host and a home
 *
 *	download.c	copies of the home's files on the host
 *	hostfs.c	the host's files, as far as a session may touch them
 *	ledger.c	which files were transferred, and have changed since
 *	manifest.c	the items to copy, known before the first byte moves
 *	transfer.c	what uploads and downloads share
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
struct options;
struct signals;
struct stat;
struct terminal;
struct transfer;

/* ---- download.c ---- */

/* Copy the files and directories of the home that match into the directory `to`
 * of the host; NULL is the working directory. In place of a link that stays in
 * the home, we copy its file. 0, or -1 with e: nothing was copied, or e says
 * what failed. */
int download_run(struct transfer *t, const struct lexer_word *from, int n,
	const char *to, struct err *e);

/* Download each PATTERN[:DIR] of -d, with a copy of `with`. Leave out a file
 * that exists already or cannot be copied, so that the others are not lost. 0,
 * or -1 when any was left out; with->refuse was called for it. */
int download_all(const struct transfer *with, const struct options *o);

/* Check that files can be made in each DIR of -d. 0, or -1 with e (ERR_USAGE).
 */
int download_check(
	const struct hostfs *host, const struct options *o, struct err *e);

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
	bool remote;	  /* there is another way: scp */
	const char *home; /* what ~ stands for; borrowed, may be NULL */
	struct hostfs_root *roots[2];
	size_t n_roots[2];     /* by enum hostfs_use */
	const char *source[2]; /* where the roots are configured; borrowed */
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

/* Open `path` beneath a directory of hostfs_open_dir(): descriptor, or -1 with
 * errno. We follow no link out of that directory; without `links`, and in a
 * locked session, we follow no link at all. */
int hostfs_open_beneath(const struct hostfs *h, int dir, const char *path,
	int flags, bool links);

/* Words for a file that is not regular: "is a FIFO, not a regular file". */
const char *hostfs_kind(mode_t mode);

/* The name of a directory to write to, for a message: in a locked session the
 * full path. Caller frees; NULL: no memory. */
char *hostfs_place(const struct hostfs *h, const char *path);

/* True if hostfs_open_dir() can open the directory. */
bool hostfs_is_dir(
	const struct hostfs *h, enum hostfs_use use, const char *path);

/* Find names that match a pattern (fnmatch(3), '*' never a leading dot, "**"
 * any number of directories), sorted, at most `max`. 0, also when there is
 * none; -1 with e. Free with strlist_fini(). */
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

/* Make a name from the jail a name on the host: controls, invisible characters
 * and invalid UTF-8 become '_'. 0; -1 when it cannot be a name ("..", empty,
 * too long, a slash in it). */
int hostfs_safe_name(const char *name, char out[static NAME_MAX + 1]);

/* ---- ledger.c ---- */

/* Which copy of a file of the home the person has. */
enum ledger_status {
	LEDGER_NEW,	   /* made in the jail, never downloaded */
	LEDGER_CHANGED,	   /* since it was uploaded or downloaded */
	LEDGER_UPLOADED,   /* as it was uploaded */
	LEDGER_DOWNLOADED, /* as it was downloaded */
	LEDGER_SUBMITTED,  /* as it was handed in */
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

/* Note that the file was just uploaded, downloaded or handed in. Without memory
 * for it the file counts as new. */
void ledger_note(struct ledger *l, const char *path, int64_t bytes,
	int64_t mtime_ns, enum ledger_status status);

/* The status of a file, and since when (0 for LEDGER_NEW). */
enum ledger_status ledger_status(
	const struct ledger *l, const struct jail_file *f, time_t *when);

/* Count the regular files that exist only in the home. The indices of the first
 * `max` go into `which`. */
size_t ledger_unsaved(const struct ledger *l, const struct jail_files *files,
	size_t *which, size_t max);

/* True if a component of the path begins with a dot: programs keep such files
 * for themselves. */
bool ledger_is_hidden(const char *path);

void ledger_free(struct ledger *l);

/* ---- manifest.c ---- */

struct manifest_item {
	char *from; /* owned: its path at the origin, as a person may say it */
	char *to;   /* owned: its path beneath the target */
	size_t rel; /* offset of the part of `from` beneath `base` */
	int base;   /* a directory, by a number of the caller; -1: none */
	char type;  /* 'f' file, 'd' directory */
	bool implied; /* a directory only because an item lies in it */
	bool walk;    /* a directory whose entries we add, too */
	bool there;   /* the target has it: a file to replace, or directory */
	bool left;    /* left out */
	bool done;
	int mode;
	int64_t bytes, mtime_ns;
};

/* All zero is empty. */
struct manifest {
	struct manifest_item *v;
	size_t n;
	size_t files; /* items that are files */
};

/* Add an item; the strings are copied. 0, or -1 with e: no memory. */
int manifest_add(
	struct manifest *m, const struct manifest_item *item, struct err *e);

/* Add an item for the entry `name` of `above`; "" is `above` itself. */
int manifest_add_beneath(struct manifest *m, const struct manifest_item *above,
	const char *name, const struct manifest_item *item, struct err *e);

/* Remove the last item. */
void manifest_drop_last(struct manifest *m);

/* Add the parent directories of each item, sort the items (a directory before
 * its entries), and leave out an item that comes again. Call `object` for two
 * items that would get one name; if it returns 0, leave out the second. 0, or
 * -1 with e. */
int manifest_settle(struct manifest *m,
	int (*object)(void *arg, const struct err *e), void *arg,
	struct err *e);

/* True if no item that we copy lies beneath the i-th item. */
bool manifest_is_empty(const struct manifest *m, size_t i);

/* The length of the directory in `to` that holds all files that are done. */
size_t manifest_shared(const struct manifest *m);

void manifest_free(struct manifest *m);

/* ---- transfer.c ---- */

/*
 * We know all of a transfer before its first byte moves: sources, collisions,
 * target, sizes. An error in any of them ends the transfer. Then each file
 * arrives whole or not at all, and we overwrite a file only if the person said
 * so.
 */

/* One transfer; everything is borrowed. `say` prints lines, which are safe;
 * `refuse` reports a file that was left out. */
struct transfer {
	struct jail *jail;
	const struct hostfs *host;
	const struct limits *limits;
	struct ledger *ledger;
	struct terminal *term;	 /* for the progress bar; NULL: none */
	struct signals *signals; /* for Ctrl-C; NULL: do not look */
	void (*say)(void *arg, const char *lines);
	void (*refuse)(void *arg, const struct err *e);
	bool (*ask)(void *arg, const char *question); /* NULL: ask nobody */
	const char *force;  /* option that overwrites, for a hint without ask */
	bool overwrite;	    /* overwrite without a question */
	bool partial;	    /* leave out a wrong item, and copy the rest */
	bool one_file;	    /* refuse a directory */
	bool trusted;	    /* the administrator's: no limits, follow links */
	bool skip_saved;    /* leave out a file downloaded and unchanged */
	int64_t most_bytes; /* of all files that are copied; 0: no bound */
	void *arg;
	/* results */
	int done, failed;
	bool cancelled;
	/* transfer.c's own */
	int left;	/* files that were left out */
	char *buf;	/* for copying */
	int64_t bytes;	/* of all files, as far as we know; 0: unknown */
	int64_t copied; /* bytes so far */
	int64_t start_ms, drawn_ms;
	size_t files; /* number of all files */
};

/* ---- names and patterns; pure ---- */

/* A name in the home, without a leading /home/ or ./. "" is the home itself. */
const char *transfer_home_name(const char *s);

/* True if a path of the home matches a pattern: fnmatch(3) by components,
 * '*' never a leading dot, "**" any number of directories. */
bool transfer_matches(const char *pattern, const char *path);

/* How many bytes of a path that matches `pattern` are leading directories
 * without wildcards. The path at the target does not have them. */
size_t transfer_prefix(const char *pattern);

/* True if the pattern has a "**", which says how deep it goes. Without "**" a
 * directory that matches stands for all beneath it. */
bool transfer_is_deep(const char *pattern);

/* The entry of that path, or NULL. */
const struct jail_file *transfer_find(
	const struct jail_files *files, const char *path);

/* True if the home has a directory of that name; "" is one. */
bool transfer_has_dir(const struct jail_files *files, const char *name);

/* ---- before the first byte ---- */

/* Object to an item, with `e`. With `partial` report `e`: 0, and the rest is
 * copied all the same. Else -1. */
int transfer_object(void *transfer, const struct err *e);

/* Report that a file in a tree, or one that matched, cannot be copied. The rest
 * is copied all the same. */
void transfer_leave_out(struct transfer *t, const struct err *e);

/* Check that there are no more files, so far, than may be copied at once. 0, or
 * -1 with e. */
int transfer_check_count(
	const struct transfer *t, const struct manifest *m, struct err *e);

/* Check the number of files, and their sizes. With `partial` leave out files
 * that are too large or too many. 0, or -1 with e. */
int transfer_check(struct transfer *t, struct manifest *m, struct err *e);

/* Have `look` find what the target has for each item already, at `where`/to,
 * and get the person's consent to replace files. `look` returns 0, or -1 with e
 * when the item cannot go there. 0, or -1 with e. */
int transfer_check_target(struct transfer *t, struct manifest *m,
	const char *where,
	int (*look)(void *arg, struct manifest_item *item, struct err *e),
	void *arg, struct err *e);

/* For `look`: note that the target has the item's name, as a directory or not.
 * 0: the directory stays, or the file is replaced; -1 with e: the item is of
 * the other kind. */
int transfer_meet(struct manifest_item *item, bool is_dir, const char *where,
	struct err *e);

/* ---- the copy ---- */

/* True if the person has interrupted the transfer. */
bool transfer_is_cancelled(struct transfer *t);

/* Copy a file of *bytes bytes from `in` to `out`, with a progress bar. 0; -1
 * with e: it failed, was interrupted (EINTR), or is larger than is allowed. */
int transfer_copy(struct transfer *t, const char *name, int in, int out,
	int64_t *bytes, struct err *e);

/* Tell the person what was copied to `where`, and end the transfer. We show the
 * names at the target from the byte `skip` on. */
void transfer_end(struct transfer *t, const struct manifest *m,
	const char *where, size_t skip);

/* Report `e` if `r` is -1. 0, or -1 when anything was refused; the person has
 * been told of it. */
int transfer_result(struct transfer *t, int r, const struct err *e);

/* If `e` is ENOSPC, add a hint that says how much room the home has. Returns
 * -1. */
int transfer_explain_full(
	struct jail *j, const struct limits *l, struct err *e);

/* ---- upload.c ---- */

/* Copy files and directories of the host, named or matched, into the home: to
 * `to`, which is a directory if it ends in '/', if the home has such a
 * directory, or if there is more to copy than one name. NULL is the home
 * itself. In place of a link we copy its file, if the person named the link or
 * if it stays in the directory that is copied. 0, or -1 with e: nothing was
 * copied, or e says how much. */
int upload_run(struct transfer *t, const struct lexer_word *from, int n,
	const char *to, struct err *e);

/* Upload without a command, with a copy of `with`: all in the directory of the
 * skeleton (NULL: none), or SRC[:DST] of -u. 0, or -1 when anything was
 * refused; with->refuse was called for it. */
int upload_skeleton(const struct transfer *with, const char *dir);
int upload_pair(const struct transfer *with, const char *from, const char *to);

#endif
