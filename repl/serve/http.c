/* SPDX-License-Identifier: MIT */
/*
 * http.c - requests over HTTP, and their answers
 *
 * Runs in:   front end; confined but for http_open()
 * Trusts:    nobody
 * Leaves:    no client that stays for more than a bounded time
 *
 * connections.c passes on only well-formed requests, one of a client at a time,
 * and asks for an answer in pieces. All bodies that are not whole yet share a
 * bounded memory.
 */
#include "repl/serve/parts.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "repl/config/config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Most bytes of an answer, of a stream, in one piece. */
#define PIECE_BYTES (64 << 10)
#define STREAM_BYTES (16 << 10)
#define HEADERS_MAX 3
/* Most bytes that we read of a body that no handler wants. */
#define UNWANTED_BYTES (64 << 10)
/* Memory for all bodies: so many times the longest. */
#define BODIES 8

struct header {
	const char *name;
	char *value; /* owned */
};

struct exchange {
	struct http *http;
	struct connections_client *client; /* NULL: it is gone */
	struct connections_peer peer;
	int64_t left_ms; /* when it went */
	char *path;	 /* its path then; owned */
	struct exchange *next, *before;
	void *own;
	struct repeat *repeat; /* NULL: the answer is not kept, or has been */
	struct repeats_hash hash;
	bool keeps, whole;
	uint64_t came;	 /* bytes of the body that came */
	size_t unwanted; /* those of them that we dropped */
	struct strbuf body;
	struct form *form;
	struct store_file *file;
	char *file_name;
	enum store_problem problem;
	/* the answer */
	int status;
	const char *type;
	struct strbuf answer;
	size_t owed; /* its bytes, in http.owed too */
	struct store_file *answer_file;
	bool streams;
	int64_t size, told; /* bytes of it (-1: unknown), given so far */
	struct header headers[HEADERS_MAX];
	int nheaders;
	bool begun, chunked;
	bool last; /* the connection ends behind the answer */
	struct span span;
};

struct http {
	struct http_rules rules;
	struct connections *connections;
	struct exchange *exchanges;
	size_t nexchanges;
	size_t held, owed; /* bytes of bodies, of answers */
	bool ending;	   /* connections end behind their answers */
	bool closing;
};

/* ---- an exchange ---- */

static void end_span(struct exchange *x)
{
	const struct http_calls *c = x->http->rules.calls;
	struct span *r = &x->span;

	r->peer = x->peer;
	r->status = x->status;
	r->in = x->came;
	r->out = (uint64_t)x->told;
	r->body = &x->body;
	span_end(r, x->client);
	c->done(c->arg, r);
	span_fini(r);
}

static struct exchange *begin_exchange(
	struct http *h, struct connections_client *c)
{
	struct exchange *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->http = h;
	x->client = c;
	x->peer = connections_peer(c);
	span_begin(&x->span, c);
	repeats_hash_begin(&x->hash, h->rules.repeats);
	x->problem = STORE_FINE;
	x->next = h->exchanges;
	if (x->next)
		x->next->before = x;
	h->exchanges = x;
	h->nexchanges++;
	connections_set_own(c, x);
	return x;
}

static void drop_body(struct exchange *x)
{
	x->http->held -= x->body.n;
	strbuf_free(&x->body);
}

/* Keep a refusal as the answer to a request that has run. */
static void keep_refusal(struct exchange *x, int status, const char *words)
{
	const struct http_calls *c = x->http->rules.calls;
	struct strbuf b = {0};

	c->words(c->arg, http_path(x), status, words, &b);
	repeats_answer(x->repeat, status, HTTP_JSON, &b);
	strbuf_free(&b);
	x->repeat = NULL;
}

/* Keep the answer, unless nothing has run. */
static void keep_answer(struct exchange *x)
{
	if (x->status >= 400 && x->status != 500)
		repeats_forget(x->repeat);
	else if (repeats_fits(x->repeat, x->answer.n))
		repeats_answer(x->repeat, x->status, x->type, &x->answer);
	else
		keep_refusal(x, 507,
			"the first answer was too long to be kept "
			"(serve.answers_size)");
	x->repeat = NULL;
}

/* Keep an answer for a request that ended without one. */
static void keep_loss(struct exchange *x)
{
	if (x->repeat)
		keep_refusal(x, 500,
			"the request was ended: its client was away for "
			"longer than serve.away");
}

static void end_exchange(struct exchange *x)
{
	struct http *h = x->http;

	h->rules.calls->over(h->rules.calls->arg, x);
	keep_loss(x);
	end_span(x);
	drop_body(x);
	h->owed -= x->owed;
	strbuf_free(&x->answer);
	form_close(x->form);
	if (x->file)
		store_release(h->rules.store, x->file);
	if (x->answer_file)
		store_release(h->rules.store, x->answer_file);
	*(x->before ? &x->before->next : &h->exchanges) = x->next;
	if (x->next)
		x->next->before = x->before;
	h->nexchanges--;
	for (int i = 0; i < x->nheaders; i++)
		free(x->headers[i].value);
	free(x->file_name);
	free(x->path);
	free(x);
}

static void handle_over(void *arg, struct connections_client *c)
{
	const struct http *h = arg;
	struct exchange *x = connections_own(c);

	if (!x->repeat || h->closing) {
		end_exchange(x);
		return;
	}
	x->path = strdup(http_path(x));
	if (!x->path || span_leave(&x->span, c) < 0) {
		end_exchange(x);
		return;
	}
	x->client = NULL;
	x->left_ms = now_ms();
}

/* ---- refusals ---- */

static void add_words(struct exchange *x, int status, const char *words)
{
	const struct http_calls *c = x->http->rules.calls;
	struct strbuf b = {0};

	c->words(c->arg, http_path(x), status, words, &b);
	http_answer(x, status, HTTP_JSON, &b);
}

const char *http_reason(int status)
{
	static const struct {
		int status;
		const char *reason;
	} reasons[] = {
		{200, "OK"},
		{201, "Created"},
		{204, "No Content"},
		{303, "See Other"},
		{400, "Bad Request"},
		{401, "Unauthorized"},
		{403, "Forbidden"},
		{404, "Not Found"},
		{405, "Method Not Allowed"},
		{408, "Request Timeout"},
		{409, "Conflict"},
		{410, "Gone"},
		{413, "Content Too Large"},
		{414, "URI Too Long"},
		{415, "Unsupported Media Type"},
		{417, "Expectation Failed"},
		{422, "Unprocessable Content"},
		{429, "Too Many Requests"},
		{431, "Request Header Fields Too Large"},
		{500, "Internal Server Error"},
		{501, "Not Implemented"},
		{503, "Service Unavailable"},
		{505, "HTTP Version Not Supported"},
		{507, "Insufficient Storage"},
	};

	for (size_t i = 0; i < COUNT(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Error";
}

static void add_head(const struct exchange *x, struct strbuf *out)
{
	time_t now = time(NULL);
	struct tm tm;
	char date[40];

	gmtime_r(&now, &tm);
	strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
	strbuf_printf(out, "HTTP/1.1 %d %s\r\nDate: %s\r\n", x->status,
		http_reason(x->status), date);
	if (x->type)
		strbuf_printf(out, "Content-Type: %s\r\n", x->type);
	strbuf_puts(out, "Cache-Control: no-store\r\n");
	/* nginx would hold events back until it has a buffer of them. */
	if (x->streams && x->size < 0)
		strbuf_puts(out, "X-Accel-Buffering: no\r\n");
	for (int i = 0; i < x->nheaders; i++)
		strbuf_printf(out, "%s: %s\r\n", x->headers[i].name,
			x->headers[i].value);
	strbuf_printf(out, "X-Request-Id: %s\r\n", x->span.id);
	if (x->chunked)
		strbuf_puts(out, "Transfer-Encoding: chunked\r\n");
	else if (x->size >= 0 && x->status != 204)
		strbuf_printf(
			out, "Content-Length: %lld\r\n", (long long)x->size);
	if (x->last)
		strbuf_puts(out, "Connection: close\r\n");
	else if (connections_head(x->client)->old)
		strbuf_puts(out, "Connection: keep-alive\r\n");
	strbuf_puts(out, "\r\n");
}

static bool is_head(const struct framing *asked)
{
	return asked->method && !strcmp(asked->method, "HEAD");
}

/* Append a whole answer, the last on its connection. */
static void add_last(
	struct exchange *x, const struct framing *asked, struct strbuf *out)
{
	x->last = true;
	add_head(x, out);
	if (x->answer.n == 0 || is_head(asked))
		return;
	strbuf_add(out, x->answer.s, x->answer.n);
	x->told = x->size;
}

/* Refuse a request of which the head is not whole, or the body is malformed.
 * Then it has an exchange, of which end_exchange() ends the span. */
static void add_refusal(void *arg, struct connections_client *client,
	int status, const char *words, struct strbuf *out)
{
	struct http *h = arg;
	const struct http_calls *c = h->rules.calls;
	const struct framing *asked = connections_head(client);
	struct exchange *whole = connections_own(client);
	struct exchange x = {.http = h,
		.client = client,
		.status = status,
		.type = HTTP_JSON};

	span_begin(&x.span, client);
	if (whole)
		memcpy(x.span.id, whole->span.id, sizeof(x.span.id));
	c->words(c->arg, asked->path ? asked->path : "", status, words,
		&x.answer);
	x.size = (int64_t)x.answer.n;
	add_last(&x, asked, out);
	if (whole) {
		whole->status = status;
		whole->told = x.told;
	} else {
		end_span(&x);
	}
	strbuf_free(&x.answer);
}

/* Answer without waiting for the rest of a long body. Ends the exchange. */
static void answer_early(struct exchange *x)
{
	struct strbuf b = {0};

	add_last(x, connections_head(x->client), &b);
	connections_answer(x->client, &b);
	end_exchange(x);
}

static void refuse_long(struct exchange *x)
{
	char words[80];

	snprintf(words, sizeof(words),
		"the request is longer than serve.request, %zu bytes",
		x->http->rules.body);
	add_words(x, 413, words);
}

static const char many[] = "too many long requests are on their way";
static const char no_body[] = "no body is expected here";

/* ---- the head ---- */

static void take_head(void *arg, struct connections_client *c)
{
	struct http *h = arg;
	struct exchange *x = begin_exchange(h, c);
	uint64_t n;

	if (!x)
		return;
	n = connections_head(c)->length;
	h->rules.calls->head(h->rules.calls->arg, x);
	if (!x->status && x->keeps && n != FRAMING_CHUNKS && n > h->rules.body)
		refuse_long(x);
	if (!x->status && !x->keeps && !x->form && n != FRAMING_CHUNKS &&
		n > UNWANTED_BYTES)
		add_words(x, 413, no_body);
	if (x->status && n > UNWANTED_BYTES)
		answer_early(x);
}

/* ---- the body ---- */

/* The oldest body but this one that is not whole yet: of its client, if that is
 * over its share, or else of anybody. */
static struct exchange *find_oldest(
	const struct http *h, const struct exchange *except, bool over_share)
{
	struct exchange *oldest = NULL;

	for (struct exchange *x = h->exchanges; x; x = x->next)
		if (x->body.n > 0 && !x->whole && x != except &&
			(!over_share ||
				connections_is_same(x->peer, except->peer)))
			oldest = x;
	return oldest;
}

/* True if this client has more than its share of all bodies with `n` bytes
 * more. A request that runs has its body until it is answered. */
static bool is_over_share(
	const struct http *h, size_t n, struct connections_peer who)
{
	const size_t share = (size_t)store_share_of_client(
		(int64_t)(BODIES * h->rules.body));

	if (h->held + n <= share)
		return false;
	for (const struct exchange *x = h->exchanges; x; x = x->next)
		if (connections_is_same(x->peer, who))
			n += x->body.n;
	return n > share;
}

/* Make room for `n` bytes of a body: refuse the requests with the oldest
 * bodies. */
static bool make_room(struct http *h, size_t n, const struct exchange *except)
{
	for (;;) {
		bool over = is_over_share(h, n, except->peer);
		struct exchange *oldest;

		if (!over && h->held + n <= BODIES * h->rules.body)
			return true;
		oldest = find_oldest(h, except, over);
		if (!oldest)
			return false;
		drop_body(oldest);
		http_add_header(oldest, "Retry-After", "1");
		add_words(oldest, 503, many);
		answer_early(oldest);
	}
}

static void keep_body(struct exchange *x, const char *p, size_t n)
{
	struct http *h = x->http;

	if (n > h->rules.body - x->body.n) {
		refuse_long(x);
	} else if (!make_room(h, n, x)) {
		http_add_header(x, "Retry-After", "1");
		add_words(x, 503, many);
	} else {
		repeats_hash_add(&x->hash, p, n);
		strbuf_add(&x->body, p, n);
		if (!x->body.failed) {
			h->held += n;
			return;
		}
		add_words(x, 503, "out of memory");
	}
	drop_body(x);
}

static void begin_file(void *arg, const char *name)
{
	struct exchange *x = arg;

	repeats_hash_add(&x->hash, name, strlen(name) + 1);
	x->file_name = strdup(name);
	x->file = store_begin(x->http->rules.store, http_peer(x));
	if (!x->file || !x->file_name)
		x->problem = STORE_FULL;
}

static void keep_content(void *arg, const char *p, size_t n)
{
	struct exchange *x = arg;

	repeats_hash_add(&x->hash, p, n);
	if (x->problem == STORE_FINE)
		x->problem = store_write(x->http->rules.store, x->file, p, n);
}

static void take_data(
	void *arg, struct connections_client *client, const char *p, size_t n)
{
	const struct http *h = arg;
	const struct http_calls *c = h->rules.calls;
	struct exchange *x = connections_own(client);

	x->came += n;
	if (x->status || !(x->form || x->keeps))
		x->unwanted += n;
	else if (x->form)
		form_take(x->form, p, n);
	else
		keep_body(x, p, n);
	if (x->form && x->came > h->rules.form)
		x->problem = STORE_FILE_FULL;
	if (!x->status && x->problem != STORE_FINE) {
		x->whole = true;
		c->whole(c->arg, x);
	}
	if (!x->status && x->unwanted > UNWANTED_BYTES)
		add_words(x, 413, no_body);
	if (x->unwanted > UNWANTED_BYTES)
		answer_early(x);
}

static void take_end(void *arg, struct connections_client *client)
{
	const struct http *h = arg;
	struct exchange *x = connections_own(client);

	if (x->status || x->whole)
		return;
	x->whole = true;
	h->rules.calls->whole(h->rules.calls->arg, x);
}

/* ---- the answer ---- */

/* Append bytes of an answer, as a chunk where the answer has no length. */
static void add_piece(
	const struct exchange *x, struct strbuf *out, const char *p, size_t n)
{
	if (x->chunked)
		strbuf_printf(out, "%zx\r\n", n);
	strbuf_add(out, p, n);
	if (x->chunked)
		strbuf_puts(out, "\r\n");
}

static ssize_t add_next_piece(struct exchange *x, struct strbuf *out)
{
	const struct http_calls *calls = x->http->rules.calls;
	static char piece[PIECE_BYTES];
	const char *p = piece;
	ssize_t n = x->size - x->told;

	if (n > PIECE_BYTES)
		n = PIECE_BYTES;
	if (x->streams)
		n = calls->more(calls->arg, x, piece, STREAM_BYTES);
	else if (x->answer_file)
		n = store_read(x->http->rules.store, x->answer_file, piece,
			(size_t)n, x->told);
	else
		p = x->answer.s + x->told;
	if (n > 0) {
		add_piece(x, out, p, (size_t)n);
		x->told += n;
	}
	return n;
}

static enum connections_more add_answer(struct exchange *x, struct strbuf *out)
{
	const enum connections_more done =
		x->last ? CONNECTIONS_LAST : CONNECTIONS_OVER;
	ssize_t n;

	if (x->told == x->size || is_head(connections_head(x->client)))
		return done;
	n = add_next_piece(x, out);
	if (n > 0)
		return x->told == x->size ? done : CONNECTIONS_MORE;
	if (n == 0 && x->streams)
		return CONNECTIONS_MORE;
	if (x->size >= 0)
		return CONNECTIONS_BROKEN;
	if (x->chunked)
		strbuf_puts(out, "0\r\n\r\n");
	return done;
}

static enum connections_more handle_more(
	void *arg, struct connections_client *c, struct strbuf *out)
{
	const struct http *h = arg;
	const struct framing *asked = connections_head(c);
	struct exchange *x = connections_own(c);

	if (!x->begun) {
		/* HTTP/1.0 has no chunks: an answer without a length ends with
		 * the connection. */
		x->chunked = x->size < 0 && !asked->old;
		x->last = h->ending || framing_is_last(asked) ||
			  (x->size < 0 && asked->old);
		add_head(x, out);
	}
	x->begun = true;
	return add_answer(x, out);
}

/* ---- open, close, turn ---- */

int http_open(struct http **out, const struct http_rules *rules, struct err *e)
{
	struct http *h = calloc(1, sizeof(*h));
	const struct connections_calls calls = {.head = take_head,
		.data = take_data,
		.whole = take_end,
		.more = handle_more,
		.over = handle_over,
		.refuse = add_refusal,
		.arg = h};

	if (!h)
		return err_errno(e, "serve");
	h->rules = *rules;
	if (connections_open(&h->connections, rules->fds, rules->nfds,
		    rules->clients, &calls, e) < 0) {
		free(h);
		return -1;
	}
	*out = h;
	return 0;
}

void http_close(struct http *h)
{
	if (!h)
		return;
	h->closing = true;
	connections_close(h->connections);
	while (h->exchanges)
		end_exchange(h->exchanges);
	free(h);
}

int http_add_client(struct http *h, int fd)
{
	return connections_add(h->connections, fd);
}

void http_end_connections(struct http *h)
{
	h->ending = true;
}

void http_drain(struct http *h)
{
	connections_drain(h->connections);
}

bool http_is_idle(const struct http *h)
{
	return h->nexchanges == 0 && !connections_owes(h->connections);
}

size_t http_clients(const struct http *h)
{
	return connections_clients(h->connections);
}

int http_fd(const struct http *h)
{
	return connections_fd(h->connections);
}

void http_turn(struct http *h)
{
	struct exchange *next;

	connections_turn(h->connections);
	for (struct exchange *x = h->exchanges; x; x = next) {
		next = x->next;
		if (!x->client &&
			now_ms() - x->left_ms >= h->rules.limits->away_ms)
			end_exchange(x);
	}
}

/* ---- one exchange ---- */

const char *http_method(const struct exchange *x)
{
	return connections_head(x->client)->method;
}

const char *http_path(const struct exchange *x)
{
	return x->client ? connections_head(x->client)->path : x->path;
}

const char *http_field(const struct exchange *x, enum framing_field field)
{
	return connections_head(x->client)->values[field];
}

bool http_has_body(const struct exchange *x)
{
	return connections_head(x->client)->length > 0;
}

void http_take_body(struct exchange *x)
{
	x->keeps = true;
}

void http_take_file(struct exchange *x)
{
	const struct form_calls calls = {
		.begin = begin_file, .content = keep_content, .arg = x};

	x->form = form_open(http_field(x, FRAMING_CONTENT_TYPE), &calls);
}

const struct strbuf *http_body(const struct exchange *x)
{
	return &x->body;
}

enum store_problem http_file(
	struct exchange *x, struct store_file **file, const char **name)
{
	*file = x->form && form_is_whole(x->form) ? x->file : NULL;
	*name = x->file_name;
	if (x->problem != STORE_FINE || !*file)
		return x->problem;
	x->file = NULL;
	return STORE_FINE;
}

bool http_is_whole(const struct exchange *x)
{
	return x->problem == STORE_FINE;
}

uint64_t http_hash(struct exchange *x)
{
	const char *accept = http_field(x, FRAMING_ACCEPT);

	/* No path has a NUL. */
	repeats_hash_add(&x->hash, "", 1);
	repeats_hash_add(&x->hash, accept ? accept : "",
		accept ? strlen(accept) + 1 : 1);
	repeats_hash_add(&x->hash, http_path(x), strlen(http_path(x)));
	return repeats_hash_end(&x->hash);
}

void http_set_repeat(struct exchange *x, struct repeat *e)
{
	x->repeat = e;
}

size_t http_of_client(const struct exchange *x)
{
	size_t n = 0;

	for (struct exchange *y = x->http->exchanges; y; y = y->next)
		n += y->whole &&
		     connections_is_same(http_peer(y), http_peer(x));
	return n;
}

struct connections_peer http_peer(const struct exchange *x)
{
	return x->peer;
}

const char *http_client(const struct exchange *x)
{
	return connections_name(x->client);
}

void http_set_peer(struct exchange *x, struct connections_peer peer)
{
	x->peer = peer;
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
	h->value = strdup(value);
	if (h->value)
		x->nheaders++;
}

/* Make room for an answer: drop the client that has read nothing of its own
 * answer for longest. A client that reads stays. */
static void make_room_for(struct exchange *x)
{
	struct http *h = x->http;
	struct exchange *slowest = x;

	h->owed += x->owed;
	while (h->owed > h->rules.answers && slowest) {
		int64_t most = CONNECTIONS_STALLED_MS;

		slowest = NULL;
		for (struct exchange *y = h->exchanges; y; y = y->next) {
			int64_t ms = y->owed > 0 && y != x
					     ? connections_stalled_ms(y->client)
					     : 0;

			if (ms > most) {
				most = ms;
				slowest = y;
			}
		}
		if (!slowest)
			return;
		connections_leave(slowest->client);
	}
}

struct span *http_span(struct exchange *x)
{
	return &x->span;
}

void http_answer(
	struct exchange *x, int status, const char *type, struct strbuf *body)
{
	/* Not 503, with which a proxy repeats a request: this one has run. */
	x->status = body->failed ? 500 : status;
	x->type = type;
	x->answer = *body;
	*body = (struct strbuf){0};
	if (x->repeat)
		keep_answer(x);
	if (!x->client) {
		end_exchange(x);
		return;
	}
	x->owed = x->answer.n;
	x->size = (int64_t)x->answer.n;
	make_room_for(x);
	connections_go_on(x->client);
}

void http_answer_file(struct exchange *x, struct store_file *f)
{
	store_hold(f);
	x->answer_file = f;
	x->size = f->size;
	x->status = 200;
	x->type = "application/octet-stream";
	connections_go_on(x->client);
}

void http_answer_stream(struct exchange *x, const char *type, int64_t size)
{
	x->streams = true;
	x->size = size;
	x->status = 200;
	x->type = type;
	if (x->client)
		connections_go_on(x->client);
	else
		end_exchange(x);
}

bool http_is_kept(const struct exchange *x)
{
	return x->repeat;
}

void http_keep_place(struct exchange *x, const char *place)
{
	http_add_header(x, "Content-Location", place);
	repeats_answer_elsewhere(x->repeat, place);
	x->repeat = NULL;
}

void http_go_on(struct exchange *x)
{
	if (x->streams)
		connections_go_on(x->client);
}

int http_status(const struct exchange *x)
{
	return x->status;
}
