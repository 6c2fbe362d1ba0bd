/* SPDX-License-Identifier: MIT */
/*
 * watch.c - a cell or a program under its clocks
 *
 * Runs in:   warden
 * Trusts:    clocks and the kernel's counters: nothing that the guest says can
 *            lengthen a clock
 *
 * At a limit a cell is sent SIGINT (to the foreground group), and after the
 * grace it is killed. A program is killed at once. The kill itself is the
 * caller's.
 */
#include "jail/warden/parts.h"

#include "jail/base/io.h"
#include "jail/walls/walls.h"

#include <signal.h>
#include <string.h>
#include <sys/random.h>

/* Longest time between two checks of the limits, and where memory is polled. */
#define TICK_MS 50
#define TICK_OFTEN_MS 15
/* How much later than due a look may be. */
#define TICK_RANDOM_MS 10
/* How long a guest may take to begin a cell that was interrupted meanwhile. */
#define BEGIN_MS 400
/* Looks take at most one part in so many of a core. */
#define TICK_SHARE_DEN 32
/* A crowd runs for one look of so many (take_turns()), once the cell has run
 * for so long: processes that an earlier cell left may still be dying. */
#define TURNS 4
#define TURNS_AFTER_MS 300
/* The longest time that one sample may stand for. */
#define SAMPLE_MS 1000
/* A session this large may copy much of itself at the start of a cell. */
#define COPYING_BYTES (64 << 20)
#define COPYING_MS 250

/* The front end reads, filters and draws what the jail writes, and the helper
 * weighs a jail that had to be stopped: that work is the cell's too. */
static int64_t others_cpu_ms(const struct warden *w)
{
	return link_front_cpu_ms(&w->link) + w->jail.helper.cells_ns / 1000000;
}

/* Looks are frequent where much can go wrong between two: where only we count
 * the memory, and while a large session may copy much for its checkpoints. They
 * are at random times, so that no cell can arrange to be asleep at each. */
static int64_t next_tick(struct warden *w, int64_t now, int64_t ran_ms)
{
	const struct checkpoints *c = &w->checkpoints;
	int copying = c->n > 0 && c->size_bytes > COPYING_BYTES &&
		      ran_ms < COPYING_MS;
	uint8_t dice = 0;

	(void)!getrandom(&dice, 1, GRND_NONBLOCK);
	if (warden_jail_is_uncounted(&w->jail) || copying)
		now += TICK_OFTEN_MS;
	else
		now += TICK_MS;
	return now + dice % TICK_RANDOM_MS;
}

void watch_start(struct watch *wa, struct warden *w, int64_t cpu_start_ms,
	int64_t grace_ms)
{
	int64_t now = now_ms();

	*wa = (struct watch){.start_ms = now,
		.looked_ms = now,
		.moved_at_ms = now,
		.deadline_ms = now + w->spec->limits.cell_wall_ms,
		.tick_ms = next_tick(w, now, 0),
		.grace_ms = grace_ms,
		.crowd = warden_jail_crowd(&w->jail),
		.cpu_start_ms = cpu_start_ms,
		.others_start_ms = others_cpu_ms(w)};
	for (int i = 0; i < WATCH_FDS; i++)
		wa->p[i] = (struct pollfd){.fd = -1, .events = POLLIN};
	wa->p[WATCH_FRONT].fd = w->link.front;
	wa->p[WATCH_INIT].fd = w->link.init;
	wa->p[WATCH_LINE].events = POLLOUT;
}

void watch_shorten(struct watch *wa, int64_t wall_ms, int64_t most_ms)
{
	if (wall_ms > 0)
		wa->deadline_ms =
			wa->start_ms + (wall_ms < most_ms ? wall_ms : most_ms);
}

int64_t watch_wall_ms(const struct watch *wa)
{
	return now_ms() - wa->start_ms - wa->paused_ms;
}

int64_t watch_left_ms(const struct watch *wa, const struct limits *l)
{
	int64_t wall = wa->deadline_ms - now_ms();
	int64_t cpu = l->cell_cpu_ms - wa->cpu_ms;

	return wall < cpu ? wall : cpu;
}

int watch_wait(struct watch *wa)
{
	int64_t due = wa->kill_ms ? wa->kill_ms : wa->deadline_ms;

	if (wa->tick_ms < due)
		due = wa->tick_ms;
	return link_poll(wa->p, WATCH_FDS, link_ms_until(due)) < 0
		       ? SESSION_OVER
		       : 0;
}

int watch_init(struct watch *wa, struct warden *w)
{
	struct wire_init m;
	int r = 0;

	if (wa->p[WATCH_INIT].revents)
		r = link_take(&w->link, &m, NULL, 0);
	checkpoints_note_deaths(&w->checkpoints);
	return r < 0 ? -1 : 0;
}

/* ---- what ends it ---- */

static void strike_dead(struct watch *wa, enum jail_limit why)
{
	wa->limit = why;
	wa->killed = wa->ended = 1;
}

static void strike_limit(
	struct watch *wa, struct warden *w, enum jail_limit why)
{
	if (wa->grace_ms < 0) {
		strike_dead(wa, why);
	} else if (!wa->kill_ms) {
		wa->limit = why;
		wa->kill_ms = now_ms() + wa->grace_ms;
		if (wa->ready)
			pty_interrupt(w->jail.tty_master);
	}
}

/* The person's Ctrl-C. The driver would ignore it until the cell begins, as it
 * would the interrupt of a limit. */
static void interrupt_jail(struct watch *wa, struct warden *w)
{
	if (wa->ready && wa->stops) {
		strike_limit(wa, w, LIMIT_PERSON);
	} else if (wa->ready) {
		pty_interrupt(w->jail.tty_master);
	} else if (!wa->kill_ms) {
		wa->limit = LIMIT_PERSON;
		wa->kill_ms = now_ms() + BEGIN_MS;
	}
}

void watch_ready(struct watch *wa, struct warden *w)
{
	int due = wa->kill_ms && wa->limit == LIMIT_PERSON;

	wa->ready = 1;
	if (wa->kill_ms && !due)
		pty_interrupt(w->jail.tty_master);
	if (!due)
		return;
	wa->kill_ms = 0;
	wa->limit = LIMIT_NONE;
	interrupt_jail(wa, w);
}

/* The sum over processes may have fallen since the start. */
int64_t watch_cpu_ms(const struct watch *wa, int64_t now_ms)
{
	return now_ms > wa->cpu_start_ms ? now_ms - wa->cpu_start_ms : 0;
}

static void charge_time(struct watch *wa, struct warden *w, int64_t cpu_ms)
{
	wa->cpu_ms = watch_cpu_ms(wa, cpu_ms);
	wa->worked_ms = wa->cpu_ms + wa->unseen_ms + others_cpu_ms(w) -
			wa->others_start_ms;
}

/* The wall clock is paused while the jail waits for the person: every process
 * is asleep or reads the tty. The helper's sample stands for the time since
 * the last one. A sample does not see what was done before it: the clock runs
 * for as long as that took. */
static void pause_clock(struct watch *wa, struct warden *w, int heard,
	const struct work_result *a)
{
	int64_t since = wa->looked_ms, worked = wa->looked_worked_ms, slice;

	if (heard == 0 || (heard > 0 && a->began_ms < since))
		return;
	wa->looked_ms = heard > 0 ? a->began_ms : now_ms();
	slice = wa->looked_ms - since;
	/* A jail that could not be seen counts as working. */
	if (heard < 0)
		wa->unseen_ms += slice;
	wa->looked_worked_ms = wa->worked_ms;
	if (slice > SAMPLE_MS)
		slice = SAMPLE_MS;
	slice -= wa->worked_ms - worked;
	if (heard < 0 || !a->waits || !wa->may_pause || wa->kill_ms ||
		wa->turn || slice <= 0 ||
		wa->paused_ms + slice > w->spec->limits.idle_ms)
		return;
	wa->paused_ms += slice;
	wa->deadline_ms += slice;
}

/* The front end holds lines back for a cell that waits. A sample from before
 * the front end asked does not count: the cell may have written the last line
 * meanwhile. */
static void tell_waits(struct watch *wa, struct warden *w, int heard,
	const struct work_result *a)
{
	const struct jail_event ev = {.type = JAIL_WAITS};

	if (heard <= 0 || !(a->what & WORK_WAITS) || !a->waits ||
		!wa->tell_ms || a->began_ms <= wa->tell_ms)
		return;
	wa->tell_ms = 0;
	link_event(&w->link, &ev, NULL, 0);
}

/* True if the answer counted the pages that this cell has copied, or found that
 * they cannot be many since `faults`. */
static int knows_copies(
	const struct watch *wa, const struct work_result *a, int64_t faults)
{
	return a->what & WORK_PRIVATE && a->began_ms > wa->start_ms &&
	       (a->private_bytes >= 0 || faults >= 0);
}

/* Ask the helper what the next look will want to know. */
static void ask_helper(struct watch *wa, struct warden *w)
{
	const struct checkpoints *c = &w->checkpoints;
	/* Where memory may be over its limit, copies count in any case. */
	const struct work q = {
		.what = wa->may_pause && !wa->kill_ms ? WORK_WAITS : 0,
		.kept = checkpoints_pids(c),
		.pid = w->guest.pid,
		.faults = tally_is_doubtful(&w->jail.tally) ? 0
			  : c->faults < 0		    ? INT64_MAX
							    : c->faults};

	warden_jail_ask(&w->jail, &q,
		WORK_WEIGHT | (c->n > 0 && q.pid ? WORK_PRIVATE : 0));
}

/* No front end says that the person of a program beside a session is there: the
 * program is idle while it uses no CPU time. */
static int is_idle(struct watch *wa, struct warden *w, int64_t now)
{
	if (wa->worked_ms > wa->moved_ms) {
		wa->moved_ms = wa->worked_ms;
		wa->moved_at_ms = now;
	}
	return now - wa->moved_at_ms > w->spec->limits.idle_ms;
}

/* A guest that has outlived the last look was not what the kernel killed for
 * memory before it. SIGKILL follows the count at once, and a busy host may
 * leave the guest no CPU to die with. */
static void note_oom(struct watch *wa, struct warden *w, int64_t kills)
{
	struct procstatus st;

	if (wa->oom_looked > wa->oom_others &&
		procs_status(&w->jail.place.procs, w->guest.pid, &st) == 0 &&
		st.has_memory && !st.is_killed)
		wa->oom_others = wa->oom_looked;
	wa->oom_looked = kills;
}

/* A crowd runs from one look to the next, and is frozen for the next three.
 * Each fork() takes locks that the kernel has for a file, such as libc's, and
 * for all persons: a process may hold one while it waits for its person's share
 * of a core. Beside fifteen fork bombs the fork of another person's checkpoint
 * waited ten seconds (tests/bench/fair.py). A frozen process holds no lock. */
static void take_turns(struct watch *wa, struct warden *w,
	const struct warden_jail_usage *u, int64_t now)
{
	int crowded = wa->crowd && u->threads > wa->crowd && !wa->kill_ms &&
		      now - wa->start_ms > TURNS_AFTER_MS &&
		      u->memory == TALLY_FITS;

	wa->turn = crowded ? (wa->turn + 1) % TURNS : 0;
	warden_jail_rest(&w->jail, wa->turn > 0);
}

static void look_at_limits(struct watch *wa, struct warden *w, int64_t now)
{
	const struct limits *l = &w->spec->limits;
	int64_t cpu_ns = io_cpu_ns(), due;
	enum jail_limit until;
	struct warden_jail_usage u;
	struct work_result a;
	struct checkpoints *c = &w->checkpoints;
	int heard = warden_jail_hear(&w->jail, 0, &a), known;

	warden_jail_measure(&w->jail, &u);
	/* The weight may have been heard elsewhere, where copies are not looked
	 * at. */
	known = c->n == 0 || !w->guest.pid ||
		(heard > 0 ? knows_copies(wa, &a, c->faults) : !u.weighed);
	charge_time(wa, w, u.cpu_ms);
	pause_clock(wa, w, heard, &a);
	tell_waits(wa, w, heard, &a);
	wa->peak_bytes = u.peak_bytes;
	note_oom(wa, w, u.oom_kills);
	if (u.slots > wa->slots_peak)
		wa->slots_peak = u.slots;
	if (heard > 0 && a.what & WORK_PRIVATE && a.began_ms > wa->start_ms)
		checkpoints_weigh(c, &a, now - wa->start_ms);
	/* There may be room without the checkpoints: one that is given up was
	 * weighed with the rest, or what they cost is not known. */
	if (u.memory == TALLY_OVER &&
		(!known || !checkpoints_were_gone(
				   c, heard > 0 ? a.began_ms : now)))
		u.memory = TALLY_DOUBTFUL;
	take_turns(wa, w, &u, now);
	if (warden_jail_judge(&w->jail, u.memory))
		strike_dead(wa, LIMIT_MEMORY);
	else if (w->spec->side && is_idle(wa, w, now))
		strike_dead(wa, LIMIT_IDLE);
	else if (wa->worked_ms > l->cell_cpu_ms)
		strike_limit(wa, w, LIMIT_CPU);
	if (clocks_remaining_ms(&w->clocks, LIMIT_LIFETIME, &due) <= 0)
		strike_dead(wa, LIMIT_LIFETIME);
	if (clocks_until_ms(&w->clocks, &until, &due) <= 0)
		strike_dead(wa, until);
	ask_helper(wa, w);
	wa->tick_ms = next_tick(w, now, now - wa->start_ms);
	due = now + (io_cpu_ns() - cpu_ns) * TICK_SHARE_DEN / 1000000;
	if (wa->tick_ms < due)
		wa->tick_ms = due;
}

static void look_at_clocks(struct watch *wa, struct warden *w)
{
	int64_t now = now_ms();

	if (now >= wa->tick_ms)
		look_at_limits(wa, w, now);
	if (wa->ended)
		return;
	if (wa->kill_ms && now >= wa->kill_ms)
		strike_dead(wa, wa->limit);
	else if (now >= wa->deadline_ms)
		strike_limit(wa, w, LIMIT_WALL);
}

/* ---- the front end, meanwhile ---- */

static void refuse_request(struct warden *w, const struct wire_front *m)
{
	static const char why[] = "a cell is running";
	struct jail_event ev = {.type = JAIL_DONE, .cell = (uint32_t)m->a};
	struct wire_reply reply = {0};

	if (m->type == FRONT_RUN) {
		ev.done = (struct jail_done){.cell = ev.cell,
			.how = HOW_REFUSED,
			.names = w->guest.names};
		memcpy(ev.done.text, why, sizeof(why));
		link_event(&w->link, &ev, NULL, 0);
	} else {
		err_set(&reply.err, "%s", why);
		link_reply(&w->link, m->seq, &reply, NULL, 0);
	}
}

/* How much is used, as far as that is seen without waiting for a guest. */
static void answer_usage(struct warden *w, const struct wire_front *m)
{
	struct wire_reply reply = {.ok = 1};

	warden_usage(w, &reply.usage);
	link_reply(&w->link, m->seq, &reply, NULL, 0);
}

static int serve_front(struct watch *wa, struct warden *w)
{
	struct wire_front m;
	int fds[IO_FDS_MAX];

	if (link_request(&w->link, &m, fds) == SESSION_OVER)
		return SESSION_OVER;
	fds_drop(fds, IO_FDS_MAX);
	switch (m.type) {
	case FRONT_INTERRUPT:
		if (!link_is_served(&w->link, &m))
			break;
		wa->stops |= m.b != 0;
		interrupt_jail(wa, w);
		break;
	case FRONT_KILL:
		if (link_is_served(&w->link, &m))
			strike_dead(wa, LIMIT_PERSON);
		break;
	case FRONT_RESIZE:
		warden_jail_resize(
			&w->jail, (unsigned short)m.a, (unsigned short)m.b);
		break;
	case FRONT_TOUCH:
		clocks_touch(&w->clocks);
		break;
	case FRONT_WAITS:
		wa->tell_ms = now_ms();
		break;
	case FRONT_SIDE:
		link_serve_now(&w->link, &m);
		break;
	case FRONT_TELL_USAGE:
		/* We do not weigh for it: the next look needs the helper's
		 * answer. */
		warden_tell_usage(w);
		break;
	case FRONT_USAGE:
		answer_usage(w, &m);
		break;
	case FRONT_START:
		break;
	case FRONT_RUN:
	case FRONT_KEYS:
	case FRONT_ASK:
	case FRONT_RESET:
	case FRONT_UNDO:
	case FRONT_LOWER:
	case FRONT_HOME_LIST:
	case FRONT_HOME_OPEN:
	case FRONT_HOME_CREATE:
	case FRONT_HOME_COMMIT:
	case FRONT_HOME_MKDIR:
	case FRONT_HOME_ABORT:
	case FRONT_HOME_REMOVE:
	case FRONT_READY:
		refuse_request(w, &m);
		break;
	}
	return 0;
}

int watch_serve(struct watch *wa, struct warden *w)
{
	if (!wa->ended && wa->p[WATCH_FRONT].revents &&
		serve_front(wa, w) == SESSION_OVER)
		return SESSION_OVER;
	if (!wa->ended)
		look_at_clocks(wa, w);
	if (wa->ended || wa->kill_ms)
		warden_jail_rest(&w->jail, 0);
	/* Its end may have come while it was stopped to be weighed. */
	if (wa->ended && wa->limit != LIMIT_MEMORY)
		warden_jail_judge(&w->jail, TALLY_FITS);
	return 0;
}
