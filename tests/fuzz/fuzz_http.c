/* SPDX-License-Identifier: MIT */
/* fuzz-sources: repl/serve/edge/framing.c repl/serve/edge/connections.c repl/serve/http.c
 * repl/serve/edge/form.c repl/serve/route.c repl/serve/refusal.c repl/serve/session_paths.c repl/serve/execute.c repl/serve/store.c
 * repl/serve/repeats.c repl/serve/terms.c repl/serve/metrics.c repl/json/request.c repl/json/fields.c
 * repl/json/python.c repl/serve/listen.c repl/json/emit.c
 * repl/drive/verdict.c repl/serve/edge/subids.c repl/serve/tenants.c
 * repl/serve/reload/tokens.c repl/serve/access.c repl/serve/traffic.c
 * repl/serve/process.c repl/serve/span.c */
/* fuzz-libs: -ljansson */
/*
 * fuzz_http.c - any bytes of a client
 *
 * They go all the way: to the connections, the routes and the parsers of forms
 * and of what is to be run. Programs are not run: an answer is made
 * up. For all input, each answer has a status and a body in JSON, the log has
 * no field but ours, and nothing stays behind. The bytes come in pieces; 0xff
 * ends one.
 */
#include "must.h"
#include "repl/serve/route.h"
#include "small_rules.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/prewarm.h"
#include "jail/spec.h"
#include "repl/config/config.h"
#include "repl/json/json.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* ---- no program runs ---- */

static struct exchange *waiting, *streaming;
static bool streams;
static int step; /* of the answer that comes bit by bit */

static void take_on(struct exchange *x)
{
	waiting = x;
	http_set_own(x, &waiting);
}

bool jobs_have_room(const struct jobs *s)
{
	(void)s;
	return !waiting;
}

int jobs_add(struct jobs *s, struct exchange *x, struct request *q,
	struct execute_files *files, bool stores)
{
	(void)s;
	(void)files;
	(void)stores;
	must(!waiting && (q->code || q->args));
	take_on(x);
	return 0;
}

void jobs_cancel(struct jobs *s, struct exchange *x)
{
	(void)s;
	if (waiting == x)
		waiting = NULL;
}

size_t jobs_running(const struct jobs *s)
{
	(void)s;
	return waiting != NULL;
}

size_t jobs_waiting(const struct jobs *s)
{
	(void)s;
	return 0;
}

void pool_count(const struct pool *p, struct pool_count *count)
{
	(void)p;
	*count = (struct pool_count){0};
}

/* One session, which answers all, and streams where it is asked to. */
static char session;

bool sessions_have_room(const struct sessions *s)
{
	(void)s;
	return !waiting;
}

static const struct limits session_limits = {.cell_wall_ms = 1000,
	.idle_ms = 1000,
	.lifetime_ms = 1000,
	.source_bytes = 1000};

const struct limits *sessions_limits(const struct http_session *se)
{
	(void)se;
	return &session_limits;
}

int sessions_extend(
	const struct sessions *s, struct http_session *se, int64_t ms)
{
	(void)s;
	(void)se;
	must(ms > 0);
	return ms > session_limits.lifetime_ms ? -1 : 0;
}

int sessions_resume(struct http_session *se, struct exchange *x,
	unsigned cell, const char *id)
{
	struct strbuf none = {0};

	(void)se;
	(void)id;
	if (cell == 1)
		http_answer(x, 204, NULL, &none);
	return cell == 1 ? 1 : (int)(cell % 2) - 1;
}

int sessions_begin(struct sessions *s, struct exchange *x, struct terms *t)
{
	(void)s;
	must(t->limits.idle_ms <= session_limits.idle_ms || !t->metadata);
	take_on(x);
	return 0;
}

struct http_session *sessions_find(
	const struct sessions *s, const char *path, struct connections_peer who)
{
	(void)s;
	(void)who;
	return *path == '1' ? (void *)&session : NULL;
}

const char *sessions_why_over(const struct http_session *se)
{
	(void)se;
	return NULL;
}

bool sessions_is_busy(const struct http_session *se)
{
	(void)se;
	return waiting || streaming;
}

void sessions_add_state(struct strbuf *b, const struct http_session *se)
{
	(void)se;
	strbuf_puts(b, "{}");
}

int64_t sessions_wait_ms(
	const struct sessions *s, const struct connections_peer *who)
{
	(void)s, (void)who;
	return 1;
}

void sessions_add_list(
	struct strbuf *b, const struct sessions *s, struct connections_peer who)
{
	(void)s, (void)who;
	strbuf_puts(b, "{}");
}

void sessions_serve(struct sessions *s, struct http_session *se,
	struct exchange *x, struct request *q)
{
	(void)s;
	(void)se;
	must(!waiting && !streaming);
	take_on(x);
	streams = q->streams;
	request_fini(q);
	*q = (struct request){0};
}

void sessions_interrupt(struct http_session *se)
{
	(void)se;
}

void sessions_end(struct sessions *s, struct http_session *se, const char *why)
{
	(void)s;
	(void)se;
	(void)why;
}

/* A bit, a rest, another bit, the end. */
ssize_t sessions_more(struct exchange *x, char *p, size_t max)
{
	must(x == streaming && max >= 10);
	if (++step == 2)
		return 0;
	if (step > 3)
		return -1;
	memcpy(p, "data: {}\n\n", 10);
	return 10;
}

bool sessions_cancel(struct sessions *s, struct exchange *x)
{
	(void)s;
	if (streaming != x)
		return false;
	streaming = NULL;
	return true;
}

size_t sessions_count(const struct sessions *s)
{
	(void)s;
	return 1;
}

size_t sessions_of_client(const struct sessions *s, struct connections_peer who)
{
	(void)s;
	(void)who;
	return 1;
}

size_t sessions_busy(const struct sessions *s)
{
	(void)s;
	return 0;
}

void answer_add_refusal(
	struct strbuf *b, const char *title, const char *description, size_t n)
{
	strbuf_printf(b, "{\"title\": \"%s\", \"description\": ", title);
	emit_bytes(b, NULL, description, n);
	strbuf_puts(b, "}");
}

static void finish_job(void)
{
	struct exchange *x = waiting;
	struct strbuf b = {0};

	waiting = NULL;
	if (streaming)
		http_go_on(streaming);
	if (x && streams) {
		streams = false;
		streaming = x;
		step = 0;
		http_answer_stream(x, "text/event-stream", -1);
		return;
	}
	if (!x)
		return;
	http_set_own(x, NULL);
	strbuf_puts(&b, "{\"stdout\": \"\"}");
	http_answer(x, 200, "application/json", &b);
}

/* ---- the log ---- */

static int journal = -1;

int notify_connect(const char *path)
{
	int pair[2];

	(void)path;
	must(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair) == 0);
	journal = pair[0];
	return pair[1];
}

/* Check that the field is ours, and return where the next begins. */
static const char *check_field(const char *p, const char *end, int *priorities)
{
	const char *stop = memchr(p, '\n', (size_t)(end - p));
	uint64_t n;

	must(stop &&
		(!strncmp(p, "CELLBLOCK_", 10) || !strncmp(p, "MESSAGE", 7) ||
			!strncmp(p, "PRIORITY=", 9) ||
			!strcmp(strndupa(p, (size_t)(stop - p)),
				"SYSLOG_IDENTIFIER=cellblock")));
	*priorities += *p == 'P';
	if (memchr(p, '=', (size_t)(stop - p)))
		return stop + 1;
	must(end - stop > 9);
	memcpy(&n, stop + 1, sizeof(n));
	must(n < (uint64_t)(end - stop - 9) && stop[9 + n] == '\n');
	return stop + 10 + n;
}

static void check_log(struct access *log)
{
	static char entry[65536];
	ssize_t n;

	access_flush(log);
	while ((n = recv(journal, entry, sizeof(entry), 0)) > 0) {
		int priorities = 0;

		for (const char *p = entry; p < entry + n;)
			p = check_field(p, entry + n, &priorities);
		must(priorities == 1);
		access_flush(log);
	}
	must(access_lost(log) == 0);
}

/* ---- a server ---- */

static struct config_serve serve = {.upload = 2000,
	.log = SERVE_LOG_BODIES,
	.log_to = SERVE_LOG_TO_JOURNAL,
	.storage = 3000,
	.files = 4,
	.keep_ms = 1000,
	.per_client = 4,
	.answers = 4,
	.answers_size = 200,
	.answers_keep_ms = 1000,
	.directory = "/tmp"};
static struct traffic traffic;
static struct process process;
static struct route route = {.traffic = &traffic,
	.process = &process,
	.rules = &rules,
	.limits = &serve};
static const struct http_calls calls = {.head = route_head,
	.whole = route_whole,
	.over = route_over,
	.words = refusal_words,
	.done = route_done,
	.more = route_more,
	.arg = &route};

static struct http *server(void)
{
	static struct http *h;
	struct http_rules with = {
		.clients = 8,
		.body = 4000,
		.form = 3000,
		.limits = &serve,
		.calls = &calls};
	struct err e = {0};

	if (h)
		return h;
	route.tenants = tenants_open();
	must(route.tenants && store_open(&route.store, &serve, &e) == 0);
	must(access_open(&route.log, &serve, &e) == 0);
	process_open(&process);
	must(repeats_open(&route.repeats, &serve) == 0);
	with.store = route.store;
	with.repeats = route.repeats;
	must(http_open(&h, &with, &e) == 0);
	route.http = h;
	return h;
}

/* ---- a client ---- */

static void take(int fd, struct strbuf *b)
{
	char buf[4096];
	ssize_t n;

	while ((n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		strbuf_add(b, buf, (size_t)n);
}

/* Bytes of the body that follows. One that comes bit by bit may be cut when its
 * client says that it has no more to say; with HTTP/1.0 it has no length, and
 * the end of the connection is its end. */
static size_t length_of(const char *head, const char *body, const char *end)
{
	const char *p = strcasestr(head, "\r\nContent-Length: ");
	const char *chunked = strcasestr(head, "\r\nTransfer-Encoding: ");

	if (chunked && chunked < body) {
		p = memmem(body, (size_t)(end - body), "\r\n0\r\n\r\n", 7);
		return p ? (size_t)(p + 7 - body) : (size_t)(end - body);
	}
	if (p && p < body)
		return strtoul(p + 18, NULL, 10);
	p = strcasestr(head, "\r\nConnection: close\r\n");
	return p && p < body ? (size_t)(end - body) : 0;
}

/* Each is "HTTP/1.1 NNN", a head and a body, which is JSON if it is no file. A
 * head without a body (HEAD) is followed by another head. */
static void check(const struct strbuf *b)
{
	const char *p = b->n ? b->s : "", *end = p + b->n, *body;

	while (p < end) {
		size_t n;

		must(!strncmp(p, "HTTP/1.1 ", 9) && p[9] >= '1' && p[9] <= '5');
		body = memmem(p, (size_t)(end - p), "\r\n\r\n", 4);
		must(body != NULL);
		body += 4;
		n = length_of(p, body, end);
		if (body == end || !strncmp(body, "HTTP/1.1 ", 9))
			n = 0;
		must(n <= (size_t)(end - body));
		if (n && *body == '{') {
			json_t *v = json_loadb(body, n, JSON_ALLOW_NUL, NULL);

			must(v != NULL);
			json_decref(v);
		}
		must(p[9] < '4' || n == 0 || *body == '{');
		p = body + n;
	}
}

static void turn(struct http *h)
{
	struct pollfd p = {.fd = http_fd(h), .events = POLLIN};

	do
		http_turn(h);
	while (poll(&p, 1, 0) > 0);
}

static void serve_client(const uint8_t *data, size_t n)
{
	struct http *h = server();
	struct strbuf got = {0};
	int pair[2];

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
	must(http_add_client(h, pair[1]) == 0);
	for (size_t at = 0; at < n;) {
		const uint8_t *stop = memchr(data + at, 0xff, n - at);
		size_t piece = stop ? (size_t)(stop - data) - at : n - at;

		if (send(pair[0], data + at, piece, MSG_NOSIGNAL) < 0)
			break;
		at += piece + 1;
		turn(h);
		take(pair[0], &got);
		finish_job();
		turn(h);
		take(pair[0], &got);
	}
	/* Each request that was refused is answered before the end. */
	shutdown(pair[0], SHUT_WR);
	turn(h);
	finish_job();
	turn(h);
	take(pair[0], &got);
	close(pair[0]);
	turn(h);
	check(&got);
	check_log(route.log);
	must(traffic.n < TRAFFIC_ROWS);
	must(http_clients(h) == 0 && http_is_idle(h) && !waiting && !streaming);
	strbuf_free(&got);
}

/* ---- the head alone ---- */

static bool is_same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* However it is split, it is the same request. */
static void check_head(const uint8_t *data, size_t n)
{
	struct framing whole = {0}, parts = {0};
	size_t used = framing_take(&whole, (const char *)data, n), at = 0;

	while (at < n && parts.state < FRAMING_OVER)
		at += framing_take(&parts, (const char *)data + at, 1);
	must(at == used && parts.state == whole.state &&
		parts.status == whole.status);
	must(whole.state != FRAMING_WRONG ||
		(whole.status >= 400 && whole.words));
	must(!framing_is_whole(&whole) || (whole.method && whole.path));
	must(is_same(whole.method, parts.method) &&
		is_same(whole.path, parts.path) &&
		is_same(whole.host, parts.host));
	for (int i = 0; i < FRAMING_FIELDS; i++)
		must(is_same(whole.values[i], parts.values[i]));
	must(whole.body.n == parts.body.n &&
		(whole.body.n == 0 ||
			!memcmp(whole.body.s, parts.body.s, whole.body.n)));
	framing_reset(&whole);
	framing_reset(&parts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	check_head(data, n);
	serve_client(data, n);
	return 0;
}
