/* SPDX-License-Identifier: MIT */
/*
 * grade.c - the jails that run, and the next submissions
 *
 * Runs in:   front end, confined
 * Trusts:    the plan; no submission
 * Leaves:    a result for each submission whose tests all ran; for those that
 *            an interrupt or a failed jail cut short there is none, so that the
 *            next run takes them up
 *
 * Each test has a jail of its own, with the submission's files and what the
 * test gives, and nothing else. The tests of a submission run one after the
 * other; several submissions are graded at a time.
 */
#include "repl/grade/grade.h"

#include "jail/base/io.h"
#include "jail/prewarm.h"
#include "repl/drive/drive.h"
#include "repl/json/json.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

/* Most submissions that are graded at a time. */
#define JOBS_MAX 64
/* Jails beside those that run: the next ones, and those on their way out. */
#define JAILS_MORE 8
/* After so long the progress is shown; and how often. */
#define PATIENCE_MS 500
#define REDRAW_MS 200

/* A submission that is graded. */
struct graded {
	struct submission *u; /* NULL: none */
	struct judgement *verdicts;
	size_t at; /* the test that runs, or waits for its jail */
	int tries;
	bool runs;
	struct request request;
	struct jail *jail;
	struct run run;
	struct pollfd polls[RUN_POLLS];
};

struct grade {
	struct grade_with with;
	struct pool *pool;
	struct graded *jobs; /* with.jobs */
	size_t next;	     /* submission */
	size_t done, earlier;
	size_t limited; /* submissions of which a limit struck one */
	int64_t began_ms, drawn_ms;
	bool stopped;	/* by a signal */
	struct err err; /* the first failure of a jail, */
	bool hopeless;	/* and there will be no other */
};

int grade_open(struct grade **out, const struct grade_with *with, struct err *e)
{
	struct pool_offer offer = {.spec = with->spec,
		.pythons = &with->spec->python,
		.npythons = 1};
	struct grade *g = calloc(1, sizeof(*g));

	if (!g)
		return err_errno(e, "grade");
	g->with = *with;
	if (g->with.jobs > JOBS_MAX)
		g->with.jobs = JOBS_MAX;
	offer.most = 2 * g->with.jobs + JAILS_MORE;
	g->jobs = calloc((size_t)g->with.jobs, sizeof(*g->jobs));
	if (!g->jobs || pool_open(&g->pool, &offer, e) < 0) {
		if (!g->jobs)
			err_errno(e, "grade");
		free(g->jobs);
		free(g);
		return -1;
	}
	*out = g;
	return 0;
}

int grade_close(struct grade *g, struct err *e)
{
	int r = pool_close(g->pool, e);

	free(g->jobs);
	free(g);
	return r;
}

/* ---- progress ---- */

static void erase_progress(struct grade *g)
{
	if (g->drawn_ms)
		terminal_puts(g->with.term, "\r\x1b[K");
	g->drawn_ms = 0;
}

static void draw_progress(struct grade *g, int64_t now)
{
	size_t all = g->with.submissions->n, fresh = g->done - g->earlier;
	char bar[] = "------------------------", left[TEXT_HUMAN + 16] = "",
	     text[200], time[TEXT_HUMAN];
	size_t width = sizeof(bar) - 1, full = g->done * width / all;
	int64_t ms = now - g->began_ms;

	memset(bar, '#', full);
	if (fresh)
		snprintf(left, sizeof(left), " · %s left",
			text_time(time, (ms * (int64_t)(all - g->done) /
							(int64_t)fresh / 1000 +
						1) *
						1000));
	snprintf(text, sizeof(text),
		"\r[%s] %zu of %zu%s · %zu struck a limit"
		"\x1b[K",
		bar, g->done, all, left, g->limited);
	if (g->with.term->cols && g->with.term->cols < 72)
		snprintf(text, sizeof(text), "\r[%s] %zu of %zu\x1b[K", bar,
			g->done, all);
	terminal_puts(g->with.term, text);
	g->drawn_ms = now;
}

static void show_progress(struct grade *g)
{
	int64_t now = now_ms();

	if (g->with.term && now - g->began_ms >= PATIENCE_MS &&
		now - g->drawn_ms >= REDRAW_MS)
		draw_progress(g, now);
}

/* ---- one submission ---- */

/* Note that a jail failed: for good, or that of `u` in the middle of a test. */
static void note_failure(
	struct grade *g, const struct submission *u, const struct err *e)
{
	if (!g->err.msg[0]) {
		g->err = *e;
		err_wrap(&g->err, "%.60s", u->name);
	}
}

/* Make the request of the job's test. 0, or -1 with words: the submission and
 * the test do not fit together. */
static int make_request(struct grade *g, struct graded *j, struct err *e)
{
	const struct exercise *p = g->with.plan;
	const struct exercise_test *t = &p->tests[j->at];
	const struct request_rules rules = {.limits = &g->with.cfg->limits};
	const struct exercise_files *from[] = {&j->u->files, &t->give};
	struct request *q = &j->request;
	struct request_refusal why = {0};
	size_t n = 0;

	*q = (struct request){.form = REQUEST_PROGRAM,
		.input = t->input.content,
		.input_n = t->input.n,
		.args = calloc(t->args.n + 2, sizeof(*q->args))};
	if (!q->args)
		return err_errno(e, "hold the arguments");
	q->args[n++] = p->program;
	for (size_t i = 0; i < t->args.n; i++)
		q->args[n++] = t->args.items[i];
	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < from[k]->n; i++)
			if (request_add_content(q, from[k]->v[i].name,
				    from[k]->v[i].content, from[k]->v[i].n,
				    &rules, &why) < 0) {
				err_set(e, "%s",
					why.description.s ? why.description.s
							  : why.title);
				strbuf_free(&why.description);
				return -1;
			}
	return 0;
}

static void free_job(struct grade *g, struct graded *j)
{
	for (size_t i = 0; j->verdicts && i < g->with.plan->ntests; i++)
		free(j->verdicts[i].why);
	free(j->verdicts);
	submission_drop(j->u);
	*j = (struct graded){0};
}

/* Write the result of a job down, and free the job. `why` as in results_add().
 */
static int finish_job(
	struct grade *g, struct graded *j, const char *why, struct err *e)
{
	int r = results_add(g->with.results, j->u, j->verdicts, why, e);
	bool limited = false;

	for (size_t i = 0; !why && i < g->with.plan->ntests; i++)
		limited |= j->verdicts[i].limit != LIMIT_NONE;
	g->limited += limited;
	g->done++;
	free_job(g, j);
	return r;
}

static void end_jail(struct grade *g, struct graded *j)
{
	if (!j->runs)
		return;
	pool_end(g->pool, j->jail);
	run_fini(&j->run);
	j->jail = NULL;
	j->runs = false;
}

/* The job's test is over: the next one, or the result. 0, or -1 with e: no
 * result can be written any more. */
static int settle_job(struct grade *g, struct graded *j, struct err *e)
{
	bool again = run_is_lost(&j->run) && ++j->tries < RUN_TRIES;
	struct err why = {0};
	int r = again ? 0
		      : judge_run(&j->verdicts[j->at],
				&g->with.plan->tests[j->at], &j->run, &why);

	g->hopeless |= r < 0 && !run_has_begun(&j->run);
	end_jail(g, j);
	if (again)
		return 0;
	request_fini(&j->request);
	if (r < 0) {
		note_failure(g, j->u, &why);
		g->done++;
		free_job(g, j);
		return 0;
	}
	j->tries = 0;
	if (++j->at < g->with.plan->ntests) {
		if (make_request(g, j, &why) == 0)
			return 0;
		request_fini(&j->request);
		return finish_job(g, j, why.msg, e);
	}
	return finish_job(g, j, NULL, e);
}

/* Take the next submission that has no result yet. 1; 0: there is none; -1 with
 * e. */
static int begin_job(struct grade *g, struct graded *j, struct err *e)
{
	struct submissions *s = g->with.submissions;
	const struct limits *limits = &g->with.cfg->limits;

	while (g->next < s->n) {
		struct submission *u = &s->v[g->next++];
		struct err why = {0};
		int r = submission_load(s, u, g->with.plan, limits, &why);

		*j = (struct graded){.u = u};
		if (results_find(g->with.results, u)) {
			g->done++;
			g->earlier++;
			free_job(g, j);
			continue;
		}
		j->verdicts =
			calloc(g->with.plan->ntests, sizeof(*j->verdicts));
		if (!j->verdicts)
			return err_errno(e, "grade");
		if (r == 0)
			r = make_request(g, j, &why);
		if (r == 0)
			return 1;
		request_fini(&j->request);
		if (finish_job(g, j, why.msg, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- all of them ---- */

static void start_jail(struct grade *g, struct graded *j)
{
	struct err e = {0};

	if (pool_take(g->pool, 0, SPEC_PROGRAM, &j->jail, &e) == 0)
		return;
	j->runs = true;
	run_begin(&j->run, j->jail, &j->request, g->with.cfg, &e);
}

/* See to it that as many jobs run as may. How many there are, or -1 with e. */
static int start_jobs(struct grade *g, struct err *e)
{
	int active = 0, waiting = 0, ahead;
	size_t left = 0; /* tests that come behind those of now, at least */

	for (int i = 0; i < g->with.jobs; i++) {
		struct graded *j = &g->jobs[i];
		int r = 1;

		if (!j->u && !g->stopped && !g->hopeless)
			r = begin_job(g, j, e);
		if (r < 0)
			return -1;
		if (!j->u)
			continue;
		active++;
		if (!j->runs)
			start_jail(g, j);
		waiting += !j->runs;
		left += g->with.plan->ntests - j->at - 1;
	}
	/* Each job that runs wants its next jail soon. */
	ahead = active - waiting;
	left += g->with.submissions->n - g->next;
	if ((size_t)ahead > left)
		ahead = (int)left;
	pool_want(g->pool, 0, SPEC_PROGRAM, waiting, ahead);
	return active;
}

/* Poll the pool, the jobs and the signals. */
static void wait_for_something(struct grade *g, struct pollfd *p, size_t max)
{
	int timeout_ms = pool_timeout_ms(g->pool);
	size_t n = 0;

	p[n++] = (struct pollfd){.fd = g->with.signals->fd, .events = POLLIN};
	for (int i = 0; i < g->with.jobs; i++) {
		struct graded *j = &g->jobs[i];
		int ms;

		if (!j->runs)
			continue;
		ms = run_polls(&j->run, &p[n]);
		if (run_is_over(&j->run))
			ms = 0;
		if (timeout_ms < 0 || ms < timeout_ms)
			timeout_ms = ms;
		n += RUN_POLLS;
	}
	if (g->with.term && (timeout_ms < 0 || timeout_ms > REDRAW_MS))
		timeout_ms = REDRAW_MS;
	n += pool_polls(g->pool, &p[n], max - n);
	if (poll(p, n, timeout_ms) < 0)
		memset(p, 0, n * sizeof(*p));
}

static int turn_jobs(struct grade *g, const struct pollfd *p, struct err *e)
{
	size_t n = 1;

	for (int i = 0; i < g->with.jobs; i++) {
		struct graded *j = &g->jobs[i];

		if (!j->runs)
			continue;
		if (!run_is_over(&j->run))
			run_turn(&j->run, &p[n]);
		n += RUN_POLLS;
		if (run_is_over(&j->run) && settle_job(g, j, e) < 0)
			return -1;
	}
	return 0;
}

/* End the jobs that run, without results. */
static void drop_jobs(struct grade *g)
{
	for (int i = 0; i < g->with.jobs; i++) {
		struct graded *j = &g->jobs[i];

		if (!j->u)
			continue;
		end_jail(g, j);
		request_fini(&j->request);
		free_job(g, j);
	}
}

/* After an interrupt: look whether earlier results of what was not reached
 * still hold, for the report. */
static void recall_earlier(struct grade *g)
{
	struct submissions *s = g->with.submissions;

	for (; g->next < s->n; g->next++) {
		struct submission *u = &s->v[g->next];
		struct err why = {0};

		if (!results_have(g->with.results, u))
			continue;
		submission_load(s, u, g->with.plan, &g->with.cfg->limits, &why);
		submission_drop(u);
	}
}

int grade_run(struct grade *g, struct err *e)
{
	size_t max = 1 + (size_t)g->with.jobs * RUN_POLLS +
		     2 * (size_t)g->with.jobs + 2 * JAILS_MORE;
	auto_free struct pollfd *p = calloc(max, sizeof(*p));
	int r = p ? 0 : err_errno(e, "grade");

	g->began_ms = now_ms();
	while (r == 0) {
		r = start_jobs(g, e);
		if (r <= 0)
			break;
		wait_for_something(g, p, max);
		pool_turn(g->pool);
		r = turn_jobs(g, p, e);
		terminal_signals_read(g->with.signals);
		if (terminal_signals_cancelled(g->with.signals)) {
			g->stopped = true;
			break;
		}
		show_progress(g);
	}
	drop_jobs(g);
	if (g->stopped)
		recall_earlier(g);
	erase_progress(g);
	if (r == 0 && g->err.msg[0]) {
		*e = g->err;
		r = -1;
	}
	return r < 0 ? -1 : g->stopped;
}
