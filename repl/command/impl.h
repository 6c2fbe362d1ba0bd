/* SPDX-License-Identifier: MIT */
/*
 * impl.h - the functions behind the table
 *
 *	command.c          the table, finding, splitting, running
 *	command_files.c    between host and home
 *	command_home.c     in the home
 *	command_session.c  cells and the session
 *	command_info.c     what is, what may be
 *	command_page.c     text a screenful at a time
 *	command_limits.c   :limits
 */
#ifndef REPL_COMMAND_IMPL_H
#define REPL_COMMAND_IMPL_H

#include "command.h"

struct table;

#define COMMAND_FUNCTION(name)                                                 \
	int command_##name(struct session *s, const struct command_line *line, \
		struct err *e)

COMMAND_FUNCTION(upload);
COMMAND_FUNCTION(download);
COMMAND_FUNCTION(files);
COMMAND_FUNCTION(show);
COMMAND_FUNCTION(rm);
COMMAND_FUNCTION(wipe);
COMMAND_FUNCTION(load);
COMMAND_FUNCTION(save);
COMMAND_FUNCTION(limits);
COMMAND_FUNCTION(usage);
COMMAND_FUNCTION(who);
COMMAND_FUNCTION(doc);
COMMAND_FUNCTION(help);
COMMAND_FUNCTION(undo);
COMMAND_FUNCTION(reset);
COMMAND_FUNCTION(history);
COMMAND_FUNCTION(out);
COMMAND_FUNCTION(edit);
COMMAND_FUNCTION(time);
COMMAND_FUNCTION(quit);

/* Print a table as wide as the terminal is; its rows are gone then. */
void command_print_table(struct session *s, struct table *t);

/* Show foreign text a screenful at a time; short text just so. */
void command_page(struct session *s, const char *text, size_t n);

#endif
