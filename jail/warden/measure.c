/* SPDX-License-Identifier: MIT */
/*
 * measure.c - what the jail uses
 *
 * Runs in:   warden
 * Trusts:    the kernel's counters: a cgroup's where there is one, what /proc
 *            says of each process where there is none
 */
#include "state.h"

#include <sys/vfs.h>

/* What is kept in files. A page that is mapped too counts twice. */
static int64_t files_bytes(const struct warden *w)
{
	int64_t bytes = 0, home = 0;
	struct statfs st;
	int files;

	for (int i = 0; i < APPLY_TMPFS; i++)
		if (w->tmp[i] >= 0 && fstatfs(w->tmp[i], &st) == 0)
			bytes += (int64_t)(st.f_blocks - st.f_bfree) *
				 st.f_bsize;
	home_usage(&w->home, &home, &files);
	return bytes + home;
}

void warden_measure(struct warden *w, unsigned flags, struct measure *m)
{
	struct cgroup_usage u;
	struct procs p = {0};
	int counted;

	*m = (struct measure){0};
	cgroup_usage(&w->cgroup, &u);
	counted = w->cgroup.enforced & CGROUP_LIMIT_MEMORY;
	procs_sample(&w->procs,
		flags & MEASURE_MEMORY && !counted ? PROCS_MEMORY : 0, &p,
		NULL);
	m->processes = p.n;
	m->slots = p.threads + p.zombies + 1;
	m->fork_fails = u.fork_fails;
	m->cpu_ms =
		u.cpu_ns >= 0 ? u.cpu_ns / 1000000 : w->cpu_gone_ms + p.cpu_ms;
	if (m->cpu_ms > w->cpu_ms)
		w->cpu_ms = m->cpu_ms;
	m->bytes = counted ? u.memory_bytes : p.bytes + files_bytes(w);
	if (m->bytes > w->peak_bytes)
		w->peak_bytes = m->bytes;
	m->peak_bytes =
		counted && u.peak_bytes > 0 ? u.peak_bytes : w->peak_bytes;
	m->oom_kills = u.oom_kills;
}

const struct measure *warden_baseline(struct warden *w)
{
	if (w->measured)
		return &w->baseline;
	warden_measure(w, 0, &w->baseline);
	warden_weigh_start(w);
	w->measured = w->frozen || w->swept;
	return &w->baseline;
}
