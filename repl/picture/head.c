/* SPDX-License-Identifier: MIT */
/*
 * head.c - reads the header that precedes a picture in a cell's pipe
 *
 * Runs in:   front end
 * Trusts:    no byte: the guest writes the header
 */
#include "picture.h"

#include "jail/jail.h"

#include <string.h>

#define SIDE 16384
#define NUMBER 999999

/* "rgb WIDTH HEIGHT WIDTH HEIGHT NUMBER", blanks, a line end. */
int head_read(struct picture_head *h, const char *bytes)
{
	static const int most[] = {SIDE, SIDE, NUMBER, NUMBER, NUMBER};
	const char *s = bytes + 4, *end = bytes + JAIL_PICTURE_HEAD - 1;
	int v[5] = {0};

	if (memcmp(bytes, "rgb ", 4) != 0 || *end != '\n')
		return -1;
	for (int i = 0; i < 5; i++, s++) {
		const char *first = s;

		for (; *s >= '0' && *s <= '9' && s - first < 6; s++)
			v[i] = v[i] * 10 + *s - '0';
		if (s == first || *s != ' ' || v[i] > most[i])
			return -1;
	}
	while (*s == ' ')
		s++;
	*h = (struct picture_head){v[0], v[1], v[2], v[3], (unsigned)v[4]};
	if (s != end || !v[0] || !v[1] || v[0] > PICTURE_PIXELS / v[1])
		return -1;
	return 0;
}
