/* SPDX-License-Identifier: MIT */
/*
 * file.h - configuration files: opened with suspicion, read by line
 */
#ifndef REPL_CONFIG_FILE_H
#define REPL_CONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct config_errors;

/* Largest file, and longest line in it. */
#define CONFIG_FILE_MAX (1 << 20)
#define CONFIG_LINE_MAX 190

/* What a file must be before a word of it is believed. */
enum config_trust {
	CONFIG_TRUST_SYSTEM, /* `uid`'s, writable by nobody else, no link */
	CONFIG_TRUST_OWN,    /* the person's or root's */
	CONFIG_TRUST_NAMED,  /* any: the person named it */
};

/* A file to read. Everything is borrowed. */
struct config_file {
	int dirfd;	   /* where `name` is resolved */
	const char *name;  /* of the file in there */
	const char *shown; /* how errors call it */
	enum config_trust trust;
	uid_t uid; /* for CONFIG_TRUST_SYSTEM */
};

/* Read the whole file into a new, terminated allocation (caller frees). 1; 0
 * when there is none; -1 with an error added. */
int config_file_read(const struct config_file *file, char **text, size_t *n,
	struct config_errors *errors);

/* Open a directory of the system's. 1 with a descriptor; 0 when there is
 * none; -1 with an error added. `shown` is how errors call it. */
int config_dir_open(int dirfd, const char *name, const char *shown, uid_t uid,
	int *fd, struct config_errors *errors);

/* One KEY = VALUE; borrowed for the call. */
struct config_line {
	const char *place; /* file:line */
	const char *section;
	const char *name;
	const char *value;
	int line;
	bool commented; /* a comment stood behind the value */
};

/* Split `text` into lines and hand each KEY = VALUE to `take`. What is not
 * one is added to `errors`; a section that does not exist is too, once, and
 * its lines are passed over. */
void config_file_parse(const char *shown, const char *text, size_t n,
	void (*take)(void *ctx, const struct config_line *line), void *ctx,
	struct config_errors *errors);

#endif
