/* SPDX-License-Identifier: MIT */
/*
 * engine.c - libedit as a silent engine
 *
 * Runs in:   the front end
 * Holds:     libedit's state; its output goes to /dev/null
 * Trusts:    libedit for the terminal's modes and the buffer; not its display,
 *            its key bindings or its files
 * Leaves:    the user's editrc and terminfo unread
 *
 * libedit writes past its arrays if it draws a cell taller than the screen, so
 * its output goes to /dev/null. We give it no key either: when it asks for the
 * first one, all_keys() handles all keys of the read and returns the end of
 * input. So no key reaches its commands (`ed-command` could rebind keys,
 * `vi-histedit` runs $EDITOR, and `ed-insert` trusts the display).
 */
#include <histedit.h>

#include "jail/base/err.h"
#include "parts.h"

/* libedit allocates a display as large as the terminal, and touches it all. */
#define ENGINE_CELLS_MAX (1L << 20)

struct engine {
	EditLine *el;
	FILE *null;
	size_t max_bytes;
	void (*edit)(void *ctx);
	void *ctx;
	struct engine_text start; /* the text that a read begins with */
};

/* Variables that choose the files that libedit reads when it starts: a terminfo
 * entry written by the user overflows its buffers. */
static const char *const hidden[] = {
	"TERMINFO", "TERMINFO_DIRS", "TERMCAP", "HOME", "TERM", "EDITRC"};

static int env_hide(char **saved)
{
	for (size_t i = 0; i < COUNT(hidden); i++) {
		const char *v = getenv(hidden[i]);

		saved[i] = v ? strdup(v) : NULL;
		if (v && !saved[i])
			return -1;
		unsetenv(hidden[i]);
	}
	return setenv("TERM", "dumb", 1);
}

static void env_restore(char **saved)
{
	for (size_t i = 0; i < COUNT(hidden); i++) {
		if (saved[i])
			setenv(hidden[i], saved[i], 1);
		else
			unsetenv(hidden[i]);
		free(saved[i]);
	}
}

static wchar_t *no_prompt(EditLine *el)
{
	(void)el;
	return L"";
}

/* libedit asks for the first key. It empties its buffer when a read begins, so
 * we can insert the first text only now. */
static int all_keys(EditLine *el, wchar_t *c)
{
	void *data = NULL;
	struct engine *en;

	(void)c;
	el_wget(el, EL_CLIENTDATA, &data);
	en = data;
	engine_set(en, en->start.s, en->start.n, en->start.cursor);
	en->edit(en->ctx);
	return 0;
}

static int set_up(struct engine *en)
{
	/* libedit applies -d while a cell is edited: keys make no signals, and
	 * CR and LF stay themselves. It applies -x afterwards: the bytes stay
	 * untouched until the next reader has set the terminal up. */
	static const wchar_t *const off[][2] = {{L"-d", L"-isig"},
		{L"-d", L"-ixon"}, {L"-d", L"-inlcr"}, {L"-d", L"-icrnl"},
		{L"-x", L"-isig"}, {L"-x", L"-ixon"}, {L"-x", L"-inlcr"},
		{L"-x", L"-icrnl"}, {L"-x", L"-icanon"}, {L"-x", L"-echo"},
		{L"-x", L"-iexten"}};
	EditLine *el = en->el;
	int r = 0;

	r |= el_wset(el, EL_CLIENTDATA, en);
	r |= el_wset(el, EL_EDITOR, L"emacs");
	r |= el_wset(el, EL_SIGNAL, 0);
	r |= el_wset(el, EL_GETCFN, all_keys);
	r |= el_wset(el, EL_PROMPT, no_prompt);
	for (size_t i = 0; i < COUNT(off); i++)
		r |= el_wset(el, EL_SETTY, off[i][0], off[i][1], NULL);
	return r;
}

int engine_open(struct engine **out, int in, int tty, size_t max_bytes,
	void (*edit)(void *ctx), void *ctx, struct err *e)
{
	struct engine *en = calloc(1, sizeof(*en));
	char *saved[COUNT(hidden)] = {0};

	if (!en)
		return err_errno(e, "editor");
	*en = (struct engine){.max_bytes = max_bytes, .edit = edit, .ctx = ctx};
	*out = en;
	en->null = fopen("/dev/null", "w+e");
	if (!en->null)
		return err_errno(e, "editor: open /dev/null");
	if (env_hide(saved) == 0)
		en->el = el_init_fd("cellblock", en->null, en->null, en->null,
			in, tty, tty);
	env_restore(saved);
	if (!en->el || set_up(en) < 0)
		return err_set(e, "editor: libedit cannot start");
	return 0;
}

void engine_close(struct engine *en)
{
	if (!en)
		return;
	if (en->el) {
		/* Each read has restored the modes. el_end() would do so once
		 * more, and drop the keys that wait. */
		el_wset(en->el, EL_EDITMODE, 0);
		el_end(en->el);
	}
	if (en->null)
		fclose(en->null);
	free(en);
}

bool engine_can(int rows, int cols)
{
	return (long)rows * cols <= ENGINE_CELLS_MAX;
}

int engine_run(struct engine *en, struct engine_text start)
{
	int ignored;

	en->start = start;
	if (el_wset(en->el, EL_PREP_TERM, 1) < 0)
		return -1;
	el_wgets(en->el, &ignored);
	return 0;
}

struct engine_text engine_text(const struct engine *en)
{
	const LineInfoW *li = el_wline(en->el);

	return (struct engine_text){.s = li->buffer,
		.n = (size_t)(li->lastchar - li->buffer),
		.cursor = (size_t)(li->cursor - li->buffer)};
}

size_t engine_line_start(const struct engine_text *t, size_t at)
{
	while (at > 0 && t->s[at - 1] != '\n')
		at--;
	return at;
}

size_t engine_line_end(const struct engine_text *t, size_t at)
{
	while (at < t->n && t->s[at] != '\n')
		at++;
	return at;
}

void engine_move(struct engine *en, size_t to)
{
	struct engine_text t = engine_text(en);

	el_cursor(en->el, (int)((long)to - (long)t.cursor));
}

int engine_replace(
	struct engine *en, size_t from, size_t to, const wchar_t *s, size_t n)
{
	struct utf8_wide copy = {0};
	int r = 0;

	/* libedit needs a NUL; `s` may point into its buffer. */
	if (utf8_wide_set(&copy, s, n) < 0)
		return -1;
	engine_move(en, to);
	if (to > from)
		el_deletestr(en->el, (int)(to - from));
	if (n)
		r = el_winsertstr(en->el, copy.s);
	utf8_wide_free(&copy);
	return r;
}

void engine_set(struct engine *en, const wchar_t *s, size_t n, size_t cursor)
{
	engine_replace(en, 0, engine_text(en).n, s, n);
	engine_move(en, cursor);
}

/* A character takes at most four bytes: we count them only near the limit. */
bool engine_fits(const struct engine *en, size_t from, size_t to,
	const wchar_t *s, size_t n)
{
	struct engine_text t = engine_text(en);

	return (t.n + n) * 4 <= en->max_bytes ||
	       utf8_size(t.s, from) + utf8_size(s, n) +
			       utf8_size(t.s + to, t.n - to) <=
		       en->max_bytes;
}
