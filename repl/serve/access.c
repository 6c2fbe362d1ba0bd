/* SPDX-License-Identifier: MIT */
/*
 * access.c - the log of requests
 *
 * Runs in:   front end, confined but for access_open()
 * Holds:     a socket to the journal, or standard error
 * Trusts:    no text: what a client or a jail wrote cannot begin a line or a
 *            field of ours
 * Leaves:    a line of JSON for each request on standard error, or an entry of
 *            the journal. No line waits longer than the server can: lines for
 *            which there is no room are lost, and counted
 *
 * The journal takes a datagram for each entry:
 * https://systemd.io/JOURNAL_NATIVE_PROTOCOL
 */
#include "repl/serve/parts.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "repl/config/config.h"
#include "repl/json/json.h"
#include "repl/session/session.h"

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define JOURNAL "/run/systemd/journal/socket"
/* Most bytes of lines that wait until they can be written. */
#define WAITING_BYTES (256 << 10)
/* How long the last lines may take. */
#define LAST_MS 1000
/* Most bytes of a body in a line. */
#define BODY_BYTES_MAX 4096

/* A line of JSON, or a datagram for the journal. */
struct access_line {
	struct access_line *next;
	uint64_t lost; /* it says that so many lines were lost; or 0 */
	size_t n;
	char s[];
};

struct access {
	const struct config_serve *rules;
	int journal; /* -1: standard error */
	struct access_line *first, **end;
	size_t bytes;	/* of all lines that wait */
	size_t written; /* bytes of the first line that were written */
	bool torn;	/* the last line was written in part */
	uint64_t lost, untold;
};

/* ---- open ---- */

/* True if standard error goes to the journal: systemd.exec(5). */
static bool is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 &&
	       fstat(STDERR_FILENO, &st) == 0 && st.st_dev == dev &&
	       st.st_ino == ino;
}

int access_open(
	struct access **out, const struct config_serve *rules, struct err *e)
{
	struct access *a = calloc(1, sizeof(*a));

	if (!a)
		return err_errno(e, "serve");
	a->rules = rules;
	a->journal = -1;
	a->end = &a->first;
	*out = a;
	if (rules->log_to == SERVE_LOG_TO_JOURNAL ||
		(rules->log_to == SERVE_LOG_TO_AUTO && is_journal()))
		a->journal = notify_connect(JOURNAL);
	if (a->journal >= 0 || rules->log_to != SERVE_LOG_TO_JOURNAL)
		return 0;
	err_errno(e, "serve.log_to: connect to the journal");
	return err_kind_set(e, ERR_CONFIG);
}

/* ---- a line ---- */

static void add_field_name(struct strbuf *b, const char *key)
{
	strbuf_puts(b, "CELLBLOCK_");
	for (; *key; key++)
		strbuf_add(b, &(char){(char)toupper(*key)}, 1);
}

/* A value with line ends follows its length: it cannot begin a field. */
static void add_value(struct strbuf *b, const char *s, size_t n)
{
	uint64_t length = htole64(n);

	if (memchr(s, '\n', n)) {
		strbuf_puts(b, "\n");
		strbuf_add(b, &length, sizeof(length));
	} else {
		strbuf_puts(b, "=");
	}
	strbuf_add(b, s, n);
	strbuf_puts(b, "\n");
}

static void add_bytes(const struct access *a, struct strbuf *b, const char *key,
	const char *s, size_t n)
{
	if (a->journal < 0) {
		emit_bytes(b, key, s, n);
	} else {
		add_field_name(b, key);
		add_value(b, s, n);
	}
}

/* A field of the journal without a value is left out. */
static void add_text(const struct access *a, struct strbuf *b, const char *key,
	const char *s)
{
	if (s)
		add_bytes(a, b, key, s, strlen(s));
	else if (a->journal < 0)
		emit_text(b, key, NULL);
}

static void add_number(const struct access *a, struct strbuf *b,
	const char *key, bool known, int64_t n)
{
	if (a->journal < 0) {
		emit_int_or_null(b, key, known, n);
	} else if (known) {
		add_field_name(b, key);
		strbuf_printf(b, "=%" PRId64 "\n", n);
	}
}

static void add_time(struct strbuf *b)
{
	struct timespec now;
	struct tm tm;
	char day[24], text[40];

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text, sizeof(text), "%s.%03dZ", day,
		(int)(now.tv_nsec / 1000000));
	emit_text(b, "time", text);
}

/* The levels of syslog(3). */
static void begin_line(const struct access *a, struct strbuf *b, int level,
	const char *message)
{
	static const char *const names[] = {
		[3] = "error", [4] = "warning", [6] = "info"};

	if (a->journal < 0) {
		emit_open(b, NULL, '{');
		add_time(b);
		emit_text(b, "level", names[level]);
		if (message)
			emit_text(b, "message", message);
		return;
	}
	strbuf_printf(b, "SYSLOG_IDENTIFIER=cellblock\nPRIORITY=%d\n", level);
	if (!message)
		return;
	strbuf_puts(b, "MESSAGE");
	add_value(b, message, strlen(message));
}

/* Let a line (freed) wait until access_flush() writes it. */
static void end_line(struct access *a, struct strbuf *b, uint64_t lost)
{
	size_t torn = a->torn && a->journal < 0;
	struct access_line *l = NULL;

	if (a->journal < 0) {
		emit_close(b, '}');
		strbuf_puts(b, "\n");
	}
	if (!b->failed && a->bytes + b->n <= WAITING_BYTES)
		l = malloc(sizeof(*l) + torn + b->n);
	if (l) {
		*l = (struct access_line){.lost = lost, .n = torn + b->n};
		l->s[0] = '\n';
		memcpy(l->s + torn, b->s, b->n);
		a->torn = false;
		a->bytes += l->n;
		*a->end = l;
		a->end = &l->next;
		a->untold -= lost;
	} else if (!lost) {
		a->lost++;
		a->untold++;
	}
	strbuf_free(b);
}

static void say_lost(struct access *a)
{
	struct strbuf b = {0};
	char words[80];

	snprintf(words, sizeof(words), "%" PRIu64 " lines of the log are lost",
		a->untold);
	begin_line(a, &b, 4, words);
	end_line(a, &b, a->untold);
}

static void say_line(struct access *a, bool bad, const char *s, size_t n)
{
	char words[4096];
	struct strbuf b = {0};

	snprintf(words, sizeof(words), "%.*s", (int)n, s);
	if (a->untold)
		say_lost(a);
	begin_line(a, &b, bad ? 3 : 6, words);
	end_line(a, &b, 0);
}

void access_say(struct access *a, bool bad, const char *words)
{
	while (*words) {
		size_t n = strcspn(words, "\n");

		if (n > 0)
			say_line(a, bad, words, n);
		words += n + (words[n] == '\n');
	}
}

static void add_body(
	const struct access *a, struct strbuf *b, const struct strbuf *body)
{
	size_t n = body->n;

	if (n > BODY_BYTES_MAX)
		n = utf8_start(body->s, BODY_BYTES_MAX);
	if (n > 0)
		add_bytes(a, b, "body", body->s, n);
}

static void add_request(const struct access *a, struct strbuf *b,
	const struct span *r, const char *tenant)
{
	add_text(a, b, "id", r->id);
	add_text(a, b, "client", r->client);
	add_text(a, b, "tenant", tenant);
	add_text(a, b, "method", r->method);
	add_text(a, b, "path", r->place_path);
	add_number(a, b, "status", r->status, r->status);
	add_text(a, b, "outcome", span_outcome_name(span_outcome(r)));
	add_text(a, b, "limit", verdict_limit_key(r->limit));
	add_number(a, b, "duration_ms", true, r->took_ns / 1000000);
	add_number(a, b, "cpu_ms", r->cpu_ms >= 0, r->cpu_ms);
	add_number(a, b, "bytes_in", true, (int64_t)r->in);
	add_number(a, b, "bytes_out", true, (int64_t)r->out);
	if (r->error)
		add_text(a, b, "error", r->error);
	if (a->rules->log == SERVE_LOG_BODIES)
		add_body(a, b, r->body);
}

void access_write(struct access *a, const struct span *r, const char *tenant)
{
	enum span_outcome how = span_outcome(r);
	bool bad = how == SPAN_FAILED || how == SPAN_BUSY;
	struct strbuf b = {0};
	char message[700];

	if (a->rules->log < (bad ? SERVE_LOG_ERRORS : SERVE_LOG_REQUESTS))
		return;
	if (a->untold)
		say_lost(a);
	snprintf(message, sizeof(message), "%s %s: %s%s%s",
		r->method ? r->method : "-",
		r->place_path ? r->place_path : "-", span_outcome_name(how),
		r->error ? ": " : "", r->error ? r->error : "");
	begin_line(a, &b,
		how == SPAN_FAILED ? 3
		: bad		   ? 4
				   : 6,
		a->journal < 0 ? NULL : message);
	add_request(a, &b, r, tenant);
	end_line(a, &b, 0);
}

/* ---- writing ---- */

static void drop_line(struct access *a)
{
	struct access_line *l = a->first;

	a->first = l->next;
	if (!a->first)
		a->end = &a->first;
	a->bytes -= l->n;
	a->written = 0;
	free(l);
}

/* The log can take nothing: it is full, or nobody reads it. */
static void lose_lines(struct access *a)
{
	a->torn |= a->written > 0 || a->first->s[0] == '\n';
	while (a->first) {
		a->lost += !a->first->lost;
		a->untold += a->first->lost ? a->first->lost : 1;
		drop_line(a);
	}
}

/* Others may have the same pipe or terminal on their standard error, so it is
 * made to not block only while we write. */
static ssize_t write_first(const struct access *a)
{
	const char *s = a->first->s + a->written;
	size_t n = a->first->n - a->written;
	int flags;
	ssize_t w;

	if (a->journal >= 0)
		return send(a->journal, s, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	flags = fcntl(STDERR_FILENO, F_GETFL);
	fcntl(STDERR_FILENO, F_SETFL, flags | O_NONBLOCK);
	w = write(STDERR_FILENO, s, n);
	n = (size_t)errno;
	fcntl(STDERR_FILENO, F_SETFL, flags);
	errno = (int)n;
	return w;
}

void access_flush(struct access *a)
{
	while (a->first) {
		ssize_t n = write_first(a);

		if (n < 0 && (errno == EAGAIN || errno == ENOBUFS))
			return;
		if (n <= 0) {
			lose_lines(a);
			return;
		}
		a->written += (size_t)n;
		if (a->written == a->first->n)
			drop_line(a);
	}
}

uint64_t access_lost(const struct access *a)
{
	return a->lost;
}

void access_close(struct access *a)
{
	const int64_t until = now_ms() + LAST_MS;
	struct pollfd p = {.events = POLLOUT};

	if (!a)
		return;
	p.fd = a->journal < 0 ? STDERR_FILENO : a->journal;
	access_flush(a);
	while (a->first && now_ms() < until) {
		poll(&p, 1, 100);
		access_flush(a);
	}
	while (a->first)
		drop_line(a);
	fd_drop(&a->journal);
	free(a);
}
