/* SPDX-License-Identifier: MIT */
/*
 * list.c - strings, one after the other
 *
 * Runs in:   front end
 * Trusts:    nobody; the strings may be a stranger's
 */
#include "list.h"

#include "jail/base/array.h"

#include <stdlib.h>
#include <string.h>

int config_list_add(struct config_list *l, const char *s)
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

int config_list_put(struct config_list *l, size_t i, const char *s)
{
	char *copy;

	if (i >= l->n)
		return config_list_add(l, s);
	copy = strdup(s);
	if (!copy)
		return -1;
	free(l->items[i]);
	l->items[i] = copy;
	return 0;
}

bool config_list_has(const struct config_list *l, const char *s)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->items[i], s))
			return true;
	return false;
}

bool config_list_is_within(
	const struct config_list *l, const struct config_list *outer)
{
	for (size_t i = 0; i < l->n; i++)
		if (!config_list_has(outer, l->items[i]))
			return false;
	return true;
}

int config_list_copy(struct config_list *to, const struct config_list *from)
{
	*to = (struct config_list){0};
	for (size_t i = 0; i < from->n; i++)
		if (config_list_add(to, from->items[i]) < 0)
			return -1;
	return 0;
}

void config_list_fini(struct config_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->items[i]);
	free(l->items);
	*l = (struct config_list){0};
}
