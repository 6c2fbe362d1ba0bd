/* SPDX-License-Identifier: MIT */
/*
 * ongoing.c - sessions that go on without their terminal, from a command line
 *
 * Runs in:   front end, before it confines itself; or a client, which never
 *            becomes a front end
 * Trusts:    nothing of other people's sessions (registry.c)
 * Leaves:    this terminal, with the session that the person went back to
 */
#include "run.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "repl/term/term.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void ongoing_open_registry(
	const struct invocation *r, struct registry *list, bool all)
{
	struct rundir_of of;
	char state[PATH_MAX];
	struct err e = {0};

	run_find_places(r, &of, state);
	run_must(registry_open(list, &of, r->person.name, all, &e), &e);
}

static int attach_to(const struct invocation *r,
	const struct registry_entry *to, struct err *e)
{
	auto_close int sock = rundir_connect(to->dir, to->id, to->uid);
	char from[64];

	if (sock < 0)
		return err_errno(e, "reach session %d", to->id);
	client_from(from, sizeof(from));
	return client_attach(sock, r->person.name, from, e);
}

int ongoing_offer(const struct invocation *r)
{
	const struct registry_entry *which = NULL;
	struct registry list;
	struct err e = {0};
	int status = -1;

	if (r->opt.fresh)
		return -1;
	ongoing_open_registry(r, &list, false);
	if (list.n)
		run_set_locale(); /* for the question */
	switch (registry_ask(&list, &which)) {
	case REGISTRY_NEW:
		break;
	case REGISTRY_NEITHER:
		status = 0;
		break;
	case REGISTRY_BACK:
		status = attach_to(r, which, &e);
		if (status < 0)
			terminal_refuse(&e);
		break;
	}
	registry_free(&list);
	return status;
}

void ongoing_begin_client(struct invocation *r)
{
	struct err e = {0};
	int link = client_begin(r->person.name, &e);

	run_must(link, &e);
	r->control = control_new(link);
	if (!r->control) {
		err_errno(&e, "start the front end");
		run_die(&e);
	}
}

void ongoing_open_control(struct invocation *r)
{
	struct rundir_of of;
	char state[PATH_MAX];

	run_find_places(r, &of, state);
	if (r->control)
		control_open(r->control, &of, &r->no_control);
	else
		err_set(&r->no_control,
			"session.linger or session.attach is off, "
			"or there was no terminal");
}

int ongoing_list(struct invocation *r)
{
	struct registry list;
	int failed;

	ongoing_open_registry(r, &list, geteuid() == 0);
	failed = registry_print(
		&list, r->opt.json, terminal_columns(STDOUT_FILENO), stdout);
	registry_free(&list);
	return failed ? 1 : 0;
}

static int watch_session(struct invocation *r, const struct registry_entry *to,
	int sock, struct err *e)
{
	char from[64], name[REGISTRY_NAME];
	int status;

	client_from(from, sizeof(from));
	if (query_watch(sock, from, e) < 0)
		return -1;
	registry_name(to, name, sizeof(name));
	terminal_open(&r->term, r->cfg.colour);
	status = watcher_run(sock, name, &r->term, e);
	terminal_close(&r->term);
	return status;
}

static int act_on_session(
	struct invocation *r, const struct registry_entry *to, struct err *e)
{
	bool end = r->opt.mode == OPTIONS_END;
	auto_close int sock = rundir_connect(to->dir, to->id, to->uid);
	struct attach_answer a;

	if (sock < 0)
		return err_errno(e, "reach session %d", to->id);
	if (r->opt.mode == OPTIONS_WATCH)
		return watch_session(r, to, sock, e);
	return query_ask(
		sock, end ? ATTACH_END : ATTACH_MESSAGE, r->opt.message, &a, e);
}

int ongoing_act(struct invocation *r)
{
	bool attach = r->opt.mode == OPTIONS_ATTACH;
	const struct registry_entry *to;
	struct registry list;
	struct err e = {0};
	int status;

	ongoing_open_registry(
		r, &list, geteuid() == 0 && (!attach || r->opt.session));
	to = registry_find(&list, r->opt.session, &e);
	run_must(to ? 0 : -1, &e);
	if (attach && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))) {
		err_set(&e, "--attach wants a terminal");
		err_kind_set(&e, ERR_USAGE);
		run_die(&e);
	}
	/* The owner of the other account would get root's terminal. */
	if (attach && to->uid != getuid()) {
		err_set(&e, "a terminal goes to one's own sessions only");
		err_hint(&e, "cellblock --watch shows %s's", to->user);
		run_die(&e);
	}
	status = attach ? attach_to(r, to, &e) : act_on_session(r, to, &e);
	run_must(status, &e);
	registry_free(&list);
	return status;
}

bool ongoing_lingers(const struct invocation *r)
{
	return r->cfg.attach && r->cfg.linger_ms > 0 && isatty(STDIN_FILENO) &&
	       isatty(STDOUT_FILENO);
}
