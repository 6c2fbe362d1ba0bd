/* SPDX-License-Identifier: MIT */
/*
 * subids.c - the ranges of subordinate ids: subuid(5)
 *
 * Runs in:   front end; subids_load() before it is confined
 * Trusts:    /etc/subuid, which is root's
 */
#include "repl/serve/edge/edge.h"

#include "jail/base/array.h"

#include <stdio.h>

void subids_load(struct subids *s, const char *path)
{
	FILE *f = fopen(path, "re");
	char line[256];
	uint32_t first, n;

	*s = (struct subids){0};
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*[^:#]:%u:%u", &first, &n) != 2)
			continue;
		if (array_grow(&s->v, s->n, sizeof(*s->v)) < 0)
			break;
		s->v[s->n].first = first;
		s->v[s->n++].n = n;
	}
	if (f)
		fclose(f);
}

void subids_free(struct subids *s)
{
	free(s->v);
	*s = (struct subids){0};
}

uint64_t subids_key(const struct subids *s, uid_t uid)
{
	for (size_t i = 0; i < s->n; i++)
		if (uid >= s->v[i].first && uid - s->v[i].first < s->v[i].n)
			return (uint64_t)1 << 32 | s->v[i].first;
	return uid;
}
