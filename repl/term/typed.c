/* SPDX-License-Identifier: MIT */
/*
 * typed.c - the keys typed while a cell runs, and which of them it has not read
 *
 * Runs in:   front end
 * Trusts:    nothing that comes back from the tty: it is compared, never used
 * Leaves:    whole keys, every one of which the person has typed
 */
#include "repl/term/term.h"

#include <ctype.h>

/* A tty holds fewer. */
#define TYPED_MAX (64u << 10)

/* No line begins there. */
#define NONE ((size_t)-1)

/* Bytes of the longest key. */
#define SEQUENCE_MAX 8

#define KEY(c) ((c)&0x1f)
#define ESC 0x1b
#define DEL 0x7f
#define ERASING "\x7f\x15\x17" /* the keys that edit_by_key() takes as that */

void typed_forget(struct typed *t)
{
	strbuf_free(&t->keys);
	strbuf_free(&t->edited);
	*t = (struct typed){0};
}

bool typed_add(struct typed *t, const char *s, size_t n)
{
	size_t old = t->sent < TYPED_MAX / 2 ? t->sent : TYPED_MAX / 2;
	bool fits;

	/* A program that reads keys for hours has read the first of them. */
	if (t->keys.n + n > TYPED_MAX && old) {
		t->keys.n -= old;
		memmove(t->keys.s, t->keys.s + old, t->keys.n);
		t->sent -= old;
		t->torn = true;
	}
	fits = t->keys.n + n <= TYPED_MAX;
	if (fits)
		strbuf_add(&t->keys, s, n);
	fits &= !t->keys.failed;
	t->lost |= !fits;
	return fits;
}

void typed_drop(struct typed *t)
{
	static const char interrupt = KEY('C');

	t->lost = false;
	t->keys.n = t->sent;
	typed_add(t, &interrupt, 1);
	t->sent = t->keys.n;
}

/* ---- a line ---- */

/* Keys that are being edited, in place. */
struct edited {
	char *s;
	size_t n;
	size_t line; /* nothing before this can be erased any more */
	bool text;   /* something stands behind the last line end */
};

static void put_character(struct edited *ed, char c)
{
	ed->s[ed->n++] = c;
	ed->text = true;
}

/* Take the last character away, all bytes of it. Returns the first of them. */
static unsigned char erase_character(struct edited *ed)
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
		unsigned char c = erase_character(ed);

		if (isalnum(c) || c == '_' || c >= 0x80) {
			word = true;
		} else if (word) {
			ed->n = before;
			break;
		}
	}
}

/* A line end, or an end of file: what stands before it stays. */
static void commit_line(struct edited *ed, char c)
{
	ed->s[ed->n++] = c;
	ed->line = ed->n;
}

/* A key that pty_set_cooked() gives a meaning. False for any other. */
static bool edit_by_key(struct edited *ed, char c)
{
	switch (c) {
	case '\r':
	case '\n':
		commit_line(ed, '\n');
		ed->text = false;
		return true;
	case KEY('D'):
		commit_line(ed, ed->text ? 0 : c);
		return true;
	case 0: /* how a tty keeps an end of file; Ctrl-Space too */
		commit_line(ed, c);
		return true;
	case DEL:
		if (ed->n > ed->line)
			erase_character(ed);
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

/* Take the next key, or two: Ctrl-V and what follows it. Returns how many. */
static size_t take_key(struct edited *ed, const char *s, size_t n)
{
	size_t took = s[0] == KEY('V') && n > 1 ? 2 : 1;
	char c = s[took - 1];

	if (took == 2)
		put_character(ed, is_control(c) ? 0 : c);
	else if (!edit_by_key(ed, c))
		put_character(ed, c);
	ed->text &= ed->n > 0 && ed->s[ed->n - 1] != '\n';
	return took;
}

/* Keys that were edited once stay as they are, so it does not matter which of
 * them the tty has edited. */
size_t typed_edit(char *s, size_t n)
{
	struct edited ed = {.s = s};

	for (size_t i = 0; i < n;)
		i += take_key(&ed, s + i, n - i);
	return ed.n;
}

/* ---- what is left ---- */

/* True if the keys edited end with those that are left; *at is where these
 * begin. Keys before the last Ctrl-C may be left too. */
static bool is_end(
	const char *s, size_t n, const char *left, size_t left_n, size_t *at)
{
	size_t unread = left_n < n ? left_n : n;

	*at = n - unread;
	for (size_t i = 1; i <= unread; i++) {
		char a = s[n - i], b = left[left_n - i];

		/* A tty keeps an end of file as a NUL. */
		if ((a == KEY('D') ? 0 : a) != (b == KEY('D') ? 0 : b))
			return false;
	}
	return true;
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

static bool has_any_of(const char *s, size_t n, const char *set)
{
	for (size_t i = 0; i < n; i++)
		if (s[i] && strchr(set, s[i]))
			return true;
	return false;
}

/* The rest of a line may be a command, or a habit that is one. Keys can make it
 * one: they move the cursor, and bring back what the history has. */
static bool is_cut_command(const char *s, size_t n)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++)
		if (s[i] && is_control(s[i]))
			return true;
	while (at < n && (s[at] == ' ' || s[at] == '\t'))
		at++;
	return at < n && memchr(":%!?", s[at], 4);
}

/* Behind an Enter, or an end of file on an empty line. */
static bool is_line_start(const struct edited *ed)
{
	return ed->n > 0 && ed->line == ed->n &&
	       memchr("\n\4", ed->s[ed->n - 1], 2);
}

/*
 * Find the line that begins at `at` in t->edited: returns where its first key
 * is in t->keys, or NONE where no line begins there. The keys are edited once
 * more, which gives t->edited again.
 *
 * A line begins where both the tty and the editor see the end of the line
 * before: an Enter that was pasted, or typed literally, ends none. A line that
 * was typed and erased again does not begin anew: the cell may have read every
 * key of it.
 */
static size_t find_line(struct typed *t, size_t at)
{
	struct edited ed = {.s = t->edited.s};
	struct key out[KEYS_OUT_MAX];
	size_t found = at || t->torn ? NONE : 0;
	struct keys keys;

	keys_init(&keys);
	for (size_t i = 0; i < t->sent;) {
		const char *s = t->keys.s + i;
		size_t took = take_key(&ed, s, t->sent - i);
		bool enter = false;

		for (size_t k = 0; k < took; k++) {
			int n = keys_feed(&keys, (unsigned char)s[k], out);

			for (int j = 0; j < n; j++)
				enter |= out[j].code == '\r' ||
					 out[j].code == '\n' ||
					 out[j].code == KEY_ALT_ENTER;
		}
		i += took;
		if (took == 1 && *s == KEY('C'))
			found = at ? NONE : i;
		else if ((enter || *s == KEY('D')) && is_line_start(&ed) &&
			 ed.n == at)
			found = i;
		else if (ed.n == at)
			found = NONE; /* begun, and empty again */
	}
	return found;
}

/* The end of a line, or of many, whose beginning was read. */
static const char *cut_rest(
	struct typed *t, size_t at, const char **keys, size_t *n)
{
	static const char why[] = "the cell read the beginning of its line";
	struct strbuf *b = &t->edited;

	at = next_key(b->s, b->n, at);
	strbuf_add(b, t->keys.s + t->sent, t->keys.n - t->sent);
	*keys = b->s + at;
	*n = b->n - at;
	if (!b->failed && !has_any_of(*keys, *n, "\r\n") &&
		!is_cut_command(*keys, *n))
		return NULL;
	*n = 0;
	return why;
}

const char *typed_unread(struct typed *t, char *left, size_t left_n,
	const char **keys, size_t *n)
{
	/* A tty in its usual modes obeys the keys that erase. Where one comes
	 * back, the cell may have read what that key takes away. */
	const char *end = left_n ? memchr(left, '\n', left_n) : NULL;
	size_t first = end ? (size_t)(end - left) : left_n;
	bool raw = has_any_of(left, first, ERASING), fits;
	size_t at, line;

	*n = 0;
	strbuf_add(&t->edited, t->keys.s, t->sent);
	if (t->lost || t->edited.failed)
		return "it was too much";
	t->edited.n = typed_edit(t->edited.s, t->edited.n);
	left_n = typed_edit(left, left_n);
	fits = is_end(t->edited.s, t->edited.n, left, left_n, &at);
	if (!fits)
		return "the cell changed how its terminal reads keys";
	line = raw ? NONE : find_line(t, at);
	if (line == NONE)
		return cut_rest(t, at, keys, n);
	*keys = t->keys.s + line;
	*n = t->keys.n - line;
	return NULL;
}
