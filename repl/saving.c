/* SPDX-License-Identifier: MIT */
/*
 * saving.c - a copy of a session's home, for root, before root ends the session
 *
 * Runs in:   root's client; the copy is made by a child, confined to the
 *            directory that it fills
 * Trusts:    nobody: the person may have planted the session, which then hands
 *            over what it likes. The copy has no more bytes than a home may
 *            have, and takes no longer than SAVE_S. The child follows no link
 * Leaves:    a new directory of root's with the files, or what there was of them
 */
#include "run.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/path.h"
#include "jail/jail.h"
#include "repl/attach/attach.h"
#include "repl/config/person.h"
#include "repl/files/files.h"
#include "repl/lab/lab.h"
#include "repl/text/text.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The longest that a copy may take. */
#define SAVE_S 120
/* A child that was killed may take so long to die; and how often we look. */
#define DIE_S 5
#define LOOK_MS 10
/* Most copies of a session in a second. */
#define AGAIN_MAX 100

/* Make a directory for the copy in `dir`: USER-ID-TIME, and with a number
 * behind it where there was one in this second. 0, or -1 with e. */
static int make_place(const struct registry_entry *of, const char *dir,
	char path[static PATH_MAX], struct err *e)
{
	time_t now = time(NULL);
	char when[32] = "", again[16] = "";
	struct tm tm;

	if (!path_is_name(of->user))
		return err_set(e, "%s cannot be a file's name", of->user);
	if (localtime_r(&now, &tm))
		strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &tm);
	for (int i = 2; i < AGAIN_MAX; i++) {
		int n = snprintf(path, PATH_MAX, "%s/%s-%d-%s%s", dir, of->user,
			of->id, when, again);

		if (n < 0 || n >= PATH_MAX)
			return err_set(e, "%s: the name is too long", dir);
		if (mkdir(path, 0700) == 0)
			return 0;
		if (errno != EEXIST)
			break;
		snprintf(again, sizeof(again), "-%d", i);
	}
	return err_errno(e, "make directory %s", path);
}

int saving_find(const char *dir, char path[static PATH_MAX], struct err *e)
{
	auto_close int fd = -1;

	if (geteuid() != 0) {
		err_set(e, "--save copies homes for root alone");
		err_hint(e, ":download copies your own files");
		return err_kind_set(e, ERR_USAGE);
	}
	if (!realpath(dir, path))
		return err_errno(e, "--save %s", dir);
	/* A user who could change it would have root write elsewhere. */
	fd = place_walk(path, NULL, e);
	return fd < 0 ? err_wrap(e, "--save") : 0;
}

/* How large the person's home may be, by the system's configuration or by that
 * of this command. */
static int64_t most_bytes(const struct invocation *r, uid_t uid)
{
	struct invocation of = {.login = {.kind = LOGIN_FORCED}};
	struct config_errors errors = {0};
	struct config cfg = {0};
	int64_t most = r->cfg.limits.home_bytes;

	person_find(&of.person, uid);
	person_find_groups(&of.person, uid);
	if (run_read_config(&of, &cfg, &errors) == 0 &&
		cfg.limits.home_bytes > most)
		most = cfg.limits.home_bytes;
	config_errors_fini(&errors);
	config_fini(&cfg);
	person_free(&of.person);
	return most;
}

static void say_nothing(void *arg, const char *lines)
{
	(void)arg;
	(void)lines;
}

/* Say what is left out, and of which session: many may end at once. */
static void refuse_file(void *arg, const struct err *e)
{
	struct err told = *e;

	err_wrap(
		&told, "left out of the home of session %s", (const char *)arg);
	terminal_refuse(&told);
}

/* Wait until the jail beside the session stands, from which we ask for files.
 */
static int await_jail(struct jail *j, struct err *e)
{
	struct jail_event ev;
	int r = jail_wait(j, &ev, SAVE_S * 1000, e);

	if (r == 0)
		return err_set(e, "the session does not answer");
	if (r < 0)
		return -1;
	r = ev.type == JAIL_FAILED ? -1 : 0;
	if (r < 0)
		*e = ev.err;
	jail_event_close(&ev);
	return r;
}

/* Copy all files. 0, or -1 with e: some are not there. */
static int copy_home(struct jail *j, const char *name, const char *path,
	int64_t most, struct err *e)
{
	char session[REGISTRY_NAME];
	struct jail_sandbox sandbox = {
		.n = 1, .v = {{path, JAIL_SANDBOX_WRITE}}};
	struct limits limits = {
		.max_file_bytes = most, .transfer_count = INT_MAX};
	struct lexer_word all = {.s = ".", .pattern = "."};
	struct hostfs host = {0};
	struct ledger ledger = {0};
	struct jail_files files = {0};
	struct transfer t = {.jail = j,
		.host = &host,
		.limits = &limits,
		.ledger = &ledger,
		.say = say_nothing,
		.refuse = refuse_file,
		.arg = session,
		.partial = true,
		.most_bytes = most};
	size_t there = 0;

	snprintf(session, sizeof(session), "%s", name);
	if (jail_sandbox_enter(&sandbox, e) < 0 || await_jail(j, e) < 0 ||
		jail_home_list(j, &files, e) < 0)
		return -1;
	for (size_t i = 0; i < files.n; i++)
		there += files.v[i].type == 'f';
	if (files.n && download_run(&t, &all, 1, path, e) < 0)
		return -1;
	if ((size_t)t.done < there || files.truncated)
		return err_set(e, "%d of %zu files%s are in %s", t.done, there,
			files.truncated ? ", and more," : "", path);
	return 0;
}

/* True if it is a socket as a warden has. */
static bool is_warden(int fd)
{
	int domain = -1, type = -1;
	socklen_t n = sizeof(domain);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 &&
	       domain == AF_UNIX && type == SOCK_SEQPACKET;
}

/* To close a stranger's descriptor may take as long as the stranger likes. At
 * an exit no socket lingers. */
static _Noreturn void run_child(
	int sock, const char *path, int64_t most, const char *name)
{
	struct jail *j;
	struct err e = {0};
	int fd;

	alarm(SAVE_S);
	tzset();
	fd = query_side(sock, ATTACH_SIDE_COPY, &e);
	if (fd >= 0 && !is_warden(fd))
		err_set(&e, "what answers there is no session");
	else if (fd >= 0 && jail_adopt(&j, fd, &e) == 0 &&
		 copy_home(j, name, path, most, &e) == 0)
		_exit(0);
	err_wrap(&e, "copy the home of session %s", name);
	terminal_refuse(&e);
	fflush(NULL);
	_exit(1);
}

/* Wait for the child: 0, or -1: it failed, or does not even die (the file
 * system of a file that it was handed may hold it up). */
static int await_child(pid_t pid)
{
	int64_t until = now_ms() + (SAVE_S + DIE_S) * 1000;
	int status = 0;
	pid_t r;

	while ((r = waitpid(pid, &status, WNOHANG)) == 0 && now_ms() < until)
		poll(NULL, 0, LOOK_MS);
	return r == pid && status == 0 ? 0 : -1;
}

int saving_copy(const struct invocation *r, const struct registry_entry *of,
	const char *dir, struct err *e)
{
	char path[PATH_MAX], name[REGISTRY_NAME], line[PATH_MAX + 128];
	auto_close int sock = rundir_connect(of->dir, of->id, of->uid);
	int64_t most;
	pid_t pid;

	registry_name(of, name, sizeof(name));
	if (of->part || of->id > RUNDIR_SESSIONS)
		return err_set(e,
			"session %s is a server's: its home is not "
			"copied",
			name);
	if (sock < 0)
		return err_errno(e, "reach session %s", name);
	most = most_bytes(r, of->uid);
	if (make_place(of, dir, path, e) < 0)
		return -1;
	fflush(NULL);
	pid = query_fork(&sock);
	if (pid < 0)
		return err_errno(e, "copy the home of session %s", name);
	if (pid == 0)
		run_child(sock, path, most, name);
	if (await_child(pid) < 0) {
		rmdir(path); /* where nothing came */
		return err_set(e,
			"session %s has not been ended: there is no "
			"whole copy of its home",
			name);
	}
	snprintf(line, sizeof(line), "the home of session %s is in %s", name,
		path);
	terminal_print_line(stdout, line);
	return 0;
}
