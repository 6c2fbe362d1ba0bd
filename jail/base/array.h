/* SPDX-License-Identifier: MIT */
/*
 * array.h - arrays that grow
 */
#ifndef JAIL_BASE_ARRAY_H
#define JAIL_BASE_ARRAY_H

#include <stddef.h>

/* `array` points to the pointer to the elements; NULL is an empty array. Room
 * doubles. 0; or -1: out of memory, and the array is unchanged. */

/* Make room for one more element behind the `n` there are. The room follows
 * from `n`: use nothing else to allocate this array. */
int array_grow(void *array, size_t n, size_t element_bytes);

/* Make room for `n` elements; *room is how many fit, 0 at first. */
int array_reserve(void *array, size_t *room, size_t n, size_t element_bytes);

#endif
