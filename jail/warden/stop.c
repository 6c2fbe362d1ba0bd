/* SPDX-License-Identifier: MIT */
/*
 * stop.c - nothing runs between cells
 *
 * Runs in:   warden
 * Trusts:    the kernel's freezer, and what /proc says; init for shape
 * Leaves:    everything in the jail stopped, or a fresh jail in its place
 *
 * The freezer holds by itself. What was stopped by signals could be continued,
 * by somebody outside, or in a way that nobody knows yet: its CPU time is
 * looked at while the warden waits for the next cell.
 */
#include "state.h"

#include "jail/base/io.h"

#define STOP_MS 3000
#define VERIFY_MS 50
/* Longer than any process takes that can be frozen at all: one that has used
 * up its share of the CPU freezes when it gets more. */
#define FREEZE_MS 1000
/* Between two looks at what should be stopped. */
#define LOOK_MS 1000
/* What a death alone may add: its time is rounded differently then. */
#define LOOK_ROUND_MS 30

void warden_thaw(struct warden *w)
{
	if (w->frozen)
		cgroup_freeze(&w->cgroup, 0, FREEZE_MS, NULL);
	w->frozen = w->measured = 0;
}

/* Init stopped all that it could not see: look for it, and have it kill what
 * runs on but the guest and its checkpoints. -1 when that cannot be done. */
static int stop_verify(struct warden *w, int32_t *killed)
{
	int64_t end = now_ms() + VERIFY_MS;
	int32_t pids[WIRE_PIDS_MAX];
	int n = warden_checkpoint_pids(w, pids), r;
	struct wire_init m;
	struct procs p;

	while ((r = procs_sample(&w->procs, PROCS_RUNNING, &p, NULL)) == 0 &&
		p.running > 0) {
		if (now_ms() < end) {
			warden_poll(NULL, 0, 1);
			continue;
		}
		pids[n++] = w->live;
		if (warden_init_send(w, INIT_KILL, pids, n, NULL, 0) < 0 ||
			warden_init_await(w, INIT_KILLED, &m,
				now_ms() + WARDEN_KILL_MS) < 0)
			return -1;
		*killed = m.killed;
		return 0;
	}
	return r;
}

static int sweep(struct warden *w, int32_t *killed)
{
	int32_t pids[WIRE_PIDS_MAX];
	struct wire_init m;

	w->swept = 1;
	w->look_ms = now_ms() + LOOK_MS;
	w->rest_cpu_ms = -1;
	if (warden_init_send(w, INIT_STOP, pids,
		    warden_checkpoint_pids(w, pids), NULL, 0) < 0 ||
		warden_init_await(w, INIT_STOPPED, &m, now_ms() + STOP_MS) <
			0 ||
		m.unseen)
		return -1;
	*killed = m.killed;
	return w->no_proc ? stop_verify(w, killed) : 0;
}

void warden_stop(struct warden *w, int32_t *killed)
{
	*killed = 0;
	w->measured = 0;
	if (cgroup_can_freeze(&w->cgroup)) {
		w->frozen = 1;
		if (cgroup_freeze(&w->cgroup, 1, FREEZE_MS, NULL) == 0)
			return;
		/* Something does not freeze: sweep, which kills it. */
		warden_thaw(w);
	}
	if (sweep(w, killed) == 0)
		return;
	warden_notice(w, "the jail could not be stopped · Python restarted, "
			 "variables lost · home kept");
	warden_restart(w);
	if (sweep(w, killed) < 0)
		warden_end(w);
}

void warden_rest(struct warden *w, int32_t *killed)
{
	*killed = 0;
	if (w->spec->limits.background != BACKGROUND_RUN)
		warden_stop(w, killed);
}

void warden_continue(struct warden *w)
{
	int32_t pids[WIRE_PIDS_MAX];

	warden_thaw(w);
	if (!w->swept)
		return;
	w->swept = 0;
	warden_init_send(w, INIT_CONTINUE, pids,
		warden_checkpoint_pids(w, pids), NULL, 0);
}

int warden_still(struct warden *w, int64_t *due_ms)
{
	int64_t now = now_ms(), was = w->rest_cpu_ms;
	int32_t killed;
	struct procs p;

	*due_ms = w->swept ? w->look_ms - now : INT64_MAX;
	if (*due_ms > 0)
		return 1;
	*due_ms = LOOK_MS;
	w->look_ms = now + LOOK_MS;
	if (procs_sample(&w->procs, 0, &p, NULL) < 0)
		return 1;
	w->rest_cpu_ms = p.cpu_ms;
	if (was < 0 || p.cpu_ms <= was + LOOK_ROUND_MS)
		return 1;
	if (w->ran_on++)
		return 0;
	warden_stop(w, &killed);
	if (killed > 0)
		warden_notice(w, "%d process%s ran on between cells: killed",
			killed, killed == 1 ? "" : "es");
	return 1;
}
