/* SPDX-License-Identifier: MIT */
/*
 * help.c - :help: the list of commands, and the page of one
 *
 * Runs in:   front end, between cells
 * Trusts:    the manual page: tools/help made the pages of it in the build
 */
#include "command.h"

#include "help.h"
#include "repl/edit/editor.h"
#include "repl/session/session.h"
#include "repl/term/term.h"

/* The name of the page that explains habits (tools/help). */
#define HABITS_PAGE "%"

static void list_commands(struct session *s)
{
	static const char more[] =
		"Anything else is Python. Tab completes, Up recalls, Ctrl-R "
		"searches, Ctrl-O begins a new line, Alt-Enter runs the cell, "
		"Ctrl-C stops it, three times ends it. :help COMMAND says "
		"more, and help(NAME) is Python's own help.";
	struct text_table t = {.columns = 2}, last = {.columns = 1};
	struct strbuf b = {0};
	char usage[64];
	int rows;

	for (const struct command *c = commands; c->name; c++) {
		if (!config_allows_command(s->cfg, c->name))
			continue;
		snprintf(usage, sizeof(usage), ":%s %s", c->name, c->args);
		text_table_add(&t, (const char *[]){usage, c->help});
	}
	text_table_add(&last, (const char *[]){more});
	editor_size(s->editor, &rows, &t.width);
	last.width = t.width;
	text_table_write(&t, &b);
	text_table_write(&last, &b);
	if (!b.failed)
		page_show(s, b.s, b.n);
	strbuf_free(&b);
}

/* Append `text`, whose lines are paragraphs and examples, with each line folded
 * at `columns`. The indent of a line is that of all its parts. */
static void fold_text(struct strbuf *b, const char *text, int columns)
{
	while (*text) {
		size_t n = strcspn(text, "\n"), in = strspn(text, " ");
		auto_free char *line = strndup(text + in, n - in);

		strbuf_add(b, text, in);
		if (n && line)
			text_wrap(b, line, (int)in, columns);
		else
			strbuf_puts(b, "\n");
		text += n + (text[n] == '\n');
	}
}

static int show_page(struct session *s, const char *name, struct err *e)
{
	struct strbuf b = {0};
	int rows, columns;

	editor_size(s->editor, &rows, &columns);
	for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++)
		if (!strcmp(pages[i].name, name))
			fold_text(&b, pages[i].text,
				s->term->out_tty ? columns : 0);
	if (b.n && !b.failed)
		page_show(s, b.s, b.n);
	else
		err_set(e, "there is no page of :%s", name);
	strbuf_free(&b);
	return e->msg[0] ? -1 : 0;
}

int help_show(struct session *s, const struct command_line *line, struct err *e)
{
	const char *name = line->rest, *say = NULL, *habit = NULL;
	size_t n = strcspn(name, " \t\n");
	const struct command *c;

	if (n > line->rest_n)
		n = line->rest_n;
	if (!n) {
		list_commands(s);
		return 0;
	}
	c = named_find(s->cfg, name, n, NULL);
	if (!(c && strlen(c->name) == n) &&
		habits_explain(name, line->rest_n, &habit, &say)) {
		if (!say)
			return show_page(s, habit ? habit : HABITS_PAGE, e);
		session_frame(s, "%s", say);
		return 0;
	}
	if (name[0] == '?' || name[n - 1] == '?')
		return show_page(s, "doc", e);
	name += *name == ':';
	c = named_find(s->cfg, name, n - (name > line->rest), e);
	return c ? show_page(s, c->name, e) : -1;
}
