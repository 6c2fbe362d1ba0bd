/* SPDX-License-Identifier: MIT */
/*
 * answer.c - what became of a request, in JSON
 *
 * Runs in:   front end, confined
 * Trusts:    the warden for the figures; all texts and files are a program's
 */
#include "repl/json/json.h"

#include "repl/config/config.h"
#include "repl/session/session.h"
#include "repl/text/text.h"

#include <jansson.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>

void answer_add_refusal(
	struct strbuf *b, const char *title, const char *description, size_t n)
{
	strbuf_puts(b, "{\"title\": ");
	json_text_add(b, title, strlen(title));
	strbuf_puts(b, ", \"description\": ");
	json_text_add(b, description, n);
	strbuf_puts(b, "}");
}

static int exit_status(const struct jail_program *p)
{
	if (WIFSIGNALED(p->status))
		return 128 + WTERMSIG(p->status);
	return WEXITSTATUS(p->status);
}

/* The last key of each form is a list of files, which takes its time. */
static void begin_files(struct answer *a, const struct attach_store *store)
{
	const struct run *r = a->run;
	const struct attach_rules rules = {.limits = &r->cfg->limits,
		.pattern = r->cfg->pattern,
		.sent = r->files,
		.nsent = r->nfiles,
		.store = store,
		.empty = r->program.home_files == 0};

	strbuf_puts(a->b, "\"files\": [");
	a->files = attach_begin(
		a->b, r->jail, &rules, r->request->form == REQUEST_OURS);
	a->b->failed |= !a->files;
}

/* ---- snekbox's form ---- */

size_t answer_unify_lines(char *s, size_t n, char *last)
{
	size_t to = 0;
	char before = *last;

	for (size_t i = 0; i < n; i++) {
		char c = s[i];

		if (c != '\n' || before != '\r')
			s[to++] = c == '\r' ? '\n' : c;
		before = c;
	}
	*last = before;
	return to;
}

/* Nothing but a message: there is no return code. */
static void add_message(struct strbuf *b, const char *text)
{
	strbuf_puts(b, "{\"stdout\": ");
	json_text_add(b, text, strlen(text));
	strbuf_puts(b, ", \"returncode\": null, \"files\": []}");
}

static void add_snekbox(struct answer *a)
{
	const struct run *r = a->run;
	struct strbuf *b = a->b, out = {0};
	char last = 0;

	if (!json_text_is_valid(r->out.text.s, r->out.text.n)) {
		add_message(b,
			"UnicodeDecodeError: invalid Unicode in output pipe");
		return;
	}
	strbuf_add(&out, r->out.text.s, r->out.text.n);
	b->failed |= out.failed;
	strbuf_puts(b, "{\"stdout\": ");
	json_text_add(b, out.s ? out.s : "",
		out.s ? answer_unify_lines(out.s, out.n, &last) : 0);
	strbuf_free(&out);
	strbuf_printf(b, ", \"returncode\": %d, ",
		r->how == RUN_CUT ? 128 + SIGTERM : exit_status(&r->program));
	begin_files(a, NULL);
}

static void end_snekbox(struct answer *a, const char *why)
{
	strbuf_puts(a->b, "]}");
	if (!why)
		return;
	a->b->n = a->before;
	add_message(a->b, why);
}

/* ---- our form ---- */

/* A stream; one that is longer than it may be says so at its end. */
static void add_stream(
	struct strbuf *b, const char *key, const struct capture *c)
{
	static const char cut[] = "\n...[truncated]";
	struct strbuf text = {0};
	size_t n = c->text.n;

	strbuf_printf(b, "\"%s\": ", key);
	if (c->cut) {
		n = n > 32 ? n - 32 : 0;
		strbuf_add(&text, c->text.s, n);
		strbuf_puts(&text, cut);
		b->failed |= text.failed;
		json_text_add(b, text.s ? text.s : "", text.n);
		strbuf_free(&text);
	} else {
		json_text_add(b, n ? c->text.s : "", n);
	}
	strbuf_puts(b, ", ");
}

/* The value as JSON, if that is what the report says. */
static bool add_json(struct strbuf *b, struct report_piece json)
{
	json_t *v = json.p ? json_loadb(json.p, json.n,
				     JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL)
			   : NULL;
	char *text =
		v ? json_dumps(v, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;

	if (text)
		strbuf_puts(b, text);
	free(text);
	json_decref(v);
	return text != NULL;
}

static void add_text_or_null(struct strbuf *b, struct report_piece text)
{
	if (text.p)
		json_text_add(b, text.p, text.n);
	else
		strbuf_puts(b, "null");
}

void answer_add_pictures(struct strbuf *b, const struct report *r)
{
	strbuf_puts(b, "\"images\": [");
	for (size_t i = 0; i < r->npng; i++) {
		strbuf_puts(b, i ? ", \"" : "\"");
		base64_add(b, r->png[i].p, r->png[i].n);
		strbuf_puts(b, "\"");
	}
	strbuf_puts(b, "], ");
}

static void add_report(struct strbuf *b, const struct capture *c)
{
	struct report p;

	report_parse(&p, c->text.s, c->text.n);
	strbuf_puts(b, "\"result\": ");
	if (!add_json(b, p.json))
		add_text_or_null(b, p.repr);
	strbuf_puts(b, ", \"result_type\": ");
	add_text_or_null(b, p.type);
	strbuf_puts(b, ", ");
	answer_add_pictures(b, &p);
}

void answer_add_limit(struct strbuf *b, const struct request *q,
	enum jail_limit limit, const struct config *cfg)
{
	const char *key = verdict_limit_key(limit), *source;
	struct limits limits = cfg->limits;
	char text[VERDICT_MAX];

	strbuf_puts(b, "\"limit\": ");
	if (!key) {
		strbuf_puts(b, "null, ");
		return;
	}
	source = config_source(cfg, key);
	if (limit == LIMIT_WALL && q->timeout_ms != limits.cell_wall_ms) {
		limits.cell_wall_ms = q->timeout_ms;
		key = "timeout_ms";
		source = "request";
	}
	verdict_limit(text, limit, &limits);
	strbuf_printf(b, "{\"key\": \"%s\", \"text\": ", key);
	json_text_add(b, text, strlen(text));
	strbuf_puts(b, ", \"source\": ");
	json_text_add(b, source, strlen(source));
	strbuf_puts(b, "}, ");
}

static void add_ours(struct answer *a, const struct attach_store *store)
{
	const struct run *r = a->run;
	const struct jail_program *p = &r->program;
	struct strbuf *b = a->b;
	bool late = p->limit == LIMIT_WALL;

	strbuf_puts(b, "{");
	add_stream(b, "stdout", &r->out);
	add_stream(b, "stderr", &r->err_out);
	if (late)
		strbuf_puts(b, "\"exit_code\": null, ");
	else
		strbuf_printf(b, "\"exit_code\": %d, ", exit_status(p));
	strbuf_printf(b, "\"timed_out\": %s, \"duration_ms\": %lld, ",
		late ? "true" : "false", (long long)p->wall_ms);
	add_report(b, &r->report);
	answer_add_limit(b, r->request, p->limit, r->cfg);
	strbuf_printf(b, "\"cpu_ms\": %lld, ", (long long)p->cpu_ms);
	if (p->peak_bytes > 0)
		strbuf_printf(b, "\"memory_peak_bytes\": %lld, ",
			(long long)p->peak_bytes);
	else
		strbuf_puts(b, "\"memory_peak_bytes\": null, ");
	begin_files(a, store);
}

static void end_ours(struct answer *a, const char *why)
{
	strbuf_puts(a->b, "], \"files_error\": ");
	add_text_or_null(
		a->b, (struct report_piece){why, why ? strlen(why) : 0});
	strbuf_puts(a->b, "}");
}

/* ---- both ---- */

enum answer_kind answer_begin(struct answer *a, struct strbuf *b,
	const struct run *r, const struct attach_store *store)
{
	bool ours = r->request->form == REQUEST_OURS;

	*a = (struct answer){.b = b, .run = r, .before = b->n};
	switch (r->how) {
	case RUN_ENDED:
	case RUN_CUT:
		if (ours)
			add_ours(a, store);
		else
			add_snekbox(a);
		return ANSWER_RAN;
	case RUN_NOTHING:
		if (!ours) {
			add_message(b, r->message);
			return ANSWER_RAN;
		}
		answer_add_refusal(b, "Request file is invalid", r->message,
			strlen(r->message));
		return ANSWER_REFUSED;
	case RUN_FAILED:
		if (ours)
			answer_add_refusal(b, "The jail failed", r->err.msg,
				strlen(r->err.msg));
		else
			strbuf_puts(b, "{\"stdout\": \"\", \"returncode\": "
				       "255, \"files\": []}");
		return ANSWER_FAILED;
	}
	return ANSWER_FAILED;
}

bool answer_turn(struct answer *a)
{
	const char *why;

	if (!a->files)
		return true;
	if (!attach_turn(a->files, &why))
		return false;
	answer_fini(a);
	if (a->run->request->form == REQUEST_OURS)
		end_ours(a, why);
	else
		end_snekbox(a, why);
	return true;
}

int answer_timeout_ms(const struct answer *a, int *fd)
{
	return attach_timeout_ms(a->files, fd);
}

void answer_fini(struct answer *a)
{
	attach_close(a->files);
	a->files = NULL;
}

enum answer_kind answer_add(
	struct strbuf *b, const struct run *r, const struct attach_store *store)
{
	struct answer a;
	enum answer_kind kind = answer_begin(&a, b, r, store);

	while (!answer_turn(&a)) {
		struct pollfd p = {.events = POLLIN};
		int ms = answer_timeout_ms(&a, &p.fd);

		poll(&p, 1, ms);
	}
	return kind;
}
