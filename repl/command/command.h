/* SPDX-License-Identifier: MIT */
/*
 * command.h - the `:` commands
 *
 *	command.c  the table; commands, questions and cells told apart; Tab
 *	named.c    finds a command by its name, and runs it
 *	files.c    copies between host and home; commands for home files
 *	lab.c      hands files in
 *	script.c   runs a script of the host; saves one there
 *	coding.c   the encoding that a script declares
 *	plain.c    a cell as plain Python, for a script
 *	cells.c    commands for cells and for the session
 *	help.c     the list of commands, and the page of one; :explain
 *	habits.c   what people type out of habit: %time, !ls
 *	info.c     limits, usage, variables, documentation; tables
 *	page.c     text, a screenful at a time; :clear
 *
 * One table gives each command its name, arguments, completion, help and
 * function. :help, Tab and the check of the manual page read that table.
 */
#ifndef REPL_COMMAND_COMMAND_H
#define REPL_COMMAND_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct complete_list;
struct config;
struct err;
struct lexer_word;
struct session;
struct session_calls;
struct strbuf;
struct text_table;

/* What Tab completes in a command's arguments. */
enum command_arg {
	ARG_NONE,
	ARG_HOST,    /* files of the host */
	ARG_HOME,    /* files of the home */
	ARG_COMMAND, /* names of commands */
	ARG_PYTHON,  /* names of Python */
	ARG_CELL,    /* names of Python, in a cell of one or many lines */
	ARG_NUMBER,  /* numbers of cells */
};

/* The words after the command's name, and the text they were split from. */
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

/* Find the command `name`, or the only command whose name begins with it. NULL
 * with e: there is none, or the configuration does not allow it. */
const struct command *named_find(
	const struct config *cfg, const char *name, size_t n, struct err *e);

/* True if there is a command `name`, allowed or not. */
bool named_exists(const char *name);
/* Run the command `name` with `rest`, the `n` bytes behind the name. 0, or -1
 * with e. */
int named_run(struct session *s, const char *name, const char *rest, size_t n,
	struct err *e);
/* Run a line that begins with a colon. 0, or -1 with e. */
int named_run_line(struct session *s, const char *src, size_t n, struct err *e);

/* ---- the functions in the table ---- */

command_function files_upload, files_download, files_list, files_show, files_rm,
	files_wipe;
command_function lab_submit;

/* After an exam's session, say what its janitor has handed in: the files of the
 * moment `end_s` or later. */
void lab_tell_end(const struct config *cfg, int courier, int64_t end_s);
command_function script_load, script_save;
command_function cells_undo, cells_reset, cells_history, cells_out, cells_edit,
	cells_time, cells_timeit, cells_detach, cells_quit;
command_function page_clear, help_show, help_explain, info_limits, info_usage,
	info_who, info_diff, info_watch, info_unwatch, info_doc;

/* ---- between the files, and for tests ---- */

/* For session_calls. files_ready() checks that the directories of -d can be
 * written; files_start() copies the skeleton and the files of -u into the home;
 * files_finish() downloads the files of -d. */
int files_ready(struct session *s, struct err *e);
void files_start(struct session *s);
int files_finish(struct session *s);

/* True if `name`, the last of several words of :download, is the directory on
 * the host that the files go to. */
bool files_is_target(struct session *s, const char *name);
/* Ask whether the file `name` of the host may be overwritten. */
bool files_overwrite(void *session, const char *name);

/* Refuse a script of `n` bytes that Python would not read as the text that the
 * bytes are in UTF-8. 0, or -1 with an error that begins with `name`. Pure. */
int coding_check(const char *s, size_t n, const char *name, struct err *e);

/* Append a cell as a script has it: in Python. A line of the shell becomes a
 * call of subprocess.run(), another habit a comment. `habit`: the whole cell is
 * one. Pure. */
void plain_add(struct strbuf *b, const char *src, size_t n, bool habit);

/* Run a line that is not Python but a habit: %time, !ls or the like. 0, or -1
 * with e; 1: the line is no habit. */
int habits_line(struct session *s, const char *src, size_t n, struct err *e);
/* True if `text` begins with a habit. Sets *command to the command that the
 * habit stands for, or *say to our advice, or neither where it runs Python. */
bool habits_explain(
	const char *text, size_t n, const char **command, const char **say);

/* True of "area?" and "?area", which ask for documentation, and of "*int*?",
 * which asks for names; with two marks they ask for the source. Reduces the
 * text to the name without the marks. */
bool info_is_question(const char **name, size_t *n, bool *source);

/* "NAME?" and "NAME??": the documentation of a name, or its source. */
int info_question(struct session *s, bool source, const char *name, size_t n,
	struct err *e);

/* Print a table in the width of the terminal, and empty the table. */
void info_table(struct session *s, struct text_table *t);

/* Show foreign text a screenful at a time. Print text that fits on the screen
 * without a stop. */
void page_show(struct session *s, const char *text, size_t n);
/* The same from the end on. */
void page_show_end(struct session *s, const char *text, size_t n);

#endif
