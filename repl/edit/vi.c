/* SPDX-License-Identifier: MIT */
/*
 * vi.c - the command mode of vi
 *
 * Runs in:   the front end, inside editor_read()
 * Holds:     the mode, and the operator that waits for a motion
 * Trusts:    nothing in the text
 * Leaves:    other keys, and running the commands, to edit.c
 */
#include "parts.h"

/* ---- places ---- */

static size_t left_of_cursor(const struct engine_text *t)
{
	return t->cursor > edit_line_start(t) ? layout_prev(t->s, t->cursor)
					      : t->cursor;
}

static size_t right_of_cursor(const struct engine_text *t)
{
	return t->cursor < edit_line_end(t) ? layout_next(t->s, t->n, t->cursor)
					    : t->cursor;
}

static size_t first_of_line(const struct engine_text *t)
{
	size_t at = edit_line_start(t);

	while (at < t->n && (t->s[at] == ' ' || t->s[at] == '\t'))
		at++;
	return at;
}

/* 1: a letter, 2: any other, 0: a blank. A word is a run of letters or of
 * others. */
static int kind_at(const struct engine_text *t, size_t at)
{
	if (wcschr(L" \t\n", t->s[at]))
		return 0;
	return edit_is_word(t->s[at]) ? 1 : 2;
}

static size_t next_word(const struct engine_text *t)
{
	size_t at = t->cursor;
	int old = at < t->n ? kind_at(t, at) : 0;

	while (at < t->n && old && kind_at(t, at) == old)
		at++;
	while (at < t->n && !kind_at(t, at))
		at++;
	return at;
}

static size_t previous_word(const struct engine_text *t)
{
	size_t at = t->cursor;

	while (at > 0 && !kind_at(t, at - 1))
		at--;
	for (int of = at ? kind_at(t, at - 1) : 0;
		at > 0 && kind_at(t, at - 1) == of;)
		at--;
	return at;
}

/* Behind the last character of this word or, on a blank, of the next one. */
static size_t word_end(const struct engine_text *t)
{
	size_t at = t->cursor;

	while (at < t->n && !kind_at(t, at))
		at++;
	for (int of = at < t->n ? kind_at(t, at) : 0;
		at < t->n && kind_at(t, at) == of;)
		at++;
	return at;
}

/* The last character of this word; if the cursor is on it, of the next word. */
static size_t to_end(const struct engine_text *t)
{
	struct engine_text next = *t;

	next.cursor += t->cursor < t->n;
	next.cursor = word_end(&next);
	return next.cursor > t->cursor ? next.cursor - 1 : t->cursor;
}

/* ---- commands ---- */

/* A key runs a command, or stands for another key. */
static const struct {
	struct edit_command does;
	int key;
	bool insert; /* and leave the command mode */
} commands[128] = {
	[KEYS_CTRL('R')] = {.key = KEY_ALT_E},
	['$'] = {.does = {EDIT_MOVE, edit_line_end}},
	['/'] = {.key = KEYS_CTRL('R')},
	['0'] = {.does = {EDIT_MOVE, edit_line_start}},
	['A'] = {.does = {EDIT_MOVE, edit_line_end}, .insert = true},
	['C'] = {.does = {EDIT_KILL, edit_line_end}, .insert = true},
	['D'] = {.does = {EDIT_KILL, edit_line_end}},
	['G'] = {.does = {EDIT_MOVE, edit_text_end}},
	['I'] = {.does = {EDIT_MOVE, first_of_line}, .insert = true},
	['P'] = {.key = KEYS_CTRL('Y')},
	['X'] = {.does = {EDIT_KILL, left_of_cursor}},
	['^'] = {.does = {EDIT_MOVE, first_of_line}},
	['a'] = {.does = {EDIT_MOVE, right_of_cursor}, .insert = true},
	['b'] = {.does = {EDIT_MOVE, previous_word}},
	['e'] = {.does = {EDIT_MOVE, to_end}},
	['h'] = {.does = {EDIT_MOVE, left_of_cursor}},
	['i'] = {.insert = true},
	['j'] = {.key = KEY_DOWN},
	['k'] = {.key = KEY_UP},
	['l'] = {.does = {EDIT_MOVE, right_of_cursor}},
	['s'] = {.does = {EDIT_KILL, right_of_cursor}, .insert = true},
	['u'] = {.key = KEYS_CTRL('_')},
	['v'] = {.key = KEY_CTRL_X_E},
	['w'] = {.does = {EDIT_MOVE, next_word}},
	['~'] = {.does = {.run = change_swap_case}},
	['x'] = {.does = {EDIT_KILL, right_of_cursor}},
};

static void move_to(struct editor *ed, size_t (*to)(const struct engine_text *))
{
	edit_do(ed, &(struct edit_command){EDIT_MOVE, to});
}

/* Kill the line. `whole` (dd, not cc): remove its line feed, too. */
static void kill_line(struct editor *ed, bool whole)
{
	struct engine_text t;

	move_to(ed, edit_line_start);
	edit_do(ed, &(struct edit_command){EDIT_KILL, edit_line_end});
	if (!whole)
		return;
	t = engine_text(ed->engine);
	if (t.cursor < t.n)
		engine_replace(ed->engine, t.cursor, t.cursor + 1, NULL, 0);
	else if (t.cursor > 0)
		engine_replace(ed->engine, t.cursor - 1, t.cursor, NULL, 0);
}

/* Apply d or c to the motion `c`. `dd` and `cc` take the whole line, and `cw`
 * keeps the blanks behind the word. */
static void apply_operator(struct editor *ed, int op, int c)
{
	struct edit_command kill = commands[c].does;

	if (c == op) {
		kill_line(ed, op == 'd');
	} else if (kill.what == EDIT_MOVE && kill.to) {
		kill.what = EDIT_KILL;
		if (c == 'e' || (c == 'w' && op == 'c'))
			kill.to = word_end;
		edit_do(ed, &kill);
	} else {
		return;
	}
	ed->vi.command = op != 'c';
}

static void run_command(struct editor *ed, int c)
{
	int op = ed->vi.op;
	struct engine_text t;

	ed->vi.op = 0;
	if (op) {
		apply_operator(ed, op, c);
	} else if (c == 'd' || c == 'c') {
		ed->vi.op = c;
	} else if (c == 'o') {
		move_to(ed, edit_line_end);
		edit_do(ed, edit_command(KEYS_CTRL('O')));
		ed->vi.command = false;
	} else if (c == 'p') {
		move_to(ed, right_of_cursor);
		edit_do(ed, edit_command(KEYS_CTRL('Y')));
	} else {
		edit_do(ed, commands[c].key ? edit_command(commands[c].key)
					    : &commands[c].does);
		ed->vi.command = !commands[c].insert;
	}
	/* A command leaves the cursor on a character, not behind the last. */
	t = engine_text(ed->engine);
	if (ed->vi.command && !ed->vi.op && t.cursor == edit_line_end(&t))
		move_to(ed, left_of_cursor);
}

bool vi_key(struct editor *ed, const struct key *key)
{
	if (!ed->opts.vi || ed->recall.searching)
		return false;
	if (key->code == KEY_ESCAPE) {
		if (!ed->vi.command)
			move_to(ed, left_of_cursor);
		ed->vi.command = true;
		ed->vi.op = 0;
		return true;
	}
	if (!ed->vi.command)
		return false;
	if (key->code == KEY_TEXT || key->code == KEYS_CTRL('R')) {
		wchar_t c = key->c ? key->c : (wchar_t)key->code;

		if (c < 128)
			run_command(ed, (int)c);
		return true;
	}
	/* Enter acts as at the end of the cell; pasted keys are text. */
	if (key->code == '\r' || key->code == '\n')
		move_to(ed, edit_text_end);
	if (key->code == '\r' || key->code == '\n' || key->code == KEY_F3)
		ed->vi.command = false;
	ed->vi.op = 0;
	return false;
}
