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
#include "repl/maker/maker.h"
#include "repl/term/term.h"
#include "repl/text/text.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The time between two looks for a session's end. */
#define END_LOOK_MS 20

void ongoing_open_registry(const struct invocation *r, struct registry *list,
	enum registry_scope scope)
{
	struct rundir_of of;
	char state[PATH_MAX];
	struct err e = {0};

	run_find_places(r, &of, state);
	run_must(registry_open(list, &of, r->person.name, scope, &e), &e);
	list->login = r->login.kind != LOGIN_NOT;
}

/* Ask root's maker for the person's sessions on other hosts. */
static void find_elsewhere(const struct invocation *r, struct registry *list)
{
	struct err e = {0};

	if (!r->cfg.hosts || r->cfg.maker == MAKER_OFF ||
		hosts_find(&list->elsewhere, &list->nelsewhere, &e) == 0)
		return;
	err_wrap(&e, "look for sessions on other hosts");
	terminal_complain(NULL, e.msg);
}

/* The session that `id` names; or end, with what is known of other hosts. */
static const struct registry_entry *find_session(
	const struct invocation *r, struct registry *list, const char *id)
{
	struct err e = {0};
	const struct registry_entry *to = registry_find(list, id, &e);

	if (to)
		return to;
	find_elsewhere(r, list);
	registry_find(list, id, &e);
	run_die(&e);
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

/* Check that this person has not kept us waiting for too long: 0, or -1 with e.
 */
static int check_patience(const struct registry *list,
	const struct registry_entry *to, struct err *e)
{
	char name[REGISTRY_NAME];

	if (registry_patience_ms(list, to, REGISTRY_FOR_ANSWERS))
		return 0;
	registry_name(to, name, sizeof(name));
	return err_set(e, "session %s is left out: others of %s do not answer",
		name, to->user);
}

/* Reach a session of such a person: a socket, or -1 with e. */
static int reach(const struct registry *list, const struct registry_entry *to,
	struct err *e)
{
	int sock = check_patience(list, to, e) < 0
			   ? -1
			   : rundir_connect(to->dir, to->id, to->uid);

	return sock < 0 && !e->msg[0]
		       ? err_errno(e, "reach session %s/%d", to->user, to->id)
		       : sock;
}

/* Copy the home of a session into `place`: 0, or -1 with e. */
static int save_home(const struct invocation *r, struct registry *list,
	const struct registry_entry *to, const char *place, struct err *e)
{
	int64_t began = now_ms();

	if (check_patience(list, to, e) < 0)
		return -1;
	if (saving_copy(r, to, place, e) == 0)
		return 0;
	registry_note_wait(list, to, REGISTRY_FOR_ANSWERS, now_ms() - began);
	return -1;
}

/* End the session, wait until it is gone, and its place with it, and say what
 * ended. */
static int end_session(struct registry *list, const struct registry_entry *to,
	const char *message, struct err *e)
{
	auto_close int sock = reach(list, to, e);
	int64_t began = now_ms(), until;
	char name[REGISTRY_NAME], what[128], line[2 * REGISTRY_NAME + 160];
	/* A server answers when its session is over. */
	bool gone = to->part;

	if (sock < 0)
		return -1;
	if (query_end(sock, to->part, message, e) < 0) {
		registry_note_wait(
			list, to, REGISTRY_FOR_ANSWERS, now_ms() - began);
		return -1;
	}
	began = now_ms();
	until = began + registry_patience_ms(list, to, REGISTRY_FOR_ENDS);
	while (!gone && now_ms() < until) {
		auto_close int again = rundir_connect(to->dir, to->id, to->uid);

		gone = again < 0 && errno != EAGAIN;
		poll(NULL, 0, gone ? 0 : END_LOOK_MS);
	}
	registry_note_wait(
		list, to, REGISTRY_FOR_ENDS, gone ? 0 : now_ms() - began);
	registry_name(to, name, sizeof(name));
	registry_describe(to, what, sizeof(what));
	snprintf(line, sizeof(line), "%s session %s %s",
		gone ? "ended" : "is still ending:", name, what);
	terminal_print_line(stdout, line);
	return 0;
}

void ongoing_end_before(const struct invocation *r, int64_t began_s)
{
	struct registry list;
	struct err e = {0};

	ongoing_open_registry(r, &list, REGISTRY_OWN);
	for (size_t i = 0; i < list.n; i++)
		if (list.v[i].answered && list.v[i].status.began < began_s)
			run_must(end_session(&list, &list.v[i],
					 "the exam begins", &e),
				&e);
	registry_free(&list);
}

void ongoing_tell_elsewhere(const struct invocation *r)
{
	struct registry list = {0};
	char text[384], line[400];

	find_elsewhere(r, &list);
	if (list.nelsewhere)
		run_set_locale();
	for (size_t i = 0; i < list.nelsewhere; i++) {
		if (!list.elsewhere[i].own)
			continue;
		elsewhere_describe(&list.elsewhere[i], text, sizeof(text));
		snprintf(line, sizeof(line), "[%s]", text);
		terminal_print_line(stdout, line);
	}
	fflush(stdout);
	registry_free(&list);
}

int ongoing_offer(const struct invocation *r)
{
	const struct registry_entry *which = NULL;
	struct registry list;
	struct err e = {0};
	int status = -1;

	if (r->opt.fresh)
		return -1;
	ongoing_open_registry(r, &list, REGISTRY_OWN);
	if (list.n)
		run_set_locale(); /* for the question */
	switch (registry_ask(&list, r->cfg.limits.per_user, &which)) {
	case REGISTRY_NEW:
		break;
	case REGISTRY_NEITHER:
		status = 0;
		break;
	case REGISTRY_END:
		run_must(end_session(&list, which, NULL, &e), &e);
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
		control_open(r->control, &of, false, &r->no_control);
	else
		err_set(&r->no_control,
			"session.linger or session.attach is off, "
			"or there was no terminal");
}

int ongoing_list(struct invocation *r)
{
	struct registry list;
	int failed;

	ongoing_open_registry(
		r, &list, geteuid() == 0 ? REGISTRY_ALL : REGISTRY_SERVERS);
	find_elsewhere(r, &list);
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
	auto_close int sock = rundir_connect(to->dir, to->id, to->uid);
	struct attach_answer a;

	if (sock < 0)
		return err_errno(e, "reach session %d", to->id);
	if (r->opt.mode == OPTIONS_WATCH)
		return watch_session(r, to, sock, e);
	return query_ask(sock, ATTACH_MESSAGE, r->opt.message, &a, e);
}

/* True if the word means many: all of our own, everybody's, those of a group.
 */
static bool means_many(const char *id)
{
	return id &&
	       (!strcmp(id, "all") || !strcmp(id, "everybody") || id[0] == '@');
}

/* Root rarely has sessions, and may mean those of all people. */
static const char *hint_of_many(const char *id)
{
	return geteuid() == 0 && !strcmp(id, "all")
		       ? " · 'all' are root's own, 'everybody' all people's"
		       : "";
}

/* Check that a group after an @ is one. */
static int check_group(const char *id, struct err *e)
{
	if (id[0] != '@' || getgrnam(id + 1))
		return 0;
	err_set(e, "there is no group %.60s", id + 1);
	return err_kind_set(e, ERR_USAGE);
}

static bool is_in_group(const char *user, const char *group)
{
	const struct passwd *pw = getpwnam(user);
	gid_t gid = pw ? pw->pw_gid : (gid_t)-1;
	const struct group *g = getgrnam(group);

	if (!g)
		return false;
	for (char **m = g->gr_mem; *m; m++)
		if (!strcmp(*m, user))
			return true;
	return gid == g->gr_gid;
}

/* Of everybody's, servers and their sessions are not meant. */
static bool is_meant(const struct registry_entry *v, const char *id)
{
	if (!strcmp(id, "all"))
		return v->uid == getuid();
	return v->id <= RUNDIR_SESSIONS &&
	       (id[0] != '@' || is_in_group(v->user, id + 1));
}

/* Show the message in all sessions that are meant. The exit status. */
static int tell_many(const struct invocation *r, struct registry *list)
{
	const struct options *o = &r->opt;
	char line[160], count[TEXT_HUMAN];
	struct attach_answer a;
	uint64_t told = 0;
	int failed = 0;

	for (size_t i = 0; i < list->n; i++) {
		const struct registry_entry *to = &list->v[i];
		auto_close int sock = -1;
		struct err e = {0};
		int64_t began = now_ms();

		if (!is_meant(to, o->session) || to->part)
			continue;
		sock = reach(list, to, &e);
		if (sock >= 0 &&
			query_ask(sock, ATTACH_MESSAGE, o->message, &a, &e) < 0)
			registry_note_wait(list, to, REGISTRY_FOR_ANSWERS,
				now_ms() - began);
		told += !e.msg[0];
		failed |= !!e.msg[0];
		if (e.msg[0])
			terminal_refuse(&e);
	}
	snprintf(line, sizeof(line), "shown in %s%s",
		text_count(count, sizeof(count), told, "session", NULL),
		told ? "" : hint_of_many(o->session));
	terminal_print_line(stdout, line);
	return failed;
}

/* End the sessions that were named, or many. We look for each before we end
 * any: a wrong number ends nothing. The exit status. */
static int end_sessions(const struct invocation *r, struct registry *list)
{
	const struct options *o = &r->opt;
	bool all = o->nargs == 1 && means_many(o->session);
	char line[128], place[PATH_MAX];
	struct err why = {0};
	int failed = 0, own = 0;

	if (o->save)
		run_must(saving_find(o->save, place, &why), &why);
	for (int i = 0; i < o->nargs && !all; i++)
		find_session(r, list, o->args[i]);
	for (size_t i = 0; i < (all ? list->n : (size_t)o->nargs); i++) {
		struct err e = {0};
		const struct registry_entry *to =
			all ? &list->v[i] : registry_find(list, o->args[i], &e);

		if (all && !is_meant(to, o->session))
			continue;
		own++;
		if ((!o->save || save_home(r, list, to, place, &e) == 0) &&
			end_session(list, to, o->message, &e) == 0)
			continue;
		terminal_refuse(&e);
		failed = 1;
	}
	if (!own) {
		snprintf(line, sizeof(line), "there was no session to end%s",
			all ? hint_of_many(o->session) : "");
		terminal_print_line(stdout, line);
	}
	return failed;
}

int ongoing_act(struct invocation *r)
{
	bool attach = r->opt.mode == OPTIONS_ATTACH;
	const struct registry_entry *to;
	struct registry list;
	struct err e = {0};
	int status;

	ongoing_open_registry(r, &list,
		geteuid() == 0 && (!attach || r->opt.session) ? REGISTRY_ALL
		: r->opt.session			      ? REGISTRY_SERVERS
							      : REGISTRY_OWN);
	if (means_many(r->opt.session) &&
		(r->opt.mode == OPTIONS_END || r->opt.mode == OPTIONS_MESSAGE))
		run_must(check_group(r->opt.session, &e), &e);
	if (r->opt.mode == OPTIONS_END || (r->opt.mode == OPTIONS_MESSAGE &&
						  means_many(r->opt.session))) {
		status = r->opt.mode == OPTIONS_END ? end_sessions(r, &list)
						    : tell_many(r, &list);
		registry_free(&list);
		return status;
	}
	to = find_session(r, &list, r->opt.session);
	if (to->id > RUNDIR_SESSIONS)
		run_must(err_set(&e,
				 "session %s is a server's, and has no "
				 "terminal",
				 r->opt.session),
			&e);
	if (attach && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))) {
		err_set(&e, "--attach wants a terminal");
		if (r->login.kind != LOGIN_NOT)
			err_hint(&e, "ssh -t HOST attach");
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
