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
	void *v;

	memcpy(&v, array, sizeof(v));
	v = reallocarray(v, room, element_bytes);
	if (!v)
		return -1;
	memcpy(array, &v, sizeof(v));
	return 0;
}

static int too_many(void)
{
	errno = ENOMEM;
	return -1;
}

/* There is room for 8 elements, and otherwise for the next power of two. So an
 * array is full at exactly 0, 8, 16, 32 ... elements. An array that was
 * shortened has more room, and gives it back at such a number. */
int array_grow(void *array, size_t n, size_t element_bytes)
{
	if (n && (n < 8 || (n & (n - 1))))
		return 0;
	if (n > SIZE_MAX / 2)
		return too_many();
	return resize(array, n ? 2 * n : 8, element_bytes);
}

int array_reserve(void *array, size_t *room, size_t n, size_t element_bytes)
{
	size_t more = *room ? *room : 64;

	if (n <= *room)
		return 0;
	if (n > SIZE_MAX / 2)
		return too_many();
	while (more < n)
		more *= 2;
	if (resize(array, more, element_bytes) < 0)
		return -1;
	*room = more;
	return 0;
}
