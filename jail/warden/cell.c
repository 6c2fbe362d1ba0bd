/* SPDX-License-Identifier: MIT */
/*
 * cell.c - one cell, from its source to its verdict
 *
 * Runs in:   warden
 * Trusts:    clocks, the kernel's counters and reports of death; nothing the
 *            guest says can change what is told of its end
 * Leaves:    a live guest, stopped, with a checkpoint; or words on why not
 *
 * When a cell must end: SIGINT to the foreground group at the limit; after the
 * grace, everything but the checkpoints is killed and the newest of them goes
 * on; when none answers, a fresh Python starts on the same home.
 */
#include "jail/warden/parts.h"

#include "jail/base/io.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/wait.h>

/* The memory of a cell shorter than this is not weighed: it would cost more. */
#define WEIGH_AFTER_MS 10
/* Looks for processes that are on their way out, with a pause after each; looks
 * for those that the host keeps from going on; and the longest time for both.
 */
#define LEAVE_LOOKS 20
#define LEAVE_BUSY_LOOKS 160
#define LEAVE_PAUSE_MS 2
#define LEAVE_MS 2000

struct cell {
	struct warden *w;
	struct watch watch;
	struct jail_done done;
	char *src;
	size_t n, at; /* of the source; written so far */
	int report;   /* for the guest, borrowed; or -1 */
	enum jail_cell kind;
	int64_t wall_ms; /* its own limit; 0: none */
	int took;	 /* the source has arrived */
	int64_t fork_fails_start, peak_start;
};

/* ---- its beginning ---- */

static int load_source(struct cell *c, int fd)
{
	char *why = c->done.text;
	size_t size = sizeof(c->done.text);
	int64_t max = c->w->spec->limits.source_bytes;
	off_t n = io_sealed_size(fd);

	if (n < 0) {
		snprintf(why, size, "its source is missing");
		return -1;
	}
	if (n > max) {
		snprintf(why, size,
			"the cell has %lld bytes, more than cell.source = %lld",
			(long long)n, (long long)max);
		return -1;
	}
	c->n = (size_t)n;
	c->src = malloc(c->n + 1);
	if (!c->src || pread(fd, c->src, c->n, 0) != (ssize_t)c->n) {
		snprintf(why, size, "its source could not be read");
		return -1;
	}
	return 0;
}

static void tell_done(struct cell *c)
{
	struct jail_event ev = {
		.type = JAIL_DONE, .cell = c->done.cell, .done = c->done};

	if (c->done.limit != LIMIT_NONE)
		site_count(&c->w->site, c->done.limit);
	else if (c->done.process_limit_hit)
		site_count(&c->w->site, LIMIT_PROCESSES);
	link_event(&c->w->link, &ev, NULL, 0);
	/* An interrupt that comes from now on is not for this cell. */
	link_served(&c->w->link);
}

/* Say that the cell did not run. A jail that was left running because this
 * request was waiting is stopped. */
static int refuse_cell(struct cell *c)
{
	int32_t killed;

	c->done.how = HOW_REFUSED;
	c->done.names = c->w->guest.names;
	tell_done(c);
	return warden_stop(c->w, &killed);
}

static void mark_make(char *mark)
{
	unsigned char b[JAIL_MARK_LEN / 2];

	while (getrandom(b, sizeof(b), 0) != (ssize_t)sizeof(b))
		;
	for (size_t i = 0; i < sizeof(b); i++)
		sprintf(mark + 2 * i, "%02x", b[i]);
}

static void write_source(struct cell *c)
{
	ssize_t n = write(c->w->jail.line, c->src + c->at, c->n - c->at);

	if (n > 0)
		c->at += (size_t)n;
}

/* The session's CPU time before: the most that was seen. A sum over processes
 * may have fallen (tally_add_cpu()), and rises again while the cell runs. */
static int64_t note_start(struct cell *c)
{
	struct warden *w = c->w;
	const struct warden_jail_usage *u = warden_baseline(w);

	warden_note_cell(w, c->done.cell);
	warden_jail_note_oom(&w->jail, u->oom_kills, u->limit_hits);
	c->fork_fails_start = u->fork_fails;
	c->peak_start = warden_jail_peak(&w->jail);
	return w->jail.cpu_ms;
}

/* ---- what ends it ---- */

/* The live guest is dead: say of what. */
static void note_death(struct cell *c)
{
	int status = c->w->guest.status;
	struct jail_done *d = &c->done;
	struct cgroup_usage u;

	cgroup_usage(&c->w->site.cgroup, &u);
	c->watch.ended = 1;
	if (WIFEXITED(status)) {
		d->status = WEXITSTATUS(status);
		d->how = HOW_EXITED;
		return;
	}
	d->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	d->how = d->signal == WIRE_STACK_SIGNAL ? HOW_LOST : HOW_CRASHED;
	if (d->signal == SIGKILL && u.oom_kills > c->w->jail.oom_seen &&
		u.oom_kills > c->watch.oom_others) {
		d->how = HOW_KILLED;
		d->limit = warden_jail_oom_limit(&c->w->jail);
	}
}

/* The guest's socket has closed. If the guest is dying, its death says more. */
static void note_lost_link(struct cell *c)
{
	if (!warden_guest_lives(c->w)) {
		note_death(c);
		return;
	}
	c->done.how = HOW_LOST;
	c->watch.ended = 1;
}

/* First TOOK or BAD, then DONE, each once: nothing that can be repeated, so
 * that a flood ends with its second message. */
static int is_expected(const struct cell *c, enum wire_guest_type type)
{
	if (type == GUEST_TOOK || type == GUEST_BAD)
		return !c->took;
	return type == GUEST_DONE && c->took;
}

static void tell_took(struct cell *c)
{
	const struct jail_event ev = {.type = JAIL_TOOK, .cell = c->done.cell};

	link_event(&c->w->link, &ev, NULL, 0);
}

static void hear_guest(struct cell *c)
{
	struct guest *g = &c->w->guest;
	struct jail_done *d = &c->done;
	struct guest_message m;
	int r = guest_receive(g->ctl, &m);

	if (r == 0 || (r > 0 && guest_is_late_answer(g, &m.wire)))
		return;
	if (r < 0 || m.wire.no != d->cell || !is_expected(c, m.wire.type)) {
		note_lost_link(c);
		return;
	}
	if (m.wire.type == GUEST_TOOK) {
		c->took = 1;
		c->watch.may_pause = c->kind > CELL_BUNDLE;
		tell_took(c);
		watch_ready(&c->watch, c->w);
		return;
	}
	c->watch.ended = 1;
	if (m.wire.type == GUEST_BAD) {
		d->how = HOW_REFUSED;
		snprintf(d->text, sizeof(d->text),
			"its source did not arrive whole");
		return;
	}
	d->how = m.wire.how;
	d->status = m.wire.status;
	d->leaves = m.wire.leaves;
	d->has_mark = m.wire.marked;
	if (m.wire.threads > g->threads)
		d->threads = m.wire.threads - g->threads;
	guest_note_done(g, &m.wire);
}

/* The ttys, as a cell finds them. A guest that was left running may hold one of
 * them: it is stopped first. 0, or SESSION_OVER. */
static int prepare_ttys(struct warden *w)
{
	int32_t killed;

	if (warden_jail_set_ttys(&w->jail) == 0)
		return 0;
	if (warden_hold(w, &killed) == SESSION_OVER)
		return SESSION_OVER;
	warden_jail_set_ttys(&w->jail);
	return 0;
}

static void start_cell(struct cell *c, int64_t cpu_start_ms)
{
	struct warden *w = c->w;
	struct jail_event ev = {.type = JAIL_RUNNING, .cell = c->done.cell};
	char buf[256];
	size_t n;

	mark_make(ev.mark);
	link_event(&w->link, &ev, NULL, 0);
	link_ask(&w->link, INIT_FOREGROUND, NULL, NULL, 0);
	warden_continue(w);
	watch_start(&c->watch, w, cpu_start_ms, w->spec->limits.cell_grace_ms);
	watch_shorten(&c->watch, c->wall_ms, w->spec->limits.cell_wall_ms);
	c->watch.p[WATCH_GUEST].fd = w->guest.ctl;
	n = wire_cell_encode(buf, c->done.cell, c->n, wire_crc32(c->src, c->n),
		ev.mark, c->kind);
	if (guest_send(&w->guest, buf, n, c->report) < 0)
		note_lost_link(c);
	write_source(c);
}

static int run_cell(struct cell *c)
{
	struct warden *w = c->w;
	struct watch *wa = &c->watch;

	while (!wa->ended) {
		wa->p[WATCH_LINE].fd = c->at < c->n ? w->jail.line : -1;
		if (watch_wait(wa) == SESSION_OVER)
			return SESSION_OVER;
		/* First the messages that the guest sent before it died. */
		if (wa->p[WATCH_GUEST].revents)
			hear_guest(c);
		if (watch_init(wa, w) < 0) {
			guest_become(&w->guest, 0);
			c->done.how = HOW_LOST;
			wa->ended = 1;
		}
		if (!guest_is_alive(&w->guest) && !wa->ended)
			note_death(c);
		if (wa->p[WATCH_LINE].revents)
			write_source(c);
		/* A request that comes with the end is not for this cell. */
		if (watch_serve(wa, w) == SESSION_OVER)
			return SESSION_OVER;
	}
	if (c->done.limit == LIMIT_NONE)
		c->done.limit = wa->limit;
	if (wa->killed)
		c->done.how = HOW_KILLED;
	return 0;
}

/* ---- its end ---- */

static int is_alive_after(enum jail_how how)
{
	return how == HOW_OK || how == HOW_RAISED || how == HOW_SYNTAX ||
	       how == HOW_INTERRUPTED || how == HOW_EXIT || how == HOW_REFUSED;
}

/* Count the processes beside the live guest and its checkpoints. Processes that
 * are ending, as the children of a fork that all return from the cell, get a
 * moment, a longer one while the host keeps something in the jail waiting. A
 * checkpoint that was given up gets the time it has in any case. We count looks
 * and not time: on a busy host each takes longer, as an exit does. */
static int count_left(struct warden *w, struct warden_jail_usage *u, int before)
{
	int64_t end = now_ms() + LEAVE_MS;
	int ours = guest_is_alive(&w->guest) + w->checkpoints.n;

	if (u->processes - ours > before && w->checkpoints.ending) {
		if (checkpoints_await_ended(&w->checkpoints) == SESSION_OVER)
			return SESSION_OVER;
		ours = guest_is_alive(&w->guest) + w->checkpoints.n;
	}
	for (int looks = 0; u->processes - ours > before && now_ms() < end &&
			    (looks < LEAVE_LOOKS ||
				    (looks < LEAVE_BUSY_LOOKS &&
					    warden_jail_waiting(&w->jail) > 0));
		looks++) {
		link_poll(NULL, 0, LEAVE_PAUSE_MS);
		warden_jail_measure(&w->jail, u);
	}
	return u->processes > ours ? u->processes - ours : 0;
}

/* End what runs beside the live guest. */
static int end_leftovers(struct cell *c)
{
	struct warden *w = c->w;
	struct link_pids kept = checkpoints_pids(&w->checkpoints);
	int32_t killed;
	int r;

	kept.v[kept.n++] = w->guest.pid;
	r = warden_jail_kill(&w->jail, &kept, &killed);
	checkpoints_note_deaths(&w->checkpoints);
	if (r == SESSION_OVER)
		return r;
	c->done.leftovers_ended = (uint32_t)killed;
	warden_continue(w);
	return 0;
}

/* Fill in the resources that the cell took, and the processes that it left
 * running: they are counted, and ended when configured so or when there is no
 * room left for the next cell. */
static int settle_leftovers(struct cell *c)
{
	struct warden *w = c->w;
	const struct limits *l = &w->spec->limits;
	struct jail_done *d = &c->done;
	struct warden_jail_usage u;
	int n, told, before = w->jail.left, slots = c->watch.slots_peak;

	d->wall_ms = watch_wall_ms(&c->watch);
	warden_jail_look(&w->jail,
		d->wall_ms >= WEIGH_AFTER_MS ? WORK_WEIGHT : 0, LOOK_END_MS);
	warden_jail_measure(&w->jail, &u);
	d->peak_bytes = u.peak_bytes;
	/* Some kernels cannot reset the peak: only a higher one than before is
	 * known to be the cell's. */
	d->peak_is_its = u.peak_bytes > c->peak_start;
	d->cpu_ms = watch_cpu_ms(&c->watch, u.cpu_ms);
	if (!is_alive_after(d->how)) {
		/* The verdict tells it. */
		warden_jail_note_oom(&w->jail, u.oom_kills, u.limit_hits);
		return 0;
	}
	warden_tell_oom(w, "cell");
	if (u.slots > slots)
		slots = u.slots;
	n = count_left(w, &u, before);
	if (n < 0)
		return n;
	told = n - checkpoints_leaving(&w->checkpoints);
	told = told > 0 ? told : 0;
	warden_jail_note_left(&w->jail, told);
	if (n == 0)
		return 0;
	/* Survivors of a fork bomb come and go: we use the most that was seen,
	 * and the kernel's own count where there is one. */
	d->process_limit_hit = u.fork_fails > c->fork_fails_start ||
			       slots - w->checkpoints.n >= l->processes - 2;
	if (d->process_limit_hit || l->background == BACKGROUND_KILL) {
		d->leftovers = (uint32_t)told;
		return end_leftovers(c);
	}
	/* Those of earlier cells have been told. */
	if (told > before)
		d->leftovers = (uint32_t)(told - before);
	return 0;
}

/* Say where a stuck cell is, before it is killed. */
static void tell_stack(struct cell *c)
{
	char text[GUEST_STACK_MAX + 1];
	size_t n = guest_read_stack(&c->w->guest, text);
	const struct jail_event ev = {
		.type = JAIL_STACK, .bytes = text, .nbytes = (uint32_t)n};

	if (n > 0)
		link_event(&c->w->link, &ev, NULL, 0);
}

static int finish_cell(struct cell *c)
{
	struct warden *w = c->w;
	struct jail_done *d = &c->done;
	int64_t bytes;
	int files;

	warden_note_end(w, watch_left_ms(&c->watch, &w->spec->limits));
	if (settle_leftovers(c) == SESSION_OVER)
		return SESSION_OVER;
	if (is_alive_after(d->how)) {
		/* Early: the next cell may follow at once, and a Ctrl-C at its
		 * first line would go to a group that is gone. */
		link_ask(&w->link, INIT_FOREGROUND, NULL, NULL, 0);
		d->after = AFTER_KEPT;
		d->names = w->guest.names;
	} else {
		/* The tty echoes what the person presses meanwhile. */
		warden_jail_set_ttys(&w->jail);
		if (d->how == HOW_KILLED && d->limit != LIMIT_MEMORY &&
			d->limit != LIMIT_ALL && guest_is_alive(&w->guest))
			tell_stack(c);
		if (warden_recover(w, d) == SESSION_OVER)
			return SESSION_OVER;
	}
	if (d->limit == LIMIT_LIFETIME || d->limit == LIMIT_EXAM ||
		d->limit == LIMIT_UNTIL)
		d->after = AFTER_ENDED;
	if (d->how == HOW_REFUSED)
		warden_note_refused(w, d->cell);
	home_usage(&w->site.home, &bytes, &files);
	d->home_files = (uint32_t)files;
	d->home_bytes = bytes;
	warden_jail_return_keys(&w->jail);
	clocks_touch(&w->clocks);
	tell_done(c);
	if (d->after == AFTER_ENDED ||
		(d->after == AFTER_RESTARTED &&
			warden_restart(w) == SESSION_OVER))
		return SESSION_OVER;
	return warden_park(w);
}

int warden_cell_run(struct warden *w, const struct wire_front *m, int source_fd,
	int report_fd)
{
	struct cell c = {.w = w,
		.report = report_fd,
		.kind = (enum jail_cell)m->b,
		.wall_ms = m->c,
		.done = {.cell = (uint32_t)m->a}};
	int r = load_source(&c, source_fd);

	if (r < 0) {
		free(c.src);
		return refuse_cell(&c);
	}
	r = prepare_ttys(w);
	if (r == 0) {
		start_cell(&c, note_start(&c));
		r = run_cell(&c);
	}
	free(c.src);
	return r == SESSION_OVER ? r : finish_cell(&c);
}
