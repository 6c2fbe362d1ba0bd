/* SPDX-License-Identifier: MIT */
/*
 * clock.c - the limits of a session: idle and lifetime, and the person
 *
 * Runs in:   warden
 * Trusts:    the front end for saying that the person is there: who lies
 *            about that keeps only their own session, and not beyond its life
 */
#include "state.h"

#include "jail/base/io.h"

#include <sys/ioctl.h>
#include <sys/random.h>

/* How much later than asked for a look may be. */
#define RANDOM_MS 10
/* How long before a limit of the session it is announced. */
#define ANNOUNCE_MS (60 * 1000)

int64_t warden_clock(struct warden *w, enum jail_limit limit, int64_t *due_ms)
{
	const struct limits *l = &w->spec->limits;
	int idle = limit == LIMIT_IDLE;
	int64_t left = idle ? w->touched_ms + l->idle_ms
			    : w->started_ms + l->lifetime_ms;

	left -= now_ms();
	*due_ms = left > ANNOUNCE_MS ? left - ANNOUNCE_MS : left;
	if (left <= 0 || left > ANNOUNCE_MS || w->announced & 1u << limit)
		return left;
	w->announced |= 1u << limit;
	warden_notice(w, "the session ends in %lld s: %s limit",
		(long long)(left + 999) / 1000, idle ? "idle" : "lifetime");
	return left;
}

void warden_touch(struct warden *w)
{
	w->touched_ms = now_ms();
	w->announced &= ~(1u << LIMIT_IDLE);
}

/* Every process is asleep, one of the foreground reads the tty, and there is
 * nothing to read. */
int warden_waits_for_person(struct warden *w)
{
	int32_t asleep[WIRE_PIDS_MAX];
	int n = warden_checkpoint_pids(w, asleep), waiting = 0;

	if (procs_waits_for_tty(&w->procs, w->tty_dev, asleep, n) != 1)
		return 0;
	return ioctl(w->tty_slave, FIONREAD, &waiting) < 0 || waiting == 0;
}

int64_t warden_next_look(int64_t now, int period_ms)
{
	uint8_t dice = 0;

	(void)!getrandom(&dice, 1, GRND_NONBLOCK);
	return now + period_ms + dice % RANDOM_MS;
}
