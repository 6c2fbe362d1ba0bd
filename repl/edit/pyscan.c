/* SPDX-License-Identifier: MIT */
/*
 * pyscan.c - Python's tokens, for an editor
 *
 * Runs in:   the front end
 * Holds:     nothing
 * Trusts:    no character of the text; every loop advances
 * Leaves:    nothing
 */
#include "repl/edit/python.h"

#include "repl/text/text.h"

static bool is_blank(wchar_t c)
{
	return c == ' ' || c == '\t' || c == '\f' || c == '\r';
}

static bool is_digit(wchar_t c)
{
	return c >= '0' && c <= '9';
}

static bool is_name_start(wchar_t c)
{
	uint32_t u = (uint32_t)c | 0x20;

	return (u >= 'a' && u <= 'z') || c == '_' || (uint32_t)c >= 0xA1;
}

static bool is_name(wchar_t c)
{
	return is_name_start(c) || is_digit(c);
}

static bool is_in(wchar_t c, const wchar_t *set)
{
	return c && wcschr(set, c);
}

/* Set the end of a string whose first quote is at `at`. */
static void string_end(
	const wchar_t *s, size_t n, size_t at, struct pyscan_token *t)
{
	wchar_t q = s[at];
	bool triple = at + 2 < n && s[at + 1] == q && s[at + 2] == q;
	size_t i = at + (triple ? 3 : 1);

	for (; i < n; i++) {
		if (s[i] == '\\') {
			i++;
			continue;
		}
		if (!triple && s[i] == '\n') {
			t->broken = true;
			t->end = i;
			return;
		}
		if (s[i] != q)
			continue;
		if (!triple || (i + 2 < n && s[i + 1] == q && s[i + 2] == q)) {
			t->end = i + (triple ? 3 : 1);
			return;
		}
	}
	/* A string such as "abc\ at the text's end goes on in the next line. */
	t->open = triple || i > n;
	t->broken = !t->open;
	t->end = n;
}

/* The length of a string's prefix (r, b, u, f, or two); SIZE_MAX: no string. */
static size_t string_prefix(const wchar_t *s, size_t n, size_t at)
{
	size_t i = at;

	while (i < n && i - at < 2 && is_in(s[i], L"rRbBuUfF"))
		i++;
	return i < n && (s[i] == '"' || s[i] == '\'') ? i - at : SIZE_MAX;
}

/* In 1e-5 the sign belongs to the number; in 0x1e-5 it does not. */
static size_t number_end(const wchar_t *s, size_t n, size_t at)
{
	bool hex = at + 1 < n && s[at] == '0' && is_in(s[at + 1], L"xX");
	size_t i = at + 1;

	while (i < n &&
		(is_name(s[i]) || s[i] == '.' ||
			(!hex && is_in(s[i], L"+-") && is_in(s[i - 1], L"eE"))))
		i++;
	return i;
}

static size_t run_end(
	const wchar_t *s, size_t n, size_t at, bool (*is)(wchar_t c))
{
	while (at < n && is(s[at]))
		at++;
	return at;
}

static size_t join_end(const wchar_t *s, size_t n, size_t at)
{
	size_t i = at + 1;

	if (i < n && s[i] == '\r')
		i++;
	return i < n && s[i] == '\n' ? i + 1 : i;
}

struct pyscan_token pyscan_next(const wchar_t *s, size_t n, size_t at)
{
	struct pyscan_token t = {.start = at, .end = at + 1};
	size_t prefix;

	if (at >= n) {
		t.end = at;
		return t;
	}
	prefix = string_prefix(s, n, at);
	if (prefix != SIZE_MAX) {
		t.kind = PYSCAN_STRING;
		string_end(s, n, at + prefix, &t);
	} else if (s[at] == '\n') {
		t.kind = PYSCAN_NEWLINE;
	} else if (is_blank(s[at])) {
		t.kind = PYSCAN_SPACE;
		t.end = run_end(s, n, at, is_blank);
	} else if (s[at] == '#') {
		t.kind = PYSCAN_COMMENT;
		while (t.end < n && s[t.end] != '\n')
			t.end++;
	} else if (is_name_start(s[at])) {
		t.kind = PYSCAN_NAME;
		t.end = run_end(s, n, at, is_name);
	} else if (is_digit(s[at]) ||
		   (s[at] == '.' && at + 1 < n && is_digit(s[at + 1]))) {
		t.kind = PYSCAN_NUMBER;
		t.end = number_end(s, n, at);
	} else if (s[at] == '\\' &&
		   (at + 1 == n || s[join_end(s, n, at) - 1] == '\n')) {
		t.kind = PYSCAN_JOIN;
		t.end = join_end(s, n, at);
		t.open = at + 1 == n;
	} else if (is_in(s[at], L"([{")) {
		t.kind = PYSCAN_OPEN;
	} else if (is_in(s[at], L")]}")) {
		t.kind = PYSCAN_CLOSE;
	} else {
		t.kind = PYSCAN_OPERATOR;
	}
	return t;
}

bool pyscan_is_word(const wchar_t *const *words, const wchar_t *s, size_t n)
{
	for (; *words; words++)
		if (wcslen(*words) == n && !wmemcmp(*words, s, n))
			return true;
	return false;
}

bool pyscan_is_keyword(const wchar_t *s, size_t n)
{
	static const wchar_t *const words[] = {L"False", L"None", L"True",
		L"and", L"as", L"assert", L"async", L"await", L"break",
		L"class", L"continue", L"def", L"del", L"elif", L"else",
		L"except", L"finally", L"for", L"from", L"global", L"if",
		L"import", L"in", L"is", L"lambda", L"nonlocal", L"not", L"or",
		L"pass", L"raise", L"return", L"try", L"while", L"with",
		L"yield", NULL};

	return pyscan_is_word(words, s, n);
}

/* The offset behind the brace that opens the last expression of an open
 * f-string whose quotes are at `quote`. 0: no expression is open. */
static size_t in_braces(
	const wchar_t *s, const struct pyscan_token *t, size_t quote)
{
	size_t brace = 0, i = t->start;

	while (i < quote && !is_in(s[i], L"fF"))
		i++;
	if (i == quote)
		return 0;
	for (; i < t->end; i++)
		brace = s[i] == '{' ? i + 1 : s[i] == '}' ? 0 : brace;
	return brace;
}

/* tail_of() notes for this many open brackets if they are calls. */
#define BRACKETS_MAX 64

struct brackets {
	bool call[BRACKETS_MAX];
	size_t depth;
	bool callable; /* the last word can be called */
	bool begins;   /* an argument begins here */
};

static void note_bracket(
	struct brackets *b, const wchar_t *s, const struct pyscan_token *t)
{
	if (t->kind == PYSCAN_SPACE || t->kind == PYSCAN_NEWLINE ||
		t->kind == PYSCAN_COMMENT || t->kind == PYSCAN_JOIN)
		return;
	if (t->kind == PYSCAN_OPEN && b->depth < BRACKETS_MAX)
		b->call[b->depth] = s[t->start] == '(' && b->callable;
	b->depth += t->kind == PYSCAN_OPEN;
	b->depth -= t->kind == PYSCAN_CLOSE && b->depth;
	b->begins = b->depth && b->depth <= BRACKETS_MAX &&
		    b->call[b->depth - 1] &&
		    (t->kind == PYSCAN_OPEN || s[t->start] == ',');
	b->callable =
		t->kind == PYSCAN_CLOSE ||
		(t->kind == PYSCAN_NAME &&
			!pyscan_is_keyword(s + t->start, t->end - t->start));
}

static bool is_subscripted(enum pyscan_kind kind)
{
	return kind == PYSCAN_NAME || kind == PYSCAN_CLOSE;
}

static struct pyscan_tail tail_of(const wchar_t *s, size_t n, size_t from)
{
	struct pyscan_token next, t = {.end = from}, bracket = {0}, name = {0};
	struct brackets now = {0};
	bool was = false;
	struct pyscan_tail tail;

	while ((next = pyscan_next(s, n, t.end)).kind != PYSCAN_END) {
		name = bracket;
		bracket = t;
		t = next;
		if (t.kind == PYSCAN_NAME)
			was = now.begins;
		note_bracket(&now, s, &t);
	}
	tail = (struct pyscan_tail){.last = t,
		.before = bracket,
		.is_key = is_subscripted(name.kind) &&
			  bracket.kind == PYSCAN_OPEN &&
			  s[bracket.start] == '[',
		.is_open = t.kind == PYSCAN_STRING && (t.open || t.broken),
		.is_argument = t.kind == PYSCAN_NAME ? was : now.begins,
		.quote = t.start};
	while (tail.is_open && !is_in(s[tail.quote], L"\"'"))
		tail.quote++;
	return tail;
}

struct pyscan_tail pyscan_tail(const wchar_t *s, size_t n)
{
	struct pyscan_tail t = tail_of(s, n, 0);
	wchar_t outer[3] = L"";
	size_t brace;

	for (int depth = 0; depth < 8 && t.is_open; depth++) {
		brace = in_braces(s, &t.last, t.quote);
		if (!brace)
			break;
		for (size_t i = t.quote; i < brace; i++)
			if (is_in(s[i], L"\"'") && !is_in(s[i], outer))
				outer[outer[0] ? 1 : 0] = s[i];
		t = tail_of(s, n, brace);
	}
	wmemcpy(t.outer, outer, 3);
	return t;
}

/* True if a string may hold `c` at the tail. In the braces of an f-string,
 * Python before 3.12 allows neither the outer quote nor a backslash. */
static bool may_hold(const struct pyscan_tail *t, wchar_t c)
{
	return !t->outer[0] || (!is_in(c, t->outer) && !is_in(c, L"\\{}"));
}

/* Refuse braces in a string with a prefix: they may begin an expression. */
static bool string_continues(const struct pyscan_tail *t, const wchar_t *s,
	size_t n, const wchar_t *rest, size_t rest_n)
{
	bool prefix = t->quote && is_name(s[t->quote - 1]), escaped = false;

	while (n > t->quote && s[n - 1] == '\\') {
		escaped = !escaped;
		n--;
	}
	for (size_t i = 0; i < rest_n; i++) {
		wchar_t c = rest[i];

		if (!may_hold(t, c) || (prefix && is_in(c, L"{}")) ||
			(!escaped && c == s[t->quote]))
			return false;
		escaped = !escaped && c == '\\';
	}
	return !escaped;
}

/* True of a negative number or a whole string. */
static bool key_continues(
	const struct pyscan_tail *t, const wchar_t *rest, size_t n)
{
	struct pyscan_token key = pyscan_next(rest, n, 0);

	for (size_t i = 0; i < n; i++)
		if (!may_hold(t, rest[i]))
			return false;
	if (key.kind == PYSCAN_STRING)
		return key.end == n && !key.open && !key.broken &&
		       is_in(rest[rest[0] == 'b'], L"\"'");
	return n > 1 && rest[0] == '-' && run_end(rest, n, 1, is_digit) == n;
}

bool pyscan_continues(const struct pyscan_tail *t, const wchar_t *s, size_t n,
	const wchar_t *rest, size_t rest_n)
{
	enum pyscan_kind last = t->last.kind;

	if (t->is_open)
		return string_continues(t, s, n, rest, rest_n);
	if (last == PYSCAN_OPEN && s[t->last.start] == '[' &&
		is_subscripted(t->before.kind) &&
		key_continues(t, rest, rest_n))
		return true;
	if (t->is_argument && !t->outer[0] && rest_n > (last != PYSCAN_NAME) &&
		rest[rest_n - 1] == '=')
		rest_n--;
	/* Outside strings Python allows characters beyond ASCII in names
	 * only. */
	for (size_t i = 0; i < rest_n; i++)
		if (!is_name(rest[i]) || utf8_is_unseen((uint32_t)rest[i]))
			return false;
	return last == PYSCAN_NAME || last == PYSCAN_SPACE ||
	       last == PYSCAN_OPEN || last == PYSCAN_OPERATOR ||
	       (last == PYSCAN_NUMBER && t->is_key);
}

void pyscan_closer(const wchar_t *s, size_t n, char out[static PYSCAN_CLOSER])
{
	struct pyscan_tail t = pyscan_tail(s, n);
	size_t quotes = 1, i = 0;

	if (t.is_open && t.quote + 2 < n && s[t.quote + 1] == s[t.quote] &&
		s[t.quote + 2] == s[t.quote])
		quotes = 3;
	while (t.is_open && (t.is_key || s[n - 1] != '/') && i < quotes)
		out[i++] = (char)s[t.quote];
	if (t.is_key &&
		(t.last.kind == PYSCAN_STRING || t.last.kind == PYSCAN_NUMBER))
		out[i++] = ']';
	out[i] = '\0';
}
