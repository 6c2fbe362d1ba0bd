/* SPDX-License-Identifier: MIT */
/*
 * http.c - requests over HTTP, and what is answered
 *
 * Runs in:   front end; confined but for http_open()
 * Holds:     for each client that asks, one socket to the gate
 * Trusts:    nobody; libmicrohttpd to parse what nobody can be trusted with
 * Leaves:    no client that takes more than a descriptor and a bounded time
 *
 * The gate lets in only requests that are beyond doubt, one of a client at a
 * time, and tells of clients that are gone. libmicrohttpd takes them apart, and
 * writes answers. All bodies on their way here share a bounded memory.
 */
#include "repl/serve/parts.h"

#include "jail/base/err.h"
#include "jail/base/io.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

/* What libmicrohttpd has for the head and the answer of a client. */
#define CLIENT_BYTES (32 << 10)
/* Of a form's file, at a time. */
#define FORM_BYTES (16 << 10)
/* Of an answer that comes bit by bit, at a time. */
#define STREAM_BYTES (16 << 10)
#define TURN_MS 1000
#define HEADERS_MAX 3
/* A body that nobody wants: so much of it is read all the same. */
#define UNWANTED_BYTES (64 << 10)
/* Who has taken nothing for so long can lose its answer. */
#define STALLED_MS 1000
/* So many of the longest bodies at a time. */
#define BODIES 8

/* One connection of libmicrohttpd's. */
struct http_link {
	struct http_link *next, *before;
	struct gate_client *client; /* NULL: gone */
};

struct header {
	const char *name;
	char value[200];
};

/* How far a form is, as to its field `file`. */
enum form_state {
	FORM_FILE_AHEAD,
	FORM_FILE_BEGUN, /* its content has not come yet, and may be empty */
	FORM_FILE_COMES,
	FORM_FILE_PAST, /* another file has begun */
};

struct exchange {
	struct http *http;
	struct MHD_Connection *connection;
	struct http_link *link;
	struct exchange *next, *before;
	char *method, *path;
	void *own;
	bool keeps, whole, suspended, gone;
	uint64_t came;	 /* bytes of the body */
	size_t unwanted; /* of them, that nobody asked for */
	struct strbuf body;
	/* a form */
	struct MHD_PostProcessor *form;
	struct store_file *file;
	char *file_name;
	enum form_state form_state;
	size_t form_steps; /* bytes that were handed over one by one, */
	bool form_step;	   /* and whether this is one */
	bool malformed;
	enum store_problem problem;
	/* the answer */
	int status;
	const char *type;
	struct strbuf answer;
	size_t owed; /* bytes of it, also once libmicrohttpd has them */
	struct store_file *answer_file;
	bool streams;
	uint64_t size; /* of a stream */
	struct header headers[HEADERS_MAX];
	int nheaders;
};

struct http {
	struct mhd mhd;
	struct http_rules rules;
	struct MHD_Daemon *daemon;
	struct gate *gate;
	struct gate_client *coming; /* while libmicrohttpd is told of it */
	struct http_link *links;
	struct exchange *exchanges;
	size_t nexchanges;
	size_t held, owed; /* bytes of bodies, of answers */
	int epoll;
	bool draining, again;
};

/* ---- clients ---- */

static int serve(void *arg, struct gate_client *c, int fd)
{
	struct http *h = arg;
	enum MHD_Result r;

	h->coming = c;
	r = h->mhd.add_connection(h->daemon, fd, NULL, 0);
	h->coming = NULL;
	return r == MHD_YES ? 0 : -1;
}

static void connected(void *arg, struct MHD_Connection *connection, void **own,
	enum MHD_ConnectionNotificationCode what)
{
	struct http *h = arg;
	struct http_link *l = *own;

	(void)connection;
	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		l = calloc(1, sizeof(*l));
		*own = l;
		if (!l)
			return;
		l->client = h->coming;
		l->next = h->links;
		if (l->next)
			l->next->before = l;
		h->links = l;
	} else if (l) {
		*(l->before ? &l->before->next : &h->links) = l->next;
		if (l->next)
			l->next->before = l->before;
		free(l);
		*own = NULL;
	}
}

static void answered(struct exchange *x);

static void gone(void *arg, struct gate_client *c)
{
	struct http *h = arg;

	for (struct http_link *l = h->links; l; l = l->next)
		if (l->client == c)
			l->client = NULL;
	for (struct exchange *x = h->exchanges; x; x = x->next) {
		if (x->link->client || x->gone)
			continue;
		x->gone = true;
		answered(x);
	}
}

/* ---- an exchange ---- */

static struct exchange *begin(struct http *h, struct MHD_Connection *connection,
	const char *path, const char *method)
{
	struct http_link *l = h->mhd.get_connection_info(connection,
					    MHD_CONNECTION_INFO_SOCKET_CONTEXT)
				      ->socket_context;
	struct exchange *x;

	if (!l || !l->client)
		return NULL;
	x = calloc(1, sizeof(*x));
	if (!x)
		return NULL;
	x->http = h;
	x->connection = connection;
	x->link = l;
	x->path = strdup(path);
	x->method = strdup(method);
	x->next = h->exchanges;
	if (x->next)
		x->next->before = x;
	h->exchanges = x;
	h->nexchanges++;
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
	h->owed -= x->owed;
	strbuf_free(&x->answer);
	if (x->form)
		h->mhd.destroy_post_processor(x->form);
	if (x->file)
		store_release(h->rules.store, x->file);
	if (x->answer_file)
		store_release(h->rules.store, x->answer_file);
	if (x->link->client)
		gate_next(x->link->client);
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

/* ---- no ---- */

static void add_words(struct exchange *x, int status, const char *words)
{
	const struct http_calls *c = x->http->rules.calls;
	struct strbuf b = {0};

	c->words(c->arg, x->path, status, words, &b);
	http_answer(x, status, "application/json", &b);
}

/* A whole answer, without libmicrohttpd. */
static void write_answer(const struct http *h, struct strbuf *whole, int status,
	const struct header *headers, int n, const struct strbuf *body)
{
	strbuf_printf(whole,
		"HTTP/1.1 %d %s\r\nConnection: close\r\n"
		"Content-Type: application/json\r\nContent-Length: %zu\r\n",
		status, h->mhd.get_reason_phrase_for((unsigned)status),
		body->n);
	for (int i = 0; i < n; i++)
		strbuf_printf(
			whole, "%s: %s\r\n", headers[i].name, headers[i].value);
	strbuf_puts(whole, "\r\n");
	strbuf_add(whole, body->s ? body->s : "", body->n);
}

static void refuse(void *arg, const char *path, int status, const char *words,
	struct strbuf *answer)
{
	const struct http *h = arg;
	const struct http_calls *c = h->rules.calls;
	struct strbuf b = {0};

	c->words(c->arg, path ? path : "", status, words, &b);
	c->refused(c->arg, status);
	write_answer(h, answer, status, NULL, 0, &b);
	strbuf_free(&b);
}

/* The rest of a body is not waited for, if much of it may come: libmicrohttpd
 * does not answer in the middle of one. */
static enum MHD_Result answer_early(struct exchange *x)
{
	struct gate_client *c = x->link->client;
	struct strbuf b = {0};

	x->gone = true;
	write_answer(
		x->http, &b, x->status, x->headers, x->nheaders, &x->answer);
	if (c) {
		x->link->client = NULL;
		gate_answer(c, &b);
	}
	strbuf_free(&b);
	return MHD_NO;
}

static const char no_body[] = "no body is expected here";

/* ---- the head ---- */

static uint64_t length_of(const struct exchange *x)
{
	const char *n = http_header(x, "Content-Length");

	if (http_header(x, "Transfer-Encoding"))
		return UINT64_MAX;
	return n ? strtoull(n, NULL, 10) : 0;
}

static enum MHD_Result take_head(struct exchange *x)
{
	struct http *h = x->http;
	uint64_t n = length_of(x);

	h->rules.calls->head(h->rules.calls->arg, x);
	if (!x->status && x->keeps && n != UINT64_MAX && n > h->rules.body)
		add_words(x, 413, "the request is too long (serve.request)");
	if (!x->status && !x->keeps && !x->form && n != UINT64_MAX &&
		n > UNWANTED_BYTES)
		add_words(x, 413, no_body);
	return x->status && n > UNWANTED_BYTES ? answer_early(x) : MHD_YES;
}

/* ---- the body ---- */

/* Make room for a body: the oldest goes that is not whole yet. */
static bool make_room(struct http *h, const struct exchange *except)
{
	struct exchange *oldest = NULL;

	for (struct exchange *x = h->exchanges; x; x = x->next)
		if (x->body.n > 0 && !x->whole && !x->gone && x != except)
			oldest = x;
	if (!oldest)
		return false;
	drop_body(oldest);
	http_add_header(oldest, "Retry-After", "1");
	add_words(oldest, 503, "too many long requests are on their way");
	answer_early(oldest);
	return true;
}

static void keep(struct exchange *x, const char *p, size_t n)
{
	struct http *h = x->http;
	const size_t most = BODIES * h->rules.body;

	if (n > h->rules.body - x->body.n) {
		add_words(x, 413, "the request is too long (serve.request)");
	} else if (h->held + n > most && !make_room(h, x)) {
		http_add_header(x, "Retry-After", "1");
		add_words(x, 503, "too many long requests are on their way");
	} else {
		strbuf_add(&x->body, p, n);
		h->held += n;
		if (!x->body.failed)
			return;
		add_words(x, 503, "out of memory");
	}
	drop_body(x);
}

/*
 * libmicrohttpd tells of a file's content in pieces, each with its offset. The
 * first piece of a file can be empty, also when more of the file comes: the
 * parser had at most four bytes of it, or what may be a boundary. Then the next
 * piece is at offset 0 once more, as is the first piece of another file. What
 * tells the two apart:
 *
 * - The parser always has as much of the data as there is. So an empty piece of
 *   a file that goes on is the last piece of the data that were handed over.
 * - Data that are handed over byte by byte: each file begins with an empty
 *   piece, because the parser has one byte of it.
 */
static bool is_another_file(const struct exchange *x, uint64_t at, size_t n)
{
	if (x->form_state == FORM_FILE_BEGUN)
		return n == 0 || !x->form_step;
	return x->form_state == FORM_FILE_COMES && at == 0;
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
	if (is_another_file(x, at, n))
		x->form_state = FORM_FILE_PAST;
	if (x->form_state == FORM_FILE_PAST)
		return MHD_YES;
	if (x->form_state == FORM_FILE_AHEAD) {
		x->file_name = strdup(name);
		x->file = store_begin(h->rules.store, http_peer(x));
		if (!x->file || !x->file_name)
			x->problem = STORE_FULL;
	}
	x->form_state = n > 0 ? FORM_FILE_COMES : FORM_FILE_BEGUN;
	if (x->problem == STORE_FINE && n > 0)
		x->problem = store_write(h->rules.store, x->file, data, n);
	return MHD_YES;
}

/* A file that has begun is handed over byte by byte until it is clear whether
 * it is empty: content is told of before the parser's memory is full. */
static void take_form(struct exchange *x, const char *p, size_t n)
{
	while (n > 0 && !x->malformed) {
		size_t now = n;

		x->form_step = x->form_state == FORM_FILE_BEGUN;
		if (x->form_step && x->form_steps++ < FORM_BYTES)
			now = 1;
		else if (x->form_step)
			x->form_state = FORM_FILE_PAST;
		x->malformed =
			x->http->mhd.post_process(x->form, p, now) != MHD_YES;
		p += now;
		n -= now;
	}
}

static enum MHD_Result take_data(struct exchange *x, const char *p, size_t n)
{
	const struct http_calls *c = x->http->rules.calls;

	x->came += n;
	if (x->status || !(x->form || x->keeps))
		x->unwanted += n;
	else if (x->form)
		take_form(x, p, n);
	else
		keep(x, p, n);
	if (x->form && x->came > x->http->rules.form)
		x->problem = STORE_FILE_FULL;
	if (!x->status && x->problem != STORE_FINE) {
		x->whole = true;
		c->whole(c->arg, x);
	}
	if (!x->status && x->unwanted > UNWANTED_BYTES)
		add_words(x, 413, no_body);
	return x->unwanted > UNWANTED_BYTES ? answer_early(x) : MHD_YES;
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
	if (x->link->client)
		gate_set_running(x->link->client);
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
	return n < 0 ? MHD_CONTENT_READER_END_OF_STREAM : n;
}

static struct MHD_Response *make_response(struct exchange *x)
{
	struct mhd *m = &x->http->mhd;
	struct strbuf *b = &x->answer;
	struct MHD_Response *r;

	if (x->streams)
		return m->create_response_from_callback(
			x->size, STREAM_BYTES, read_stream, x, NULL);
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
	struct MHD_Response *r = make_response(x);
	enum MHD_Result done;

	if (!r)
		return MHD_NO;
	if (x->link->client)
		gate_set_answering(x->link->client);
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
	if (x->gone)
		return MHD_NO;
	if (*n > 0) {
		size_t came = *n;

		*n = 0;
		return take_data(x, data, came);
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
	if (x->link->client)
		gate_set_answering(x->link->client);
	h->mhd.resume_connection(x->connection);
}

/* ---- open, close, turn ---- */

static int start(struct http *h, struct err *e)
{
	const union MHD_DaemonInfo *info;

	h->daemon = h->mhd.start_daemon(MHD_USE_EPOLL |
						MHD_ALLOW_SUSPEND_RESUME |
						MHD_USE_NO_LISTEN_SOCKET,
		0, NULL, NULL, handle, h, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)h->rules.clients, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)CLIENT_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1,
		MHD_OPTION_NOTIFY_CONNECTION, connected, h,
		MHD_OPTION_NOTIFY_COMPLETED, completed, h, MHD_OPTION_END);
	info = h->daemon ? h->mhd.get_daemon_info(
				   h->daemon, MHD_DAEMON_INFO_EPOLL_FD)
			 : NULL;
	if (!info)
		return err_set(e, "serve: libmicrohttpd does not start");
	h->epoll = info->epoll_fd;
	return 0;
}

int http_open(struct http **out, const struct http_rules *rules, struct err *e)
{
	struct http *h = calloc(1, sizeof(*h));
	const struct gate_calls calls = {
		.serve = serve, .gone = gone, .refuse = refuse, .arg = h};

	if (!h)
		return err_errno(e, "serve");
	h->rules = *rules;
	if (mhd_load(&h->mhd, e) < 0 ||
		gate_open(&h->gate, rules->fds, rules->nfds, rules->clients,
			&calls, e) < 0 ||
		start(h, e) < 0) {
		http_close(h);
		return -1;
	}
	*out = h;
	return 0;
}

void http_close(struct http *h)
{
	if (!h)
		return;
	/* Whoever waits must not, when libmicrohttpd ends. */
	gate_close(h->gate);
	if (h->daemon) {
		h->mhd.run(h->daemon);
		h->mhd.stop_daemon(h->daemon);
	}
	free(h);
}

int http_add_client(struct http *h, int fd)
{
	return gate_add(h->gate, fd);
}

void http_drain(struct http *h)
{
	h->draining = true;
	gate_drain(h->gate);
}

bool http_is_idle(const struct http *h)
{
	return h->nexchanges == 0 && !gate_owes(h->gate);
}

size_t http_clients(const struct http *h)
{
	return gate_clients(h->gate);
}

size_t http_polls(const struct http *h, struct pollfd *p)
{
	p[0] = (struct pollfd){.fd = h->epoll, .events = POLLIN};
	p[1] = (struct pollfd){.fd = gate_fd(h->gate), .events = POLLIN};
	return HTTP_POLLS;
}

int http_timeout_ms(const struct http *h)
{
	MHD_UNSIGNED_LONG_LONG ms;

	/* It reads a little of each client at a time. */
	if (h->again ||
		(h->mhd.get_timeout(h->daemon, &ms) == MHD_YES && ms < TURN_MS))
		return 0;
	return TURN_MS;
}

void http_turn(struct http *h)
{
	gate_turn(h->gate);
	h->again = false;
	h->mhd.run(h->daemon);
	gate_turn(h->gate);
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

size_t http_of_client(const struct exchange *x)
{
	size_t n = 0;

	if (!x->link->client)
		return 0;
	for (struct exchange *y = x->http->exchanges; y; y = y->next)
		n += y->whole && y->link->client &&
		     gate_is_same(http_peer(y), http_peer(x));
	return n;
}

struct gate_peer http_peer(const struct exchange *x)
{
	return x->link->client ? gate_peer(x->link->client)
			       : (struct gate_peer){0};
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

/* Make room for an answer: who has taken nothing of its own for longest goes.
 * Nobody goes who still reads. */
static void make_room_for(struct exchange *x)
{
	struct http *h = x->http;
	struct exchange *slowest = x;

	h->owed += x->owed;
	while (h->owed > h->rules.answers && slowest) {
		int64_t most = STALLED_MS;

		slowest = NULL;
		for (struct exchange *y = h->exchanges; y; y = y->next) {
			int64_t ms = y->owed > 0 && y->link->client
					     ? gate_stalled_ms(y->link->client)
					     : 0;

			if (ms > most) {
				most = ms;
				slowest = y;
			}
		}
		if (!slowest)
			return;
		h->owed -= slowest->owed;
		slowest->owed = 0;
		gate_leave(slowest->link->client);
	}
}

void http_answer(
	struct exchange *x, int status, const char *type, struct strbuf *body)
{
	x->status = body->failed ? 503 : status;
	x->type = type;
	x->answer = *body;
	*body = (struct strbuf){0};
	x->owed = x->answer.n;
	make_room_for(x);
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

void http_answer_stream(struct exchange *x, const char *type, int64_t size)
{
	x->streams = true;
	x->size = size < 0 ? MHD_SIZE_UNKNOWN : (uint64_t)size;
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
