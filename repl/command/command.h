/* SPDX-License-Identifier: MIT */
/*
 * command.h - the `:` commands
 *
 *	command.c  the table; what a line is; what Tab offers
 *	named.c    the command of a name
 *	files.c    between host and home, and in the home
 *	script.c   scripts of the host
 *	coding.c   the encoding that a script declares
 *	cells.c    cells and the session
 *	help.c     the list of commands, and the page of one
 *	habits.c   what people type out of habit: %time, !ls
 *	info.c     what there is, and what is allowed; tables
 *	page.c     text in pages
 *
 * One table gives each command its name, arguments, completion, help and
 * function; :help, Tab and the manual page's check follow it.
 */
#ifndef REPL_COMMAND_COMMAND_H
#define REPL_COMMAND_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

struct complete_list;
struct config;
struct err;
struct lexer_word;
struct session;
struct session_calls;
struct text_table;

/* The candidates of Tab for an argument. */
enum command_arg {
	ARG_NONE,
	ARG_HOST,    /* files of the host */
	ARG_HOME,    /* files of the home */
	ARG_COMMAND, /* names of commands */
	ARG_PYTHON,  /* names of Python */
	ARG_CELL,    /* the same, on many lines */
	ARG_NUMBER,  /* numbers of cells */
};

/* The words after the name, and the text they were split from. */
struct command_line {
	const struct lexer_word *words;
	int n;
	const char *rest;
	size_t rest_n;
};

/* 0, or -1 with e. */
typedef int command_function(
	struct session *s, const struct command_line *line, struct err *e);

struct command {
	const char *name;
	const char *args;
	enum command_arg arg;
	int min, max; /* words; max -1: any number; COMMAND_VERBATIM */
	const char *help;
	command_function *run;
};

/* For `max`: the text after the name is not split into words. */
#define COMMAND_VERBATIM (-2)

/* ---- command.c ---- */

/* The table, in the order of :help; ends with a NULL name. */
extern const struct command commands[];
/* The functions that a session calls in this folder. */
extern const struct session_calls command_calls;

/* ---- named.c ---- */

/* The command called `name`, or the only one whose name begins so, if the
 * configuration allows it; NULL with e otherwise. */
const struct command *named_find(
	const struct config *cfg, const char *name, size_t n, struct err *e);

/* True if there is a command of that name, allowed or not. */
bool named_exists(const char *name);
/* Run the command of that name, with the text behind it. 0, or -1 with e. */
int named_run(struct session *s, const char *name, const char *rest, size_t n,
	struct err *e);
/* Run a line that begins with a colon. 0, or -1 with e. */
int named_run_line(struct session *s, const char *src, size_t n, struct err *e);

/* ---- the functions in the table ---- */

command_function files_upload, files_download, files_list, files_show, files_rm,
	files_wipe;
command_function script_load, script_save;
command_function cells_undo, cells_reset, cells_history, cells_out, cells_edit,
	cells_time, cells_timeit, cells_detach, cells_quit;
command_function help_show, info_limits, info_usage, info_who, info_doc;

/* ---- between the files, and for tests ---- */

/* For session_calls: check that -d will have a place; copy the skeleton of the
 * home and do -u; do -d. */
int files_ready(struct session *s, struct err *e);
void files_start(struct session *s);
int files_finish(struct session *s);

/* True if the last of several words of :download, `name`, is the place on the
 * host that the files go to. */
bool files_is_target(struct session *s, const char *name);
/* Ask whether the file `name` of the host may be overwritten. */
bool files_overwrite(void *session, const char *name);

/* Refuse a script whose `n` bytes Python would not read as UTF-8, to the same
 * text. 0, or -1 with an error that says of which `name` and where. Pure. */
int coding_check(const char *s, size_t n, const char *name, struct err *e);

/* Do a line that is no Python, but %time, !ls or the like. 0, or -1 with e; 1:
 * the line is none of them. */
int habits_line(struct session *s, const char *src, size_t n, struct err *e);
/* True if `text` begins as such a line: *command is the command that it stands
 * for, or *say the answer; both stay for Python. */
bool habits_explain(
	const char *text, size_t n, const char **command, const char **say);

/* Run Python as a cell, apart from the person's names: it has `names`, which
 * are these, and `it`, which is the text. 0, or -1 with e. */
int cells_run_apart(struct session *s, const char *python, const char *it,
	size_t n, struct err *e);

/* "NAME?" and "NAME??": the documentation of a name, or its source. */
int info_question(struct session *s, bool source, const char *name, size_t n,
	struct err *e);

/* Print a table as wide as the terminal is, and empty it. */
void info_table(struct session *s, struct text_table *t);

/* Show foreign text a screenful at a time; short text without a stop. */
void page_show(struct session *s, const char *text, size_t n);

#endif
