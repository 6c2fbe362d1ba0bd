/* SPDX-License-Identifier: MIT */
/*
 * stack.c - where a cell was when it was killed
 *
 * Runs in:   front end
 * Trusts:    nothing: the guest writes the stacks. The source lines are those
 *            of the cells that ran
 *
 * Python writes one stack for each thread, the main one last, and the most
 * recent call first: `  File "<cell 3>", line 2 in name`.
 */
#include "repl/session/session.h"

#include "repl/text/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* How many places we show, and how many bytes of a name and of a line: the
 * verdict stands above them, and should stay in sight. */
#define PLACES_MAX 6
#define NAME_SHOWN 40
#define LINE_SHOWN 120

struct stack_place {
	uint32_t cell;
	unsigned long line;
	const char *name;
	size_t name_n;
	size_t times; /* how often it repeats in a row */
};

/* Read `word` and the number behind it at *p, and step over both. */
static bool read_number(
	const char **p, const char *end, const char *word, unsigned long *n)
{
	size_t len = strlen(word);
	char digits[12] = "";
	size_t i = 0;

	if ((size_t)(end - *p) < len || memcmp(*p, word, len) != 0)
		return false;
	for (*p += len; *p < end && **p >= '0' && **p <= '9'; ++*p)
		if (i < sizeof(digits) - 2)
			digits[i++] = **p;
	*n = strtoul(digits, NULL, 10);
	return i > 0;
}

/* How many bytes of a text to show: at most `max`, and whole characters. */
static size_t shown_length(const char *s, size_t n, size_t max)
{
	if (n <= max)
		return n;
	while (max && utf8_continues(s[max]))
		max--;
	return max;
}

/* Read a line of a stack. False: the place is not in a cell. The function's
 * name has no blank. */
static bool read_place(
	const char *p, const char *end, struct stack_place *place)
{
	static const char in[] = " in ";
	unsigned long cell;
	const char *blank;

	if (!read_number(&p, end, "  File \"<cell ", &cell) ||
		!read_number(&p, end, ">\", line ", &place->line) ||
		(size_t)(end - p) < sizeof(in) ||
		memcmp(p, in, sizeof(in) - 1) != 0)
		return false;
	place->cell = (uint32_t)cell;
	place->name = p + sizeof(in) - 1;
	blank = memchr(place->name, ' ', (size_t)(end - place->name));
	place->name_n = shown_length(place->name,
		(size_t)((blank ? blank : end) - place->name), NAME_SHOWN);
	place->times = 1;
	return true;
}

static bool is_same(const struct stack_place *a, const struct stack_place *b)
{
	return a->cell == b->cell && a->line == b->line &&
	       a->name_n == b->name_n && !memcmp(a->name, b->name, a->name_n);
}

/* Read the main thread's places, the most recent first. Returns how many there
 * are; `v` gets at most PLACES_MAX. */
static size_t read_places(
	const char *text, size_t n, struct stack_place v[static PLACES_MAX])
{
	const char *end = text + n, *nl;
	struct stack_place now;
	size_t count = 0;

	for (const char *p = text; p < end; p = nl + 1) {
		nl = memchr(p, '\n', (size_t)(end - p));
		if (!nl)
			nl = end;
		if (*p != ' ')
			count = 0; /* another thread */
		if (!read_place(p, nl, &now))
			continue;
		if (count && count <= PLACES_MAX &&
			is_same(&v[count - 1], &now))
			v[count - 1].times++;
		else if (count++ < PLACES_MAX)
			v[count - 1] = now;
	}
	return count;
}

/* Append a line of the source, without its indentation. */
static void add_source(
	struct strbuf *b, const struct record_cell *c, unsigned long line)
{
	const char *s = c->src, *end = s + c->n, *nl;

	while (--line && (s = memchr(s, '\n', (size_t)(end - s))) != NULL)
		s++;
	if (!s)
		return;
	while (s < end && (*s == ' ' || *s == '\t'))
		s++;
	nl = memchr(s, '\n', (size_t)(end - s));
	end = nl ? nl : end;
	nl = s + shown_length(s, (size_t)(end - s), LINE_SHOWN);
	strbuf_puts(b, "    ");
	strbuf_add(b, s, (size_t)(nl - s));
	strbuf_puts(b, nl < end ? "...\n" : "\n");
}

void stack_add(struct strbuf *b, const char *text, size_t n,
	const struct record *record, const struct record_cell *running)
{
	struct stack_place v[PLACES_MAX];
	size_t count = read_places(text, n, v);

	for (size_t i = 0; i < count && i < PLACES_MAX; i++) {
		const struct record_cell *c =
			v[i].cell == running->no
				? running
				: record_find(record, v[i].cell);

		strbuf_printf(b, "  %s <cell %" PRIu32 ">, line %lu, in %.*s",
			i ? "called from" : "it was in", v[i].cell, v[i].line,
			(int)v[i].name_n, v[i].name);
		if (v[i].times > 1)
			strbuf_printf(b, " (%zu times)", v[i].times);
		strbuf_puts(b, "\n");
		if (c && v[i].cell && v[i].line)
			add_source(b, c, v[i].line);
	}
	if (count > PLACES_MAX)
		strbuf_printf(
			b, "  called from %zu more\n", count - PLACES_MAX);
}
