/* SPDX-License-Identifier: MIT */
/*
 * strlist.h - strings, one after the other
 */
#ifndef REPL_TEXT_STRLIST_H
#define REPL_TEXT_STRLIST_H

#include <stdbool.h>
#include <stddef.h>

/* Owned strings. All zero is empty. */
struct strlist {
	char **items;
	size_t n;
};

/* Append a copy. 0, or -1 with errno. */
int strlist_add(struct strlist *l, const char *s);

/* Put a copy in the place of item `i`, or at the end if there is none. */
int strlist_put(struct strlist *l, size_t i, const char *s);

bool strlist_has(const struct strlist *l, const char *s);

/* True if `outer` has every item. */
bool strlist_is_within(const struct strlist *l, const struct strlist *outer);

/* Copy into `to`, which is overwritten. 0, or -1 with errno; the caller ends
 * with strlist_fini() either way. */
int strlist_copy(struct strlist *to, const struct strlist *from);

/* Free the items; the list is empty. */
void strlist_fini(struct strlist *l);

#endif
