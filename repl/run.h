/* SPDX-License-Identifier: MIT */
/*
 * run.h - a run of the program: what lives as long as it, and its modes
 *
 *	run.c		steps that several modes share
 *	injail.c	a session or a program
 *	ongoing.c	sessions that go on without their terminal
 *	remote.c	scp, sftp and rsync
 *	requests.c	requests of programs and agents
 *
 * All of it runs before the process confines itself. What fails is said once
 * on standard error, and ends the process with the status of its kind.
 */
#ifndef REPL_RUN_H
#define REPL_RUN_H

#include "jail/base/err.h"
#include "jail/jail.h"
#include "main.h"
#include "repl/attach/attach.h"
#include "repl/config/config.h"
#include "repl/config/options.h"
#include "repl/config/person.h"
#include "repl/files/hostfs.h"
#include "repl/session/log.h"
#include "repl/session/setup.h"
#include "repl/term/terminal.h"

#include <limits.h>
#include <stdbool.h>

struct fetch;
struct history;

/* Everything that lives as long as the process. */
struct run {
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
	int told_fd;
	struct err history_error;
	struct log log;
	struct door *door;
	struct err no_door;
	struct setup_slots slots;
	struct jail *jail;
	const char **argv;
	bool early; /* program_start_early() */
};

/* ---- run.c ---- */

/* The exit status that an error of this kind has. */
int run_exit_status(const struct err *e);

/* Say why, once, and end. */
_Noreturn void run_die(const struct err *e);

/* `r` is what a step returned: below 0, it failed. */
void run_must(int r, const struct err *e);

/* The same for a step without which there is no jail. What the configuration
 * forbids, or what are too many, is told apart. */
void run_must_for_jail(int r, struct err *e);

/* Widths of characters come from the C library: it must think in UTF-8. Its
 * tables are the system's, whatever the environment says. */
void run_set_locale(void);

void run_load_config(struct run *r);

/* How the jail is asked for. A login has no configuration but the system's. */
void run_find_fetch(struct run *r, struct fetch *f);

/* A person's sessions are counted beside the history. Where an administrator
 * set their number, the person's environment does not decide where, and a
 * session that cannot be counted does not start. */
void run_find_slots(const struct run *r, struct setup_slots *s);

/* Take one of the person's places: for a session, and for a program where a
 * login is all that the person has. */
void run_claim_slot(struct run *r);

/* Where the person's sessions have their sockets. The environment has no say
 * where an administrator set limits. `state` has PATH_MAX bytes. */
void run_find_places(const struct run *r, struct places_of *of, char *state);

/* The exit status goes into the log; a failure is said, and ends us here. */
int run_end(struct run *r, int status, const struct err *e);

/* ---- injail.c: the exit status of what runs ---- */

/* A session, or the program that the options ask for. */
int injail_run(struct run *r);

/* The same in a jail that there is already. */
int injail_run_started(struct run *r, bool program);

/* ---- ongoing.c ---- */

/* The person's sessions, and with `all` everybody's. */
void ongoing_open_roster(const struct run *r, struct roster *list, bool all);

/* Whether the session goes on without its terminal. */
bool ongoing_lingers(const struct run *r);

/* Offer what could be gone back to. The exit status, or -1: a new session. */
int ongoing_offer(const struct run *r);

/* From here on another process may be what the shell waits for. */
void ongoing_begin_client(struct run *r);

/* A session that has no socket has no other terminal, either. */
void ongoing_open_door(struct run *r);

/* --sessions; --attach, --end and --message. The exit status. */
int ongoing_list(struct run *r);
int ongoing_act(struct run *r);

/* ---- remote.c: scp, sftp and rsync into the home of a session ---- */

int remote_run(struct run *r);

/* ---- requests.c ---- */

int requests_eval(struct run *r);
int requests_mcp(struct run *r);
int requests_serve(struct run *r);

#endif
