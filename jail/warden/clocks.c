/* SPDX-License-Identifier: MIT */
/*
 * clocks.c - the limits of a session's life: idle, lifetime, a time of the
 * clock
 *
 * Runs in:   warden
 * Trusts:    the front end for saying that the person is there: a lie keeps
 *            only its own session, and not beyond its lifetime
 */
#include "jail/warden/parts.h"

#include "jail/base/io.h"

#include <time.h>

/* How long before a limit it is announced. */
#define ANNOUNCE_MS (60 * 1000)
/* An end by the clock of the host is announced twice. That clock may be set: we
 * look at it so often. */
#define ANNOUNCE_UNTIL_MS (600 * 1000)
#define LOOK_UNTIL_MS (5 * 1000)
/* In `announced`: the first of the two. */
#define ANNOUNCED_SOON (1u << 31)

void clocks_start(
	struct clocks *c, struct link *l, const struct jail_spec *spec)
{
	*c = (struct clocks){.link = l,
		.limits = &spec->limits,
		.announces = spec->mode == SPEC_SESSION};
	if (spec->prewarm == SPEC_WANTED)
		clocks_touch(c);
}

void clocks_touch(struct clocks *c)
{
	c->touched_ms = now_ms();
	if (!c->started_ms)
		c->started_ms = c->touched_ms;
	c->announced &= ~(1u << LIMIT_IDLE);
}

int64_t clocks_remaining_ms(
	struct clocks *c, enum jail_limit limit, int64_t *due_ms)
{
	int idle = limit == LIMIT_IDLE;
	int64_t left = idle ? c->touched_ms + c->limits->idle_ms
			    : c->started_ms + c->limits->lifetime_ms;

	if (!c->started_ms)
		return *due_ms = INT64_MAX;
	left -= now_ms();
	*due_ms = left > ANNOUNCE_MS ? left - ANNOUNCE_MS : left;
	if (!c->announces || left <= 0 || left > ANNOUNCE_MS ||
		c->announced & 1u << limit)
		return left;
	c->announced |= 1u << limit;
	link_notice(c->link, "the session ends in %lld s: %s limit",
		(long long)(left + 999) / 1000, idle ? "idle" : "lifetime");
	return left;
}

static void announce_until(const struct clocks *c, int64_t left)
{
	static const char daily[] = ", as all do at that time of day";
	bool day = c->limits->until_daily != 0;

	if (left > ANNOUNCE_MS)
		link_notice(c->link, "the %s ends in %lld min%s",
			day ? "session" : "exam",
			(long long)(left + 59999) / 60000, day ? daily : "");
	else
		link_notice(c->link, "the %s ends in %lld s%s",
			day ? "session" : "exam",
			(long long)(left + 999) / 1000,
			day ? daily : ", and this session with it");
}

int64_t clocks_until_ms(
	struct clocks *c, enum jail_limit *limit, int64_t *due_ms)
{
	int64_t host_ms = io_clock_ns(CLOCK_REALTIME) / 1000000, next;
	int64_t left = c->limits->until_s * 1000 - host_ms;
	unsigned said = left > ANNOUNCE_MS ? ANNOUNCED_SOON
					   : ANNOUNCED_SOON | 1u << LIMIT_EXAM;

	*limit = c->limits->until_daily ? LIMIT_UNTIL : LIMIT_EXAM;
	if (!c->started_ms || !c->limits->until_s)
		return *due_ms = INT64_MAX;
	next = left > ANNOUNCE_UNTIL_MS ? left - ANNOUNCE_UNTIL_MS
	       : left > ANNOUNCE_MS	? left - ANNOUNCE_MS
					: left;
	*due_ms = next < LOOK_UNTIL_MS ? next : LOOK_UNTIL_MS;
	if (!c->announces || left <= 0 || left > ANNOUNCE_UNTIL_MS ||
		(c->announced & said) == said)
		return left;
	c->announced |= said;
	announce_until(c, left);
	return left;
}
