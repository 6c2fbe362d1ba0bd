/* SPDX-License-Identifier: MIT */
/*
 * http.c - requests over HTTP, and what is answered
 *
 * Runs in:   front end; confined but for http_open()
 * Holds:     the socket that listens, one for each client
 * Trusts:    nobody; libmicrohttpd to parse what nobody can be trusted with
 * Leaves:    no client that takes more than a descriptor and a bounded time
 *
 * libmicrohttpd looks for silence only. A client that sends a byte now and then
 * would stay for ever, so each request and each answer has a deadline, which
 * grows with the bytes that were moved. All bodies on their way here share a
 * bounded memory.
 *
 * While a request runs, libmicrohttpd does not look at its client; we do.
 */
#include "http.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "mhd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

/* Seconds without a byte; milliseconds for a head, a body or an answer; and the
 * bytes that buy one more. */
#define SILENCE_S 30
#define PATIENCE_MS 60000
#define BYTES_A_MS 64
/* Of heads, for each client. */
#define HEAD_BYTES (32 << 10)
/* Of a form's file, at a time. */
#define FORM_BYTES (16 << 10)
/* Of an answer that comes bit by bit, at a time. */
#define STREAM_BYTES (16 << 10)
#define SWEEP_MS 1000
#define HEADERS_MAX 3
/* So many of the longest bodies at a time. */
#define BODIES 8

enum phase {
	PHASE_HEAD, /* or no request at all */
	PHASE_BODY,
	PHASE_RUN, /* we make it wait */
	PHASE_ANSWER,
};

/* One client. */
struct client {
	struct client *next, *before;
	struct MHD_Connection *connection;
	enum phase phase;
	int64_t since_ms;
	int64_t bytes; /* moved, or to move, in this phase */
};

struct header {
	const char *name;
	char value[200];
};

struct exchange {
	struct http *http;
	struct MHD_Connection *connection;
	struct client *client;
	struct exchange *next, *before;
	char *method, *path;
	void *own;
	bool keeps, long_, whole, suspended, gone;
	struct strbuf body;
	/* a form */
	struct MHD_PostProcessor *form;
	struct store_file *file;
	char *file_name;
	bool found, second, malformed;
	enum store_problem problem;
	/* the answer */
	int status;
	const char *type;
	struct strbuf answer;
	struct store_file *answer_file;
	bool streams;
	struct header headers[HEADERS_MAX];
	int nheaders;
};

struct http {
	struct mhd mhd;
	struct http_rules rules;
	struct MHD_Daemon *daemon;
	struct client *clients;
	struct exchange *exchanges;
	size_t nclients, nexchanges;
	size_t held; /* bytes of bodies */
	int64_t swept_ms;
	int epoll;
	bool draining, again;
};

/* ---- clients ---- */

static void client_begin(struct client *c, enum phase phase, int64_t bytes)
{
	c->phase = phase;
	c->since_ms = now_ms();
	c->bytes = bytes;
}

static void connected(void *arg, struct MHD_Connection *connection, void **own,
	enum MHD_ConnectionNotificationCode what)
{
	struct http *h = arg;
	struct client *c = *own;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		c = calloc(1, sizeof(*c));
		*own = c;
		if (!c)
			return;
		c->connection = connection;
		client_begin(c, PHASE_HEAD, 0);
		c->next = h->clients;
		if (c->next)
			c->next->before = c;
		h->clients = c;
		h->nclients++;
	} else if (c) {
		*(c->before ? &c->before->next : &h->clients) = c->next;
		if (c->next)
			c->next->before = c->before;
		h->nclients--;
		free(c);
		*own = NULL;
	}
}

static int socket_of(const struct http *h, struct MHD_Connection *connection)
{
	return h->mhd
		.get_connection_info(
			connection, MHD_CONNECTION_INFO_CONNECTION_FD)
		->connect_fd;
}

/* Clients that take too long: libmicrohttpd finds them gone. */
static void sweep(struct http *h)
{
	int64_t now = now_ms();

	if (now - h->swept_ms < SWEEP_MS)
		return;
	h->swept_ms = now;
	for (struct client *c = h->clients; c; c = c->next)
		if (c->phase != PHASE_RUN &&
			now - c->since_ms > PATIENCE_MS + c->bytes / BYTES_A_MS)
			shutdown(socket_of(h, c->connection), SHUT_RDWR);
}

/* ---- an exchange ---- */

static struct exchange *begin(struct http *h, struct MHD_Connection *connection,
	const char *path, const char *method)
{
	struct exchange *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->http = h;
	x->connection = connection;
	x->client = h->mhd.get_connection_info(connection,
				  MHD_CONNECTION_INFO_SOCKET_CONTEXT)
			    ->socket_context;
	x->path = strdup(path);
	x->method = strdup(method);
	x->next = h->exchanges;
	if (x->next)
		x->next->before = x;
	h->exchanges = x;
	h->nexchanges++;
	if (x->client)
		client_begin(x->client, PHASE_BODY, 0);
	return x;
}

static void drop_body(struct exchange *x)
{
	x->http->held -= x->body.n;
	strbuf_free(&x->body);
}

static void end(struct exchange *x)
{
	struct http *h = x->http;

	h->rules.calls->over(h->rules.calls->arg, x);
	drop_body(x);
	strbuf_free(&x->answer);
	if (x->form)
		h->mhd.destroy_post_processor(x->form);
	if (x->file)
		store_release(h->rules.store, x->file);
	if (x->answer_file)
		store_release(h->rules.store, x->answer_file);
	if (x->client)
		client_begin(x->client, PHASE_HEAD, 0);
	*(x->before ? &x->before->next : &h->exchanges) = x->next;
	if (x->next)
		x->next->before = x->before;
	h->nexchanges--;
	free(x->file_name);
	free(x->path);
	free(x->method);
	free(x);
}

static void completed(void *arg, struct MHD_Connection *connection, void **own,
	enum MHD_RequestTerminationCode why)
{
	(void)arg;
	(void)connection;
	(void)why;
	if (*own)
		end(*own);
	*own = NULL;
}

/* ---- the head ---- */

struct framing {
	int lengths, codings, hosts;
	bool bad;
};

static enum MHD_Result look_at(
	void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct framing *f = arg;

	(void)kind;
	if (!strcasecmp(name, "Content-Length")) {
		f->lengths++;
		f->bad |=
			!value || !*value || value[strspn(value, "0123456789")];
	} else if (!strcasecmp(name, "Transfer-Encoding")) {
		f->codings++;
		f->bad |= !value || strcasecmp(value, "chunked") != 0;
	} else if (!strcasecmp(name, "Host")) {
		f->hosts++;
	}
	/* Some take a blank in a name for its end, and others do not. */
	f->bad |= strpbrk(name, " \t") != NULL;
	return MHD_YES;
}

/* What a proxy before us could understand differently: where it ends, or whom
 * it is for. */
static bool is_ambiguous(const struct exchange *x)
{
	struct framing f = {0};

	x->http->mhd.get_connection_values(
		x->connection, MHD_HEADER_KIND, look_at, &f);
	return f.bad || f.lengths + f.codings > 1 || f.hosts > 1;
}

static bool is_too_long(const struct exchange *x)
{
	const char *n = http_header(x, "Content-Length");

	return x->keeps && n && strtoull(n, NULL, 10) > x->http->rules.body;
}

static void answer_words(struct exchange *x, int status, const char *words)
{
	struct strbuf b = {0};

	strbuf_printf(
		&b, "{\"title\": \"%s\", \"detail\": \"%s\"}", words, words);
	http_answer(x, status, "application/json", &b);
}

static enum MHD_Result queue(struct exchange *x);

static enum MHD_Result take_head(struct exchange *x)
{
	struct http *h = x->http;

	if (is_ambiguous(x)) {
		http_add_header(x, "Connection", "close");
		answer_words(x, 400, "400 Bad Request");
		return queue(x);
	}
	h->rules.calls->head(h->rules.calls->arg, x);
	if (x->status)
		return MHD_YES;
	if (is_too_long(x)) {
		http_add_header(x, "Connection", "close");
		answer_words(x, 413, "413 Content Too Large");
		return queue(x);
	}
	return MHD_YES;
}

/* ---- the body ---- */

static void keep(struct exchange *x, const char *p, size_t n)
{
	struct http *h = x->http;

	if (n > h->rules.body - x->body.n) {
		x->long_ = true;
		answer_words(x, 413, "413 Content Too Large");
	} else if (h->held + n > BODIES * h->rules.body) {
		http_add_header(x, "Retry-After", "1");
		answer_words(x, 503, "503 Service Unavailable");
	} else {
		strbuf_add(&x->body, p, n);
		h->held += n;
		if (!x->body.failed)
			return;
		answer_words(x, 503, "503 Service Unavailable");
	}
	drop_body(x);
}

static enum MHD_Result take_field(void *arg, enum MHD_ValueKind kind,
	const char *key, const char *name, const char *type,
	const char *encoding, const char *data, uint64_t at, size_t n)
{
	struct exchange *x = arg;
	struct http *h = x->http;

	(void)kind;
	(void)type;
	(void)encoding;
	if (!key || strcmp(key, "file") != 0 || !name)
		return MHD_YES;
	/* Of several with the name the first counts. */
	x->second |= x->found && at == 0;
	if (x->second)
		return MHD_YES;
	if (!x->found) {
		x->found = true;
		x->file_name = strdup(name);
		x->file = store_begin(h->rules.store);
		if (!x->file || !x->file_name)
			x->problem = STORE_FULL;
	}
	if (x->problem == STORE_FINE && n > 0)
		x->problem = store_write(h->rules.store, x->file, data, n);
	return MHD_YES;
}

static void take_data(struct exchange *x, const char *p, size_t n)
{
	if (x->status)
		return;
	if (x->client)
		x->client->bytes += (int64_t)n;
	if (x->form)
		x->malformed |=
			x->http->mhd.post_process(x->form, p, n) != MHD_YES;
	else if (x->keeps)
		keep(x, p, n);
}

/* ---- the answer ---- */

static ssize_t read_file(void *arg, uint64_t at, char *buf, size_t max)
{
	struct store_file *f = arg;
	ssize_t n = pread(f->fd, buf, max, (off_t)at);

	return n > 0 ? n : MHD_CONTENT_READER_END_WITH_ERROR;
}

/* libmicrohttpd has nothing to do for it until answered(). */
static void hold(struct exchange *x)
{
	x->suspended = true;
	if (x->client)
		client_begin(x->client, PHASE_RUN, 0);
	x->http->mhd.suspend_connection(x->connection);
}

static ssize_t read_stream(void *arg, uint64_t at, char *buf, size_t max)
{
	struct exchange *x = arg;
	const struct http_calls *calls = x->http->rules.calls;
	ssize_t n;

	(void)at;
	if (x->gone)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	n = calls->more(calls->arg, x, buf, max);
	if (n == 0)
		hold(x);
	else if (n > 0 && x->client)
		x->client->bytes += n;
	return n < 0 ? MHD_CONTENT_READER_END_OF_STREAM : n;
}

static struct MHD_Response *make_response(struct exchange *x)
{
	struct mhd *m = &x->http->mhd;
	struct strbuf *b = &x->answer;
	struct MHD_Response *r;

	if (x->streams)
		return m->create_response_from_callback(
			MHD_SIZE_UNKNOWN, STREAM_BYTES, read_stream, x, NULL);
	if (x->answer_file)
		return m->create_response_from_callback(
			(uint64_t)x->answer_file->size, 64 << 10, read_file,
			x->answer_file, NULL);
	/* libmicrohttpd frees what it was given. */
	r = m->create_response_from_buffer(b->n, b->s ? b->s : (char *)"",
		b->s ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
	if (r)
		*b = (struct strbuf){0};
	return r;
}

static enum MHD_Result queue(struct exchange *x)
{
	struct http *h = x->http;
	struct mhd *m = &h->mhd;
	int64_t n =
		x->answer_file ? x->answer_file->size : (int64_t)x->answer.n;
	struct MHD_Response *r = make_response(x);
	enum MHD_Result done;

	if (!r)
		return MHD_NO;
	if (x->client)
		client_begin(x->client, PHASE_ANSWER, n);
	if (x->type)
		m->add_response_header(r, "Content-Type", x->type);
	for (int i = 0; i < x->nheaders; i++)
		m->add_response_header(
			r, x->headers[i].name, x->headers[i].value);
	if (h->draining)
		m->add_response_header(r, "Connection", "close");
	done = m->queue_response(x->connection, (unsigned)x->status, r);
	m->destroy_response(r);
	return done;
}

static enum MHD_Result take_end(struct exchange *x)
{
	struct http *h = x->http;

	if (x->gone)
		return MHD_NO;
	if (x->form) {
		x->malformed |=
			h->mhd.destroy_post_processor(x->form) != MHD_YES;
		x->form = NULL;
	}
	if (!x->status && !x->whole) {
		x->whole = true;
		h->rules.calls->whole(h->rules.calls->arg, x);
	}
	if (x->status)
		return queue(x);
	hold(x);
	return MHD_YES;
}

static enum MHD_Result handle(void *arg, struct MHD_Connection *connection,
	const char *path, const char *method, const char *version,
	const char *data, size_t *n, void **own)
{
	struct exchange *x = *own;

	(void)version;
	if (!x) {
		x = begin(arg, connection, path, method);
		*own = x;
		return x && x->path && x->method ? take_head(x) : MHD_NO;
	}
	if (*n > 0) {
		take_data(x, data, *n);
		*n = 0;
		return MHD_YES;
	}
	return take_end(x);
}

static void answered(struct exchange *x)
{
	struct http *h = x->http;

	if (!x->suspended)
		return;
	x->suspended = false;
	h->again = true;
	if (x->client)
		client_begin(x->client, PHASE_ANSWER, 0);
	h->mhd.resume_connection(x->connection);
}

/* ---- open, close, turn ---- */

int http_open(struct http **out, const struct http_rules *rules, struct err *e)
{
	struct http *h = calloc(1, sizeof(*h));
	const union MHD_DaemonInfo *info;

	if (!h)
		return err_errno(e, "serve");
	h->rules = *rules;
	if (mhd_load(&h->mhd, e) < 0) {
		free(h);
		return -1;
	}
	h->daemon = h->mhd.start_daemon(
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME |
			(rules->fd < 0 ? MHD_USE_NO_LISTEN_SOCKET : 0),
		0, NULL, NULL, handle, h, MHD_OPTION_LISTEN_SOCKET, rules->fd,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)rules->clients,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SILENCE_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEAD_BYTES,
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION,
		connected, h, MHD_OPTION_NOTIFY_COMPLETED, completed, h,
		MHD_OPTION_END);
	info = h->daemon ? h->mhd.get_daemon_info(
				   h->daemon, MHD_DAEMON_INFO_EPOLL_FD)
			 : NULL;
	if (!info) {
		free(h);
		return err_set(e, "serve: libmicrohttpd does not start");
	}
	h->epoll = info->epoll_fd;
	*out = h;
	return 0;
}

void http_close(struct http *h)
{
	if (!h)
		return;
	/* Those that wait must not, when libmicrohttpd ends. */
	for (struct exchange *x = h->exchanges; x; x = x->next) {
		x->gone |= x->suspended;
		answered(x);
	}
	h->mhd.run(h->daemon);
	h->mhd.stop_daemon(h->daemon);
	free(h);
}

int http_add_client(struct http *h, int fd)
{
	return h->mhd.add_connection(h->daemon, fd, NULL, 0) == MHD_YES ? 0
									: -1;
}

void http_drain(struct http *h)
{
	int fd = h->draining ? -1 : (int)h->mhd.quiesce_daemon(h->daemon);

	h->draining = true;
	if (fd >= 0)
		close(fd);
}

size_t http_exchanges(const struct http *h)
{
	return h->nexchanges;
}

size_t http_clients(const struct http *h)
{
	return h->nclients;
}

size_t http_polls(const struct http *h, struct pollfd *p, size_t max)
{
	size_t n = 0;

	p[n++] = (struct pollfd){.fd = h->epoll, .events = POLLIN};
	for (struct exchange *x = h->exchanges; x && n < max; x = x->next)
		if (x->suspended)
			p[n++] = (struct pollfd){
				.fd = socket_of(h, x->connection),
				.events = POLLRDHUP};
	return n;
}

int http_timeout_ms(const struct http *h)
{
	MHD_UNSIGNED_LONG_LONG ms;

	if (h->again)
		return 0;
	if (h->mhd.get_timeout(h->daemon, &ms) != MHD_YES || ms > SWEEP_MS)
		return SWEEP_MS;
	return (int)ms;
}

/* Its socket is ready only when nobody is at the other end. */
static void forget(struct http *h, int fd)
{
	for (struct exchange *x = h->exchanges; x; x = x->next) {
		if (!x->suspended || socket_of(h, x->connection) != fd)
			continue;
		x->gone = true;
		answered(x);
		return;
	}
}

void http_turn(struct http *h, const struct pollfd *p, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (p[i].revents)
			forget(h, p[i].fd);
	h->again = false;
	h->mhd.run(h->daemon);
	sweep(h);
}

/* ---- one exchange ---- */

const char *http_method(const struct exchange *x)
{
	return x->method;
}

const char *http_path(const struct exchange *x)
{
	return x->path;
}

const char *http_header(const struct exchange *x, const char *name)
{
	return x->http->mhd.lookup_connection_value(
		x->connection, MHD_HEADER_KIND, name);
}

void http_take_body(struct exchange *x)
{
	x->keeps = true;
}

void http_take_file(struct exchange *x)
{
	x->form = x->http->mhd.create_post_processor(
		x->connection, FORM_BYTES, take_field, x);
}

const struct strbuf *http_body(const struct exchange *x)
{
	return &x->body;
}

enum store_problem http_file(
	struct exchange *x, struct store_file **file, const char **name)
{
	*file = x->malformed ? NULL : x->file;
	*name = x->file_name;
	if (x->problem != STORE_FINE || !*file)
		return x->problem;
	x->file = NULL;
	return STORE_FINE;
}

void http_set_own(struct exchange *x, void *own)
{
	x->own = own;
}

void *http_own(const struct exchange *x)
{
	return x->own;
}

void http_add_header(struct exchange *x, const char *name, const char *value)
{
	struct header *h = &x->headers[x->nheaders];

	if (x->nheaders == HEADERS_MAX)
		return;
	h->name = name;
	snprintf(h->value, sizeof(h->value), "%s", value);
	x->nheaders++;
}

void http_answer(
	struct exchange *x, int status, const char *type, struct strbuf *body)
{
	x->status = body->failed ? 503 : status;
	x->type = type;
	x->answer = *body;
	*body = (struct strbuf){0};
	answered(x);
}

void http_answer_file(struct exchange *x, struct store_file *f)
{
	store_hold(f);
	x->answer_file = f;
	x->status = 200;
	x->type = "application/octet-stream";
	answered(x);
}

void http_answer_stream(struct exchange *x, const char *type)
{
	x->streams = true;
	x->status = 200;
	x->type = type;
	answered(x);
}

void http_go_on(struct exchange *x)
{
	if (x->streams)
		answered(x);
}

int http_status(const struct exchange *x)
{
	return x->status;
}
