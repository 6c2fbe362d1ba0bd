/* SPDX-License-Identifier: MIT */
/*
 * put.c - put files of a request into the home of its jail
 *
 * Runs in:   front end, confined
 * Trusts:    the paths of a request, which request.c has cleaned; nothing in
 *            the home
 * Leaves:    whole files, and none that could not be written
 */
#include "repl/json/json.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "repl/config/config.h"
#include "repl/files/files.h"
#include "repl/term/term.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Longest turn, not counting its last file. */
#define TURN_MS 3

static const char other_error[] = "OSError";

/* The name of Python's exception for an errno. */
static const char *find_exception(int code)
{
	static const struct {
		int code;
		const char *name;
	} names[] = {
		{EISDIR, "IsADirectoryError"},
		{ENOTDIR, "NotADirectoryError"},
		{EEXIST, "FileExistsError"},
		{ENOENT, "FileNotFoundError"},
		{EACCES, "PermissionError"},
		{EPERM, "PermissionError"},
	};

	for (size_t i = 0; i < COUNT(names); i++)
		if (names[i].code == code)
			return names[i].name;
	return other_error;
}

/* Copy the file of the store in pieces, or write the content of the request. */
static int write_file(int to, const struct request_file *f)
{
	char piece[64 << 10];

	if (f->fd < 0)
		return io_write_full(to, f->content, f->n);
	for (size_t at = 0; at < f->n;) {
		size_t want =
			f->n - at < sizeof(piece) ? f->n - at : sizeof(piece);
		ssize_t n = pread(f->fd, piece, want, f->from + (off_t)at);

		if (n == 0)
			errno = EIO;
		if (n <= 0 || io_write_full(to, piece, (size_t)n) < 0)
			return -1;
		at += (size_t)n;
	}
	return 0;
}

static int put_file(struct put *p, struct jail *j, const struct request_file *f,
	struct err *e)
{
	struct jail_end end = {.replace = 1, .mode = -1};
	const char *path = f->clean;
	auto_close int fd = -1;
	struct stat st;

	if (!strcmp(path, ".")) {
		e->code = EISDIR;
		return -1;
	}
	if (jail_home_create_many(j, &path, 1, 0777, &fd, &end.token, e) < 1 ||
		fd < 0)
		return -1;
	if (write_file(fd, f) < 0 || fstat(fd, &st) < 0) {
		err_errno(e, "write");
		jail_home_abort(j, end.token);
		return -1;
	}
	if (jail_home_commit_many(j, &end, 1, e) < 1)
		return -1;
	p->files[p->n++] = (struct put_file){f, st.st_mtim};
	return 0;
}

static void refuse_skeleton(void *arg, const struct err *e)
{
	(void)arg;
	terminal_refuse(e);
}

void put_skeleton(struct jail *j, const struct config *cfg)
{
	struct ledger ledger = {0};
	const struct transfer t = {.jail = j,
		.limits = &cfg->limits,
		.ledger = &ledger,
		.refuse = refuse_skeleton};

	if (cfg->skeleton)
		upload_skeleton(&t, cfg->skeleton);
	ledger_free(&ledger);
}

/* Whether the directory of a file is a file that came before it. Python makes
 * the directory first, and finds that it exists. */
static bool is_right_below_a_file(
	const struct put *p, const struct request_file *f)
{
	const char *end = strrchr(f->clean, '/');
	size_t n = end ? (size_t)(end - f->clean) : 0;

	for (size_t i = 0; end && i < p->n; i++)
		if (strlen(p->files[i].from->clean) == n &&
			!memcmp(p->files[i].from->clean, f->clean, n))
			return true;
	return false;
}

/* An OSError says nothing of a full home. snekbox leaves it at that. */
static enum put_turn fail_put(struct put *p, const struct request *q,
	const struct request_file *f, const struct err *e)
{
	int code = e->code == ENOTDIR && is_right_below_a_file(p, f) ? EEXIST
								     : e->code;
	const char *name = find_exception(code);
	bool tells =
		q->form != REQUEST_SNEKBOX && code > 0 && name == other_error;

	p->err = *e;
	if (e->kind == ERR_JAIL)
		return PUT_LOST;
	snprintf(p->message, sizeof(p->message),
		"%s: Failed to create file '%.1000s'%s%s.", name, f->path,
		tells ? ": " : "", tells ? strerror(code) : "");
	return PUT_REFUSED;
}

enum put_turn put_files(struct put *p, struct jail *j, const struct request *q)
{
	int64_t begun = now_ms();

	if (!p->files)
		p->files = calloc(q->nfiles + 1, sizeof(*p->files));
	if (!p->files) {
		err_errno(&p->err, "hold the list of files");
		return PUT_LOST;
	}
	while (p->at < q->nfiles) {
		const struct request_file *f = &q->files[p->at++];
		struct err e = {0};

		if (put_file(p, j, f, &e) < 0)
			return fail_put(p, q, f, &e);
		if (now_ms() - begun >= TURN_MS)
			break;
	}
	return p->at < q->nfiles ? PUT_MORE : PUT_ALL;
}

void put_fini(struct put *p)
{
	free(p->files);
	*p = (struct put){0};
}
