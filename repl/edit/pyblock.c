/* SPDX-License-Identifier: MIT */
/*
 * pyblock.c - Python's brackets, lines and blocks, for an editor
 *
 * Runs in:   the front end
 * Holds:     nothing
 * Trusts:    no character of the text; every loop advances
 * Leaves:    nothing
 */
#include "repl/edit/python.h"

#include "jail/base/array.h"

/* Python refuses to nest more than 200 brackets, or 100 blocks. */
#define DEPTH_MAX 200
#define BLOCKS_MAX 100

/* One logical line: a statement, which brackets may spread over many rows. */
struct block_line {
	size_t indent_at, indent_n;
	struct pyscan_token first;
	struct pyscan_token last;
	struct pyscan_token head; /* its block's first token: `if` for `else` */
	bool any;   /* it has a token other than blanks and comments */
	bool colon; /* one of them is a colon outside brackets */
	bool bracket;
	bool lambda;
};

/* An open bracket, and the row it is in. */
struct bracket {
	wchar_t closer;
	size_t row, indent;
};

struct block_walk {
	const wchar_t *s;
	size_t n;
	struct block_line line; /* not finished yet */
	struct block_line done; /* the last finished line with a token */
	size_t lines;		/* how many finished lines with a token */
	/* The last line of each indentation, the deepest one last. */
	struct block_line blocks[BLOCKS_MAX];
	size_t nblocks;
	size_t row;	   /* offset at which this row begins */
	size_t row_indent; /* its leading blanks */
	bool row_code;	   /* a token is on it */
	int depth;
	struct bracket brackets[DEPTH_MAX];
	bool inside; /* the text ends in a string or after a join */
	bool in_string;
	bool broken;
};

static wchar_t closer_of(wchar_t c)
{
	return c == '(' ? ')' : c == '[' ? ']' : '}';
}

static void walk_bracket(struct block_walk *w, const struct pyscan_token *t)
{
	if (t->kind == PYSCAN_OPEN) {
		if (w->depth == DEPTH_MAX)
			w->broken = true;
		else
			w->brackets[w->depth++] =
				(struct bracket){closer_of(w->s[t->start]),
					w->row, w->row_indent};
	} else if (w->depth == 0 ||
		   w->brackets[--w->depth].closer != w->s[t->start]) {
		w->broken = true;
		w->depth = 0;
	}
}

/* The offset behind the blanks at `at`. */
static size_t blanks_end(const wchar_t *s, size_t n, size_t at)
{
	struct pyscan_token t = pyscan_next(s, n, at);

	return t.kind == PYSCAN_SPACE ? t.end : at;
}

static void walk_row_begin(struct block_walk *w, size_t at)
{
	w->row = at;
	w->row_indent = blanks_end(w->s, w->n, at) - at;
	w->row_code = false;
}

static bool token_is(const struct block_walk *w, const struct pyscan_token *t,
	const wchar_t *const *words)
{
	return t->kind == PYSCAN_NAME &&
	       pyscan_is_word(words, w->s + t->start, t->end - t->start);
}

/* Finish a logical line, which ends all deeper blocks. */
static void walk_line(struct block_walk *w)
{
	static const wchar_t *const clauses[] = {
		L"elif", L"else", L"except", L"finally", NULL};
	struct block_line *l = &w->line, *top = NULL;

	while (w->nblocks && w->blocks[w->nblocks - 1].indent_n > l->indent_n)
		w->nblocks--;
	if (w->nblocks && w->blocks[w->nblocks - 1].indent_n == l->indent_n)
		top = &w->blocks[--w->nblocks];
	l->head = top && token_is(w, &l->first, clauses) ? top->head : l->first;
	if (w->nblocks < BLOCKS_MAX)
		w->blocks[w->nblocks++] = *l;
}

static void walk_newline(struct block_walk *w, size_t at)
{
	if (w->depth == 0 && w->line.any) {
		walk_line(w);
		w->done = w->line;
		w->lines++;
		w->line = (struct block_line){0};
	}
	walk_row_begin(w, at);
}

/* True if the operator at `t` is an = alone: not part of == or <=, say. */
static bool is_assignment(
	const struct block_walk *w, const struct pyscan_token *t)
{
	return w->s[t->start] == '=' &&
	       !(t->start && wcschr(L"=!<>:+-*/%&|^@", w->s[t->start - 1])) &&
	       !(t->end < w->n && w->s[t->end] == '=');
}

/* True if no more text can make the statement valid, now that `t` stands behind
 * what the line has. We know the usual mistakes; of the others Python tells
 * when the brackets are closed, or the block ends. */
static bool is_mistake(const struct block_walk *w, const struct pyscan_token *t)
{
	static const wchar_t *const statements[] = {L"assert", L"break",
		L"class", L"continue", L"def", L"del", L"elif", L"except",
		L"finally", L"global", L"import", L"nonlocal", L"pass",
		L"raise", L"return", L"try", L"while", L"with", NULL};
	static const wchar_t *const conditions[] = {
		L"if", L"elif", L"while", NULL};
	static const wchar_t *const definition[] = {L"def", NULL};
	const struct block_line *l = &w->line;
	wchar_t c = w->s[t->start], before = w->s[l->last.start];

	if (!l->any)
		return false;
	if (w->depth && token_is(w, t, statements))
		return true;
	if (t->kind != PYSCAN_OPERATOR)
		return false;
	if (l->last.kind == PYSCAN_OPEN)
		return c == ',' || c == '=' || (c == ':' && before != '[');
	if (w->depth)
		return c == ',' && before == ',';
	if (c == ':')
		return !l->bracket && token_is(w, &l->first, definition);
	return !l->lambda && !l->colon && token_is(w, &l->first, conditions) &&
	       is_assignment(w, t);
}

static void walk_code(struct block_walk *w, const struct pyscan_token *t)
{
	static const wchar_t *const lambda[] = {L"lambda", NULL};
	struct block_line *line = &w->line;

	w->broken |= is_mistake(w, t);
	line->bracket |= t->kind == PYSCAN_OPEN;
	line->lambda |= token_is(w, t, lambda);
	w->row_code = true;
	if (!line->any) {
		line->any = true;
		line->first = *t;
		line->indent_at = w->row;
		line->indent_n = w->row_indent;
	}
	line->last = *t;
	if (t->kind == PYSCAN_OPEN || t->kind == PYSCAN_CLOSE)
		walk_bracket(w, t);
	if (t->kind == PYSCAN_OPERATOR && w->s[t->start] == ':' &&
		w->depth == 0)
		line->colon = true;
	if (t->kind == PYSCAN_STRING) {
		w->broken |= t->broken;
		w->inside |= t->open;
		w->in_string |= t->open;
	}
}

static void walk_text(struct block_walk *w, const wchar_t *s, size_t n)
{
	struct pyscan_token t;

	w->s = s;
	w->n = n;
	walk_row_begin(w, 0);
	for (size_t at = 0; !w->broken; at = t.end) {
		t = pyscan_next(s, n, at);
		if (t.kind == PYSCAN_END)
			return;
		if (t.kind == PYSCAN_NEWLINE) {
			walk_newline(w, t.end);
		} else if (t.kind == PYSCAN_JOIN) {
			w->inside |= t.open;
			/* As at Python's own prompt, a blank row behind a
			 * backslash ends the statement. */
			if (t.end < n)
				walk_row_begin(w, t.end);
		} else if (t.kind != PYSCAN_SPACE && t.kind != PYSCAN_COMMENT) {
			walk_code(w, &t);
		}
	}
}

static bool ends_with(
	const struct block_walk *w, const struct block_line *l, wchar_t c)
{
	return l->last.kind == PYSCAN_OPERATOR && w->s[l->last.start] == c;
}

/* True if a clause such as `else` may follow the line: `if x: y`. */
static bool may_go_on(const struct block_walk *w, const struct block_line *l)
{
	static const wchar_t *const words[] = {L"if", L"try", L"elif", L"else",
		L"except", L"finally", L"case", NULL};

	return l->colon && token_is(w, &l->first, words);
}

static enum pyblock_state walk_state(const struct block_walk *w)
{
	const struct block_line *l = w->line.any ? &w->line : &w->done;
	size_t lines = w->lines + (w->line.any ? 1 : 0);

	if (w->broken)
		return PYBLOCK_COMPLETE;
	if (!l->any)
		return w->inside ? PYBLOCK_INSIDE : PYBLOCK_EMPTY;
	if (!w->in_string && ends_with(w, l, '?'))
		return PYBLOCK_COMPLETE;
	if (w->inside || w->depth > 0)
		return PYBLOCK_INSIDE;
	if (ends_with(w, l, ':'))
		return PYBLOCK_HEADER;
	if (l->first.kind == PYSCAN_OPERATOR && w->s[l->first.start] == '@')
		return PYBLOCK_HEADER;
	if ((l->indent_n > 0 && lines > 1) || may_go_on(w, l))
		return PYBLOCK_BLOCK;
	return PYBLOCK_COMPLETE;
}

struct pyblock pyblock_cell(const wchar_t *s, size_t n)
{
	struct block_walk w = {0};
	size_t row = n;

	walk_text(&w, s, n);
	while (row > 0 && s[row - 1] != '\n')
		row--;
	return (struct pyblock){.state = walk_state(&w),
		.last_blank = row > 0 && blanks_end(s, n, row) == n};
}

struct pyblock_indent pyblock_indent(const wchar_t *s, size_t n)
{
	static const wchar_t *const leaves[] = {
		L"return", L"pass", L"break", L"continue", L"raise", NULL};
	struct block_walk w = {0};
	const struct bracket *open;
	struct pyblock_indent in;

	walk_text(&w, s, n);
	open = w.depth > 0 ? &w.brackets[w.depth - 1] : NULL;
	in = (struct pyblock_indent){.start = w.row, .n = w.row_indent};
	if (w.in_string || w.broken)
		in.n = w.broken ? in.n : 0;
	else if (open && w.row_code &&
		 (open->row == w.row || w.row_indent <= open->indent))
		in = (struct pyblock_indent){open->row, open->indent, 1};
	else if (open)
		in.change = 0;
	else if (w.inside)
		in.change = w.row_code && w.line.indent_at == w.row;
	else if (w.row_code && w.line.any) {
		in.start = w.line.indent_at;
		in.n = w.line.indent_n;
		if (ends_with(&w, &w.line, ':'))
			in.change = 1;
		else if (token_is(&w, &w.line.first, leaves))
			in.change = -1;
	}
	return in;
}

/* True if the clause that the last line begins with may follow the block. */
static bool may_follow(
	const struct block_walk *w, const struct block_line *block)
{
	static const wchar_t *const finals[] = {L"else", L"finally", NULL};
	static const struct {
		const wchar_t *const clause[2], *const heads[6];
	} clauses[] = {
		{{L"elif"}, {L"if"}},
		{{L"else"}, {L"if", L"for", L"while", L"try", L"async"}},
		{{L"except"}, {L"try"}},
		{{L"finally"}, {L"try"}},
		{{L"case"}, {L"case"}},
	};
	const struct pyscan_token *first = &w->line.first;
	bool last = token_is(w, first, finals + 1);

	if (token_is(w, &block->first, last ? finals + 1 : finals))
		return false;
	for (size_t i = 0; i < COUNT(clauses); i++)
		if (token_is(w, first, clauses[i].clause))
			return token_is(w, &block->head, clauses[i].heads);
	return false;
}

/* A clause belongs to the deepest block that it may follow. */
static bool clause_place(const struct block_walk *w, struct pyblock_indent *in)
{
	const struct block_line *l = &w->line;

	if (!l->any || !ends_with(w, l, ':') || w->depth || w->inside)
		return false;
	for (size_t i = w->nblocks; i-- > 0;) {
		const struct block_line *b = &w->blocks[i];

		if (b->indent_n > l->indent_n || !may_follow(w, b))
			continue;
		*in = (struct pyblock_indent){b->indent_at, b->indent_n, 0};
		return b->indent_n < l->indent_n;
	}
	return false;
}

bool pyblock_dedent(const wchar_t *s, size_t n, struct pyblock_indent *in)
{
	struct block_walk w = {0};
	bool closes = n && pyscan_next(s, n, n - 1).kind == PYSCAN_CLOSE;
	const struct bracket *open;

	walk_text(&w, s, closes ? n - 1 : n);
	if (w.broken || w.in_string)
		return false;
	if (!closes)
		return clause_place(&w, in);
	if (!w.depth || w.row_code || w.row + w.row_indent + 1 != n)
		return false;
	open = &w.brackets[w.depth - 1];
	*in = (struct pyblock_indent){open->row, open->indent, 0};
	return open->closer == s[n - 1] && open->indent < w.row_indent;
}

bool pyblock_match(const wchar_t *s, size_t n, size_t at, size_t pair[2])
{
	size_t open[DEPTH_MAX], depth = 0;
	struct pyscan_token t = {0};

	while ((t = pyscan_next(s, n, t.end)).kind != PYSCAN_END) {
		if (t.kind == PYSCAN_OPEN && depth < DEPTH_MAX) {
			open[depth++] = t.start;
		} else if (t.kind == PYSCAN_CLOSE && depth) {
			pair[0] = open[--depth];
			pair[1] = t.start;
			if (closer_of(s[pair[0]]) != s[t.start])
				return false;
			if (pair[0] == at || pair[1] == at)
				return true;
		}
	}
	return false;
}

/* A value: names, calls and items joined by dots; from == to: none. */
struct value {
	size_t from, to;
};

struct value_bracket {
	size_t at;
	struct value before; /* what is called, or of which it is an item */
};

static bool is_value(struct value v)
{
	return v.from < v.to;
}

/* The value that ends with this token. A dot belongs to the value that it
 * continues. `before` ends where the token begins, or is none. */
static struct value extend_value(const wchar_t *s, const struct pyscan_token *t,
	struct value before, bool defines)
{
	bool after_dot = t->start && s[t->start - 1] == '.';
	size_t from = is_value(before) ? before.from : t->start;

	if (t->kind == PYSCAN_OPERATOR && s[t->start] == '.' &&
		is_value(before))
		return (struct value){from, t->end};
	if (t->kind == PYSCAN_STRING)
		return (struct value){t->start, t->end};
	if (t->kind != PYSCAN_NAME || defines || after_dot != is_value(before))
		return (struct value){0};
	return (struct value){from, t->end};
}

bool pyblock_call(const wchar_t *s, size_t n, size_t *from, size_t *to)
{
	static const wchar_t *const definitions[] = {L"def", L"class", NULL};
	struct value_bracket open[DEPTH_MAX];
	struct pyscan_token t = {0};
	struct value last = {0};
	size_t depth = 0;
	bool defines = false;

	while ((t = pyscan_next(s, n, t.end)).kind != PYSCAN_END) {
		if (last.to != t.start)
			last = (struct value){0};
		if (t.kind == PYSCAN_OPEN && depth < DEPTH_MAX) {
			open[depth++] = (struct value_bracket){t.start, last};
			last = (struct value){0};
		} else if (t.kind == PYSCAN_CLOSE && depth) {
			const struct value_bracket *b = &open[--depth];

			last = (struct value){
				is_value(b->before) ? b->before.from : b->at,
				t.end};
		} else {
			last = extend_value(s, &t, last, defines);
		}
		defines = (defines && t.kind == PYSCAN_SPACE) ||
			  (t.kind == PYSCAN_NAME &&
				  pyscan_is_word(definitions, s + t.start,
					  t.end - t.start));
	}
	while (depth && (s[open[depth - 1].at] != '(' ||
				!is_value(open[depth - 1].before)))
		depth--;
	if (!depth)
		return false;
	*from = open[depth - 1].before.from;
	*to = open[depth - 1].before.to;
	return true;
}
