/* SPDX-License-Identifier: MIT */
/*
 * call.c - the parameters of the call that the cursor is in
 *
 * Runs in:   the front end, inside editor_read()
 * Holds:     the dotted name of the callable that we last asked about
 * Trusts:    no answer: a guest sends it
 * Leaves:    at most one faint line of visible characters below the cell; no
 *            key waits for an answer
 */
#include "jail/base/io.h"
#include "parts.h"
#include "repl/edit/python.h"

#define PARAMETERS_MAX 1024
/* We do not ask about longer names. */
#define NAME_MAX_CHARS 200

void call_forget(struct editor *ed)
{
	utf8_wide_free(&ed->call.name);
	ed->call.asked = false;
	view_note(&ed->view, NULL, 0);
}

void call_look(struct editor *ed, size_t python)
{
	struct call_hint *c = &ed->call;
	struct engine_text t = engine_text(ed->engine);
	const wchar_t *s = t.s + python;
	size_t from = 0, to = 0;

	if (!ed->opts.signature || !ed->view.notes)
		return;
	if (python < t.cursor)
		pyblock_call(s, t.cursor - python, &from, &to);
	if (to - from > NAME_MAX_CHARS || wmemchr(s + from, '\n', to - from))
		from = to;
	if (to - from == c->name.n &&
		(from == to || !wmemcmp(s + from, c->name.s, c->name.n)))
		return;
	call_forget(ed);
	utf8_wide_set(&c->name, s + from, to - from);
}

void call_ask(struct editor *ed)
{
	struct call_hint *c = &ed->call;
	auto_free char *name = NULL;
	size_t n;

	if (!c->name.n || c->asked)
		return;
	c->asked = true;
	name = utf8_from_wide(c->name.s, c->name.n, &n);
	if (name)
		ed->opts.signature(ed->opts.ctx, name, n);
}

void call_answer(struct editor *ed, const char *s, size_t n)
{
	struct call_hint *c = &ed->call;
	struct utf8_wide said = {0}, note = {0};

	if (c->asked && n && n <= PARAMETERS_MAX && s[0] == '(' &&
		complete_is_safe(s, n) && utf8_wide_decode(&said, s, n) == 0 &&
		utf8_wide_add(&note, c->name.s, c->name.n) == 0 &&
		utf8_wide_add(&note, said.s, said.n) == 0)
		view_note(&ed->view, note.s, note.n);
	utf8_wide_free(&said);
	utf8_wide_free(&note);
}
