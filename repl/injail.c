/* SPDX-License-Identifier: MIT */
/*
 * injail.c - a session or a program, from the configuration to its end
 *
 * Runs in:   front end; forks the warden
 * Holds:     everything the person has, until confine_front()
 * Trusts:    nothing
 * Leaves:    the terminal as it was, and no process behind it
 *
 * The order matters. We fork the warden before we confine anything. It builds
 * the jail while we confine ourselves and get the editor ready. A prompt may
 * come a moment before the jail is built; a program never starts before that.
 * A program may start before we are confined: until then we read nothing from
 * it.
 */
#include "run.h"

#include "jail/base/err.h"
#include "repl/command/command.h"
#include "repl/edit/editor.h"
#include "repl/maker/maker.h"
#include "repl/oneshot/program.h"
#include "repl/session/session.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* True if cells of other days are known, and this session's kept. Otherwise
 * Up, Ctrl-R and suggestions would show what :history may not. */
static bool keeps_history(const struct config *cfg)
{
	return cfg->history && config_allows_command(cfg, "history");
}

/* Open the history, and make its directory if that is missing. A failure is not
 * fatal. */
static void open_history(struct invocation *r)
{
	struct person *p = &r->person;
	struct err *e = &r->history_error;
	char path[PATH_MAX + 16];
	int n, dir;

	r->notices_fd = -1;
	r->history = history_new();
	n = config_state_dir(getenv("XDG_STATE_HOME"), p->home, r->state_dir,
		sizeof(r->state_dir));
	if (n == 0) {
		snprintf(path, sizeof(path), "%s/history", r->state_dir);
		n = r->history && !keeps_history(&r->cfg) ? 0
		    : r->history ? history_attach_path(r->history, path, e)
				 : -1;
	} else {
		err_set(e, "history not kept: there is no home");
	}
	if (n < 0) {
		r->state_dir[0] = '\0';
		return;
	}
	dir = history_open_dir(r->state_dir, NULL);
	if (dir < 0)
		return;
	r->notices_fd = notices_open(dir);
	close(dir);
}

/* True if the administrator's limits hold for the programs of a login, too. */
static bool is_bound_login(const struct invocation *r)
{
	return r->login.kind != LOGIN_NOT && config_is_bound(&r->cfg);
}

static struct program_start make_program_start(struct invocation *r)
{
	return (struct program_start){
		.cfg = &r->cfg,
		.opt = &r->opt,
		.host = &r->host,
		.jail = r->jail,
		.term = &r->term,
		.signals = &r->signals,
		.log = &r->log,
		.argv = r->argv,
		.gone = r->beside ? "the session has ended" : NULL,
		.early = r->early,
		.bound = r->opt.mode != OPTIONS_REMOTE && is_bound_login(r),
	};
}

static void start_program_early(struct invocation *r)
{
	const struct program_start start = make_program_start(r);

	r->early = program_start_early(&start);
}

/* Wait for the jail. If none comes, remove the session's socket before we end.
 */
static void await_jail(struct invocation *r, struct fetch *f)
{
	struct err e = {0};
	int got = fetch_await(&r->jail, &r->spec, f, &e);

	if (got < 0)
		control_free(r->control);
	run_must_for_jail(got, &e);
}

/* Fork a warden, which builds the jail by the configuration, and confine the
 * front end. */
static void start_jail(struct invocation *r, enum spec_mode mode)
{
	bool session = mode == SPEC_SESSION;
	struct err e = {0};
	struct fetch f;
	struct confine c = {.cfg = &r->cfg,
		.opt = &r->opt,
		.home = r->person.home,
		.state_dir = r->state_dir};
	int got;

	terminal_open(&r->term, r->cfg.colour);
	run_must(setup_spec(&r->spec, &r->setup, &r->cfg, &r->opt, &r->term,
			 mode, &e),
		&e);
	exam_end_day(&r->cfg, &r->spec.limits);
	if (!session) {
		r->argv = program_argv(&r->opt, &r->cfg.limits, &e);
		run_must(r->argv ? 0 : -1, &e);
	}
	run_must(hostfs_open(&r->host, &r->cfg, r->person.home, &e), &e);
	if (session || is_bound_login(r))
		run_claim_slot(r);
	/* The maker writes the session's number down. */
	if (session)
		ongoing_open_control(r);
	run_find_fetch(r, &f);
	got = fetch_begin(&r->jail, &r->spec, &f, &e);
	if (got < 0)
		control_free(r->control);
	run_must_for_jail(got, &e);
	run_set_locale(); /* while the warden builds the jail */
	if (session)
		open_history(r);
	await_jail(r, &f);
	/* Without a courier, :submit says so. */
	if (session && r->cfg.lab.submit)
		r->courier = courier_start();
	run_must_for_jail(terminal_signals_open(&r->signals, session, &e), &e);
	if (!session)
		start_program_early(r);
	/* If the warden waits for this core, let it start the program now. */
	if (r->early)
		sched_yield();
	run_open_log(r, session);
	c.control = r->control;
	run_must_for_jail(confine_front(&c, &e), &e);
}

static int run_session(struct invocation *r, struct err *e)
{
	struct session s = {
		.calls = &command_calls,
		.cfg = &r->cfg,
		.opt = &r->opt,
		.jail = r->jail,
		.term = &r->term,
		.signals = &r->signals,
		.host = &r->host,
		.log = &r->log,
		.history = r->history,
		.no_history = r->history_error.msg,
		.notices_fd = r->notices_fd,
		.python = r->setup.python,
		.control = r->control,
		.no_control = r->no_control.msg,
		.unseen = r->unseen,
		.login = r->login.kind != LOGIN_NOT,
		.user = r->person.name,
		.courier = r->courier,
	};

	return prompt_run(&s, e);
}

static int run_program(struct invocation *r, struct err *e)
{
	struct program_start start = make_program_start(r);

	return program_run(&start, e);
}

/* When an exam's session ends now, this is the moment of what is handed in. */
static int64_t find_end(const struct config *cfg)
{
	time_t now = time(NULL);

	return now < cfg->exam_end_s ? now : cfg->exam_end_s;
}

int injail_run_started(struct invocation *r, bool program)
{
	struct err e = {0}, left = {0};
	int64_t end_s;
	int status;

	status = program ? run_program(r, &e) : run_session(r, &e);
	terminal_close(&r->term);
	end_s = find_end(&r->cfg);
	if (jail_leave(r->jail, &left) < 0)
		terminal_complain(NULL, left.msg);
	if (r->courier >= 0 && exam_hands_in(&r->cfg) &&
		config_allows_command(&r->cfg, "submit") &&
		isatty(STDOUT_FILENO))
		lab_tell_end(&r->cfg, r->courier, end_s);
	hostfs_close(&r->host);
	history_free(r->history);
	free(r->argv);
	terminal_signals_close(&r->signals);
	status = run_end(r, status, &e);
	setup_leave_slot(&r->slots);
	if (r->control)
		control_leave(r->control, ATTACH_OVER, status, NULL);
	control_free(r->control);
	return status;
}

int injail_run(struct invocation *r)
{
	bool program = program_is_wanted(&r->opt);

	start_jail(r, program ? SPEC_PROGRAM : SPEC_SESSION);
	return injail_run_started(r, program);
}
