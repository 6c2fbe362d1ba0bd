/* SPDX-License-Identifier: MIT */
/*
 * framing.c - where a request begins and ends, beyond doubt
 *
 * Runs in:   front end, confined
 * Trusts:    nobody: the bytes are a client's
 * Leaves:    a request: its method, its path, the header fields that we keep,
 *            and the bytes of its body
 *
 * We follow RFC 9112, and refuse what it merely tolerates. We also refuse a
 * request that two programs could read in two ways: a proxy and we might
 * disagree on where it ends, and so on which client sent the next one.
 */
#include "repl/serve/edge/edge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Most bytes of the first line; of a head or a trailer; most lines of these;
 * most bytes of a chunk's line. */
#define LINE_MAX_BYTES 8192
#define FRAMING_MAX_BYTES 16384
#define LINES_MAX 100
#define CHUNK_LINE_MAX 256
/* Most empty lines before a request: some clients send one behind a body. */
#define EMPTY_MAX 2
#define METHOD_MAX 20

static void set_wrong(struct framing *h, int status, const char *words)
{
	h->state = FRAMING_WRONG;
	h->status = status;
	h->words = words;
}

static const char no_memory[] = "out of memory";

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

static bool starts_with(const char *s, size_t n, const char *with)
{
	size_t m = strlen(with);

	return n >= m && !strncasecmp(s, with, m);
}

void framing_unescape(char *s)
{
	static const char hex[] = "0123456789abcdefABCDEF";
	char *to = s;

	for (; *s; s++) {
		*to = *s;
		if (*s == '%' && s[1] && strchr(hex, s[1]) && s[2] &&
			strchr(hex, s[2])) {
			const char digits[] = {s[1], s[2], '\0'};

			*to = (char)strtoul(digits, NULL, 16);
			s += 2;
		}
		to++;
	}
	*to = '\0';
}

/* True for a host with or without a port, as far as it matters where it ends.
 * RFC 9110, 4.2.4: no user before it. */
static bool is_host(const char *s, size_t n)
{
	return n > 0 && strcspn(s, " \t,/?#@\\") >= n;
}

/* Find the path in the request target: `/path?query`, or the same behind a
 * scheme and a host, which we keep. */
static bool find_path(struct framing *h, const char **path, size_t *n)
{
	const char *p = *path, *end = p + *n, *slash;

	if (starts_with(p, *n, "http://") || starts_with(p, *n, "https://")) {
		p = strchr(p, ':') + 3;
		slash = memchr(p, '/', (size_t)(end - p));
		slash = slash ? slash : end;
		if (!is_host(p, (size_t)(slash - p)))
			return false;
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

static void take_version(struct framing *h, const char *version)
{
	h->old = !strcmp(version, "HTTP/1.0");
	if (h->old || !strcmp(version, "HTTP/1.1"))
		return;
	if (!strncmp(version, "HTTP/", 5))
		set_wrong(h, 505, "HTTP/1.1 and HTTP/1.0 are served");
	else
		set_wrong(h, 400, "the first line has no version of HTTP");
}

static void take_start(struct framing *h, const char *s, size_t n)
{
	size_t method = strcspn(s, " "), target;
	const char *path = s + method + 1, *version;

	if (n == 0) {
		if (h->lines > EMPTY_MAX)
			set_wrong(h, 400, "empty lines instead of a request");
		return;
	}
	if (!is_token(s, method) || method > METHOD_MAX) {
		set_wrong(h, 400, "the first line has no method");
		return;
	}
	target = method < n ? strcspn(path, " ") : 0;
	version = path + target + 1;
	if (target == 0 || path[target] != ' ' || strchr(version, ' ')) {
		set_wrong(h, 400,
			"the first line is not METHOD, path and HTTP/1.1");
		return;
	}
	take_version(h, version);
	if (h->state == FRAMING_WRONG)
		return;
	if (!find_path(h, &path, &target)) {
		set_wrong(h, 400,
			"the path must begin with a slash or a host, and have "
			"no NUL or #");
		return;
	}
	h->method = strndup(s, method);
	h->path = strndup(path, target);
	if (!h->method || !h->path) {
		set_wrong(h, 503, no_memory);
		return;
	}
	framing_unescape(h->path);
	h->lines = 0;
	h->state = FRAMING_IN_FIELDS;
}

/* ---- fields ---- */

static void take_length(struct framing *h, const char *value)
{
	size_t n = strlen(value);

	if (n == 0 || value[strspn(value, "0123456789")])
		set_wrong(h, 400, "Content-Length is no number");
	else if (n > 18)
		set_wrong(h, 413, "Content-Length is too large");
	else
		h->length = h->left = strtoull(value, NULL, 10);
}

static void take_coding(struct framing *h, const char *value)
{
	if (strcasecmp(value, "chunked") != 0)
		set_wrong(h, 501, "Transfer-Encoding may be chunked only");
	else
		h->length = FRAMING_CHUNKS;
}

static void take_expect(struct framing *h, const char *value)
{
	if (strcasecmp(value, "100-continue") != 0)
		set_wrong(h, 417, "Expect may be 100-continue only");
}

/* RFC 9112, 3.2.2 ignores Host if there is a host before the path. We refuse
 * two that differ. */
static void take_host(struct framing *h, const char *value)
{
	if (*value && !is_host(value, strlen(value)))
		set_wrong(h, 400, "Host is no host");
	else if (h->host && strcasecmp(h->host, value) != 0)
		set_wrong(h, 400, "the path is of another host than Host");
}

/* The fields that we keep. */
static const struct field {
	const char *name;
	bool list; /* may come more than once: the values are one list */
	void (*take)(struct framing *h, const char *value);
} fields[FRAMING_FIELDS] = {
	[FRAMING_CONTENT_LENGTH] = {"Content-Length", false, take_length},
	[FRAMING_TRANSFER_ENCODING] = {"Transfer-Encoding", false, take_coding},
	[FRAMING_HOST] = {"Host", false, take_host},
	[FRAMING_CONTENT_TYPE] = {"Content-Type", false, NULL},
	[FRAMING_AUTHORIZATION] = {"Authorization", false, NULL},
	[FRAMING_ORIGIN] = {"Origin", false, NULL},
	[FRAMING_EXPECT] = {"Expect", false, take_expect},
	[FRAMING_CONNECTION] = {"Connection", true, NULL},
	[FRAMING_ACCEPT] = {"Accept", true, NULL},
	[FRAMING_REQUEST_ID] = {"X-Request-Id", true, NULL},
	[FRAMING_IDEMPOTENCY_KEY] = {"Idempotency-Key", false, NULL},
	[FRAMING_LAST_EVENT_ID] = {"Last-Event-ID", false, NULL},
};

static void keep_field(struct framing *h, size_t i, const char *value)
{
	const struct field *f = &fields[i];
	char *before = h->values[i];

	if (before && !f->list) {
		set_wrong(h, 400, "a field that says one thing came twice");
		return;
	}
	if (f->take)
		f->take(h, value);
	if (!before)
		h->values[i] = strdup(value);
	else if (asprintf(&h->values[i], "%s, %s", before, value) < 0)
		h->values[i] = NULL;
	if (before)
		free(before);
	if (!h->values[i])
		set_wrong(h, 503, no_memory);
}

static void end_fields(struct framing *h)
{
	bool chunked = h->values[FRAMING_TRANSFER_ENCODING];

	if ((!h->old || h->host) && !h->values[FRAMING_HOST])
		set_wrong(h, 400, "a request needs a Host");
	else if (chunked && h->values[FRAMING_CONTENT_LENGTH])
		set_wrong(h, 400,
			"Content-Length and Transfer-Encoding disagree");
	else if (chunked && h->old)
		set_wrong(h, 400, "HTTP/1.0 has no Transfer-Encoding");
	else
		h->state = chunked	 ? FRAMING_IN_CHUNK_SIZE
			   : h->left > 0 ? FRAMING_IN_LENGTH
					 : FRAMING_OVER;
}

/* Split a line into name and value, in place. */
static bool split_line(char *s, size_t n, const char **value)
{
	char *colon = memchr(s, ':', n), *end = s + n;

	/* No token begins with a blank: this refuses folded lines, too. */
	if (!colon || !is_token(s, (size_t)(colon - s)))
		return false;
	*colon++ = '\0';
	while (colon < end && (end[-1] == ' ' || end[-1] == '\t'))
		*--end = '\0';
	*value = colon + strspn(colon, " \t");
	return true;
}

static void take_field(struct framing *h, char *s, size_t n)
{
	const char *value;

	if (n == 0) {
		end_fields(h);
		return;
	}
	if (!split_line(s, n, &value)) {
		set_wrong(h, 400, "a line of the head is not NAME: VALUE");
		return;
	}
	for (size_t i = 0; i < FRAMING_FIELDS; i++)
		if (!strcasecmp(s, fields[i].name))
			keep_field(h, i, value);
}

/* ---- a body in chunks ---- */

static void take_chunk_size(struct framing *h, const char *s, size_t n)
{
	size_t digits = strspn(s, "0123456789abcdefABCDEF");
	size_t blanks = strspn(s + digits, " \t");

	if (digits > 15) {
		set_wrong(h, 413, "a chunk is too long");
		return;
	}
	if (digits == 0 || (digits + blanks < n && s[digits + blanks] != ';')) {
		set_wrong(h, 400, "a chunk has no length");
		return;
	}
	h->left = strtoull(s, NULL, 16);
	h->lines = h->bytes = 0;
	h->state = h->left > 0 ? FRAMING_IN_CHUNK : FRAMING_IN_TRAILER;
}

static void take_chunk_end(struct framing *h, size_t n)
{
	if (n > 0)
		set_wrong(h, 400, "a chunk is longer than it said");
	else
		h->state = FRAMING_IN_CHUNK_SIZE;
}

static void take_trailer(struct framing *h, char *s, size_t n)
{
	const char *value;

	if (n == 0)
		h->state = FRAMING_OVER;
	else if (!split_line(s, n, &value))
		set_wrong(h, 400, "a line of the trailer is not NAME: VALUE");
}

/* ---- bytes ---- */

static void take_line(struct framing *h)
{
	char *s = h->line.s;
	size_t n = h->line.n - 1;

	if (n == 0 || s[--n] != '\r') {
		set_wrong(h, 400, "a line ends without a carriage return");
		return;
	}
	s[n] = '\0';
	h->lines++;
	if (h->state == FRAMING_IN_START)
		take_start(h, s, n);
	else if (h->state == FRAMING_IN_FIELDS)
		take_field(h, s, n);
	else if (h->state == FRAMING_IN_CHUNK_SIZE)
		take_chunk_size(h, s, n);
	else if (h->state == FRAMING_IN_CHUNK_END)
		take_chunk_end(h, n);
	else
		take_trailer(h, s, n);
	h->line.n = 0;
}

/* True if the byte must not stand in a line. */
static bool is_stray_byte(const struct framing *h, char c)
{
	unsigned char u = (unsigned char)c;
	bool after_return = h->line.n > 0 && h->line.s[h->line.n - 1] == '\r';

	if (after_return || c == '\n')
		return c != '\n';
	if (h->state == FRAMING_IN_START)
		return u != '\r' && (u < ' ' || u > '~');
	return u != '\r' && u != '\t' && (u < ' ' || u == 0x7f);
}

static bool is_too_long(const struct framing *h)
{
	if (h->state == FRAMING_IN_START)
		return h->line.n > LINE_MAX_BYTES;
	if (h->state == FRAMING_IN_CHUNK_SIZE ||
		h->state == FRAMING_IN_CHUNK_END)
		return h->line.n > CHUNK_LINE_MAX;
	return h->bytes > FRAMING_MAX_BYTES || h->lines > LINES_MAX;
}

static void refuse_long(struct framing *h)
{
	if (h->state == FRAMING_IN_START)
		set_wrong(h, 414, "the first line is too long");
	else if (h->state == FRAMING_IN_FIELDS ||
		 h->state == FRAMING_IN_TRAILER)
		set_wrong(h, 431, "more than 16 KiB or 100 lines of fields");
	else
		set_wrong(h, 400, "what is attached to a chunk is too long");
}

static void take_byte(struct framing *h, char c)
{
	/* The first byte of a TLS record. */
	if (h->state == FRAMING_IN_START && h->line.n == 0 && c == 0x16)
		set_wrong(h, 400, "this is TLS, and here is plain HTTP");
	else if (is_stray_byte(h, c))
		set_wrong(h, 400, "a byte that has no place in a line");
	else
		strbuf_add(&h->line, &c, 1);
	h->bytes++;
	if (h->state == FRAMING_WRONG)
		return;
	if (h->line.failed)
		set_wrong(h, 503, no_memory);
	else if (c == '\n')
		take_line(h);
	if (h->state < FRAMING_OVER && is_too_long(h))
		refuse_long(h);
}

static size_t take_data(struct framing *h, const char *p, size_t n)
{
	if (n > h->left)
		n = (size_t)h->left;
	h->left -= n;
	strbuf_add(&h->body, p, n);
	if (h->left == 0)
		h->state = h->state == FRAMING_IN_CHUNK ? FRAMING_IN_CHUNK_END
							: FRAMING_OVER;
	if (h->body.failed)
		set_wrong(h, 503, no_memory);
	return n;
}

size_t framing_take(struct framing *h, const char *p, size_t n)
{
	size_t at = 0;

	while (at < n && h->state < FRAMING_OVER) {
		if (h->state == FRAMING_IN_LENGTH ||
			h->state == FRAMING_IN_CHUNK)
			at += take_data(h, p + at, n - at);
		else
			take_byte(h, p[at++]);
	}
	return at;
}

bool framing_is_whole(const struct framing *h)
{
	return h->state > FRAMING_IN_FIELDS && h->state != FRAMING_WRONG;
}

/* True if a list with commas has the word. */
static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	while (list && *list) {
		list += strspn(list, ", \t");
		if (strcspn(list, ", \t") == n && !strncasecmp(list, word, n))
			return true;
		list += strcspn(list, ",");
	}
	return false;
}

bool framing_is_last(const struct framing *h)
{
	const char *list = h->values[FRAMING_CONNECTION];

	return has_word(list, "close") ||
	       (h->old && !has_word(list, "keep-alive"));
}

void framing_reset(struct framing *h)
{
	for (size_t i = 0; i < FRAMING_FIELDS; i++)
		free(h->values[i]);
	strbuf_free(&h->body);
	strbuf_free(&h->line);
	free(h->method);
	free(h->path);
	free(h->host);
	*h = (struct framing){0};
}
