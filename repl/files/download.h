/* SPDX-License-Identifier: MIT */
/*
 * download.h - copies of the home's files on the host
 */
#ifndef REPL_FILES_DOWNLOAD_H
#define REPL_FILES_DOWNLOAD_H

struct err;
struct hostfs;
struct lexer_word;
struct transfer;

/* Copy the files and directories of the home that match into the directory `to`
 * of the host; NULL is the working directory. A link is read through if it
 * stays in the home. 0, or -1 with e, and then nothing was copied or e says
 * what failed. */
int download_run(struct transfer *t, const struct lexer_word *from, int n,
	const char *to, struct err *e);

/* PATTERN[:DIR] of -d, with a copy of `with`. What is there already, or cannot
 * be copied, is left out: the rest would be lost. 0, or -1 when anything was
 * refused; with->refuse was called for it. */
int download_pair(
	const struct transfer *with, const char *from, const char *to);

/* Try whether files can be made in `to` (NULL: the working directory). 0, or -1
 * with e (ERR_USAGE). */
int download_check(const struct hostfs *host, const char *to, struct err *e);

#endif
