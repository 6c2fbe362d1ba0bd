/* SPDX-License-Identifier: MIT */
/*
 * named.c - finds a command by its name, and runs it
 *
 * Runs in:   front end, between cells
 * Trusts:    the person with the commands that [policy] commands allows
 */
#include "command.h"

#include "repl/session/session.h"

bool named_exists(const char *name)
{
	for (const struct command *c = commands; c->name; c++)
		if (!strcmp(c->name, name))
			return true;
	return false;
}

const struct command *named_find(
	const struct config *cfg, const char *name, size_t n, struct err *e)
{
	const struct command *found = NULL;
	char names[128] = "", safe[64];
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
		text_safe(safe, sizeof(safe), name, n);
		err_set(e, "there is no command :%s", safe);
		err_hint(e, ":help lists the commands");
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

int named_run(struct session *s, const char *name, const char *rest, size_t n,
	struct err *e)
{
	const struct command *c = named_find(s->cfg, name, strlen(name), e);
	struct command_line line = {.rest = rest, .rest_n = n};
	struct lexer_words words = {0};
	int r = -1;

	if (!c)
		return -1;
	for (; line.rest_n && text_is_blank(*line.rest); line.rest_n--)
		line.rest++;
	if (c->max == COMMAND_VERBATIM) {
		while (line.rest_n && text_is_blank(line.rest[line.rest_n - 1]))
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

int named_run_line(struct session *s, const char *src, size_t n, struct err *e)
{
	size_t name_n = 0;
	auto_free char *name = NULL;

	for (; n && (text_is_blank(*src) || *src == ':'); n--)
		src++;
	while (name_n < n && !text_is_blank(src[name_n]))
		name_n++;
	name = strndup(src, name_n);
	if (!name)
		return err_errno(e, "run a command");
	return named_run(s, name, src + name_n, n - name_n, e);
}
