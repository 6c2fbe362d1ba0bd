/* SPDX-License-Identifier: MIT */
/*
 * edit.c - the command of each key; Enter, indentation
 *
 * Runs in:   the front end, inside editor_read()
 * Holds:     the killed text, and the text's earlier versions
 * Trusts:    nothing in the text
 * Leaves:    a text no longer than a cell may be
 */

#include "jail/base/io.h"
#include "parts.h"
#include "repl/edit/python.h"

#define INDENT 4
/* Longer than any name of a command. */
#define COMMAND_MAX 32
#define NO_GOAL (-1)

void edit_begin(struct editor *ed, const struct engine_text *start)
{
	ed->edit.last_code = 0;
	ed->edit.unseen = 0;
	if (undo_begin(&ed->edit.undo, start->s, start->n, start->cursor) < 0)
		undo_free(&ed->edit.undo);
	view_status(&ed->view, "%s", "");
	complete_free(&ed->walk.list);
	call_forget(ed);
	recall_begin(ed);
}

static void set_pasting(struct editor *ed, bool on)
{
	ed->edit.pastes = ed->view.pastes = on;
}

void edit_end(struct editor *ed)
{
	set_pasting(ed, false);
}

void edit_free(struct editor *ed)
{
	complete_free(&ed->walk.list);
	call_forget(ed);
	undo_free(&ed->edit.undo);
	kill_free(&ed->kills);
	recall_free(&ed->recall);
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

static void step_history(struct editor *ed, bool back)
{
	recall_step(ed, back, false);
	ed->edit.goal = NO_GOAL;
}

static void key_up(struct editor *ed)
{
	struct engine_text t = engine_text(ed->engine);
	size_t at = edit_line_start(&t);

	if (at == 0)
		step_history(ed, true);
	else
		move_to_line(ed, &t, engine_line_start(&t, at - 1), at - 1);
}

static void key_down(struct editor *ed)
{
	struct engine_text t = engine_text(ed->engine);
	size_t at = edit_line_end(&t);

	if (at == t.n)
		step_history(ed, false);
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
	if (ed->edit.pastes) {
		change_insert(ed, L"\n", 1);
		return;
	}
	if (in.change < 0)
		n = n >= unit ? n - unit : 0;
	utf8_wide_add(&line, L"\n", 1);
	utf8_wide_add(&line, indent, n);
	if (in.change > 0)
		utf8_wide_add(&line, tabs ? L"\t" : L"    ", unit);
	change_insert(ed, line.s, line.n);
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
	if (ed->edit.pastes || (at < t.n && !one_line && !command))
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

	if (ed->edit.pastes) {
		change_insert(ed, L"\t", 1);
		return;
	}
	drop_unseen(ed);
	t = engine_text(ed->engine);
	start = at = edit_line_start(&t);
	while (at < t.cursor && (t.s[at] == ' ' || t.s[at] == '\t'))
		at++;
	if (complete_walk(ed, 1))
		return;
	if (ed->opts.line)
		change_insert(ed, L"\t", 1);
	else if (at == t.cursor)
		change_insert(ed, L"    ", INDENT - (at - start) % INDENT);
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
	recall_suggest(ed);
	call_look(ed, python_at(ed, t.s, t.n));
	view_pair(&ed->view, paired ? pair : NULL);
}

/* ---- other keys ---- */

static void key_text(struct editor *ed)
{
	wchar_t c = ed->edit.key.c;

	if (c == ' ')
		drop_unseen(ed);
	change_insert(ed, &c, 1);
	if (wcschr(L":)]}", c) && !ed->opts.line && !ed->edit.pastes)
		dedent_line(ed);
}

static void key_right(struct editor *ed)
{
	struct engine_text t = engine_text(ed->engine);

	if (!recall_take_suggestion(ed))
		engine_move(ed->engine, right_of_cursor(&t));
}

static void key_end(struct editor *ed)
{
	struct engine_text t = engine_text(ed->engine);

	if (!recall_take_suggestion(ed))
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
		undo_note(&ed->edit.undo, t.s, t.n, t.cursor, false);
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
		change_say_full(ed, "pasted");
		return;
	}
	change_insert(ed, in->paste.s, in->paste.n);
	if (!ed->opts.line &&
		engine_text(ed->engine).cursor == at + in->paste.n)
		understand_paste(ed, at);
	if (in->keys.stalled)
		view_status(&ed->view,
			"[more of the paste is awaited: Ctrl-C ends it]");
}

/* For a terminal that does not mark what is pasted: take the keys from here to
 * the next F3 as a paste. */
static void key_paste_mode(struct editor *ed)
{
	struct engine_text t = engine_text(ed->engine);
	size_t at = ed->edit.pasted_at;

	if (ed->opts.line)
		return;
	set_pasting(ed, !ed->edit.pastes);
	if (ed->edit.pastes) {
		ed->edit.pasted_at = t.cursor;
		view_status(
			&ed->view, "[what is pasted stays as it is, up to F3]");
	} else if (at < t.cursor && utf8_wide_set(&ed->input.paste, t.s + at,
					    t.cursor - at) == 0) {
		understand_paste(ed, at);
	}
}

static void key_yank_older(struct editor *ed)
{
	int last = ed->edit.last_code;

	if (last == KEYS_CTRL('Y') || last == KEY_ALT_Y)
		kill_yank_older(ed);
}

static void key_last_word(struct editor *ed)
{
	recall_last_word(ed, ed->edit.last_code == KEY_ALT_DOT);
}

static void key_undo(struct editor *ed)
{
	struct undo *u = &ed->edit.undo;

	if (undo_pop(u))
		engine_set(ed->engine, u->now.s, u->now.n, u->cursor);
}

static void key_redo(struct editor *ed)
{
	struct undo *u = &ed->edit.undo;

	if (undo_redo(u))
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
	[KEYS_CTRL('R')] = {.run = recall_begin_search},
	[KEYS_CTRL('T')] = {.run = change_swap_characters},
	[KEYS_CTRL('U')] = {EDIT_KILL, edit_line_start},
	[KEYS_CTRL('W')] = {EDIT_KILL, change_word_left},
	[KEYS_CTRL('Y')] = {.run = kill_yank},
	[KEYS_CTRL('Z')] = {.ends = EDITOR_SUSPEND},
	[KEYS_CTRL('_')] = {.run = key_undo},
	[KEY_TEXT] = {.run = key_text},
	[KEY_UP] = {.run = key_up},
	[KEY_DOWN] = {.run = key_down},
	[KEY_LEFT] = {EDIT_MOVE, left_of_cursor},
	[KEY_RIGHT] = {.run = key_right},
	[KEY_HOME] = {EDIT_MOVE, edit_line_start},
	[KEY_END] = {.run = key_end},
	[KEY_DELETE] = {EDIT_CUT, right_of_cursor},
	[KEY_PAGE_UP] = {.run = recall_older},
	[KEY_PAGE_DOWN] = {.run = recall_newer},
	[KEY_WORD_LEFT] = {EDIT_MOVE, change_word_left},
	[KEY_WORD_RIGHT] = {EDIT_MOVE, change_word_right},
	[KEY_TOP] = {EDIT_MOVE, text_start},
	[KEY_BOTTOM] = {EDIT_MOVE, edit_text_end},
	[KEY_ALT_ENTER] = {.ends = EDITOR_CELL},
	[KEY_ALT_BACKSPACE] = {EDIT_KILL, change_word_left},
	[KEY_ALT_C] = {.run = change_to_title},
	[KEY_ALT_D] = {EDIT_KILL, change_word_right},
	[KEY_ALT_E] = {.run = key_redo},
	[KEY_ALT_L] = {.run = change_to_lower},
	[KEY_ALT_T] = {.run = change_swap_words},
	[KEY_ALT_U] = {.run = change_to_upper},
	[KEY_ALT_Y] = {.run = key_yank_older},
	[KEY_ALT_DOT] = {.run = key_last_word},
	[KEY_CTRL_X_E] = {.ends = EDITOR_PROGRAM},
	[KEY_F1] = {.ends = EDITOR_HELP},
	[KEY_F2] = {.ends = EDITOR_HISTORY},
	[KEY_F3] = {.run = key_paste_mode},
	[KEY_BACK_TAB] = {.run = key_back_tab},
	[KEY_PASTE_END] = {.run = key_paste},
};

const struct edit_command *edit_command(int code)
{
	return &commands[code & 0xFF];
}

/* A line that a cell reads knows no help, no history of cells and no program.
 */
static bool may_end(const struct editor *ed, enum editor_result r)
{
	return !ed->opts.line ||
	       (r != EDITOR_HELP && r != EDITOR_HISTORY && r != EDITOR_PROGRAM);
}

void edit_do(struct editor *ed, const struct edit_command *c)
{
	struct engine_text t = engine_text(ed->engine);
	size_t to, from;

	if (c->ends && may_end(ed, c->ends))
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
	/* A kill right after a kill extends the killed text. */
	if (c->what == EDIT_KILL)
		kill_keep(&ed->kills, t.s + from, to - from,
			commands[ed->edit.last_code].what != EDIT_KILL
				? KILL_ALONE
			: from == t.cursor ? KILL_BEHIND
					   : KILL_BEFORE);
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
	if (recall_search_key(ed, key, &e->result))
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
	if (undo_note(&e->undo, t.s, t.n, t.cursor,
		    e->key.code == KEY_TEXT && !ed->vi.command) < 0)
		undo_free(&e->undo);
}
