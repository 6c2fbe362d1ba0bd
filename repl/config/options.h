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

/* What to do. `text` and `args` of struct options depend on it. */
enum options_mode {
	OPTIONS_SESSION,      /* a prompt */
	OPTIONS_FILE,	      /* text: path */
	OPTIONS_CODE,	      /* text: source, -c */
	OPTIONS_MODULE,	      /* text: module, -m */
	OPTIONS_CELL,	      /* text: source, -e */
	OPTIONS_STDIN,	      /* the program is on standard input */
	OPTIONS_CHECK,	      /* what the host enforces */
	OPTIONS_CHECK_CONFIG, /* config_file, if any, is what to check */
	OPTIONS_HELP,
	OPTIONS_VERSION,
};

/* SRC[:DST] or PATTERN[:DIR]. Owned; `to` is NULL when not given. */
struct options_pair {
	char *from;
	char *to;
};

/* Strings are borrowed from argv unless it says owned. */
struct options {
	enum options_mode mode;
	const char *text;
	char *const *args; /* of the program; ends with NULL */
	int nargs;
	const char *config_file;
	const char *python;
	char **sets; /* owned SECTION.KEY=VALUE, with -t and -M */
	size_t nsets;
	struct options_pair *uploads;
	size_t nuploads;
	struct options_pair *downloads;
	size_t ndownloads;
	bool quiet;
	bool verbose;
	bool json;
};

/* Read the command line; `terminal` says whether standard input is one. 0, or
 * -1 with `e` of kind ERR_USAGE and a hint. options_fini either way. */
int options_parse(struct options *o, int argc, char *const *argv, bool terminal,
	struct err *e);

void options_fini(struct options *o);

/* The text for -h. */
void options_print_help(FILE *f);

/* The n-th option's names, for checks of manual and completions: "" and '\0'
 * when there is no long or no short one. NULL past the end. */
const char *options_name(size_t n, char *letter);

#endif
