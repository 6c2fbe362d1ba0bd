/* SPDX-License-Identifier: MIT */
/*
 * command.h - the `:` commands
 *
 * One table gives each command its name, arguments, completion, help and
 * function; :help, Tab and the manual page's check follow it.
 */
#ifndef REPL_COMMAND_COMMAND_H
#define REPL_COMMAND_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

struct config;
struct err;
struct lexer_word;
struct session;
struct session_calls;

/* What Tab offers for an argument. */
enum command_arg {
	ARG_NONE,
	ARG_HOST,    /* files of the host */
	ARG_HOME,    /* files of the home */
	ARG_COMMAND, /* names of commands */
	ARG_PYTHON,  /* whatever Python knows */
	ARG_CELL,    /* the same, and it may have many lines */
};

/* The words after the name, and all that stands there, as it stands. */
struct command_line {
	const struct lexer_word *words;
	int n;
	const char *rest;
	size_t rest_n;
};

struct command {
	const char *name;
	const char *args;
	enum command_arg arg;
	int min, max; /* words; max -1: any number; COMMAND_VERBATIM */
	const char *help;
	int (*run)(struct session *s, const struct command_line *line,
		struct err *e);
};

/* For `max`: what follows is not split into words at all. */
#define COMMAND_VERBATIM (-2)

/* The table, in the order of :help; ends with a NULL name. */
extern const struct command commands[];

/* What a session calls of all this. */
extern const struct session_calls command_calls;

/* The command called `name`, or the only one that begins so, if the
 * configuration allows it; NULL with e otherwise. */
const struct command *command_find(
	const struct config *cfg, const char *name, size_t n, struct err *e);

/* Whether what follows a command called so, or beginning so, is a cell. */
bool command_takes_cell(const struct config *cfg, const char *name, size_t n);

/* Whether there is a command of that name, allowed or not. */
bool command_exists(const char *name);

/* Run a line that begins with a colon. 0, or -1 with e. */
int command_run(struct session *s, const char *src, size_t n, struct err *e);

/* "NAME?" and "NAME??": `what` is "doc" or "source". */
int command_question(struct session *s, const char *what, const char *name,
	size_t n, struct err *e);

/* Whether what -d asks for can be written in the end. 0, or -1 with e. */
int command_ready(struct session *s, struct err *e);

/* What the command line and the configuration ask for before the first
 * prompt: the skeleton of the home, -u. */
void command_start(struct session *s);

/* And after the last: -d. Returns 0, or -1 when a file was refused. */
int command_finish(struct session *s);

#endif
