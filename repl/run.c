/* SPDX-License-Identifier: MIT */
/*
 * run.c - steps that several modes share
 *
 * Runs in:   front end, before it confines itself
 * Holds:     everything the person has
 * Trusts:    the system's files; the person's own as far as those allow
 * Leaves:    nothing: we print a failure once, and it ends the process
 */
#include "run.h"

#include "jail/base/err.h"
#include "repl/command/command.h"
#include "repl/config/person.h"
#include "repl/edit/editor.h"
#include "repl/grade/grade.h"
#include "repl/maker/maker.h"

#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int run_exit_status(const struct err *e)
{
	switch (e->kind) {
	case ERR_FAILED:
		return 1;
	case ERR_USAGE:
		return 2;
	case ERR_CONFIG:
		return 78;
	case ERR_BUSY:
		return 75;
	case ERR_JAIL:
		return 125;
	}
	return 1;
}

_Noreturn void run_die(const struct err *e)
{
	terminal_refuse(e);
	exit(run_exit_status(e));
}

void run_must(int r, const struct err *e)
{
	if (r < 0)
		run_die(e);
}

void run_must_for_jail(int r, struct err *e)
{
	if (r < 0 && e->kind != ERR_CONFIG && e->kind != ERR_BUSY)
		err_kind_set(e, ERR_JAIL);
	run_must(r, e);
}

void run_set_locale(void)
{
	unsetenv("LOCPATH");
	unsetenv("GCONV_PATH");
	setlocale(LC_CTYPE, "C.UTF-8");
}

/* True if all errors come from the command line: from options, whose places
 * begin with a dash, or from the plan that it names. */
static bool errors_are_of_caller(
	const struct invocation *r, const struct config_errors *errors)
{
	size_t n = r->plan ? strlen(r->opt.grade.plan) : 0;

	for (size_t i = 0; i < errors->list.n; i++) {
		const char *s = errors->list.items[i];

		if (*s != '-' && (!n || strncmp(s, r->opt.grade.plan, n) != 0))
			return false;
	}
	return !errors->dropped;
}

void run_find_where(struct invocation *r, struct config_where *where)
{
	*where = (struct config_where){
		.system_dir = CONFIG_SYSTEM_DIR,
		.home = r->person.account_home,
		.user = r->person.name,
		.groups = (const char *const *)r->person.groups,
		.ngroups = r->person.n_groups,
		.is_command = named_exists,
		.login = true,
	};
}

int run_read_config(
	struct invocation *r, struct config *cfg, struct config_errors *errors)
{
	struct config_where where;

	run_find_where(r, &where);
	where.own_home = r->person.home;
	if (r->plan) {
		where.lines = r->plan->lines;
		where.nlines = r->plan->nlines;
	}
	where.sets = (const char *const *)r->opt.sets;
	where.nsets = r->opt.nsets;
	where.explicit_file = r->opt.config_file;
	where.login = r->login.kind != LOGIN_NOT;
	where.checking = r->opt.mode == OPTIONS_CHECK_CONFIG;
	if (config_user_file(getenv("XDG_CONFIG_HOME"), r->person.home,
		    r->config_file, sizeof(r->config_file)) == 0)
		where.user_file = r->config_file;
	return config_load(cfg, &where, errors);
}

/* Root looks after the sessions that there are, also while a file of the
 * system's has an error. Only maker.hosts would matter to that. */
static bool goes_on_without(const struct invocation *r)
{
	static const enum options_mode modes[] = {
		OPTIONS_SESSIONS, OPTIONS_WATCH, OPTIONS_MESSAGE, OPTIONS_END};

	for (size_t i = 0; getuid() == 0 && i < COUNT(modes); i++)
		if (r->opt.mode == modes[i])
			return true;
	return false;
}

void run_load_config(struct invocation *r)
{
	struct config_errors errors = {0};

	person_find_groups(&r->person, getuid());
	if (run_read_config(r, &r->cfg, &errors) == 0) {
		config_errors_fini(&errors);
		return;
	}
	config_errors_print(&errors, terminal_print_line);
	/* A login has no files of its own, and no options. */
	if (r->login.kind != LOGIN_NOT)
		terminal_print_line(stderr,
			"  the administrator of this host can mend that");
	if (errors_are_of_caller(r, &errors))
		exit(2);
	if (!goes_on_without(r))
		exit(78);
	terminal_print_line(stderr, "  going on without a configuration");
	config_errors_fini(&errors);
	config_fini(&r->cfg);
	if (config_init(&r->cfg) < 0)
		exit(1);
}

/* Load the system's files alone; -1 with e. */
static int load_system(void *run, struct config *cfg, struct err *e)
{
	struct config_errors errors = {0};
	struct config_where where;
	int r;

	run_find_where(run, &where);
	r = config_load(cfg, &where, &errors);
	config_errors_fini(&errors);
	return r < 0 ? err_set(e, "read the system's configuration") : 0;
}

static void complain_of_maker(const struct err *e)
{
	char text[sizeof(e->msg) + 64];

	snprintf(text, sizeof(text),
		"%s: this session is made without the maker", e->msg);
	terminal_complain(NULL, text);
}

void run_find_fetch(struct invocation *r, struct fetch *f)
{
	*f = (struct fetch){.cfg = &r->cfg,
		.eval = r->opt.mode == OPTIONS_CELL,
		.checks = r->opt.mode == OPTIONS_CHECK,
		.load_system = r->login.kind == LOGIN_NOT ? load_system : NULL,
		.arg = r,
		.complain = complain_of_maker};
	if (r->control && control_is_open(r->control))
		f->number = (uint32_t)control_id(r->control);
	client_from(f->from, sizeof(f->from));
}

bool run_is_shell(const char *path)
{
	struct stat a, b;

	return path && stat(path, &a) == 0 && stat("/proc/self/exe", &b) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

void run_find_slots(const struct invocation *r, struct setup_slots *s)
{
	bool bound = config_is_bound(&r->cfg);
	const struct person *p = &r->person;
	char dir[PATH_MAX];
	int fd;

	*s = (struct setup_slots){
		.fd = -1, .most = r->cfg.limits.per_user, .must = bound};
	if (config_state_dir(bound ? NULL : getenv("XDG_STATE_HOME"),
		    bound ? p->account_home : p->home, dir, sizeof(dir)) < 0) {
		err_set(&s->why, "count the sessions: there is no home");
		return;
	}
	fd = history_open_dir(dir, &s->why);
	if (fd < 0) {
		err_wrap(&s->why, "count the sessions");
		return;
	}
	close(fd);
	s->fd = setup_open_slots(dir, &s->why);
}

void run_claim_slot(struct invocation *r)
{
	struct err e = {0};

	run_find_slots(r, &r->slots);
	run_must(setup_claim_slot(&r->slots, &e), &e);
}

void run_find_places(
	const struct invocation *r, struct rundir_of *of, char *state)
{
	bool bound = config_is_bound(&r->cfg);
	const struct person *p = &r->person;

	*of = (struct rundir_of){.uid = geteuid()};
	if (config_state_dir(bound ? NULL : getenv("XDG_STATE_HOME"),
		    bound ? p->account_home : p->home, state, PATH_MAX) == 0)
		of->state_dir = state;
}

void run_open_log(struct invocation *r, bool session)
{
	/* All that a login does is written down, but for copies. */
	bool wanted = session || (r->login.kind != LOGIN_NOT &&
					 r->opt.mode != OPTIONS_REMOTE);
	struct err e = {0};
	char from[64];
	int kept = -1;

	if (wanted && r->cfg.transcript)
		run_must(fetch_transcript(&r->cfg, &kept, &e), &e);
	run_must(log_open(&r->log, &r->cfg, r->person.name, wanted, kept, &e),
		&e);
	client_from(from, sizeof(from));
	log_begin(&r->log, session ? "session" : "program",
		r->control && control_is_open(r->control)
			? control_id(r->control)
			: 0,
		from);
}

int run_end(struct invocation *r, int status, const struct err *e)
{
	log_close(&r->log, status < 0 ? run_exit_status(e) : status);
	run_must(status, e);
	return status;
}
