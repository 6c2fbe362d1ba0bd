/* SPDX-License-Identifier: MIT */
/*
 * head.c - where a request begins and ends, beyond doubt
 *
 * Runs in:   front end, confined
 * Trusts:    nobody: the bytes are a client's
 * Leaves:    the request, written anew: only what this file understood
 *
 * RFC 9112, and nothing that it merely tolerates. Whatever two programs could
 * read in two ways is refused: a proxy and we might disagree on where a request
 * ends, and so on whose the next one is. Only fields that somebody asks for are
 * passed on, no query, and chunks without what may be attached to them: the
 * parser behind us sees few kinds of input.
 */
#include "repl/serve/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Bytes of a line, of a head and of trailers; lines; bytes of a path. */
#define LINE_MAX_BYTES 8192
#define HEAD_MAX_BYTES 16384
#define LINES_MAX 100
#define CHUNK_LINE_MAX 256
/* Empty lines before a request: some clients end a body with one. */
#define EMPTY_MAX 2
#define METHOD_MAX 20

static void wrong(struct head *h, int status, const char *words)
{
	h->state = HEAD_WRONG;
	h->status = status;
	h->words = words;
}

/* RFC 9110, 5.6.2 */
static bool is_token(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (s[i] <= ' ' || s[i] > '~' ||
			strchr("\"(),/:;<=>?@[\\]{}", s[i]))
			return false;
	return n > 0;
}

/* ---- the first line ---- */

static bool starts(const char *s, size_t n, const char *with)
{
	size_t m = strlen(with);

	return n >= m && !strncasecmp(s, with, m);
}

/* The path in what is asked for: `/path?query`, or the same behind a scheme and
 * a host, which is kept. */
static bool find_path(struct head *h, const char **path, size_t *n)
{
	const char *p = *path, *end = p + *n, *slash;

	if (starts(p, *n, "http://") || starts(p, *n, "https://")) {
		p = strchr(p, ':') + 3;
		slash = memchr(p, '/', (size_t)(end - p));
		slash = slash ? slash : end;
		h->host = strndup(p, (size_t)(slash - p));
		if (!h->host)
			return false;
		p = slash;
	}
	*n = (size_t)(end - p);
	*path = p;
	if (*n == 0 || (*p != '/' && (*p != '*' || *n > 1)))
		return false;
	*n = strcspn(p, "? ");
	for (const char *c = p; c < p + *n; c++)
		if (*c == '%' && c[1] == '0' && c[2] == '0')
			return false;
	return !memchr(p, '#', *n);
}

static void take_version(struct head *h, const char *version)
{
	h->old = !strcmp(version, "HTTP/1.0");
	if (h->old || !strcmp(version, "HTTP/1.1"))
		return;
	if (!strncmp(version, "HTTP/", 5))
		wrong(h, 505, "HTTP/1.1 and HTTP/1.0 are served");
	else
		wrong(h, 400, "the first line has no version of HTTP");
}

static void take_start(struct head *h, const char *s, size_t n)
{
	size_t method = strcspn(s, " "), target;
	const char *path = s + method + 1, *version;

	if (n == 0) {
		if (h->lines > EMPTY_MAX)
			wrong(h, 400, "empty lines instead of a request");
		return;
	}
	if (!is_token(s, method) || method > METHOD_MAX) {
		wrong(h, 400, "the first line has no method");
		return;
	}
	target = method < n ? strcspn(path, " ") : 0;
	version = path + target + 1;
	if (target == 0 || path[target] != ' ' || strchr(version, ' ')) {
		wrong(h, 400,
			"the first line is not METHOD, path and HTTP/1.1");
		return;
	}
	take_version(h, version);
	if (h->state == HEAD_WRONG)
		return;
	if (!find_path(h, &path, &target)) {
		wrong(h, 400,
			"the path must begin with a slash, and have no NUL or "
			"#");
		return;
	}
	h->path = strndup(path, target);
	strbuf_printf(&h->text, "%.*s %.*s %s\r\n", (int)method, s, (int)target,
		path, version);
	h->lines = 0;
	h->state = HEAD_FIELDS;
}

/* ---- fields ---- */

static void take_length(struct head *h, const char *value)
{
	size_t n = strlen(value);

	if (n == 0 || n > 18 || value[strspn(value, "0123456789")])
		wrong(h, n > 18 ? 413 : 400, "Content-Length is no number");
	else
		h->left = strtoull(value, NULL, 10);
}

static void take_coding(struct head *h, const char *value)
{
	if (strcasecmp(value, "chunked") != 0)
		wrong(h, 501, "Transfer-Encoding may be chunked only");
}

static void take_expect(struct head *h, const char *value)
{
	if (strcasecmp(value, "100-continue") != 0)
		wrong(h, 417, "Expect may be 100-continue only");
}

/* RFC 9112, 3.2.2: the host before the path would be the one that counts. */
static void take_host(struct head *h, const char *value)
{
	if (h->host && strcasecmp(h->host, value) != 0)
		wrong(h, 400, "the path is of another host than Host");
}

enum { LENGTH, CODING, HOST };

/* What is passed on. */
static const struct field {
	const char *name;
	bool once;
	void (*take)(struct head *h, const char *value);
} fields[] = {
	[LENGTH] = {"Content-Length", true, take_length},
	[CODING] = {"Transfer-Encoding", true, take_coding},
	[HOST] = {"Host", true, take_host},
	{"Content-Type", true, NULL},
	{"Authorization", true, NULL},
	{"Origin", true, NULL},
	{"Expect", true, take_expect},
	{"Connection", false, NULL},
	{"Accept", false, NULL},
};

#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static bool has(const struct head *h, int field)
{
	return h->seen & 1U << field;
}

static void pass_on(struct head *h, size_t i, const char *value)
{
	const struct field *f = &fields[i];

	if (f->once && has(h, (int)i)) {
		wrong(h, 400, "a field that says one thing came twice");
		return;
	}
	h->seen |= 1U << i;
	if (f->take)
		f->take(h, value);
	strbuf_printf(&h->text, "%s: %s\r\n", f->name, value);
}

static void end_fields(struct head *h)
{
	bool chunked = has(h, CODING);

	if ((!h->old || h->host) && !has(h, HOST))
		wrong(h, 400, "a request needs a Host");
	else if (chunked && has(h, LENGTH))
		wrong(h, 400, "Content-Length and Transfer-Encoding disagree");
	else if (chunked && h->old)
		wrong(h, 400, "HTTP/1.0 has no Transfer-Encoding");
	else
		h->state = chunked	 ? HEAD_CHUNK_SIZE
			   : h->left > 0 ? HEAD_LENGTH
					 : HEAD_OVER;
	strbuf_puts(&h->text, "\r\n");
}

/* The line's name and value, taken apart in place. */
static bool split(char *s, size_t n, const char **value)
{
	char *colon = memchr(s, ':', n), *end = s + n;

	/* A line that begins with a blank was once a part of the one before. */
	if (!colon || !is_token(s, (size_t)(colon - s)))
		return false;
	*colon++ = '\0';
	while (colon < end && (end[-1] == ' ' || end[-1] == '\t'))
		*--end = '\0';
	*value = colon + strspn(colon, " \t");
	return true;
}

static void take_field(struct head *h, char *s, size_t n)
{
	const char *value;

	if (n == 0) {
		end_fields(h);
		return;
	}
	if (!split(s, n, &value)) {
		wrong(h, 400, "a line of the head is not NAME: VALUE");
		return;
	}
	for (size_t i = 0; i < FIELDS; i++)
		if (!strcasecmp(s, fields[i].name))
			pass_on(h, i, value);
}

/* ---- a body in chunks ---- */

static void take_chunk_size(struct head *h, const char *s, size_t n)
{
	size_t digits = strspn(s, "0123456789abcdefABCDEF");

	if (digits == 0 || digits > 15 ||
		(digits < n && !strchr("; \t", s[digits]))) {
		wrong(h, digits > 15 ? 413 : 400, "a chunk has no length");
		return;
	}
	h->left = strtoull(s, NULL, 16);
	h->lines = h->bytes = 0;
	h->state = h->left > 0 ? HEAD_CHUNK : HEAD_TRAILER;
}

static void take_chunk_end(struct head *h, size_t n)
{
	if (n > 0)
		wrong(h, 400, "a chunk is longer than it said");
	else
		h->state = HEAD_CHUNK_SIZE;
}

static void take_trailer(struct head *h, char *s, size_t n)
{
	const char *value;

	if (n > 0 && !split(s, n, &value)) {
		wrong(h, 400, "a line of the trailer is not NAME: VALUE");
	} else if (n == 0) {
		strbuf_puts(&h->text, "0\r\n\r\n");
		h->state = HEAD_OVER;
	}
}

/* ---- bytes ---- */

static void take_line(struct head *h)
{
	char *s = h->line.s;
	size_t n = h->line.n - 1;

	if (n == 0 || s[--n] != '\r') {
		wrong(h, 400, "a line ends without a carriage return");
		return;
	}
	s[n] = '\0';
	h->lines++;
	if (h->state == HEAD_START)
		take_start(h, s, n);
	else if (h->state == HEAD_FIELDS)
		take_field(h, s, n);
	else if (h->state == HEAD_CHUNK_SIZE)
		take_chunk_size(h, s, n);
	else if (h->state == HEAD_CHUNK_END)
		take_chunk_end(h, n);
	else
		take_trailer(h, s, n);
	h->line.n = 0;
}

/* A byte that has no place in a line. */
static bool is_stray(const struct head *h, char c)
{
	unsigned char u = (unsigned char)c;
	bool after_return = h->line.n > 0 && h->line.s[h->line.n - 1] == '\r';

	if (after_return || c == '\n')
		return c != '\n';
	if (h->state == HEAD_START)
		return u != '\r' && (u < ' ' || u > '~');
	return u != '\r' && u != '\t' && (u < ' ' || u == 0x7f);
}

static bool is_long(const struct head *h)
{
	if (h->state == HEAD_START)
		return h->line.n > LINE_MAX_BYTES;
	if (h->state == HEAD_CHUNK_SIZE || h->state == HEAD_CHUNK_END)
		return h->line.n > CHUNK_LINE_MAX;
	return h->bytes > HEAD_MAX_BYTES || h->lines > LINES_MAX;
}

static void refuse_long(struct head *h)
{
	if (h->state == HEAD_START)
		wrong(h, 414, "the first line is too long");
	else if (h->state == HEAD_FIELDS || h->state == HEAD_TRAILER)
		wrong(h, 431, "more than 16 KiB or 100 lines of fields");
	else
		wrong(h, 400, "what is attached to a chunk is too long");
}

static void take_byte(struct head *h, char c)
{
	/* The first byte of a TLS record. */
	if (h->state == HEAD_START && h->line.n == 0 && c == 0x16)
		wrong(h, 400, "this is TLS, and here is plain HTTP");
	else if (is_stray(h, c))
		wrong(h, 400, "a byte that has no place in a line");
	else
		strbuf_add(&h->line, &c, 1);
	h->bytes++;
	if (h->state == HEAD_WRONG)
		return;
	if (h->line.failed || h->text.failed)
		wrong(h, 503, "out of memory");
	else if (c == '\n')
		take_line(h);
	if (h->state < HEAD_OVER && is_long(h))
		refuse_long(h);
}

static size_t take_data(struct head *h, const char *p, size_t n)
{
	if (n > h->left)
		n = (size_t)h->left;
	h->left -= n;
	if (h->state == HEAD_CHUNK)
		strbuf_printf(&h->text, "%zx\r\n", n);
	strbuf_add(&h->text, p, n);
	if (h->state == HEAD_CHUNK)
		strbuf_puts(&h->text, "\r\n");
	if (h->left == 0)
		h->state = h->state == HEAD_CHUNK ? HEAD_CHUNK_END : HEAD_OVER;
	if (h->text.failed)
		wrong(h, 503, "out of memory");
	return n;
}

size_t head_take(struct head *h, const char *p, size_t n)
{
	size_t at = 0;

	while (at < n && h->state < HEAD_OVER) {
		if (h->state == HEAD_LENGTH || h->state == HEAD_CHUNK)
			at += take_data(h, p + at, n - at);
		else
			take_byte(h, p[at++]);
	}
	return at;
}

bool head_is_whole(const struct head *h)
{
	return h->state > HEAD_FIELDS && h->state != HEAD_WRONG;
}

void head_reset(struct head *h)
{
	strbuf_free(&h->text);
	strbuf_free(&h->line);
	free(h->path);
	free(h->host);
	*h = (struct head){0};
}
