/* SPDX-License-Identifier: MIT */
/*
 * route.c - the handler of each path, and who may ask it
 *
 * Runs in:   front end, confined
 * Trusts:    nobody
 * Leaves:    an answer, or a job that will answer
 */
#include "repl/serve/route.h"

#include "docs.h"
#include "jail/prewarm.h"
#include "openapi.h"
#include "repl/json/json.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define FILES "/v1/files/"

/* ---- answers ---- */

static void add_file(struct strbuf *b, const struct store_file *f, bool full)
{
	emit_open(b, NULL, '{');
	emit_text(b, "file_id", f->id);
	emit_text(b, "filename", f->name);
	emit_int(b, "size_bytes", f->size);
	if (full) {
		emit_key(b, "upload_time");
		strbuf_printf(b, "%.6f", f->time);
	}
	emit_close(b, '}');
}

static void get_health(struct route *r, struct exchange *x)
{
	struct strbuf b = {0};

	if (r->ending) {
		refusal_send_busy(x, "ending");
		return;
	}
	strbuf_puts(&b, "{\"status\": \"ok\"}");
	http_answer(x, 200, HTTP_JSON, &b);
}

static void get_metrics(struct route *r, struct exchange *x)
{
	struct pool_count count;
	struct metrics_now now = {.jails = &count,
		.clients = http_clients(r->http),
		.running = jobs_running(r->jobs),
		.waiting = jobs_waiting(r->jobs),
		.sessions = sessions_count(r->sessions),
		.busy = sessions_busy(r->sessions),
		.log_lost = access_lost(r->log)};
	struct strbuf b = {0};

	pool_count(r->pool, &count);
	store_count(r->store, &now.store);
	repeats_count(r->repeats, &now.answers, &now.answers_bytes);
	metrics_print(&b, r->tenants, &now);
	traffic_print(&b, r->traffic);
	process_print(&b, r->process);
	http_answer(x, 200, "text/plain; version=0.0.4", &b);
}

static void get_openapi(struct route *r, struct exchange *x)
{
	struct strbuf b = {0};

	(void)r;
	strbuf_add(&b, openapi_json, openapi_json_len);
	http_answer(x, 200, HTTP_JSON, &b);
}

static void get_docs(struct route *r, struct exchange *x)
{
	struct strbuf b = {0};

	(void)r;
	http_add_header(
		x, "Content-Security-Policy", (const char *)docs_policy);
	http_add_header(x, "X-Content-Type-Options", "nosniff");
	strbuf_add(&b, docs_html, docs_html_len);
	http_answer(x, 200, "text/html; charset=utf-8", &b);
}

static void submit_job(struct route *r, struct exchange *x, struct request *q,
	struct execute_files *files, bool stores)
{
	if (r->draining)
		refusal_send_busy(x, "the server is ending");
	else if (!jobs_have_room(r->jobs))
		refusal_send_busy(x, "too many requests wait");
	else if (jobs_add(r->jobs, x, q, files, stores) < 0)
		refusal_send_busy(x, "out of memory");
	request_fini(q);
	execute_release(files);
}

static void post_eval(struct route *r, struct exchange *x)
{
	static const char session[] = "session: only in a stream of requests "
				      "(--eval); over HTTP, POST "
				      "/v1/sessions begins one";
	const struct strbuf *body = http_body(x);
	struct execute_files none = {0};
	struct request_refusal why = {0};
	struct strbuf b = {0};
	struct request q = {0};

	if (body->n == 0)
		answer_add_refusal(&b, "Invalid JSON", refusal_empty,
			strlen(refusal_empty));
	else if (request_is_deep(body->s, body->n))
		answer_add_refusal(&b, "Request is too large", refusal_too_deep,
			strlen(refusal_too_deep));
	else if (request_parse(&q, body->s, body->n, r->rules, &why) < 0)
		answer_add_refusal(&b, why.title, strbuf_text(&why.description),
			why.description.n);
	else if (q.form == REQUEST_SESSION)
		answer_add_refusal(&b, "Request data failed validation",
			session, strlen(session));
	strbuf_free(&why.description);
	if (b.n == 0) {
		submit_job(r, x, &q, &none, false);
		return;
	}
	request_fini(&q);
	http_answer(x, 400, HTTP_JSON, &b);
}

static void post_execute(struct route *r, struct exchange *x)
{
	const struct strbuf *body = http_body(x);
	struct execute_files files = {.store = r->store, .who = http_peer(x)};
	struct strbuf b = {0};
	struct request q = {0};
	int status;

	if (body->n && request_is_deep(body->s, body->n)) {
		refusal_send(x, 422, refusal_too_deep);
		return;
	}
	status = execute_parse(&q, &files, body, r->rules, &b);
	if (status == 0) {
		submit_job(r, x, &q, &files, true);
		return;
	}
	request_fini(&q);
	execute_release(&files);
	http_answer(x, status, HTTP_JSON, &b);
}

static void post_file(struct route *r, struct exchange *x)
{
	struct store_file *f;
	struct strbuf b = {0};
	const char *name;
	char words[80];

	switch (http_file(x, &f, &name)) {
	case STORE_FILE_FULL:
		snprintf(words, sizeof(words),
			"File size exceeds maximum of %lld MB",
			(long long)(r->limits->upload >> 20));
		refusal_send(x, 413, words);
		return;
	case STORE_FULL:
		refusal_send(x, 507, "There is no room for more files");
		return;
	case STORE_FINE:
		break;
	}
	if (!f) {
		execute_add_no_file(&b);
		http_answer(x, 422, HTTP_JSON, &b);
	} else if (store_finish(r->store, f, *name ? name : "unnamed") < 0) {
		store_release(r->store, f);
		refusal_send(x, 507, "There is no room for more files");
	} else {
		add_file(&b, f, false);
		http_answer(x, 201, HTTP_JSON, &b);
	}
}

static void get_files(struct route *r, struct exchange *x)
{
	struct store_file *f = NULL;
	struct strbuf b = {0};

	strbuf_puts(&b, "{\"files\": [");
	for (int n = 0; (f = store_next(r->store, f, http_peer(x))); n++) {
		strbuf_puts(&b, n ? ", " : "");
		add_file(&b, f, true);
	}
	strbuf_puts(&b, "]}");
	http_answer(x, 200, HTTP_JSON, &b);
}

/* The file that the path names; or NULL, after a refusal. */
static struct store_file *find_file(struct route *r, struct exchange *x)
{
	const char *id = http_path(x) + strlen(FILES);
	struct store_file *f = store_find(r->store, id, http_peer(x));
	char words[160];

	if (f)
		return f;
	snprintf(words, sizeof(words), "File with ID '%.100s' not found", id);
	refusal_send(x, 404, words);
	return NULL;
}

/* True if the character means itself between the quotes of a field's value. */
static bool is_plain(char c)
{
	return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
}

/* Append the name as RFC 8187 encodes it. */
static void add_extended_name(struct strbuf *b, const char *name, size_t n)
{
	strbuf_puts(b, "; filename*=UTF-8''");
	for (size_t i = 0; i < n; i++)
		if (isalnum((unsigned char)name[i]) || strchr("-._~", name[i]))
			strbuf_add(b, name + i, 1);
		else
			strbuf_printf(b, "%%%02X", (unsigned char)name[i]);
}

/* Add a Content-Disposition with this name. Where '_' replaces characters of
 * it, the name follows once more, encoded, if it is text. */
static void add_disposition(struct exchange *x, const char *name)
{
	size_t n = strlen(name), plain = 0;
	struct strbuf b = {0};

	strbuf_puts(&b, "attachment; filename=\"");
	for (size_t i = 0; i < n; i++) {
		strbuf_add(&b, is_plain(name[i]) ? name + i : "_", 1);
		plain += is_plain(name[i]);
	}
	strbuf_puts(&b, "\"");
	if (plain < n && emit_is_text(name, n))
		add_extended_name(&b, name, n);
	if (!b.failed)
		http_add_header(x, "Content-Disposition", b.s);
	strbuf_free(&b);
}

static void get_file(struct route *r, struct exchange *x)
{
	struct store_file *f = find_file(r, x);

	if (!f)
		return;
	add_disposition(x, f->name);
	/* A guest may have made the file: a browser must not guess its type. */
	http_add_header(x, "X-Content-Type-Options", "nosniff");
	http_answer_file(x, f);
}

static void delete_file(struct route *r, struct exchange *x)
{
	struct store_file *f = find_file(r, x);
	struct strbuf b = {0};

	if (!f)
		return;
	store_drop(r->store, f);
	http_answer(x, 204, NULL, &b);
}

/* ---- paths ---- */

/* The body that a path takes. BODY_JSON: of that type; BODY_BYTES: of any type.
 */
enum body { BODY_NONE, BODY_JSON, BODY_BYTES, BODY_FORM };

static const struct place {
	const char *path; /* as in paths.txt; {path} matches all that follows */
	const char *method;
	enum body body;
	bool open; /* needs no token */
	void (*serve)(struct route *r, struct exchange *x);
	/* Or a request of a session, of this form. */
	void (*ask)(
		struct route *r, struct exchange *x, enum request_form form);
	enum request_form form;
} places[] = {
	{"/eval", "POST", BODY_JSON, false, post_eval},
	{"/health", "GET", BODY_NONE, true, get_health},
	{"/metrics", "GET", BODY_NONE, false, get_metrics},
	{"/openapi.json", "GET", BODY_NONE, true, get_openapi},
	{"/docs", "GET", BODY_NONE, true, get_docs},
	{"/v1/execute", "POST", BODY_JSON, false, post_execute},
	{"/v1/files", "POST", BODY_FORM, false, post_file},
	{"/v1/files", "GET", BODY_NONE, false, get_files},
	{FILES "{file_id}", "GET", BODY_NONE, false, get_file},
	{FILES "{file_id}", "DELETE", BODY_NONE, false, delete_file},
	{"/v1/sessions", "POST", BODY_JSON, false, session_paths_post},
	{"/v1/sessions", "GET", BODY_NONE, false, session_paths_get_all},
	{ROUTE_SESSIONS "{id}", "GET", BODY_NONE, false, session_paths_get},
	{ROUTE_SESSIONS "{id}", "DELETE", BODY_NONE, false,
		session_paths_delete},
	{ROUTE_SESSIONS "{id}/cells", "POST", BODY_JSON,
		.ask = session_paths_ask_body, .form = REQUEST_CELL},
	{ROUTE_SESSIONS "{id}/cells/{cell}/events", "GET", BODY_NONE, false,
		session_paths_get_events},
	{ROUTE_SESSIONS "{id}/interrupt", "POST", BODY_NONE, false,
		session_paths_post_interrupt},
	{ROUTE_SESSIONS "{id}/extend", "POST", BODY_JSON, false,
		session_paths_post_extend},
	{ROUTE_SESSIONS "{id}/undo", "POST", BODY_BYTES,
		.ask = session_paths_ask_either, .form = REQUEST_UNDO},
	{ROUTE_SESSIONS "{id}/reset", "POST", BODY_NONE,
		.ask = session_paths_ask, .form = REQUEST_RESET},
	{ROUTE_SESSIONS "{id}/files", "GET", BODY_NONE,
		.ask = session_paths_ask, .form = REQUEST_LIST},
	{ROUTE_SESSIONS "{id}/files/{path}", "GET", BODY_NONE,
		.ask = session_paths_ask_file, .form = REQUEST_OPEN},
	{ROUTE_SESSIONS "{id}/files/{path}", "PUT", BODY_BYTES,
		.ask = session_paths_ask_file, .form = REQUEST_WRITE},
	{ROUTE_SESSIONS "{id}/files/{path}", "DELETE", BODY_NONE,
		.ask = session_paths_ask_file, .form = REQUEST_REMOVE},
};

_Static_assert(COUNT(places) < TRAFFIC_ROWS, "traffic.c has a row for each");

static bool path_matches(const char *pattern, const char *path)
{
	for (; *pattern && *pattern != '{'; pattern++)
		if (*pattern != *path++)
			return false;
	if (!*pattern)
		return !*path;
	if (!strcmp(pattern, "{path}"))
		return *path;
	return *path && *path != '/' &&
	       path_matches(
		       strchr(pattern, '}') + 1, path + strcspn(path, "/"));
}

/* The entry for a request, or NULL; *allowed: the methods of its path. */
static const struct place *find_place(
	const struct exchange *x, char *allowed, size_t size)
{
	const struct place *found = NULL;
	const char *method = http_method(x);

	/* http.c leaves out the body. */
	if (!strcmp(method, "HEAD"))
		method = "GET";
	*allowed = '\0';
	for (size_t i = 0; i < COUNT(places); i++) {
		size_t n = strlen(allowed);

		if (!path_matches(places[i].path, http_path(x)))
			continue;
		snprintf(allowed + n, size - n, "%s%s", n ? ", " : "",
			places[i].method);
		if (!strcmp(places[i].method, method))
			found = &places[i];
	}
	return found;
}

/* True if the request has a token, or needs none. */
static bool is_authorized(const struct route *r, struct exchange *x)
{
	struct connections_peer who = http_peer(x);
	bool allowed = tenants_admit(
		r->tenants, http_field(x, FRAMING_AUTHORIZATION), &who);

	http_set_peer(x, who);
	return allowed;
}

/* True if the token is for other paths: no tenant reads the figures of all, and
 * the token that reads them runs nothing. */
static bool is_elsewhere(
	const struct route *r, const struct exchange *x, const struct place *p)
{
	return http_peer(x).family == CONNECTIONS_TENANT &&
	       tenants_is_reader(r->tenants, http_peer(x)) !=
		       (p->serve == get_metrics);
}

static bool is_json(const char *type)
{
	size_t n = strcspn(type, "; \t");

	return n == strlen(HTTP_JSON) && !strncasecmp(type, HTTP_JSON, n);
}

/* True if the server needs no token, and the client is a program of this host
 * that connects over TCP. No browser uses a socket in the file system. */
static bool is_local(const struct route *r, const struct exchange *x)
{
	return r->local && http_peer(x).family != AF_UNIX;
}

/* The host and port of an origin of http or (with `tls`) https; NULL: it has
 * another scheme. With `tls` a proxy may speak TLS for us. A server for this
 * host alone has no such proxy: an https page of the same name comes from
 * another server there. Programs that are made of pages have schemes of their
 * own, and often the name localhost. */
static const char *find_host(const char *origin, bool tls)
{
	if (!strncasecmp(origin, "http://", 7))
		return origin + 7;
	return tls && !strncasecmp(origin, "https://", 8) ? origin + 8 : NULL;
}

/* True if a page of another origin sends the request. Any page can make the
 * browsers of its readers send a form, or a body without a type, to a server
 * that only they can reach. */
static bool is_foreign(const struct route *r, const struct exchange *x)
{
	const char *origin = http_field(x, FRAMING_ORIGIN);
	const char *host = http_field(x, FRAMING_HOST);
	const char *from = origin ? find_host(origin, !is_local(r, x)) : NULL;

	return origin && (!from || !host || strcasecmp(from, host) != 0);
}

/* True if Host names another host. After DNS rebinding, when the name of a page
 * has become a name of this host, the browser takes the page for one of ours:
 * is_foreign() does not see it. */
static bool is_misnamed(const struct route *r, const struct exchange *x)
{
	const char *host = http_field(x, FRAMING_HOST);

	return is_local(r, x) && host && !listen_is_local_name(host);
}

/* True if the type of the body is right; if not, the request was refused. */
static bool check_type(struct exchange *x)
{
	const char *type = http_field(x, FRAMING_CONTENT_TYPE);
	struct strbuf b = {0};
	char words[200];

	if (type ? is_json(type)
		 : !refusal_is_v1(http_path(x)) || !http_has_body(x))
		return true;
	if (!strncmp(
		    http_path(x), ROUTE_SESSIONS, strlen(ROUTE_SESSIONS) - 1)) {
		refusal_send(x, 422, "Content-Type must be application/json");
	} else if (refusal_is_v1(http_path(x))) {
		execute_add_no_object(&b);
		http_answer(x, 422, HTTP_JSON, &b);
	} else {
		snprintf(words, sizeof(words),
			"%.100s is an unsupported media type.", type);
		refusal_send(x, 415, words);
	}
	return false;
}

static void refuse_method(struct exchange *x, const char *allowed)
{
	struct strbuf b = {0};
	char more[80];

	if (!refusal_is_v1(http_path(x)) &&
		!strcmp(http_method(x), "OPTIONS")) {
		http_add_header(x, "Allow", allowed);
		http_answer(x, 200, NULL, &b);
		return;
	}
	snprintf(more, sizeof(more), "%s%s", allowed,
		refusal_is_v1(http_path(x)) ? "" : ", OPTIONS");
	http_add_header(x, "Allow", more);
	refusal_send(x, 405, NULL);
}

void route_head(void *arg, struct exchange *x)
{
	struct route *r = arg;
	char allowed[64];
	const struct place *p = find_place(x, allowed, sizeof(allowed));

	if (p)
		span_note_path(http_span(x), p->method, p->path);
	if (!p && !*allowed) {
		refusal_send(x, 404, NULL);
	} else if (!p) {
		refuse_method(x, allowed);
	} else if (!p->open && !is_authorized(r, x)) {
		http_add_header(x, "WWW-Authenticate", "Bearer");
		refusal_send(x, 401,
			"Authorization must be Bearer and a token of "
			"serve.token_file");
	} else if (!p->open && is_elsewhere(r, x, p)) {
		refusal_send(x, 403,
			"the token of 'metrics' is for /metrics, and the "
			"others are not");
	} else if (!p->open && is_foreign(r, x)) {
		refusal_send(x, 403, "a page of another origin sent it");
	} else if (!p->open && is_misnamed(r, x)) {
		refusal_send(x, 403,
			"without serve.token_file this server is only "
			"'localhost', 127.0.0.1 and [::1] in a Host");
	} else if (p->body == BODY_JSON && check_type(x)) {
		http_take_body(x);
	} else if (p->body == BODY_BYTES) {
		http_take_body(x);
	} else if (p->body == BODY_FORM) {
		http_take_file(x);
	}
}

/* True if a request with an Idempotency-Key may run; if not, it was answered.
 */
static bool begin_repeat(struct route *r, struct exchange *x)
{
	const char *key = http_field(x, FRAMING_IDEMPOTENCY_KEY), *type;
	struct repeat *e;
	struct strbuf b = {0};
	int status;

	if (!*key || strlen(key) > REPEATS_KEY_MAX) {
		refusal_send(
			x, 422, "an Idempotency-Key has 1 to 255 characters");
		return false;
	}
	switch (repeats_begin(
		r->repeats, http_peer(x), key, http_hash(x), &e)) {
	case REPEATS_NEW:
		http_set_repeat(x, e);
		return true;
	case REPEATS_RUNS:
		refusal_send_later(x, 409,
			"the first request with this Idempotency-Key runs");
		break;
	case REPEATS_ANSWERED:
		status = repeats_status(e, &type);
		if (repeats_place(e))
			http_add_header(x, "Location", repeats_place(e));
		if (repeats_body(e)->n)
			strbuf_add(&b, repeats_body(e)->s, repeats_body(e)->n);
		http_answer(x, status, type, &b);
		break;
	case REPEATS_OTHER:
		refusal_send(
			x, 422, "the Idempotency-Key is of another request");
		break;
	case REPEATS_NO_MEMORY:
		refusal_send_busy(x, "out of memory");
		break;
	}
	return false;
}

void route_whole(void *arg, struct exchange *x)
{
	char allowed[64];
	const struct place *p = find_place(x, allowed, sizeof(allowed));
	struct route *r = arg;

	if (p->body == BODY_JSON &&
		http_of_client(x) > (size_t)r->limits->per_client)
		refusal_send_later(x, 429, "too many requests of this client");
	else if (strcmp(p->method, "POST") != 0 ||
		 !http_field(x, FRAMING_IDEMPOTENCY_KEY) || !http_is_whole(x) ||
		 begin_repeat(r, x))
		p->ask ? p->ask(r, x, p->form) : p->serve(r, x);
}

void route_over(void *arg, struct exchange *x)
{
	struct route *r = arg;

	if (http_own(x) && !sessions_cancel(r->sessions, x))
		jobs_cancel(r->jobs, x);
}

void route_done(void *arg, const struct span *done)
{
	struct route *r = arg;

	if (done->status)
		metrics_answered(
			tenants_metrics(r->tenants, done->peer), done->status);
	traffic_count(r->traffic, done);
	access_write(r->log, done, tenants_name(r->tenants, done->peer));
}

ssize_t route_more(void *arg, struct exchange *x, char *p, size_t max)
{
	(void)arg;
	return sessions_more(x, p, max);
}
