/* SPDX-License-Identifier: MIT */
/*
 * input.c - keys and lines from the terminal, and events beside it
 *
 * Runs in:   the front end, inside editor_read()
 * Holds:     bytes that were read and are not keys yet
 * Trusts:    no byte from the terminal
 * Leaves:    nothing
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "jail/base/err.h"
#include "parts.h"

/* More than this in one read, and more bytes behind the key: a paste without
 * brackets, whose Enter and Tab are text. */
#define BURST_BYTES 16
#define CTRL_D 0x04

void input_init(struct input *in, int fd, size_t max_bytes,
	void (*before_wait)(void *ctx), void *ctx)
{
	*in = (struct input){.fd = fd,
		.max_bytes = max_bytes,
		.before_wait = before_wait,
		.ctx = ctx};
	keys_init(&in->keys);
	for (int i = 0; i < EDITOR_WATCH_MAX; i++)
		in->watch[i].fd = -1;
}

void input_free(struct input *in)
{
	utf8_wide_free(&in->paste);
	strbuf_free(&in->ahead);
}

void input_begin(struct input *in, bool plain, struct err *e)
{
	if (plain != in->plain)
		keys_init(&in->keys);
	in->plain = plain;
	in->err = e;
	in->interrupted = false;
}

/* Call the watchers whose descriptor has something. */
static enum editor_result call_watchers(
	struct input *in, const struct pollfd *p)
{
	bool stop = false, interrupted;

	for (int i = 0; i < EDITOR_WATCH_MAX; i++) {
		struct input_watch *w = &in->watch[i];

		/* A watcher called before may have taken this one off. */
		if (p[i].revents && w->fd >= 0 && w->fd == p[i].fd)
			stop |= w->cb(w->ctx) != 0;
	}
	interrupted = in->interrupted;
	in->interrupted = false;
	if (stop)
		return EDITOR_EVENT;
	return interrupted ? EDITOR_INTERRUPT : EDITOR_GO_ON;
}

static enum editor_result read_bytes(struct input *in)
{
	ssize_t n = read(in->fd, in->queue, sizeof(in->queue));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return EDITOR_GO_ON;
	if (n < 0 && errno != EIO) {
		err_errno(in->err, "read the terminal");
		return EDITOR_ERROR;
	}
	if (n <= 0)
		return in->plain ? EDITOR_EOF : EDITOR_HUP;
	in->queue_at = 0;
	in->queue_end = (size_t)n;
	in->burst = n > BURST_BYTES;
	return EDITOR_GO_ON;
}

/* Wait until there are bytes in the queue, or the time is up. */
static enum editor_result fill(struct input *in, int timeout_ms)
{
	struct pollfd p[EDITOR_WATCH_MAX + 1];
	enum editor_result r = EDITOR_GO_ON;
	int n;

	while (r == EDITOR_GO_ON && in->queue_at == in->queue_end) {
		if (in->plain || !in->keys.paste)
			in->before_wait(in->ctx);
		for (int i = 0; i < EDITOR_WATCH_MAX; i++)
			p[i] = (struct pollfd){
				.fd = in->watch[i].fd, .events = POLLIN};
		p[EDITOR_WATCH_MAX] =
			(struct pollfd){.fd = in->fd, .events = POLLIN};
		n = poll(p, EDITOR_WATCH_MAX + 1, timeout_ms);
		if (n == 0)
			break;
		if (n < 0 && errno != EINTR) {
			err_errno(in->err, "wait for the terminal");
			return EDITOR_ERROR;
		}
		if (n > 0)
			r = call_watchers(in, p);
		if (n > 0 && r == EDITOR_GO_ON && p[EDITOR_WATCH_MAX].revents)
			r = read_bytes(in);
	}
	return r;
}

/* A pasted character; more of them than a cell may have are not kept. */
static void add_pasted(struct input *in, wchar_t c)
{
	if (in->paste.n >= in->max_bytes ||
		utf8_wide_add(&in->paste, &c, 1) < 0)
		in->paste_cut = true;
}

enum editor_result input_key(struct input *in, struct key *key)
{
	enum editor_result r;

	for (;;) {
		if (in->ready_at == in->ready_end) {
			r = fill(in, keys_wait_ms(&in->keys));
			if (r != EDITOR_GO_ON)
				return r;
			in->ready_at = 0;
			in->ready_end =
				in->queue_at < in->queue_end
					? keys_feed(&in->keys,
						  in->queue[in->queue_at++],
						  in->ready)
					: keys_timeout(&in->keys, in->ready);
			continue;
		}
		*key = in->ready[in->ready_at++];
		if (key->code == KEY_PASTE_TEXT) {
			add_pasted(in, key->c);
		} else if (key->code == KEY_PASTE_BEGIN) {
			utf8_wide_free(&in->paste);
			in->paste_cut = false;
		} else {
			return EDITOR_GO_ON;
		}
	}
}

enum editor_result input_line(
	struct input *in, struct utf8_wide *cell, bool *fits)
{
	enum editor_result r;

	for (;;) {
		while (in->ready_at < in->ready_end) {
			wchar_t c = in->ready[in->ready_at++].c;

			if (cell->n >= in->max_bytes)
				*fits = false;
			if (c && *fits && utf8_wide_add(cell, &c, 1) < 0) {
				err_set(in->err, "out of memory");
				return EDITOR_ERROR;
			}
			if (c == '\n')
				return EDITOR_GO_ON;
		}
		r = fill(in, -1);
		if (r != EDITOR_GO_ON)
			return r;
		/* As in a paste: text only, no keys, one kind of line end. */
		in->keys.paste = true;
		in->ready_at = 0;
		in->ready_end = keys_feed(
			&in->keys, in->queue[in->queue_at++], in->ready);
	}
}

bool input_is_burst(const struct input *in)
{
	return in->burst &&
	       (in->ready_at < in->ready_end || in->queue_at < in->queue_end);
}

void input_interrupt(struct input *in)
{
	in->interrupted = true;
}

size_t input_take(struct input *in, char *buf, size_t max)
{
	size_t n = in->queue_end - in->queue_at;

	n = n < max ? n : max;
	memcpy(buf, in->queue + in->queue_at, n);
	in->queue_at += n;
	return n;
}

int input_watch(struct input *in, int fd, int (*cb)(void *ctx), void *ctx)
{
	for (int i = 0; i < EDITOR_WATCH_MAX; i++) {
		if (in->watch[i].fd >= 0)
			continue;
		in->watch[i] =
			(struct input_watch){.fd = fd, .cb = cb, .ctx = ctx};
		return 0;
	}
	return -1;
}

void input_unwatch(struct input *in, int fd)
{
	for (int i = 0; i < EDITOR_WATCH_MAX; i++)
		if (in->watch[i].fd == fd)
			in->watch[i].fd = -1;
}

/* ---- text typed ahead ---- */

int input_add_ahead(struct input *in, const char *s, size_t n)
{
	strbuf_add(&in->ahead, s, n);
	return in->ahead.failed ? -1 : 0;
}

/* One key of that text. */
static void add_typed(struct utf8_wide *text, const struct key *k)
{
	wchar_t c = k->c;

	if (k->code == 0x7F || k->code == '\b') {
		if (text->n)
			text->s[--text->n] = 0;
		return;
	}
	if (k->code == '\r' || k->code == '\n' || k->code == KEY_ALT_ENTER)
		c = '\n';
	else if (k->code == '\t')
		c = '\t';
	if (c)
		utf8_wide_add(text, &c, 1);
}

/* The bytes came in pieces, and a key may lie in two of them: they are decoded
 * only now. */
bool input_take_ahead(struct input *in, struct utf8_wide *text)
{
	struct key out[KEYS_OUT_MAX];
	struct keys keys;
	bool end = false;

	keys_init(&keys);
	for (size_t i = 0; i < in->ahead.n && text->n < in->max_bytes; i++) {
		int n = keys_feed(&keys, (unsigned char)in->ahead.s[i], out);

		for (int j = 0; j < n; j++) {
			end |= out[j].code == CTRL_D && !text->n;
			add_typed(text, &out[j]);
		}
	}
	strbuf_free(&in->ahead);
	return end;
}
