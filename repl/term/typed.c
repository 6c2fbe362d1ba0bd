/* SPDX-License-Identifier: MIT */
/*
 * typed.c - the keys typed while a cell runs, and which of them it has not read
 *
 * Runs in:   front end
 * Trusts:    nothing that comes back from the tty: it is compared, never used
 * Leaves:    whole keys, every one of which the person has typed
 */
#include "typed.h"

#include "keys.h"
#include "repl/text/utf8.h"

#include <ctype.h>
#include <string.h>

/* A tty holds fewer. Half as many are kept at least. */
#define TYPED_MAX (64u << 10)

/* Bytes of the longest key. */
#define SEQUENCE_MAX 8

#define KEY(c) ((c)&0x1f)
#define ESC 0x1b
#define DEL 0x7f

void typed_forget(struct typed *t)
{
	strbuf_free(&t->keys);
}

void typed_add(struct typed *t, const char *s, size_t n)
{
	const char *after = memrchr(s, KEY('C'), n);

	if (after) {
		t->keys.n = 0;
		n -= (size_t)(after + 1 - s);
		s = after + 1;
	}
	if (t->keys.n + n > TYPED_MAX) {
		t->keys.n -= TYPED_MAX / 2;
		memmove(t->keys.s, t->keys.s + TYPED_MAX / 2, t->keys.n);
	}
	strbuf_add(&t->keys, s, n);
}

/* ---- a line ---- */

/* Keys that are being edited, in place. */
struct edited {
	char *s;
	size_t n;
	size_t line; /* nothing before this can be erased any more */
	bool text;   /* something stands behind the last line end */
};

static void put(struct edited *ed, char c)
{
	ed->s[ed->n++] = c;
	ed->text = true;
}

/* Take the last character away, all bytes of it. Returns the first of them. */
static unsigned char erase(struct edited *ed)
{
	unsigned char c;

	do
		c = (unsigned char)ed->s[--ed->n];
	while (utf8_continues((char)c) && ed->n > ed->line);
	return c;
}

/* A word, with what follows it. */
static void erase_word(struct edited *ed)
{
	bool word = false;

	while (ed->n > ed->line) {
		size_t before = ed->n;
		unsigned char c = erase(ed);

		if (isalnum(c) || c == '_' || c >= 0x80) {
			word = true;
		} else if (word) {
			ed->n = before;
			break;
		}
	}
}

/* A line end, or an end of file: what stands before it stays. */
static void commit(struct edited *ed, char c)
{
	ed->s[ed->n++] = c;
	ed->line = ed->n;
}

/* A key that pty_set_cooked() gives a meaning. False for any other. */
static bool edit(struct edited *ed, char c)
{
	switch (c) {
	case '\r':
	case '\n':
		commit(ed, '\n');
		ed->text = false;
		return true;
	case KEY('D'):
		commit(ed, ed->text ? 0 : c);
		return true;
	case 0: /* how a tty keeps an end of file; Ctrl-Space too */
		commit(ed, c);
		return true;
	case DEL:
		if (ed->n > ed->line)
			erase(ed);
		return true;
	case KEY('W'):
		erase_word(ed);
		return true;
	case KEY('U'):
		ed->n = ed->line;
		return true;
	case KEY('C'):
		*ed = (struct edited){.s = ed->s};
		return true;
	case KEY('\\'):
	case KEY('R'):
		return true;
	}
	return false;
}

/* A control that stands for a key, even where it was typed literally. */
static bool is_control(char c)
{
	return c != '\t' && iscntrl((unsigned char)c);
}

/* Edit the keys as a tty in its usual modes would. Keys that were edited once
 * stay as they are, so it does not matter which of them the tty has edited.
 * Returns how many are left. */
static size_t edit_all(char *s, size_t n)
{
	struct edited ed = {.s = s};

	for (size_t i = 0; i < n; i++) {
		char c = s[i];

		if (c == KEY('V') && i + 1 < n) {
			c = s[++i];
			put(&ed, is_control(c) ? 0 : c);
		} else if (!edit(&ed, c)) {
			put(&ed, c);
		}
		ed.text &= ed.n > 0 && ed.s[ed.n - 1] != '\n';
	}
	return ed.n;
}

/* ---- what is left ---- */

static bool is_same(char a, char b)
{
	if (a == KEY('D'))
		a = 0;
	if (b == KEY('D'))
		b = 0;
	return a == b;
}

/* The first key that begins at `at` or behind it. A cell that has read a part
 * of a key has read the key. */
static size_t next_key(const char *s, size_t n, size_t at)
{
	size_t near = at < SEQUENCE_MAX ? at : SEQUENCE_MAX;
	const char *esc = near ? memrchr(s + at - near, ESC, near) : NULL;
	struct key out[KEYS_OUT_MAX];
	struct keys keys;
	size_t i = at;

	while (i < n && utf8_continues(s[i]))
		i++;
	if (!esc || esc + 1 == s + n || !strchr("[O", esc[1]))
		return i;
	keys_init(&keys);
	for (i = (size_t)(esc - s);
		i < at || (i < n && keys_wait_ms(&keys) >= 0); i++)
		keys_feed(&keys, (unsigned char)s[i], out);
	return i;
}

/* The cell has read the beginning of a line, and the rest may be a command, or
 * a habit that is one. Keys can make it one: they move the cursor, and bring
 * back what the history has. */
static bool is_cut_command(const char *s, size_t n, size_t at)
{
	if (!at || s[at - 1] == '\n')
		return false;
	for (size_t i = at; i < n; i++)
		if (s[i] && s[i] != '\n' && is_control(s[i]))
			return true;
	while (at < n && (s[at] == ' ' || s[at] == '\t'))
		at++;
	return at < n && memchr(":%!?", s[at], 4);
}

const char *typed_unread(struct typed *t, char *left, size_t left_n,
	const char **keys, size_t *n)
{
	char *s = t->keys.s;
	size_t all = edit_all(s, t->keys.n), unread, at;
	bool fits = !t->keys.failed, cut;

	left_n = edit_all(left, left_n);
	unread = left_n < all ? left_n : all;
	for (size_t i = 1; i <= unread && fits; i++)
		fits = is_same(s[all - i], left[left_n - i]);
	at = fits ? next_key(s, all, all - unread) : all;
	cut = is_cut_command(s, all, at);
	if (cut)
		at = all;
	*keys = s + at;
	*n = all - at;
	if (!fits)
		return "the cell changed how its terminal reads keys";
	return cut ? "the cell read the beginning of its line" : NULL;
}
