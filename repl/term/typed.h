/* SPDX-License-Identifier: MIT */
/*
 * typed.h - the keys typed while a cell runs, and which of them it has not read
 *
 * The keys go through a line discipline that the cell controls: it can make
 * any key the end of file, the erase key, or another character. So the keys
 * themselves are kept here. What the tty returns at the end says only how many
 * of the last ones were not read.
 */
#ifndef REPL_TERM_TYPED_H
#define REPL_TERM_TYPED_H

#include "repl/text/strbuf.h"

#include <stdbool.h>
#include <stddef.h>

/* All zero is empty. */
struct typed {
	struct strbuf keys;   /* since the cell was sent, or the last of them */
	size_t sent;	      /* so many of them were written to the tty */
	bool torn;	      /* what was typed before them is not kept */
	bool lost;	      /* there were too many to keep */
	struct strbuf edited; /* what was sent, as a tty edits it */
};

/* Forget all keys, and release the memory. */
void typed_forget(struct typed *t);

/* Add keys. False where there are too many. */
bool typed_add(struct typed *t, const char *s, size_t n);

/* Forget the keys that were not sent, and count those that were as read: the
 * person has interrupted the cell. */
void typed_drop(struct typed *t);

/*
 * The keys for the next prompt: whole lines of which nothing was read, and the
 * beginning of another. `left` is what came back from the tty, and is changed.
 * *keys (borrowed until typed_forget(), which comes next) has *n bytes, as they
 * were typed.
 *
 * A cell that has read the beginning of a line has read all of it, but for the
 * end of the last line that is not entered yet.
 *
 * Returns NULL, or why no keys come back: what the tty returned are not the
 * last keys, because the cell has changed how its tty reads them; the cell has
 * read the beginning of a line that goes on, or may be a command; or there were
 * too many.
 */
const char *typed_unread(struct typed *t, char *left, size_t left_n,
	const char **keys, size_t *n);

/* Edit keys as a tty in its usual modes does, in place: keys that erase take
 * others with them, and lines end with \n. Returns how many are left. */
size_t typed_edit(char *s, size_t n);

#endif
