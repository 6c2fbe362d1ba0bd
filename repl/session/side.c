/* SPDX-License-Identifier: MIT */
/*
 * side.c - programs beside the session, for visitors from other connections
 *
 * Runs in:   front end, confined
 * Trusts:    a visitor whom the control socket let in; the program gets nothing
 * of ours Leaves:    the visitor with the one socket that drives the program.
 * The visitor's connection stays open as long as that runs
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
	const struct session *s, const struct control_request *v)
{
	if (!control_is_same_build(v))
		return "this session was begun by another build of cellblock";
	return s->cfg->remote ? NULL : "files.remote is off for this session";
}

/* True if the visitor has not gone. */
static bool is_there(const struct visit *v)
{
	return v->number && control_has(v->fd);
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

void session_side_begin(struct session *s, struct control_request *v)
{
	struct visit *place = find_free(s);
	struct err e = {0};

	if (find_visit_fault(s, v))
		err_set(&e, "%s", find_visit_fault(s, v));
	else if (!place)
		err_set(&e, "too many programs run beside this session");
	else if (jail_start_side(s->jail, ++s->nvisits, &e) == 0)
		*place = (struct visit){s->nvisits, fd_take(&v->fd)};
	if (e.msg[0])
		control_answer(v, ATTACH_NO, e.msg, NULL);
	else
		control_drop(v);
}

void session_side_take(struct session *s, struct jail_event *ev)
{
	for (int i = 0; i < VISITS_MAX; i++) {
		struct visit *v = &s->visits[i];

		if (!v->number || v->number != ev->cell)
			continue;
		if (control_hand(v->fd, ev->fd, ev->err.msg) < 0 || ev->fd < 0)
			close_visit(v);
	}
}

bool session_side_is_on(const struct session *s)
{
	for (int i = 0; i < VISITS_MAX; i++)
		if (is_there(&s->visits[i]))
			return true;
	return false;
}

void session_side_close(struct session *s)
{
	for (int i = 0; i < VISITS_MAX; i++)
		close_visit(&s->visits[i]);
}
