/* SPDX-License-Identifier: MIT */
/*
 * run.h - a run of the program: its state and its modes
 *
 *	main.c		from argv to a mode
 *	run.c		steps that several modes share
 *	login.c		what a login asks for
 *	check.c		what this host enforces
 *	confine.c	the front end's sandbox
 *	injail.c	a session or a program
 *	ongoing.c	sessions that go on without their terminal
 *	remote.c	scp, sftp and rsync
 *	sftp.c		a refusal that scp and sftp can show
 *	sshd.c		what sshd lets an account do beside its session
 *	grading.c	one program against many submissions
 *	requests.c	requests of programs and agents
 *
 * All of it runs before the process confines itself. We print an error once on
 * standard error, and end the process with the exit status of the error's kind.
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
struct exercise;

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
 * what the configuration lets the person write. Call it after jail_open(), and
 * after you have opened everything outside. On -1 with e nothing of the
 * person's may run. */
int confine_front(const struct confine *c, struct err *e);

/* ---- login.c: what a login asks for ---- */

enum login_kind {
	LOGIN_NOT,     /* an ordinary run: options.h */
	LOGIN_SHELL,   /* argv[0] starts with a dash */
	LOGIN_COMMAND, /* the account's shell, asked for one command */
	LOGIN_FORCED,  /* ForceCommand or authorized_keys names us */
};

/* Arguments and variables of this process. Borrowed; NULL is unset. */
struct login_start {
	int argc;
	char *const *argv;
	const char *original; /* SSH_ORIGINAL_COMMAND */
	bool shell_is_us;     /* the password entry's shell is this program */
};

/* Most words of a command about sessions. */
#define LOGIN_WORDS 32

struct login {
	enum login_kind kind;
	const char *command; /* the cell, verbatim and borrowed; NULL is none */
	/* Written by login_options(): the words of a command that is no cell.
	 */
	char *words[LOGIN_WORDS + 1];
	char text[256];
};

/* Find out whether this run is a login. 0, or -1 with `e` of kind ERR_USAGE: a
 * login came with options, which it cannot have. */
int login_decide(
	const struct login_start *start, struct login *login, struct err *e);

/* Turn the request of a login into options: a session, a cell, a list of the
 * sessions, or (without a terminal) a program on standard input; with a Python
 * that the person chose. Borrows from `login`. */
void login_options(struct login *login, bool terminal, struct options *o);

/* The service that `command` asks for, such as "sftp", when it is not a cell
 * but the far end of a file transfer; else NULL. */
const char *login_service(const char *command);

/* Write the refusal of that service: whole lines. */
void login_refusal(const char *service, char *buf, size_t size);

/* Make the environment of a login: the few variables of `envp` that are
 * harmless and have a harmless value; HOME, USER and LOGNAME as the password
 * entry has them; a plain PATH. Ends with NULL; free it with login_env_free().
 * NULL with errno. */
char **login_scrub_env(char *const *envp, const char *home, const char *user);

void login_env_free(char **env);

/* ---- a run ---- */

/* Everything that lives as long as the process. */
struct invocation {
	struct person person; /* the account of the real user id */
	char config_file[PATH_MAX];
	char state_dir[PATH_MAX];
	struct login login;
	char **login_env;
	struct options opt;
	const struct exercise
		*plan; /* of --grade: read before the rest; or NULL */
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
	int courier; /* -1: none */
	const char **argv;
	bool early;  /* program_start_early() */
	bool beside; /* the program runs beside a session that goes on */
	bool unseen; /* a session for a program beside it (remote.c) */
};

/* ---- run.c ---- */

/* The exit status that an error of this kind has. */
int run_exit_status(const struct err *e);

/* Print the error, and end with its exit status. */
_Noreturn void run_die(const struct err *e);

/* End by run_die() if a step has failed: it returned `r`, below 0. */
void run_must(int r, const struct err *e);

/* Do what run_must() does, for a step without which there is no jail. The error
 * becomes ERR_JAIL, unless the configuration forbids the jail, or there are too
 * many sessions. */
void run_must_for_jail(int r, struct err *e);

/* Set a UTF-8 locale, because the C library tells us the widths of characters.
 * We use the system's tables, whatever the environment says. */
void run_set_locale(void);

/* Read the configuration, all sources in order, as config_load() does; or end
 * with its errors. The second fills r->cfg. */
int run_read_config(
	struct invocation *r, struct config *cfg, struct config_errors *errors);
void run_load_config(struct invocation *r);

/* Fill in the sources of the system's configuration for this person. */
void run_find_where(struct invocation *r, struct config_where *where);

/* Fill in how we ask for the jail. A login has only the system's configuration.
 */
void run_find_fetch(struct invocation *r, struct fetch *f);

/* True if `path`, the shell of a password entry, is this program. NULL: no. */
bool run_is_shell(const char *path);

/* Find the file that counts the person's sessions, beside the history. If the
 * administrator locked the configuration, the person's environment does not
 * decide where that is, and a session that cannot be counted does not start. */
void run_find_slots(const struct invocation *r, struct setup_slots *s);

/* Take one of the person's places: for a session, and for the program of a
 * login if the administrator locked the configuration. */
void run_claim_slot(struct invocation *r);

/* Find where the person's sessions have their sockets. The environment does not
 * decide that if the administrator locked the configuration. `state` has
 * PATH_MAX bytes. */
void run_find_places(
	const struct invocation *r, struct rundir_of *of, char *state);

/* Open the log, and log what begins: a session, or else a program. It has its
 * number, and the address that it was begun from. Or end. */
void run_open_log(struct invocation *r, bool session);

/* Log the exit status, and return it. If `status` is below 0, end by run_die().
 */
int run_end(struct invocation *r, int status, const struct err *e);

/* ---- injail.c ---- */

/* Run a session, or the program that the options ask for. Returns its exit
 * status. */
int injail_run(struct invocation *r);

/* Do what injail_run() does, in a jail that exists already. */
int injail_run_started(struct invocation *r, bool program);

/* ---- ongoing.c ---- */

/* List sessions. */
void ongoing_open_registry(const struct invocation *r, struct registry *list,
	enum registry_scope scope);

/* End the person's sessions that began before that time. */
void ongoing_end_before(const struct invocation *r, int64_t began_s);

/* True if the session goes on without its terminal. */
bool ongoing_lingers(const struct invocation *r);

/* Say which sessions the person has on other hosts. */
void ongoing_tell_elsewhere(const struct invocation *r);

/* Offer the sessions that the person can go back to. Returns the exit status,
 * or -1: begin a new session. */
int ongoing_offer(const struct invocation *r);

/* Fork: the parent becomes the client, for which the shell waits. Only the
 * child returns. */
void ongoing_begin_client(struct invocation *r);

/* Open the session's socket. Without one, no other terminal can come. */
void ongoing_open_control(struct invocation *r);

/* --sessions; --attach, --end and --message. The exit status. */
int ongoing_list(struct invocation *r);
int ongoing_act(struct invocation *r);

/* ---- saving.c ---- */

/* Write the path of the directory that root names for copies, behind links, in
 * which nobody else can change anything. 0, or -1 with e. */
int saving_find(const char *dir, char path[static PATH_MAX], struct err *e);

/* Copy the home of a session into a new directory in `dir`, and say where. 0,
 * or -1 with e, and the person has been told what was left out. */
int saving_copy(const struct invocation *r, const struct registry_entry *of,
	const char *dir, struct err *e);

/* ---- remote.c: scp, sftp and rsync into the home of a session ---- */

int remote_run(struct invocation *r);

/* With files.share, run the program of a login in the home of the session that
 * was used last: true, with its exit status. False: there is none, or a
 * terminal is wanted. */
bool remote_run_shared(struct invocation *r, int *status);

/* ---- sftp.c ---- */

/* Answer a client of SFTP on standard input and output until it leaves: all is
 * denied. `why` is short; some clients show it. */
void sftp_refuse(const char *why);

/* ---- sshd.c ---- */

/* As root, write for which account, whose shell is this program, sshd forwards
 * ports. NULL: for none, as far as we know. */
const char *sshd_tell(char *buf, size_t size);

/* ---- requests.c ---- */

int requests_eval(struct invocation *r);
int requests_mcp(struct invocation *r);
int requests_serve(struct invocation *r);

/* ---- grading.c ---- */

int grading_run(struct invocation *r);

/* ---- checking.c ---- */

/* --check-config: print the configuration that the person would have, and what
 * is wrong with it. Root is told of the files of groups and of persons, too.
 * The exit status. */
int checking_run(struct invocation *r);

#endif
