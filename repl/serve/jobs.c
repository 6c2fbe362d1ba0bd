/* SPDX-License-Identifier: MIT */
/*
 * jobs.c - requests that wait for a jail, or run in one
 *
 * Runs in:   front end, confined
 * Trusts:    the warden for how a program ended; no byte of the program
 * Leaves:    an answer for each request whose client is still there, and no
 *            jail for a request whose client is gone
 */
#include "repl/serve/parts.h"

#include "jail/base/array.h"
#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/prewarm.h"
#include "repl/config/config.h"
#include "repl/json/json.h"
#include "repl/session/session.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* Most pipes that has_descriptors() opens. */
#define PROBES_MAX 64

struct job {
	struct job *next;
	struct exchange *exchange;
	struct request request;
	struct execute_files files;
	bool stores, runs, answered;
	int tries;
	struct jail *jail;
	struct run run;
	int64_t since_ns;
	/* made in steps: between them other jobs have their turn */
	bool answers;
	struct answer answer;
	enum answer_kind kind;
	struct strbuf text;
	struct attach_store store;
	struct execute_files made; /* files that the answer names */
};

struct jobs {
	struct jobs_rules rules;
	struct job *first; /* the oldest */
	size_t running, waiting;
	const struct log *log;
	/* requests that wait, for each interpreter and kind of session */
	struct {
		size_t n[SPEC_CELL + 1];
	} * wanted;
};

/* ---- files of an answer ---- */

/* Drop files of an answer that no client gets. */
static void forget_made_files(void *arg)
{
	struct job *j = arg;

	for (size_t i = 0; i < j->made.n; i++)
		if (j->made.v[i]->id[0])
			store_drop(j->made.store, j->made.v[i]);
	execute_release(&j->made);
}

/* Remember a file for forget_made_files(). Hold it, so that store.c does not
 * reuse it before. */
static int note_made_file(struct job *j, struct store_file *f)
{
	if (array_grow(&j->made.v, j->made.n, sizeof(*j->made.v)) < 0)
		return -1;
	store_hold(f);
	j->made.v[j->made.n++] = f;
	return 0;
}

static const char *store_made_file(
	void *arg, struct strbuf *b, const char *path, int fd, int64_t size)
{
	static const char full[] = "there is no room for more files";
	struct job *j = arg;
	struct store *store = j->made.store;
	struct store_file *f =
		store_begin_result(store, http_peer(j->exchange), size);
	const char *name = strrchr(path, '/');
	char piece[64 << 10];

	if (!f)
		return full;
	for (int64_t at = 0; at < size;) {
		ssize_t n = pread(fd, piece, sizeof(piece), at);

		if (n <= 0 ||
			store_write(store, f, piece, (size_t)n) != STORE_FINE) {
			store_release(store, f);
			return full;
		}
		at += n;
	}
	if (store_finish(store, f, name ? name + 1 : path) < 0) {
		store_release(store, f);
		return full;
	}
	if (note_made_file(j, f) < 0) {
		store_drop(store, f);
		return full;
	}
	emit_text(b, NULL, f->id);
	return NULL;
}

/* ---- open and close ---- */

int jobs_open(struct jobs **out, const struct jobs_rules *rules)
{
	struct jobs *s = calloc(1, sizeof(*s));

	if (s)
		s->wanted = calloc(rules->npythons + 1, sizeof(*s->wanted));
	if (!s || !s->wanted) {
		free(s);
		return -1;
	}
	s->rules = *rules;
	*out = s;
	return 0;
}

void jobs_set_log(struct jobs *s, const struct log *log)
{
	s->log = log;
}

static size_t *find_counter(struct jobs *s, const struct job *j)
{
	return &s->wanted[j->request.python].n[run_mode(&j->request)];
}

static void wait_for_jail(struct jobs *s, struct job *j)
{
	s->waiting++;
	++*find_counter(s, j);
}

static void stop_waiting(struct jobs *s, struct job *j)
{
	s->waiting--;
	--*find_counter(s, j);
}

/* End the jail of a job; the job stays. */
static void stop_running(struct jobs *s, struct job *j)
{
	pool_end(s->rules.pool, j->jail);
	run_fini(&j->run);
	j->jail = NULL;
	j->runs = false;
	s->running--;
}

/* Take a job out of the list, end its jail, and free the job. */
static void drop_job(struct jobs *s, struct job *j)
{
	struct job **at = &s->first;

	while (*at != j)
		at = &(*at)->next;
	*at = j->next;
	if (j->runs)
		stop_running(s, j);
	else
		stop_waiting(s, j);
	answer_fini(&j->answer);
	strbuf_free(&j->text);
	if (!j->answered)
		forget_made_files(j);
	execute_release(&j->made);
	request_fini(&j->request);
	execute_release(&j->files);
	free(j);
}

void jobs_close(struct jobs *s)
{
	if (!s)
		return;
	while (s->first)
		drop_job(s, s->first);
	free(s->wanted);
	free(s);
}

bool jobs_have_room(const struct jobs *s)
{
	const struct config_serve *c = &s->rules.cfg->serve;

	return s->running + s->waiting <
	       (size_t)c->concurrent + (size_t)c->queue;
}

int jobs_add(struct jobs *s, struct exchange *x, struct request *q,
	struct execute_files *files, bool stores)
{
	struct job *j = calloc(1, sizeof(*j)), **at = &s->first;

	if (!j)
		return -1;
	j->exchange = x;
	j->request = *q;
	j->files = *files;
	j->stores = stores;
	j->made.store = s->rules.store;
	j->store = (struct attach_store){
		.put = store_made_file, .forget = forget_made_files, .arg = j};
	j->since_ns = now_ns();
	*q = (struct request){0};
	files->v = NULL;
	files->n = 0;
	while (*at)
		at = &(*at)->next;
	*at = j;
	wait_for_jail(s, j);
	http_set_own(x, j);
	return 0;
}

void jobs_cancel(struct jobs *s, struct exchange *x)
{
	struct job *j = http_own(x);

	if (!j)
		return;
	http_set_own(x, NULL);
	metrics_gone(tenants_metrics(s->rules.tenants, http_peer(x)));
	drop_job(s, j);
}

size_t jobs_running(const struct jobs *s)
{
	return s->running;
}

size_t jobs_waiting(const struct jobs *s)
{
	return s->waiting;
}

/* ---- the answer ---- */

/* The jail failed: say so, in the words that clients of the path expect. 503
 * where nothing has run: the client may ask again, or a proxy another host. */
static int answer_failure(struct job *j)
{
	static const char title[] = "The jail failed";
	const char *why = j->run.err.msg;
	char text[1400];

	if (run_is_up(&j->run) && j->request.form == REQUEST_SNEKBOX)
		return 200;
	snprintf(text, sizeof(text), "%s: %s", title, why);
	j->text.n = 0;
	if (j->stores)
		execute_add_detail(&j->text, text, strlen(text));
	else
		answer_add_refusal(&j->text, title, why, strlen(why));
	if (run_has_begun(&j->run))
		return 500;
	http_add_header(j->exchange, "Retry-After", "1");
	return 503;
}

static int find_status(struct job *j)
{
	switch (j->kind) {
	case ANSWER_RAN:
		return 200;
	case ANSWER_REFUSED:
		if (!j->stores)
			return 400;
		j->text.n = 0;
		execute_add_detail(
			&j->text, j->run.message, strlen(j->run.message));
		return 422;
	case ANSWER_FAILED:
		return answer_failure(j);
	}
	return 500;
}

/* Answer. jobs_start() ends the jail later, when the answer has been sent. */
static void answer_job(struct jobs *s, struct job *j)
{
	const struct run *r = &j->run;
	bool ran = r->how == RUN_ENDED || r->how == RUN_CUT;
	enum jail_limit limit = ran ? r->drive.program.limit : LIMIT_NONE;
	struct exchange *x = j->exchange;
	int status = find_status(j);

	metrics_ran(tenants_metrics(s->rules.tenants, http_peer(x)), limit,
		r->how == RUN_FAILED, now_ns() - j->since_ns);
	if (ran)
		span_note_run(http_span(x), limit, r->drive.program.cpu_ms);
	if (r->how == RUN_FAILED)
		span_note_failure(http_span(x), r->err.msg);
	if (s->log && limit != LIMIT_NONE)
		log_limit(s->log, limit);
	http_set_own(x, NULL);
	http_answer(x, status, HTTP_JSON, &j->text);
	j->answered = true;
}

/* ---- running ---- */

/* Answer; or, where the jail failed before it had the request, wait for
 * another. */
static void settle_job(struct jobs *s, struct job *j)
{
	if (!j->answers && run_is_lost(&j->run) && ++j->tries < RUN_TRIES) {
		stop_running(s, j);
		wait_for_jail(s, j);
		return;
	}
	if (!j->answers)
		j->kind = answer_begin(&j->answer, &j->text, &j->run,
			j->stores ? &j->store : NULL);
	j->answers = true;
	if (answer_turn(&j->answer))
		answer_job(s, j);
}

static bool is_running(const struct job *j)
{
	return j->runs && !j->answered;
}

size_t jobs_polls(
	const struct jobs *s, struct pollfd *p, size_t max, int *timeout_ms)
{
	size_t n = 0;
	int ms;

	for (struct job *j = s->first; j && n + RUN_POLLS <= max; j = j->next) {
		if (!is_running(j))
			continue;
		ms = run_polls(&j->run, p + n);
		if (j->answers)
			ms = answer_timeout_ms(&j->answer, &p[n].fd);
		n += RUN_POLLS;
		if (ms >= 0 && ms < *timeout_ms)
			*timeout_ms = ms;
	}
	return n;
}

void jobs_turn(struct jobs *s, const struct pollfd *p, size_t n)
{
	struct job *j = s->first, *next;

	for (size_t at = 0; j && at + RUN_POLLS <= n; j = next) {
		next = j->next;
		if (!is_running(j))
			continue;
		run_turn(&j->run, p + at);
		at += RUN_POLLS;
		if (run_is_over(&j->run))
			settle_job(s, j);
	}
}

/* True if there are descriptors for one more job, beside those that have begun
 * and do not have theirs yet. Without them a program would run whose pipes we
 * could not take. */
static bool has_descriptors(const struct jobs *s, struct err *e)
{
	int pipes[PROBES_MAX][2];
	size_t want = JOBS_FDS / 2, n = 0;
	bool all;

	for (const struct job *j = s->first; j; j = j->next)
		want += is_running(j) && !run_is_up(&j->run) ? JOBS_FDS / 2 : 0;
	if (want > PROBES_MAX)
		want = PROBES_MAX;
	while (n < want && pipe2(pipes[n], O_CLOEXEC) == 0)
		n++;
	all = n == want;
	if (!all)
		err_errno(e, "open a pipe");
	while (n-- > 0) {
		close(pipes[n][0]);
		close(pipes[n][1]);
	}
	return all;
}

static void start_job(struct jobs *s, struct job *j)
{
	struct err e = {0};
	int r = -1;

	if (has_descriptors(s, &e))
		r = pool_take(s->rules.pool, (unsigned)j->request.python,
			run_mode(&j->request), &j->jail, &e);
	if (r == 0)
		return;
	stop_waiting(s, j);
	s->running++;
	j->runs = true;
	run_begin(&j->run, j->jail, &j->request, s->rules.cfg, &e);
	if (run_is_over(&j->run))
		settle_job(s, j);
}

/* Ask the pool for jails: for waiting requests that may run, and spares of the
 * default interpreter for each form of a request. */
static void want_jails(struct jobs *s)
{
	const struct config_serve *c = &s->rules.cfg->serve;
	size_t most = (size_t)c->concurrent;
	/* More may run than serve.concurrent, which was lowered meanwhile. */
	size_t room = most > s->running ? most - s->running : 0;

	for (unsigned i = 0; i < s->rules.npythons; i++)
		for (int m = SPEC_PROGRAM; m <= SPEC_CELL; m++) {
			size_t n = s->wanted[i].n[m];

			pool_want(s->rules.pool, i, (enum spec_mode)m,
				(int)(n < room ? n : room),
				i == 0 ? c->spare : 0);
		}
}

void jobs_start(struct jobs *s)
{
	const struct config_serve *c = &s->rules.cfg->serve;
	struct job *next;

	for (struct job *j = s->first; j; j = next) {
		next = j->next;
		if (j->answered)
			drop_job(s, j);
		else if (!j->runs && s->running < (size_t)c->concurrent)
			start_job(s, j);
	}
	want_jails(s);
}
