/* SPDX-License-Identifier: MIT */
/*
 * park.c - checkpoints: taking, giving up, going back
 *
 * Runs in:   warden
 * Trusts:    what the kernel says of lives and deaths; a checkpoint's own
 *            words only as far as its own session goes
 *
 * The live guest is never replaced in ordinary use: the copy is the
 * checkpoint. Going back means that init kills everything but the kept
 * copies, continues the newest, and that copy becomes the live guest.
 */
#include "state.h"

#include "jail/base/io.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <termios.h>

/* What parking, and waking, may take before they count as no answer. */
#define PARK_MS 2000
#define WAKE_MS 4000
#define END_MS 400
/* Parking again, after a guest that did not answer has been replaced. */
#define PARK_AGAIN_MS 700
#define PARK_TRIES 3
/* What a guest may take to see that the copy it made has been killed. */
#define UNHANG_MS 300

int warden_checkpoint_pids(const struct warden *w, int32_t *pids)
{
	for (int i = 0; i < w->nkept; i++)
		pids[i] = w->kept[i].pid;
	return w->nkept;
}

static void checkpoint_forget(struct warden *w, int i)
{
	fd_drop(&w->kept[i].sock);
	w->nkept--;
	memmove(&w->kept[i], &w->kept[i + 1],
		(size_t)(w->nkept - i) * sizeof(w->kept[0]));
}

static void checkpoint_end(struct warden *w, int i)
{
	int32_t pid = w->kept[i].pid;

	checkpoint_forget(w, i);
	warden_init_send(w, INIT_DISCARD, &pid, 1, NULL, 0);
	w->ending = w->init_seq;
}

/* What was given up is gone before anything is stopped: frozen, it would hold
 * its memory, and be counted as what a cell left behind. */
static void see_ended(struct warden *w)
{
	struct pollfd p = {.fd = w->init_sock, .events = POLLIN};
	int64_t end = now_ms() + END_MS;
	struct wire_init m;

	while (w->ending && now_ms() < end && warden_poll(&p, 1, END_MS) >= 0)
		if (warden_init_take(w, &m) < 0)
			break;
	w->ending = 0;
}

void warden_give_up(struct warden *w, int n, enum jail_no_checkpoint why)
{
	while (n-- > 0 && w->nkept > 0)
		checkpoint_end(w, 0);
	if (w->nkept == 0)
		w->no_checkpoint = why;
}

/* The kernel, short of memory, takes a checkpoint only where the cell has seen
 * to it that it looks larger than the cell. */
static int killed_for_memory(struct warden *w)
{
	struct cgroup_usage u;

	cgroup_usage(&w->cgroup, &u);
	if (u.oom_kills <= w->oom_seen)
		return 0;
	w->oom_seen = u.oom_kills;
	return 1;
}

void warden_checkpoint_died(struct warden *w, pid_t pid)
{
	int i = 0;

	while (i < w->nkept && w->kept[i].pid != pid)
		i++;
	if (i == w->nkept)
		return;
	checkpoint_forget(w, i);
	if (w->nkept > 0)
		return;
	w->no_checkpoint = killed_for_memory(w) ? NO_CHECKPOINT_MEMORY
						: NO_CHECKPOINT_KILLED;
	warden_notice(w,
		"the checkpoint was killed %s · a crash would now lose the "
		"variables",
		w->no_checkpoint == NO_CHECKPOINT_MEMORY ? "for memory"
							 : "from within");
}

/* What the guest says of why it made none; its words are not repeated. */
static const char *park_reason(const char *word)
{
	if (!strcmp(word, "processes"))
		return "no checkpoint could be taken, there are too many "
		       "processes";
	if (!strcmp(word, "memory"))
		return "no checkpoint could be taken, there is too little "
		       "memory";
	return "no checkpoint could be taken";
}

/* A fork hangs where a library, or the user, has asked for it: with threads,
 * in a handler that waits for a lock that nobody holds any more. That is no
 * reason to lose the guest, which only waits for it. */
static void unhang(struct warden *w, int64_t asked_ms)
{
	struct wire_init m = {.type = INIT_KILL_FORK,
		.seq = ++w->init_seq,
		.within_ms = (int32_t)(now_ms() - asked_ms)};

	warden_weigh_hung(w);
	io_send_fds(w->init_sock, &m, sizeof(m), NULL, 0, 0);
}

/* Send PARK, and take the live guest's answer. 0, or -1 when there is none. */
static int park_ask(struct warden *w, int sock, int64_t deadline,
	struct wire_guest *m, char *buf)
{
	size_t n = wire_park_encode(buf, w->next_cell);
	int64_t asked = now_ms();
	int r;

	if (io_send_fds(w->ctl, buf, n, &sock, 1, MSG_DONTWAIT) < 0)
		return -1;
	r = warden_guest_await_fair(w, w->ctl, m, buf, deadline);
	if (r == 0) {
		unhang(w, asked);
		r = warden_guest_await_fair(
			w, w->ctl, m, buf, now_ms() + UNHANG_MS);
	}
	return r == 1 && m->type == GUEST_PARKED && m->no == w->next_cell ? 0
									  : -1;
}

/* The copy says that it sleeps: keep it. */
static void checkpoint_keep(
	struct warden *w, int sock, const struct wire_guest *m)
{
	struct checkpoint *c = &w->kept[w->nkept];
	int32_t pids[WIRE_PIDS_MAX];

	*c = (struct checkpoint){.sock = sock,
		.pid = m->pid,
		.before = w->next_cell,
		.names = m->names,
		.threads = m->threads};
	w->nkept++;
	if (w->nkept > 1 && c[-1].before == c->before)
		checkpoint_end(w, w->nkept - 2); /* a newer one of the same */
	/* From now on init tells its death. */
	warden_init_send(w, INIT_CHECKPOINTS, pids,
		warden_checkpoint_pids(w, pids), NULL, 0);
}

/* Ask for a copy: 1 it sleeps, 0 none could be made, -1 no answer. */
static int checkpoint_take(struct warden *w, int64_t deadline)
{
	char buf[WIRE_GUEST_MAX];
	struct wire_guest m;
	int64_t asked = now_ms();
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return 0;
	io_refuse_fds(pair[0]);
	w->park_failed = park_reason("");
	r = park_ask(w, pair[1], deadline, &m, buf);
	close(pair[1]);
	if (r < 0) {
		close(pair[0]);
		return -1;
	}
	w->park_failed = park_reason(m.text);
	r = m.ok ? warden_guest_await_fair(w, pair[0], &m, buf, deadline) : -1;
	if (r == 1 && m.type == GUEST_ASLEEP && m.pid > 1 && m.pid != w->live) {
		checkpoint_keep(w, pair[0], &m);
		return 1;
	}
	close(pair[0]);
	if (r == 0)
		unhang(w, asked);
	return 0;
}

void warden_replace(struct warden *w, const char *what)
{
	struct jail_done d = {0};

	warden_recover(w, &d);
	if (d.after == AFTER_ROLLED_BACK) {
		warden_notice(w,
			"%s · back to the state before cell %u (%u name%s)",
			what, d.back_to, d.names, d.names == 1 ? "" : "s");
		return;
	}
	warden_notice(
		w, "%s · Python restarted, variables lost · home kept", what);
	warden_restart(w);
}

void warden_broken(struct warden *w, const char *what)
{
	int newest = w->nkept - 1;

	if (w->broken++) {
		warden_notice(w,
			"%s, again · Python restarted, variables lost "
			"· home kept",
			what);
		warden_restart(w);
		return;
	}
	if (w->live && newest >= 0 && w->kept[newest].before == w->next_cell)
		checkpoint_end(w, newest);
	warden_replace(w, what);
}

/* The guest did not answer where its driver always would: it has been broken
 * from within. */
static void guest_lost(struct warden *w)
{
	char what[80];

	snprintf(what, sizeof(what), "Python %s after cell %u",
		w->live ? "stopped answering" : "died", w->next_cell - 1);
	warden_broken(w, what);
}

/* A checkpoint after this cell? 1 taken, 0 none, and why. */
static int park_try(struct warden *w, enum jail_no_checkpoint *why)
{
	const struct limits *l = &w->spec->limits;
	int r;

	*why = NO_CHECKPOINT_NONE;
	if (l->checkpoint == CHECKPOINT_NEVER) {
		*why = NO_CHECKPOINT_OFF;
		return 0;
	}
	if (warden_weigh_skip(w)) {
		*why = w->skip_why;
		return 0;
	}
	for (int i = 0; i < PARK_TRIES; i++) {
		r = checkpoint_take(
			w, now_ms() + (i == 0 ? PARK_MS : PARK_AGAIN_MS));
		if (r > 0)
			return 1;
		*why = NO_CHECKPOINT_FAILED;
		if (r == 0)
			return 0;
		guest_lost(w);
	}
	return 0;
}

/* Before a crash shows it: what it would cost from now on. */
static void say_none(struct warden *w, enum jail_no_checkpoint why)
{
	const char *reason = why == NO_CHECKPOINT_OFF ? "checkpoints are off"
						      : w->park_failed;

	/* That copying costs too much was said when it did. */
	if (w->told_none || why == NO_CHECKPOINT_COST)
		return;
	w->told_none = 1;
	if (w->nkept == 0)
		warden_notice(
			w, "%s · a crash would lose the variables", reason);
	else
		warden_notice(w,
			"%s · a crash would go back to the state before cell "
			"%u",
			reason, w->kept[w->nkept - 1].before);
}

/* A cell that was typed meanwhile: there is no "between cells" before it. */
static int cell_waits(struct warden *w)
{
	struct wire_front m;

	return recv(w->front, &m, sizeof(m), MSG_PEEK | MSG_DONTWAIT) ==
		       sizeof(m) &&
	       m.type == FRONT_RUN;
}

void warden_park(struct warden *w)
{
	struct jail_event ev = {.type = JAIL_PARKED};
	const struct limits *l = &w->spec->limits;
	enum jail_no_checkpoint why;
	int32_t killed = 0;

	if (park_try(w, &why)) {
		w->no_checkpoint = NO_CHECKPOINT_NONE;
		w->told_none = 0;
	} else {
		if (w->nkept == 0)
			w->no_checkpoint = why;
		say_none(w, why);
	}
	if (w->nkept > l->undo + 1)
		warden_give_up(w, w->nkept - l->undo - 1, NO_CHECKPOINT_NONE);
	if (!cell_waits(w)) {
		see_ended(w);
		warden_rest(w, &killed);
	}
	ev.done.background_ended = (uint32_t)killed;
	ev.done.no_checkpoint = w->no_checkpoint;
	ev.done.names = w->names;
	warden_event(w, &ev, NULL, 0);
	if (w->frozen || w->swept)
		warden_baseline(w);
}

/* Wake a checkpoint: 0, or -1 when it does not answer. */
static int checkpoint_wake(
	struct warden *w, struct checkpoint *c, int64_t deadline_ms)
{
	int32_t pid = c->pid;
	char buf[WIRE_GUEST_MAX];
	struct wire_guest m;
	size_t n = wire_resume_encode(buf);

	w->live = pid;
	/* What the dead one has not read of its cell must not be the beginning
	 * of the next: here on its way, by init where it has arrived. */
	tcflush(w->line, TCOFLUSH);
	if (warden_init_send(w, INIT_RESUME, &pid, 1, NULL, 0) < 0 ||
		io_send_fds(c->sock, buf, n, NULL, 0, MSG_DONTWAIT) < 0 ||
		warden_guest_await_fair(w, c->sock, &m, buf, deadline_ms) !=
			1 ||
		m.type != GUEST_AWAKE || w->live == 0)
		return -1;
	fd_drop(&w->ctl);
	w->ctl = fd_take(&c->sock);
	w->names = m.names;
	w->threads = 0;
	return 0;
}

/* Have init kill all but the checkpoints; *killed counts. */
static int kill_all_but_kept(struct warden *w, int32_t *killed)
{
	int32_t pids[WIRE_PIDS_MAX];
	struct wire_init m;

	if (warden_init_send(w, INIT_KILL, pids,
		    warden_checkpoint_pids(w, pids), NULL, 0) < 0 ||
		warden_init_await(
			w, INIT_KILLED, &m, now_ms() + WARDEN_KILL_MS) < 0 ||
		!m.all_gone)
		return -1;
	*killed += m.killed;
	w->live = 0;
	w->left_behind = 0;
	return 0;
}

/* Wake the newest checkpoint that answers. */
static int wake_newest(struct warden *w, struct jail_done *d, int32_t *killed)
{
	int64_t deadline = now_ms() + WAKE_MS;

	while (w->nkept > 0) {
		struct checkpoint c = w->kept[--w->nkept];

		d->back_to = c.before;
		d->threads_gone = c.threads;
		if (checkpoint_wake(w, &c, deadline) == 0)
			return 0;
		fd_drop(&c.sock);
		d->no_checkpoint = NO_CHECKPOINT_SILENT;
		if (now_ms() >= deadline || kill_all_but_kept(w, killed) < 0)
			break;
	}
	return -1;
}

void warden_recover(struct warden *w, struct jail_done *d)
{
	int was_live = w->live > 0;
	int32_t killed = 0;

	warden_thaw(w);
	d->names = 0;
	d->after = AFTER_RESTARTED;
	d->no_checkpoint = w->no_checkpoint;
	if (w->nkept == 0)
		return;
	if (kill_all_but_kept(w, &killed) < 0) {
		d->no_checkpoint = NO_CHECKPOINT_SILENT;
		return;
	}
	if (w->nkept == 0)
		d->no_checkpoint = w->no_checkpoint;
	else if (wake_newest(w, d, &killed) == 0)
		d->after = AFTER_ROLLED_BACK;
	if (d->after != AFTER_ROLLED_BACK)
		return;
	d->names = w->names;
	d->no_checkpoint = NO_CHECKPOINT_NONE;
	if (killed > was_live)
		d->leftovers_ended = (uint32_t)(killed - was_live);
}

void warden_restart(struct warden *w)
{
	struct jail_event ev = {.type = JAIL_FAILED};

	warden_jail_stop(w);
	w->no_checkpoint = NO_CHECKPOINT_NONE;
	w->left_behind = 0;
	if (warden_jail_start(w, &ev.err) == 0 &&
		warden_guest_start(w, 1, &ev.err) == 0)
		return;
	err_kind_set(&ev.err, ERR_JAIL);
	warden_event(w, &ev, NULL, 0);
	warden_end(w);
}

int warden_undo(struct warden *w, int n, uint32_t *back_to, struct err *e)
{
	struct jail_done d = {0};
	/* The newest is the state now, unless none was taken of it. */
	int now = w->nkept > 0 && w->kept[w->nkept - 1].before == w->next_cell;
	int can = w->nkept - now;

	if (can < n || n < 1) {
		if (can <= 0)
			return err_set(
				e, "undo: nothing is kept to go back to");
		return err_set(e, "undo: only %d cell%s kept", can,
			can == 1 ? " is" : "s are");
	}
	for (n += now - 1; n > 0; n--)
		fd_drop(&w->kept[--w->nkept].sock);
	warden_recover(w, &d);
	if (d.after == AFTER_ROLLED_BACK) {
		*back_to = d.back_to;
		return 0;
	}
	warden_restart(w);
	err_set(e, "undo: the older state did not answer; Python was "
		   "restarted, variables lost, home kept");
	return 1;
}
