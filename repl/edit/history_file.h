/* SPDX-License-Identifier: MIT */
/*
 * history_file.h - the history's file: checked, locked, appended, compacted
 *
 * For history.c alone.
 */
#ifndef REPL_EDIT_HISTORY_FILE_H
#define REPL_EDIT_HISTORY_FILE_H

#include <stddef.h>

struct err;

/* Open the directory path[0..n), making what is missing of it with mode 0700.
 * Descriptor, or -1. Refused: not ours, or writable by others. */
int history_file_dir(const char *path, size_t n, struct err *e);

/* Whether `name` may be used: absent, or a regular file of ours with one
 * link. 0, or -1. */
int history_file_check(int dirfd, const char *name, struct err *e);

/* The whole file, NUL-terminated (caller frees). 0, *s NULL when there is no
 * file; or -1. */
int history_file_read(
	int dirfd, const char *name, char **s, size_t *n, struct err *e);

/* Append one record, which ends in a newline, in one write under the lock;
 * then drop the oldest ones if the file has grown too large. 0, or -1. */
int history_file_append(int dirfd, const char *name, const char *record,
	size_t n, struct err *e);

#endif
