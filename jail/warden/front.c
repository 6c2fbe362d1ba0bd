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
#include "run.h"

#include "jail/base/io.h"
#include "jail/walls/pty.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* What a question may take, and what it gets after its interrupt. */
#define ASK_MS 1000
#define ASK_GRACE_MS 300

struct request {
	struct wire_front m;
	int fd; /* what came with it, or -1 */
	struct wire_event reply;
	int reply_fd; /* goes with the reply, closed after */
};

static void reply_send(struct warden *w, struct request *q)
{
	q->reply.event.type = WIRE_REPLY;
	q->reply.event.fd = q->reply_fd >= 0 ? 0 : -1;
	for (int i = 0; i < 4; i++)
		q->reply.event.fds[i] = -1;
	q->reply.reply.seq = q->m.seq;
	if (io_send_fds(w->front, &q->reply, sizeof(q->reply), &q->reply_fd,
		    q->reply_fd >= 0, 0) == 0) {
		fd_drop(&q->reply_fd);
		return;
	}
	if (errno != ETOOMANYREFS)
		warden_end(w);
	err_errno(&q->reply.reply.err, "hand over the answer");
	q->reply.reply.ok = 0;
	fd_drop(&q->reply_fd);
	reply_send(w, q);
}

/* Each returns 0, or -1 with the reply's error set. */

static int serve_usage(struct warden *w, struct request *q)
{
	struct jail_usage *u = &q->reply.reply.usage;
	struct measure m;

	warden_measure(w, MEASURE_MEMORY, &m);
	u->memory_bytes = m.bytes;
	u->memory_peak_bytes = m.peak_bytes;
	u->cpu_ms = w->cpu_ms;
	u->up_ms = now_ms() - w->started_ms;
	u->idle_ms = now_ms() - w->touched_ms;
	home_usage(&w->home, &u->home_bytes, &u->home_files);
	u->processes = m.processes;
	u->checkpoints = w->nkept;
	u->cells = w->cells;
	for (int i = 0; i < ENFORCE_LIMITS; i++)
		enforce_look((enum enforce_limit)i, &w->facts, &u->by[i]);
	return 0;
}

static int serve_list(struct warden *w, struct request *q)
{
	int truncated = 0;

	q->reply_fd = home_list(&w->home, &truncated, &q->reply.reply.err);
	q->reply.reply.a = truncated;
	return q->reply_fd < 0 ? -1 : 0;
}

static int serve_open(struct warden *w, struct request *q)
{
	q->reply_fd = home_open(&w->home, q->m.path, &q->reply.reply.err);
	return q->reply_fd < 0 ? -1 : 0;
}

static int serve_create(struct warden *w, struct request *q)
{
	uint32_t token = 0;

	q->reply_fd =
		home_create(&w->home, q->m.path, &token, &q->reply.reply.err);
	q->reply.reply.a = token;
	return q->reply_fd < 0 ? -1 : 0;
}

static int serve_commit(struct warden *w, struct request *q)
{
	return home_commit(
		&w->home, (uint32_t)q->m.a, q->m.b != 0, &q->reply.reply.err);
}

static int serve_abort(struct warden *w, struct request *q)
{
	return home_abort(&w->home, (uint32_t)q->m.a, &q->reply.reply.err);
}

static int serve_remove(struct warden *w, struct request *q)
{
	return home_remove(&w->home, q->m.path, &q->reply.reply.err);
}

static int serve_reset(struct warden *w, struct request *q)
{
	q->reply.reply.ok = 1;
	reply_send(w, q);
	q->m.seq = 0;
	warden_restart(w);
	warden_park(w);
	return 0;
}

static int serve_undo(struct warden *w, struct request *q)
{
	uint32_t back_to = 0;
	int r = warden_undo(w, (int)q->m.a, &back_to, &q->reply.reply.err);

	if (r < 0)
		return -1;
	q->reply.reply.a = back_to;
	q->reply.reply.b = w->names;
	q->reply.reply.ok = r == 0;
	reply_send(w, q);
	q->m.seq = 0;
	warden_park(w);
	return 0;
}

/* The question's text, from its memfd. */
static ssize_t ask_text(struct request *q, char *text, size_t size)
{
	struct stat st;

	if (q->fd < 0 || fstat(q->fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	if ((size_t)st.st_size > size)
		return -1;
	return pread(q->fd, text, size, 0);
}

/* No answer although it was interrupted, or no guest any more: as with any
 * guest that hangs or dies. */
static int ask_failed(struct warden *w, struct request *q, int hung)
{
	err_set(&q->reply.reply.err, "Python did not answer in time");
	warden_replace(w, hung ? "a question to Python hung · killed"
			       : "a question to Python was its end");
	warden_park(w);
	return -1;
}

static int serve_ask(struct warden *w, struct request *q)
{
	char text[WIRE_ANSWER_MAX], buf[WIRE_GUEST_MAX];
	ssize_t n = ask_text(q, text, sizeof(text));
	int32_t killed;
	struct wire_guest m;
	size_t len;
	int r;

	if (n < 0 || q->m.a < 0 || q->m.a > ASK_LATEST)
		return err_set(&q->reply.reply.err, "malformed question");
	len = wire_ask_encode(
		buf, ++w->asked, (enum jail_question)q->m.a, text, (size_t)n);
	warden_continue(w);
	if (io_send_fds(w->ctl, buf, len, NULL, 0, MSG_DONTWAIT) < 0)
		return ask_failed(w, q, 0);
	r = warden_guest_await(w, w->ctl, &m, buf, now_ms() + ASK_MS);
	if (r == 0) {
		pty_signal_fg(w->tty_master, SIGINT, NULL);
		r = warden_guest_await(
			w, w->ctl, &m, buf, now_ms() + ASK_GRACE_MS);
	}
	if (r != 1 || m.type != GUEST_ANSWER || m.no != w->asked)
		return ask_failed(w, q, r == 0);
	warden_rest(w, &killed);
	q->reply_fd = io_sealed_memfd("cellblock-answer", m.answer, m.answer_n);
	if (q->reply_fd < 0)
		return err_errno(&q->reply.reply.err, "hold the answer");
	return 0;
}

static int serve_run(struct warden *w, struct request *q)
{
	warden_cell(w, (uint32_t)q->m.a, q->fd);
	return 0;
}

static int serve_resize(struct warden *w, struct request *q)
{
	return pty_set_size(w->tty_slave, (unsigned short)q->m.a,
		(unsigned short)q->m.b, NULL);
}

static int serve_start(struct warden *w, struct request *q)
{
	(void)q;
	w->started = 1;
	return 0;
}

static int serve_keys(struct warden *w, struct request *q)
{
	(void)q;
	run_return_keys(w);
	return 0;
}

static int serve_nothing(struct warden *w, struct request *q)
{
	(void)w;
	(void)q;
	return 0;
}

/* What may be asked: who serves it, whether it is answered, and whether it is
 * about a live guest, which a program's session does not have. */
static const struct {
	int (*serve)(struct warden *, struct request *);
	int answered, guest;
} requests[] = {
	[FRONT_RUN] = {serve_run, 0, 1},
	[FRONT_INTERRUPT] = {serve_nothing, 0, 0}, /* its cell has ended */
	[FRONT_KILL] = {serve_nothing, 0, 0},
	[FRONT_RESIZE] = {serve_resize, 0, 0},
	[FRONT_TOUCH] = {serve_nothing, 0, 0},
	[FRONT_KEYS] = {serve_keys, 1, 1},
	[FRONT_ASK] = {serve_ask, 1, 1},
	[FRONT_RESET] = {serve_reset, 1, 1},
	[FRONT_UNDO] = {serve_undo, 1, 1},
	[FRONT_USAGE] = {serve_usage, 1, 1},
	[FRONT_HOME_LIST] = {serve_list, 1, 0},
	[FRONT_HOME_OPEN] = {serve_open, 1, 0},
	[FRONT_HOME_CREATE] = {serve_create, 1, 0},
	[FRONT_HOME_COMMIT] = {serve_commit, 1, 0},
	[FRONT_HOME_ABORT] = {serve_abort, 1, 0},
	[FRONT_HOME_REMOVE] = {serve_remove, 1, 0},
	[FRONT_START] = {serve_start, 0, 0},
};

int warden_front_serve(struct warden *w)
{
	struct request q = {.reply_fd = -1};
	int fds[IO_FDS_MAX];
	ssize_t n =
		io_recv_fds(w->front, &q.m, sizeof(q.m), fds, IO_FDS_MAX, 0);

	if (n <= 0 || wire_front_check(&q.m, (size_t)n, NULL) < 0)
		return -1;
	q.fd = fds[0];
	warden_touch(w);
	/* A served request may have answered by itself: then seq is 0. */
	if (requests[q.m.type].guest && w->spec->mode != SPEC_SESSION)
		err_set(&q.reply.reply.err, "this is not a session");
	else
		q.reply.reply.ok = requests[q.m.type].serve(w, &q) == 0;
	if (requests[q.m.type].answered && q.m.seq)
		reply_send(w, &q);
	for (int i = 0; i < IO_FDS_MAX; i++)
		fd_drop(&fds[i]);
	return 0;
}

int warden_front_next(struct warden *w)
{
	struct pollfd p = {.fd = w->front, .events = POLLIN};

	while (warden_poll(&p, 1, -1) < 0)
		if (errno != EINTR)
			return -1;
	return warden_front_serve(w);
}
