/* SPDX-License-Identifier: MIT */
/*
 * array.h - an array that grows
 */
#ifndef JAIL_BASE_ARRAY_H
#define JAIL_BASE_ARRAY_H

#include <stddef.h>

/* Make room for one more element behind the `n` of the array that `array`, a
 * pointer to a pointer, holds; NULL is an empty one. 0, or -1: out of memory,
 * the array unchanged. Room doubles, and follows from `n`: an array must
 * never be allocated in another way. */
int array_grow(void *array, size_t n, size_t element_bytes);

#endif
