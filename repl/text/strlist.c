/* SPDX-License-Identifier: MIT */
/*
 * strlist.c - strings, one after the other
 *
 * Runs in:   front end
 * Trusts:    nobody; the strings may be a stranger's
 */
#include "strlist.h"

#include "jail/base/array.h"

#include <stdlib.h>
#include <string.h>

int strlist_add(struct strlist *l, const char *s)
{
	char *copy;

	if (array_grow(&l->items, l->n, sizeof(*l->items)) < 0)
		return -1;
	copy = strdup(s);
	if (!copy)
		return -1;
	l->items[l->n++] = copy;
	return 0;
}

int strlist_put(struct strlist *l, size_t i, const char *s)
{
	char *copy;

	if (i >= l->n)
		return strlist_add(l, s);
	copy = strdup(s);
	if (!copy)
		return -1;
	free(l->items[i]);
	l->items[i] = copy;
	return 0;
}

bool strlist_has(const struct strlist *l, const char *s)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->items[i], s))
			return true;
	return false;
}

bool strlist_is_within(const struct strlist *l, const struct strlist *outer)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strlist_has(outer, l->items[i]))
			return false;
	return true;
}

int strlist_copy(struct strlist *to, const struct strlist *from)
{
	*to = (struct strlist){0};
	for (size_t i = 0; i < from->n; i++)
		if (strlist_add(to, from->items[i]) < 0)
			return -1;
	return 0;
}

void strlist_fini(struct strlist *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->items[i]);
	free(l->items);
	*l = (struct strlist){0};
}
