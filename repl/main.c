/* SPDX-License-Identifier: MIT */
/*
 * main.c - from argv to a mode
 *
 * Runs in:   front end
 * Holds:     everything the person has
 * Trusts:    nothing: a login gets a clean environment and the system's
 *            configuration before we look at anything else
 * Leaves:    an exit status
 */
#include "run.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "repl/lab/lab.h"
#include "repl/maker/maker.h"
#include "repl/term/term.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Open the standard descriptors that are missing. Otherwise the next file that
 * we open could become somebody's standard output. A write to a missing
 * standard output still fails. */
static void open_standard_fds(void)
{
	static const int flags[] = {O_RDWR, O_RDONLY, O_RDWR};

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", flags[fd] | O_NOCTTY);
}

/* Copy the arguments: pid 1 of a jail (init.c) overwrites the originals. One
 * block, which the caller frees; NULL: no memory. */
static char **copy_args(int argc, char **argv)
{
	size_t bytes = ((size_t)argc + 1) * sizeof(*argv);
	char **copy, *to;

	for (int i = 0; i < argc; i++)
		bytes += strlen(argv[i]) + 1;
	copy = calloc(1, bytes);
	if (!copy)
		return NULL;
	to = (char *)(copy + argc + 1);
	for (int i = 0; i < argc; i++) {
		copy[i] = to;
		to = stpcpy(to, argv[i]) + 1;
	}
	return copy;
}

static void decide_mode(struct invocation *r, int argc, char **argv)
{
	struct login_start start = {.argc = argc,
		.argv = argv,
		.original = getenv("SSH_ORIGINAL_COMMAND"),
		.shell_is_us = run_is_shell(r->person.shell)};
	struct err e = {0};

	run_must(login_decide(&start, &r->login, &e), &e);
	if (r->login.kind == LOGIN_NOT) {
		person_prefer_home(&r->person, getenv("HOME"));
		run_must(options_parse(&r->opt, argc, argv, isatty(0), &e), &e);
		return;
	}
	login_options(&r->login, isatty(0), &r->opt);
	r->login_env = login_scrub_env(environ, r->person.home, r->person.name);
	if (!r->login_env) {
		err_errno(&e, "prepare the environment");
		run_die(&e);
	}
	environ = r->login_env;
}

static int run_maker(struct invocation *r)
{
	struct err e = {0};
	int status = service_run(r->opt.text, r->opt.quiet, r->opt.verbose, &e);

	run_must(status, &e);
	return status;
}

static int run_check(struct invocation *r)
{
	struct fetch f;
	const struct check_what what = {.spec = &r->spec,
		.fetch = &f,
		.person = r->person.name,
		.lingers = r->cfg.attach && r->cfg.linger_ms > 0,
		.json = r->opt.json,
		.verbose = r->opt.verbose};
	struct err e = {0};
	int status;

	run_must(setup_spec(&r->spec, &r->setup, &r->cfg, &r->opt, &r->term,
			 SPEC_PROGRAM, &e),
		&e);
	run_find_fetch(r, &f);
	status = check_run(&what, &e);
	run_must(status, &e);
	return status;
}

/* A login may have sessions alone. */
static void check_programs(const struct invocation *r)
{
	struct err e = {0};

	if (r->login.kind == LOGIN_NOT || r->cfg.programs)
		return;
	err_set(&e, "no programs are run here: log in for a session");
	err_hint(&e, "policy.programs = no (%s)",
		config_source(&r->cfg, "policy.programs"));
	err_kind_set(&e, ERR_CONFIG);
	run_die(&e);
}

static int run_collect(const struct invocation *r)
{
	const struct collect c = {.lab = &r->cfg.lab,
		.what = r->opt.text,
		.archive = r->opt.archive,
		.all = r->opt.all,
		.json = r->opt.json,
		.width = terminal_columns(STDOUT_FILENO)};
	struct err e = {0};

	run_must(collect_run(&c, stdout, &e), &e);
	return 0;
}

static int run_report(const struct invocation *r)
{
	const struct summary_what what = {.path = r->cfg.accounting,
		.since = r->opt.since,
		.json = r->opt.json,
		.csv = r->opt.csv,
		.to = stdout};
	struct err e = {0};

	run_must(summary_print(&what, &e), &e);
	return 0;
}

/* Go back to a session, or begin one. Returns the exit status. */
static int run_at_terminal(struct invocation *r)
{
	int status = -1;

	if (geteuid() != 0 && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
		ongoing_tell_elsewhere(r);
	if (ongoing_lingers(r)) {
		status = ongoing_offer(r);
		if (status < 0)
			ongoing_begin_client(r);
	}
	return status < 0 ? injail_run(r) : status;
}

/* In an exam nothing is run outside of its times, and nothing in a session from
 * before it. */
static void keep_exam(struct invocation *r)
{
	struct err e = {0};

	if (!exam_is_set(&r->cfg))
		return;
	run_must(exam_check(&r->cfg, &e), &e);
	ongoing_end_before(r, r->cfg.exam_begin_s);
}

static int run_mode(struct invocation *r)
{
	int status;

	switch (r->opt.mode) {
	case OPTIONS_HELP:
		run_set_locale();
		options_print_help(stdout, terminal_columns(fileno(stdout)));
		return 0;
	case OPTIONS_VERSION:
		printf("cellblock %s\n", CELLBLOCK_VERSION);
		return 0;
	case OPTIONS_CHECK_CONFIG:
		run_load_config(r);
		run_set_locale();
		return checking_run(r);
	case OPTIONS_CHECK:
		run_load_config(r);
		run_set_locale();
		return run_check(r);
	case OPTIONS_EVAL:
		run_load_config(r);
		keep_exam(r);
		return requests_eval(r);
	case OPTIONS_MCP:
		run_load_config(r);
		keep_exam(r);
		return requests_mcp(r);
	case OPTIONS_SERVE:
		run_load_config(r);
		keep_exam(r);
		return requests_serve(r);
	case OPTIONS_GRADE:
		return grading_run(r);
	case OPTIONS_MAKER:
		run_load_config(r);
		return run_maker(r);
	case OPTIONS_REMOTE:
		run_load_config(r);
		keep_exam(r);
		return remote_run(r);
	case OPTIONS_REPORT:
		run_load_config(r);
		run_set_locale();
		return run_report(r);
	case OPTIONS_SESSIONS:
		run_load_config(r);
		run_set_locale();
		return ongoing_list(r);
	case OPTIONS_COLLECT:
		run_load_config(r);
		run_set_locale();
		return run_collect(r);
	case OPTIONS_ATTACH:
	case OPTIONS_END:
	case OPTIONS_MESSAGE:
	case OPTIONS_WATCH:
		run_load_config(r);
		if (r->opt.mode == OPTIONS_ATTACH)
			keep_exam(r);
		run_set_locale();
		return ongoing_act(r);
	case OPTIONS_SESSION:
		run_load_config(r);
		keep_exam(r);
		return run_at_terminal(r);
	case OPTIONS_FILE:
	case OPTIONS_CODE:
	case OPTIONS_MODULE:
	case OPTIONS_CELL:
	case OPTIONS_STDIN:
		run_load_config(r);
		keep_exam(r);
		check_programs(r);
		return remote_run_shared(r, &status) ? status : injail_run(r);
	}
	return 1;
}

/* Check that the output of --help and the like has arrived. A reader that went
 * away is no error. The exit status. */
static int close_stdout(int status)
{
	struct err e = {0};
	bool lost = ferror(stdout);

	errno = 0;
	if (fclose(stdout) == 0 && !lost)
		return status;
	if (errno != EPIPE) {
		if (errno)
			err_errno(&e, "write standard output");
		else
			err_set(&e, "standard output was not written whole");
		terminal_complain(NULL, e.msg);
	}
	return status ? status : 1;
}

int main(int argc, char **argv)
{
	struct invocation *r = calloc(1, sizeof(*r));
	char **args = copy_args(argc, argv);
	int status;

	open_standard_fds();
	io_raise_descriptors();
	if (!r || !args)
		return 1;
	r->slots.fd = r->courier = -1;
	person_find(&r->person, getuid());
	decide_mode(r, argc, args);
	status = run_mode(r);
	status = close_stdout(status);
	options_fini(&r->opt);
	config_fini(&r->cfg);
	login_env_free(r->login_env);
	person_free(&r->person);
	free(r);
	free(args);
	return status;
}
