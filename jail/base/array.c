/* SPDX-License-Identifier: MIT */
/*
 * array.c - arrays that grow
 *
 * Runs in:   every process
 * Trusts:    its caller
 */
#include "array.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int resize(void *array, size_t room, size_t element_bytes)
{
	size_t bytes;
	void *v;

	if (__builtin_mul_overflow(room, element_bytes, &bytes)) {
		errno = ENOMEM;
		return -1;
	}
	memcpy(&v, array, sizeof(v));
	v = realloc(v, bytes);
	if (!v)
		return -1;
	memcpy(array, &v, sizeof(v));
	return 0;
}

/* There is room for 8 elements, and otherwise for the next power of two. So an
 * array is full at exactly 0, 8, 16, 32 ... elements. An array that was
 * shortened has more room, and gives it back at such a number. */
int array_grow(void *array, size_t n, size_t element_bytes)
{
	if (n && (n < 8 || (n & (n - 1))))
		return 0;
	return n ? resize(array, n, 2 * element_bytes)
		 : resize(array, 8, element_bytes);
}

int array_reserve(void *array, size_t *room, size_t n, size_t element_bytes)
{
	size_t more = *room ? *room : 64;

	if (n <= *room)
		return 0;
	while (more < n)
		more = more > SIZE_MAX / 2 ? SIZE_MAX : 2 * more;
	if (resize(array, more, element_bytes) < 0)
		return -1;
	*room = more;
	return 0;
}
