/* SPDX-License-Identifier: MIT */
/*
 * info.c - :help :usage :who :doc
 *
 * Runs in:   front end, between cells
 * Trusts:    the warden; what a guest answers is hostile text, and is split
 *            and shown only after it was made safe
 */
#include "impl.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "repl/config/config.h"
#include "repl/edit/editor.h"
#include "repl/session/session.h"
#include "repl/text/lexer.h"
#include "repl/text/table.h"
#include "repl/text/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void command_print_table(struct session *s, struct table *t)
{
	struct strbuf b = {0};
	int rows;

	editor_size(s->editor, &rows, &t->width);
	table_write(t, &b);
	if (!b.failed)
		session_print(s, b.s, b.n);
	strbuf_free(&b);
}

static void add_command(struct table *t, const struct command *c)
{
	char usage[64];

	snprintf(usage, sizeof(usage), ":%s %s", c->name, c->args);
	table_add(t, (const char *[]){usage, c->help});
}

static int help_one(struct session *s, const char *name, struct err *e)
{
	struct table t = {.columns = 2};
	const struct command *c;

	if (name[0] == ':')
		name++;
	c = command_find(s->cfg, name, strlen(name), e);
	if (!c)
		return -1;
	add_command(&t, c);
	command_print_table(s, &t);
	return 0;
}

COMMAND_FUNCTION(help)
{
	static const char more[] =
		"Anything else is Python. Tab completes, Up recalls, Ctrl-R "
		"searches, Alt-Enter begins a new line, Ctrl-C stops a cell, "
		"three times ends it.";
	struct table t = {.columns = 2}, last = {.columns = 1};

	if (line->n)
		return help_one(s, line->words[0].s, e);
	for (const struct command *c = commands; c->name; c++)
		if (config_allows_command(s->cfg, c->name))
			add_command(&t, c);
	command_print_table(s, &t);
	table_add(&last, (const char *[]){more});
	command_print_table(s, &last);
	return 0;
}

__attribute__((format(printf, 3, 4))) static void add(
	struct table *t, const char *what, const char *fmt, ...)
{
	char text[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	table_add(t, (const char *[]){what, text});
}

COMMAND_FUNCTION(usage)
{
	struct table t = {.columns = 2};
	struct jail_usage u;
	char text[TEXT_HUMAN], peak[TEXT_HUMAN] = "unknown";

	(void)line;
	if (jail_usage(s->jail, &u, e) < 0)
		return -1;
	if (u.memory_peak_bytes)
		text_size(peak, (uint64_t)u.memory_peak_bytes);
	add(&t, "memory", "%s, peak %s",
		text_size(text, (uint64_t)u.memory_bytes), peak);
	add(&t, "processes", "%d", u.processes);
	add(&t, "CPU", "%s", text_time(text, u.cpu_ms));
	add(&t, "home", "%s in %s", text_size(text, (uint64_t)u.home_bytes),
		text_count(peak, sizeof(peak), (uint64_t)u.home_files, "file",
			NULL));
	add(&t, "cells", "%d, checkpoints %d", u.cells, u.checkpoints);
	add(&t, "session", "%s", text_time(text, u.up_ms / 1000 * 1000));
	command_print_table(s, &t);
	return 0;
}

/* One row of the answer: name TAB type TAB size TAB value. */
static void add_variable(struct table *t, const char *row, size_t n)
{
	char safe[4][400];

	for (int i = 0; i < 4; i++) {
		const char *tab = memchr(row, '\t', n);
		size_t len = tab ? (size_t)(tab - row) : n;

		text_safe(safe[i], sizeof(safe[i]), row, len);
		row += tab ? len + 1 : len;
		n -= tab ? len + 1 : len;
	}
	table_add(t, (const char *[]){safe[0], safe[1], safe[2], safe[3]});
}

COMMAND_FUNCTION(who)
{
	struct table t = {.columns = 4, .right = 1 << 2, .cut = true};
	auto_free char *answer = NULL;
	size_t n;

	(void)line;
	if (jail_ask(s->jail, ASK_WHO, "", 0, &answer, &n, e) < 0)
		return -1;
	for (const char *p = answer, *end = answer + n; p < end;) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t len = nl ? (size_t)(nl - p) : (size_t)(end - p);

		if (len)
			add_variable(&t, p, len);
		p += len + 1;
	}
	if (t.n)
		command_print_table(s, &t);
	else
		session_frame(s, "there are no variables yet");
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
