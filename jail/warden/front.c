/* SPDX-License-Identifier: MIT */
/*
 * front.c - the front end's requests, between cells
 *
 * Runs in:   warden, between cells
 * Trusts:    the front end for its shape only: whatever it asks, it can reach
 *            no more than its own session's home and limits
 *
 * One table: request, function. Each request that is answered gets exactly
 * one reply with its number.
 */
#include "jail/warden/parts.h"

#include "jail/base/io.h"
#include "jail/walls/walls.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* How long a question may take, and the guest to answer after its interrupt. */
#define ASK_MS 1000
#define ASK_GRACE_MS 300

struct front_request {
	struct wire_front m;
	int fd, fd2; /* what came with it, or -1 */
	struct wire_reply reply;
	int fds[JAIL_MANY_MAX], nfds; /* go with the reply */
	int created;		      /* these are files of the home, which
				       * has them until they are committed */
	char *bytes;		      /* or these, owned */
	size_t nbytes;
	int replied;
};

static void reply_send(struct warden *w, struct front_request *q)
{
	int r;

	q->replied = 1;
	r = q->bytes ? link_reply_bytes(&w->link, q->m.seq, &q->reply, q->bytes,
			       q->nbytes)
		     : link_reply(
			       &w->link, q->m.seq, &q->reply, q->fds, q->nfds);
	free(q->bytes);
	q->bytes = NULL;
	for (int i = 0; i < q->nfds; i++) {
		if (!q->created)
			close(q->fds[i]);
		else if (r < 0) /* nobody knows of it */
			home_abort(&w->site.home, (uint32_t)(q->reply.b + i),
				NULL);
	}
	q->nfds = 0;
}

/* The reply gets a descriptor (taken), which may be -1. */
static int reply_with(struct front_request *q, int fd)
{
	if (fd < 0)
		return -1;
	q->fds[q->nfds++] = fd;
	return 0;
}

/* Each returns 0 or more, -1 with the reply's error set, or SESSION_OVER. */

static int serve_usage(struct warden *w, struct front_request *q)
{
	warden_jail_look(&w->jail, WORK_WEIGHT, LOOK_SHOW_MS);
	warden_usage(w, &q->reply.usage);
	return 0;
}

static int serve_list(struct warden *w, struct front_request *q)
{
	struct jail_usage *u = &q->reply.usage;
	int truncated = 0;

	q->bytes =
		home_list(&w->site.home, &q->nbytes, &truncated, &q->reply.err);
	home_usage(&w->site.home, &u->home_bytes, &u->home_files);
	q->reply.a = truncated;
	return q->bytes ? 0 : -1;
}

static int serve_open(struct warden *w, struct front_request *q)
{
	const char *paths[JAIL_MANY_MAX];
	int n = wire_front_paths(&q->m, paths);

	while (q->nfds < n &&
		reply_with(q, home_open(&w->site.home, paths[q->nfds],
				      &q->reply.err)) == 0)
		;
	q->reply.a = q->nfds;
	return 0;
}

static int serve_create(struct warden *w, struct front_request *q)
{
	const char *paths[JAIL_MANY_MAX];
	int n = wire_front_paths(&q->m, paths);
	uint32_t token = 0;

	q->created = 1;
	while (q->nfds < n &&
		reply_with(q, home_create(&w->site.home, paths[q->nfds],
				      (mode_t)q->m.b & 0777, &token,
				      &q->reply.err)) == 0)
		;
	q->reply.a = q->nfds;
	q->reply.b = (int64_t)token - q->nfds + 1; /* they follow each other */
	return 0;
}

static int serve_commit(struct warden *w, struct front_request *q)
{
	int n = wire_front_ends(&q->m);

	while (q->reply.a < n &&
		home_commit(&w->site.home, &q->m.ends[q->reply.a],
			&q->reply.err) == 0)
		q->reply.a++;
	return 0;
}

static int serve_mkdir(struct warden *w, struct front_request *q)
{
	const char *paths[JAIL_MANY_MAX];
	int n = wire_front_paths(&q->m, paths);

	while (q->reply.a < n &&
		home_mkdir(&w->site.home, paths[q->reply.a],
			&q->m.ends[q->reply.a], &q->reply.err) == 0)
		q->reply.a++;
	return 0;
}

static int serve_abort(struct warden *w, struct front_request *q)
{
	return home_abort(&w->site.home, (uint32_t)q->m.a, &q->reply.err);
}

static int serve_remove(struct warden *w, struct front_request *q)
{
	return home_remove(&w->site.home, q->m.path, &q->reply.err);
}

static int serve_reset(struct warden *w, struct front_request *q)
{
	int keep = checkpoints_can_reset(&w->checkpoints, w->next_cell);

	q->reply.ok = 1;
	q->reply.a = keep;
	reply_send(w, q);
	if (warden_reset(w, keep) == SESSION_OVER)
		return SESSION_OVER;
	return warden_park(w);
}

static int serve_lower(struct warden *w, struct front_request *q)
{
	int r = lease_lower(w, q->m.a, q->m.b, &q->reply.err);

	return r < 0 ? r : warden_park(w);
}

static int serve_undo(struct warden *w, struct front_request *q)
{
	int r = warden_undo(w, (int)q->m.a, &q->reply.undone, &q->reply.err);

	if (r < 0)
		return r;
	q->reply.ok = r == 0;
	reply_send(w, q);
	return warden_park(w);
}

/* The question's text, from its memfd. */
static ssize_t ask_text(struct front_request *q, char *text, size_t size)
{
	off_t n = io_sealed_size(q->fd);

	if (n < 0 || (size_t)n > size)
		return -1;
	return pread(q->fd, text, size, 0);
}

/* Python has not answered, though it was interrupted, or it has ended: it is
 * replaced like any guest that hangs or dies. */
static int ask_failed(struct warden *w, struct front_request *q, int hung)
{
	err_set(&q->reply.err, "Python did not answer in time");
	if (warden_replace(w, hung ? "a question to Python hung · killed"
			      : w->jail.over
				      ? "a question to Python used too much "
					"memory · killed"
				      : "a question to Python was its end") ==
			SESSION_OVER ||
		warden_park(w) == SESSION_OVER)
		return SESSION_OVER;
	return -1;
}

/* Wait for the answer, in the end with an interrupt; longer where the host
 * keeps Python from answering. As guest_await(). */
static int ask_await(struct warden *w, struct guest_message *m)
{
	struct guest *g = &w->guest;
	int r = guest_await_hurried(g, g->ctl, m, now_ms() + ASK_MS, now_ms());

	if (r != 0)
		return r;
	pty_interrupt(w->jail.tty_master);
	r = guest_await_fair(g, g->ctl, m, now_ms() + ASK_GRACE_MS);
	return r == GUEST_LATE ? 0 : r;
}

/* The answer becomes the reply. */
static int keep_answer(struct front_request *q, const struct wire_guest *m)
{
	q->nbytes = m->answer_n;
	q->bytes = malloc(q->nbytes + 1);
	if (!q->bytes)
		return err_errno(&q->reply.err, "hold the answer");
	memcpy(q->bytes, m->answer, q->nbytes);
	return 0;
}

/* Ask the live guest. 1, and a message that is about the question; 0 no answer
 * within its time; -1 the guest has ended, or is broken; SESSION_OVER. */
static int ask_live(struct warden *w, const struct trial_question *t, int alone,
	struct guest_message *m)
{
	size_t n =
		wire_ask_encode(m->bytes, t->no, t->kind, alone, t->text, t->n);
	int r;

	if (guest_send(&w->guest, m->bytes, n, -1) < 0)
		return 0;
	r = ask_await(w, m);
	return r == 1 && ((m->wire.type != GUEST_ANSWER &&
				  m->wire.type != GUEST_WANTS) ||
				 m->wire.no != t->no)
		       ? -1
		       : r;
}

/* Ask the live guest, and where it says so a copy of it. As ask_live(). *kept:
 * 0 the reply has the answer, -1 its error is set. */
static int ask_guest(struct warden *w, struct front_request *q, int *kept)
{
	char text[WIRE_ANSWER_MAX];
	ssize_t n = ask_text(q, text, sizeof(text));
	struct trial_question t = {.no = q->m.seq,
		.kind = (enum jail_question)q->m.a,
		.text = text,
		.n = (size_t)n};
	struct guest_message m;
	int r;

	*kept = -1;
	if (n < 0)
		return err_set(&q->reply.err, "malformed question"), 1;
	r = ask_live(w, &t, 0, &m);
	if (r == 1 && m.wire.type == GUEST_WANTS)
		r = trial_ask(w, &t, &m, &q->reply.err);
	if (r == TRIAL_NO_COPY)
		r = ask_live(w, &t, 1, &m);
	else if (r == TRIAL_FAILED)
		return 1;
	if (r != 1)
		return r;
	if (m.wire.type != GUEST_ANSWER)
		return -1;
	*kept = keep_answer(q, &m.wire);
	return 1;
}

static int serve_ask(struct warden *w, struct front_request *q)
{
	int32_t killed;
	int r, kept;

	if (q->m.a < 0 || q->m.a > ASK_SIGNATURE)
		return err_set(&q->reply.err, "malformed question");
	/* The session asks these by itself: they must not cost the variables
	 * where a thread never gives way. */
	if (q->m.a == ASK_SIGNATURE && w->guest.threads)
		return err_set(&q->reply.err, "Python has threads");
	if (q->m.a == ASK_WATCH && w->guest.threads &&
		!checkpoints_newest_is_now(&w->checkpoints, w->next_cell))
		return err_set(
			&q->reply.err, "Python has threads, and no checkpoint");
	warden_continue(w);
	r = ask_guest(w, q, &kept);
	if (r == SESSION_OVER)
		return r;
	if (r != 1)
		return ask_failed(w, q, r == 0);
	if (warden_stop(w, &killed) == SESSION_OVER) {
		free(q->bytes);
		return SESSION_OVER;
	}
	return kept;
}

static int serve_run(struct warden *w, struct front_request *q)
{
	return warden_cell_run(w, &q->m, q->fd, q->fd2);
}

static int serve_resize(struct warden *w, struct front_request *q)
{
	warden_jail_resize(
		&w->jail, (unsigned short)q->m.a, (unsigned short)q->m.b);
	return 0;
}

static int serve_start(struct warden *w, struct front_request *q)
{
	if (w->spec->mode == SPEC_SESSION || w->program)
		return 0;
	return warden_program_run(w, q->fd, q->m.a, q->m.b != 0);
}

/* The answer is an event, and a cell may run meanwhile. */
static int serve_side(struct warden *w, struct front_request *q)
{
	struct jail_event ev = {.type = JAIL_SIDE, .cell = (uint32_t)q->m.a};
	auto_close int fd = side_start(&w->sides, q->m.b != 0, &ev.err);

	if (fd < 0)
		err_wrap(&ev.err, "start a program beside the session");
	link_event(&w->link, &ev, &fd, 1);
	return 0;
}

/* The front end does not wait for this answer either, and the guest is not
 * asked. The helper weighs the memory: where no cgroup counts it, a host whose
 * own memory has shrunk since the last weighing would hide the session's
 * growth.
 */
static int serve_tell_usage(struct warden *w, struct front_request *q)
{
	(void)q;
	warden_jail_look(&w->jail, WORK_WEIGHT, LOOK_SHOW_MS);
	warden_tell_usage(w);
	return 0;
}

static int serve_keys(struct warden *w, struct front_request *q)
{
	(void)q;
	warden_jail_return_keys(&w->jail);
	return 0;
}

static int serve_nothing(struct warden *w, struct front_request *q)
{
	(void)w;
	(void)q;
	return 0;
}

/* The requests, and the function that serves each. */
static const struct {
	int (*serve)(struct warden *, struct front_request *);
	int answered;
	int guest;  /* about a live guest, which a program's session has not */
	int before; /* no code of a person's runs for it */
	int aside;  /* any moment suits */
	int held;   /* waits for locks of files, which a running guest can hold
		     */
} requests[] = {
	[FRONT_RUN] = {serve_run, .guest = 1},
	[FRONT_INTERRUPT] = {serve_nothing}, /* its cell has ended */
	[FRONT_KILL] = {serve_nothing},
	[FRONT_RESIZE] = {serve_resize, .aside = 1},
	[FRONT_TOUCH] = {serve_nothing, .aside = 1},
	[FRONT_WAITS] = {serve_nothing, .aside = 1}, /* its cell has ended */
	[FRONT_KEYS] = {serve_keys, .answered = 1, .guest = 1, .aside = 1},
	[FRONT_ASK] = {serve_ask, .answered = 1, .guest = 1},
	[FRONT_RESET] = {serve_reset, .answered = 1, .guest = 1},
	[FRONT_UNDO] = {serve_undo, .answered = 1, .guest = 1},
	[FRONT_LOWER] = {serve_lower, .answered = 1, .guest = 1, .before = 1},
	[FRONT_USAGE] = {serve_usage, .answered = 1, .guest = 1, .before = 1},
	[FRONT_TELL_USAGE] = {serve_tell_usage, .aside = 1},
	[FRONT_HOME_LIST] = {serve_list, .answered = 1, .held = 1},
	[FRONT_HOME_OPEN] = {serve_open, .answered = 1, .held = 1},
	[FRONT_HOME_CREATE] = {serve_create, .answered = 1, .held = 1},
	[FRONT_HOME_COMMIT] = {serve_commit, .answered = 1, .held = 1},
	[FRONT_HOME_MKDIR] = {serve_mkdir, .answered = 1, .held = 1},
	[FRONT_HOME_ABORT] = {serve_abort, .answered = 1, .held = 1},
	[FRONT_HOME_REMOVE] = {serve_remove, .answered = 1, .held = 1},
	[FRONT_START] = {serve_start},
	[FRONT_SIDE] = {serve_side, .aside = 1},
	[FRONT_READY] = {serve_nothing, .answered = 1},
};

static int serve_request(struct warden *w, struct front_request *q)
{
	/* Otherwise everything is stopped already. */
	int hold = requests[q->m.type].held && w->guest.pid &&
		   w->spec->limits.background == BACKGROUND_RUN;
	int32_t killed;
	int r;

	/* Somebody else may ask how the session is. */
	if (q->m.type != FRONT_USAGE && q->m.type != FRONT_TELL_USAGE)
		clocks_touch(&w->clocks);
	if (hold && warden_hold(w, &killed) == SESSION_OVER)
		return SESSION_OVER;
	if (w->may_lower && requests[q->m.type].guest &&
		!requests[q->m.type].before)
		lease_fix(w);
	if (requests[q->m.type].guest && w->spec->mode != SPEC_SESSION)
		r = err_set(&q->reply.err, "this is not a session");
	else
		r = requests[q->m.type].serve(w, q);
	if (hold)
		warden_continue(w);
	q->reply.ok = r >= 0;
	if (requests[q->m.type].answered && !q->replied && r != SESSION_OVER)
		reply_send(w, q);
	return r < 0 && r != SESSION_OVER ? 0 : r;
}

int front_serve_aside(void *warden, const struct wire_front *m)
{
	struct front_request q = {.m = *m, .fd = -1, .fd2 = -1};

	return requests[m->type].aside && serve_request(warden, &q) == 0;
}

int front_serve(struct warden *w)
{
	struct front_request q = {0};
	int fds[IO_FDS_MAX], r;

	if (link_request(&w->link, &q.m, fds) == SESSION_OVER)
		return SESSION_OVER;
	link_serve(&w->link, &q.m);
	q.fd = fds[0];
	q.fd2 = fds[1];
	r = serve_request(w, &q);
	fds_drop(fds, IO_FDS_MAX);
	return r;
}
