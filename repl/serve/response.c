/* SPDX-License-Identifier: MIT */
/*
 * response.c - what a session answers its client: at once, as a file, or as a
 * stream of events
 *
 * Runs in:   front end, confined
 * Trusts:    nobody: output and files come from a jail
 * Leaves:    the events of a cell, as long as another request may go on with
 *            them
 */
#include "repl/serve/parts.h"

#include "jail/base/io.h"
#include "repl/json/json.h"
#include "repl/text/text.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EVENTS "text/event-stream"

void response_open(struct response *p)
{
	*p = (struct response){.file = -1};
}

void response_close(struct response *p)
{
	events_forget(&p->events);
	fd_drop(&p->file);
}

void response_begin(struct response *p, struct exchange *x, bool streams)
{
	p->exchange = x;
	p->begun = false;
	p->resumable = streams && http_is_kept(x);
	events_forget(&p->events);
}

void response_send(
	struct response *p, int status, const char *type, struct strbuf *b)
{
	struct exchange *x = p->exchange;

	p->exchange = NULL;
	http_set_own(x, NULL);
	http_answer(x, status, type, b);
}

void response_end(
	struct response *p, const char *name, bool cut, struct strbuf *b)
{
	events_end(&p->events, name, cut, b);
	strbuf_free(b);
	if (p->exchange)
		http_go_on(p->exchange);
}

void response_refuse(
	struct response *p, int status, const char *what, const char *words)
{
	struct strbuf b = {0}, t = {0};

	if (!p->exchange)
		return;
	if (status == 503)
		http_add_header(p->exchange, "Retry-After", "1");
	strbuf_printf(&t, "%s%s%s", what, *what ? ": " : "", words);
	execute_add_detail(&b, strbuf_text(&t), t.n);
	strbuf_free(&t);
	if (p->begun)
		response_end(p, "error", true, &b);
	else
		response_send(p, status, HTTP_JSON, &b);
}

/* ---- streams ---- */

/* Tell the client, now and when it repeats its request, where the events are.
 */
static void note_place(
	const struct response *p, const char *session, unsigned cell)
{
	char place[192];

	snprintf(place, sizeof(place), "/v1/sessions/%s/cells/%u/events",
		session, cell);
	http_keep_place(p->exchange, place);
}

void response_stream(struct response *p, const char *session, unsigned cell)
{
	if (!p->resumable)
		cell = 0;
	p->begun = true;
	events_begin(&p->events, cell);
	if (cell)
		note_place(p, session, cell);
	http_answer_stream(p->exchange, EVENTS, -1);
}

void response_file(struct response *p, int fd, int64_t max)
{
	struct stat st;

	fd_drop(&p->file);
	p->file = fd;
	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size <= max) {
		p->file_at = 0;
		p->file_size = st.st_size;
		p->begun = true;
		http_answer_stream(
			p->exchange, "application/octet-stream", st.st_size);
		return;
	}
	fd_drop(&p->file);
	response_refuse(p, 422, "", "the file is larger than files.max_file");
}

static ssize_t read_file(struct response *p, char *to, size_t max)
{
	size_t left = (size_t)(p->file_size - p->file_at);
	ssize_t n = pread(p->file, to, left < max ? left : max, p->file_at);

	if (n <= 0)
		return -1;
	p->file_at += n;
	return n;
}

ssize_t response_more(
	struct response *p, const struct cells *cells, char *to, size_t max)
{
	return p->file >= 0 ? read_file(p, to, max)
			    : events_more(&p->events, cells, to, max);
}

/* ---- a client that goes, and one that comes back ---- */

void response_lose(struct response *p)
{
	p->exchange = NULL;
	p->begun = false;
	fd_drop(&p->file);
	if (p->resumable)
		events_pause(&p->events);
	else
		events_forget(&p->events);
}

void response_give_up(struct response *p)
{
	p->resumable = false;
}

bool response_is_kept(const struct response *p, bool runs)
{
	return p->resumable && p->events.cell && (runs || p->events.last.n);
}

int response_resume(struct response *p, const struct cells *cells,
	struct exchange *x, const char *id)
{
	struct events_place place;
	struct strbuf none = {0};
	int r = events_find(&p->events, cells, id, &place);

	if (r < 0)
		return -1;
	/* A browser asks no more after 204. */
	if (r == 0) {
		http_answer(x, 204, NULL, &none);
		return 0;
	}
	/* A client that only looks takes the stream from no other. */
	if (!strcmp(http_method(x), "HEAD")) {
		http_answer_stream(x, EVENTS, -1);
		return 0;
	}
	events_go_on(&p->events, &place);
	/* The connection of the stream may be dead without our knowing it. */
	if (p->exchange) {
		http_set_own(p->exchange, NULL);
		http_go_on(p->exchange);
	}
	p->exchange = x;
	p->begun = true;
	http_answer_stream(x, EVENTS, -1);
	return 1;
}
