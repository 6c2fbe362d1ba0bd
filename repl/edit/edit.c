/* SPDX-License-Identifier: MIT */
/*
 * edit.c - the command of each key; the history, and the search in it
 *
 * Runs in:   the front end, inside editor_read()
 * Holds:     the killed text, the text's earlier versions, and the person's own
 *            text while an entry of the history is shown
 * Trusts:    nothing in the text; the history's entries to be UTF-8 without
 *            controls
 * Leaves:    a text no longer than a cell may be
 */

#include "jail/base/io.h"
#include "parts.h"
#include "repl/edit/python.h"

#define INDENT 4
/* Longer than any name of a command. */
#define COMMAND_MAX 32
#define SEARCH_MAX 200
#define NO_ENTRY ((size_t)-1)
#define NO_GOAL (-1)

/* NO_ENTRY is the history's end: we do not read the file before a key needs
 * it. */
void edit_begin(struct editor *ed, const struct engine_text *start)
{
	ed->edit.last_code = 0;
	ed->edit.unseen = 0;
	if (undo_begin(&ed->edit.undo, start->s, start->n, start->cursor) < 0)
		undo_free(&ed->edit.undo);
	view_status(&ed->view, "%s", "");
	complete_free(&ed->walk.list);
	call_forget(ed);
	ed->recall.entry = NO_ENTRY;
	ed->recall.recalled = false;
	ed->recall.searching = false;
	utf8_wide_free(&ed->recall.draft);
}

void edit_free(struct editor *ed)
{
	complete_free(&ed->walk.list);
	call_forget(ed);
	undo_free(&ed->edit.undo);
	utf8_wide_free(&ed->edit.killed);
	utf8_wide_free(&ed->recall.draft);
	utf8_wide_free(&ed->recall.pattern);
	utf8_wide_free(&ed->recall.old);
	strbuf_free(&ed->recall.rest);
}

static void say_full(struct editor *ed, const char *what)
{
	view_status(&ed->view, "[a %s has at most %zu bytes: not %s]",
		ed->opts.line ? "line" : "cell", ed->opts.max_bytes, what);
}

/* Insert at the cursor, within the limit. */
static void insert_text(struct editor *ed, const wchar_t *s, size_t n)
{
	size_t at = engine_text(ed->engine).cursor;

	if (!engine_fits(ed->engine, s, n))
		say_full(ed, "inserted");
	else if (engine_replace(ed->engine, at, at, s, n) < 0)
		view_status(&ed->view, "[no memory: not inserted]");
}

/* ---- places ---- */

static size_t left_of_cursor(const struct engine_text *t)
{
	return layout_prev(t->s, t->cursor);
}

static size_t right_of_cursor(const struct engine_text *t)
{
	return layout_next(t->s, t->n, t->cursor);
}

size_t edit_line_start(const struct engine_text *t)
{
	return engine_line_start(t, t->cursor);
}

size_t edit_line_end(const struct engine_text *t)
{
	return engine_line_end(t, t->cursor);
}

static size_t text_start(const struct engine_text *t)
{
	(void)t;
	return 0;
}

size_t edit_text_end(const struct engine_text *t)
{
	return t->n;
}

static size_t word_left(const struct engine_text *t)
{
	size_t at = t->cursor;

	while (at > 0 && !edit_is_word(t->s[at - 1]))
		at--;
	while (at > 0 && edit_is_word(t->s[at - 1]))
		at--;
	return at;
}

static size_t word_right(const struct engine_text *t)
{
	size_t at = t->cursor;

	while (at < t->n && !edit_is_word(t->s[at]))
		at++;
	while (at < t->n && edit_is_word(t->s[at]))
		at++;
	return at;
}

/* The end of the line; if the cursor is there, the start of the next line. */
static size_t end_or_next(const struct engine_text *t)
{
	size_t at = edit_line_end(t);

	return at == t->cursor ? at + (at < t->n) : at;
}

/* In the blanks that begin a line, the level before; else one character
 * left. */
static size_t level_left(const struct engine_text *t)
{
	size_t start = edit_line_start(t), at = start, n;

	while (at < t->cursor && t->s[at] == ' ')
		at++;
	if (at != t->cursor || at == start)
		return left_of_cursor(t);
	n = (at - start) % INDENT;
	return at - (n ? n : INDENT);
}

/* ---- earlier cells ---- */

static size_t history_entries(const struct editor *ed)
{
	return ed->opts.history ? history_count(ed->opts.history) : 0;
}

static void show_entry(struct editor *ed, size_t entry, size_t cursor)
{
	struct recall *re = &ed->recall;
	struct engine_text t = engine_text(ed->engine);
	struct utf8_wide text = {0};
	const char *s;
	size_t n;

	if (re->entry == NO_ENTRY) {
		utf8_wide_set(&re->draft, t.s, t.n);
		re->draft_cursor = t.cursor;
	}
	s = history_get(ed->opts.history, entry, &n);
	if (!s || utf8_wide_decode(&text, s, n) < 0)
		return;
	re->entry = entry;
	re->recalled = true;
	ed->edit.goal = NO_GOAL;
	engine_set(
		ed->engine, text.s, text.n, cursor < text.n ? cursor : text.n);
	utf8_wide_free(&text);
}

static void show_own(
	struct editor *ed, const struct utf8_wide *text, size_t cursor)
{
	ed->recall.entry = NO_ENTRY;
	ed->recall.recalled = false;
	engine_set(ed->engine, text->s, text->n, cursor);
}

/* Show the nearest entry after the one shown (`back`: before it) that differs
 * from the text shown and begins with the person's own text up to its cursor
 * (`any`: each entry). Behind the last entry comes the person's own text. */
static void step_history(struct editor *ed, bool back, bool any)
{
	struct recall *re = &ed->recall;
	struct engine_text t = engine_text(ed->engine);
	size_t count = history_entries(ed), at = re->entry, n, len;
	bool own = at == NO_ENTRY;
	auto_free char *shown = utf8_from_wide(t.s, t.n, &len);
	size_t begin = any   ? 0
		       : own ? utf8_size(t.s, t.cursor)
			     : utf8_size(re->draft.s, re->draft_cursor);
	auto_free char *prefix =
		own ? utf8_from_wide(t.s, t.n, &n)
		    : utf8_from_wide(re->draft.s, re->draft.n, &n);
	const char *s;

	if (!shown || !prefix || (own && !back))
		return;
	for (at = own ? count : at; back ? at > 0 : ++at < count;) {
		at -= back;
		s = history_get(ed->opts.history, at, &n);
		if (s && n >= begin && !memcmp(s, prefix, begin) &&
			(n != len || memcmp(s, shown, n))) {
			show_entry(ed, at, NO_ENTRY);
			return;
		}
	}
	if (!back)
		show_own(ed, &re->draft, re->draft_cursor);
}

/* Suggest how an earlier cell goes on: the view shows one line, a key takes
 * all. */
static void suggest_rest(struct editor *ed)
{
	struct recall *re = &ed->recall;
	struct engine_text t = engine_text(ed->engine);
	bool wanted = ed->view.notes && !re->searching &&
		      re->entry == NO_ENTRY && t.n && t.cursor == t.n;
	size_t n, len, at = wanted ? history_entries(ed) : 0;
	auto_free char *s = at ? utf8_from_wide(t.s, t.n, &n) : NULL;
	const char *entry, *rest;

	strbuf_free(&re->rest);
	while (s && !re->rest.n && at-- > 0) {
		entry = history_get(ed->opts.history, at, &len);
		if (entry && len > n && !memcmp(entry, s, n))
			strbuf_puts(&re->rest, entry + n);
	}
	rest = re->rest.n ? re->rest.s : "";
	view_hint(&ed->view, rest, strcspn(rest, "\n"));
}

static bool take_suggestion(struct editor *ed)
{
	struct utf8_wide text = {0};
	struct strbuf *rest = &ed->recall.rest;
	struct engine_text t = engine_text(ed->engine);

	if (!rest->n || t.cursor != t.n ||
		utf8_wide_decode(&text, rest->s, rest->n) < 0)
		return false;
	insert_text(ed, text.s, text.n);
	utf8_wide_free(&text);
	return true;
}

static void show_older(struct editor *ed)
{
	step_history(ed, true, true);
}

static void show_newer(struct editor *ed)
{
	step_history(ed, false, true);
}

/* ---- the search ---- */

/* Show the newest match before entry `before`. Without a match the text
 * stays. */
static void search_step(struct editor *ed, size_t before)
{
	struct recall *re = &ed->recall;
	size_t n, len, hit = NO_ENTRY;
	auto_free char *s = utf8_from_wide(re->pattern.s, re->pattern.n, &n);
	const char *entry, *match;

	if (!s)
		return;
	if (n)
		hit = history_find(ed->opts.history, before, s, n);
	view_status(&ed->view, "%s: %s",
		n && hit == NO_ENTRY ? "no match" : "search", s);
	if (hit == NO_ENTRY)
		return;
	re->found = hit;
	entry = history_get(ed->opts.history, hit, &len);
	match = memmem(entry, len, s, n);
	show_entry(ed, hit, utf8_count(entry, (size_t)(match - entry)));
}

static void begin_search(struct editor *ed)
{
	struct recall *re = &ed->recall;
	struct engine_text t = engine_text(ed->engine);

	if (!ed->opts.history)
		return;
	utf8_wide_set(&re->old, t.s, t.n);
	re->old_cursor = t.cursor;
	re->pattern.n = 0;
	re->found = history_entries(ed);
	re->searching = true;
	view_status(&ed->view, "search: ");
}

/* Handle a key during a search. True: the search has used it. */
static bool search_key(struct editor *ed, const struct key *key)
{
	struct recall *re = &ed->recall;

	if (!re->searching)
		return false;
	switch (key->code) {
	case KEY_TEXT:
		if (re->pattern.n < SEARCH_MAX)
			utf8_wide_add(&re->pattern, &key->c, 1);
		/* The entry shown may match the longer pattern, too. */
		search_step(ed, re->found + (re->found < history_entries(ed)));
		return true;
	case 0x7F:
	case KEYS_CTRL('H'):
		if (re->pattern.n)
			re->pattern.s[--re->pattern.n] = 0;
		search_step(ed, history_entries(ed));
		return true;
	case KEYS_CTRL('R'):
		search_step(ed, re->found);
		return true;
	case '\r':
	case '\n':
		if (re->found < history_entries(ed))
			ed->edit.result = EDITOR_CELL;
		break;
	}
	re->searching = false;
	if (key->code == KEYS_CTRL('C') || key->code == KEYS_CTRL('G'))
		show_own(ed, &re->old, re->old_cursor);
	utf8_wide_free(&re->old);
	return key->code == KEYS_CTRL('C') || key->code == KEYS_CTRL('G') ||
	       ed->edit.result != EDITOR_GO_ON;
}

/* ---- Up and Down ---- */

/* Move the cursor in the line [start, line_end) to the place nearest to the
 * column that Up and Down keep to. */
static void move_to_line(struct editor *ed, const struct engine_text *t,
	size_t start, size_t line_end)
{
	struct edit *e = &ed->edit;
	int last = e->last_code, col = 0;
	struct layout_glyph g;

	if (e->goal == NO_GOAL ||
		(last != KEY_UP && last != KEY_DOWN && last != KEYS_CTRL('P') &&
			last != KEYS_CTRL('N')))
		e->goal = layout_width(t->s + edit_line_start(t),
			t->cursor - edit_line_start(t), 0);
	for (; start < line_end; start++) {
		layout_glyph(t->s[start], col, 1 << 20, &g);
		if (col + g.width > e->goal)
			break;
		col += g.width;
	}
	engine_move(ed->engine, start);
}

static void key_up(struct editor *ed)
{
	struct engine_text t = engine_text(ed->engine);
	size_t at = edit_line_start(&t);

	if (at == 0)
		step_history(ed, true, false);
	else
		move_to_line(ed, &t, engine_line_start(&t, at - 1), at - 1);
}

static void key_down(struct editor *ed)
{
	struct engine_text t = engine_text(ed->engine);
	size_t at = edit_line_end(&t);

	if (at == t.n)
		step_history(ed, false, false);
	else
		move_to_line(ed, &t, at + 1, engine_line_end(&t, at + 1));
}

/* ---- Enter and indentation ---- */

/* True of %%name, which takes the lines below it. */
static bool is_cell_magic(const wchar_t *s, size_t n)
{
	for (; n && (*s == ' ' || *s == '\t'); n--)
		s++;
	return n > 1 && s[0] == '%' && s[1] == '%';
}

/* The offset at which Python begins: behind a command that takes a cell, at the
 * end of any other command, else 0. A command is a text whose first non-blank
 * is a colon, or % or !, with which other prompts begin commands. */
static size_t python_at(const struct editor *ed, const wchar_t *s, size_t n)
{
	char name[COMMAND_MAX];
	size_t i = 0, len = 0;

	while (i < n && (s[i] == ' ' || s[i] == '\t'))
		i++;
	if (i < n && (s[i] == '!' || (s[i] == '%' && !is_cell_magic(s, n))))
		return n;
	if (i == n || s[i] != ':')
		return 0;
	for (i++; i < n && !text_is_blank(s[i]); i++) {
		if (len == sizeof(name) || s[i] >= 0x80)
			return n;
		name[len++] = (char)s[i];
	}
	return ed->opts.takes_cell &&
			       ed->opts.takes_cell(ed->opts.ctx, name, len)
		       ? i
		       : n;
}

bool edit_runs(const struct editor *ed, const wchar_t *s, size_t n)
{
	size_t at = python_at(ed, s, n);
	struct pyblock scan = pyblock_cell(s + at, n - at);

	if (ed->opts.line)
		return true;
	if (is_cell_magic(s, n))
		return scan.last_blank;
	return scan.state == PYBLOCK_EMPTY || scan.state == PYBLOCK_COMPLETE ||
	       (scan.state != PYBLOCK_INSIDE && scan.last_blank);
}

size_t edit_trim(const wchar_t *s, size_t n)
{
	for (;;) {
		size_t at = n;

		while (at > 0 && (s[at - 1] == ' ' || s[at - 1] == '\t'))
			at--;
		if (at == 0)
			return 0;
		if (s[at - 1] != '\n')
			return n;
		n = at - 1;
	}
}

static void key_newline(struct editor *ed)
{
	struct engine_text t = engine_text(ed->engine);
	struct pyblock_indent in = pyblock_indent(t.s, t.cursor);
	const wchar_t *indent = t.s + in.start;
	bool tabs = in.n > 0 && indent[in.n - 1] == '\t';
	size_t unit = tabs ? 1 : INDENT, n = in.n;
	struct utf8_wide line = {0};

	if (ed->opts.line) {
		ed->edit.result = EDITOR_CELL;
		return;
	}
	if (in.change < 0)
		n = n >= unit ? n - unit : 0;
	utf8_wide_add(&line, L"\n", 1);
	utf8_wide_add(&line, indent, n);
	if (in.change > 0)
		utf8_wide_add(&line, tabs ? L"\t" : L"    ", unit);
	insert_text(ed, line.s, line.n);
	ed->edit.unseen = line.n - 1;
	utf8_wide_free(&line);
}

static void key_enter(struct editor *ed)
{
	struct engine_text t = engine_text(ed->engine);
	bool one_line = engine_line_end(&t, 0) == t.n;
	bool command = t.n && python_at(ed, t.s, t.n) == t.n;
	size_t at = t.cursor;

	while (at < t.n && text_is_blank(t.s[at]))
		at++;
	if (at < t.n && !one_line && !command)
		key_newline(ed);
	else if (edit_runs(ed, t.s, t.n) || (ed->recall.recalled && at == t.n))
		ed->edit.result = EDITOR_CELL;
	else
		key_newline(ed);
}

/* Remove our indentation, if the view has not drawn it: a person who types
 * blanks this early wants only their own. */
static void drop_unseen(struct editor *ed)
{
	size_t at = engine_text(ed->engine).cursor, n = ed->edit.unseen;

	engine_replace(ed->engine, at - n, at, NULL, 0);
	ed->edit.unseen = 0;
}

static void key_tab(struct editor *ed)
{
	struct engine_text t;
	size_t start, at;

	drop_unseen(ed);
	t = engine_text(ed->engine);
	start = at = edit_line_start(&t);
	while (at < t.cursor && (t.s[at] == ' ' || t.s[at] == '\t'))
		at++;
	if (complete_walk(ed, 1))
		return;
	if (ed->opts.line)
		insert_text(ed, L"\t", 1);
	else if (at == t.cursor)
		insert_text(ed, L"    ", INDENT - (at - start) % INDENT);
	else
		complete_key(ed);
}

static void key_back_tab(struct editor *ed)
{
	struct engine_text t = engine_text(ed->engine);
	size_t start = edit_line_start(&t), n = 0, cursor = t.cursor;

	if (complete_walk(ed, -1))
		return;
	while (start + n < t.n && n < INDENT && t.s[start + n] == ' ')
		n++;
	if (n == 0 && start < t.n && t.s[start] == '\t')
		n = 1;
	engine_replace(ed->engine, start, start + n, NULL, 0);
	engine_move(ed->engine, cursor < start + n ? start : cursor - n);
}

/* Indent the cursor's line as its first word or its closing bracket demands. */
static void dedent_line(struct editor *ed)
{
	struct engine_text t = engine_text(ed->engine);
	const wchar_t *python = t.s + python_at(ed, t.s, t.cursor);
	size_t start = edit_line_start(&t), old = start;
	struct pyblock_indent in;

	if (t.cursor != edit_line_end(&t) ||
		!pyblock_dedent(python, (size_t)(t.s + t.cursor - python), &in))
		return;
	while (text_is_blank(t.s[old]))
		old++;
	engine_replace(ed->engine, start, old, python + in.start, in.n);
	engine_move(ed->engine, t.cursor - (old - start) + in.n);
}

/* ---- before the text is drawn ---- */

void edit_look(struct editor *ed)
{
	struct engine_text t = engine_text(ed->engine);
	size_t at = t.cursor, pair[2];
	bool paired = false;

	ed->edit.unseen = 0;
	/* Prefer the bracket under the cursor to the one before it. */
	for (int i = 0; i < 2 && !paired; i++, at--) {
		if (at < t.n && wcschr(L"()[]{}", t.s[at]))
			paired = pyblock_match(t.s, t.n, at, pair);
		if (!at)
			break;
	}
	suggest_rest(ed);
	call_look(ed, python_at(ed, t.s, t.n));
	view_pair(&ed->view, paired ? pair : NULL);
}

/* ---- other keys ---- */

static void key_text(struct editor *ed)
{
	wchar_t c = ed->edit.key.c;

	if (c == ' ')
		drop_unseen(ed);
	insert_text(ed, &c, 1);
	if (wcschr(L":)]}", c) && !ed->opts.line)
		dedent_line(ed);
}

static void key_right(struct editor *ed)
{
	struct engine_text t = engine_text(ed->engine);

	if (!take_suggestion(ed))
		engine_move(ed->engine, right_of_cursor(&t));
}

static void key_end(struct editor *ed)
{
	struct engine_text t = engine_text(ed->engine);

	if (!take_suggestion(ed))
		engine_move(ed->engine, edit_line_end(&t));
}

/* Replace a paste at `at` by the code in it. One undo brings the paste back. */
static void understand_paste(struct editor *ed, size_t at)
{
	struct engine_text t = engine_text(ed->engine);
	const struct utf8_wide *paste = &ed->input.paste;
	struct pyscan_tail before = pyscan_tail(t.s, at);
	struct utf8_wide code = {0};
	enum pypaste what = PYPASTE_PLAIN;
	size_t line = engine_line_start(&t, at), i = line;

	while (i < at && text_is_blank(t.s[i]))
		i++;
	/* Inside a line or a string a prompt may be text. */
	if (i == at && !before.is_open)
		what = pypaste_read(paste->s, paste->n, &code);
	if (what == PYPASTE_TRANSCRIPT ||
		(what == PYPASTE_INDENTED && edit_trim(t.s, at) == 0 &&
			line == at)) {
		undo_note(&ed->edit.undo, t.s, t.n, t.cursor);
		engine_replace(ed->engine, at, t.cursor, code.s, code.n);
		view_status(&ed->view, "[%s: Ctrl-_ brings %s back]",
			what == PYPASTE_INDENTED
				? "the indentation is left out"
				: "prompts and output are left out",
			what == PYPASTE_INDENTED ? "it" : "them");
	}
	utf8_wide_free(&code);
}

static void key_paste(struct editor *ed)
{
	const struct input *in = &ed->input;
	size_t at = engine_text(ed->engine).cursor;

	if (in->paste_cut) {
		say_full(ed, "pasted");
		return;
	}
	insert_text(ed, in->paste.s, in->paste.n);
	if (!ed->opts.line &&
		engine_text(ed->engine).cursor == at + in->paste.n)
		understand_paste(ed, at);
	if (in->keys.stalled)
		view_status(&ed->view,
			"[more of the paste is awaited: Ctrl-C ends it]");
}

static void key_yank(struct editor *ed)
{
	insert_text(ed, ed->edit.killed.s, ed->edit.killed.n);
}

/* Swap the characters before and at the cursor; at the end of the line, the
 * last two. */
static void key_transpose(struct editor *ed)
{
	struct engine_text t = engine_text(ed->engine);
	size_t at =
		t.cursor == edit_line_end(&t) ? left_of_cursor(&t) : t.cursor;
	size_t from = layout_prev(t.s, at), to = layout_next(t.s, t.n, at);
	auto_free wchar_t *swapped = NULL;

	if (t.cursor == edit_line_start(&t) || at == edit_line_start(&t))
		return;
	swapped = calloc(to - from, sizeof(*swapped));
	if (!swapped)
		return;
	wmemcpy(swapped, t.s + at, to - at);
	wmemcpy(swapped + (to - at), t.s + from, at - from);
	engine_replace(ed->engine, from, to, swapped, to - from);
}

static void key_undo(struct editor *ed)
{
	struct undo *u = &ed->edit.undo;

	if (undo_pop(u))
		engine_set(ed->engine, u->now.s, u->now.n, u->cursor);
}

static void key_clear(struct editor *ed)
{
	view_clear_screen(&ed->view);
}

static void key_ctrl_d(struct editor *ed)
{
	struct engine_text t = engine_text(ed->engine);

	if (t.n == 0)
		ed->edit.result = EDITOR_EOF;
	else
		engine_replace(
			ed->engine, t.cursor, right_of_cursor(&t), NULL, 0);
}

/* ---- the table ---- */

static const struct edit_command commands[256] = {
	['\r'] = {.run = key_enter},
	['\n'] = {.run = key_enter},
	['\t'] = {.run = key_tab},
	[0x7F] = {EDIT_CUT, level_left},
	[KEYS_CTRL('A')] = {EDIT_MOVE, edit_line_start},
	[KEYS_CTRL('B')] = {EDIT_MOVE, left_of_cursor},
	[KEYS_CTRL('C')] = {.ends = EDITOR_INTERRUPT},
	[KEYS_CTRL('D')] = {.run = key_ctrl_d},
	[KEYS_CTRL('E')] = {.run = key_end},
	[KEYS_CTRL('F')] = {.run = key_right},
	[KEYS_CTRL('H')] = {EDIT_CUT, level_left},
	[KEYS_CTRL('K')] = {EDIT_KILL, end_or_next},
	[KEYS_CTRL('L')] = {.run = key_clear},
	[KEYS_CTRL('N')] = {.run = key_down},
	[KEYS_CTRL('O')] = {.run = key_newline},
	[KEYS_CTRL('P')] = {.run = key_up},
	[KEYS_CTRL('R')] = {.run = begin_search},
	[KEYS_CTRL('T')] = {.run = key_transpose},
	[KEYS_CTRL('U')] = {EDIT_KILL, edit_line_start},
	[KEYS_CTRL('W')] = {EDIT_KILL, word_left},
	[KEYS_CTRL('Y')] = {.run = key_yank},
	[KEYS_CTRL('_')] = {.run = key_undo},
	[KEY_TEXT] = {.run = key_text},
	[KEY_UP] = {.run = key_up},
	[KEY_DOWN] = {.run = key_down},
	[KEY_LEFT] = {EDIT_MOVE, left_of_cursor},
	[KEY_RIGHT] = {.run = key_right},
	[KEY_HOME] = {EDIT_MOVE, edit_line_start},
	[KEY_END] = {.run = key_end},
	[KEY_DELETE] = {EDIT_CUT, right_of_cursor},
	[KEY_PAGE_UP] = {.run = show_older},
	[KEY_PAGE_DOWN] = {.run = show_newer},
	[KEY_WORD_LEFT] = {EDIT_MOVE, word_left},
	[KEY_WORD_RIGHT] = {EDIT_MOVE, word_right},
	[KEY_TOP] = {EDIT_MOVE, text_start},
	[KEY_BOTTOM] = {EDIT_MOVE, edit_text_end},
	[KEY_ALT_ENTER] = {.ends = EDITOR_CELL},
	[KEY_ALT_BACKSPACE] = {EDIT_KILL, word_left},
	[KEY_ALT_D] = {EDIT_KILL, word_right},
	[KEY_BACK_TAB] = {.run = key_back_tab},
	[KEY_PASTE_END] = {.run = key_paste},
};

/* A kill right after a kill extends the killed text at its start or end. */
static void keep_killed(
	struct edit *e, const struct engine_text *t, size_t from, size_t to)
{
	struct utf8_wide now = {0};
	bool more = commands[e->last_code].what == EDIT_KILL;

	if (from == to)
		return;
	if (more && from == t->cursor)
		utf8_wide_add(&now, e->killed.s, e->killed.n);
	utf8_wide_add(&now, t->s + from, to - from);
	if (more && from != t->cursor)
		utf8_wide_add(&now, e->killed.s, e->killed.n);
	utf8_wide_free(&e->killed);
	e->killed = now;
}

const struct edit_command *edit_command(int code)
{
	return &commands[code & 0xFF];
}

void edit_do(struct editor *ed, const struct edit_command *c)
{
	struct engine_text t = engine_text(ed->engine);
	size_t to, from;

	if (c->ends)
		ed->edit.result = c->ends;
	if (c->run)
		c->run(ed);
	if (!c->to)
		return;
	to = c->to == level_left && ed->opts.line ? left_of_cursor(&t)
						  : c->to(&t);
	if (c->what == EDIT_MOVE) {
		engine_move(ed->engine, to);
		return;
	}
	from = to < t.cursor ? to : t.cursor;
	to = to < t.cursor ? t.cursor : to;
	if (c->what == EDIT_KILL)
		keep_killed(&ed->edit, &t, from, to);
	engine_replace(ed->engine, from, to, NULL, 0);
}

bool edit_begin_key(struct editor *ed, const struct key *key)
{
	struct edit *e = &ed->edit;

	e->key = *key;
	e->result = EDITOR_GO_ON;
	view_status(&ed->view, "%s", "");
	if (key->code != '\t' && key->code != KEY_BACK_TAB)
		complete_free(&ed->walk.list);
	if (search_key(ed, key))
		return false;
	if (key->code != '\t' && (key->code != KEY_TEXT || key->c != ' '))
		e->unseen = 0;
	return true;
}

void edit_end_key(struct editor *ed)
{
	struct edit *e = &ed->edit;
	struct engine_text t;

	/* No key takes a suggestion that the view has not drawn yet. */
	strbuf_free(&ed->recall.rest);
	e->last_code = e->key.code;
	t = engine_text(ed->engine);
	if (undo_note(&e->undo, t.s, t.n, t.cursor) < 0)
		undo_free(&e->undo);
}
