/* SPDX-License-Identifier: MIT */
/*
 * edit.c - what each key does to the text
 *
 * Runs in:   the front end, inside editor_read()
 * Holds:     killed text and the past of the text
 * Trusts:    nothing in the text
 * Leaves:    a text no longer than a cell may be
 */
#include "parts.h"
#include "pyscan.h"

#define CTRL(c) ((c)&0x1F)
#define INDENT 4
/* Longer than any name of a command. */
#define COMMAND_MAX 32

void edit_begin(struct editor *ed)
{
	ed->edit.last_code = 0;
	undo_free(&ed->edit.undo);
	view_status(&ed->view, "%s", "");
}

void edit_free(struct edit *e)
{
	undo_free(&e->undo);
	utf8_wide_free(&e->killed);
}

/* Insert at the cursor, within the limit. */
static enum editor_result insert(struct editor *ed, const wchar_t *s, size_t n)
{
	size_t at = engine_text(ed->engine).cursor;

	if (!engine_fits(ed->engine, s, n))
		view_status(&ed->view,
			"[a cell has at most %zu bytes: not inserted]",
			ed->max_bytes);
	else if (engine_replace(ed->engine, at, at, s, n) < 0)
		view_status(&ed->view, "[no memory: not inserted]");
	return EDITOR_GO_ON;
}

/* ---- places ---- */

static size_t left(const struct engine_text *t)
{
	return layout_prev(t->s, t->cursor);
}

static size_t right(const struct engine_text *t)
{
	return layout_next(t->s, t->n, t->cursor);
}

static size_t home(const struct engine_text *t)
{
	return engine_line_start(t, t->cursor);
}

static size_t end(const struct engine_text *t)
{
	return engine_line_end(t, t->cursor);
}

static size_t top(const struct engine_text *t)
{
	(void)t;
	return 0;
}

static size_t bottom(const struct engine_text *t)
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

/* The end of the line; at the end already, the line feed too. */
static size_t end_or_next(const struct engine_text *t)
{
	size_t at = end(t);

	return at == t->cursor ? at + (at < t->n) : at;
}

/* In the blanks that a line begins with, the level before. */
static size_t level_left(const struct engine_text *t)
{
	size_t start = home(t), at = start, n;

	while (at < t->cursor && t->s[at] == ' ')
		at++;
	if (at != t->cursor || at == start)
		return left(t);
	n = (at - start) % INDENT;
	return at - (n ? n : INDENT);
}

/* ---- Up and Down ---- */

/* Go to the place in the line [start, end) that is nearest to the column which
 * Up and Down keep to. */
static enum editor_result move_to_line(struct editor *ed,
	const struct engine_text *t, size_t start, size_t line_end)
{
	struct edit *e = &ed->edit;
	int last = e->last_code, col = 0;
	struct layout_glyph g;

	if (last != KEY_UP && last != KEY_DOWN && last != CTRL('P') &&
		last != CTRL('N'))
		e->goal = layout_width(t->s + home(t), t->cursor - home(t), 0);
	for (; start < line_end; start++) {
		layout_glyph(t->s[start], col, 1 << 20, &g);
		if (col + g.width > e->goal)
			break;
		col += g.width;
	}
	engine_move(ed->engine, start);
	return EDITOR_GO_ON;
}

static enum editor_result key_up(struct editor *ed)
{
	struct engine_text t = engine_text(ed->engine);
	size_t at = home(&t);

	if (at == 0)
		return recall_older(ed);
	return move_to_line(ed, &t, engine_line_start(&t, at - 1), at - 1);
}

static enum editor_result key_down(struct editor *ed)
{
	struct engine_text t = engine_text(ed->engine);
	size_t at = end(&t);

	if (at == t.n)
		return recall_newer(ed);
	return move_to_line(ed, &t, at + 1, engine_line_end(&t, at + 1));
}

/* ---- Enter and indentation ---- */

static bool is_blank(wchar_t c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

/* Where Python begins: behind a command that takes a cell; at the end of any
 * other command. A text is a command if its first character that is not a
 * blank is a colon. */
static size_t python_at(const struct editor *ed, const wchar_t *s, size_t n)
{
	char name[COMMAND_MAX];
	size_t i = 0, len = 0;

	while (i < n && (s[i] == ' ' || s[i] == '\t'))
		i++;
	if (i == n || s[i] != ':')
		return 0;
	for (i++; i < n && !is_blank(s[i]); i++) {
		if (len == sizeof(name) || s[i] >= 0x80)
			return n;
		name[len++] = (char)s[i];
	}
	return ed->takes_cell && ed->takes_cell(ed->ctx, name, len) ? i : n;
}

bool edit_runs(const struct editor *ed, const wchar_t *s, size_t n)
{
	size_t at = python_at(ed, s, n);
	struct pyscan scan = pyscan_cell(s + at, n - at);

	switch (scan.state) {
	case PYSCAN_EMPTY:
	case PYSCAN_COMPLETE:
		return true;
	case PYSCAN_BLOCK:
	case PYSCAN_HEADER:
		return scan.last_blank;
	case PYSCAN_INSIDE:
		return false;
	}
	return true;
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

static enum editor_result key_newline(struct editor *ed)
{
	struct engine_text t = engine_text(ed->engine);
	struct pyscan_indent in = pyscan_indent(t.s, t.cursor);
	const wchar_t *indent = t.s + in.start;
	bool tabs = in.n > 0 && indent[in.n - 1] == '\t';
	size_t unit = tabs ? 1 : INDENT, n = in.n;
	struct utf8_wide line = {0};

	if (in.change < 0)
		n = n >= unit ? n - unit : 0;
	utf8_wide_add(&line, L"\n", 1);
	utf8_wide_add(&line, indent, n);
	if (in.change > 0)
		utf8_wide_add(&line, tabs ? L"\t" : L"    ", unit);
	insert(ed, line.s, line.n);
	utf8_wide_free(&line);
	return EDITOR_GO_ON;
}

/* A line end in the middle of a burst is text: a paste without brackets. */
static enum editor_result key_enter(struct editor *ed)
{
	struct engine_text t = engine_text(ed->engine);
	bool one_line = engine_line_end(&t, 0) == t.n;
	bool command = t.n && python_at(ed, t.s, t.n) == t.n;
	size_t at = t.cursor;

	if (input_is_burst(&ed->input))
		return insert(ed, L"\n", 1);
	while (at < t.n && is_blank(t.s[at]))
		at++;
	if (at < t.n && !one_line && !command)
		return key_newline(ed);
	if (!edit_runs(ed, t.s, t.n) && !(ed->recall.recalled && at == t.n))
		return key_newline(ed);
	return EDITOR_CELL;
}

static enum editor_result key_tab(struct editor *ed)
{
	struct engine_text t = engine_text(ed->engine);
	size_t start = home(&t), at = start;

	if (input_is_burst(&ed->input))
		return insert(ed, L"\t", 1);
	while (at < t.cursor && (t.s[at] == ' ' || t.s[at] == '\t'))
		at++;
	if (at == t.cursor)
		return insert(ed, L"    ", INDENT - (at - start) % INDENT);
	complete_key(ed);
	return EDITOR_GO_ON;
}

static enum editor_result key_back_tab(struct editor *ed)
{
	struct engine_text t = engine_text(ed->engine);
	size_t start = home(&t), n = 0, cursor = t.cursor;

	while (start + n < t.n && n < INDENT && t.s[start + n] == ' ')
		n++;
	if (n == 0 && start < t.n && t.s[start] == '\t')
		n = 1;
	engine_replace(ed->engine, start, start + n, NULL, 0);
	engine_move(ed->engine, cursor < start + n ? start : cursor - n);
	return EDITOR_GO_ON;
}

/* ---- other keys ---- */

static enum editor_result key_text(struct editor *ed)
{
	return insert(ed, &ed->edit.key.c, 1);
}

static enum editor_result key_paste(struct editor *ed)
{
	const struct input *in = &ed->input;

	if (in->paste_cut) {
		view_status(&ed->view,
			"[a cell has at most %zu bytes: not pasted]",
			ed->max_bytes);
		return EDITOR_GO_ON;
	}
	insert(ed, in->paste.s, in->paste.n);
	if (in->keys.stalled)
		view_status(&ed->view,
			"[more of the paste is awaited: Ctrl-C ends it]");
	return EDITOR_GO_ON;
}

static enum editor_result key_yank(struct editor *ed)
{
	return insert(ed, ed->edit.killed.s, ed->edit.killed.n);
}

static enum editor_result key_undo(struct editor *ed)
{
	struct undo *u = &ed->edit.undo;

	if (undo_pop(u))
		engine_set(ed->engine, u->now.s, u->now.n, u->cursor);
	return EDITOR_GO_ON;
}

static enum editor_result key_clear(struct editor *ed)
{
	view_clear_screen(&ed->view);
	return EDITOR_GO_ON;
}

static enum editor_result key_interrupt(struct editor *ed)
{
	(void)ed;
	return EDITOR_INTERRUPT;
}

static enum editor_result key_ctrl_d(struct editor *ed)
{
	struct engine_text t = engine_text(ed->engine);

	if (t.n == 0)
		return EDITOR_EOF;
	engine_replace(ed->engine, t.cursor, right(&t), NULL, 0);
	return EDITOR_GO_ON;
}

/* ---- the table ---- */

enum edit_what { EDIT_RUN, EDIT_MOVE, EDIT_CUT, EDIT_KILL };

/* A key goes to a place, removes the text up to a place, or does anything
 * else. */
struct edit_command {
	enum edit_what what;
	size_t (*to)(const struct engine_text *t);
	enum editor_result (*run)(struct editor *ed);
};

#define RUN(f)                                                                 \
	{                                                                      \
		EDIT_RUN, NULL, f                                              \
	}
#define MOVE(f)                                                                \
	{                                                                      \
		EDIT_MOVE, f, NULL                                             \
	}
#define CUT(f)                                                                 \
	{                                                                      \
		EDIT_CUT, f, NULL                                              \
	}
#define KILL(f)                                                                \
	{                                                                      \
		EDIT_KILL, f, NULL                                             \
	}

static const struct edit_command commands[256] = {
	['\r'] = RUN(key_enter),
	['\n'] = RUN(key_enter),
	['\t'] = RUN(key_tab),
	[0x7F] = CUT(level_left),
	[CTRL('A')] = MOVE(home),
	[CTRL('B')] = MOVE(left),
	[CTRL('C')] = RUN(key_interrupt),
	[CTRL('D')] = RUN(key_ctrl_d),
	[CTRL('E')] = MOVE(end),
	[CTRL('F')] = MOVE(right),
	[CTRL('H')] = CUT(level_left),
	[CTRL('K')] = KILL(end_or_next),
	[CTRL('L')] = RUN(key_clear),
	[CTRL('N')] = RUN(key_down),
	[CTRL('O')] = RUN(key_newline),
	[CTRL('P')] = RUN(key_up),
	[CTRL('R')] = RUN(recall_search),
	[CTRL('U')] = KILL(home),
	[CTRL('W')] = KILL(word_left),
	[CTRL('Y')] = RUN(key_yank),
	[CTRL('_')] = RUN(key_undo),
	[KEY_TEXT] = RUN(key_text),
	[KEY_UP] = RUN(key_up),
	[KEY_DOWN] = RUN(key_down),
	[KEY_LEFT] = MOVE(left),
	[KEY_RIGHT] = MOVE(right),
	[KEY_HOME] = MOVE(home),
	[KEY_END] = MOVE(end),
	[KEY_DELETE] = CUT(right),
	[KEY_PAGE_UP] = RUN(recall_older),
	[KEY_PAGE_DOWN] = RUN(recall_newer),
	[KEY_WORD_LEFT] = MOVE(word_left),
	[KEY_WORD_RIGHT] = MOVE(word_right),
	[KEY_TOP] = MOVE(top),
	[KEY_BOTTOM] = MOVE(bottom),
	[KEY_ALT_ENTER] = RUN(key_newline),
	[KEY_ALT_BACKSPACE] = KILL(word_left),
	[KEY_ALT_D] = KILL(word_right),
	[KEY_BACK_TAB] = RUN(key_back_tab),
	[KEY_PASTE_END] = RUN(key_paste),
};

/* Kills in a row add up, each on its side. */
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

static enum editor_result do_command(
	struct editor *ed, const struct edit_command *c)
{
	struct engine_text t = engine_text(ed->engine);
	size_t to, from;

	if (c->run)
		return c->run(ed);
	if (!c->to)
		return EDITOR_GO_ON;
	to = c->to(&t);
	if (c->what == EDIT_MOVE) {
		engine_move(ed->engine, to);
		return EDITOR_GO_ON;
	}
	from = to < t.cursor ? to : t.cursor;
	to = to < t.cursor ? t.cursor : to;
	if (c->what == EDIT_KILL)
		keep_killed(&ed->edit, &t, from, to);
	engine_replace(ed->engine, from, to, NULL, 0);
	return EDITOR_GO_ON;
}

enum editor_result edit_key(struct editor *ed, const struct key *key)
{
	struct edit *e = &ed->edit;
	enum editor_result r;
	struct engine_text t;

	e->key = *key;
	view_status(&ed->view, "%s", "");
	if (recall_search_key(ed, key))
		return EDITOR_GO_ON;
	r = do_command(ed, &commands[key->code & 0xFF]);
	e->last_code = key->code;
	t = engine_text(ed->engine);
	if (undo_note(&e->undo, t.s, t.n, t.cursor) < 0)
		undo_free(&e->undo);
	return r;
}
