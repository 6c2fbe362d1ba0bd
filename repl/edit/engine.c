/* SPDX-License-Identifier: MIT */
/*
 * engine.c - libedit as a silent engine
 *
 * Runs in:   the front end
 * Holds:     libedit's state; its output goes to /dev/null
 * Trusts:    libedit for the modes of the terminal, the buffer and calling us
 *            back; not its display, its key bindings or its files
 * Leaves:    nothing read of the user's: no editrc, no terminfo
 *
 * libedit draws wrongly once a cell is taller than the screen, and writes past
 * its arrays when it does; so it draws nothing here. Every one of the 256 keys
 * is bound to one function of ours, which makes its commands unreachable:
 * `ed-command` could rebind keys and `vi-histedit` runs $EDITOR. Codes above
 * 255 would always go to its own `ed-insert`, which trusts its display: text
 * therefore comes as KEY_TEXT, and no function returns CC_REFRESH.
 */
#include <histedit.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "impl.h"
#include "jail/base/err.h"

/* libedit allocates a display of the terminal's size, and touches each row. */
#define ENGINE_CELLS_MAX (1L << 20)

struct engine {
	EditLine *el;
	FILE *null;
	bool started;
};

/* Variables that choose the files libedit reads when it starts: a terminfo
 * entry of the user's making overflows its buffers. */
static const char *const hidden[] = {
	"TERMINFO", "TERMINFO_DIRS", "TERMCAP", "HOME", "TERM", "EDITRC"};
#define HIDDEN (sizeof(hidden) / sizeof(*hidden))

static int env_hide(char **saved)
{
	for (size_t i = 0; i < HIDDEN; i++) {
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
	for (size_t i = 0; i < HIDDEN; i++) {
		if (saved[i])
			setenv(hidden[i], saved[i], 1);
		else
			unsetenv(hidden[i]);
		free(saved[i]);
	}
}

static struct editor *editor_of(EditLine *el)
{
	void *ed = NULL;

	el_wget(el, EL_CLIENTDATA, &ed);
	return ed;
}

static wchar_t *engine_prompt(EditLine *el)
{
	(void)el;
	return L"";
}

/* libedit empties its buffer when a read begins, so the text to begin with is
 * put in when it asks for the first key. */
static void engine_start(struct editor *ed)
{
	ed->engine->started = true;
	if (!ed->kept.n)
		return;
	engine_replace(ed, 0, 0, ed->kept.s, ed->kept.n);
	engine_move(ed, ed->kept_cursor);
	wide_free(&ed->kept);
}

static int engine_getc(EditLine *el, wchar_t *c)
{
	struct editor *ed = editor_of(el);

	if (!ed->engine->started)
		engine_start(ed);
	ed->key = input_key(ed);
	*c = (wchar_t)ed->key.code;
	return 1;
}

static unsigned char engine_key(EditLine *el, wint_t code)
{
	struct editor *ed = editor_of(el);

	(void)code;
	switch (edit_key(ed, ed->key)) {
	case STEP_GO_ON:
		return CC_NORM;
	case STEP_ACCEPT:
		return CC_NEWLINE;
	case STEP_END:
		return CC_EOF;
	}
	return CC_EOF;
}

static int engine_setup(struct editor *ed)
{
	static const wchar_t *const off[] = {
		L"-isig", L"-ixon", L"-inlcr", L"-icrnl"};
	static const wchar_t *const off_after[] = {L"-isig", L"-ixon",
		L"-inlcr", L"-icrnl", L"-icanon", L"-echo", L"-iexten"};
	EditLine *el = ed->engine->el;
	int r = 0;

	r |= el_wset(el, EL_CLIENTDATA, ed);
	r |= el_wset(el, EL_EDITOR, L"emacs");
	r |= el_wset(el, EL_SIGNAL, 0);
	r |= el_wset(el, EL_GETCFN, engine_getc);
	r |= el_wset(el, EL_PROMPT, engine_prompt);
	r |= el_wset(el, EL_ADDFN, L"cell-key", L"a key", engine_key);
	/* Keys are keys; and without the last two CR and LF change places. */
	for (size_t i = 0; i < sizeof(off) / sizeof(*off); i++)
		r |= el_wset(el, EL_SETTY, L"-d", off[i], NULL);
	/* Nor do they become anything else before who reads next is ready. */
	for (size_t i = 0; i < sizeof(off_after) / sizeof(*off_after); i++)
		r |= el_wset(el, EL_SETTY, L"-x", off_after[i], NULL);
	return r;
}

int engine_open(struct editor *ed, struct err *e)
{
	struct engine *en = calloc(1, sizeof(*en));
	char *saved[HIDDEN] = {0};

	if (!en)
		return err_errno(e, "editor");
	ed->engine = en;
	en->null = fopen("/dev/null", "w+e");
	if (!en->null)
		return err_errno(e, "editor: open /dev/null");
	if (env_hide(saved) == 0)
		en->el = el_init_fd("cellblock", en->null, en->null, en->null,
			ed->in, ed->out, ed->out);
	env_restore(saved);
	if (!en->el || engine_setup(ed) < 0)
		return err_set(e, "editor: libedit cannot start");
	return 0;
}

void engine_close(struct editor *ed)
{
	struct engine *en = ed->engine;

	if (!en)
		return;
	if (en->el)
		el_end(en->el);
	if (en->null)
		fclose(en->null);
	free(en);
	ed->engine = NULL;
}

bool engine_can(int rows, int cols)
{
	return (long)rows * cols <= ENGINE_CELLS_MAX;
}

/* Entering raw mode binds the terminal's own special characters (stty erase
 * and so on), so the table is made anew behind it. */
static int engine_bind(EditLine *el)
{
	wchar_t key[8];
	int r = 0;

	el_wset(el, EL_BIND, L"-r", L"\\e", NULL);
	el_wset(el, EL_BIND, L"-r", L"^X", NULL);
	r |= el_wset(el, EL_BIND, L"^@", L"cell-key", NULL);
	for (int c = 1; c < 256; c++) {
		swprintf(key, 8, L"\\%03o", c);
		r |= el_wset(el, EL_BIND, key, L"cell-key", NULL);
	}
	return r;
}

int engine_run(struct editor *ed)
{
	EditLine *el = ed->engine->el;
	int n;

	ed->engine->started = false;
	if (el_wset(el, EL_PREP_TERM, 1) < 0 || engine_bind(el) < 0)
		return -1;
	el_wgets(el, &n);
	return 0;
}

struct span engine_text(const struct editor *ed)
{
	const LineInfoW *li = el_wline(ed->engine->el);

	return (struct span){.s = li->buffer,
		.n = (size_t)(li->lastchar - li->buffer),
		.cursor = (size_t)(li->cursor - li->buffer)};
}

void engine_move(struct editor *ed, size_t to)
{
	struct span t = engine_text(ed);

	el_cursor(ed->engine->el, (int)((long)to - (long)t.cursor));
}

int engine_replace(
	struct editor *ed, size_t from, size_t to, const wchar_t *s, size_t n)
{
	EditLine *el = ed->engine->el;
	struct wide copy = {0};
	int r = 0;

	/* libedit wants a NUL; `s` may lie in the buffer that changes. */
	if (wide_set(&copy, s, n) < 0)
		return -1;
	engine_move(ed, to);
	if (to > from)
		el_deletestr(el, (int)(to - from));
	if (n)
		r = el_winsertstr(el, copy.s);
	wide_free(&copy);
	return r;
}
