/* SPDX-License-Identifier: MIT */
/*
 * program.h - one program in a jail of its own
 */
#ifndef REPL_ONESHOT_PROGRAM_H
#define REPL_ONESHOT_PROGRAM_H

#include <stdbool.h>

struct config;
struct err;
struct hostfs;
struct jail;
struct limits;
struct log;
struct options;
struct signals;
struct terminal;

/* How to start a program; all borrowed. */
struct program_start {
	const struct config *cfg;
	const struct options *opt;
	const struct hostfs *host;
	struct jail *jail;
	struct terminal *term;
	struct signals *signals;
	struct log *log;
	const char *const *argv; /* of the program: program_argv() */
	const char *gone;	 /* the error if the warden goes; or NULL */
	bool early;		 /* program_start_early() has started it */
	bool bound; /* cell.output holds: the configuration is locked, and the
		     * person has a login only */
};

/* True if the options ask for a program. */
bool program_is_wanted(const struct options *opt);

/* The arguments for the interpreter: a new list, NULL at its end, of borrowed
 * strings (free the list). NULL with e. */
const char **program_argv(
	const struct options *opt, const struct limits *limits, struct err *e);

/* Start the program before the front end is confined, unless files must be
 * uploaded first. The front end confines itself while the jail works, and reads
 * nothing that the jail sends before that. True if the program was started. */
bool program_start_early(const struct program_start *start);

/* Upload files and start the program, while the jail is built; relay its input
 * and output; download files. Returns the exit status, or -1 with e when the
 * program could not be run. */
int program_run(const struct program_start *start, struct err *e);

/* The exit status for a waitpid() status. Pure. */
int program_exit_status(int status);

#endif
