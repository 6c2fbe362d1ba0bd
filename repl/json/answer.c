/* SPDX-License-Identifier: MIT */
/*
 * answer.c - the answer to a request, in JSON
 *
 * Runs in:   front end, confined
 * Trusts:    the warden for the figures; no text and no file of a program
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
	emit_open(b, NULL, '{');
	emit_text(b, "title", title);
	emit_bytes(b, "description", description, n);
	emit_close(b, '}');
}

static int find_exit_status(const struct jail_program *p)
{
	if (WIFSIGNALED(p->status))
		return 128 + WTERMSIG(p->status);
	return WEXITSTATUS(p->status);
}

/* Begin the list of files. It is the last member of both forms, because it is
 * made in steps. */
static void begin_files(struct answer *a, const struct attach_store *store)
{
	struct run *r = a->run;
	const struct config *cfg = r->drive.cfg;
	/* files.pattern is snekbox's unless it is configured. Clients with a
	 * store expect every file. */
	bool all = store && !config_set_in(cfg, "files.pattern");
	const struct attach_rules rules = {.limits = &cfg->limits,
		.pattern = all ? NULL : cfg->pattern,
		.sent = r->put.files,
		.nsent = r->put.n,
		.store = store,
		.empty = r->drive.program.home_files == 0};

	emit_open(a->b, "files", '[');
	a->files = attach_begin(
		a->b, &r->drive, &rules, r->request->form == REQUEST_OURS);
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

/* Append an answer that is only a message, without a return code. */
static void add_message(struct strbuf *b, const char *text)
{
	emit_open(b, NULL, '{');
	emit_text(b, "stdout", text);
	emit_word(b, "returncode", "null");
	emit_word(b, "files", "[]");
	emit_close(b, '}');
}

static void add_snekbox(struct answer *a)
{
	const struct run *r = a->run;
	struct strbuf *b = a->b, out = {0};
	char last = 0;

	if (!emit_is_text(r->out.text.s, r->out.text.n)) {
		add_message(b,
			"UnicodeDecodeError: invalid Unicode in output pipe");
		return;
	}
	strbuf_add(&out, r->out.text.s, r->out.text.n);
	b->failed |= out.failed;
	emit_open(b, NULL, '{');
	emit_bytes(b, "stdout", strbuf_text(&out),
		out.s ? answer_unify_lines(out.s, out.n, &last) : 0);
	strbuf_free(&out);
	emit_int(b, "returncode",
		r->how == RUN_CUT ? 128 + SIGTERM
				  : find_exit_status(&r->drive.program));
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

/* Append an output stream. One that was cut says so at its end. */
static void add_stream(
	struct strbuf *b, const char *key, const struct capture *c)
{
	static const char cut[] = "\n...[truncated]";
	struct strbuf text = {0};
	size_t n = c->text.n;

	if (!c->cut) {
		emit_bytes(b, key, n ? c->text.s : "", n);
		return;
	}
	strbuf_add(&text, c->text.s, n > 32 ? n - 32 : 0);
	strbuf_puts(&text, cut);
	b->failed |= text.failed;
	emit_bytes(b, key, strbuf_text(&text), text.n);
	strbuf_free(&text);
}

static void add_piece(
	struct strbuf *b, const char *key, struct report_piece text)
{
	if (text.p)
		emit_bytes(b, key, text.p, text.n);
	else
		emit_word(b, key, "null");
}

/* Append the value as JSON if the report has that; else its repr() or null. */
static void add_value(struct strbuf *b, const struct report *p)
{
	if (!p->json.p || p->json.n > REPORT_TEXT_MAX ||
		!emit_json(b, "result", p->json.p, p->json.n))
		add_piece(b, "result", p->repr);
}

void answer_add_pictures(struct strbuf *b, const struct report *r)
{
	emit_open(b, "images", '[');
	for (size_t i = 0; i < r->npng; i++)
		emit_base64(b, NULL, r->png[i].p, r->png[i].n);
	emit_close(b, ']');
}

/* Append the bundle and its notices, for a client that asked for them. */
static void add_bundle(struct strbuf *b, const struct report *p)
{
	struct strlist notices = {0};

	bundle_add(b, p);
	bundle_list_notes(&notices, p);
	emit_texts(b, "notices", &notices);
	strlist_fini(&notices);
}

static void add_report(
	struct strbuf *b, const struct capture *c, const struct request *q)
{
	struct report p;

	report_parse(&p, c->text.s, c->text.n);
	add_value(b, &p);
	add_piece(b, "result_type", p.type);
	answer_add_pictures(b, &p);
	if (q->bundles)
		add_bundle(b, &p);
}

void answer_add_limit(struct strbuf *b, const struct request *q,
	enum jail_limit limit, const struct drive *d)
{
	const char *key = verdict_limit_key(limit), *source;
	struct limits limits = d->limits;
	char text[VERDICT_MAX];

	if (!key) {
		emit_word(b, "limit", "null");
		return;
	}
	source = config_source(d->cfg, key);
	if (limit == LIMIT_WALL && q->timeout_ms != limits.cell_wall_ms) {
		limits.cell_wall_ms = q->timeout_ms;
		key = "timeout_ms";
		source = "request";
	}
	if (limit == LIMIT_MEMORY && drive_is_lowered(d)) {
		key = "memory_bytes";
		source = "request";
	}
	verdict_limit(text, limit, &limits);
	emit_open(b, "limit", '{');
	emit_text(b, "key", key);
	emit_text(b, "text", text);
	emit_text(b, "source", source);
	emit_close(b, '}');
}

static void add_ours(struct answer *a, const struct attach_store *store)
{
	const struct run *r = a->run;
	const struct jail_program *p = &r->drive.program;
	struct strbuf *b = a->b;
	bool late = p->limit == LIMIT_WALL;

	emit_open(b, NULL, '{');
	add_stream(b, "stdout", &r->out);
	add_stream(b, "stderr", &r->err_out);
	emit_int_or_null(b, "exit_code", !late, find_exit_status(p));
	emit_bool(b, "timed_out", late);
	emit_int(b, "duration_ms", p->wall_ms);
	add_report(b, &r->report, r->request);
	answer_add_limit(b, r->request, p->limit, &r->drive);
	emit_int(b, "cpu_ms", p->cpu_ms);
	emit_int_or_null(
		b, "memory_peak_bytes", p->peak_bytes > 0, p->peak_bytes);
	begin_files(a, store);
}

static void end_ours(struct answer *a, const char *why)
{
	emit_close(a->b, ']');
	emit_text(a->b, "files_error", why);
	emit_close(a->b, '}');
}

/* ---- both ---- */

enum answer_kind answer_begin(struct answer *a, struct strbuf *b, struct run *r,
	const struct attach_store *store)
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
	char left_out[512];
	const char *why;

	if (!a->files)
		return true;
	if (!attach_turn(a->files, &why))
		return false;
	if (a->run->request->form == REQUEST_SNEKBOX)
		end_snekbox(a, why);
	else if (why)
		end_ours(a, why);
	else
		end_ours(a,
			attach_left_out(a->files, left_out, sizeof(left_out)));
	answer_fini(a);
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
	struct strbuf *b, struct run *r, const struct attach_store *store)
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
