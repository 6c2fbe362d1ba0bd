/* SPDX-License-Identifier: MIT */
/*
 * pycolour.c - a cell in colours
 *
 * Runs in:   the front end
 * Holds:     nothing
 * Trusts:    no character of the text; every loop advances
 * Leaves:    nothing
 */
#include "repl/edit/python.h"

#include "jail/base/array.h"

#include <stdlib.h>
#include <string.h>

/* Deepest f-string fields, one inside another. */
#define NESTING_MAX 8

/* Sorted by wcscmp(). The names that `site` adds, such as exit, are not
 * here. */
static const wchar_t *const builtin_names[] = {L"ArithmeticError",
	L"AssertionError", L"AttributeError", L"BaseException",
	L"BaseExceptionGroup", L"BlockingIOError", L"BrokenPipeError",
	L"BufferError", L"BytesWarning", L"ChildProcessError",
	L"ConnectionAbortedError", L"ConnectionError",
	L"ConnectionRefusedError", L"ConnectionResetError",
	L"DeprecationWarning", L"EOFError", L"Ellipsis", L"EncodingWarning",
	L"EnvironmentError", L"Exception", L"ExceptionGroup",
	L"FileExistsError", L"FileNotFoundError", L"FloatingPointError",
	L"FutureWarning", L"GeneratorExit", L"IOError", L"ImportError",
	L"ImportWarning", L"IndentationError", L"IndexError",
	L"InterruptedError", L"IsADirectoryError", L"KeyError",
	L"KeyboardInterrupt", L"LookupError", L"MemoryError",
	L"ModuleNotFoundError", L"NameError", L"NotADirectoryError",
	L"NotImplemented", L"NotImplementedError", L"OSError", L"OverflowError",
	L"PendingDeprecationWarning", L"PermissionError", L"ProcessLookupError",
	L"PythonFinalizationError", L"RecursionError", L"ReferenceError",
	L"ResourceWarning", L"RuntimeError", L"RuntimeWarning",
	L"StopAsyncIteration", L"StopIteration", L"SyntaxError",
	L"SyntaxWarning", L"SystemError", L"SystemExit", L"TabError",
	L"TimeoutError", L"TypeError", L"UnboundLocalError",
	L"UnicodeDecodeError", L"UnicodeEncodeError", L"UnicodeError",
	L"UnicodeTranslateError", L"UnicodeWarning", L"UserWarning",
	L"ValueError", L"Warning", L"ZeroDivisionError", L"abs", L"aiter",
	L"all", L"anext", L"any", L"ascii", L"bin", L"bool", L"breakpoint",
	L"bytearray", L"bytes", L"callable", L"chr", L"classmethod", L"compile",
	L"complex", L"delattr", L"dict", L"dir", L"divmod", L"enumerate",
	L"eval", L"exec", L"filter", L"float", L"format", L"frozenset",
	L"getattr", L"globals", L"hasattr", L"hash", L"help", L"hex", L"id",
	L"input", L"int", L"isinstance", L"issubclass", L"iter", L"len",
	L"list", L"locals", L"map", L"max", L"memoryview", L"min", L"next",
	L"object", L"oct", L"open", L"ord", L"pow", L"print", L"property",
	L"range", L"repr", L"reversed", L"round", L"set", L"setattr", L"slice",
	L"sorted", L"staticmethod", L"str", L"sum", L"super", L"tuple", L"type",
	L"vars", L"zip"};

struct name {
	const wchar_t *s;
	size_t n;
};

static int by_name(const void *key, const void *item)
{
	const struct name *k = key;
	const wchar_t *word = *(const wchar_t *const *)item;
	int r = wcsncmp(k->s, word, k->n);

	return r ? r : -(int)(word[k->n] != 0);
}

static bool is_builtin(const wchar_t *s, size_t n)
{
	struct name key = {s, n};

	return bsearch(&key, builtin_names, COUNT(builtin_names),
		       sizeof(*builtin_names), by_name) != NULL;
}

/* The state of painting a text. */
struct painter {
	const wchar_t *s;
	unsigned char *colours;
	int nesting;
	int depth;		  /* open brackets */
	struct pyscan_token last; /* token; blanks and comments do not count */
	bool begun;		  /* the line has a token */
	bool pattern;		  /* behind `case`, before its colon */
};

static bool is_char(
	const struct painter *p, const struct pyscan_token *t, wchar_t c)
{
	return t->end - t->start == 1 && p->s[t->start] == c;
}

static bool is_name(const struct painter *p, const struct pyscan_token *t,
	const wchar_t *name)
{
	const wchar_t *const words[] = {name, NULL};

	return t->kind == PYSCAN_NAME &&
	       pyscan_is_word(words, p->s + t->start, t->end - t->start);
}

static bool is_gap(const struct pyscan_token *t)
{
	return t->kind == PYSCAN_SPACE || t->kind == PYSCAN_COMMENT ||
	       t->kind == PYSCAN_JOIN;
}

/* True if the line from `at` has a colon outside brackets; `last`: if its last
 * token is one. */
static bool has_colon(const struct painter *p, size_t at, size_t to, bool last)
{
	struct pyscan_token t = {.end = at};
	bool colon = false;
	int depth = 0;

	while ((t = pyscan_next(p->s, to, t.end)).kind != PYSCAN_END &&
		(depth || t.kind != PYSCAN_NEWLINE)) {
		depth += t.kind == PYSCAN_OPEN;
		depth -= t.kind == PYSCAN_CLOSE && depth;
		if (!is_gap(&t))
			colon = (colon && !last) ||
				(!depth && is_char(p, &t, ':'));
	}
	return colon;
}

/* True if the name at the start of a line is a keyword there: the text behind
 * it cannot follow a name, or is a pattern and a colon. */
static bool is_soft_keyword(
	const struct painter *p, const struct pyscan_token *t, size_t to)
{
	static const wchar_t *const operators[] = {L"and", L"as", L"for", L"if",
		L"in", L"is", L"or", L"else", NULL};
	struct pyscan_token next = pyscan_next(p->s, to, t->end);
	bool match = is_name(p, t, L"match"), is_case = is_name(p, t, L"case");
	bool name;

	while (is_gap(&next))
		next = pyscan_next(p->s, to, next.end);
	name = next.kind == PYSCAN_NAME &&
	       !pyscan_is_word(
		       operators, p->s + next.start, next.end - next.start);
	if (is_name(p, t, L"type"))
		return name && !pyscan_is_keyword(p->s + next.start,
				       next.end - next.start);
	if (!match && !is_case)
		return false;
	if (name || next.kind == PYSCAN_NUMBER || next.kind == PYSCAN_STRING)
		return !is_name(p, &next, L"not") ||
		       has_colon(p, next.end, to, match);
	return (next.kind == PYSCAN_OPEN ||
		       (next.kind == PYSCAN_OPERATOR &&
			       wcschr(L"-*~", p->s[next.start]))) &&
	       has_colon(p, next.start, to, match);
}

static enum pycolour name_colour(
	struct painter *p, const struct pyscan_token *t, size_t to)
{
	const wchar_t *s = p->s + t->start;
	size_t n = t->end - t->start;

	if (is_char(p, &p->last, '.'))
		return PYCOLOUR_NONE;
	if (pyscan_is_keyword(s, n)) {
		p->pattern = p->pattern && !is_name(p, t, L"if");
		return PYCOLOUR_KEYWORD;
	}
	if (p->pattern && is_name(p, t, L"_"))
		return PYCOLOUR_KEYWORD;
	if (!p->begun && !p->nesting && is_soft_keyword(p, t, to)) {
		p->pattern = is_name(p, t, L"case");
		return PYCOLOUR_KEYWORD;
	}
	return is_builtin(s, n) ? PYCOLOUR_BUILTIN : PYCOLOUR_NONE;
}

static void paint_tokens(struct painter *p, size_t from, size_t to);

/* The end of a field's expression: the field's colon, conversion or closing
 * brace, or the end of the string. */
static size_t field_end(const wchar_t *s, size_t at, size_t to)
{
	struct pyscan_token t = {.end = at};
	int depth = 0;

	while ((t = pyscan_next(s, to, t.end)).kind != PYSCAN_END) {
		if (!depth &&
			(t.kind == PYSCAN_CLOSE || s[t.start] == ':' ||
				(s[t.start] == '!' &&
					(t.end == to || s[t.end] != '='))))
			return t.start;
		depth += t.kind == PYSCAN_OPEN;
		depth -= t.kind == PYSCAN_CLOSE;
	}
	return to;
}

/* Paint the fields of an f-string whose quotes are at `at`. */
static void paint_fields(struct painter *p, size_t at, size_t to)
{
	int open = 0;

	while (at < to) {
		wchar_t c = p->s[at];

		if (c == '{' && !open && at + 1 < to && p->s[at + 1] == '{') {
			at += 2;
		} else if (c == '{') {
			struct painter inner = {.s = p->s,
				.colours = p->colours,
				.nesting = p->nesting + 1};
			size_t end = field_end(p->s, at + 1, to);

			p->colours[at] = PYCOLOUR_NONE;
			if (inner.nesting < NESTING_MAX)
				paint_tokens(&inner, at + 1, end);
			open++;
			at = end > at ? end : at + 1;
		} else {
			if (c == '}' && open && open--)
				p->colours[at] = PYCOLOUR_NONE;
			at++;
		}
	}
}

static void paint_string(struct painter *p, const struct pyscan_token *t)
{
	bool fields = false;
	size_t at = t->start;

	memset(p->colours + at, PYCOLOUR_STRING, t->end - at);
	for (; at < t->end && !wcschr(L"\"'", p->s[at]); at++)
		fields |= p->s[at] == 'f' || p->s[at] == 'F';
	if (fields)
		paint_fields(p, at, t->end);
}

static void paint_tokens(struct painter *p, size_t from, size_t to)
{
	static const enum pycolour colours[] = {
		[PYSCAN_COMMENT] = PYCOLOUR_COMMENT,
		[PYSCAN_NUMBER] = PYCOLOUR_NUMBER,
		[PYSCAN_OPERATOR] = PYCOLOUR_NONE,
	};
	struct pyscan_token t = {.end = from};

	while ((t = pyscan_next(p->s, to, t.end)).kind != PYSCAN_END) {
		enum pycolour c = colours[t.kind];

		if (t.kind == PYSCAN_NAME)
			c = name_colour(p, &t, to);
		memset(p->colours + t.start, (int)c, t.end - t.start);
		if (t.kind == PYSCAN_STRING)
			paint_string(p, &t);
		p->depth += t.kind == PYSCAN_OPEN;
		p->depth -= t.kind == PYSCAN_CLOSE && p->depth;
		if (!p->depth && is_char(p, &t, ':'))
			p->pattern = false;
		if (t.kind == PYSCAN_NEWLINE && !p->depth)
			p->begun = p->pattern = false;
		else if (!is_gap(&t) && t.kind != PYSCAN_NEWLINE)
			p->begun = true;
		if (!is_gap(&t))
			p->last = t;
	}
}

void pycolour_fill(const wchar_t *s, size_t n, unsigned char *colours)
{
	struct painter p = {.s = s, .colours = colours};
	size_t at = 0;

	if (!n || s[0] != ':') {
		paint_tokens(&p, 0, n);
		return;
	}
	while (at < n && s[at] != ' ' && s[at] != '\n')
		colours[at++] = PYCOLOUR_COMMAND;
	memset(colours + at, PYCOLOUR_NONE, n - at);
}
