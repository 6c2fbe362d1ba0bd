/* SPDX-License-Identifier: MIT */
/*
 * edit.c - what keys do to the text
 *
 * Runs in:   the front end, inside editor_read()
 * Holds:     the kill buffer and the past of the text
 * Trusts:    nothing in the text
 * Leaves:    a text no longer than a cell may be
 */
#include <stdarg.h>
#include <stdio.h>
#include <wctype.h>

#include "history.h"
#include "impl.h"

#define CTRL(c) ((c)&0x1F)

void edit_status(struct editor *ed, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(ed->status, sizeof(ed->status), fmt, ap);
	va_end(ap);
}

size_t edit_line_start(const struct span *t, size_t at)
{
	while (at > 0 && t->s[at - 1] != '\n')
		at--;
	return at;
}

size_t edit_line_end(const struct span *t, size_t at)
{
	while (at < t->n && t->s[at] != '\n')
		at++;
	return at;
}

void edit_insert(struct editor *ed, const wchar_t *s, size_t n)
{
	struct span t = engine_text(ed);

	/* A character takes at least one byte; only near the limit is it
	 * worth counting them. */
	if ((t.n + n) * 4 > ed->max_bytes &&
		wide_utf8_size(t.s, t.n) + wide_utf8_size(s, n) >
			ed->max_bytes) {
		edit_status(ed, "[a cell has at most %zu bytes: not inserted]",
			ed->max_bytes);
		return;
	}
	if (engine_replace(ed, t.cursor, t.cursor, s, n) < 0)
		edit_status(ed, "[no memory: not inserted]");
}

void edit_set(struct editor *ed, const wchar_t *s, size_t n, size_t cursor)
{
	struct span t = engine_text(ed);

	engine_replace(ed, 0, t.n, s, n);
	engine_move(ed, cursor);
}

static enum editor_step move_to(struct editor *ed, size_t to)
{
	engine_move(ed, to);
	return STEP_GO_ON;
}

static bool is_word(wchar_t c)
{
	return iswalnum((wint_t)c) || c == '_';
}

static size_t word_left(const struct span *t)
{
	size_t at = t->cursor;

	while (at > 0 && !is_word(t->s[at - 1]))
		at--;
	while (at > 0 && is_word(t->s[at - 1]))
		at--;
	return at;
}

static size_t word_right(const struct span *t)
{
	size_t at = t->cursor;

	while (at < t->n && !is_word(t->s[at]))
		at++;
	while (at < t->n && is_word(t->s[at]))
		at++;
	return at;
}

static enum editor_step key_left(struct editor *ed)
{
	struct span t = engine_text(ed);

	return move_to(ed, layout_prev(t.s, t.cursor));
}

static enum editor_step key_right(struct editor *ed)
{
	struct span t = engine_text(ed);

	return move_to(ed, layout_next(t.s, t.n, t.cursor));
}

static enum editor_step key_home(struct editor *ed)
{
	struct span t = engine_text(ed);

	return move_to(ed, edit_line_start(&t, t.cursor));
}

static enum editor_step key_end(struct editor *ed)
{
	struct span t = engine_text(ed);

	return move_to(ed, edit_line_end(&t, t.cursor));
}

static enum editor_step key_top(struct editor *ed)
{
	return move_to(ed, 0);
}

static enum editor_step key_bottom(struct editor *ed)
{
	return move_to(ed, engine_text(ed).n);
}

static enum editor_step key_word_left(struct editor *ed)
{
	struct span t = engine_text(ed);

	return move_to(ed, word_left(&t));
}

static enum editor_step key_word_right(struct editor *ed)
{
	struct span t = engine_text(ed);

	return move_to(ed, word_right(&t));
}

/* The place in the line [start, end) nearest to the column Up and Down keep. */
static size_t at_goal(
	const struct editor *ed, const struct span *t, size_t start, size_t end)
{
	struct layout_glyph g;
	int col = 0;

	while (start < end) {
		layout_glyph(t->s[start], col, 1 << 20, &g);
		if (col + g.width > ed->goal)
			break;
		col += g.width;
		start++;
	}
	return start;
}

static void note_goal(struct editor *ed, const struct span *t)
{
	size_t start = edit_line_start(t, t->cursor);
	int last = ed->last_code;

	if (last != KEY_UP && last != KEY_DOWN && last != CTRL('P') &&
		last != CTRL('N'))
		ed->goal = layout_width(t->s + start, t->cursor - start, 0);
}

static enum editor_step key_up(struct editor *ed)
{
	struct span t = engine_text(ed);
	size_t start = edit_line_start(&t, t.cursor);

	if (start == 0)
		return recall_older(ed);
	note_goal(ed, &t);
	return move_to(
		ed, at_goal(ed, &t, edit_line_start(&t, start - 1), start - 1));
}

static enum editor_step key_down(struct editor *ed)
{
	struct span t = engine_text(ed);
	size_t end = edit_line_end(&t, t.cursor);

	if (end == t.n)
		return recall_newer(ed);
	note_goal(ed, &t);
	return move_to(
		ed, at_goal(ed, &t, end + 1, edit_line_end(&t, end + 1)));
}

static enum editor_step cut(struct editor *ed, size_t from, size_t to)
{
	engine_replace(ed, from, to, NULL, 0);
	return STEP_GO_ON;
}

static bool is_kill(int code)
{
	return code == CTRL('K') || code == CTRL('U') || code == CTRL('W') ||
	       code == KEY_ALT_D || code == KEY_ALT_BACKSPACE;
}

/* Cut to the kill buffer; kills in a row add up. */
static enum editor_step kill_range(struct editor *ed, size_t from, size_t to)
{
	struct span t = engine_text(ed);
	struct wide now = {0};
	bool more = is_kill(ed->last_code);

	if (from == to)
		return STEP_GO_ON;
	if (more && from == t.cursor)
		wide_add(&now, ed->kill.s, ed->kill.n);
	wide_add(&now, t.s + from, to - from);
	if (more && from != t.cursor)
		wide_add(&now, ed->kill.s, ed->kill.n);
	wide_free(&ed->kill);
	ed->kill = now;
	return cut(ed, from, to);
}

static enum editor_step key_kill_end(struct editor *ed)
{
	struct span t = engine_text(ed);
	size_t end = edit_line_end(&t, t.cursor);

	if (end == t.cursor && end < t.n)
		end++;
	return kill_range(ed, t.cursor, end);
}

static enum editor_step key_kill_start(struct editor *ed)
{
	struct span t = engine_text(ed);

	return kill_range(ed, edit_line_start(&t, t.cursor), t.cursor);
}

static enum editor_step key_kill_word_left(struct editor *ed)
{
	struct span t = engine_text(ed);

	return kill_range(ed, word_left(&t), t.cursor);
}

static enum editor_step key_kill_word_right(struct editor *ed)
{
	struct span t = engine_text(ed);

	return kill_range(ed, t.cursor, word_right(&t));
}

static enum editor_step key_yank(struct editor *ed)
{
	edit_insert(ed, ed->kill.s, ed->kill.n);
	return STEP_GO_ON;
}

/* In the blanks a line begins with, back to the level before. */
static enum editor_step key_backspace(struct editor *ed)
{
	struct span t = engine_text(ed);
	size_t start = edit_line_start(&t, t.cursor), at = start, n;

	while (at < t.cursor && t.s[at] == ' ')
		at++;
	n = (t.cursor - start) % EDITOR_INDENT;
	if (at == t.cursor && at > start)
		return cut(ed, t.cursor - (n ? n : EDITOR_INDENT), t.cursor);
	return cut(ed, layout_prev(t.s, t.cursor), t.cursor);
}

static enum editor_step key_delete(struct editor *ed)
{
	struct span t = engine_text(ed);

	return cut(ed, t.cursor, layout_next(t.s, t.n, t.cursor));
}

static enum editor_step key_ctrl_d(struct editor *ed)
{
	if (engine_text(ed).n > 0)
		return key_delete(ed);
	ed->result = EDITOR_EOF;
	return STEP_END;
}

static enum editor_step key_interrupt(struct editor *ed)
{
	key_bottom(ed);
	ed->result = EDITOR_INTERRUPT;
	return STEP_END;
}

static enum editor_step key_stop(struct editor *ed)
{
	(void)ed; /* whoever made it has set the result */
	return STEP_END;
}

static enum editor_step key_text(struct editor *ed)
{
	edit_insert(ed, &ed->key.c, 1);
	return STEP_GO_ON;
}

static enum editor_step key_paste(struct editor *ed)
{
	if (ed->paste_cut)
		edit_status(ed, "[a cell has at most %zu bytes: not pasted]",
			ed->max_bytes);
	else
		edit_insert(ed, ed->paste.s, ed->paste.n);
	if (ed->keys.stalled && !ed->paste_cut)
		edit_status(
			ed, "[more of the paste is awaited: Ctrl-C ends it]");
	wide_free(&ed->paste);
	ed->paste_cut = false;
	return STEP_GO_ON;
}

static enum editor_step key_undo(struct editor *ed)
{
	if (undo_pop(&ed->undo))
		edit_set(ed, ed->undo.now.s, ed->undo.now.n, ed->undo.cursor);
	return STEP_GO_ON;
}

static enum editor_step key_clear(struct editor *ed)
{
	view_clear_screen(ed);
	return STEP_GO_ON;
}

/* Every key that does something. */
static enum editor_step (*const commands[256])(struct editor *ed) = {
	['\r'] = enter_key,
	['\n'] = enter_key,
	['\t'] = complete_key,
	[0x7F] = key_backspace,
	[CTRL('A')] = key_home,
	[CTRL('B')] = key_left,
	[CTRL('C')] = key_interrupt,
	[CTRL('D')] = key_ctrl_d,
	[CTRL('E')] = key_end,
	[CTRL('F')] = key_right,
	[CTRL('H')] = key_backspace,
	[CTRL('K')] = key_kill_end,
	[CTRL('L')] = key_clear,
	[CTRL('N')] = key_down,
	[CTRL('O')] = enter_newline,
	[CTRL('P')] = key_up,
	[CTRL('R')] = recall_search,
	[CTRL('U')] = key_kill_start,
	[CTRL('W')] = key_kill_word_left,
	[CTRL('Y')] = key_yank,
	[CTRL('_')] = key_undo,
	[KEY_TEXT] = key_text,
	[KEY_UP] = key_up,
	[KEY_DOWN] = key_down,
	[KEY_LEFT] = key_left,
	[KEY_RIGHT] = key_right,
	[KEY_HOME] = key_home,
	[KEY_END] = key_end,
	[KEY_DELETE] = key_delete,
	[KEY_PAGE_UP] = recall_older,
	[KEY_PAGE_DOWN] = recall_newer,
	[KEY_WORD_LEFT] = key_word_left,
	[KEY_WORD_RIGHT] = key_word_right,
	[KEY_TOP] = key_top,
	[KEY_BOTTOM] = key_bottom,
	[KEY_ALT_ENTER] = enter_newline,
	[KEY_ALT_BACKSPACE] = key_kill_word_left,
	[KEY_ALT_D] = key_kill_word_right,
	[KEY_BACK_TAB] = enter_back_tab,
	[KEY_PASTE_END] = key_paste,
	[KEY_STOP] = key_stop,
};

enum editor_step edit_key(struct editor *ed, struct key key)
{
	enum editor_step step = STEP_GO_ON;
	struct span t;

	ed->status[0] = 0;
	if (recall_search_key(ed, key))
		return STEP_GO_ON;
	if (key.code > 0 && key.code < 256 && commands[key.code])
		step = commands[key.code](ed);
	ed->last_code = key.code;
	t = engine_text(ed);
	if (undo_note(&ed->undo, t.s, t.n, t.cursor) < 0)
		undo_free(&ed->undo);
	return step;
}
