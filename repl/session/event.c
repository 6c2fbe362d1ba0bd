/* SPDX-License-Identifier: MIT */
/*
 * event.c - what the warden says
 *
 * Runs in:   front end
 * Trusts:    the warden. Text of the guest's that it passes on (type-ahead, a
 *            stack) is cleaned before a terminal sees it
 */
#include "event.h"

#include "cell.h"
#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "log.h"
#include "repl/config/config.h"
#include "screen.h"
#include "session.h"
#include "setup.h"
#include "verdict.h"

#include <stdlib.h>
#include <string.h>

#define TYPEAHEAD_MAX (64u << 10)
#define STACK_MAX (16u << 10)

static void take_up(struct session *s, struct jail_event *ev)
{
	screen_replace(s, fd_take(&ev->fds[0]));
	cell_take_up(s, ev->restarted);
	session_set_limited(s, ev->limited);
}

/* Read a descriptor of the warden's to its end, at most `max` bytes. */
static char *slurp(int fd, size_t max, size_t *n)
{
	char *buf = malloc(max);
	ssize_t r = buf ? io_read_full(fd, buf, max) : -1;

	if (r < 0) {
		free(buf);
		return NULL;
	}
	*n = (size_t)r;
	return buf;
}

static void take_typeahead(struct session *s, int fd)
{
	size_t n;
	auto_free char *keys = slurp(fd, TYPEAHEAD_MAX, &n);

	if (keys && n)
		screen_take_keys(s, keys, n);
}

/* The frames below the cell's own are the driver's: leave them out. */
static size_t cut_stack(const char *text, size_t n)
{
	static const char cell[] = "File \"<cell ";
	const char *last = NULL, *p = text, *nl;

	while ((p = memmem(p, n - (size_t)(p - text), cell,
			sizeof(cell) - 1)) != NULL)
		last = p++;
	if (!last)
		return 0;
	nl = memchr(last, '\n', n - (size_t)(last - text));
	return nl ? (size_t)(nl + 1 - text) : n;
}

static void take_stack(struct session *s, int fd)
{
	size_t n;
	auto_free char *text = slurp(fd, STACK_MAX, &n);

	if (!text || !n)
		return;
	n = cut_stack(text, n);
	if (s->relay)
		cell_take_stack(s, text, n);
	else
		session_print_foreign(s, text, n);
}

static void take_limit(struct session *s, enum jail_limit limit)
{
	char text[VERDICT_MAX];

	log_limit(s->log, limit);
	session_frame(
		s, "%s", verdict_session_end(text, limit, &s->cfg->limits));
	session_end(s, s->status);
}

static void take(struct session *s, struct jail_event *ev)
{
	struct err e = {0};

	switch (ev->type) {
	case JAIL_BUILT:
	case JAIL_PARKED:
	case JAIL_EXITED:
		break;
	case JAIL_FAILED:
		setup_failed(&e, &ev->err);
		session_fail(s, &e);
		break;
	case JAIL_UP:
		take_up(s, ev);
		break;
	case JAIL_RUNNING:
		if (s->relay)
			screen_run(s, ev->mark);
		break;
	case JAIL_DONE:
		if (s->relay)
			cell_take_done(s, &ev->done);
		break;
	case JAIL_TYPEAHEAD:
		take_typeahead(s, ev->fd);
		break;
	case JAIL_STACK:
		take_stack(s, ev->fd);
		break;
	case JAIL_NOTICE:
		session_frame(s, "%s", ev->text);
		break;
	case JAIL_LIMIT:
		take_limit(s, ev->limit);
		break;
	}
	jail_event_close(ev);
}

void event_take_all(struct session *s)
{
	struct jail_event ev;
	struct err e = {0};
	int r;

	while ((r = jail_next(s->jail, &ev, &e)) > 0)
		take(s, &ev);
	if (r == 0 || s->over)
		return;
	err_wrap(&e, "the session ended unexpectedly");
	session_fail(s, &e);
}
