/* SPDX-License-Identifier: MIT */
/*
 * visit.c - programs beside the session, for visitors from other connections
 *
 * Runs in:   front end, confined
 * Trusts:    a visitor whom the door let in; the program gets nothing of ours
 * Leaves:    the visitor with the one socket that drives the program. The
 *            visitor's connection stays open as long as that runs
 */
#include "repl/session/session.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "repl/attach/attach.h"
#include "repl/config/config.h"

#include <sys/socket.h>
#include <unistd.h>

static const char *find_visit_fault(
	const struct session *s, const struct door_visit *v)
{
	if (!door_is_same_build(v))
		return "this session was begun by another build of cellblock";
	return s->cfg->remote ? NULL : "files.remote is off for this session";
}

/* Whether the visitor has not gone. */
static bool is_there(const struct visit *v)
{
	return v->number && door_has(v->fd);
}

static void close_visit(struct visit *v)
{
	if (v->number)
		close(v->fd);
	v->number = 0;
}

static struct visit *find_free(struct session *s)
{
	for (int i = 0; i < VISITS_MAX; i++) {
		if (!is_there(&s->visits[i]))
			close_visit(&s->visits[i]);
		if (!s->visits[i].number)
			return &s->visits[i];
	}
	return NULL;
}

void visit_begin(struct session *s, struct door_visit *v)
{
	struct visit *place = find_free(s);
	struct err e = {0};

	if (find_visit_fault(s, v))
		err_set(&e, "%s", find_visit_fault(s, v));
	else if (!place)
		err_set(&e, "too many programs run beside this session");
	else if (jail_beside(s->jail, ++s->nvisits, &e) == 0)
		*place = (struct visit){s->nvisits, fd_take(&v->fd)};
	if (e.msg[0])
		door_answer(v, ATTACH_NO, e.msg, NULL);
	else
		door_drop(v);
}

void visit_take(struct session *s, struct jail_event *ev)
{
	for (int i = 0; i < VISITS_MAX; i++) {
		struct visit *v = &s->visits[i];

		if (!v->number || v->number != ev->cell)
			continue;
		if (door_hand(v->fd, ev->fd, ev->err.msg) < 0 || ev->fd < 0)
			close_visit(v);
	}
}

bool visit_is_on(const struct session *s)
{
	for (int i = 0; i < VISITS_MAX; i++)
		if (is_there(&s->visits[i]))
			return true;
	return false;
}

void visit_close(struct session *s)
{
	for (int i = 0; i < VISITS_MAX; i++)
		close_visit(&s->visits[i]);
}
