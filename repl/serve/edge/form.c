/* SPDX-License-Identifier: MIT */
/*
 * form.c - the file in a form (multipart/form-data), as it arrives
 *
 * Runs in:   front end, confined
 * Trusts:    nobody: the bytes are a client's
 * Leaves:    the content of one file, passed to the caller; in memory at most
 *            the head of a part, and the piece that arrived
 *
 * RFC 2046, 5.1 and RFC 7578: parts between lines "--BOUNDARY", each with a
 * head. The first file of the field `file` counts; others are dropped.
 */
#include "repl/serve/edge/edge.h"

#include "repl/text/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BOUNDARY_MAX 70
#define PART_HEAD_MAX 16384
/* Most blanks behind a boundary. */
#define BLANKS_MAX 256

enum form_state {
	FORM_BEFORE,   /* before the first boundary */
	FORM_BOUNDARY, /* the rest of a boundary's line */
	FORM_HEAD,
	FORM_CONTENT,
	FORM_WHOLE, /* later bytes are dropped */
	FORM_WRONG,
};

struct form {
	struct form_calls calls;
	char mark[4 + BOUNDARY_MAX + 1]; /* "\r\n--BOUNDARY" */
	size_t nmark;
	enum form_state state;
	struct strbuf held; /* bytes that are not parsed yet */
	bool file, past;    /* this part is the file; the file has begun */
};

/* The end of a parameter's value: of a token, or behind quotes. A backslash
 * between these may stand before any character. NULL: the quotes do not end. */
static const char *find_end(const char *p)
{
	if (*p != '"')
		return p + strcspn(p, "; \t");
	for (p++; *p && *p != '"'; p++)
		p += *p == '\\' && p[1];
	return *p ? p + 1 : NULL;
}

/* The value (allocated) that ends there. A backslash goes only where it quotes
 * a quote or a backslash, as curl sends them: browsers send one as it is. */
static char *copy_value(const char *p, const char *end)
{
	bool quoted = *p == '"';
	char *value = strndup(p + quoted, (size_t)(end - p - 2 * quoted));
	char *to = value;

	if (!value || !quoted)
		return value;
	for (const char *from = value; *from; from++) {
		from += *from == '\\' && (from[1] == '"' || from[1] == '\\');
		*to++ = *from;
	}
	*to = '\0';
	return value;
}

/* The value of `; NAME=VALUE` in a field (allocated); NULL: none. */
static char *find_parameter(const char *s, const char *name)
{
	size_t n = strlen(name);
	const char *end;

	while ((s = strchr(s, ';'))) {
		size_t length;

		s += 1 + strspn(s + 1, " \t");
		length = strcspn(s, "=; \t");
		if (s[length] != '=')
			continue;
		end = find_end(s + length + 1);
		if (!end)
			return NULL;
		if (length == n && !strncasecmp(s, name, n))
			return copy_value(s + n + 1, end);
		s = end;
	}
	return NULL;
}

/* The name of a file (allocated); NULL: none. RFC 7578 (4.2) wants `filename`,
 * and no `filename*` as RFC 8187 has it (CHARSET'LANGUAGE'%xx). Some clients
 * send that alone for what is not ASCII: we take it then. */
static char *find_file_name(const char *line)
{
	char *name = find_parameter(line, "filename"), *quote;

	if (name)
		return name;
	name = find_parameter(line, "filename*");
	quote = name ? strchr(name, '\'') : NULL;
	quote = quote ? strchr(quote + 1, '\'') : NULL;
	if (quote) {
		memmove(name, quote + 1, strlen(quote + 1) + 1);
		framing_unescape(name);
	}
	return name;
}

struct form *form_open(const char *type, const struct form_calls *calls)
{
	static const char wanted[] = "multipart/form-data";
	struct form *f;
	char *boundary;

	if (!type || strncasecmp(type, wanted, strlen(wanted)) != 0)
		return NULL;
	boundary = find_parameter(type, "boundary");
	f = calloc(1, sizeof(*f));
	if (!f || !boundary || !*boundary || strlen(boundary) > BOUNDARY_MAX) {
		free(boundary);
		free(f);
		return NULL;
	}
	f->calls = *calls;
	f->nmark = (size_t)snprintf(
		f->mark, sizeof(f->mark), "\r\n--%s", boundary);
	free(boundary);
	/* The first boundary may stand in the first line. */
	strbuf_puts(&f->held, "\r\n");
	return f;
}

void form_close(struct form *f)
{
	if (!f)
		return;
	strbuf_free(&f->held);
	free(f);
}

bool form_is_whole(const struct form *f)
{
	return f->state == FORM_WHOLE;
}

/* Parse a line of a part's head, without its end. */
static void take_head_line(struct form *f, const char *line)
{
	static const char wanted[] = "Content-Disposition:";
	char *field, *name;

	if (strncasecmp(line, wanted, strlen(wanted)) != 0)
		return;
	field = find_parameter(line, "name");
	name = find_file_name(line);
	if (field && name && !strcmp(field, "file") && !f->past) {
		f->file = f->past = true;
		f->calls.begin(f->calls.arg, name);
	}
	free(field);
	free(name);
}

static void take_head(struct form *f, char *head, size_t n)
{
	char *line = head, *end;

	head[n] = '\0';
	for (; (end = strstr(line, "\r\n")); line = end + 2) {
		*end = '\0';
		if (strpbrk(line, "\r\n"))
			break;
		take_head_line(f, line);
	}
	/* We stopped before the end at a NUL, or at a CR or LF alone. */
	f->state = line == head + n ? FORM_CONTENT : FORM_WRONG;
}

/* Each of these parses the first of the `n` held bytes, and returns how many.
 * 0: it needs more bytes. */

static size_t take_boundary(struct form *f, const char *p, size_t n)
{
	size_t blanks = 0;

	if (n < 2)
		return 0;
	if (!memcmp(p, "--", 2)) {
		f->state = FORM_WHOLE;
		return 2;
	}
	while (blanks < n && (p[blanks] == ' ' || p[blanks] == '\t'))
		blanks++;
	if (blanks > BLANKS_MAX ||
		(n - blanks >= 2 && memcmp(p + blanks, "\r\n", 2)))
		f->state = FORM_WRONG;
	else if (n - blanks >= 2)
		f->state = FORM_HEAD;
	else
		return 0;
	/* Leave the line's end: a head ends with "\r\n\r\n", also one without a
	 * line. */
	return blanks;
}

static size_t take_part_head(struct form *f, char *p, size_t n)
{
	char *end = memmem(p, n, "\r\n\r\n", 4);

	size_t length = end ? (size_t)(end - p) : n;

	f->file = false;
	if (length > PART_HEAD_MAX)
		f->state = FORM_WRONG;
	else if (end)
		take_head(f, p + 2, length);
	return end ? length + 4 : 0;
}

static size_t take_content(struct form *f, const char *p, size_t n)
{
	const char *mark = memmem(p, n, f->mark, f->nmark);
	size_t mine = mark	     ? (size_t)(mark - p)
		      : n < f->nmark ? 0
				     : n - f->nmark + 1;

	if (f->file && mine > 0)
		f->calls.content(f->calls.arg, p, mine);
	if (!mark)
		return mine;
	f->state = FORM_BOUNDARY;
	return mine + f->nmark;
}

static size_t take_held(struct form *f, char *p, size_t n)
{
	switch (f->state) {
	case FORM_BEFORE:
	case FORM_CONTENT:
		return take_content(f, p, n);
	case FORM_BOUNDARY:
		return take_boundary(f, p, n);
	case FORM_HEAD:
		return take_part_head(f, p, n);
	case FORM_WHOLE:
	case FORM_WRONG:
		return n;
	}
	return n;
}

void form_take(struct form *f, const char *p, size_t n)
{
	size_t at = 0, took;
	enum form_state was;

	if (f->state >= FORM_WHOLE)
		return;
	strbuf_add(&f->held, p, n);
	if (f->held.failed) {
		f->state = FORM_WRONG;
		return;
	}
	do {
		was = f->state;
		took = take_held(f, f->held.s + at, f->held.n - at);
		at += took;
	} while (at < f->held.n && (took > 0 || f->state != was));
	strbuf_cut(&f->held, at);
}
