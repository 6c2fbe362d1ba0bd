/* SPDX-License-Identifier: MIT */
/*
 * stock.c - how many jails are made ahead, and when the next is begun
 *
 * Runs in:   front end (a pool), root's maker (spares)
 */
#include "jail/prewarm.h"

static int count_in_making(const struct stock *s)
{
	int n = 0;

	for (int i = 0; i < s->n; i++)
		n += s->kinds[i].making;
	return n;
}

static bool is_missing(const struct stock_kind *k, bool waited)
{
	return waited ? k->have < k->waited
		      : k->have + k->lost < k->waited + k->ahead;
}

/* The missing kind that may be begun first. */
static struct stock_next find_missing(const struct stock *s, bool waited)
{
	struct stock_next next = {.kind = -1, .waited = waited};

	for (int i = 0; i < s->n; i++) {
		int64_t ms = s->kinds[i].again_ms;

		if (!waited && ms < s->rest_ms)
			ms = s->rest_ms;
		if (is_missing(&s->kinds[i], waited) &&
			(next.kind < 0 || ms < next.when_ms)) {
			next.kind = i;
			next.when_ms = ms;
		}
	}
	return next;
}

struct stock_next stock_next(const struct stock *s)
{
	struct stock_next next = {.kind = -1};
	int making = count_in_making(s);

	if (s->room > 0 && making < s->at_once)
		next = find_missing(s, true);
	if (s->room > 0 && next.kind < 0 && making == 0)
		next = find_missing(s, false);
	return next;
}

void stock_note_begun(struct stock *s, int kind)
{
	s->kinds[kind].have++;
	s->kinds[kind].making++;
	s->room--;
}
