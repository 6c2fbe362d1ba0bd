/* SPDX-License-Identifier: MIT */
/*
 * array.h - arrays of a known length, and arrays that grow
 */
#ifndef JAIL_BASE_ARRAY_H
#define JAIL_BASE_ARRAY_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Remove element `i`; `n`, how many there are, becomes one less. */
#define ARRAY_REMOVE(v, n, i)                                                  \
	memmove(&(v)[i], &(v)[(i) + 1], (size_t)(--(n) - (i)) * sizeof(*(v)))

/* `array` points to the pointer to the elements; NULL is an empty array. Room
 * doubles. 0; or -1: out of memory, and the array is unchanged. */
static inline int array_resize(void *array, size_t room, size_t element_bytes)
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

/* Make room for one more element behind the `n` there are. The room follows
 * from `n`: use nothing else to allocate this array. There is room for 8
 * elements, and otherwise for the next power of two. So an array is full at
 * exactly 0, 8, 16, 32 ... elements. An array that was shortened has more room,
 * and gives it back at such a number. */
static inline int array_grow(void *array, size_t n, size_t element_bytes)
{
	if (n && (n < 8 || (n & (n - 1))))
		return 0;
	return n ? array_resize(array, n, 2 * element_bytes)
		 : array_resize(array, 8, element_bytes);
}

/* Make room for `n` elements; *room is how many fit, 0 at first. */
static inline int array_reserve(
	void *array, size_t *room, size_t n, size_t element_bytes)
{
	size_t more = *room ? *room : 64;

	if (n <= *room)
		return 0;
	while (more < n)
		more = more > SIZE_MAX / 2 ? SIZE_MAX : 2 * more;
	if (array_resize(array, more, element_bytes) < 0)
		return -1;
	*room = more;
	return 0;
}

#endif
