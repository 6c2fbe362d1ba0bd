/* SPDX-License-Identifier: MIT */
/*
 * run.h - a run of the program: what lives as long as it, and its modes
 *
 *	main.c		from argv to a mode
 *	run.c		steps that several modes share
 *	login.c		what somebody asks for who comes in from outside
 *	check.c		what this host enforces
 *	confine.c	the front end's sandbox
 *	injail.c	a session or a program
 *	ongoing.c	sessions that go on without their terminal
 *	remote.c	scp, sftp and rsync
 *	requests.c	requests of programs and agents
 *
 * All of it runs before the process confines itself. An error is
 * said once on standard error, and ends the process with the status of its
 * kind.
 */
#ifndef REPL_RUN_H
#define REPL_RUN_H

#include "jail/base/err.h"
#include "jail/jail.h"
#include "repl/attach/attach.h"
#include "repl/config/config.h"
#include "repl/config/options.h"
#include "repl/config/person.h"
#include "repl/files/files.h"
#include "repl/session/session.h"
#include "repl/term/term.h"

#include <limits.h>
#include <stdbool.h>

struct fetch;
struct history;

/* ---- check.c and confine.c, which know no struct invocation ---- */

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

/* Paths and settings that the sandbox allows; NULL: none. */
struct confine {
	const struct config *cfg;
	const struct options *opt;
	const char *home;      /* of the person */
	const char *state_dir; /* where the history is */
	const struct control *control;
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

/* Arguments and variables of this process. Borrowed; NULL is unset. */
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

/* Turn the request of a login into options: a session, a cell, or (without a
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

/* ---- a run ---- */

/* Everything that lives as long as the process. */
struct invocation {
	struct person person; /* who started us: the real user id */
	char config_file[PATH_MAX];
	char state_dir[PATH_MAX];
	struct login login;
	char **login_env;
	struct options opt;
	struct config cfg;
	struct setup setup;
	struct jail_spec spec;
	struct terminal term;
	struct signals signals;
	struct hostfs host;
	struct history *history;
	int notices_fd;
	struct err history_error;
	struct log log;
	struct control *control;
	struct err no_control;
	struct setup_slots slots;
	struct jail *jail;
	const char **argv;
	bool early;  /* program_start_early() */
	bool unseen; /* a session for a program beside it (remote.c) */
};

/* ---- run.c ---- */

/* The exit status that an error of this kind has. */
int run_exit_status(const struct err *e);

/* Say why, once, and end. */
_Noreturn void run_die(const struct err *e);

/* `r` is what a step returned: below 0, it failed. */
void run_must(int r, const struct err *e);

/* The same for a step without which there is no jail. The exit status
 * tells apart what the configuration forbids, and too many sessions. */
void run_must_for_jail(int r, struct err *e);

/* Widths of characters come from the C library: it must think in UTF-8. Its
 * tables are the system's, whatever the environment says. */
void run_set_locale(void);

void run_load_config(struct invocation *r);

/* How the jail is asked for. A login has no configuration but the system's. */
void run_find_fetch(struct invocation *r, struct fetch *f);

/* A person's sessions are counted beside the history. Where an administrator
 * set their number, the person's environment does not decide where, and a
 * session that cannot be counted does not start. */
void run_find_slots(const struct invocation *r, struct setup_slots *s);

/* Take one of the person's places: for a session, and for a program where a
 * login is all that the person has. */
void run_claim_slot(struct invocation *r);

/* Where the person's sessions have their sockets. The environment has no say
 * where an administrator set limits. `state` has PATH_MAX bytes. */
void run_find_places(
	const struct invocation *r, struct rundir_of *of, char *state);

/* The exit status goes into the log; a failure is said, and ends us here. */
int run_end(struct invocation *r, int status, const struct err *e);

/* ---- injail.c: the exit status of what runs ---- */

/* A session, or the program that the options ask for. */
int injail_run(struct invocation *r);

/* The same in a jail that there is already. */
int injail_run_started(struct invocation *r, bool program);

/* ---- ongoing.c ---- */

/* The person's sessions, and with `all` everybody's. */
void ongoing_open_registry(
	const struct invocation *r, struct registry *list, bool all);

/* True if the session goes on without its terminal. */
bool ongoing_lingers(const struct invocation *r);

/* Offer what could be gone back to. The exit status, or -1: a new session. */
int ongoing_offer(const struct invocation *r);

/* From here on another process may be what the shell waits for. */
void ongoing_begin_client(struct invocation *r);

/* A session that has no socket has no other terminal, either. */
void ongoing_open_control(struct invocation *r);

/* --sessions; --attach, --end and --message. The exit status. */
int ongoing_list(struct invocation *r);
int ongoing_act(struct invocation *r);

/* ---- remote.c: scp, sftp and rsync into the home of a session ---- */

int remote_run(struct invocation *r);

/* ---- requests.c ---- */

int requests_eval(struct invocation *r);
int requests_mcp(struct invocation *r);
int requests_serve(struct invocation *r);

#endif
