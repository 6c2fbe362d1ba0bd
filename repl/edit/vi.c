/* SPDX-License-Identifier: MIT */
/*
 * vi.c - the command mode of vi
 *
 * Runs in:   the front end, inside editor_read()
 * Holds:     whether letters are commands, and the operator that waits for a
 *            place
 * Trusts:    nothing in the text
 * Leaves:    to edit.c: other keys, and carrying every command out
 */
#include "parts.h"

#include <string.h>

/* ---- places ---- */

static size_t home(const struct engine_text *t)
{
	return engine_line_start(t, t->cursor);
}

static size_t end(const struct engine_text *t)
{
	return engine_line_end(t, t->cursor);
}

static size_t left(const struct engine_text *t)
{
	return t->cursor > home(t) ? layout_prev(t->s, t->cursor) : t->cursor;
}

static size_t right(const struct engine_text *t)
{
	return t->cursor < end(t) ? layout_next(t->s, t->n, t->cursor)
				  : t->cursor;
}

static size_t first(const struct engine_text *t)
{
	size_t at = home(t);

	while (at < t->n && (t->s[at] == ' ' || t->s[at] == '\t'))
		at++;
	return at;
}

static size_t bottom(const struct engine_text *t)
{
	return t->n;
}

/* Words are letters, or other characters; blanks lie between. */
static int kind(const struct engine_text *t, size_t at)
{
	if (wcschr(L" \t\n", t->s[at]))
		return 0;
	return edit_is_word(t->s[at]) ? 1 : 2;
}

static size_t word(const struct engine_text *t)
{
	size_t at = t->cursor;
	int old = at < t->n ? kind(t, at) : 0;

	while (at < t->n && old && kind(t, at) == old)
		at++;
	while (at < t->n && !kind(t, at))
		at++;
	return at;
}

static size_t back(const struct engine_text *t)
{
	size_t at = t->cursor;

	while (at > 0 && !kind(t, at - 1))
		at--;
	for (int of = at ? kind(t, at - 1) : 0;
		at > 0 && kind(t, at - 1) == of;)
		at--;
	return at;
}

/* Behind the last character of a word. */
static size_t word_end(const struct engine_text *t)
{
	size_t at = t->cursor;

	while (at < t->n && !kind(t, at))
		at++;
	for (int of = at < t->n ? kind(t, at) : 0;
		at < t->n && kind(t, at) == of;)
		at++;
	return at;
}

/* The last character of this word or, there, of the next one. */
static size_t to_end(const struct engine_text *t)
{
	struct engine_text next = *t;

	next.cursor += t->cursor < t->n;
	next.cursor = word_end(&next);
	return next.cursor > t->cursor ? next.cursor - 1 : t->cursor;
}

/* ---- commands ---- */

/* What a letter does; `key`: what that key does. Then `insert`: letters are
 * text. */
static const struct {
	struct edit_command does;
	int key;
	bool insert;
} commands[128] = {
	['$'] = {.does = {EDIT_MOVE, end}},
	['/'] = {.key = KEYS_CTRL('R')},
	['0'] = {.does = {EDIT_MOVE, home}},
	['A'] = {.does = {EDIT_MOVE, end}, .insert = true},
	['C'] = {.does = {EDIT_KILL, end}, .insert = true},
	['D'] = {.does = {EDIT_KILL, end}},
	['G'] = {.does = {EDIT_MOVE, bottom}},
	['I'] = {.does = {EDIT_MOVE, first}, .insert = true},
	['P'] = {.key = KEYS_CTRL('Y')},
	['X'] = {.does = {EDIT_KILL, left}},
	['^'] = {.does = {EDIT_MOVE, first}},
	['a'] = {.does = {EDIT_MOVE, right}, .insert = true},
	['b'] = {.does = {EDIT_MOVE, back}},
	['e'] = {.does = {EDIT_MOVE, to_end}},
	['h'] = {.does = {EDIT_MOVE, left}},
	['i'] = {.insert = true},
	['j'] = {.key = KEY_DOWN},
	['k'] = {.key = KEY_UP},
	['l'] = {.does = {EDIT_MOVE, right}},
	['s'] = {.does = {EDIT_KILL, right}, .insert = true},
	['u'] = {.key = KEYS_CTRL('_')},
	['w'] = {.does = {EDIT_MOVE, word}},
	['x'] = {.does = {EDIT_KILL, right}},
};

static void move(struct editor *ed, size_t (*to)(const struct engine_text *))
{
	edit_do(ed, &(struct edit_command){EDIT_MOVE, to});
}

/* dd and cc: the whole line. With dd its end goes too. */
static void kill_line(struct editor *ed, bool whole)
{
	struct engine_text t;

	move(ed, home);
	edit_do(ed, &(struct edit_command){EDIT_KILL, end});
	if (!whole)
		return;
	t = engine_text(ed->engine);
	if (t.cursor < t.n)
		engine_replace(ed->engine, t.cursor, t.cursor + 1, NULL, 0);
	else if (t.cursor > 0)
		engine_replace(ed->engine, t.cursor - 1, t.cursor, NULL, 0);
}

/* d or c, and where to: the same letter is the line, and a change of a word
 * leaves the blanks behind it. */
static void operate(struct editor *ed, int op, int c)
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

static void command(struct editor *ed, int c)
{
	int op = ed->vi.op;
	struct engine_text t;

	ed->vi.op = 0;
	if (op) {
		operate(ed, op, c);
	} else if (c == 'd' || c == 'c') {
		ed->vi.op = c;
	} else if (c == 'o') {
		move(ed, end);
		edit_do(ed, edit_command(KEYS_CTRL('O')));
		ed->vi.command = false;
	} else if (c == 'p') {
		move(ed, right);
		edit_do(ed, edit_command(KEYS_CTRL('Y')));
	} else {
		edit_do(ed, commands[c].key ? edit_command(commands[c].key)
					    : &commands[c].does);
		ed->vi.command = !commands[c].insert;
	}
	/* On a character, not behind the last one. */
	t = engine_text(ed->engine);
	if (ed->vi.command && !ed->vi.op && t.cursor == end(&t))
		move(ed, left);
}

void vi_begin(struct editor *ed)
{
	ed->vi.command = false;
	ed->vi.op = 0;
}

bool vi_key(struct editor *ed, const struct key *key)
{
	if (!ed->vi.on || ed->recall.searching)
		return false;
	if (key->code == KEY_ESCAPE) {
		if (!ed->vi.command)
			move(ed, left);
		ed->vi.command = true;
		ed->vi.op = 0;
		return true;
	}
	if (!ed->vi.command)
		return false;
	if (key->code == KEY_TEXT) {
		if (key->c < 128)
			command(ed, (int)key->c);
		return true;
	}
	/* Enter is pressed at the end of the cell, wherever the cursor is. */
	if (key->code == '\r' || key->code == '\n') {
		move(ed, bottom);
		ed->vi.command = false;
	}
	ed->vi.op = 0;
	return false;
}
