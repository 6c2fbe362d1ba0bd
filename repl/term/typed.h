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
	struct strbuf keys; /* since the last Ctrl-C, or the last of them */
};

/* Forget all keys, and release the memory. */
void typed_forget(struct typed *t);

/* Add keys. Ctrl-C discards those typed before it, as on any tty. The jail's
 * tty does not do that (NOFLSH), because output would be lost too. */
void typed_add(struct typed *t, const char *s, size_t n);

/*
 * The keys that were not read, edited as a tty in its usual modes edits lines:
 * keys that erase have taken others with them, and lines end with \n. A Ctrl-D
 * is among them only where a line was empty before it. `left` is what came back
 * from the tty, and is changed. *keys (borrowed until typed_forget(), which
 * comes next) has *n bytes.
 *
 * Returns NULL, or why no keys come back: what the tty returned are not the
 * last keys, because the cell has changed how its tty reads them; or the cell
 * has read the beginning of a line, and the rest would be a command.
 */
const char *typed_unread(struct typed *t, char *left, size_t left_n,
	const char **keys, size_t *n);

#endif
