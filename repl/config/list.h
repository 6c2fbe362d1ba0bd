/* SPDX-License-Identifier: MIT */
/*
 * list.h - strings, one after the other
 */
#ifndef REPL_CONFIG_LIST_H
#define REPL_CONFIG_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* Owned strings. All zero is empty. */
struct config_list {
	char **items;
	size_t n;
};

/* Append a copy. 0, or -1 with errno. */
int config_list_add(struct config_list *l, const char *s);

/* Put a copy in the place of item `i`, or at the end if there is none. */
int config_list_put(struct config_list *l, size_t i, const char *s);

bool config_list_has(const struct config_list *l, const char *s);

/* True if `outer` has every item. */
bool config_list_is_within(
	const struct config_list *l, const struct config_list *outer);

/* Copy into `to`, which is overwritten. 0, or -1 with errno; the caller ends
 * with config_list_fini() either way. */
int config_list_copy(struct config_list *to, const struct config_list *from);

/* Free the items; the list is empty. */
void config_list_fini(struct config_list *l);

#endif
