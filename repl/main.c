/* SPDX-License-Identifier: MIT */
/*
 * main.c - from argv to what is done
 *
 * Runs in:   front end; forks the warden
 * Holds:     everything the person has, until confine_front()
 * Trusts:    nobody: a login gets a clean environment and the system's
 *            configuration before anything else is looked at
 * Leaves:    the terminal as it was, and no process behind it
 *
 * The order matters. The warden is forked while nothing is confined yet, and
 * builds the jail while we confine ourselves and get the editor ready. A
 * prompt may come a moment before the jail stands, a program never starts
 * before it does.
 */
#include "main.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "repl/attach/attach.h"
#include "repl/command/command.h"
#include "repl/config/config.h"
#include "repl/config/options.h"
#include "repl/config/person.h"
#include "repl/edit/history.h"
#include "repl/files/hostfs.h"
#include "repl/json/eval.h"
#include "repl/maker/fetch.h"
#include "repl/maker/service.h"
#include "repl/mcp/mcp.h"
#include "repl/oneshot/program.h"
#include "repl/serve/serve.h"
#include "repl/session/log.h"
#include "repl/session/session.h"
#include "repl/session/setup.h"
#include "repl/session/told.h"
#include "repl/term/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A new session answers by then; and between two looks. */
#define UNSEEN_MS 30000
#define UNSEEN_LOOK_MS 20

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
	struct jail *jail;
	const char **argv;
};

static int exit_status_of(const struct err *e)
{
	switch (e->kind) {
	case ERR_FAILED:
		return 1;
	case ERR_USAGE:
		return 2;
	case ERR_CONFIG:
		return 78;
	case ERR_BUSY:
		return 75;
	case ERR_JAIL:
		return 125;
	}
	return 1;
}

/* Whether all that is wrong was said by options. */
static bool is_of_the_command_line(const struct config_errors *errors)
{
	for (size_t i = 0; i < errors->list.n; i++)
		if (errors->list.items[i][0] != '-')
			return false;
	return !errors->dropped;
}

/* Say why, once, and end. */
static _Noreturn void die(const struct err *e)
{
	terminal_refuse(e);
	exit(exit_status_of(e));
}

/* `r` is what a step returned: below 0, it failed. */
static void must(int r, const struct err *e)
{
	if (r < 0)
		die(e);
}

/* The same for a step without which there is no jail. What the configuration
 * forbids, or what are too many, is told apart. */
static void must_for_jail(int r, struct err *e)
{
	if (r < 0 && e->kind != ERR_CONFIG && e->kind != ERR_BUSY)
		err_kind_set(e, ERR_JAIL);
	must(r, e);
}

/* A descriptor that is not there would be taken by the next file opened, and
 * become somebody's standard output. */
static void open_standard_fds(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_NOCTTY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

/* Widths of characters come from the C library: it must think in UTF-8. Its
 * tables are the system's, whatever the environment says. */
static void set_locale(void)
{
	unsetenv("LOCPATH");
	unsetenv("GCONV_PATH");
	setlocale(LC_CTYPE, "C.UTF-8");
}

/* Whether the shell of the password entry is this program. */
static bool shell_is_us(const struct person *p)
{
	struct stat a, b;

	return p->shell && stat(p->shell, &a) == 0 &&
	       stat("/proc/self/exe", &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* ---- what to do ---- */

/* The arguments where they are not overwritten, as they are in pid 1 of a jail
 * (init.c): one block, NULL without memory. */
static char **copy_args(int argc, char **argv)
{
	size_t bytes = ((size_t)argc + 1) * sizeof(*argv);
	char **copy, *to;

	for (int i = 0; i < argc; i++)
		bytes += strlen(argv[i]) + 1;
	copy = calloc(1, bytes);
	if (!copy)
		return NULL;
	to = (char *)(copy + argc + 1);
	for (int i = 0; i < argc; i++) {
		copy[i] = to;
		to = stpcpy(to, argv[i]) + 1;
	}
	return copy;
}

static void decide(struct run *r, int argc, char **argv)
{
	struct login_start start = {.argc = argc,
		.argv = argv,
		.original = getenv("SSH_ORIGINAL_COMMAND"),
		.shell_is_us = shell_is_us(&r->person)};
	struct err e = {0};

	must(login_decide(&start, &r->login, &e), &e);
	if (r->login.kind == LOGIN_NOT) {
		person_prefer_home(&r->person, getenv("HOME"));
		must(options_parse(&r->opt, argc, argv, isatty(0), &e), &e);
		return;
	}
	login_options(&r->login, isatty(0), &r->opt);
	r->login_env = login_scrub_env(environ, r->person.home, r->person.name);
	if (!r->login_env) {
		err_errno(&e, "prepare the environment");
		die(&e);
	}
	environ = r->login_env;
}

/* What decides in the system's files, for this person. */
static void find_where(struct run *r, struct config_where *where)
{
	*where = (struct config_where){
		.system_dir = CONFIG_SYSTEM_DIR,
		.home = r->person.account_home,
		.user = r->person.name,
		.groups = (const char *const *)r->person.groups,
		.ngroups = r->person.n_groups,
		.is_command = command_exists,
		.login = true,
	};
}

static void load_config(struct run *r)
{
	struct config_errors errors = {0};
	struct config_where where;

	person_find_groups(&r->person, getuid());
	find_where(r, &where);
	where.own_home = r->person.home;
	where.sets = (const char *const *)r->opt.sets;
	where.nsets = r->opt.nsets;
	where.explicit_file = r->opt.config_file;
	where.login = r->login.kind != LOGIN_NOT;
	where.checking = r->opt.mode == OPTIONS_CHECK_CONFIG;
	if (config_user_file(getenv("XDG_CONFIG_HOME"), r->person.home,
		    r->config_file, sizeof(r->config_file)) == 0)
		where.user_file = r->config_file;
	if (config_load(&r->cfg, &where, &errors) == 0) {
		config_errors_fini(&errors);
		return;
	}
	config_errors_print(
		&errors, "cellblock: ", terminal_print_line, stderr);
	exit(is_of_the_command_line(&errors) ? 2 : 78);
}

/* What the system's files alone say; -1 with e. */
static int load_system(void *run, struct config *cfg, struct err *e)
{
	struct config_errors errors = {0};
	struct config_where where;
	int r;

	find_where(run, &where);
	r = config_load(cfg, &where, &errors);
	config_errors_fini(&errors);
	return r < 0 ? err_set(e, "read the system's configuration") : 0;
}

/* ---- a session or a program ---- */

/* A person's sessions are counted beside the history. Where an administrator
 * set their number, the person's environment does not decide where, and a
 * session that cannot be counted does not start. */
static void find_slots(const struct run *r, struct setup_slots *s)
{
	bool bound = config_is_bound(&r->cfg);
	const struct person *p = &r->person;
	char dir[PATH_MAX];
	int fd;

	*s = (struct setup_slots){
		.fd = -1, .most = r->cfg.limits.per_user, .must = bound};
	if (config_state_dir(bound ? NULL : getenv("XDG_STATE_HOME"),
		    bound ? p->account_home : p->home, dir, sizeof(dir)) < 0) {
		err_set(&s->why, "count the sessions: there is no home");
		return;
	}
	fd = history_open_dir(dir, &s->why);
	if (fd < 0) {
		err_wrap(&s->why, "count the sessions");
		return;
	}
	close(fd);
	s->fd = setup_open_slots(dir, &s->why);
}

/* Take one of the person's places: for a session, and for a program where a
 * login is all that the person has. */
static void claim_slot(const struct run *r)
{
	struct setup_slots s;
	struct err e = {0};

	find_slots(r, &s);
	must(setup_claim_slot(&s, &e), &e);
}

/* ---- terminals that come to a session ---- */

/* Where the person's sessions have their sockets. The environment has no say
 * where an administrator set limits. `state` has PATH_MAX bytes. */
static void find_places(const struct run *r, struct places_of *of, char *state)
{
	bool bound = config_is_bound(&r->cfg);
	const struct person *p = &r->person;

	*of = (struct places_of){.uid = geteuid(),
		.runtime_dir = bound ? NULL : getenv("XDG_RUNTIME_DIR")};
	if (config_state_dir(bound ? NULL : getenv("XDG_STATE_HOME"),
		    bound ? p->account_home : p->home, state, PATH_MAX) == 0)
		of->state_dir = state;
}

static void open_roster(const struct run *r, struct roster *list, bool all)
{
	struct places_of of;
	char state[PATH_MAX];
	struct err e = {0};

	find_places(r, &of, state);
	must(roster_open(list, &of, r->person.name, all, &e), &e);
}

/* Whether the session goes on without its terminal. */
static bool lingers(const struct run *r)
{
	return r->cfg.attach && r->cfg.linger_ms > 0 && isatty(STDIN_FILENO) &&
	       isatty(STDOUT_FILENO);
}

static int attach_to(const struct roster_entry *to, struct err *e)
{
	auto_close int sock = places_connect(to->dir, to->id, to->uid);
	char from[64];

	if (sock < 0)
		return err_errno(e, "reach session %d", to->id);
	client_from(from, sizeof(from));
	return client_attach(sock, from, e);
}

/* Offer what could be gone back to. The exit status, or -1: a new session. */
static int offer_sessions(const struct run *r)
{
	const struct roster_entry *which = NULL;
	struct roster list;
	struct err e = {0};
	int status = -1;

	if (r->opt.fresh)
		return -1;
	open_roster(r, &list, false);
	if (list.n)
		set_locale(); /* for what is asked */
	switch (roster_ask(&list, &which)) {
	case ROSTER_NEW:
		break;
	case ROSTER_NEITHER:
		status = 0;
		break;
	case ROSTER_BACK:
		status = attach_to(which, &e);
		if (status < 0)
			terminal_refuse(&e);
		break;
	}
	roster_free(&list);
	return status;
}

/* From here on another process may be what the shell waits for. */
static void begin_client(struct run *r)
{
	struct err e = {0};
	int link = client_begin(&e);

	must(link, &e);
	r->door = door_new(link);
	if (!r->door) {
		err_errno(&e, "start the front end");
		die(&e);
	}
}

/* A session that has no socket has no other terminal, either. */
static void open_door(struct run *r)
{
	struct places_of of;
	char state[PATH_MAX];

	find_places(r, &of, state);
	if (r->door)
		door_open(r->door, &of, &r->no_door);
	else
		err_set(&r->no_door, "session.linger or session.attach is off, "
				     "or there was no terminal");
}

static int run_sessions(struct run *r)
{
	struct roster list;
	int failed;

	open_roster(r, &list, geteuid() == 0);
	failed = roster_print(
		&list, r->opt.json, terminal_columns(STDOUT_FILENO), stdout);
	roster_free(&list);
	return failed ? 1 : 0;
}

/* --attach, --end and --message. */
static int run_on_session(struct run *r)
{
	bool end = r->opt.mode == OPTIONS_END;
	const struct roster_entry *to;
	struct attach_answer a;
	struct roster list;
	struct err e = {0};
	int status, sock;

	/* Whoever has the other account would have root's terminal. */
	open_roster(r, &list, geteuid() == 0 && r->opt.mode != OPTIONS_ATTACH);
	to = roster_find(&list, r->opt.session, &e);
	must(to ? 0 : -1, &e);
	if (r->opt.mode == OPTIONS_ATTACH) {
		if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
			err_set(&e, "--attach wants a terminal");
			err_kind_set(&e, ERR_USAGE);
			die(&e);
		}
		status = attach_to(to, &e);
	} else {
		sock = places_connect(to->dir, to->id, to->uid);
		status = sock < 0 ? err_errno(&e, "reach session %d", to->id)
				  : knock_ask(sock,
					    end ? ATTACH_END : ATTACH_MESSAGE,
					    r->opt.message, &a, &e);
	}
	must(status, &e);
	roster_free(&list);
	return status;
}

/* Where the history is: made when it is missing, and not fatal when that
 * cannot be. */
static void open_history(struct run *r)
{
	struct person *p = &r->person;
	struct err *e = &r->history_error;
	char path[PATH_MAX + 16];
	int n, dir;

	r->told_fd = -1;
	r->history = history_new();
	n = config_state_dir(getenv("XDG_STATE_HOME"), p->home, r->state_dir,
		sizeof(r->state_dir));
	if (n == 0) {
		snprintf(path, sizeof(path), "%s/history", r->state_dir);
		n = r->history ? history_attach_path(r->history, path, e) : -1;
	} else {
		err_set(e, "history not kept: there is no home");
	}
	if (n < 0) {
		r->state_dir[0] = '\0';
		return;
	}
	dir = history_open_dir(r->state_dir, NULL);
	if (dir < 0)
		return;
	r->told_fd = told_open(dir);
	close(dir);
}

static void complain(const struct err *e)
{
	char text[sizeof(e->msg) + 64];

	snprintf(text, sizeof(text),
		"%s: this session is made without the maker", e->msg);
	terminal_complain(NULL, text);
}

/* A login has no configuration but the system's. */
static void find_fetch(struct run *r, struct fetch *f)
{
	*f = (struct fetch){.cfg = &r->cfg,
		.load_system = r->login.kind == LOGIN_NOT ? load_system : NULL,
		.arg = r,
		.complain = complain};
}

/* From the configuration to a confined front end and a warden that builds. */
static void start_jail(struct run *r, enum spec_mode mode)
{
	bool session = mode == SPEC_SESSION;
	struct err e = {0};
	struct fetch f;
	struct confine c = {.cfg = &r->cfg,
		.opt = &r->opt,
		.home = r->person.home,
		.state_dir = r->state_dir};

	terminal_open(&r->term, r->cfg.colour);
	must(setup_spec(
		     &r->spec, &r->setup, &r->cfg, &r->opt, &r->term, mode, &e),
		&e);
	if (!session) {
		r->argv = program_argv(&r->opt, &r->cfg.limits, &e);
		must(r->argv ? 0 : -1, &e);
	}
	find_fetch(r, &f);
	must_for_jail(fetch_jail(&r->jail, &r->spec, &f, &e), &e);
	set_locale(); /* while the warden builds */
	must(log_open(&r->log, &r->cfg, r->person.name, session, &e), &e);
	must_for_jail(terminal_signals_open(&r->signals, session, &e), &e);
	must(hostfs_open(&r->host, &r->cfg, r->person.home, &e), &e);
	if (session || (r->login.kind != LOGIN_NOT && config_is_bound(&r->cfg)))
		claim_slot(r);
	if (session) {
		open_history(r);
		open_door(r);
	}
	c.door = r->door;
	must_for_jail(confine_front(&c, &e), &e);
}

static int run_session(struct run *r, struct err *e)
{
	struct session s = {
		.calls = &command_calls,
		.cfg = &r->cfg,
		.opt = &r->opt,
		.jail = r->jail,
		.term = &r->term,
		.signals = &r->signals,
		.host = &r->host,
		.log = &r->log,
		.history = r->history,
		.no_history = r->history_error.msg,
		.told_fd = r->told_fd,
		.python = r->setup.python,
		.door = r->door,
		.no_door = r->no_door.msg,
		.user = r->person.name,
	};

	return prompt_run(&s, e);
}

static int run_program(struct run *r, struct err *e)
{
	struct program_start start = {
		.cfg = &r->cfg,
		.opt = &r->opt,
		.host = &r->host,
		.jail = r->jail,
		.term = &r->term,
		.signals = &r->signals,
		.log = &r->log,
		.argv = r->argv,
		.gone = r->opt.mode == OPTIONS_REMOTE ? "the session has ended"
						      : NULL,
	};

	return program_run(&start, e);
}

/* The exit status goes into the log; a failure is said, and ends us here. */
static int end(struct run *r, int status, const struct err *e)
{
	log_close(&r->log, status < 0 ? exit_status_of(e) : status);
	must(status, e);
	return status;
}

/* What runs is not the session: the exit status. */
static int run_started(struct run *r, bool program)
{
	struct err e = {0}, left = {0};
	int status;

	status = program ? run_program(r, &e) : run_session(r, &e);
	terminal_close(&r->term);
	if (jail_leave(r->jail, &left) < 0)
		terminal_complain(NULL, left.msg);
	hostfs_close(&r->host);
	history_free(r->history);
	free(r->argv);
	terminal_signals_close(&r->signals);
	status = end(r, status, &e);
	if (r->door)
		door_leave(r->door, ATTACH_OVER, status, NULL);
	door_free(r->door);
	return status;
}

static int run_in_jail(struct run *r)
{
	bool program = program_is_wanted(&r->opt);

	start_jail(r, program ? SPEC_PROGRAM : SPEC_SESSION);
	return run_started(r, program);
}

/* ---- scp, sftp and rsync ---- */

/* A session that nobody has seen yet: its terminal is gone from the beginning.
 * What keeps it from starting is said on standard error. As fork(). */
static pid_t begin_unseen(struct run *r)
{
	struct err e = {0};
	int ends[2], null;
	pid_t pid;

	if (!r->cfg.attach || !r->cfg.linger_ms) {
		err_set(&e, "there is no session to copy files to or from");
		err_hint(&e, "begin one first: sessions do not go on alone "
			     "here (session.linger, session.attach)");
		die(&e);
	}
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 ||
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		must(err_errno(&e, "begin a session"), &e);
	pid = fork();
	must(pid < 0 ? err_errno(&e, "begin a session") : 0, &e);
	close(ends[0]);
	if (pid == 0) {
		setsid();
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		r->door = door_new(ends[1]);
		r->opt.mode = OPTIONS_SESSION;
	} else {
		close(ends[1]);
	}
	close(null);
	return pid;
}

/* Wait until that session answers. */
static void await_unseen(struct run *r, pid_t pid, struct roster *list)
{
	int64_t end = now_ms() + UNSEEN_MS;
	struct err e = {0};
	int status;

	while (now_ms() < end) {
		open_roster(r, list, false);
		for (size_t i = 0; i < list->n; i++)
			if (list->v[i].answered && list->v[i].status.pid == pid)
				return;
		roster_free(list);
		if (waitpid(pid, &status, WNOHANG) == pid)
			exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
		poll(NULL, 0, UNSEEN_LOOK_MS);
	}
	err_set(&e, "a session was begun, and does not answer");
	die(&e);
}

/* A place beside the session that was used last; it is held by a connection,
 * which ends with us. */
static void join_session(struct run *r, const struct roster *list)
{
	const struct roster_entry *to;
	struct err e = {0};
	int sock, fd;
	size_t n;

	to = remote_choose(list, &n);
	if (n > 1)
		fprintf(stderr, "cellblock: session %d, the last used of %zu\n",
			to->id, n);
	sock = places_connect(to->dir, to->id, to->uid);
	if (sock < 0)
		must(err_errno(&e, "reach session %d", to->id), &e);
	fd = knock_beside(sock, &e);
	must(fd, &e);
	must_for_jail(jail_adopt(&r->jail, fd, &e), &e);
}

static void start_remote(struct run *r, const char *script)
{
	struct err e = {0};
	struct confine c = {
		.cfg = &r->cfg, .opt = &r->opt, .home = r->person.home};

	r->argv = calloc(3, sizeof(*r->argv));
	must(r->argv ? 0 : err_errno(&e, "start a program"), &e);
	r->argv[0] = "-c";
	r->argv[1] = script;
	terminal_open(&r->term, r->cfg.colour);
	must(log_open(&r->log, &r->cfg, r->person.name, false, &e), &e);
	must_for_jail(terminal_signals_open(&r->signals, false, &e), &e);
	must(hostfs_open(&r->host, &r->cfg, r->person.home, &e), &e);
	must_for_jail(confine_front(&c, &e), &e);
}

static int run_remote(struct run *r)
{
	const char *service = login_service(r->opt.text);
	struct roster list;
	struct err e = {0};
	char refusal[1024], *script;
	pid_t pid;
	size_t n;

	if (!r->cfg.remote || !remote_serves(service)) {
		login_refusal(service, refusal, sizeof(refusal));
		fputs(refusal, stderr);
		return 1;
	}
	script = remote_script(service, r->opt.text, &e);
	must(script ? 0 : -1, &e);
	set_locale();
	open_roster(r, &list, false);
	if (!remote_choose(&list, &n)) {
		roster_free(&list);
		pid = begin_unseen(r);
		if (pid == 0)
			return run_in_jail(r);
		await_unseen(r, pid, &list);
	}
	join_session(r, &list);
	roster_free(&list);
	start_remote(r, script);
	return run_started(r, true);
}

/* Where home.skeleton is, is all that requests leave to read. */
static void confine_eval(const struct run *r, bool serves, struct err *e)
{
	struct jail_cage cage = {
		.n = 0, .left = serves ? JAIL_CAGE_CLIENTS : JAIL_CAGE_NOTHING};

	if (r->cfg.skeleton)
		cage.v[cage.n++].path = r->cfg.skeleton;
	must_for_jail(jail_cage_close(&cage, e), e);
}

/* What a jail is that no person types at: its programs draw nothing. */
static void make_spec(struct run *r, enum spec_mode mode)
{
	struct err e = {0};

	must(setup_spec(
		     &r->spec, &r->setup, &r->cfg, &r->opt, &r->term, mode, &e),
		&e);
	r->spec.term = "dumb";
}

/* The maker is forked before anything is confined, and nothing is read before
 * everything is. */
static int run_eval(struct run *r)
{
	struct err e = {0}, left = {0};
	struct eval ev;
	int status;

	make_spec(r, SPEC_PROGRAM);
	must_for_jail(eval_open(&ev, &r->cfg, &r->spec, &e), &e);
	set_locale();
	must(log_open(&r->log, &r->cfg, r->person.name, false, &e), &e);
	ev.log = &r->log;
	find_slots(r, &ev.slots);
	confine_eval(r, false, &e);
	status = eval_run(&ev, &e);
	if (eval_close(&ev, &left) < 0)
		terminal_complain(NULL, left.msg);
	return end(r, status, &e);
}

/* The same for one session, which is counted and written down as one at a
 * prompt. */
static int run_mcp(struct run *r)
{
	struct err e = {0}, left = {0};
	struct mcp *m = NULL;
	int status;

	if (r->cfg.limits.output_bytes > MCP_OUTPUT_MAX)
		r->cfg.limits.output_bytes = MCP_OUTPUT_MAX;
	make_spec(r, SPEC_SESSION);
	must_for_jail(mcp_open(&m, &r->cfg, &r->spec, &e), &e);
	set_locale();
	must(log_open(&r->log, &r->cfg, r->person.name, true, &e), &e);
	claim_slot(r);
	confine_eval(r, false, &e);
	status = mcp_run(m, &r->log, &e);
	if (mcp_close(m, &left) < 0) {
		terminal_complain(NULL, left.msg);
		status = status ? status : exit_status_of(&left);
	}
	return end(r, status, &e);
}

/* As above; and nobody is accepted before everything is confined. */
static int run_serve(struct run *r)
{
	struct err e = {0}, left = {0};
	struct serve *s = NULL;
	int status;

	make_spec(r, SPEC_PROGRAM);
	r->spec.shared = 1;
	must(serve_open(&s, &r->cfg, &r->spec, r->opt.text, &e), &e);
	set_locale();
	must(log_open(&r->log, &r->cfg, r->person.name, false, &e), &e);
	must_for_jail(terminal_signals_open(&r->signals, false, &e), &e);
	confine_eval(r, true, &e);
	if (!r->opt.quiet)
		fprintf(stderr, "cellblock: serving at %s%s\n",
			serve_address(s),
			serve_is_open(s) ? ", to everybody who can reach it "
					   "(serve.token_file)"
					 : "");
	if (!r->opt.quiet && serve_clients(s))
		fprintf(stderr,
			"cellblock: to %d clients at a time instead of "
			"serve.clients (ulimit -n)\n",
			serve_clients(s));
	status = serve_run(s, &r->signals, &r->log, &e);
	if (serve_close(s, &left) < 0)
		terminal_complain(NULL, left.msg);
	terminal_signals_close(&r->signals);
	return end(r, status, &e);
}

static int run_maker(struct run *r)
{
	struct err e = {0};
	int status = service_run(r->opt.text, r->opt.quiet, r->opt.verbose, &e);

	must(status, &e);
	return status;
}

static int run_check(struct run *r)
{
	struct err e = {0};
	struct fetch f;
	int status;

	must(setup_spec(&r->spec, &r->setup, &r->cfg, &r->opt, &r->term,
		     SPEC_PROGRAM, &e),
		&e);
	find_fetch(r, &f);
	status = check_run(&r->spec, &f, r->opt.json, r->opt.verbose, &e);
	must(status, &e);
	return status;
}

/* A session; or back to one. */
static int run_at_terminal(struct run *r)
{
	int status = -1;

	if (lingers(r)) {
		status = offer_sessions(r);
		if (status < 0)
			begin_client(r);
	}
	return status < 0 ? run_in_jail(r) : status;
}

static int run(struct run *r)
{
	switch (r->opt.mode) {
	case OPTIONS_HELP:
		set_locale();
		options_print_help(stdout, terminal_columns(fileno(stdout)));
		return 0;
	case OPTIONS_VERSION:
		printf("cellblock %s\n", CELLBLOCK_VERSION);
		return 0;
	case OPTIONS_CHECK_CONFIG:
		load_config(r);
		set_locale();
		config_print_merged(stdout, &r->cfg);
		return 0;
	case OPTIONS_CHECK:
		load_config(r);
		set_locale();
		return run_check(r);
	case OPTIONS_EVAL:
		load_config(r);
		return run_eval(r);
	case OPTIONS_MCP:
		load_config(r);
		return run_mcp(r);
	case OPTIONS_SERVE:
		load_config(r);
		return run_serve(r);
	case OPTIONS_MAKER:
		load_config(r);
		return run_maker(r);
	case OPTIONS_REMOTE:
		load_config(r);
		return run_remote(r);
	case OPTIONS_SESSIONS:
		load_config(r);
		set_locale();
		return run_sessions(r);
	case OPTIONS_ATTACH:
	case OPTIONS_END:
	case OPTIONS_MESSAGE:
		load_config(r);
		set_locale();
		return run_on_session(r);
	case OPTIONS_SESSION:
		load_config(r);
		return run_at_terminal(r);
	case OPTIONS_FILE:
	case OPTIONS_CODE:
	case OPTIONS_MODULE:
	case OPTIONS_CELL:
	case OPTIONS_STDIN:
		load_config(r);
		return run_in_jail(r);
	}
	return 1;
}

/* What --help and the like print must have arrived; a reader that went away
 * knows that it did. The exit status. */
static int close_stdout(int status)
{
	struct err e = {0};
	bool lost = ferror(stdout);

	errno = 0;
	if (fclose(stdout) == 0 && !lost)
		return status;
	if (errno != EPIPE) {
		if (errno)
			err_errno(&e, "write standard output");
		else
			err_set(&e, "standard output was not written whole");
		terminal_complain(NULL, e.msg);
	}
	return status ? status : 1;
}

int main(int argc, char **argv)
{
	struct run *r = calloc(1, sizeof(*r));
	char **args = copy_args(argc, argv);
	int status;

	open_standard_fds();
	if (!r || !args)
		return 1;
	person_find(&r->person, getuid());
	decide(r, argc, args);
	status = run(r);
	status = close_stdout(status);
	options_fini(&r->opt);
	config_fini(&r->cfg);
	login_env_free(r->login_env);
	person_free(&r->person);
	free(r);
	free(args);
	return status;
}
