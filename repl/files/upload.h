/* SPDX-License-Identifier: MIT */
/*
 * upload.h - copies of the host's files in the home
 */
#ifndef REPL_FILES_UPLOAD_H
#define REPL_FILES_UPLOAD_H

struct err;
struct lexer_word;
struct transfer;

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
