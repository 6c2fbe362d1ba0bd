/* SPDX-License-Identifier: MIT */
/*
 * events.c - what a cell shows, as a stream of events
 *
 * Runs in:   front end, confined
 * Trusts:    no byte that a cell writes; a client's id of an event for nothing
 *            but where it goes on
 * Leaves:    events whole, in order: output, pictures, the last one
 *
 * We make an event when the client has read the one before. The output itself
 * stays with the cell (repl/json/cells.c). The id of an event says how much was
 * given up to it.
 */
#include "repl/serve/parts.h"

#include "jail/base/io.h"
#include "repl/json/json.h"
#include "repl/text/text.h"

#include <stdio.h>
#include <string.h>

/* Most bytes of a cell's output in one event. */
#define EVENT_BYTES 8192
/* Longest time without an event: later a proxy could believe that we are gone.
 */
#define SILENCE_MS 10000

void events_begin(struct events *v, unsigned cell)
{
	v->sent = v->pictures = v->event_at = v->event.n = v->last.n = 0;
	v->told = false;
	v->told_ms = now_ms();
	v->cell = cell;
}

void events_pause(struct events *v)
{
	strbuf_free(&v->event);
	v->event_at = 0;
}

void events_forget(struct events *v)
{
	events_pause(v);
	strbuf_free(&v->last);
	v->cell = 0;
}

void events_end(
	struct events *v, const char *name, bool cut, const struct strbuf *b)
{
	if (cut)
		v->sent = SIZE_MAX;
	strbuf_printf(&v->last, "event: %s\ndata: ", name);
	strbuf_add(&v->last, b->s, b->n);
	strbuf_puts(&v->last, "\n\n");
}

static void add_output(struct events *v, const char *p, size_t n)
{
	size_t end = n - v->sent < EVENT_BYTES ? n : v->sent + EVENT_BYTES;

	if (end < n)
		end = utf8_start(p, end);
	strbuf_puts(&v->event, "event: output\ndata: ");
	emit_open(&v->event, NULL, '{');
	emit_bytes(&v->event, "text", p + v->sent, end - v->sent);
	strbuf_puts(&v->event, "}\n\n");
	v->sent = end;
}

static bool add_picture(struct events *v, const struct cells *cells)
{
	struct report r;

	cells_report(cells, &r);
	if (v->pictures >= r.npng)
		return false;
	strbuf_puts(&v->event, "event: image\ndata: ");
	emit_open(&v->event, NULL, '{');
	emit_base64(
		&v->event, "png", r.png[v->pictures].p, r.png[v->pictures].n);
	strbuf_puts(&v->event, "}\n\n");
	v->pictures++;
	return true;
}

/* Make the next event, if there is one yet: output, then pictures, then the
 * last event. After SILENCE_MS it is an empty one. */
static void make_next(struct events *v, const struct cells *cells)
{
	const char *p = NULL;
	size_t n = 0;

	v->event.n = v->event_at = 0;
	if (cells)
		p = cells_output(cells, &n);
	if (v->sent < n) {
		add_output(v, p, n);
	} else if (v->last.n && cells && v->sent != SIZE_MAX &&
		   add_picture(v, cells)) {
		;
	} else if (v->last.n && !v->told) {
		strbuf_add(&v->event, v->last.s, v->last.n);
		v->told = true;
	} else if (now_ms() - v->told_ms >= SILENCE_MS) {
		strbuf_puts(&v->event, ":\n\n");
	}
	if (v->event.n)
		v->told_ms = now_ms();
	if (v->event.n && v->event.s[0] != ':' && v->cell &&
		v->sent != SIZE_MAX) {
		v->event.n--;
		strbuf_printf(&v->event, "id: %u-%zu-%zu-%d\n\n", v->cell,
			v->sent, v->pictures, v->told);
	}
}

ssize_t events_more(
	struct events *v, const struct cells *cells, char *p, size_t max)
{
	size_t left;

	if (v->event_at == v->event.n)
		make_next(v, cells);
	left = v->event.n - v->event_at;
	if (left == 0 || v->event.failed)
		return v->told || v->event.failed ? -1 : 0;
	left = left < max ? left : max;
	memcpy(p, v->event.s + v->event_at, left);
	v->event_at += left;
	return (ssize_t)left;
}

bool events_are_due(const struct events *v, const struct cells *cells)
{
	size_t n;

	cells_output(cells, &n);
	return n > v->sent || now_ms() - v->told_ms >= SILENCE_MS;
}

int events_find(const struct events *v, const struct cells *cells,
	const char *id, struct events_place *place)
{
	struct events_place p = {0};
	unsigned of = v->cell;
	int told = 0, end = 0;
	size_t n;

	cells_output(cells, &n);
	if (id && (sscanf(id, "%u-%zu-%zu-%d%n", &of, &p.sent, &p.pictures,
			   &told, &end) != 4 ||
			  id[end] || of != v->cell || p.sent > n))
		return -1;
	*place = p;
	return !told;
}

void events_go_on(struct events *v, const struct events_place *place)
{
	v->told = false;
	v->event.n = v->event_at = 0;
	v->sent = place->sent;
	v->pictures = place->pictures;
	v->told_ms = now_ms();
}
