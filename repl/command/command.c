/* SPDX-License-Identifier: MIT */
/*
 * command.c - the table of `:` commands, and running one
 *
 * Runs in:   front end, between cells
 * Trusts:    the person with the commands that [policy] commands allows
 */
#include "command.h"

#include "jail/base/err.h"
#include "repl/config/config.h"
#include "repl/session/session.h"
#include "repl/term/terminal.h"
#include "repl/text/lexer.h"
#include "repl/text/text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
const struct command commands[] = {
	{"upload", "SRC… [DST]", ARG_HOST, 1, -1,
		"copy files of the host into the home", files_upload},
	{"download", "PATTERN… [DIR]", ARG_HOME, 1, -1,
		"copy files of the home to the host", files_download},
	{"files", "[PATTERN]", ARG_HOME, 0, 1,
		"list the home", files_list},
	{"show", "FILE", ARG_HOME, 1, 1,
		"print a file of the home", files_show},
	{"rm", "PATTERN…", ARG_HOME, 1, -1,
		"remove files of the home", files_rm},
	{"limits", "", ARG_NONE, 0, 0,
		"what you may do, and what enforces it", info_limits},
	{"usage", "", ARG_NONE, 0, 0,
		"what the session uses now", info_usage},
	{"who", "", ARG_NONE, 0, 0,
		"your variables", info_who},
	{"undo", "[N]", ARG_NONE, 0, 1,
		"back to before the last cell, or the last N",
		cells_undo},
	{"reset", "", ARG_NONE, 0, 0,
		"a fresh Python on the same home", cells_reset},
	{"wipe", "", ARG_NONE, 0, 0,
		"empty the home", files_wipe},
	{"load", "FILE", ARG_HOST, 1, 1,
		"run a script of the host, cell by cell", script_load},
	{"save", "FILE", ARG_HOST, 1, 1,
		"write the cells that ran as a script on the host",
		script_save},
	{"history", "[TEXT]", ARG_NONE, 0, COMMAND_VERBATIM,
		"cells of this session and those before", cells_history},
	{"out", "[N]", ARG_NONE, 0, 1,
		"page through the full output of a cell", cells_out},
	{"edit", "[N]", ARG_NONE, 0, 1,
		"the last cell, or cell N, back in the editor", cells_edit},
	{"time", "CELL", ARG_CELL, 1, COMMAND_VERBATIM,
		"run a cell and say what it took", cells_time},
	{"doc", "NAME", ARG_PYTHON, 1, COMMAND_VERBATIM,
		"signature and docs; also NAME?, and NAME?? for source",
		info_doc},
	{"help", "[COMMAND]", ARG_COMMAND, 0, 1,
		"this list", info_help},
	{"quit", "", ARG_NONE, 0, 0,
		"leave; so does Ctrl-D", cells_quit},
	{0},
};
/* clang-format on */

bool command_exists(const char *name)
{
	for (const struct command *c = commands; c->name; c++)
		if (!strcmp(c->name, name))
			return true;
	return false;
}

static int unknown(const char *name, size_t n, struct err *e)
{
	char safe[64];

	text_safe(safe, sizeof(safe), name, n);
	err_set(e, "there is no command :%s", safe);
	return err_hint(e, ":help lists the commands");
}

const struct command *command_find(
	const struct config *cfg, const char *name, size_t n, struct err *e)
{
	const struct command *found = NULL;
	char names[128] = "";
	size_t at = 0;
	int many = 0;

	for (const struct command *c = commands; c->name; c++) {
		if (strncmp(c->name, name, n) != 0 ||
			!config_allows_command(cfg, c->name))
			continue;
		if (!c->name[n])
			return c;
		if (at < sizeof(names) - 16)
			at += (size_t)snprintf(names + at, sizeof(names) - at,
				" :%s", c->name);
		found = c;
		many++;
	}
	if (!n || !found) {
		unknown(name, n, e);
		return NULL;
	}
	if (many > 1) {
		err_set(e, ":%.*s could be%s", (int)n, name, names);
		return NULL;
	}
	return found;
}

static int check_count(const struct command *c, int n, struct err *e)
{
	if (n >= c->min && (c->max < 0 || n <= c->max))
		return 0;
	if (c->args[0])
		return err_set(e, "usage: :%s %s", c->name, c->args);
	return err_set(e, ":%s takes no arguments", c->name);
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

int command_run(struct session *s, const char *src, size_t n, struct err *e)
{
	struct command_line line = {0};
	struct lexer_words words = {0};
	const struct command *c;
	size_t name_n = 0;
	int r = -1;

	for (; n && (is_space(*src) || *src == ':'); n--)
		src++;
	while (name_n < n && !is_space(src[name_n]))
		name_n++;
	c = command_find(s->cfg, src, name_n, e);
	if (!c)
		return -1;
	line.rest = src + name_n;
	line.rest_n = n - name_n;
	for (; line.rest_n && is_space(*line.rest); line.rest_n--)
		line.rest++;
	if (c->max == COMMAND_VERBATIM) {
		while (line.rest_n && is_space(line.rest[line.rest_n - 1]))
			line.rest_n--;
		return check_count(c, line.rest_n > 0, e) < 0
			       ? -1
			       : c->run(s, &line, e);
	}
	if (lexer_split(line.rest, line.rest_n, &words, e) == 0 &&
		check_count(c, words.n, e) == 0) {
		line.words = words.v;
		line.n = words.n;
		r = c->run(s, &line, e);
	}
	lexer_words_free(&words);
	return r;
}

/* "area?" and "?area" ask for documentation, two marks for the source. Reduces
 * the text to the name between the marks. */
static bool is_question(const char **name, size_t *n, bool *source)
{
	const char *p = *name, *end = p + *n;
	size_t before = 0, behind = 0;

	while (p < end && isspace((unsigned char)end[-1]))
		end--;
	for (; p < end && *p == '?'; p++)
		before++;
	for (; p < end && end[-1] == '?'; end--)
		behind++;
	if (p == end || (before && behind) || isdigit((unsigned char)*p))
		return false;
	if (before + behind < 1 || before + behind > 2)
		return false;
	for (const char *c = p; c < end; c++)
		if (!isalnum((unsigned char)*c) && *c != '_' && *c != '.' &&
			(unsigned char)*c < 0x80)
			return false;
	*source = before + behind == 2;
	*name = p;
	*n = (size_t)(end - p);
	return true;
}

/* ---- what session_calls promises ---- */

static int run_line(struct session *s, const char *src, size_t n, struct err *e)
{
	bool command = lexer_is_command(src, n), source;
	const char *name = src;
	size_t name_n = n;

	if (!command && !is_question(&name, &name_n, &source))
		return 1;
	terminal_restore(s->term);
	/* An interrupt that came before is not meant for this command. */
	s->signals->interrupt = false;
	return command ? command_run(s, src, n, e)
		       : info_question(s, source, name, name_n, e);
}

static bool takes_cell(void *session, const char *name, size_t n)
{
	const struct session *s = session;
	const struct command *c = command_find(s->cfg, name, n, NULL);

	return c && c->arg == ARG_CELL;
}

const struct session_calls command_calls = {
	.line = run_line,
	.takes_cell = takes_cell,
	.complete = offer_cell,
	.ready = files_ready,
	.start = files_start,
	.finish = files_finish,
};
