/* SPDX-License-Identifier: MIT */
/*
 * expressions.c - expressions that the person watches: their values, above the
 * prompt
 *
 * Runs in:   front end, between cells
 * Trusts:    nothing that Python says of a value: the text is made safe, and
 *            stands in a line that begins with the person's own words
 * Leaves:    the session as it was: what runs code runs in a copy of Python
 *
 * After a line that the person typed we ask for each value, and show those that
 * are not as they were. Where nothing is watched, nothing is asked.
 */
#include "repl/session/session.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "repl/edit/editor.h"
#include "repl/term/term.h"
#include "repl/text/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes that we keep of an answer. */
#define ANSWER_BYTES 768
/* An expression without an answer that took this long is not asked for again by
 * itself. */
#define SLOW_MS 100
/* Columns of a frame line that are not text. */
#define FRAME_COLUMNS 4
/* With fewer columns for it, the earlier value is not shown. */
#define WAS_COLUMNS 12

struct expression {
	char *text;
	/* As ASK_WATCH answers; or '!' and why there is no answer; or empty. */
	char now[ANSWER_BYTES], was[ANSWER_BYTES];
	bool slow;
};

struct expressions {
	struct expression v[EXPRESSIONS_MAX];
	size_t n;
	bool due;
};

/* ---- a line ---- */

struct line {
	struct strbuf b;
	int room; /* columns left */
};

/* Append the beginning of a text that fits into `most` columns. */
static void add_part(struct line *l, const char *text, size_t n, int most)
{
	char safe[4 * ANSWER_BYTES];
	size_t at = l->b.n;

	most = most < l->room ? most : l->room;
	if (most <= 0)
		return;
	text_safe(safe, sizeof(safe), text, n);
	text_cut(&l->b, safe, most);
	if (!l->b.failed)
		l->room -= layout_columns(l->b.s + at, l->b.n - at);
}

static void add_words(struct line *l, const char *words)
{
	add_part(l, words, strlen(words), l->room);
}

static bool is_value(const char *answer)
{
	return *answer == '=' || *answer == ':';
}

/* Append the value or the exception of an answer, up to one of `ends`. */
static void add_said(struct line *l, const char *answer, const char *ends)
{
	add_part(l, answer + 1, strcspn(answer + 1, ends), l->room);
}

/* Append what the value was before, or that another part of it has changed than
 * is shown. For an exception it is only the name. */
static void add_was(struct line *l, const struct expression *x)
{
	size_t n = strcspn(x->now, "\n");

	if (strcspn(x->was, "\n") == n && !memcmp(x->was, x->now, n)) {
		l->room = WAS_COLUMNS;
		add_words(l, " · changed");
	} else if (l->room >= WAS_COLUMNS) {
		add_words(l, " · was ");
		add_said(l, x->was, *x->was == ':' ? ":\n" : "\n");
	}
}

/* Append the value, and where it has one the value before: if not both fit,
 * each has half of the room. */
static void add_value(struct line *l, const struct expression *x, bool with_was)
{
	struct line now = {.room = l->room}, was = {0};

	add_said(&now, x->now, "\n");
	was.room = now.room > l->room / 2 ? now.room : l->room / 2;
	if (with_was && is_value(x->was))
		add_was(&was, x);
	if (was.b.n)
		l->room -= layout_columns(was.b.s, was.b.n);
	add_said(l, x->now, "\n");
	if (was.b.n)
		strbuf_add(&l->b, was.b.s, was.b.n);
	l->b.failed |= was.b.failed;
	strbuf_free(&now.b);
	strbuf_free(&was.b);
}

/* Show a value, with its number if that is not 0, else with the value that it
 * had before. */
static void show_line(
	struct session *s, const struct expression *x, size_t number)
{
	struct line l = {0};
	char no[24];
	int rows;

	editor_size(s->editor, &rows, &l.room);
	l.room -= FRAME_COLUMNS;
	if (number) {
		snprintf(no, sizeof(no), "%zu: ", number);
		add_words(&l, no);
	}
	if (is_value(x->now)) {
		add_part(&l, x->text, strlen(x->text), l.room / 2);
		add_words(&l, *x->now == '=' ? " = " : ": ");
		add_value(&l, x, !number);
	} else {
		add_words(&l, "not shown: ");
		add_said(&l, x->now, "\n");
		add_words(&l, x->slow ? " · :watch tries again" : "");
	}
	if (l.b.n && !l.b.failed)
		session_frame(s, "%s", l.b.s);
	strbuf_free(&l.b);
}

/* ---- values ---- */

/* Write the answer to keep. `e`: why there is none. */
static void keep_answer(const struct expression *x, const char *answer,
	const struct err *e, char to[static ANSWER_BYTES])
{
	if (e->msg[0])
		snprintf(to, ANSWER_BYTES, "!%s", e->msg);
	else if (is_value(answer))
		snprintf(to, ANSWER_BYTES, "%s", answer);
	else if (*answer == '?')
		snprintf(to, ANSWER_BYTES, "?%s is not an expression", x->text);
	else if (*answer == '-')
		snprintf(to, ANSWER_BYTES,
			"!Python cannot be copied to evaluate %s", x->text);
	else
		snprintf(to, ANSWER_BYTES, "!Python does not say what %s is",
			x->text);
}

/* Ask for the value. True if it is another one than before; false also if the
 * person does not want to wait. */
static bool ask_value(struct session *s, struct expression *x)
{
	const int64_t since = now_ms();
	auto_free char *answer = NULL;
	char said[ANSWER_BYTES];
	struct err e = {0};
	size_t n;
	int r = jail_ask(
		s->jail, ASK_WATCH, x->text, strlen(x->text), &answer, &n, &e);

	if (s->signals->interrupt)
		return false;
	keep_answer(x, r < 0 ? "" : answer, &e, said);
	x->slow = !is_value(said) && now_ms() - since >= SLOW_MS;
	if (!strcmp(said, x->now))
		return false;
	memcpy(x->was, x->now, sizeof(x->was));
	memcpy(x->now, said, sizeof(x->now));
	return true;
}

/* Ctrl-C sends a signal while we ask, as it does for Tab. */
static void begin_asking(struct session *s)
{
	s->signals->interrupt = false;
	terminal_raw_interrupt(s->term, true);
}

static void end_asking(struct session *s)
{
	terminal_raw_interrupt(s->term, false);
	terminal_signals_read(s->signals);
	s->signals->interrupt = false;
	/* Events that came before the answers. */
	cell_take_events(s);
}

void expressions_expire(struct session *s)
{
	if (s->expressions)
		s->expressions->due = true;
}

void expressions_show(struct session *s)
{
	struct expressions *xs = s->expressions;

	if (!xs || !xs->n || !xs->due)
		return;
	xs->due = false;
	begin_asking(s);
	for (size_t i = 0; i < xs->n && !s->signals->interrupt; i++)
		if (!xs->v[i].slow && ask_value(s, &xs->v[i]))
			show_line(s, &xs->v[i], 0);
	end_asking(s);
}

void expressions_list(struct session *s)
{
	struct expressions *xs = s->expressions;

	if (!xs || !xs->n) {
		session_frame(s, "nothing is watched");
		return;
	}
	begin_asking(s);
	for (size_t i = 0; i < xs->n && !s->signals->interrupt; i++) {
		ask_value(s, &xs->v[i]);
		if (!s->signals->interrupt)
			show_line(s, &xs->v[i], i + 1);
	}
	end_asking(s);
}

/* ---- which ---- */

/* The place of an expression, or xs->n. */
static size_t find_text(
	const struct expressions *xs, const char *text, size_t n)
{
	size_t i = 0;

	while (i < xs->n && (strlen(xs->v[i].text) != n ||
				    memcmp(xs->v[i].text, text, n) != 0))
		i++;
	return i;
}

static int check_text(const char *text, size_t n, struct err *e)
{
	if (utf8_count(text, n) > EXPRESSION_CHARS)
		return err_set(e, "more than %d characters cannot be watched",
			EXPRESSION_CHARS);
	if (!utf8_is_visible_text(text, n))
		return err_set(e, "only one line can be watched");
	return 0;
}

int expressions_add(
	struct session *s, const char *text, size_t n, struct err *e)
{
	struct expressions *xs = s->expressions;
	struct expression *x;
	size_t at;

	if (check_text(text, n, e) < 0)
		return -1;
	if (!xs)
		xs = s->expressions = calloc(1, sizeof(*xs));
	if (!xs)
		return err_errno(e, "watch an expression");
	at = find_text(xs, text, n);
	if (at == EXPRESSIONS_MAX) {
		err_set(e, "%d expressions are watched already",
			EXPRESSIONS_MAX);
		return err_hint(e, ":unwatch N makes room");
	}
	x = &xs->v[at];
	if (at == xs->n)
		*x = (struct expression){.text = strndup(text, n)};
	if (!x->text)
		return err_errno(e, "watch an expression");
	begin_asking(s);
	ask_value(s, x);
	end_asking(s);
	x->was[0] = '\0';
	if (x->now[0] && x->now[0] != '?') {
		xs->n += at == xs->n;
		show_line(s, x, 0);
		return 0;
	}
	err_set(e, "%s", x->now[0] ? x->now + 1 : "interrupted");
	if (at == xs->n)
		free(x->text);
	return -1;
}

static void remove_at(struct expressions *xs, size_t at)
{
	free(xs->v[at].text);
	ARRAY_REMOVE(xs->v, xs->n, at);
}

int expressions_remove(
	struct session *s, const char *text, size_t n, struct err *e)
{
	struct expressions *xs = s->expressions;
	size_t at;
	char safe[80];

	if (!xs || !xs->n)
		return err_set(e, "nothing is watched");
	at = find_text(xs, text, n);
	if (n == 1 && *text >= '1' && *text <= '9' && at == xs->n)
		at = (size_t)(*text - '1');
	if (n && at >= xs->n) {
		text_safe(safe, sizeof(safe), text, n);
		err_set(e, "%s is not watched", safe);
		return err_hint(e, ":watch lists what is");
	}
	if (n)
		remove_at(xs, at);
	while (!n && xs->n)
		remove_at(xs, xs->n - 1);
	return 0;
}

void expressions_close(struct session *s)
{
	struct expressions *xs = s->expressions;

	while (xs && xs->n)
		remove_at(xs, xs->n - 1);
	free(xs);
	s->expressions = NULL;
}
