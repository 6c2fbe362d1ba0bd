/* SPDX-License-Identifier: MIT */
/*
 * manifest.h - what is to be copied, known before the first byte moves
 */
#ifndef REPL_FILES_MANIFEST_H
#define REPL_FILES_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

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

/* Whether nothing that is copied lies beneath the i-th item. */
bool manifest_is_empty(const struct manifest *m, size_t i);

/* The directory that all files lie in that are done: how much of their `to`. */
size_t manifest_shared(const struct manifest *m);

void manifest_free(struct manifest *m);

#endif
