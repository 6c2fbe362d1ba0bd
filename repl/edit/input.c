/* SPDX-License-Identifier: MIT */
/*
 * input.c - waiting for keys, and for whatever else may happen
 *
 * Runs in:   the front end, inside editor_read()
 * Holds:     bytes that were read and are no keys yet
 * Trusts:    no byte of the terminal's
 * Leaves:    nothing
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "impl.h"
#include "jail/base/err.h"

/* More than this in one read, with more behind the key: a paste without
 * brackets, whose Enter and Tab are text. */
#define BURST_BYTES 16

static int input_stop(struct editor *ed, enum editor_result result)
{
	ed->result = result;
	return -1;
}

/* Call those whose descriptor has something. 0, or -1: the result is set. */
static int input_watchers(struct editor *ed, const struct pollfd *p)
{
	int r = 0;

	for (int i = 0; i < EDITOR_WATCH_MAX; i++) {
		struct editor_watch *w = &ed->watch[i];

		/* One called before may have taken it off. */
		if (p[i].revents && w->fd >= 0 && w->fd == p[i].fd &&
			w->cb(w->ctx) != 0)
			r = input_stop(ed, EDITOR_EVENT);
	}
	if (r == 0 && ed->interrupted)
		r = input_stop(ed, EDITOR_INTERRUPT);
	ed->interrupted = false;
	return r;
}

/* 1: bytes are there; 0: not really; -1: the result is set. */
static int input_read(struct editor *ed)
{
	ssize_t n = read(ed->in, ed->queue, sizeof(ed->queue));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n < 0 && errno != EIO) {
		err_errno(ed->err, "read the terminal");
		return input_stop(ed, EDITOR_ERROR);
	}
	if (n <= 0)
		return input_stop(ed, ed->plain ? EDITOR_EOF : EDITOR_HUP);
	ed->queue_at = 0;
	ed->queue_end = (size_t)n;
	ed->burst = n > BURST_BYTES;
	return 1;
}

int input_fill(struct editor *ed, int timeout_ms)
{
	struct pollfd p[EDITOR_WATCH_MAX + 1];
	int r;

	for (;;) {
		for (int i = 0; i < EDITOR_WATCH_MAX; i++)
			p[i] = (struct pollfd){
				.fd = ed->watch[i].fd, .events = POLLIN};
		p[EDITOR_WATCH_MAX] =
			(struct pollfd){.fd = ed->in, .events = POLLIN};
		r = poll(p, EDITOR_WATCH_MAX + 1, timeout_ms);
		if (r < 0 && errno != EINTR) {
			err_errno(ed->err, "wait for the terminal");
			return input_stop(ed, EDITOR_ERROR);
		}
		if (r == 0)
			return 0;
		if (r > 0 && input_watchers(ed, p) < 0)
			return -1;
		if (r > 0 && p[EDITOR_WATCH_MAX].revents) {
			r = input_read(ed);
			if (r != 0)
				return r;
		}
		if (ed->plain)
			plain_draw(ed);
		else if (!ed->keys.paste)
			view_draw(ed);
	}
}

bool input_has_more(const struct editor *ed)
{
	return ed->ready_at < ed->ready_end || ed->queue_at < ed->queue_end;
}

/* A pasted character; more of them than a cell may have are not kept. */
static void input_pasted(struct editor *ed, wchar_t c)
{
	if (ed->paste.n >= ed->max_bytes || wide_add(&ed->paste, &c, 1) < 0)
		ed->paste_cut = true;
}

/* Bytes to `ready` keys. 0, or -1: the result is set. */
static int input_decode(struct editor *ed)
{
	int r = 1;

	ed->ready_at = ed->ready_end = 0;
	if (ed->queue_at == ed->queue_end) {
		if (!ed->keys.paste)
			view_draw(ed);
		r = input_fill(ed, keys_wait_ms(&ed->keys));
	}
	if (r < 0)
		return -1;
	if (r > 0)
		ed->ready_end = keys_feed(
			&ed->keys, ed->queue[ed->queue_at++], ed->ready);
	else
		ed->ready_end = keys_timeout(&ed->keys, ed->ready);
	return 0;
}

struct key input_key(struct editor *ed)
{
	for (;;) {
		struct key key;

		if (ed->ready_at == ed->ready_end) {
			if (input_decode(ed) < 0)
				return (struct key){.code = KEY_STOP};
			continue;
		}
		key = ed->ready[ed->ready_at++];
		if (key.code == KEY_PASTE_TEXT) {
			input_pasted(ed, key.c);
		} else if (key.code == KEY_PASTE_BEGIN) {
			ed->paste.n = 0;
			ed->paste_cut = false;
		} else {
			return key;
		}
	}
}
