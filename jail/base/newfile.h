/* SPDX-License-Identifier: MIT */
/*
 * newfile.h - a file that gets its name when it is whole
 */
#ifndef JAIL_BASE_NEWFILE_H
#define JAIL_BASE_NEWFILE_H

#include <stdbool.h>
#include <sys/types.h>

struct newfile {
	int dir, fd; /* the directory, and the file, open for writing */
	char temp[40];
};

/* Begin a file in `dir`, of which a duplicate is kept, under a temporary name
 * that nobody can guess. 0, or -1 with errno. */
int newfile_create(struct newfile *f, int dir, mode_t mode);

/* Give the file its name. Without `replace`, what has the name already stays:
 * -1 with EEXIST. 0, and `f` is closed; or -1 with errno. */
int newfile_commit(struct newfile *f, const char *name, bool replace);

/* Remove the file, if it has no name yet, and close it. */
void newfile_abort(struct newfile *f);

#endif
