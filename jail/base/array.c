/* SPDX-License-Identifier: MIT */
/*
 * array.c - an array that grows
 *
 * Runs in:   every process
 * Trusts:    its caller
 *
 * Room is at least 8, and else the next power of two: so an array is full at
 * exactly 0, 8, 16, 32 ... elements. One that was shortened has more room than
 * that, and gives it back when it passes such a number again.
 */
#include "array.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int array_grow(void *array, size_t n, size_t element_bytes)
{
	void *v;

	if (n && (n < 8 || (n & (n - 1))))
		return 0;
	if (n > SIZE_MAX / 2) {
		errno = ENOMEM;
		return -1;
	}
	memcpy(&v, array, sizeof(v));
	v = reallocarray(v, n ? 2 * n : 8, element_bytes);
	if (!v)
		return -1;
	memcpy(array, &v, sizeof(v));
	return 0;
}
