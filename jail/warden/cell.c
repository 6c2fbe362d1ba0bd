/* SPDX-License-Identifier: MIT */
/*
 * cell.c - one cell, from its source to the truth about its end
 *
 * Runs in:   warden
 * Trusts:    clocks, the kernel's counters and reports of death; nothing the
 *            guest says can lengthen a clock or change what is told of it
 *
 * The ladder: at a limit, SIGINT to the foreground group; after the grace,
 * everything but the checkpoints is killed and the newest of them goes on;
 * when none answers, a fresh Python starts on the same home.
 */
#include "run.h"

#include "jail/base/io.h"
#include "jail/init/procs.h"
#include "jail/walls/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Between two looks at a running cell. */
#define TICK_MS 50
#define TICK_WATCHED_MS 15
/* A session this large may copy much of itself at the start of a cell. */
#define COPYING_BYTES (64 << 20)
#define COPYING_MS 250
/* How long a death may take that has begun. */
#define DYING_MS 3000

static int run_load(struct warden *w, struct run *r, int fd)
{
	struct stat st;
	int64_t max = w->spec->limits.source_bytes;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		snprintf(r->d.text, sizeof(r->d.text), "its source is missing");
		return -1;
	}
	if (st.st_size > max) {
		snprintf(r->d.text, sizeof(r->d.text),
			"the cell has %lld bytes, more than cell.source = %lld",
			(long long)st.st_size, (long long)max);
		return -1;
	}
	r->n = (size_t)st.st_size;
	r->src = malloc(r->n + 1);
	if (!r->src || pread(fd, r->src, r->n, 0) != (ssize_t)r->n) {
		snprintf(r->d.text, sizeof(r->d.text),
			"its source could not be read");
		return -1;
	}
	return 0;
}

static void mark_make(char *mark)
{
	unsigned char b[JAIL_MARK_LEN / 2];

	while (getrandom(b, sizeof(b), 0) != (ssize_t)sizeof(b))
		;
	for (size_t i = 0; i < sizeof(b); i++)
		sprintf(mark + 2 * i, "%02x", b[i]);
}

/* ---- what ends it ---- */

static void run_interrupt(struct warden *w, struct run *r, enum jail_limit why)
{
	if (r->kill_ms)
		return;
	r->d.limit = why;
	r->kill_ms = now_ms() + w->spec->limits.cell_grace_ms;
	pty_signal_fg(w->tty_master, SIGINT, NULL);
}

static void run_kill(struct run *r, enum jail_limit why)
{
	r->d.how = HOW_KILLED;
	r->d.limit = why;
	r->over = 1;
}

/* The live guest is dead: by whom? */
static void run_died(struct warden *w, struct run *r)
{
	int status = w->live_status;
	struct cgroup_usage u;

	cgroup_usage(&w->cgroup, &u);
	r->over = 1;
	if (WIFEXITED(status)) {
		r->d.status = WEXITSTATUS(status);
		r->d.how = HOW_EXITED;
		return;
	}
	r->d.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	r->d.how = r->d.signal == WIRE_STACK_SIGNAL ? HOW_LOST : HOW_CRASHED;
	if (r->d.signal == SIGKILL && u.oom_kills > r->oom_start)
		run_kill(r, LIMIT_MEMORY);
}

/* Its end has begun, though init has not told it yet. */
static int is_dying(struct warden *w)
{
	struct procstat st;

	return procs_stat(&w->procs, w->live, &st) < 0 || st.exiting;
}

/* Its link broke. It may be dying of something better: wait for that. */
static void run_lost(struct warden *w, struct run *r)
{
	struct wire_init m;
	int64_t end = now_ms() + DYING_MS;

	while (w->live && is_dying(w) && now_ms() < end) {
		struct pollfd p = {.fd = w->init_sock, .events = POLLIN};

		warden_poll(&p, 1, 5);
		if (warden_init_take(w, &m) < 0)
			break;
	}
	if (!w->live) {
		run_died(w, r);
		return;
	}
	r->d.how = HOW_LOST;
	r->over = 1;
}

/* ---- what arrives ---- */

/* First TOOK or BAD, then DONE, each once: nothing that can be repeated, so
 * that a flood ends with its second message. */
static int run_expects(const struct run *r, enum wire_guest_type type)
{
	if (type == GUEST_TOOK || type == GUEST_BAD)
		return !r->took;
	return type == GUEST_DONE && r->took;
}

static void run_guest(struct warden *w, struct run *r)
{
	char buf[WIRE_GUEST_MAX];
	struct wire_guest m;
	ssize_t n =
		io_recv_fds(w->ctl, buf, sizeof(buf), NULL, 0, MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0 || wire_guest_decode(&m, buf, (size_t)n, NULL) < 0 ||
		m.no != r->d.cell || !run_expects(r, m.type)) {
		run_lost(w, r);
		return;
	}
	if (m.type == GUEST_TOOK) {
		r->took = 1;
		return;
	}
	r->over = 1;
	if (m.type == GUEST_BAD) {
		r->d.how = HOW_REFUSED;
		snprintf(r->d.text, sizeof(r->d.text),
			"its source did not arrive whole (%s)", m.text);
		return;
	}
	r->d.how = m.how;
	r->d.status = m.status;
	r->d.has_mark = m.marked;
	w->names = m.names;
	w->threads = m.threads;
}

/* Verdict on a cell that never ran. */
static void refuse(struct warden *w, struct jail_done *d)
{
	struct jail_event ev = {.type = JAIL_DONE, .cell = d->cell};

	d->how = HOW_REFUSED;
	d->names = w->names;
	ev.done = *d;
	warden_event(w, &ev, NULL, 0);
}

static void run_front(struct warden *w, struct run *r)
{
	struct jail_done second = {.text = "a cell is running"};
	struct wire_event reply = {.event = {.type = WIRE_REPLY}};
	struct wire_front m;
	int fds[IO_FDS_MAX];
	ssize_t n = io_recv_fds(w->front, &m, sizeof(m), fds, IO_FDS_MAX, 0);

	for (int i = 0; i < IO_FDS_MAX; i++)
		fd_drop(&fds[i]);
	if (n <= 0 || wire_front_check(&m, (size_t)n, NULL) < 0)
		warden_end(w);
	switch (m.type) {
	case FRONT_INTERRUPT:
		pty_signal_fg(w->tty_master, SIGINT, NULL);
		return;
	case FRONT_KILL:
		run_kill(r, LIMIT_PERSON);
		return;
	case FRONT_RESIZE:
		pty_set_size(w->tty_slave, (unsigned short)m.a,
			(unsigned short)m.b, NULL);
		return;
	case FRONT_TOUCH:
		warden_touch(w);
		return;
	case FRONT_START:
		return;
	case FRONT_RUN:
		second.cell = (uint32_t)m.a;
		refuse(w, &second);
		return;
	case FRONT_KEYS:
	case FRONT_ASK:
	case FRONT_RESET:
	case FRONT_UNDO:
	case FRONT_USAGE:
	case FRONT_HOME_LIST:
	case FRONT_HOME_OPEN:
	case FRONT_HOME_CREATE:
	case FRONT_HOME_COMMIT:
	case FRONT_HOME_ABORT:
	case FRONT_HOME_REMOVE:
		break;
	}
	reply.reply.seq = m.seq;
	err_set(&reply.reply.err, "a cell is running");
	io_send_fds(w->front, &reply, sizeof(reply), NULL, 0, 0);
}

static void run_write(struct warden *w, struct run *r)
{
	ssize_t n = write(w->line, r->src + r->at, r->n - r->at);

	if (n > 0)
		r->at += (size_t)n;
}

/* ---- clocks ---- */

/* The wall clock rests while the cell waits for the person: its source has
 * arrived, and every process is asleep or reads. */
static void run_rest(struct warden *w, struct run *r, int64_t now)
{
	int64_t slice = now - r->looked_ms;

	r->looked_ms = now;
	if (!r->took || r->kill_ms ||
		r->rested_ms + slice > w->spec->limits.idle_ms ||
		!warden_waits_for_person(w))
		return;
	r->rested_ms += slice;
	r->deadline_ms += slice;
}

/* No cgroup counts the memory: we do. */
static int memory_watched(const struct warden *w)
{
	return !(w->cgroup.enforced & CGROUP_LIMIT_MEMORY);
}

/* Looking often where much can go wrong between two looks: memory that only
 * we count, and the copying that a large session's checkpoints may cost. */
static int tick_after(const struct warden *w, int64_t ran_ms)
{
	int copying = w->nkept > 0 && w->rss_bytes > COPYING_BYTES &&
		      ran_ms < COPYING_MS;

	return memory_watched(w) || copying ? TICK_WATCHED_MS : TICK_MS;
}

static void run_tick(struct warden *w, struct run *r, int64_t now)
{
	const struct limits *l = &w->spec->limits;
	struct measure m;
	int64_t due;

	run_rest(w, r, now);
	warden_measure(w, MEASURE_MEMORY, &m);
	if (m.slots > r->slots_peak)
		r->slots_peak = m.slots;
	warden_weigh(w, &m, now - r->start_ms);
	if (memory_watched(w) && m.bytes > l->memory_bytes)
		run_kill(r, LIMIT_MEMORY);
	else if (m.cpu_ms - r->cpu_start_ms > l->cell_cpu_ms)
		run_interrupt(w, r, LIMIT_CPU);
	if (warden_clock(w, LIMIT_LIFETIME, &due) <= 0)
		run_kill(r, LIMIT_LIFETIME);
	r->tick_ms = warden_next_look(now, tick_after(w, now - r->start_ms));
}

static void run_clocks(struct warden *w, struct run *r)
{
	int64_t now = now_ms();

	if (now >= r->tick_ms)
		run_tick(w, r, now);
	if (r->over)
		return;
	if (r->kill_ms && now >= r->kill_ms)
		run_kill(r, r->d.limit);
	else if (now >= r->deadline_ms)
		run_interrupt(w, r, LIMIT_WALL);
}

static int run_timeout(const struct run *r)
{
	int64_t next = r->tick_ms, left;

	if (r->kill_ms && r->kill_ms < next)
		next = r->kill_ms;
	if (!r->kill_ms && r->deadline_ms < next)
		next = r->deadline_ms;
	left = next - now_ms();
	return left < 0 ? 0 : (int)left;
}

static void run_loop(struct warden *w, struct run *r)
{
	struct wire_init im;

	while (!r->over) {
		struct pollfd p[4] = {{.fd = w->ctl, .events = POLLIN},
			{.fd = w->init_sock, .events = POLLIN},
			{.fd = w->front, .events = POLLIN},
			{.fd = r->at < r->n ? w->line : -1, .events = POLLOUT}};

		if (warden_poll(p, 4, run_timeout(r)) < 0 && errno != EINTR)
			warden_end(w);
		if (p[0].revents)
			run_guest(w, r);
		if (p[1].revents && warden_init_take(w, &im) < 0) {
			w->live = 0;
			r->d.how = HOW_LOST;
			r->over = 1;
		}
		if (!w->live && !r->over)
			run_died(w, r);
		/* What comes with its end is not for this cell any more. */
		if (p[2].revents && !r->over)
			run_front(w, r);
		if (p[3].revents)
			run_write(w, r);
		if (!r->over)
			run_clocks(w, r);
	}
}

static void run_start(struct warden *w, struct run *r)
{
	struct jail_event ev = {.type = JAIL_RUNNING, .cell = r->d.cell};
	char buf[256];
	size_t n;

	mark_make(ev.mark);
	run_return_keys(w);
	pty_set_cooked(w->tty_slave, NULL);
	/* The line's modes outlive a guest, and any of its code can set them.
	 */
	pty_set_raw(w->line, NULL);
	warden_event(w, &ev, NULL, 0);
	warden_init_send(w, INIT_FOREGROUND, NULL, 0, NULL, 0);
	warden_continue(w);
	r->start_ms = r->looked_ms = now_ms();
	r->deadline_ms = r->start_ms + w->spec->limits.cell_wall_ms;
	r->tick_ms = r->start_ms + tick_after(w, 0);
	n = wire_cell_encode(
		buf, r->d.cell, r->n, wire_crc32(r->src, r->n), ev.mark);
	if (io_send_fds(w->ctl, buf, n, NULL, 0, MSG_DONTWAIT) < 0)
		run_lost(w, r);
	run_write(w, r);
}

void warden_cell(struct warden *w, uint32_t cell, int source_fd)
{
	struct run r = {.d = {.cell = cell}};
	const struct measure *start;
	int32_t killed;

	if (run_load(w, &r, source_fd) < 0) {
		refuse(w, &r.d);
		warden_rest(w, &killed); /* it may have been expected */
		free(r.src);
		return;
	}
	w->next_cell = cell + 1;
	w->cells++;
	w->broken = w->ran_on = 0;
	start = warden_baseline(w);
	r.cpu_start_ms = start->cpu_ms;
	if (start->oom_kills > w->oom_seen)
		w->oom_seen = start->oom_kills;
	r.oom_start = w->oom_seen;
	r.fork_fails_start = start->fork_fails;
	run_start(w, &r);
	run_loop(w, &r);
	free(r.src);
	run_finish(w, &r);
}
