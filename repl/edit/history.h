/* SPDX-License-Identifier: MIT */
/*
 * history.h - the cells of this session and of earlier ones
 *
 * In memory always; in a file once one is attached: one escaped record a
 * line, appended under a lock, so that sessions side by side lose nothing.
 */
#ifndef REPL_EDIT_HISTORY_H
#define REPL_EDIT_HISTORY_H

#include <stddef.h>

struct err;
struct history;

#define HISTORY_ENTRY_MAX ((size_t)64 << 10) /* bytes of one cell */
#define HISTORY_FILE_MAX ((size_t)1 << 20)   /* compacted to half of it */

/* An empty history without a file; NULL when there is no memory. */
struct history *history_new(void);

/* Close the file and free everything; NULL is allowed. */
void history_free(struct history *h);

/* Open the directory `path`, and make the missing ones on the way with mode
 * 0700. Descriptor, or -1: it is not ours, or others may write there. */
int history_open_dir(const char *path, struct err *e);

/* Keep the history in the file `name` of the directory `dirfd` (a duplicate
 * is kept; nothing outside it is ever opened). The file need not exist, and is
 * read when it is first needed. 0, or -1 and the history stays in memory: the
 * file is a link, not regular, another user's, hard-linked, or too large. */
int history_attach(
	struct history *h, int dirfd, const char *name, struct err *e);

/* The same by path; makes missing directories. */
int history_attach_path(struct history *h, const char *path, struct err *e);

/* Remember a cell of `n` bytes, unless it is empty or the same as the last.
 * 0, or -1: it could not be written (it is remembered all the same). */
int history_add(struct history *h, const char *s, size_t n, struct err *e);

/* How many entries there are; reads the file the first time. */
size_t history_count(struct history *h);

/* Entry `i`, 0 the oldest, NUL-terminated (borrowed until the next add), and
 * its length. NULL past the end. */
const char *history_get(struct history *h, size_t i, size_t *n);

/* The index of the newest entry before `before` that contains `s`, or
 * (size_t)-1. */
size_t history_find(struct history *h, size_t before, const char *s, size_t n);

/* Lines of the file that were not entries and were skipped. */
size_t history_skipped(const struct history *h);

#endif
