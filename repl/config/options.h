/* SPDX-License-Identifier: MIT */
/*
 * options.h - the command line
 */
#ifndef REPL_CONFIG_OPTIONS_H
#define REPL_CONFIG_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct err;

/* The mode gives `text` of struct options its meaning. */
enum options_mode {
	OPTIONS_SESSION,      /* a prompt */
	OPTIONS_FILE,	      /* text: path */
	OPTIONS_CODE,	      /* text: source, -c */
	OPTIONS_MODULE,	      /* text: module, -m */
	OPTIONS_CELL,	      /* text: source, -e */
	OPTIONS_REMOTE,	      /* text: command of scp, sftp or rsync */
	OPTIONS_STDIN,	      /* a program from standard input */
	OPTIONS_GRADE,	      /* a program against submissions */
	OPTIONS_EVAL,	      /* JSON requests from standard input */
	OPTIONS_MCP,	      /* an agent on standard input */
	OPTIONS_SERVE,	      /* text: where to listen, or NULL */
	OPTIONS_MAKER,	      /* text: where to listen, or NULL */
	OPTIONS_SESSIONS,     /* list the sessions */
	OPTIONS_ATTACH,	      /* go back to `session`, or to the only one */
	OPTIONS_END,	      /* end the sessions in `args`, or all of the
			       * person's, and show `message` there */
	OPTIONS_MESSAGE,      /* show `message` in `session` */
	OPTIONS_WATCH,	      /* show what `session` shows */
	OPTIONS_COLLECT,      /* text: COURSE/EXERCISE, or a directory */
	OPTIONS_REPORT,	      /* who had sessions */
	OPTIONS_CHECK,	      /* what the host enforces */
	OPTIONS_CHECK_CONFIG, /* check config_file, or all files */
	OPTIONS_HELP,
	OPTIONS_VERSION,
};

/* SRC[:DST] or PATTERN[:DIR]. Owned; `to` is NULL when not given. */
struct options_pair {
	char *from;
	char *to;
};

/* Strings are borrowed from argv, except where a comment says owned. */
struct options {
	enum options_mode mode;
	const char *text;
	char *const *args; /* of the program; ends with NULL */
	int nargs;
	/* of --attach, --end, --message and --watch; or NULL */
	const char *session, *message;
	const char *save;    /* of --end: where homes are copied to; or NULL */
	const char *archive; /* of --collect; or NULL */
	struct options_grade {
		const char *plan, *submissions;
		const char *results, *junit; /* files, or NULL */
		int jobs;		     /* 0: as many as cores */
		int share, shares;	     /* --share K/N; 0/0: all */
	} grade;
	const char *config_file;
	const char *python;
	char **sets; /* owned SECTION.KEY=VALUE; "-t " or "-M " stands before
		      * it if that option set the key */
	size_t nsets;
	struct options_pair *uploads;
	size_t nuploads;
	struct options_pair *downloads;
	size_t ndownloads;
	bool fresh; /* a new session, without a question */
	bool all;   /* --collect: every version */
	bool overwrite;
	bool quiet;
	bool verbose;
	bool json, csv;
	const char *since; /* of --report; or NULL */
};

/* Read the command line; `terminal` is true if standard input is one. 0, or -1
 * with `e` of kind ERR_USAGE and a hint. The caller ends with options_fini()
 * either way. */
int options_parse(struct options *o, int argc, char *const *argv, bool terminal,
	struct err *e);

void options_fini(struct options *o);

/* Print the text of -h, folded at `width` columns (0: not at all). */
void options_print_help(FILE *f, int width);

/* The names of the n-th option, for tests of the manual and the completions:
 * "" when it has no long name, '\0' when it has no letter. NULL past the end.
 */
const char *options_name(size_t n, char *letter);

#endif
