/* SPDX-License-Identifier: MIT */
/*
 * left.c - hands in what an exam's session leaves in its home
 *
 * Runs in:   root: a child of the session's janitor, when no process of the
 *            session is left
 * Holds:     the directory that the home was
 * Trusts:    the system's configuration, and the clock of the host. Names and
 *            bytes are a stranger's: jail_left_open() stays beneath the home
 * Leaves:    a version of the person's, if something is new; syslog has each
 *            file, and each that is left out
 *
 * The disk may be slow, and is not given up while it goes on: each step has an
 * alarm of its own. Files that are not there after MOST_MS are left out; the
 * rest is a version. A disk that hangs holds the child, which its alarm ends;
 * the janitor writes that down.
 */
#include "repl/maker/maker.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/path.h"
#include "jail/jail.h"
#include "repl/config/config.h"
#include "repl/files/files.h"
#include "repl/lab/lab.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

/* It stands for each slash in the name of a file in a directory. */
#define JOINS '_'
/* The longest that a step may take: PIECE_BYTES on the disk, or a wait for
 * another hand-in of the person's, such as of a second session. */
#define STEP_S 60
#define PIECE_BYTES ((int64_t)1 << 20)
#define LOCK_MS ((int)300 * 1000)
/* After so long no file is begun or continued. */
#define MOST_MS ((int64_t)600 * 1000)

#define FAILED "%s: what the home has was not handed in at the end: "

static void note(const struct place_draft *p, const char *path, const char *why)
{
	char safe[256];

	text_safe(safe, sizeof(safe), path, strlen(path));
	syslog(LOG_WARNING, "%s: %s was not handed in at the end: %s",
		p->person, safe, why);
}

/* The name of a file whose path has directories. -1: it can have none. */
static int name_file(const char *path, char name[static NAME_MAX + 1])
{
	size_t n = strlen(path);

	if (n > NAME_MAX)
		return -1;
	for (size_t i = 0; i <= n; i++)
		name[i] = path[i] == '/' ? JOINS : path[i];
	return asked_may_be_name(name) ? 0 : -1;
}

/* The disk goes on: on to the next step. */
static int go_on(int64_t until_ms, struct err *e)
{
	alarm(STEP_S);
	return now_ms() < until_ms ? 0 : err_set(e, "the disk is too slow");
}

/* A part is on the disk before the next: all at the end could take long. */
static int copy(struct place_draft *p, struct place_incoming *in, int fd,
	int64_t until_ms, struct err *e)
{
	char piece[16 << 10];

	while (in->left > 0) {
		size_t most = in->left < (int64_t)sizeof(piece)
				      ? (size_t)in->left
				      : sizeof(piece);
		ssize_t n = io_read_full(fd, piece, most);

		if (n <= 0)
			return n < 0 ? err_errno(e, "read it")
				     : err_set(e, "it is shorter than it was");
		if (go_on(until_ms, e) < 0 ||
			place_add(in, piece, (size_t)n, e) < 0)
			return -1;
		if (in->left % PIECE_BYTES < n && fdatasync(in->fd) < 0)
			return err_errno(e, "keep it");
	}
	return place_end(p, in, e);
}

static int take_file(struct place_draft *p, int home, const struct jail_file *f,
	int64_t until_ms, struct err *e)
{
	auto_close int fd = jail_left_open(home, f->path, e);
	struct place_incoming in = {.fd = -1};
	char name[NAME_MAX + 1];
	struct stat st;
	int r;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return err_errno(e, "look at it");
	if (name_file(f->path, name) < 0)
		return err_set(e, "no file can have that name there");
	/* A file that is there already needs no room of place_begin()'s. */
	if (place_has(p, name, fd))
		return 0;
	r = place_begin(p, &in, name, st.st_size, e);
	if (r == 0) {
		r = copy(p, &in, fd, until_ms, e);
		if (r < 0)
			place_withdraw(p, &in);
	}
	place_drop(&in);
	return r;
}

/* A file that a person wrote by hand is small, and rarely lies deep: it comes
 * first, for not all may have room, or time. */
static int by_worth(const void *a, const void *b)
{
	const struct jail_file *x = a, *y = b;
	int deeper = path_depth(x->path) - path_depth(y->path);

	if (deeper)
		return deeper;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	return strcmp(x->path, y->path);
}

static void take_files(struct place_draft *p, const struct config *cfg,
	int home, struct jail_files *files)
{
	int64_t until_ms = now_ms() + MOST_MS;

	if (files->n)
		qsort(files->v, files->n, sizeof(*files->v), by_worth);
	for (size_t i = 0; i < files->n; i++) {
		const struct jail_file *f = &files->v[i];
		struct err e = {0};

		if (f->type == 'f' &&
			transfer_matches(cfg->exam_hand_in, f->path) &&
			take_file(p, home, f, until_ms, &e) < 0)
			note(p, f->path, e.msg);
	}
	if (files->truncated)
		note(p, "more files", "the home has too many");
}

/* Make the version, if a file of it is new. */
static int commit(struct place_draft *p, int64_t when_s, struct err *e)
{
	const struct place_record *r = &p->record;
	size_t fresh = 0;

	for (size_t i = 0; i < r->n; i++)
		fresh += p->fresh[i];
	if (!fresh) {
		syslog(LOG_INFO,
			"%s: the session has ended, and its home has nothing "
			"new to hand in",
			p->person);
		return 0;
	}
	if (place_commit(p, when_s, e) < 0)
		return -1;
	for (size_t i = 0; i < r->n; i++)
		if (p->fresh[i])
			handin_log(p, &r->files[i], " at the end");
	return 0;
}

static int hand_in(struct place_draft *p, const struct config *cfg,
	const char *person, int home, struct err *e)
{
	int64_t now = time(NULL), end = cfg->exam_end_s;
	int64_t when_s = now < end ? now : end;
	struct jail_files files = {0};
	int r;

	*p = (struct place_draft){.dir = -1, .temp = -1};
	if (exam_is_late(cfg, when_s))
		return err_set(e, "lab.deadline was before");
	alarm(LOCK_MS / 1000 + STEP_S);
	if (place_open(p, cfg, person, LOCK_MS, e) < 0)
		return -1;
	alarm(STEP_S);
	r = jail_left_list(home, &files, e);
	if (r == 0) {
		take_files(p, cfg, home, &files);
		alarm(STEP_S);
		r = commit(p, when_s, e);
	}
	jail_files_free(&files);
	return r;
}

static _Noreturn void run_child(
	const struct config *cfg, const char *person, int home)
{
	struct place_draft p;
	struct err e = {0};

	alarm(STEP_S);
	policy_exam_ended(cfg);
	if (hand_in(&p, cfg, person, home, &e) < 0)
		syslog(LOG_ERR, FAILED "%s", person, e.msg);
	place_close(&p);
	_exit(0);
}

void left_hand_in(const struct config *cfg, const char *person, int home)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		run_child(cfg, person, home);
	if (child < 0 || waitpid(child, &status, 0) < 0)
		syslog(LOG_ERR, FAILED "%m", person);
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		syslog(LOG_ERR, FAILED "a step of it took more than %d s",
			person, STEP_S);
	else if (WIFSIGNALED(status))
		syslog(LOG_ERR, FAILED "signal %d ended it", person,
			WTERMSIG(status));
}
