/* SPDX-License-Identifier: MIT */
/*
 * command_info.c - :help :usage :who :doc
 *
 * Runs in:   front end, between cells
 * Trusts:    the warden; what a guest answers is hostile text, and is split
 *            and shown only after it was made safe
 */
#include "repl/command_impl.h"

#include "jail/err.h"
#include "jail/io.h"
#include "jail/jail.h"
#include "repl/config.h"
#include "repl/editor.h"
#include "repl/lexer.h"
#include "repl/session.h"
#include "repl/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

static int help_one(struct session *s, const char *name, struct err *e)
{
	const struct command *c;

	if (name[0] == ':')
		name++;
	c = command_find(s->cfg, name, strlen(name), e);
	if (!c)
		return -1;
	session_printf(s, ":%s %s\n  %s\n", c->name, c->args, c->help);
	return 0;
}

/* A column of characters, not bytes: "…" is one. */
static int pad_for(const char *name, const char *args, int width)
{
	int n = (int)strlen(name) + 1;

	for (; *args; args++)
		n += ((unsigned char)*args & 0xc0) != 0x80;
	return n < width ? width - n : 1;
}

COMMAND_FUNCTION(help)
{
	struct strbuf b = {0};

	if (line->n)
		return help_one(s, line->words[0].s, e);
	for (const struct command *c = commands; c->name; c++)
		if (config_allows_command(s->cfg, c->name))
			strbuf_printf(&b, ":%s %s%*s%s\n", c->name, c->args,
				pad_for(c->name, c->args, 26), "", c->help);
	strbuf_puts(&b,
		"Anything else is Python. Tab completes, Up recalls, Ctrl-R "
		"searches, Alt-Enter\nbegins a new line, Ctrl-C stops a cell, "
		"three times ends it.\n");
	if (!b.failed)
		session_print(s, b.s, b.n);
	strbuf_free(&b);
	return 0;
}

COMMAND_FUNCTION(usage)
{
	struct jail_usage u;
	char mem[TEXT_HUMAN], peak[TEXT_HUMAN], cpu[TEXT_HUMAN], up[TEXT_HUMAN],
		home[TEXT_HUMAN];

	(void)line;
	if (jail_usage(s->jail, &u, e) < 0)
		return -1;
	session_printf(s,
		"memory       %s, peak %s\n"
		"processes    %d\n"
		"CPU          %s\n"
		"home         %s in %d files\n"
		"cells        %d, checkpoints %d\n"
		"session      %s\n",
		text_size(mem, (uint64_t)u.memory_bytes),
		u.memory_peak_bytes
			? text_size(peak, (uint64_t)u.memory_peak_bytes)
			: "unknown",
		u.processes, text_time(cpu, u.cpu_ms),
		text_size(home, (uint64_t)u.home_bytes), u.home_files, u.cells,
		u.checkpoints, text_time(up, u.up_ms / 1000 * 1000));
	return 0;
}

/* Shorten the line from `start` on to what the terminal shows in one row. */
static void cut(struct strbuf *b, size_t start, int columns)
{
	size_t fits = start;
	int width = 0;

	for (size_t at = start; at < b->n;) {
		wchar_t c;
		int n = mbtowc(&c, b->s + at, b->n - at);
		int w = n > 0 ? wcwidth(c) : 1;

		width += w > 0 ? w : 0;
		at += n > 0 ? (size_t)n : 1;
		if (width < columns)
			fits = at;
	}
	if (width <= columns)
		return;
	b->n = fits;
	strbuf_puts(b, "…");
}

/* One row of the answer: name TAB type TAB size TAB value. */
static void add_variable(
	struct strbuf *b, const char *row, size_t n, int columns)
{
	static const int widths[] = {16, 14, 10, 0};
	char safe[400];
	size_t start = b->n;

	for (int i = 0; i < 4; i++) {
		const char *tab = memchr(row, '\t', n);
		size_t len = tab ? (size_t)(tab - row) : n;

		text_safe(safe, sizeof(safe), row, len);
		strbuf_printf(b, "%-*s%s", widths[i], safe, i < 3 ? "  " : "");
		row += tab ? len + 1 : len;
		n -= tab ? len + 1 : len;
	}
	cut(b, start, columns);
	strbuf_puts(b, "\n");
}

COMMAND_FUNCTION(who)
{
	auto_free char *answer = NULL;
	struct strbuf b = {0};
	int rows, columns;
	size_t n;

	(void)line;
	editor_size(s->editor, &rows, &columns);
	if (jail_ask(s->jail, ASK_WHO, "", 0, &answer, &n, e) < 0)
		return -1;
	for (const char *p = answer, *end = answer + n; p < end;) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t len = nl ? (size_t)(nl - p) : (size_t)(end - p);

		if (len)
			add_variable(&b, p, len, columns);
		p += len + 1;
	}
	if (b.n && !b.failed)
		session_print(s, b.s, b.n);
	else
		session_frame(s, "there are no variables yet");
	strbuf_free(&b);
	return 0;
}

int command_question(struct session *s, const char *what, const char *name,
	size_t n, struct err *e)
{
	bool source = !strcmp(what, "source");
	auto_free char *answer = NULL;
	char safe[80];
	size_t answer_n;

	if (!config_allows_command(s->cfg, "doc"))
		return err_set(e, "there is no command :doc");
	if (jail_ask(s->jail, source ? ASK_SOURCE : ASK_DOC, name, n, &answer,
		    &answer_n, e) < 0)
		return -1;
	if (!answer_n) {
		text_safe(safe, sizeof(safe), name, n);
		return err_set(e, "nothing is known about %s", safe);
	}
	command_page(s, answer, answer_n);
	return 0;
}

COMMAND_FUNCTION(doc)
{
	return command_question(s, "doc", line->rest, line->rest_n, e);
}
