/* SPDX-License-Identifier: MIT */
/*
 * attach.h - files of the home that go into an answer
 */
#ifndef REPL_JSON_ATTACH_H
#define REPL_JSON_ATTACH_H

#include "jail/spec.h"
#include "repl/text/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jail;
struct jail_files;
struct run_file;

/* Who takes the files. put() appends a file's id (JSON), or says why not: then
 * forget() is called, and what was put before is in no answer. */
struct attach_store {
	const char *(*put)(void *arg, struct strbuf *b, const char *path,
		int fd, int64_t size);
	void (*forget)(void *arg);
	void *arg;
};

/* Which files. Borrowed. */
struct attach_rules {
	const struct limits *limits;
	const char *pattern;	     /* files.pattern, for transfer_matches() */
	const struct run_file *sent; /* left out unless they changed */
	size_t nsent;
	const struct attach_store *store; /* or NULL */
	bool empty;			  /* there is nothing in the home */
};

/* Append `{"path", "size", "content"}`, or with a store `{"path", "size",
 * "file_id"}`, of each file, with commas between; `kind` adds "kind". NULL; or
 * why there are none, in snekbox's words. */
const char *attach_files(struct strbuf *b, struct jail *j,
	struct jail_files *files, const struct attach_rules *rules, bool kind);

/* The same bit by bit, for who has others to serve: true when it is done, and
 * *why as above. attach_begin() may return NULL: there is no memory. The home
 * is listed for it; attach_files() is given its files (taken). */
struct attach *attach_begin(struct strbuf *b, struct jail *j,
	const struct attach_rules *rules, bool kind);
bool attach_turn(struct attach *a, const char **why);

/* In how many milliseconds the next turn is due; when *fd (-1: none) can be
 * read, it is due at once. */
int attach_timeout_ms(const struct attach *a, int *fd);
void attach_close(struct attach *a);

#endif
