/* SPDX-License-Identifier: MIT */
/*
 * download.c - copies of the home's files on the host
 *
 * Runs in:   front end, between cells, and after the last
 * Holds:     the target; a few files of each side
 * Trusts:    the warden, that the home's descriptors are of regular files;
 *            nothing in their contents, sizes or names. Below the target we
 *            follow no link
 * Leaves:    files that are whole, or not there; no link, no device, no FIFO
 */
#include "repl/files/files.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/path.h"
#include "jail/jail.h"
#include "repl/config/options.h"
#include "repl/text/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct download {
	struct transfer *t;
	struct manifest m;
	struct jail_files files;
	const char *place; /* the target, as the person knows it */
	int root;	   /* descriptor of the target */
	char *above;	   /* the directory that was opened last; NULL: none */
	int dir;	   /* descriptor of `above` */
};

/* ---- the sources ---- */

/* Write the path on the host, with each component made harmless. 0, or -1 with
 * e. */
static int make_safe_path(
	const char *path, char out[static JAIL_PATH_MAX], struct err *e)
{
	char part[NAME_MAX + 1], name[NAME_MAX + 1];
	const char *rest = path;
	size_t at = 0;
	int more;

	while ((more = path_next(&rest, part)) > 0) {
		if (hostfs_safe_name(part, name) < 0)
			break;
		at += (size_t)snprintf(out + at, JAIL_PATH_MAX - at, "%s%s",
			at ? "/" : "", name);
		if (at >= JAIL_PATH_MAX)
			return err_set(e, "%s: the name is too long", path);
	}
	return more == 0 && at
		       ? 0
		       : err_set(e, "%s cannot be a name on the host", path);
}

/* How many bytes the first `n` components of `path` have; 0 when it has fewer
 * components. */
static size_t measure_components(const char *path, int n)
{
	const char *p = path;

	for (; n > 0 && *p; n--) {
		p += strcspn(p, "/");
		if (n > 1)
			p += strspn(p, "/");
	}
	return n ? 0 : (size_t)(p - path);
}

/* True if the pattern selects the file, or a directory that holds it. */
static bool pattern_selects(const char *pattern, const char *path)
{
	char top[JAIL_PATH_MAX];
	int components = 0;
	size_t n;

	if (transfer_matches(pattern, path))
		return true;
	if (transfer_is_deep(pattern))
		return false;
	for (const char *p = pattern; *p; p += strspn(p, "/")) {
		components++;
		p += strcspn(p, "/");
	}
	n = measure_components(path, components);
	if (!n || !path[n] || n >= sizeof(top))
		return false;
	memcpy(top, path, n);
	top[n] = '\0';
	return transfer_matches(pattern, top);
}

/* True if `w` selects the entry; *prefix is how many bytes of its path the host
 * does not get. A directory of the home stands for all beneath it. */
static bool word_selects(
	const struct lexer_word *w, const char *path, size_t *prefix)
{
	const char *name = transfer_home_name(w->s);
	const char *pattern = transfer_home_name(w->pattern), *rest;
	size_t n = strlen(name);

	*prefix = 0;
	if (w->is_pattern) {
		*prefix = transfer_prefix(pattern);
		return pattern_selects(pattern, path);
	}
	if (!n || !strcmp(name, "."))
		return true;
	rest = path_beneath(path, name);
	while (n && name[n - 1] == '/')
		n--;
	while (n && name[n - 1] != '/')
		n--;
	*prefix = n;
	return rest && n <= strlen(path);
}

static int add_entry(struct download *d, const struct lexer_word *w,
	const struct jail_file *f, size_t prefix, struct err *e)
{
	struct manifest_item item = {.from = f->path,
		.base = -1,
		.type = f->type == 'd' ? 'd' : 'f',
		.mode = f->mode,
		.bytes = f->type == 'f' ? f->bytes : 0,
		.mtime_ns = f->mtime_ns};
	char to[JAIL_PATH_MAX];
	bool named =
		!w->is_pattern && !strcmp(transfer_home_name(w->s), f->path);

	item.to = to;
	if (f->type == 'o')
		err_set(e,
			"%s is a device, a FIFO or a socket, not a regular "
			"file",
			f->path);
	else if (make_safe_path(f->path + prefix, to, e) == 0)
		return manifest_add(&d->m, &item, e);
	if (named && !d->t->partial)
		return -1;
	transfer_leave_out(d->t, e);
	return 0;
}

/* Object to a word that selects nothing. The person may have meant the `last`
 * of several words as the target. */
static int refuse_missing(struct download *d, const struct lexer_word *w,
	bool last, struct err *e)
{
	err_set(e, "%s: there is no such file in the home", w->s);
	if (d->files.truncated)
		err_hint(e, "the home has more files than can be listed");
	else if (last)
		err_hint(e, "nor a directory %s on the host, to download to",
			w->s);
	return transfer_object(d->t, e);
}

static int add_sources(struct download *d, const struct lexer_word *from, int n,
	bool named_target, struct err *e)
{
	for (int i = 0; i < n; i++) {
		bool any = false;

		for (size_t k = 0; k < d->files.n; k++) {
			const struct jail_file *f = &d->files.v[k];
			size_t prefix;

			if (!word_selects(&from[i], f->path, &prefix))
				continue;
			any = true;
			if (add_entry(d, &from[i], f, prefix, e) < 0)
				return -1;
		}
		if (!any &&
			refuse_missing(d, &from[i],
				!named_target && n > 1 && i == n - 1, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- the target ---- */

/* Open the directory that holds `to`, without following a link: a borrowed
 * descriptor, or -1 with errno. *name is the last component of `to`. */
static int open_parent(struct download *d, const char *to, const char **name)
{
	size_t n;

	*name = path_last(to);
	n = (size_t)(*name - to);
	if (!n)
		return d->root;
	if (d->above && strlen(d->above) == n - 1 &&
		!strncmp(d->above, to, n - 1))
		return d->dir;
	fd_drop(&d->dir);
	free(d->above);
	d->above = strndup(to, n - 1);
	if (d->above)
		d->dir = hostfs_open_beneath(d->t->host, d->root, d->above,
			O_RDONLY | O_DIRECTORY | O_CLOEXEC, false);
	if (d->dir < 0) {
		int why = errno;

		free(d->above);
		d->above = NULL;
		errno = why;
	}
	return d->dir;
}

/* True if we skip saved files, the file at the target is the one that we
 * downloaded, and the home's file has not changed since. */
static bool is_saved(const struct download *d, const struct manifest_item *item,
	const struct stat *st)
{
	const struct jail_file *f = transfer_find(&d->files, item->from);
	time_t when;

	return d->t->skip_saved && f &&
	       ledger_status(d->t->ledger, f, &when) == LEDGER_DOWNLOADED &&
	       st->st_size == f->bytes;
}

static int look_at_target(
	void *download, struct manifest_item *item, struct err *e)
{
	struct download *d = download;
	const char *name;
	int dir = open_parent(d, item->to, &name);
	struct stat st;

	if (dir < 0 && errno == ENOENT)
		return 0;
	if (dir < 0)
		return err_errno(e, "%s/%s", d->place, item->to);
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT
			       ? 0
			       : err_errno(e, "%s/%s", d->place, item->to);
	if (transfer_meet(item, S_ISDIR(st.st_mode), d->place, e) < 0)
		return -1;
	item->left = item->type == 'f' && is_saved(d, item, &st);
	return 0;
}

/* ---- the copy ---- */

static int make_dirs(struct download *d, struct err *e)
{
	for (size_t i = 0; i < d->m.n; i++) {
		struct manifest_item *item = &d->m.v[i];
		mode_t mode = item->implied ? 0777 : item->mode | 0700;
		const char *name;
		int dir;

		if (item->type != 'd' || item->left || item->there)
			continue;
		dir = open_parent(d, item->to, &name);
		if (dir < 0 || mkdirat(dir, name, mode) < 0)
			return err_errno(
				e, "make directory %s/%s", d->place, item->to);
		item->done = true;
	}
	return 0;
}

static void set_time(int fd, int64_t ns)
{
	const struct timespec t[2] = {
		{.tv_nsec = UTIME_OMIT}, io_time_from_ns(ns)};

	/* A file system that cannot hold the time keeps its own. */
	futimens(fd, t);
}

/* Set the times of directories last: a new file in one changes its time. */
static void finish_dirs(struct download *d)
{
	for (size_t i = d->m.n; i-- > 0;) {
		const struct manifest_item *item = &d->m.v[i];
		int fd;

		if (item->type != 'd' || !item->done || item->implied)
			continue;
		fd = hostfs_open_beneath(d->t->host, d->root, item->to,
			O_RDONLY | O_DIRECTORY | O_CLOEXEC, false);
		if (fd >= 0) {
			set_time(fd, item->mtime_ns);
			close(fd);
		}
	}
}

static int copy_file(
	struct download *d, struct manifest_item *item, int in, struct err *e)
{
	const char *name;
	int r, dir = open_parent(d, item->to, &name);
	struct io_newfile f;
	struct stat st;

	if (dir < 0 || fstat(in, &st) < 0)
		return err_errno(e, "open its directory");
	if (hostfs_create(&f, dir, st.st_mode & 0777, item->there ? name : NULL,
		    e) < 0)
		return -1;
	r = transfer_copy(d->t, item->from, in, f.fd, &item->bytes, e);
	if (r == 0) {
		set_time(f.fd, io_time_to_ns(&st.st_mtim));
		r = hostfs_commit(&f, name, item->there, e);
	}
	io_newfile_abort(&f);
	return r;
}

/* Copy a file, or leave it out. 0; -1 with e: copy no more files. */
static int copy_or_leave_file(
	struct download *d, struct manifest_item *item, int in, struct err *e)
{
	const struct jail_file *f;

	if (transfer_is_cancelled(d->t))
		return -1;
	if (copy_file(d, item, in, e) == 0) {
		item->done = true;
		d->t->done++;
		f = transfer_find(&d->files, item->from);
		if (f)
			ledger_note(d->t->ledger, f->path, f->bytes,
				f->mtime_ns, LEDGER_DOWNLOADED);
		return 0;
	}
	if (e->code == EINTR)
		return -1;
	err_wrap(e, "%s/%s", d->place, item->to);
	return transfer_object(d->t, e);
}

struct download_batch {
	int n;
	struct manifest_item *items[JAIL_MANY_MAX];
	const char *paths[JAIL_MANY_MAX];
	int in[JAIL_MANY_MAX];
};

static int copy_batch(
	struct download *d, struct download_batch *b, struct err *e)
{
	int at = 0, r = 0;

	while (at < b->n && r == 0) {
		struct err why = {0};
		int some = jail_home_open_many(
			d->t->jail, b->paths + at, b->n - at, b->in + at, &why);

		for (int i = at; i < at + some; i++) {
			if (r == 0)
				r = copy_or_leave_file(
					d, b->items[i], b->in[i], e);
			close(b->in[i]);
		}
		at += some;
		if (at < b->n && r == 0) {
			if (why.kind == ERR_JAIL) {
				*e = why;
				return -1;
			}
			transfer_leave_out(d->t, &why);
			at++;
		}
	}
	return r;
}

static int copy_files(struct download *d, struct err *e)
{
	struct download_batch b = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && i <= d->m.n; i++) {
		struct manifest_item *item = i < d->m.n ? &d->m.v[i] : NULL;

		if (item && item->type == 'f' && !item->left) {
			b.items[b.n] = item;
			b.paths[b.n++] = item->from;
		}
		if (b.n == JAIL_MANY_MAX || !item) {
			r = copy_batch(d, &b, e);
			b.n = 0;
		}
	}
	return r;
}

/* ---- the whole download ---- */

static int open_target(
	struct download *d, const char *to, char **place, struct err *e)
{
	auto_free char *dir = hostfs_expand(d->t->host, to ? to : ".");
	size_t len;

	*place = dir ? hostfs_place(d->t->host, dir) : NULL;
	if (!*place)
		return err_errno(e, "download");
	d->root = hostfs_open_dir(d->t->host, HOSTFS_WRITE, dir, e);
	if (d->root < 0)
		return err_wrap(e, "download to");
	len = strlen(*place);
	while (len && (*place)[len - 1] == '/')
		(*place)[--len] = '\0';
	d->place = *place;
	return 0;
}

static int plan_download(struct download *d, const struct lexer_word *from,
	int n, bool named_target, struct err *e)
{
	struct transfer *t = d->t;

	if (jail_home_list(t->jail, &d->files, e) < 0 ||
		add_sources(d, from, n, named_target, e) < 0 ||
		manifest_settle(&d->m, transfer_object, t, e) < 0 ||
		transfer_check(t, &d->m, e) < 0)
		return -1;
	return transfer_check_target(t, &d->m, d->place, look_at_target, d, e);
}

static int copy_items(struct download *d, struct err *e)
{
	int r = make_dirs(d, e);

	if (r == 0)
		r = copy_files(d, e);
	finish_dirs(d);
	return r;
}

int download_run(struct transfer *t, const struct lexer_word *from, int n,
	const char *to, struct err *e)
{
	struct download d = {.t = t, .root = -1, .dir = -1};
	auto_free char *place = NULL;
	int r = open_target(&d, to, &place, e);

	if (r == 0)
		r = plan_download(&d, from, n, to != NULL, e);
	if (r == 0)
		r = copy_items(&d, e);
	transfer_end(t, &d.m, place ? place : "", 0);
	if (d.files.truncated && d.m.n) {
		struct err more = {0};

		err_set(&more, "there are more files in the home than can be "
			       "listed: not all may have been copied");
		t->failed++;
		t->refuse(t->arg, &more);
	}
	jail_files_free(&d.files);
	manifest_free(&d.m);
	fd_drop(&d.root);
	fd_drop(&d.dir);
	free(d.above);
	return t->cancelled ? 0 : r;
}

int download_all(const struct transfer *with, const struct options *o)
{
	int all = 0;

	for (size_t i = 0; i < o->ndownloads; i++) {
		char *from = o->downloads[i].from;
		struct transfer t = *with;
		struct lexer_word w = {.s = from,
			.pattern = from,
			.is_pattern = strpbrk(from, "*?[") != NULL};
		struct err e = {0};
		int r;

		t.partial = true;
		r = download_run(&t, &w, 1, o->downloads[i].to, &e);
		all |= transfer_result(&t, r, &e);
	}
	return all;
}

/* NULL: the working directory. */
static int check_target(
	const struct hostfs *host, const char *to, struct err *e)
{
	auto_free char *path = hostfs_expand(host, to ? to : ".");
	auto_close int dir = -1;
	struct io_newfile f;

	if (!path)
		return err_errno(e, "download");
	dir = hostfs_open_dir(host, HOSTFS_WRITE, path, e);
	if (dir < 0) {
		err_kind_set(e, ERR_USAGE);
		return err_wrap(e, "download to");
	}
	if (hostfs_create(&f, dir, 0666, NULL, e) < 0) {
		err_kind_set(e, ERR_USAGE);
		return err_wrap(e, "download to %s", path);
	}
	io_newfile_abort(&f);
	return 0;
}

int download_check(
	const struct hostfs *host, const struct options *o, struct err *e)
{
	for (size_t i = 0; i < o->ndownloads; i++)
		if (check_target(host, o->downloads[i].to, e) < 0)
			return -1;
	return 0;
}
