/* SPDX-License-Identifier: MIT */
/*
 * watchers.c - clients that watch the session
 *
 * Runs in:   front end, confined
 * Holds:     a connection to each watcher, and messages for it that wait
 * Trusts:    the control socket, that a watcher is the person or root. We drop
 *            a watcher that sends anything
 * Leaves:    a session as fast as without watchers: we count output that a slow
 *            watcher cannot take, and do not keep it
 */
#include "repl/session/session.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "repl/attach/attach.h"
#include "repl/config/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WATCHERS_MAX 4
/* Most bytes that wait for a watcher: OUTPUT_MAX with output, WAITS_MAX with
 * rare messages, too. A watcher that has missed output gets output again when
 * less than half of OUTPUT_MAX waits. */
#define OUTPUT_MAX (1u << 20)
#define WAITS_MAX (OUTPUT_MAX + (256u << 10))

struct view_watcher {
	int fd; /* -1: a free place */
	struct watchers_who who;
	struct strbuf queue; /* messages, each behind its length (size_t) */
	size_t at, last;     /* offsets: the first message to send, the last */
	uint64_t missed;     /* bytes that we dropped */
};

struct watchers {
	struct view_watcher v[WATCHERS_MAX];
};

static struct watchers *open_places(void)
{
	struct watchers *ws = calloc(1, sizeof(*ws));

	for (int i = 0; ws && i < WATCHERS_MAX; i++)
		ws->v[i].fd = -1;
	return ws;
}

static void drop_watcher(struct view_watcher *w)
{
	fd_drop(&w->fd);
	strbuf_free(&w->queue);
	*w = (struct view_watcher){.fd = -1};
}

/* ---- queues ---- */

/* Send messages until the watcher takes no more. Send nothing from a queue that
 * has failed: it may end in half a message. */
static void send_queue(struct view_watcher *w)
{
	struct strbuf *q = &w->queue;
	size_t n;

	while (!q->failed && w->at < q->n) {
		memcpy(&n, q->s + w->at, sizeof(n));
		if (io_send_fds(w->fd, q->s + w->at + sizeof(n), n, NULL, 0,
			    MSG_DONTWAIT) < 0)
			break;
		w->at += sizeof(n) + n;
	}
	if (w->at == q->n)
		q->n = w->at = w->last = 0;
}

/* Remove the messages that were sent. */
static void remove_sent(struct view_watcher *w)
{
	if (w->at < OUTPUT_MAX)
		return;
	strbuf_cut(&w->queue, w->at);
	w->at = 0;
}

static void queue_message(struct view_watcher *w, const struct watcher_head *h,
	const void *buf, size_t n)
{
	size_t length = sizeof(*h) + n;

	remove_sent(w);
	w->last = w->queue.n;
	strbuf_add(&w->queue, &length, sizeof(length));
	strbuf_add(&w->queue, h, sizeof(*h));
	strbuf_add(&w->queue, buf, n);
}

/* Append output to the last message, if that is output that waits. False if it
 * needs a message of its own. */
static bool join_output(struct view_watcher *w, const struct watcher_head *h,
	const void *buf, size_t n)
{
	struct strbuf *q = &w->queue;
	struct watcher_head last;
	size_t length;

	if (h->kind != WATCHER_OUTPUT || w->at > w->last || w->last == q->n)
		return false;
	memcpy(&length, q->s + w->last, sizeof(length));
	memcpy(&last, q->s + w->last + sizeof(length), sizeof(last));
	length += n;
	if (memcmp(&last, h, sizeof(last)) != 0 ||
		length > sizeof(last) + WATCHER_DATA)
		return false;
	memcpy(q->s + w->last, &length, sizeof(length));
	strbuf_add(q, buf, n);
	return true;
}

static bool message_is_rare(const struct watcher_head *h)
{
	return h->kind == WATCHER_LINE || h->kind == WATCHER_END ||
	       h->kind == WATCHER_BREAK || h->kind == WATCHER_OVER;
}

static void tell_missed(struct view_watcher *w)
{
	const struct watcher_head h = {.magic = ATTACH_MAGIC,
		.kind = WATCHER_MISSED,
		.number = (int64_t)w->missed};

	if (w->missed)
		queue_message(w, &h, "", 0);
	w->missed = 0;
}

static void add_message(struct view_watcher *w, const struct watcher_head *h,
	const void *buf, size_t n)
{
	size_t waits = w->queue.n - w->at;
	size_t room = message_is_rare(h) ? WAITS_MAX
		      : w->missed	 ? OUTPUT_MAX / 2
					 : OUTPUT_MAX;

	if (waits + sizeof(*h) + n > room || w->queue.failed) {
		w->missed += n;
		return;
	}
	tell_missed(w);
	if (!join_output(w, h, buf, n))
		queue_message(w, h, buf, n);
	send_queue(w);
}

static void add_in_parts(struct view_watcher *w, struct watcher_head h,
	const void *buf, size_t n)
{
	size_t at = 0, part;

	do {
		part = n - at < WATCHER_DATA ? n - at : WATCHER_DATA;
		h.number = h.kind == WATCHER_SOURCE ? (int64_t)at : 0;
		add_message(w, &h, (const char *)buf + at, part);
		at += part;
	} while (at < n);
}

void watchers_add(
	struct session *s, int kind, int flags, const void *buf, size_t n)
{
	const struct watcher_head h = {.magic = ATTACH_MAGIC,
		.kind = (uint16_t)kind,
		.flags = (uint16_t)flags};

	for (int i = 0; s->watchers && i < WATCHERS_MAX; i++)
		if (s->watchers->v[i].fd >= 0)
			add_in_parts(&s->watchers->v[i], h, buf, n);
}

void watchers_say(struct session *s, const char *text)
{
	watchers_add(s, WATCHER_LINE, 0, text, strlen(text));
}

void watchers_send(struct session *s)
{
	for (int i = 0; s->watchers && i < WATCHERS_MAX; i++) {
		struct view_watcher *w = &s->watchers->v[i];

		if (w->fd < 0)
			continue;
		send_queue(w);
		if (w->queue.n - w->at < OUTPUT_MAX / 2)
			tell_missed(w);
		send_queue(w);
	}
}

/* ---- watchers that come and go ---- */

static struct view_watcher *find_free(struct session *s)
{
	if (!s->watchers)
		s->watchers = open_places();
	for (int i = 0; s->watchers && i < WATCHERS_MAX; i++)
		if (s->watchers->v[i].fd < 0)
			return &s->watchers->v[i];
	return NULL;
}

/* Send the source of the cell that runs, and the end of its output so far. */
static void send_running_cell(struct session *s, struct view_watcher *w,
	const struct record_cell *runs)
{
	const struct record_output *o = record_find_output(s->record, runs->no);
	struct watcher_head h = {.magic = ATTACH_MAGIC, .kind = WATCHER_SOURCE};
	size_t n = o && !o->bytes.failed ? o->bytes.n : 0, from = 0;

	add_in_parts(w, h, runs->src, runs->n);
	if (n > (size_t)s->cfg->limits.output_bytes)
		n = (size_t)s->cfg->limits.output_bytes;
	if (n > WATCHER_DATA)
		from = n - WATCHER_DATA;
	w->missed += from;
	h.kind = WATCHER_OUTPUT;
	if (n)
		add_in_parts(w, h, o->bytes.s + from, n - from);
}

const struct watchers_who *watchers_begin(struct session *s,
	struct control_request *v, const struct record_cell *runs)
{
	struct view_watcher *w = NULL;
	const char *why = NULL;

	if (!control_is_same_build(v))
		why = "this session was begun by another build of cellblock";
	else if (!(w = find_free(s)))
		why = "enough watch this session already";
	if (why) {
		control_answer(v, ATTACH_NO, why, NULL);
		return NULL;
	}
	w->who.root = v->uid != geteuid();
	memcpy(w->who.from, v->request.from, sizeof(w->who.from));
	w->fd = control_keep(s->control, v);
	log_attach(s->log,
		w->who.root ? "watched by root" : "watched by the person",
		w->who.from);
	if (runs->src)
		send_running_cell(s, w, runs);
	return &w->who;
}

const struct watchers_who *watchers_next(const struct session *s, int *i)
{
	while (s->watchers && *i < WATCHERS_MAX) {
		const struct view_watcher *w = &s->watchers->v[(*i)++];

		if (w->fd >= 0)
			return &w->who;
	}
	return NULL;
}

bool watchers_gone(struct session *s, struct watchers_who *who)
{
	for (int i = 0; s->watchers && i < WATCHERS_MAX; i++) {
		struct view_watcher *w = &s->watchers->v[i];

		if (w->fd < 0 || (control_listens(w->fd) && !w->queue.failed))
			continue;
		*who = w->who;
		drop_watcher(w);
		log_attach(s->log,
			who->root ? "not watched by root any more"
				  : "not watched by the person any more",
			who->from);
		return true;
	}
	return false;
}

void watchers_close(struct session *s)
{
	watchers_add(s, WATCHER_OVER, 0, "", 0);
	watchers_send(s);
	for (int i = 0; s->watchers && i < WATCHERS_MAX; i++)
		drop_watcher(&s->watchers->v[i]);
	free(s->watchers);
	s->watchers = NULL;
}
