/* SPDX-License-Identifier: MIT */
/*
 * tree.h - remove the directory that a unit test has made
 */
#ifndef TESTS_LIB_TREE_H
#define TESTS_LIB_TREE_H

#include <stdio.h>
#include <stdlib.h>

/* Returns 0 when nothing is left. */
static inline int tree_remove(const char *top)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", top);
	return system(command);
}

#endif
