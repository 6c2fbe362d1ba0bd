/* SPDX-License-Identifier: MIT */
/*
 * plain.c - a cell as plain Python, for a script
 *
 * Runs in:   front end
 * Trusts:    nothing in the cell. The guest is not asked: its answer would
 *            become code that the person may run on the host
 *
 * Python has no statement that begins with ! or %name, and no value that does,
 * so these are habits (jail/guest/habits.py).
 */
#include "command.h"

#include "repl/edit/python.h"
#include "repl/text/text.h"

#include <ctype.h>

/* A habit in a line: the text before it, with the target of an assignment, and
 * the habit itself. */
struct plain_habit {
	size_t line, at, end;
};

static bool is_habit_at(const wchar_t *s, size_t n, size_t at)
{
	struct pyscan_token t;

	if (at >= n || (s[at] != '!' && s[at] != '%'))
		return false;
	t = pyscan_next(s, n, at + 1);
	return s[at] == '!' ? s[at + 1] != '=' : t.kind == PYSCAN_NAME;
}

/* The end of a line that a backslash may continue. */
static size_t line_end(const wchar_t *s, size_t n, size_t at)
{
	while (at < n && (s[at] != '\n' || s[at - 1] == '\\'))
		at++;
	return at;
}

/* Find the next habit in lines from `h->line` on. */
static bool find_habit(const wchar_t *s, size_t n, struct plain_habit *h)
{
	struct pyscan_token t = {.end = h->line};
	bool begins = true;
	int depth = 0;

	for (;;) {
		size_t at = t.end;

		while (at < n && (s[at] == ' ' || s[at] == '\t'))
			at++;
		if (begins && !depth && is_habit_at(s, n, at)) {
			h->at = at;
			h->end = line_end(s, n, at);
			return true;
		}
		t = pyscan_next(s, n, at);
		if (t.kind == PYSCAN_END)
			return false;
		depth += t.kind == PYSCAN_OPEN;
		depth -= t.kind == PYSCAN_CLOSE && depth;
		/* A value may be a habit where a statement may. */
		begins = t.kind == PYSCAN_NEWLINE ||
			 (t.kind == PYSCAN_OPERATOR && s[t.start] == '=');
		if (t.kind == PYSCAN_NEWLINE && !depth)
			h->line = t.end;
	}
}

static void add_wide(struct strbuf *b, const wchar_t *s, size_t n)
{
	char utf8[4];

	for (size_t i = 0; i < n; i++)
		strbuf_add(b, utf8, utf8_put((uint32_t)s[i], utf8));
}

/* How long a field such as {name} or {a.b} is; 0: there is none. */
static size_t field_length(const wchar_t *s, size_t n)
{
	size_t i = 1;

	if (!n || *s != '{' || (n > 1 && s[1] < 0x80 && isdigit((int)s[1])))
		return 0;
	while (i < n && (s[i] >= 0x80 || isalnum((int)s[i]) || s[i] == '_' ||
				(s[i] == '.' && i > 1)))
		i++;
	return i > 1 && i < n && s[i] == '}' ? i + 1 : 0;
}

/* Append a command as a string of Python, with its fields. */
static void add_literal(struct strbuf *b, const wchar_t *s, size_t n)
{
	bool fields = false;

	for (size_t i = 0; i < n; i++)
		fields = fields || field_length(s + i, n - i);
	strbuf_puts(b, fields ? "f\"" : "\"");
	for (size_t i = 0; i < n; i++) {
		size_t len = field_length(s + i, n - i);

		if (len)
			add_wide(b, s + i, len);
		else if (fields && (s[i] == '{' || s[i] == '}'))
			strbuf_puts(b, s[i] == '{' ? "{{" : "}}");
		else if (s[i] == '"' || s[i] == '\\' || s[i] < ' ')
			strbuf_printf(b, "\\x%02x", (unsigned)s[i]);
		else
			add_wide(b, s + i, 1);
		i += len ? len - 1 : 0;
	}
	strbuf_puts(b, "\"");
}

/* Append lines as comments. */
static void add_comment(struct strbuf *b, const wchar_t *s, size_t n)
{
	strbuf_puts(b, "# ");
	for (size_t i = 0; i < n; i++) {
		add_wide(b, s + i, 1);
		if (s[i] == '\n' || s[i] == '\r') /* Python takes both */
			strbuf_puts(b, "# ");
	}
}

static void add_habit(
	struct strbuf *b, const wchar_t *s, const struct plain_habit *h)
{
	size_t indent = h->line, at = h->at + 1;
	bool value;

	while (indent < h->at && (s[indent] == ' ' || s[indent] == '\t'))
		indent++;
	value = indent < h->at || s[at] == '!';
	add_wide(b, s + h->line, indent - h->line);
	if (s[h->at] == '%') {
		if (indent > h->line) /* a block needs a statement */
			strbuf_puts(b, "pass  ");
		add_comment(b, s + indent, h->end - indent);
		return;
	}
	at += s[at] == '!';
	while (at < h->end && (s[at] == ' ' || s[at] == '\t'))
		at++;
	strbuf_puts(b, "import subprocess; ");
	add_wide(b, s + indent, h->at - indent);
	strbuf_puts(b, "subprocess.run(");
	add_literal(b, s + at, h->end - at);
	strbuf_puts(b, value ? ", shell=True, stdout=subprocess.PIPE, "
			       "text=True).stdout.splitlines()"
			     : ", shell=True);"); /* shows no value */
}

void plain_add(struct strbuf *b, const char *src, size_t n, bool habit)
{
	struct plain_habit h = {0};
	struct utf8_wide w = {0};
	size_t done = 0;

	habit = n && *src != '!' && (habit || (n > 1 && !memcmp(src, "%%", 2)));
	if (utf8_wide_decode(&w, src, n) < 0)
		b->failed = true;
	else if (habit)
		add_comment(b, w.s, w.n);
	else
		while (find_habit(w.s, w.n, &h)) {
			add_wide(b, w.s + done, h.line - done);
			add_habit(b, w.s, &h);
			done = h.line = h.end;
		}
	if (!habit)
		add_wide(b, w.s + done, w.n - done);
	utf8_wide_free(&w);
}
