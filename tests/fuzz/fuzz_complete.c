/* SPDX-License-Identifier: MIT */
/* fuzz-sources: repl/edit/complete.c repl/edit/pyscan.c */
/*
 * fuzz_complete.c - what a person typed, and any answer of a guest
 *
 * The input is the text before the cursor, a NUL, and the answer; behind a
 * colon the answer's lines are words of a command. These must hold for every
 * candidate that is left: it begins with the typed text, it makes no line and
 * no command of the text, and a string stays the string that it was.
 */
#include "must.h"

#include <stdlib.h>
#include <string.h>

#include "repl/edit/editor.h"
#include "repl/edit/parts.h"
#include "repl/edit/python.h"
#include "repl/text/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- helpers that are linked and never called ---- */

#define NEVER(type, name, ...)                                                 \
	type name(__VA_ARGS__)                                                 \
	{                                                                      \
		abort();                                                       \
	}

#pragma GCC diagnostic ignored "-Wunused-parameter"
NEVER(struct engine_text, engine_text, const struct engine *en)
NEVER(int, engine_replace, struct engine *en, size_t from, size_t to,
	const wchar_t *s, size_t n)
NEVER(bool, engine_fits, const struct engine *en, size_t from, size_t to,
	const wchar_t *s, size_t n)
NEVER(void, view_print, struct view *v, const char *s, size_t n)
NEVER(void, view_status, struct view *v, const char *fmt, ...)

/* ---- the play ---- */

static struct pyscan_tail tail(const char *s, size_t n)
{
	struct utf8_wide w = {0};
	struct pyscan_tail t;

	must(utf8_wide_decode(&w, s, n) == 0);
	t = pyscan_tail(w.s, w.n);
	utf8_wide_free(&w);
	return t;
}

/* The text before `start`, and the candidate behind it. */
static char *joined(const char *text, size_t start, const char *item)
{
	char *s = malloc(start + strlen(item) + 1);

	memcpy(s, text, start);
	strcpy(s + start, item);
	return s;
}

static void check_python(
	const char *text, size_t cursor, size_t start, const char *item)
{
	struct pyscan_tail before = tail(text, cursor), after;
	char *s = joined(text, start, item), *rest = s + cursor;

	must(!strncmp(s, text, cursor));
	must(!strpbrk(rest, "\r\n"));
	if (text[strspn(text, " \t")])
		must(lexer_is_command(s, strlen(s)) ==
			lexer_is_command(text, cursor));
	after = tail(s, strlen(s));
	if (before.is_open && !before.outer[0])
		must(after.is_open && after.quote == before.quote &&
			!wcscmp(after.outer, before.outer));
	else if (!before.is_open)
		must(!after.is_open &&
			(strpbrk(rest, "'\"") || !strpbrk(rest, "?;:#()\\")));
	if (!before.is_open && !strpbrk(rest, "'\""))
		must(strcspn(rest, "=") + before.is_argument >= strlen(rest));
	free(s);
}

static void check_word(
	const char *text, size_t start, int words, const char *item)
{
	char *s = joined(text, start, item);
	struct lexer_words w;

	if (lexer_split(s, strlen(s), &w, NULL) == 0)
		must(w.n == words);
	must(!strpbrk(item, "\r\n"));
	lexer_words_free(&w);
	free(s);
}

static void try_python(const char *text, size_t cursor, const char *answer)
{
	struct complete_list c = {.start = cursor};

	if (complete_answer(&c, answer, strlen(answer)) == 0) {
		complete_check(&c, text, cursor);
		for (size_t i = 0; i < c.count; i++)
			check_python(text, cursor, c.start, c.items[i]);
	}
	complete_free(&c);
}

static void try_words(const char *text, size_t cursor, const char *answer)
{
	struct complete_list c = {.start = cursor};
	struct lexer_words w;
	int words;

	lexer_split(text, cursor, &w, NULL);
	words = w.n + 1;
	if (w.n && w.v[w.n - 1].end == cursor) {
		c.start = w.v[w.n - 1].start;
		words--;
	}
	lexer_words_free(&w);
	for (const char *p = answer, *nl; *p; p = *nl ? nl + 1 : nl) {
		nl = strchrnul(p, '\n');
		must(complete_add(&c, p, (size_t)(nl - p)) == 0);
	}
	complete_check(&c, text, cursor);
	for (size_t i = 0; i < c.count; i++)
		check_word(text, c.start, words, c.items[i]);
	complete_free(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *nul = memchr(data, 0, size);
	struct utf8_wide w = {0};
	char *text, *answer;
	size_t n;

	if (!nul)
		return 0;
	must(utf8_wide_decode(
		     &w, (const char *)data, strlen((const char *)data)) == 0);
	text = utf8_from_wide(w.s, w.n, &n);
	answer = strndup(nul + 1, size - (size_t)(nul + 1 - (char *)data));
	if (text[0] == ':')
		try_words(text + 1, n - 1, answer);
	else
		try_python(text, n, answer);
	free(answer);
	free(text);
	utf8_wide_free(&w);
	return 0;
}
