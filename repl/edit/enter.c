/* SPDX-License-Identifier: MIT */
/*
 * enter.c - Enter: run, or a new line; and indentation
 *
 * Runs in:   the front end, inside editor_read()
 * Holds:     nothing
 * Trusts:    nothing in the text
 * Leaves:    nothing
 */
#include <string.h>

#include "impl.h"
#include "pyscan.h"

/* Longer than any name of a command. */
#define COMMAND_MAX 32

static bool is_blank(wchar_t c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

static bool is_blank_from(const struct span *t, size_t at)
{
	while (at < t->n && is_blank(t->s[at]))
		at++;
	return at == t->n;
}

/* Where Python begins: behind a command that takes a cell, at the end where
 * there is any other. The first character that is not a blank makes it one, if
 * it is a colon. */
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
	return ed->takes_cell && ed->takes_cell(ed->takes_cell_ctx, name, len)
		       ? i
		       : n;
}

static bool is_command(const struct editor *ed, const wchar_t *s, size_t n)
{
	return n && python_at(ed, s, n) == n;
}

bool enter_runs(const struct editor *ed, const wchar_t *s, size_t n)
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

size_t enter_trim(const wchar_t *s, size_t n)
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

enum editor_step enter_newline(struct editor *ed)
{
	struct span t = engine_text(ed);
	struct pyscan_indent in = pyscan_indent(t.s, t.cursor);
	const wchar_t *indent = t.s + in.start;
	bool tabs = in.n > 0 && indent[in.n - 1] == '\t';
	size_t unit = tabs ? 1 : EDITOR_INDENT, n = in.n;
	struct wide line = {0};

	if (in.change < 0)
		n = n >= unit ? n - unit : 0;
	wide_add(&line, L"\n", 1);
	wide_add(&line, indent, n);
	if (in.change > 0)
		wide_add(&line, tabs ? L"\t" : L"    ", unit);
	edit_insert(ed, line.s, line.n);
	wide_free(&line);
	return STEP_GO_ON;
}

/* A line end in the middle of what came at once is text: a paste without
 * brackets. */
static bool is_burst(const struct editor *ed)
{
	return ed->burst && input_has_more(ed);
}

enum editor_step enter_key(struct editor *ed)
{
	struct span t = engine_text(ed);
	bool at_end = is_blank_from(&t, t.cursor);
	bool one_line = edit_line_end(&t, 0) == t.n;

	if (is_burst(ed)) {
		edit_insert(ed, L"\n", 1);
		return STEP_GO_ON;
	}
	if (!at_end && !one_line && !is_command(ed, t.s, t.n))
		return enter_newline(ed);
	if (!enter_runs(ed, t.s, t.n) && !(ed->recalled && at_end))
		return enter_newline(ed);
	ed->result = EDITOR_CELL;
	return STEP_ACCEPT;
}

enum editor_step enter_tab(struct editor *ed)
{
	struct span t = engine_text(ed);
	size_t col = t.cursor - edit_line_start(&t, t.cursor);

	if (is_burst(ed))
		edit_insert(ed, L"\t", 1);
	else
		edit_insert(ed, L"    ", EDITOR_INDENT - col % EDITOR_INDENT);
	return STEP_GO_ON;
}

enum editor_step enter_back_tab(struct editor *ed)
{
	struct span t = engine_text(ed);
	size_t start = edit_line_start(&t, t.cursor), n = 0;
	size_t cursor = t.cursor;

	while (start + n < t.n && n < EDITOR_INDENT && t.s[start + n] == ' ')
		n++;
	if (n == 0 && start < t.n && t.s[start] == '\t')
		n = 1;
	engine_replace(ed, start, start + n, NULL, 0);
	engine_move(ed, cursor < start + n ? start : cursor - n);
	return STEP_GO_ON;
}
