/* SPDX-License-Identifier: MIT */
/*
 * end.c - the end of a cell, and the truth about it
 *
 * Runs in:   warden
 * Trusts:    the kernel's counters and reports of death
 * Leaves:    a live guest at rest with a checkpoint, or what was said instead
 */
#include "run.h"

#include "jail/base/io.h"
#include "jail/walls/pty.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>

/* Keys handed back at most: what a tty holds, and what is on its way there. */
#define KEYS_MAX (64 * 1024)
/* How long the last look at a stuck cell takes, and how long it waits for the
 * next line, which a busy machine may delay. */
#define LOOK_MS 1000
#define LOOK_SILENT_MS 250
/* How long processes that are ending may take to be no leftovers. */
#define LEAVE_MS 50
/* A cell shorter than this is not measured: measuring would cost more. */
#define MEASURE_MS 10

void run_return_keys(struct warden *w)
{
	struct jail_event ev = {.type = JAIL_TYPEAHEAD};
	char buf[KEYS_MAX];
	size_t n = 0;
	ssize_t r;
	int fd;

	/* Reading, unlike FIONREAD, waits for bytes that were written and are
	 * still on their way through the kernel. */
	pty_set_raw(w->tty_slave, NULL);
	while (n < sizeof(buf) &&
		(r = read(w->tty_slave, buf + n, sizeof(buf) - n)) > 0)
		n += (size_t)r;
	if (n == 0)
		return;
	fd = io_sealed_memfd("cellblock-keys", buf, n);
	if (fd < 0)
		return;
	warden_event(w, &ev, &fd, 1);
	close(fd);
}

/* Whether the driver's own frame is written: those of the cell stand above. */
static int stack_is_whole(const char *text)
{
	static const char driver[] = "  File \"<string>\", line ";
	static const char end[] = " in session\n";

	while ((text = strstr(text, driver)) != NULL) {
		text += sizeof(driver) - 1;
		text += strspn(text, "0123456789");
		if (strncmp(text, end, sizeof(end) - 1) == 0)
			return 1;
	}
	return 0;
}

/* A last look at where a stuck cell is, before it is killed: the driver's
 * handler writes every stack, from C, into a file that we hold. */
static void stack_show(struct warden *w)
{
	struct jail_event ev = {.type = JAIL_STACK};
	int64_t now = now_ms(), end = now + LOOK_MS, grown = now;
	char buf[STACK_MAX + 1] = {0};
	int32_t pid = w->live;
	size_t n = 0;
	int fd;

	/* Its offset is the guest's too. */
	if (w->stack < 0 || pwrite(w->stack, buf, STACK_MAX, 0) != STACK_MAX ||
		lseek(w->stack, 0, SEEK_SET) < 0 ||
		warden_init_send(w, INIT_WRITE_STACK, &pid, 1, NULL, 0) < 0)
		return;
	while (!stack_is_whole(buf) && now < end &&
		now < grown + LOOK_SILENT_MS) {
		warden_poll(NULL, 0, 2);
		now = now_ms();
		if (pread(w->stack, buf, STACK_MAX, 0) != STACK_MAX)
			return;
		if (strlen(buf) > n) {
			n = strlen(buf);
			grown = now;
		}
	}
	fd = io_sealed_memfd("stack", buf, strlen(buf));
	if (fd < 0)
		return;
	if (buf[0])
		warden_event(w, &ev, &fd, 1);
	close(fd);
}

static int alive_after(enum jail_how how)
{
	return how == HOW_OK || how == HOW_RAISED || how == HOW_SYNTAX ||
	       how == HOW_INTERRUPTED || how == HOW_EXIT || how == HOW_REFUSED;
}

/* The kernel may have taken a child of the cell's for memory. */
static void tell_oom(struct warden *w, const struct run *r, int64_t kills)
{
	int64_t n = kills - r->oom_start;

	if (kills > w->oom_seen)
		w->oom_seen = kills;
	if (n > 0)
		warden_notice(w,
			"memory limit: %lld process%s of the cell %s killed",
			(long long)n, n == 1 ? "" : "es",
			n == 1 ? "was" : "were");
}

/* End what runs beside the live guest. */
static void leftovers_end(struct warden *w, struct run *r)
{
	int32_t pids[WIRE_PIDS_MAX];
	int n = warden_checkpoint_pids(w, pids);
	struct wire_init m;

	pids[n++] = w->live;
	if (warden_init_send(w, INIT_KILL, pids, n, NULL, 0) == 0 &&
		warden_init_await(
			w, INIT_KILLED, &m, now_ms() + WARDEN_KILL_MS) == 0)
		r->d.leftovers_ended = (uint32_t)m.killed;
	w->left_behind = 0;
	w->swept = 1;
	warden_continue(w);
}

/* Processes beside the live guest and its checkpoints. Those that are on their
 * way out, as the children of a fork that all return from the cell, are given
 * a moment. */
static int count_left(struct warden *w, struct measure *m, int before)
{
	int64_t end = now_ms() + LEAVE_MS;
	int n = m->processes - (w->live > 0) - w->nkept;

	while (n > before && now_ms() < end) {
		warden_poll(NULL, 0, 2);
		warden_measure(w, 0, m);
		n = m->processes - (w->live > 0) - w->nkept;
	}
	return n > 0 ? n : 0;
}

/* What the cell took, and what it left running: that is counted, and ended
 * when configured so or when there is no room left for the next cell. */
static void run_settle(struct warden *w, struct run *r)
{
	const struct limits *l = &w->spec->limits;
	struct measure m;
	int n, before = w->left_behind;

	r->d.wall_ms = now_ms() - r->start_ms - r->rested_ms;
	warden_measure(w, r->d.wall_ms >= MEASURE_MS ? MEASURE_MEMORY : 0, &m);
	r->d.peak_bytes = m.peak_bytes;
	r->d.cpu_ms = m.cpu_ms - r->cpu_start_ms;
	if (!alive_after(r->d.how))
		return;
	tell_oom(w, r, m.oom_kills);
	if (m.slots > r->slots_peak)
		r->slots_peak = m.slots;
	n = w->left_behind = count_left(w, &m, before);
	if (n == 0)
		return;
	/* Survivors of a fork bomb come and go: what counts is what was seen of
	 * it at its height, and the kernel's own count where there is one. */
	r->d.process_limit_hit = m.fork_fails > r->fork_fails_start ||
				 r->slots_peak >= l->processes - 2;
	if (r->d.process_limit_hit || l->background == BACKGROUND_KILL) {
		r->d.leftovers = (uint32_t)n;
		leftovers_end(w, r);
	} else if (n > before) {
		/* Those of earlier cells have been told. */
		r->d.leftovers = (uint32_t)(n - before);
	}
}

void run_finish(struct warden *w, struct run *r)
{
	struct jail_event ev = {.type = JAIL_DONE, .cell = r->d.cell};
	int64_t bytes;
	int files;

	run_settle(w, r);
	if (alive_after(r->d.how)) {
		r->d.after = AFTER_KEPT;
		r->d.names = w->names;
	} else {
		if (r->d.how == HOW_KILLED && r->d.limit != LIMIT_MEMORY &&
			w->live)
			stack_show(w);
		warden_recover(w, &r->d);
	}
	if (r->d.limit == LIMIT_LIFETIME)
		r->d.after = AFTER_ENDED;
	if (r->d.how == HOW_REFUSED)
		w->next_cell = r->d.cell;
	home_usage(&w->home, &bytes, &files);
	r->d.home_files = (uint32_t)files;
	run_return_keys(w);
	ev.done = r->d;
	warden_touch(w);
	warden_event(w, &ev, NULL, 0);
	if (r->d.after == AFTER_ENDED)
		warden_end(w);
	if (r->d.after == AFTER_RESTARTED)
		warden_restart(w);
	warden_park(w);
}
