/* SPDX-License-Identifier: MIT */
/*
 * down.c - from the home to the host
 *
 * Runs in:   front end, between cells
 * Holds:     one open file of each side
 * Trusts:    nothing about a file's name, size or contents. A name becomes a
 *            host name only after it was made harmless, and every directory
 *            made on the way is opened without following links
 * Leaves:    files that are whole on the host, or not there
 */
#include "impl.h"

#include "hostfs.h"
#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/newfile.h"
#include "jail/base/path.h"
#include "jail/jail.h"
#include "jail/limits.h"
#include "ledger.h"
#include "repl/term/progress.h"
#include "repl/text/lexer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One file on its way. */
struct down {
	struct transfer *t;
	const struct jail_file *file;
	const char *to;	   /* directory of the host, as the person named it */
	const char *under; /* the part of file->path that is kept */
	int root;	   /* that directory */
	char place[PATH_MAX];
	int64_t bytes; /* that were copied */
};

/* Walk to the directory of d->under, making what is missing; *name is what
 * is left. Descriptor, or -1. */
static int walk_to_dir(
	struct down *d, char name[static NAME_MAX + 1], struct err *e)
{
	auto_close int dir = fcntl(d->root, F_DUPFD_CLOEXEC, 3);
	const char *p = d->under;
	size_t at;

	at = (size_t)snprintf(d->place, sizeof(d->place), "%s/", d->to);
	for (;;) {
		size_t n = strcspn(p, "/");
		char part[NAME_MAX + 1];
		int next;

		if (n > NAME_MAX || at + n + 2 >= sizeof(d->place))
			return err_set(e, "%s: the name is too long", d->under);
		memcpy(part, p, n);
		part[n] = '\0';
		if (hostfs_safe_name(part, name) < 0)
			return err_set(e, "%s cannot be a name on the host",
				d->file->path);
		at += (size_t)snprintf(d->place + at, sizeof(d->place) - at,
			"%s%s", name, p[n] ? "/" : "");
		if (!p[n])
			return fd_take(&dir);
		next = hostfs_make_dir(dir, name, e);
		if (next < 0)
			return -1;
		close(dir);
		dir = next;
		p += n + 1;
	}
}

/* What stands at its destination is what was downloaded, unchanged since. */
static bool is_saved(const struct down *d, int dir, const char *name)
{
	struct stat st;
	time_t when;

	return d->t->skip_saved &&
	       ledger_status(d->t->ledger, d->file, &when) ==
		       LEDGER_IS_DOWNLOADED &&
	       fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_size == d->file->bytes;
}

static int may_replace(
	struct down *d, int dir, const char *name, bool *replace, struct err *e)
{
	struct transfer *t = d->t;

	*replace = false;
	if (!hostfs_has(dir, name))
		return 0;
	if (is_saved(d, dir, name)) {
		e->code = EALREADY;
		return -1;
	}
	if (t->overwrite && t->overwrite(t->arg, d->place)) {
		*replace = true;
		return 0;
	}
	err_set(e, "%s is there already and was left alone", d->place);
	e->code = EEXIST;
	return -1;
}

static int copy_to_host(struct down *d, int dir, const char *name, bool replace,
	int in, struct err *e)
{
	struct newfile f;
	struct progress bar;
	int r;

	if (hostfs_create(&f, dir, replace ? name : NULL, e) < 0)
		return -1;
	progress_begin(
		&bar, d->t->term, d->file->path, (uint64_t)d->file->bytes);
	r = transfer_copy(
		d->t->signals, &bar, in, f.fd, d->t->limits->max_file_bytes, e);
	progress_end(&bar);
	d->bytes = lseek(f.fd, 0, SEEK_CUR);
	if (r == 0)
		r = hostfs_commit(&f, name, replace, e);
	newfile_abort(&f);
	return r;
}

static int download_file(struct down *d, struct err *e)
{
	struct transfer *t = d->t;
	char name[NAME_MAX + 1];
	auto_close int dir = -1;
	auto_close int in = -1;
	bool replace;

	if (transfer_check_size(t, d->file->path, d->file->bytes, e) < 0)
		return -1;
	dir = walk_to_dir(d, name, e);
	if (dir < 0 || may_replace(d, dir, name, &replace, e) < 0)
		return -1;
	in = jail_home_open(t->jail, d->file->path, e);
	if (in < 0)
		return -1;
	if (copy_to_host(d, dir, name, replace, in, e) < 0)
		return err_wrap(e, "%s", d->place);
	return 0;
}

static void download_one(struct down *d)
{
	struct err e = {0};

	if (transfer_is_full(d->t))
		return;
	if (download_file(d, &e) < 0) {
		if (e.code != EALREADY)
			transfer_refuse(d->t, &e);
		return;
	}
	transfer_said(d->t, d->file->path, d->bytes, d->place);
	ledger_note(d->t->ledger, d->file, LEDGER_DOWNLOADED, time(NULL));
}

/* Whether `w` takes the file, and how much of its path is not kept. */
static bool takes(
	const struct lexer_word *w, const struct jail_file *f, size_t *prefix)
{
	const char *pattern = transfer_home_name(w->pattern);
	const char *dir = transfer_home_name(w->s);
	const char *rest = path_beneath(f->path, dir);

	/* A directory of the home stands for all files beneath it. */
	if (!w->is_pattern && rest && *rest) {
		size_t n = strlen(dir);

		while (n && dir[n - 1] == '/')
			n--;
		while (n && dir[n - 1] != '/')
			n--;
		*prefix = n;
		return true;
	}
	if (!transfer_matches(pattern, f->path))
		return false;
	if (w->is_pattern) {
		*prefix = transfer_prefix(pattern);
		if (*prefix <= strlen(f->path))
			return true;
	}
	*prefix = (size_t)(path_last(f->path) - f->path);
	return true;
}

static void report_kind(struct transfer *t, const struct jail_file *f)
{
	struct err e = {0};

	err_set(&e, "%s is %s, not a regular file", f->path,
		f->type == 'l' ? "a link" : "a device, a FIFO or a socket");
	transfer_refuse(t, &e);
}

static void download_matches(struct down *d, const struct lexer_word *w,
	const struct jail_files *files)
{
	bool any = false;
	struct err e = {0};

	for (size_t i = 0; i < files->n && !d->t->cancelled; i++) {
		size_t prefix;

		d->file = &files->v[i];
		if (d->file->type == 'd' || !takes(w, d->file, &prefix))
			continue;
		any = true;
		d->under = d->file->path + prefix;
		/* A link is read through by its name; a pattern passes by. */
		if (d->file->type == 'f' ||
			(d->file->type == 'l' && !w->is_pattern))
			download_one(d);
		else
			report_kind(d->t, d->file);
	}
	if (any || d->t->cancelled)
		return;
	err_set(&e, "%s: there is no such file in the home", w->s);
	transfer_refuse(d->t, &e);
}

int transfer_download(struct transfer *t, const struct lexer_word *from, int n,
	const char *to, struct err *e)
{
	auto_free char *dir = hostfs_expand(t->host, to ? to : ".");
	auto_free char *place =
		dir ? hostfs_place(t->host, HOSTFS_WRITE, dir) : NULL;
	struct down d = {.t = t, .to = place, .root = -1};
	struct jail_files files = {0};
	size_t len;

	if (!place)
		return err_errno(e, "download");
	d.root = hostfs_open_dir(t->host, HOSTFS_WRITE, dir, e);
	if (d.root < 0)
		return err_wrap(e, "download to");
	len = strlen(place);
	while (len && place[len - 1] == '/')
		place[--len] = '\0';
	if (jail_home_list(t->jail, &files, e) < 0) {
		close(d.root);
		return -1;
	}
	for (int i = 0; i < n && !t->cancelled; i++)
		download_matches(&d, &from[i], &files);
	transfer_report_left(t);
	jail_files_free(&files);
	close(d.root);
	return 0;
}
