/* SPDX-License-Identifier: MIT */
/*
 * typed.c - keeps the keys typed while a cell runs, and finds the unread ones
 *
 * Runs in:   front end
 * Trusts:    no byte that the tty returns: we compare it, and never use it
 * Leaves:    whole keys, each of which the person has typed
 */
#include "repl/term/term.h"

#include <ctype.h>

/* Bytes of keys that we keep; a tty's input buffer holds fewer. */
#define TYPED_MAX (64u << 10)

/* Bytes of a line, without its end, that a tty keeps (N_TTY_BUF_SIZE - 1). */
#define TTY_LINE_MAX 4095

/* find_line(): no line begins there. */
#define NONE ((size_t)-1)

/* Bytes of the longest key. */
#define SEQUENCE_MAX 8

#define KEY(c) ((c)&0x1f)
#define ESC 0x1b
#define DEL 0x7f
#define ERASING "\x7f\x15\x17" /* the keys for which edit_by_key() erases */

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

	/* A program may read keys for hours: forget the oldest sent ones. */
	if (t->keys.n + n > TYPED_MAX && old) {
		strbuf_cut(&t->keys, old);
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

/* Keys that we edit in place, as a tty does. */
struct edited {
	char *s;
	size_t n;
	size_t line; /* keys erase only bytes behind this offset */
	bool text;   /* the line that is being typed is not empty */
};

static void put_character(struct edited *ed, char c)
{
	ed->s[ed->n++] = c;
	ed->text = true;
}

/* Erase all bytes of the last character. Returns the first of them. */
static unsigned char erase_character(struct edited *ed)
{
	unsigned char c;

	do
		c = (unsigned char)ed->s[--ed->n];
	while (utf8_continues((char)c) && ed->n > ed->line);
	return c;
}

/* Erase the last word and the characters behind it. */
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

/* Add a line end or an end of file: no key erases the bytes before it. */
static void commit_line(struct edited *ed, char c)
{
	ed->s[ed->n++] = c;
	ed->line = ed->n;
}

/* Obey a key that pty_set_cooked() gives a meaning. False for other keys. */
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
	case 0: /* a tty stores an end of file as NUL; Ctrl-Space sends it */
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

/* True of controls that the editor reads as keys, even typed literally. */
static bool is_control(char c)
{
	return c != '\t' && iscntrl((unsigned char)c);
}

/* Take the next key, or Ctrl-V and the next byte. Returns the bytes taken. */
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

/* Editing twice gives the same bytes as editing once, so we need not know which
 * keys the tty has edited. */
size_t typed_edit(char *s, size_t n)
{
	struct edited ed = {.s = s};

	for (size_t i = 0; i < n;)
		i += take_key(&ed, s + i, n - i);
	return ed.n;
}

/* ---- the unread keys ---- */

/* True if the edited keys `s` end with the tty's bytes `left`, from *at on. The
 * tty may also return keys from before the last Ctrl-C: we ignore them. */
static bool is_end(
	const char *s, size_t n, const char *left, size_t left_n, size_t *at)
{
	size_t unread = left_n < n ? left_n : n;

	*at = n - unread;
	for (size_t i = 1; i <= unread; i++) {
		char a = s[n - i], b = left[left_n - i];

		/* A tty stores an end of file as NUL. */
		if ((a == KEY('D') ? 0 : a) != (b == KEY('D') ? 0 : b))
			return false;
	}
	return true;
}

/* The offset of the first key that begins at `at` or later. We count a key as
 * read when the cell has read a part of it. */
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

/* True if the rest of a line may become a command: it begins like one, or holds
 * controls, with which the editor moves the cursor or recalls history. */
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

/* True behind an Enter, or behind an end of file on an empty line. */
static bool is_line_start(const struct edited *ed)
{
	return ed->n > 0 && ed->line == ed->n &&
	       memchr("\n\4", ed->s[ed->n - 1], 2);
}

/*
 * Find the line that begins at `at` in t->edited. Returns the offset of its
 * first key in t->keys, or NONE if no line begins there. We edit the keys once
 * more, which gives t->edited again.
 *
 * A line begins where both the tty and the editor see the end of the line
 * before: an Enter that was pasted or typed literally ends no line. Behind a
 * text that was typed and erased again no line begins: the cell may have read
 * each key of that text.
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
			found = NONE; /* typed, and erased again */
	}
	return found;
}

/* Find the rest of a line that the cell has begun to read. NULL, or why not. */
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

/* True if a line that we sent is longer than a tty keeps: the tty dropped the
 * rest of it. */
static bool is_cut_by_tty(const struct typed *t)
{
	size_t length = 0;

	for (size_t i = 0; i < t->edited.n; i++) {
		length = t->edited.s[i] == '\n' ? 0 : length + 1;
		if (length > TTY_LINE_MAX)
			return true;
	}
	return false;
}

const char *typed_unread(struct typed *t, char *left, size_t left_n,
	const char **keys, size_t *n)
{
	/* A tty in its usual modes obeys the keys that erase. If the tty
	 * returns one, the cell may have read the text that the key erases. */
	const char *end = left_n ? memchr(left, '\n', left_n) : NULL;
	size_t first = end ? (size_t)(end - left) : left_n;
	static const char too_much[] = "it was too much";
	bool raw = has_any_of(left, first, ERASING), fits;
	size_t at, line;

	*n = 0;
	strbuf_add(&t->edited, t->keys.s, t->sent);
	if (t->lost || t->edited.failed)
		return too_much;
	t->edited.n = typed_edit(t->edited.s, t->edited.n);
	left_n = typed_edit(left, left_n);
	fits = is_end(t->edited.s, t->edited.n, left, left_n, &at);
	if (!fits)
		return is_cut_by_tty(t)
			       ? too_much
			       : "the cell changed how its terminal reads keys";
	line = raw ? NONE : find_line(t, at);
	if (line == NONE)
		return cut_rest(t, at, keys, n);
	*keys = t->keys.s + line;
	*n = t->keys.n - line;
	return NULL;
}
