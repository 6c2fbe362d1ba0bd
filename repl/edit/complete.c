/* SPDX-License-Identifier: MIT */
/*
 * complete.c - Tab behind a word
 *
 * Runs in:   the front end, inside editor_read()
 * Holds:     the listed candidates, until another key than Tab or Shift-Tab
 * Trusts:    no candidate: the guest may send any bytes as a name
 * Leaves:    a continuation of the last word that the person typed; only
 *            visible characters in the text and on the screen
 */

#include "jail/base/io.h"
#include "parts.h"
#include "repl/edit/python.h"

#define CANDIDATE_BYTES_MAX 4096
#define LIST_ROWS_MAX 12
/* The first character of our frame lines (term.h). */
#define FRAME_BAR "¦"

bool complete_is_safe(const char *s, size_t n)
{
	const char *end = s + n;
	uint32_t c;

	if (!utf8_is_visible_text(s, n))
		return false;
	while (s < end) {
		utf8_next(&s, end, &c);
		if (utf8_is_bar(c))
			return false;
	}
	return true;
}

int complete_add(struct complete_list *c, const char *s, size_t n)
{
	char *copy;

	if (c->count >= COMPLETE_MAX || n == 0 || n > CANDIDATE_BYTES_MAX ||
		!complete_is_safe(s, n)) {
		c->dropped++;
		return 0;
	}
	if (array_grow(&c->items, c->count, sizeof(*c->items)) < 0)
		return -1;
	copy = strndup(s, n);
	if (!copy)
		return -1;
	c->items[c->count++] = copy;
	return 0;
}

void complete_free(struct complete_list *c)
{
	for (size_t i = 0; i < c->count; i++)
		free(c->items[i]);
	free(c->items);
	*c = (struct complete_list){0};
}

int complete_answer(struct complete_list *c, const char *answer, size_t n)
{
	const char *p = answer, *end = answer + n;
	size_t replace = 0, room = c->start - c->python;

	while (p < end && *p >= '0' && *p <= '9' && replace <= room)
		replace = replace * 10 + (size_t)(*p++ - '0');
	if (p == answer || replace > room || (p < end && *p != '\n'))
		return -1;
	c->is_python = true;
	c->start -= replace;
	while (p++ < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t len = nl ? (size_t)(nl - p) : (size_t)(end - p);

		if (len && complete_add(c, p, len) < 0)
			return -1;
		p += len;
	}
	return 0;
}

/* ---- the candidates that the text may hold ---- */

/* The cell up to the cursor. */
struct complete_typed {
	const char *word; /* the last word, as far as it is typed */
	size_t word_n;
	struct utf8_wide python;
	struct pyscan_tail tail;
};

static bool continues_python(const struct complete_typed *t, const char *item)
{
	struct utf8_wide rest = {0};
	bool ok = !strncmp(item, t->word, t->word_n) &&
		  utf8_wide_decode(&rest, item + t->word_n,
			  strlen(item) - t->word_n) == 0 &&
		  pyscan_continues(
			  &t->tail, t->python.s, t->python.n, rest.s, rest.n);

	utf8_wide_free(&rest);
	return ok;
}

/* True if the lexer reads the candidate as one word that begins with the typed
 * one. */
static bool continues_word(const struct complete_typed *t, const char *item)
{
	struct lexer_words typed, whole;
	bool ok;

	lexer_split(t->word, t->word_n, &typed, NULL);
	ok = lexer_split(item, strlen(item), &whole, NULL) == 0 &&
	     whole.n == 1 && typed.n <= 1 &&
	     (!typed.n || !strncmp(whole.v[0].s, typed.v[0].s,
				  strlen(typed.v[0].s)));
	lexer_words_free(&typed);
	lexer_words_free(&whole);
	return ok;
}

void complete_check(struct complete_list *c, const char *text, size_t cursor)
{
	struct complete_typed t = {
		.word = text + c->start, .word_n = cursor - c->start};
	size_t kept = 0;
	bool ok = !c->is_python || utf8_wide_decode(&t.python, text + c->python,
					   cursor - c->python) == 0;

	if (c->is_python)
		t.tail = pyscan_tail(t.python.s, t.python.n);
	for (size_t i = 0; i < c->count; i++) {
		char *item = c->items[i];

		if (ok && (c->is_python ? continues_python(&t, item)
					: continues_word(&t, item)))
			c->items[kept++] = item;
		else
			free(item);
	}
	c->dropped += c->count - kept;
	c->count = kept;
	utf8_wide_free(&t.python);
}

/* ---- the list, and the text ---- */

/* Bytes of the prefix that all candidates share, cut to whole characters. */
static size_t common_prefix(const struct complete_list *c)
{
	const char *first = c->items[0];
	size_t n = strlen(first);

	for (size_t i = 1; i < c->count; i++) {
		size_t k = 0;

		while (k < n && c->items[i][k] == first[k])
			k++;
		n = k;
	}
	return utf8_start(first, n);
}

/* Print the candidates in columns, in at most half of the screen's rows. */
static void list_candidates(struct view *v, const struct complete_list *c)
{
	size_t rows_max = (size_t)v->rows / 2, per_row, shown;
	struct strbuf b = {0};
	int widest = 1;

	for (size_t i = 0; i < c->count; i++) {
		int width = layout_columns(c->items[i], strlen(c->items[i]));

		widest = width > widest ? width : widest;
	}
	per_row = (size_t)v->cols / ((size_t)widest + 2);
	per_row = per_row ? per_row : 1;
	rows_max = rows_max > LIST_ROWS_MAX ? LIST_ROWS_MAX : rows_max;
	rows_max = rows_max ? rows_max : 1;
	shown = rows_max * per_row < c->count ? rows_max * per_row : c->count;
	for (size_t i = 0; i < shown; i++) {
		bool last = (i + 1) % per_row == 0 || i + 1 == shown;
		int pad = widest + 2 -
			  layout_columns(c->items[i], strlen(c->items[i]));

		strbuf_puts(&b, c->items[i]);
		strbuf_printf(&b, "%*s", last ? 0 : pad, "");
		strbuf_puts(&b, last ? "\n" : "");
	}
	if (shown < c->count)
		strbuf_printf(&b, "[%zu more]\n", c->count - shown);
	if (c->dropped)
		strbuf_printf(&b,
			"[%zu not shown: unsafe names, or too many]\n",
			c->dropped);
	if (!b.failed)
		view_print(v, b.s, b.n);
	strbuf_free(&b);
}

/* Put `n` bytes of a candidate in place of [start, cursor). */
static void replace_word(
	struct engine *en, size_t start, const char *s, size_t n)
{
	size_t at = engine_text(en).cursor;
	struct utf8_wide w = {0};

	if (utf8_wide_decode(&w, s, n) == 0 &&
		engine_fits(en, start, at, w.s, w.n))
		engine_replace(en, start, at, w.s, w.n);
	utf8_wide_free(&w);
}

/* Insert the quote and the bracket missing behind the only candidate. */
static void close_behind(struct engine *en, size_t python)
{
	struct engine_text t = engine_text(en);
	char close[PYSCAN_CLOSER];

	pyscan_closer(t.s + python, t.cursor - python, close);
	if (close[0] && (t.cursor == t.n || t.s[t.cursor] != close[0]))
		replace_word(en, t.cursor, close, strlen(close));
}

/* `before` is the cursor's offset in `text`, in bytes. */
static void apply_candidates(struct editor *ed, struct complete_list *c,
	const char *text, size_t before)
{
	size_t typed = before - c->start, n = common_prefix(c);
	size_t start = utf8_count(text, c->start);
	bool extends = n > typed && !c->whole &&
		       !memcmp(c->items[0], text + c->start, typed);

	if (c->count == 1)
		replace_word(
			ed->engine, start, c->items[0], strlen(c->items[0]));
	else if (extends)
		replace_word(ed->engine, start, c->items[0], n);
	if (c->count == 1 && c->is_python)
		close_behind(ed->engine, utf8_count(text, c->python));
	if (c->count == 1 || extends)
		return;
	list_candidates(&ed->view, c);
	ed->walk = (struct walk){*c, start, c->count};
	*c = (struct complete_list){0};
}

bool complete_walk(struct editor *ed, int step)
{
	struct walk *w = &ed->walk;
	size_t n = w->list.count;

	if (!n)
		return false;
	if (w->at == n)
		w->at = step > 0 ? 0 : n - 1;
	else
		w->at = (w->at + (step > 0 ? 1 : n - 1)) % n;
	replace_word(ed->engine, w->start, w->list.items[w->at],
		strlen(w->list.items[w->at]));
	return true;
}

void complete_key(struct editor *ed)
{
	struct engine_text t = engine_text(ed->engine);
	size_t n, before = utf8_size(t.s, t.cursor);
	struct complete_list c = {.start = before};
	auto_free char *text = NULL;
	bool ok;

	if (!ed->opts.complete)
		return;
	text = utf8_from_wide(t.s, t.n, &n);
	ok = text && ed->opts.complete(ed->opts.ctx, text, n, before, &c) == 0;
	if (ok)
		complete_check(&c, text, before);
	if (ok && c.count > 0)
		apply_candidates(ed, &c, text, before);
	else if (c.dropped)
		view_status(
			&ed->view, "[%zu names not shown: unsafe]", c.dropped);
	else if (c.why[0])
		view_status(&ed->view, "[not completed: %s]", c.why);
	complete_free(&c);
}
