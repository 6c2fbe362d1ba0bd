/* SPDX-License-Identifier: MIT */
/*
 * help.c - :help: the list of commands, and the page of one; :explain
 *
 * Runs in:   front end, between cells
 * Trusts:    the manual page: tools/help made the pages of it in the build. Not
 *            what the guest says to an error: page_show() makes it safe
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
		"Ctrl-C stops it, three times ends it. F1 shows this list, F2 "
		"the history, and Ctrl-X Ctrl-E calls an editor. :help COMMAND "
		"says more, :help % has %magic and !shell, and help(NAME) is "
		"Python's own help.";
	/* for a terminal without our editor, where keys do none of that */
	static const char plain[] =
		"Anything else is Python. Ctrl-C stops a cell, three times "
		"ends it. :help COMMAND says more, :help % has %magic and "
		"!shell, and help(NAME) is Python's own help.";
	bool is_plain = editor_is_plain(s->editor);
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
	text_table_add(&last, (const char *[]){is_plain ? plain : more});
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

static void show_folded(struct session *s, const char *text)
{
	struct strbuf b = {0};
	int rows, columns;

	editor_size(s->editor, &rows, &columns);
	fold_text(&b, text, s->term->out_tty ? columns : 0);
	if (!b.failed)
		page_show(s, b.s, b.n);
	strbuf_free(&b);
}

static int show_page(struct session *s, const char *name, struct err *e)
{
	for (size_t i = 0; i < COUNT(pages); i++)
		if (!strcmp(pages[i].name, name)) {
			show_folded(s, pages[i].text);
			return 0;
		}
	return err_set(e, "there is no page of :%s", name);
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
	if (n == strlen(HABITS_PAGE) && !memcmp(name, HABITS_PAGE, n))
		return show_page(s, HABITS_PAGE, e);
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

/* Say in plain words why a cell ended, where Python does not know; or NULL. */
static const char *explain_end(const struct jail_done *done)
{
	static const char *const by_limit[] = {
		[LIMIT_WALL] = "The cell took longer than cell.timeout allows, "
			       "often because a loop never ends. :limits says "
			       "how long a cell may take.",
		[LIMIT_CPU] = "The cell used more CPU time than cell.cpu "
			      "allows. :limits says how much a cell may use.",
		[LIMIT_MEMORY] = "The session needed more memory than it may "
				 "have: :limits says how much, and :who what "
				 "the variables take.",
		[LIMIT_ALL] = "All sessions of this host together have no more "
			      "memory: maker.memory, or the host's own, is "
			      "used up. This session was within its limit, and "
			      "held most. Try again later, or with less.",
		[LIMIT_PERSON] = "Ctrl-C three times ended Python, because "
				 "the cell did not stop at the first.",
	};

	if (done && done->how == HOW_CRASHED)
		return "Python itself crashed. Code in C did it (ctypes, an "
		       "extension module): an error in Python is a traceback, "
		       "never a crash.";
	if (done && done->how == HOW_EXITED)
		return "The cell called os._exit(), which ends Python at once.";
	if (!done || done->how != HOW_KILLED ||
		(size_t)done->limit >= COUNT(by_limit))
		return NULL;
	return by_limit[done->limit];
}

int help_explain(
	struct session *s, const struct command_line *line, struct err *e)
{
	const char *words = explain_end(cell_done(s));
	auto_free char *answer = NULL;
	size_t n = 0;

	(void)line;
	if (words)
		show_folded(s, words);
	else if (jail_ask(s->jail, ASK_EXPLAIN, "", 0, &answer, &n, e) < 0)
		return -1;
	else if (n)
		show_folded(s, answer);
	else
		session_frame(s, "no cell has ended with an error");
	return 0;
}
