/* SPDX-License-Identifier: MIT */
/*
 * side.c - programs beside the session, for clients from other connections
 *
 * Runs in:   front end, confined
 * Trusts:    a client that the control socket let in; the program gets nothing
 *            of ours
 * Leaves:    the client with the one socket that drives the program. The
 *            client's connection stays open as long as the program runs
 */
#include "repl/session/session.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "repl/attach/attach.h"
#include "repl/config/config.h"

#include <sys/socket.h>
#include <unistd.h>

static const char *find_side_fault(
	const struct session *s, const struct control_request *v)
{
	if (!control_is_same_build(v))
		return "this session was begun by another build of cellblock";
	if (v->request.number == ATTACH_SIDE_COPY)
		return v->uid == 0 ? NULL : "the copy is for root";
	if (v->request.number)
		return s->cfg->share ? NULL
				     : "files.share is off for this session";
	return s->cfg->remote ? NULL : "files.remote is off for this session";
}

/* True if the client is still connected. */
static bool has_client(const struct side_program *v)
{
	return v->number && control_has(v->fd);
}

static void close_side(struct side_program *v)
{
	if (v->number)
		close(v->fd);
	v->number = 0;
}

static struct side_program *find_free(struct session *s)
{
	for (int i = 0; i < SIDES_MAX; i++) {
		if (!has_client(&s->sides[i]))
			close_side(&s->sides[i]);
		if (!s->sides[i].number)
			return &s->sides[i];
	}
	return NULL;
}

void session_side_begin(struct session *s, struct control_request *v)
{
	struct side_program *place = find_free(s);
	struct err e = {0};

	if (find_side_fault(s, v))
		err_set(&e, "%s", find_side_fault(s, v));
	else if (!place)
		err_set(&e, "too many programs run beside this session");
	else if (jail_start_side(s->jail, ++s->nsides,
			 v->request.number == ATTACH_SIDE_PYTHON, &e) == 0)
		*place = (struct side_program){s->nsides, fd_take(&v->fd)};
	if (e.msg[0])
		control_answer(v, ATTACH_NO, e.msg, NULL);
	else
		control_drop(v);
}

void session_side_take(struct session *s, struct jail_event *ev)
{
	for (int i = 0; i < SIDES_MAX; i++) {
		struct side_program *v = &s->sides[i];

		if (!v->number || v->number != ev->cell)
			continue;
		if (control_hand(v->fd, ev->fd, ev->err.msg) < 0 || ev->fd < 0)
			close_side(v);
	}
}

bool session_side_is_on(const struct session *s)
{
	for (int i = 0; i < SIDES_MAX; i++)
		if (has_client(&s->sides[i]))
			return true;
	return false;
}

void session_side_close(struct session *s)
{
	for (int i = 0; i < SIDES_MAX; i++)
		close_side(&s->sides[i]);
}
