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

/* The condition for reading a file. */
enum config_trust {
	CONFIG_TRUST_SYSTEM, /* owned by `uid`, writable by it alone, no link */
	CONFIG_TRUST_OWN,    /* owned by the person or root */
	CONFIG_TRUST_NAMED,  /* any regular file: the person named it */
};

/* A file to read. The pointers are borrowed. */
struct config_file {
	int dirfd;	   /* where `name` is resolved */
	const char *name;  /* of the file in there */
	const char *shown; /* its name in errors */
	enum config_trust trust;
	uid_t uid; /* for CONFIG_TRUST_SYSTEM */
};

/* One KEY = VALUE; borrowed for the call. */
struct config_line {
	const char *place; /* file:line */
	const char *section;
	const char *name;
	const char *value;
	int line;
	bool commented; /* a comment follows the value */
};

/* Hand each KEY = VALUE of the file, if there is one, to `take`. Any other line
 * is an error. A section that does not exist is one error, and its keys are
 * passed over. */
void config_file_read(const struct config_file *file,
	void (*take)(void *ctx, const struct config_line *line), void *ctx,
	struct config_errors *errors);

/* Open a directory of the system's; `shown` is its name in errors. 1 with a
 * descriptor; 0 when there is none; -1 with an error added. */
int config_file_open_dir(int dirfd, const char *name, const char *shown,
	uid_t uid, int *fd, struct config_errors *errors);

#endif
