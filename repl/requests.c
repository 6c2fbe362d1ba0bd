/* SPDX-License-Identifier: MIT */
/*
 * requests.c - --eval, --serve and --mcp: requests in place of keys
 *
 * Runs in:   front end
 * Holds:     everything the person has, until it confines itself
 * Trusts:    the configuration; we read nothing, and accept no client, before
 *            we are confined
 * Leaves:    no process behind it
 */
#include "run.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "repl/edit/editor.h"
#include "repl/json/json.h"
#include "repl/maker/maker.h"
#include "repl/mcp/mcp.h"
#include "repl/serve/serve.h"
#include "repl/term/term.h"

#include <jansson.h>
#include <stdio.h>

/* Confine the front end. It may still read home.skeleton, and nothing else. */
static void confine_requests(
	const struct invocation *r, bool serves, struct err *e)
{
	struct jail_sandbox sandbox = {.n = 0,
		.left = serves ? JAIL_SANDBOX_CLIENTS : JAIL_SANDBOX_NOTHING};

	if (r->cfg.skeleton)
		sandbox.v[sandbox.n++].path = r->cfg.skeleton;
	/* jansson reads /dev/urandom for its hash tables, so that no client can
	 * choose names that meet in one bucket. Inside it could not. */
	json_object_seed(0);
	run_must_for_jail(jail_sandbox_enter(&sandbox, e), e);
}

/* Make the spec of a jail without a terminal: its programs draw nothing. Our
 * own process makes these jails, and not the maker of this host. */
static void make_spec(
	struct invocation *r, const char *front, enum spec_mode mode)
{
	struct err e = {0};

	run_must_for_jail(fetch_check_own(&r->cfg, front, &e), &e);
	run_must(setup_spec(&r->spec, &r->setup, &r->cfg, &r->opt, &r->term,
			 mode, &e),
		&e);
	r->spec.term = "dumb";
}

int requests_eval(struct invocation *r)
{
	struct err e = {0}, left = {0};
	struct eval ev;
	int status;

	make_spec(r, "--eval", SPEC_PROGRAM);
	run_must_for_jail(eval_open(&ev, &r->cfg, &r->spec, &e), &e);
	run_set_locale();
	run_open_log(r, false);
	ev.log = &r->log;
	run_find_slots(r, &ev.slots);
	confine_requests(r, false, &e);
	status = eval_run(&ev, &e);
	if (eval_close(&ev, &left) < 0)
		terminal_complain(NULL, left.msg);
	return run_end(r, status, &e);
}

int requests_mcp(struct invocation *r)
{
	struct err e = {0}, left = {0};
	struct mcp *m = NULL;
	int status;

	if (r->cfg.limits.output_bytes > MCP_OUTPUT_MAX)
		r->cfg.limits.output_bytes = MCP_OUTPUT_MAX;
	make_spec(r, "--mcp", SPEC_SESSION);
	run_must_for_jail(mcp_open(&m, &r->cfg, &r->spec, &e), &e);
	run_set_locale();
	run_claim_slot(r);
	run_open_log(r, true);
	confine_requests(r, false, &e);
	status = mcp_run(m, &r->log, &e);
	if (mcp_close(m, &left) < 0) {
		terminal_complain(NULL, left.msg);
		status = status ? status : run_exit_status(&left);
	}
	return run_end(r, status, &e);
}

static int read_config_again(
	void *run, struct config *cfg, struct config_errors *errors)
{
	return run_read_config(run, cfg, errors);
}

/* Open a socket where --sessions and --end find the server. Without a directory
 * for it there is none. The confined server may not remove the socket: the next
 * process that looks there does. */
static void open_control(struct invocation *r, struct serve *s)
{
	struct rundir_of of;
	char state[PATH_MAX];
	auto_close int dir = -1;

	if (!r->cfg.attach)
		return;
	run_find_places(r, &of, state);
	if (of.state_dir)
		dir = history_open_dir(of.state_dir, &r->no_control);
	r->control = control_new(-1);
	if (!r->control ||
		control_open(r->control, &of, true, &r->no_control) < 0 ||
		control_watch(r->control, &r->signals, &r->no_control) < 0)
		return;
	serve_set_control(s, r->control);
}

int requests_serve(struct invocation *r)
{
	const struct reload_source source = {
		.load = read_config_again, .arg = r};
	struct err e = {0}, left = {0};
	struct serve *s = NULL;
	int status;

	make_spec(r, "--serve", SPEC_PROGRAM);
	r->spec.shared = 1;
	r->spec.asked_wall_ms = serve_most_ms(&r->cfg);
	run_must(serve_open(&s, &r->cfg, &r->spec, &source, r->opt.text, &e),
		&e);
	run_set_locale();
	run_open_log(r, false);
	run_must_for_jail(terminal_signals_open(&r->signals, false, &e), &e);
	open_control(r, s);
	confine_requests(r, true, &e);
	if (!r->opt.quiet)
		fprintf(stderr, "cellblock: serving at %s%s\n",
			serve_address(s),
			serve_is_open(s) ? ", to everybody who can reach it "
					   "(serve.token_file)"
					 : "");
	status = serve_run(s, &r->signals, &r->log, &e);
	if (serve_close(s, &left) < 0)
		terminal_complain(NULL, left.msg);
	control_free(r->control);
	terminal_signals_close(&r->signals);
	return run_end(r, status, &e);
}
