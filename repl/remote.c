/* SPDX-License-Identifier: MIT */
/*
 * remote.c - scp, sftp and rsync into the home of a session
 *
 * Runs in:   front end of an ssh connection, before it confines itself
 * Trusts:    no word of the client's command: a shell in the jail reads it
 * Leaves:    a program beside the session that was used last
 *
 * Each of the three starts a program at the far end. That program runs beside
 * the session (jail_start_side()), on pipes. It is the host's own program, as
 * the jail shows it.
 */
#include "run.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "repl/attach/attach.h"
#include "repl/oneshot/program.h"
#include "repl/term/term.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATHS 5

/* Time between two looks whether a new session answers. */
#define UNSEEN_LOOK_MS 20

/* Where the program of a service may be. We call only sftp-server by its path:
 * a subsystem may have any name. */
static const struct {
	const char *service, *program;
	const char *paths[PATHS];
	bool by_path;
} services[] = {
	{"scp", "scp", {"/usr/local/bin/scp", "/usr/bin/scp", "/bin/scp"},
		false},
	{"sftp", "sftp-server",
		{"/usr/lib/openssh/sftp-server",
			"/usr/libexec/openssh/sftp-server",
			"/usr/lib/ssh/sftp-server", "/usr/libexec/sftp-server",
			"/usr/lib/misc/sftp-server"},
		true},
	{"rsync", "rsync",
		{"/usr/local/bin/rsync", "/usr/bin/rsync", "/bin/rsync"},
		false},
};

static bool is_served(const char *service)
{
	for (size_t i = 0; i < COUNT(services); i++)
		if (!strcmp(service, services[i].service))
			return true;
	return false;
}

static const char *find_program(const char *const paths[PATHS])
{
	for (int i = 0; i < PATHS && paths[i]; i++)
		if (access(paths[i], X_OK) == 0)
			return paths[i];
	return NULL;
}

/* Write the command of the shell that starts the program (caller frees). A file
 * that grows too large is an error for the program, and does not end it. */
static char *make_script(
	const char *service, const char *command, struct err *e)
{
	char *script = NULL;
	const char *path;
	size_t i = 0;

	while (strcmp(service, services[i].service) != 0)
		i++;
	path = find_program(services[i].paths);
	if (!path) {
		err_set(e, "%s is not installed on this host",
			services[i].program);
		return NULL;
	}
	if (asprintf(&script, "trap '' XFSZ; %s%s",
		    services[i].by_path ? "exec " : "",
		    services[i].by_path ? path : command) < 0) {
		err_errno(e, "run %s", services[i].program);
		return NULL;
	}
	return script;
}

/* The session in which a key came last; *n: how many sessions answer. */
static const struct registry_entry *choose_session(
	const struct registry *r, size_t *n)
{
	const struct registry_entry *last = NULL;

	*n = 0;
	for (size_t i = 0; i < r->n; i++) {
		const struct registry_entry *v = &r->v[i];

		if (!v->answered)
			continue;
		++*n;
		if (!last || v->keyed_ms > last->keyed_ms)
			last = v;
	}
	return last;
}

/* Fork a session without a terminal. It prints an error at its start to
 * standard error. Returns what fork(2) does. */
static pid_t begin_unseen(struct invocation *r)
{
	struct err e = {0};
	int ends[2], null;
	pid_t pid;

	if (!r->cfg.attach || !r->cfg.linger_ms) {
		err_set(&e, "there is no session to copy files to or from");
		err_hint(&e, "begin one first: sessions do not go on alone "
			     "here (session.linger, session.attach)");
		run_die(&e);
	}
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 ||
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		run_must(err_errno(&e, "begin a session"), &e);
	pid = fork();
	run_must(pid < 0 ? err_errno(&e, "begin a session") : 0, &e);
	close(ends[0]);
	if (pid == 0) {
		setsid();
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		r->control = control_new(ends[1]);
		run_must(r->control ? 0 : err_errno(&e, "begin a session"), &e);
		r->opt.mode = OPTIONS_SESSION;
		r->unseen = true;
	} else {
		close(ends[1]);
	}
	close(null);
	return pid;
}

/* Wait until that session answers, and is in `list`. */
static void await_unseen(struct invocation *r, pid_t pid, struct registry *list)
{
	int64_t end = now_ms() + SESSION_UNSEEN_MS;
	struct err e = {0};
	int status;

	while (now_ms() < end) {
		ongoing_open_registry(r, list, REGISTRY_OWN);
		for (size_t i = 0; i < list->n; i++)
			if (list->v[i].answered && list->v[i].status.pid == pid)
				return;
		registry_free(list);
		if (waitpid(pid, &status, WNOHANG) == pid) {
			/* It has said why, unless it ended as it should. */
			if (status)
				exit(WIFEXITED(status) ? WEXITSTATUS(status)
						       : 1);
			err_set(&e, "the session that was begun has ended");
			run_die(&e);
		}
		poll(NULL, 0, UNSEEN_LOOK_MS);
	}
	err_set(&e, "a session was begun, and does not answer");
	run_die(&e);
}

/* Ask for a program beside the session that was used last. Our connection holds
 * the program's place, and ends with us. */
static void join_session(
	struct invocation *r, const struct registry *list, bool python)
{
	const struct registry_entry *to;
	struct err e = {0};
	int sock, fd;
	size_t n;

	to = choose_session(list, &n);
	if (n > 1)
		fprintf(stderr, "cellblock: session %d, the last used of %zu\n",
			to->id, n);
	sock = rundir_connect(to->dir, to->id, to->uid);
	if (sock < 0)
		run_must(err_errno(&e, "reach session %d", to->id), &e);
	fd = query_side(
		sock, python ? ATTACH_SIDE_PYTHON : ATTACH_SIDE_SHELL, &e);
	run_must(fd, &e);
	run_must_for_jail(jail_adopt(&r->jail, fd, &e), &e);
}

static void start_remote(struct invocation *r)
{
	struct err e = {0};
	struct confine c = {
		.cfg = &r->cfg, .opt = &r->opt, .home = r->person.home};

	terminal_open(&r->term, r->cfg.colour);
	run_open_log(r, false);
	run_must_for_jail(terminal_signals_open(&r->signals, false, &e), &e);
	run_must(hostfs_open(&r->host, &r->cfg, r->person.home, &e), &e);
	run_must_for_jail(confine_front(&c, &e), &e);
}

int remote_run(struct invocation *r)
{
	const char *service = login_service(r->opt.text);
	struct registry list;
	struct err e = {0};
	char refusal[1024], *script;
	pid_t pid;
	size_t n;

	if (!r->cfg.remote || !is_served(service)) {
		login_refusal(service, refusal, sizeof(refusal));
		fputs(refusal, stderr);
		if (!strcmp(service, "sftp"))
			sftp_refuse("files are not served here "
				    "(files.remote = no)");
		return 1;
	}
	script = make_script(service, r->opt.text, &e);
	run_must(script ? 0 : -1, &e);
	run_set_locale();
	ongoing_open_registry(r, &list, REGISTRY_OWN);
	if (!choose_session(&list, &n)) {
		registry_free(&list);
		pid = begin_unseen(r);
		if (pid == 0)
			return injail_run(r);
		await_unseen(r, pid, &list);
	}
	join_session(r, &list, false);
	registry_free(&list);
	r->argv = calloc(3, sizeof(*r->argv));
	run_must(r->argv ? 0 : err_errno(&e, "start a program"), &e);
	r->argv[0] = "-c";
	r->argv[1] = script;
	r->beside = true;
	start_remote(r);
	return injail_run_started(r, true);
}

bool remote_run_shared(struct invocation *r, int *status)
{
	struct registry list;
	struct err e = {0};
	size_t n;

	/* Beside a session runs the session's Python. */
	if (!r->cfg.share || r->login.kind == LOGIN_NOT || isatty(0) ||
		isatty(1) || r->opt.python)
		return false;
	ongoing_open_registry(r, &list, REGISTRY_OWN);
	if (!choose_session(&list, &n)) {
		registry_free(&list);
		return false;
	}
	r->argv = program_argv(&r->opt, &r->cfg.limits, &e);
	run_must(r->argv ? 0 : -1, &e);
	run_set_locale();
	join_session(r, &list, true);
	registry_free(&list);
	r->beside = true;
	start_remote(r);
	*status = injail_run_started(r, true);
	return true;
}
