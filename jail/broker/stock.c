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

/* The next client would have to wait for it. */
static bool is_urgent(const struct stock_kind *k)
{
	return k->have == k->making;
}

/* The missing kind that may be begun first. `idle`: there is a core for it
 * beside a jail that was just taken. */
static struct stock_next find_missing(
	const struct stock *s, bool waited, bool idle)
{
	struct stock_next next = {.kind = -1, .waited = waited};

	for (int i = 0; i < s->n; i++) {
		const struct stock_kind *k = &s->kinds[i];
		bool rests = !waited && !(idle && is_urgent(k));
		int64_t ms = k->again_ms;

		if (rests && ms < s->rest_ms)
			ms = s->rest_ms;
		if (is_missing(k, waited) &&
			(next.kind < 0 || ms < next.when_ms)) {
			next.kind = i;
			next.when_ms = ms;
		}
	}
	return next;
}

/* A jail in the making waits now and then, and its core only seems idle. One
 * that was just taken has a core, though it may not run yet. */
struct stock_next stock_next(const struct stock *s)
{
	struct stock_next next = {.kind = -1};
	int making = count_in_making(s);
	int busy = s->at_once - s->idle;

	if (busy < making)
		busy = making;
	if (s->room > 0 && making < s->at_once)
		next = find_missing(s, true, true);
	if (s->room > 0 && next.kind < 0 && (making == 0 || busy < s->at_once))
		next = find_missing(s, false, busy + 1 < s->at_once);
	return next;
}

void stock_note_begun(struct stock *s, int kind)
{
	s->kinds[kind].have++;
	s->kinds[kind].making++;
	s->room--;
}
