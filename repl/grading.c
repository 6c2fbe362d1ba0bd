/* SPDX-License-Identifier: MIT */
/*
 * grading.c - --grade: one program against many submissions
 *
 * Runs in:   front end
 * Holds:     everything the person has, until it confines itself
 * Trusts:    the plan, which the person names; no submission: none is read
 *            before we are confined to reading them
 * Leaves:    results, and no process behind it
 */
#include "run.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/path.h"
#include "repl/grade/grade.h"
#include "repl/maker/maker.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* All that a run has. */
struct grading {
	struct exercise plan;
	struct submissions submissions;
	struct results results;
	struct grade *grade;
	int junit; /* -1: none */
};

static int count_cores(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) < 0 ? 1
							   : CPU_COUNT(&set);
}

/* Read the plan, and the configuration with what the plan sets; or end with all
 * errors. */
static void read_plan(struct invocation *r, struct grading *g)
{
	struct config_errors errors = {0};
	int status = exercise_read(&g->plan, r->opt.grade.plan, &errors);

	if (status == 0) {
		r->plan = &g->plan;
		run_load_config(r);
		r->plan = NULL;
		status = exercise_check(&g->plan, &r->cfg.limits, &errors);
	}
	if (status < 0) {
		config_errors_print(&errors, terminal_print_line);
		exit(2);
	}
	config_errors_fini(&errors);
}

/* Keep one share of the submissions. */
static void keep_share(struct submissions *s, int share, int shares)
{
	size_t kept = 0;

	for (size_t i = 0; shares && i < s->n; i++) {
		struct submission u = s->v[i];

		if (i % (size_t)shares != (size_t)(share % shares))
			continue;
		s->v[i] = s->v[kept];
		s->v[kept++] = u;
	}
	if (shares)
		submission_keep(s, kept);
}

/* Refuse a file that would be a submission, or a part of one, in the next run.
 * 0, or -1 with e. */
static int check_outside(const char *file, const char *dir, struct err *e)
{
	const char *slash = file ? strrchr(file, '/') : NULL;
	auto_free char *parent =
		slash ? strndup(file, (size_t)(slash - file) + 1) : strdup(".");
	auto_free char *at = parent ? realpath(parent, NULL) : NULL;
	auto_free char *root = realpath(dir, NULL);

	if (!file || !at || !root || !path_is_beneath(at, root))
		return 0;
	return err_set(
		e, "%s lies among the submissions: write it elsewhere", file);
}

static bool is_same_file(int one, int other)
{
	struct stat a, b;

	return fstat(one, &a) == 0 && fstat(other, &b) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Open the submissions and all that is written, and see to it that no file has
 * two uses. */
static void open_files(struct invocation *r, struct grading *g)
{
	const struct options_grade *o = &r->opt.grade;
	struct err e = {0};

	run_must(submission_list(&g->submissions, o->submissions, &e), &e);
	keep_share(&g->submissions, o->share, o->shares);
	run_must(check_outside(o->results, o->submissions, &e), &e);
	run_must(check_outside(o->junit, o->submissions, &e), &e);
	run_must(results_open(&g->results, &g->plan, o->results, &e), &e);
	if (!o->junit)
		return;
	g->junit =
		open(o->junit, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
	if (g->junit < 0)
		err_errno(&e, "open %s", o->junit);
	else if (is_same_file(g->junit, g->results.fd))
		err_set(&e, "-o and --junit name the same file");
	if (e.msg[0])
		run_die(&e);
}

/* Open all that is written and read, and prepare the jails. */
static void open_all(struct invocation *r, struct grading *g)
{
	const struct options_grade *o = &r->opt.grade;
	struct grade_with with = {.plan = &g->plan,
		.cfg = &r->cfg,
		.spec = &r->spec,
		.jobs = o->jobs ? o->jobs : count_cores(),
		.submissions = &g->submissions,
		.results = &g->results,
		.signals = &r->signals};
	struct err e = {0};

	open_files(r, g);
	terminal_open(&r->term, r->cfg.colour);
	if (r->term.out_tty && !r->term.dumb && !r->opt.quiet && !r->opt.json)
		with.term = &r->term;
	run_must_for_jail(fetch_check_own(&r->cfg, "--grade", &e), &e);
	run_must(setup_spec(&r->spec, &r->setup, &r->cfg, &r->opt, &r->term,
			 SPEC_PROGRAM, &e),
		&e);
	/* A submission reads and writes pipes, also if we have a terminal. */
	r->spec.term = "dumb";
	r->spec.tty_bits = 0;
	run_must_for_jail(grade_open(&g->grade, &with, &e), &e);
}

static void confine(struct invocation *r)
{
	struct jail_sandbox sandbox = {
		.n = 1, .v[0] = {.path = r->opt.grade.submissions}};
	struct err e = {0};

	if (r->cfg.skeleton)
		sandbox.v[sandbox.n++].path = r->cfg.skeleton;
	run_must_for_jail(jail_sandbox_enter(&sandbox, &e), &e);
}

/* Print the results. Returns `status`, or 1 where they cannot be written. */
static int report(struct invocation *r, struct grading *g, int status)
{
	struct err e = {0};

	if (r->opt.json)
		report_json(&g->results, &g->submissions, stdout);
	else
		report_table(&g->results, &g->submissions,
			terminal_columns(STDOUT_FILENO), stdout);
	if (g->junit < 0)
		return status;
	if (ftruncate(g->junit, 0) < 0 && errno != EINVAL)
		err_errno(&e, "empty it");
	if (e.msg[0] ||
		report_junit(&g->results, &g->submissions, g->junit, &e) < 0) {
		err_wrap(&e, "%s", r->opt.grade.junit);
		terminal_complain(NULL, e.msg);
		return status ? status : 1;
	}
	return status;
}

int grading_run(struct invocation *r)
{
	struct grading g = {.junit = -1};
	struct err e = {0}, left = {0};
	int status;

	read_plan(r, &g);
	open_all(r, &g);
	run_set_locale();
	run_must(log_open(&r->log, &r->cfg, r->person.name, false, -1, &e), &e);
	run_must_for_jail(terminal_signals_open(&r->signals, false, &e), &e);
	confine(r);
	status = grade_run(g.grade, &e);
	if (grade_close(g.grade, &left) < 0)
		terminal_complain(NULL, left.msg);
	status = status > 0 ? 130 : status;
	status = report(r, &g, status);
	terminal_signals_close(&r->signals);
	results_close(&g.results);
	submission_close(&g.submissions);
	exercise_fini(&g.plan);
	fd_drop(&g.junit);
	return run_end(r, status, &e);
}
