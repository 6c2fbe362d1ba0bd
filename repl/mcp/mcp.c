/* SPDX-License-Identifier: MIT */
/*
 * mcp.c - cellblock --mcp
 *
 * Runs in:   front end; confined before it reads the first message: it can open
 *            no file, and starts only sessions, through the supplier
 * Trusts:    no message
 * Leaves:    an answer for each request and each malformed line, and no session
 *
 * Calls that need the session wait in a queue. We answer all other requests at
 * once, also while a cell runs. Old clients begin with `initialize`; since
 * version 2026-07-28 of the protocol clients send the version with each request
 * instead.
 */
#include "mcp.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/prewarm.h"
#include "jail/spec.h"
#include "repl/config/config.h"
#include "repl/json/json.h"
#include "repl/mcp/parts.h"
#include "repl/text/text.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Most sessions at a time: the current one, and those that are ending. */
#define SESSIONS_MAX 4
/* Most calls that wait. All their messages together are no larger than
 * longest_message(); each JSON value counts VALUE_BYTES more. */
#define CALLS_MAX 64
#define VALUE_BYTES 64
/* Messages below this size can be written without waiting after POLLOUT
 * (pipe(7): PIPE_BUF). */
#define SMALL 4096

/* The versions of the protocol, newest first; the first has no handshake. */
static const char *const versions[] = {
	"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};
enum { STATELESS = 0, NEWEST = 1, BATCHES = 3 };
enum { NVERSIONS = COUNT(versions) };

/* The key of the protocol's version in a request without a handshake. */
static const char version_key[] = "io.modelcontextprotocol/protocolVersion";

/* The answers to a batch, which we send together. */
struct message_batch {
	struct strbuf b;
	int waiting; /* messages without an answer yet */
};

struct mcp_waiting {
	struct call call;
	struct message_batch *batch; /* NULL: the call came alone */
	size_t bytes;		     /* that its message counts for */
};

struct mcp {
	struct pool *pool;
	const struct config *cfg; /* borrowed */
	struct stream in;
	struct calls *calls;
	int version; /* the one agreed on */
	struct mcp_waiting *queue[CALLS_MAX];
	size_t n, bytes; /* the calls that wait; their bytes */
	bool begun;	 /* calls.c serves the first of them */
	bool failed;	 /* no answer can be written: `err` */
	struct err err;
};

/* ---- answers ---- */

static void emit_message(struct mcp *m, struct strbuf *b)
{
	strbuf_puts(b, "\n");
	if (!m->failed && b->failed) {
		m->failed = true;
		err_set(&m->err, "write an answer: out of memory");
	} else if (!m->failed && io_write_full(STDOUT_FILENO, b->s, b->n) < 0) {
		m->failed = true;
		err_errno(&m->err, "write an answer");
	}
	strbuf_free(b);
}

/* Count a message of a batch as done. `b` is its answer, or empty. */
static void finish_batched(
	struct mcp *m, struct message_batch *batch, struct strbuf *b)
{
	if (b->n) {
		strbuf_puts(&batch->b, batch->b.n ? ", " : "[");
		strbuf_add(&batch->b, b->s, b->n);
		batch->b.failed |= b->failed;
	}
	strbuf_free(b);
	if (--batch->waiting > 0)
		return;
	if (batch->b.n) {
		strbuf_puts(&batch->b, "]");
		emit_message(m, &batch->b);
	}
	free(batch);
}

/* Send `b` as the answer to a message; empty: it has none. */
static void answer_message(
	struct mcp *m, struct message_batch *batch, struct strbuf *b)
{
	if (batch)
		finish_batched(m, batch, b);
	else if (b->n)
		emit_message(m, b);
}

static void add_error(
	struct strbuf *b, const json_t *id, int code, const char *text)
{
	message_add_error(b, id, code, text);
	strbuf_puts(b, "}}");
}

static void send_error(struct mcp *m, int code, const char *text)
{
	struct strbuf b = {0};

	add_error(&b, NULL, code, text);
	emit_message(m, &b);
}

/* ---- answers without the session ---- */

static void add_versions(struct strbuf *b, const char *key)
{
	emit_open(b, key, '[');
	for (int i = 0; i < NVERSIONS; i++)
		emit_text(b, NULL, versions[i]);
	emit_close(b, ']');
}

/* Add our capabilities, and the instructions for the model. */
static void add_offer(struct mcp *m, struct strbuf *b)
{
	const struct limits *l = &m->cfg->limits;
	char time[TEXT_HUMAN], memory[TEXT_HUMAN], home[TEXT_HUMAN];
	struct strbuf text = {0};

	strbuf_printf(&text,
		"Python in a jail: no network, no files of the host. A cell "
		"may take %s, the session %s of memory, files %s. Variables "
		"and files last until the session ends.",
		text_time(time, l->cell_wall_ms),
		text_size(memory, (uint64_t)l->memory_bytes),
		text_size(home, (uint64_t)l->home_bytes));
	emit_word(b, "capabilities", "{\"tools\": {}, \"resources\": {}}");
	emit_bytes(b, "instructions", strbuf_text(&text), text.n);
	strbuf_free(&text);
}

/* Agree on the version that the client asks for, or else on the newest with a
 * handshake. */
static int add_initialize(
	struct mcp *m, const struct message *q, struct strbuf *b)
{
	const json_t *asked = message_param(q, "protocolVersion", JSON_STRING);

	if (!asked)
		return -1;
	m->version = NEWEST;
	for (int i = NEWEST; i < NVERSIONS; i++)
		if (!strcmp(versions[i], json_string_value(asked)))
			m->version = i;
	emit_text(b, "protocolVersion", versions[m->version]);
	add_offer(m, b);
	message_add_server(b, "serverInfo");
	return 0;
}

static int add_discover(
	struct mcp *m, const struct message *q, struct strbuf *b)
{
	(void)q;
	add_versions(b, "supportedVersions");
	add_offer(m, b);
	return 0;
}

static int add_nothing(struct mcp *m, const struct message *q, struct strbuf *b)
{
	(void)m;
	(void)q;
	(void)b;
	return 0;
}

static int add_tools(struct mcp *m, const struct message *q, struct strbuf *b)
{
	(void)q;
	calls_add_tools(m->calls, b);
	return 0;
}

static int add_templates(
	struct mcp *m, const struct message *q, struct strbuf *b)
{
	(void)m;
	(void)q;
	emit_open(b, "resourceTemplates", '[');
	emit_open(b, NULL, '{');
	emit_text(b, "uriTemplate", RESOURCE_TEMPLATE);
	emit_text(b, "name", "file");
	emit_text(b, "title", "A file of the session's home");
	strbuf_puts(b, "}]");
	return 0;
}

/* ---- methods ---- */

/* All methods. add() appends the members of the result; -1: the params are
 * wrong. A method without add() is a call of this kind. */
static const struct method {
	const char *name;
	int (*add)(struct mcp *m, const struct message *q, struct strbuf *b);
	enum calls_kind kind;
	enum message_cache cache;
	bool handshake; /* only for clients with one */
} methods[] = {
	{"initialize", add_initialize, .handshake = true},
	{"server/discover", add_discover, .cache = MESSAGE_FOR_GOOD},
	{"ping", add_nothing},
	{"tools/list", add_tools, .cache = MESSAGE_FOR_GOOD},
	{"tools/call", NULL, CALLS_TOOL},
	{"resources/list", NULL, CALLS_RESOURCES},
	{"resources/templates/list", add_templates, .cache = MESSAGE_FOR_GOOD},
	{"resources/read", NULL, CALLS_READ},
};

static const struct method *find_method(const char *name)
{
	for (size_t i = 0; i < COUNT(methods); i++)
		if (!strcmp(methods[i].name, name))
			return &methods[i];
	return NULL;
}

/* A request that names a version must name the one without a handshake. */
static bool version_is_known(const json_t *version)
{
	const char *s = json_string_value(version);

	return s && !strcmp(s, versions[STATELESS]);
}

static void add_version_error(
	struct strbuf *b, const json_t *id, const json_t *version)
{
	message_add_error(
		b, id, MESSAGE_NO_VERSION, "Unsupported protocol version");
	emit_open(b, "data", '{');
	add_versions(b, "supported");
	emit_value(b, "requested", version);
	strbuf_puts(b, "}}}");
}

/* Longest message: one file, in base64 or with escapes, and one cell. No limit
 * of the session counts it, because this process holds it. */
static size_t longest_message(const struct limits *l)
{
	return (size_t)(2 * l->max_file_bytes + 6 * l->source_bytes) +
	       (1 << 20);
}

static bool is_in_use(const struct mcp *m, const json_t *id)
{
	for (size_t i = 0; i < m->n; i++)
		if (json_equal(m->queue[i]->call.m.id, id))
			return true;
	return false;
}

/* Let a call wait for the session (takes the message). False: too many wait. */
static bool enqueue_call(struct mcp *m, struct message *q,
	struct message_batch *batch, const struct method *method, size_t bytes)
{
	size_t most = longest_message(&m->cfg->limits);
	bool fits = m->n == 0 || (m->n < CALLS_MAX && m->bytes + bytes <= most);
	struct mcp_waiting *w = fits ? calloc(1, sizeof(*w)) : NULL;

	if (!w)
		return false;
	w->call = (struct call){.m = *q,
		.kind = method->kind,
		.stateless = message_meta(q, version_key) != NULL};
	w->batch = batch;
	w->bytes = bytes;
	m->bytes += bytes;
	m->queue[m->n++] = w;
	*q = (struct message){0};
	return true;
}

/* Answer a request, or let it wait. */
static void serve_request(struct mcp *m, struct message *q,
	struct message_batch *batch, size_t bytes)
{
	const json_t *version = message_meta(q, version_key);
	const struct method *method = find_method(q->method);
	struct strbuf b = {0};
	size_t before;

	if (is_in_use(m, q->id)) {
		add_error(&b, NULL, MESSAGE_NO_REQUEST,
			"Invalid Request: the id of a request that is not "
			"answered yet");
	} else if (version && !version_is_known(version)) {
		add_version_error(&b, q->id, version);
	} else if (!method || (method->handshake && (version || batch))) {
		add_error(&b, q->id, MESSAGE_NO_METHOD, "Method not found");
	} else if (!method->add) {
		if (enqueue_call(m, q, batch, method, bytes))
			return;
		add_error(&b, q->id, MESSAGE_FAILED,
			"busy: too many calls wait for the session");
	} else {
		before = b.n;
		message_add_result(&b, q->id);
		if (method->add(m, q, &b) < 0) {
			b.n = before;
			add_error(&b, q->id, MESSAGE_BAD_PARAMS,
				"Invalid params");
		} else {
			message_end(&b, version != NULL, method->cache);
		}
	}
	answer_message(m, batch, &b);
}

/* ---- notifications ---- */

/* Take a call out of the queue, and answer it with `b`. */
static void dequeue_call(struct mcp *m, size_t at, struct strbuf *b)
{
	struct mcp_waiting *w = m->queue[at];

	m->bytes -= w->bytes;
	ARRAY_REMOVE(m->queue, m->n, at);
	answer_message(m, w->batch, b);
	message_fini(&w->call.m);
	free(w);
}

static void cancel_call(struct mcp *m, const json_t *id)
{
	struct strbuf nothing = {0};

	for (size_t i = 0; i < m->n; i++) {
		if (!json_equal(m->queue[i]->call.m.id, id))
			continue;
		if (i > 0 || !m->begun) {
			dequeue_call(m, i, &nothing);
		} else if (!m->queue[i]->call.dropped) {
			m->queue[i]->call.dropped = true;
			calls_interrupt(m->calls);
		}
		return;
	}
}

static void handle_notification(struct mcp *m, const struct message *q)
{
	const json_t *id = json_object_get(q->params, "requestId");

	if (id && !strcmp(q->method, "notifications/cancelled"))
		cancel_call(m, id);
}

/* ---- messages ---- */

/* Handle a message (`root` is taken). */
static void handle_message(
	struct mcp *m, json_t *root, struct message_batch *batch, size_t bytes)
{
	struct strbuf b = {0};
	struct message q;

	switch (message_take(&q, root)) {
	case MESSAGE_REQUEST:
		serve_request(m, &q, batch, bytes);
		break;
	case MESSAGE_NOTE:
		handle_notification(m, &q);
		answer_message(m, batch, &b);
		break;
	case MESSAGE_ANSWER:
		answer_message(m, batch, &b);
		break;
	case MESSAGE_BAD:
		add_error(&b, q.id, q.code, q.why);
		answer_message(m, batch, &b);
		break;
	}
	message_fini(&q);
}

/* Handle a list of messages, in the version of the protocol that has lists. */
static void handle_batch(struct mcp *m, const json_t *list, size_t bytes)
{
	struct message_batch *batch;
	json_t *v;
	size_t i;

	if (m->version != BATCHES || json_array_size(list) == 0 ||
		json_array_size(list) > CALLS_MAX) {
		send_error(m, MESSAGE_NO_REQUEST,
			json_array_size(list) > CALLS_MAX
				? "Invalid Request: a batch of more than 64"
				: "Invalid Request: no batch, in this version "
				  "of the protocol");
		return;
	}
	batch = calloc(1, sizeof(*batch));
	if (!batch) {
		send_error(m, MESSAGE_FAILED, "out of memory");
		return;
	}
	/* Count one more: else the first answer could end the batch. */
	batch->waiting = (int)json_array_size(list) + 1;
	json_array_foreach(list, i, v)
		handle_message(m, json_incref(v), batch, bytes);
	finish_batched(m, batch, &(struct strbuf){0});
}

static void handle_line(struct mcp *m, const char *text, size_t n)
{
	size_t bytes = n + (size_t)m->in.found * VALUE_BYTES;
	char why[JSON_ERROR_TEXT_LENGTH + 32];
	json_error_t e;
	json_t *root = json_loadb(text, n,
		JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &e);

	if (!root) {
		snprintf(why, sizeof(why), "Parse error: %s", e.text);
		send_error(m, MESSAGE_NO_JSON, why);
	} else if (json_is_array(root)) {
		handle_batch(m, root, bytes);
		json_decref(root);
	} else {
		handle_message(m, root, NULL, bytes);
	}
}

/* Handle the lines that were read. False: the input has ended. */
static bool handle_lines(struct mcp *m)
{
	const char *text;
	size_t n;

	for (;;) {
		switch (stream_try(&m->in, &text, &n)) {
		case STREAM_MORE:
			return true;
		case STREAM_END:
		case STREAM_FAILED:
			return false;
		case STREAM_REQUEST:
			handle_line(m, text, n);
			break;
		case STREAM_LONG:
			send_error(m, MESSAGE_NO_REQUEST,
				"Invalid Request: longer than any that can be "
				"in order");
			break;
		case STREAM_DEEP:
			send_error(m, MESSAGE_NO_REQUEST,
				"Invalid Request: nested more than 200 deep");
			break;
		case STREAM_MANY:
			send_error(m, MESSAGE_NO_REQUEST,
				"Invalid Request: more than 1000000 values");
			break;
		}
	}
}

/* ---- the loop ---- */

/* This process holds the answers of a batch until its last call is done.
 * Together they may be as long as one answer; a longer one becomes an error. */
static void limit_batch(const struct mcp_waiting *w, struct strbuf *b)
{
	if (!w->batch || w->batch->b.n + b->n <= CALLS_ANSWER_MAX)
		return;
	strbuf_free(b);
	add_error(b, w->call.m.id, MESSAGE_FAILED,
		"the answers of the batch are longer than 8 MiB");
}

/* Begin the calls whose turn it is, and answer those that are done. */
static void advance_queue(struct mcp *m)
{
	struct strbuf b;

	while (m->n > 0 && !m->failed) {
		if (!m->begun && !calls_is_ready(m->calls))
			return;
		if (!m->begun)
			calls_begin(m->calls, &m->queue[0]->call);
		m->begun = true;
		if (!calls_is_done(m->calls))
			return;
		b = (struct strbuf){0};
		calls_answer(m->calls, &b);
		limit_batch(m->queue[0], &b);
		m->begun = false;
		dequeue_call(m, 0, &b);
	}
}

/* Send a progress notification, unless the client reads too slowly. */
static void send_progress(struct mcp *m)
{
	struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
	struct strbuf b = {0};

	calls_add_progress(m->calls, &b);
	if (b.n && b.n < SMALL && poll(&out, 1, 0) > 0)
		emit_message(m, &b);
	strbuf_free(&b);
}

/* 1; 0 when the client has gone; -1 with e. */
static int serve_turn(struct mcp *m, struct err *e)
{
	struct pollfd p[1 + CALLS_POLLS];
	int timeout_ms = calls_polls(m->calls, p + 1);

	p[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
	if (poll(p, 1 + CALLS_POLLS, timeout_ms) < 0)
		return errno == EINTR ? 1 : err_errno(e, "wait for messages");
	calls_turn(m->calls, p + 1);
	if (p[0].revents && stream_read(&m->in) < 0)
		return err_errno(e, "read standard input");
	if (!handle_lines(m))
		return 0;
	advance_queue(m);
	send_progress(m);
	if (m->failed)
		*e = m->err;
	return m->failed ? -1 : 1;
}

int mcp_run(struct mcp *m, struct log *log, struct err *e)
{
	int r;

	/* A write that fails shall return an error. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	stream_open(&m->in, STDIN_FILENO, longest_message(&m->cfg->limits),
		REQUEST_DEPTH_MAX, REQUEST_VALUES_MAX);
	m->in.lines = true;
	r = calls_open(&m->calls, m->pool, m->cfg, log, e);
	while (r >= 0 && (r = serve_turn(m, e)) > 0)
		;
	stream_close(&m->in);
	if (r < 0 && e->code == EPIPE && e->kind == ERR_FAILED)
		return 128 + SIGPIPE;
	return r;
}

int mcp_open(struct mcp **out, const struct config *cfg,
	const struct jail_spec *spec, struct err *e)
{
	struct pool_offer offer = {.spec = spec,
		.pythons = &spec->python,
		.npythons = 1,
		.most = SESSIONS_MAX};
	struct mcp *m = calloc(1, sizeof(*m));

	if (!m)
		return err_errno(e, "begin to serve");
	*out = m;
	m->cfg = cfg;
	m->version = NEWEST;
	if (pool_open(&m->pool, &offer, e) < 0)
		return -1;
	pool_want(m->pool, 0, SPEC_SESSION, 1, 0);
	return 0;
}

int mcp_close(struct mcp *m, struct err *e)
{
	struct strbuf nothing = {0};
	int failed, r;

	m->failed = true; /* the client reads no more answers */
	failed = calls_close(m->calls, e);
	while (m->n > 0)
		dequeue_call(m, m->n - 1, &nothing);
	r = pool_close(m->pool, failed < 0 ? NULL : e);
	free(m);
	return failed < 0 ? -1 : r;
}
