/* SPDX-License-Identifier: MIT */
/*
 * strlist.h - strings, one after the other
 */
#ifndef REPL_TEXT_STRLIST_H
#define REPL_TEXT_STRLIST_H

#include "jail/base/array.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Owned strings. All zero is empty. */
struct strlist {
	char **items;
	size_t n;
};

/* Append a copy. 0, or -1 with errno. */
static inline int strlist_add(struct strlist *l, const char *s)
{
	if (array_grow(&l->items, l->n, sizeof(*l->items)) < 0)
		return -1;
	l->items[l->n] = strdup(s);
	if (!l->items[l->n])
		return -1;
	l->n++;
	return 0;
}

static inline bool strlist_has(const struct strlist *l, const char *s)
{
	size_t i = 0;

	while (i < l->n && strcmp(l->items[i], s) != 0)
		i++;
	return i < l->n;
}

/* Free the items; the list is empty. */
static inline void strlist_fini(struct strlist *l)
{
	while (l->n)
		free(l->items[--l->n]);
	free(l->items);
	l->items = NULL;
}

#endif
