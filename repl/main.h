/* SPDX-License-Identifier: MIT */
/*
 * main.h - check.c, confine.c and login.c: parts of a run that know no struct
 * run
 */
#ifndef REPL_MAIN_H
#define REPL_MAIN_H

#include <stdbool.h>
#include <stddef.h>

struct config;
struct door;
struct err;
struct fetch;
struct jail_spec;
struct options;

struct check_what {
	const struct jail_spec *spec;
	struct fetch *fetch;
	const char *person; /* the name of the account, or NULL */
	bool lingers;	    /* sessions go on without their terminal */
	bool json, verbose;
};

/* Print the table for people, or with `json` one object for programs. Returns
 * the exit status: 0 if a session can start here, 125 if no jail can be built
 * or a limit in jail.require is not strong; -1 with e. */
int check_run(const struct check_what *what, struct err *e);

/* What decides; NULL is nothing. */
struct confine {
	const struct config *cfg;
	const struct options *opt;
	const char *home;      /* of the person */
	const char *state_dir; /* where the history is */
	const struct door *door;
};

/* Give up, for good, what the front end does not need: capabilities, starting
 * programs, sockets, and, by Landlock where the kernel has it, writing outside
 * what the configuration lets the person write. Call after jail_open(), and
 * after everything outside was opened. On -1 with e nothing of the person's may
 * run. */
int confine_front(const struct confine *c, struct err *e);

/* ---- login.c: what somebody who comes in from outside asked for ---- */

enum login_kind {
	LOGIN_NOT,     /* an ordinary run: options.h */
	LOGIN_SHELL,   /* argv[0] starts with a dash */
	LOGIN_COMMAND, /* the account's shell, asked for one command */
	LOGIN_FORCED,  /* named by ForceCommand or authorized_keys */
};

/* What the process was started with. Borrowed; NULL is unset. */
struct login_start {
	int argc;
	char *const *argv;
	const char *original; /* SSH_ORIGINAL_COMMAND */
	bool shell_is_us;     /* the password entry's shell is this program */
};

struct login {
	enum login_kind kind;
	const char *command; /* the cell, verbatim and borrowed; NULL is none */
};

/* Decide. 0, or -1 with `e` of kind ERR_USAGE when a login came with options,
 * which it cannot have. */
int login_decide(
	const struct login_start *start, struct login *login, struct err *e);

/* What a login asked for, as options: a session, a cell, or (without a
 * terminal) a program on standard input. Borrows the command. */
void login_options(const struct login *login, bool terminal, struct options *o);

/* The service that `command` asks for, such as "sftp", when it is not a cell
 * but the far end of a file transfer; else NULL. */
const char *login_service(const char *command);

/* The refusal for that service: whole lines. */
void login_refusal(const char *service, char *buf, size_t size);

/* An environment for a login: the few variables of `envp` that are harmless
 * and look it, HOME, USER and LOGNAME as the password entry has them, and a
 * plain PATH. Ends with NULL; login_env_free. NULL with errno. */
char **login_scrub_env(char *const *envp, const char *home, const char *user);

void login_env_free(char **env);

#endif
