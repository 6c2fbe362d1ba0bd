/* SPDX-License-Identifier: MIT */
/*
 * transfer.c - safe copies between the host and the home
 *
 * Runs in:   front end, between cells; before the first and after the last
 * Holds:     one open file of each side
 * Trusts:    the warden for the home's descriptors, which are of regular
 *            files; nothing in their contents, sizes or names. The host for
 *            nothing a name promises: a file is opened without waiting, then
 *            looked at. The administrator, who named the skeleton
 * Leaves:    files that are whole, or not there
 *
 * A cell that restores a file's size and time can make the file look unchanged
 * in the ledger, which misleads only its own session.
 */
#include "transfer.h"

#include "hostfs.h"
#include "jail/base/array.h"
#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/path.h"
#include "jail/jail.h"
#include "repl/term/terminal.h"
#include "repl/text/lexer.h"
#include "repl/text/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define COPY_BYTES (128u << 10)
/* How many names past files.max_count are looked at, only to count them. */
#define COUNTED 10000
/* The skeleton's directories, one in another. */
#define DEPTH_MAX 32

/* ---- names and patterns ---- */

static bool component_matches(
	const char *pattern, size_t n, const char *name, size_t name_n)
{
	char p[NAME_MAX + 1], s[NAME_MAX + 1];

	if (n > NAME_MAX || name_n > NAME_MAX)
		return false;
	snprintf(p, sizeof(p), "%.*s", (int)n, pattern);
	snprintf(s, sizeof(s), "%.*s", (int)name_n, name);
	return fnmatch(p, s, FNM_PERIOD) == 0;
}

static const char *next_component(const char *s, size_t n)
{
	return s + n + strspn(s + n, "/");
}

/* `budget` bounds the work that several "**" can make. */
static bool matches(const char *pattern, const char *path, int *budget)
{
	size_t n = strcspn(pattern, "/"), m = strcspn(path, "/");

	if (--*budget < 0)
		return false;
	if (!*pattern || !*path)
		return !*pattern && !*path;
	if (n == 2 && !memcmp(pattern, "**", 2)) {
		const char *rest = next_component(pattern, n);

		if (matches(*rest ? rest : "*", path, budget))
			return true;
		return path[0] != '.' && path[m] &&
		       matches(pattern, next_component(path, m), budget);
	}
	return component_matches(pattern, n, path, m) &&
	       matches(next_component(pattern, n), next_component(path, m),
		       budget);
}

bool transfer_matches(const char *pattern, const char *path)
{
	int budget = 10000;

	return matches(pattern, path, &budget);
}

size_t transfer_prefix(const char *pattern)
{
	size_t prefix = 0, n = 0;

	for (const char *p = pattern; *p && !strchr("*?[", *p); p++) {
		if (*p == '/' && p > pattern && p[-1] == '/')
			continue;
		n++;
		if (*p == '\\' && p[1])
			p++;
		else if (*p == '/')
			prefix = n;
	}
	return prefix;
}

const char *transfer_home_name(const char *s)
{
	const char *rest = path_beneath(s, "/home");

	if (rest)
		return rest;
	return strncmp(s, "./", 2) ? s : next_component(s, 1);
}

bool transfer_home_has_dir(struct jail *j, const char *name)
{
	struct jail_files files = {0};
	bool has = !*name;

	if (has || jail_home_list(j, &files, NULL) < 0)
		return has;
	for (size_t i = 0; i < files.n && !has; i++) {
		const char *rest = path_beneath(files.v[i].path, name);

		has = files.v[i].type == 'd' && rest && !*rest;
	}
	jail_files_free(&files);
	return has;
}

/* ---- the ledger ---- */

static struct transfer_ledger_entry *find(
	const struct transfer_ledger *l, const char *path)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->v[i].path, path))
			return &l->v[i];
	return NULL;
}

/* Note that the file `f` was just uploaded or downloaded. Without memory for it
 * the file counts as new. */
static void note(struct transfer_ledger *l, const struct jail_file *f,
	enum transfer_ledger_status status)
{
	struct transfer_ledger_entry *entry = find(l, f->path);

	if (!entry) {
		if (array_grow(&l->v, l->n, sizeof(*l->v)) < 0)
			return;
		entry = &l->v[l->n];
		entry->path = strdup(f->path);
		if (!entry->path)
			return;
		l->n++;
	}
	entry->status = status;
	entry->bytes = f->bytes;
	entry->mtime_ns = f->mtime_ns;
	entry->when = time(NULL);
}

enum transfer_ledger_status transfer_ledger_status(
	const struct transfer_ledger *l, const struct jail_file *f,
	time_t *when)
{
	const struct transfer_ledger_entry *entry = find(l, f->path);

	*when = entry ? entry->when : 0;
	if (!entry)
		return TRANSFER_NEW;
	if (entry->bytes != f->bytes || entry->mtime_ns != f->mtime_ns)
		return TRANSFER_CHANGED;
	return entry->status;
}

/* Programs keep such files for themselves; the person made none of them. */
static bool is_hidden(const char *path)
{
	return path[0] == '.' || strstr(path, "/.") ||
	       strstr(path, "__pycache__/");
}

size_t transfer_ledger_unsaved(const struct transfer_ledger *l,
	const struct jail_files *files, size_t *which, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < files->n; i++) {
		enum transfer_ledger_status status;
		time_t when;

		if (files->v[i].type != 'f' || is_hidden(files->v[i].path))
			continue;
		status = transfer_ledger_status(l, &files->v[i], &when);
		if (status != TRANSFER_NEW && status != TRANSFER_CHANGED)
			continue;
		if (n < max)
			which[n] = i;
		n++;
	}
	return n;
}

void transfer_ledger_free(struct transfer_ledger *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i].path);
	free(l->v);
	*l = (struct transfer_ledger){0};
}

/* ---- telling ---- */

/* Count and report a file that was left out. Returns -1. */
static int refuse(struct transfer *t, const struct err *e)
{
	t->failed++;
	if (e->code == EINTR)
		t->cancelled = true; /* said once, for all of it */
	else
		t->refuse(t->arg, e);
	return -1;
}

/* Count and report a file that arrived: "name   12.4 KiB   → place". */
static void arrived(
	struct transfer *t, const char *name, int64_t bytes, const char *place)
{
	char safe[256], where[512], size[TEXT_HUMAN], line[1024];

	text_safe(safe, sizeof(safe), name, strlen(name));
	text_safe(where, sizeof(where), place, strlen(place));
	snprintf(line, sizeof(line), "%s   %s   → %s", safe,
		text_size(size, (uint64_t)bytes), where);
	t->done++;
	t->say(t->arg, line);
}

static int check_size(const struct transfer *t, const char *name, int64_t bytes,
	struct err *e)
{
	char size[TEXT_HUMAN], max[TEXT_HUMAN];

	if (bytes <= t->limits->max_file_bytes)
		return 0;
	err_set(e, "%s is %s, and no file of a transfer may be larger than %s",
		name, text_size(size, (uint64_t)bytes),
		text_size(max, (uint64_t)t->limits->max_file_bytes));
	return err_hint(e, "the limit is files.max_file");
}

/* Whether files.max_count is reached. Then this file counts as left out;
 * report_left() reports all such files at once. */
static bool is_full(struct transfer *t)
{
	if (t->done < t->limits->max_count)
		return false;
	t->left++;
	return true;
}

static void report_left(struct transfer *t)
{
	struct err e = {0};
	char left[64];

	if (!t->left)
		return;
	err_set(&e, "%s left out: no more than %d are transferred at once",
		text_count(left, sizeof(left), (uint64_t)t->left, "file was",
			"files were"),
		t->limits->max_count);
	err_hint(&e, "the limit is files.max_count");
	refuse(t, &e);
}

/* ---- a bar for copies that take longer than half a second ---- */

#define PATIENCE_MS 500
#define REDRAW_MS 100
struct progress {
	struct terminal *term; /* borrowed; NULL: never drawn */
	char name[64];	       /* safe */
	int64_t start_ms, drawn_ms;
	uint64_t total; /* 0: not known */
};

static void progress_draw(const struct progress *p, uint64_t done, int64_t ms)
{
	char have[TEXT_HUMAN], all[TEXT_HUMAN], rate[TEXT_HUMAN], text[300];
	char bar[] = "--------------------";
	size_t full = 0, width = sizeof(bar) - 1;

	if (p->total)
		full = done >= p->total ? width : done * width / p->total;
	memset(bar, '#', full);
	text_size(have, done);
	if (p->term->cols && p->term->cols < 72)
		snprintf(text, sizeof(text), "\r[%s] %s\x1b[K", bar, have);
	else
		snprintf(text, sizeof(text),
			"\r%.24s [%s] %s of %s, %s/s\x1b[K", p->name, bar, have,
			p->total ? text_size(all, p->total) : "?",
			text_size(rate, done * 1000 / (uint64_t)ms));
	terminal_puts(p->term, text);
}

static void progress_update(struct progress *p, uint64_t done)
{
	int64_t now = now_ms();

	if (!p->term || !p->term->out_tty || p->term->dumb ||
		now - p->start_ms < PATIENCE_MS ||
		now - p->drawn_ms < REDRAW_MS)
		return;
	progress_draw(p, done, now - p->start_ms);
	p->drawn_ms = now;
}

/* ---- copying ---- */

static int copy_bytes(const struct transfer *t, struct progress *bar, int in,
	int out, struct err *e)
{
	auto_free char *buf = malloc(COPY_BYTES);
	const int64_t max = t->limits->max_file_bytes;
	char limit[TEXT_HUMAN];
	int64_t done = 0;

	if (!buf)
		return err_errno(e, "copy");
	for (;;) {
		ssize_t n = read(in, buf, COPY_BYTES);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(e, "read");
		if (n == 0)
			return 0;
		done += n;
		if (done > max) {
			err_set(e, "larger than %s",
				text_size(limit, (uint64_t)max));
			return err_hint(e, "the limit is files.max_file");
		}
		if (io_write_full(out, buf, (size_t)n) < 0)
			return err_errno(e, "write");
		progress_update(bar, (uint64_t)done);
		if (t->signals && terminal_signals_cancelled(t->signals)) {
			err_set(e, "interrupted");
			e->code = EINTR;
			return -1;
		}
	}
}

/* Copy from `in` to `out` until the end, with a bar. 0; -1 with e: the copy
 * failed, was interrupted (EINTR), or the file is larger than is allowed. */
static int copy(struct transfer *t, const char *name, int64_t bytes, int in,
	int out, struct err *e)
{
	struct progress bar = {
		.term = t->term,
		.start_ms = now_ms(),
		.total = (uint64_t)bytes,
	};
	int r;

	text_safe(bar.name, sizeof(bar.name), name, strlen(name));
	r = copy_bytes(t, &bar, in, out, e);
	if (bar.drawn_ms)
		terminal_puts(t->term, "\r\x1b[K");
	return r;
}

/* ---- up ---- */

static int copy_to_home(struct transfer *t, int in, const char *from,
	int64_t bytes, const char *path, struct err *e)
{
	uint32_t token;
	auto_close int out = jail_home_create(t->jail, path, 0644, &token, e);

	if (out < 0)
		return -1;
	if (copy(t, from, bytes, in, out, e) < 0) {
		jail_home_abort(t->jail, token, NULL);
		return err_wrap(e, "%s", from);
	}
	return jail_home_commit(t->jail, token, 1, e);
}

/* The name of a file in the home. */
static int home_path(char *out, size_t size, const char *from, const char *to,
	bool to_dir, struct err *e)
{
	size_t len = strlen(to);
	int n;

	if (to[0] == '/')
		return err_set(e, "%s is not in the home", to);
	if (len && !to_dir)
		n = snprintf(out, size, "%s", to);
	else
		n = snprintf(out, size, "%s%s%s", to,
			len && to[len - 1] != '/' ? "/" : "", path_last(from));
	if (n < 0 || (size_t)n >= size)
		return err_set(e, "%s: the name is too long", from);
	return 0;
}

/* Copy one file of the host to `to` in the home, into it with `to_dir`. */
static void upload_one(
	struct transfer *t, const char *from, const char *to, bool to_dir)
{
	char path[JAIL_PATH_MAX], place[JAIL_PATH_MAX + 8];
	struct err e = {0};
	struct stat st;
	auto_close int in = -1;

	if (is_full(t))
		return;
	if (home_path(path, sizeof(path), from, to, to_dir, &e) < 0) {
		refuse(t, &e);
		return;
	}
	in = hostfs_open_file(t->host, from, &st, &e);
	if (in < 0 && e.code == EISDIR)
		err_hint(&e, "name its files, as in DIR/*");
	if (in < 0 || check_size(t, from, st.st_size, &e) < 0 ||
		copy_to_home(t, in, from, st.st_size, path, &e) < 0) {
		refuse(t, &e);
		return;
	}
	snprintf(place, sizeof(place), "/home/%s", path);
	arrived(t, path_last(path), st.st_size, place);
	strlist_add(t->arrived, path);
}

/* The names that the words stand for. */
static int collect(struct transfer *t, const struct lexer_word *from, int n,
	struct strlist *names, struct err *e)
{
	size_t max = (size_t)t->limits->max_count + COUNTED;

	for (int i = 0; i < n; i++) {
		struct strlist some = {0};
		auto_free char *path = NULL;

		if (!from[i].is_pattern) {
			path = hostfs_expand(t->host, from[i].s);
			if (!path || strlist_add(names, path) < 0)
				return err_errno(e, "upload");
			continue;
		}
		if (hostfs_glob(t->host, from[i].pattern, max, &some, e) < 0)
			return -1;
		for (size_t k = 0; k < some.n; k++)
			strlist_add(names, some.items[k]);
		if (!some.n) {
			struct err none = {0};

			err_set(&none, "%s matches nothing on the host",
				from[i].s);
			refuse(t, &none);
		}
		strlist_fini(&some);
	}
	return 0;
}

/* Note in the ledger what arrived, with the home's own times, so that a change
 * can be seen; and report what was left out. */
static void upload_end(struct transfer *t)
{
	struct jail_files files = {0};

	report_left(t);
	if (t->arrived->n && jail_home_list(t->jail, &files, NULL) == 0) {
		for (size_t i = 0; i < t->arrived->n; i++)
			for (size_t k = 0; k < files.n; k++)
				if (!strcmp(files.v[k].path,
					    t->arrived->items[i]))
					note(t->ledger, &files.v[k],
						TRANSFER_UPLOADED);
		jail_files_free(&files);
	}
	strlist_fini(t->arrived);
	t->arrived = NULL;
}

int transfer_upload(struct transfer *t, const struct lexer_word *from, int n,
	const char *to, struct err *e)
{
	struct strlist names = {0}, arrived_names = {0};
	const char *dst = transfer_home_name(to ? to : "");
	size_t len = strlen(dst);
	bool to_dir;
	int r = collect(t, from, n, &names, e);

	t->arrived = &arrived_names;
	to_dir = (len && dst[len - 1] == '/') || names.n > 1 || n > 1 ||
		 transfer_home_has_dir(t->jail, dst);
	for (size_t i = 0; r == 0 && i < names.n && !t->cancelled; i++)
		upload_one(t, names.items[i], dst, to_dir);
	upload_end(t);
	strlist_fini(&names);
	return r;
}

/* ---- down ---- */

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

/* Walk to the directory that d->under ends in, making what is missing, without
 * following a link; *name is the last component. Every name is made harmless
 * before it becomes a name of the host. Descriptor, or -1. */
static int walk_to_dir(
	struct down *d, char name[static NAME_MAX + 1], struct err *e)
{
	static const struct path_walk how = {.mode = 0777};
	auto_close int dir = fcntl(d->root, F_DUPFD_CLOEXEC, 3);
	size_t at = (size_t)snprintf(d->place, sizeof(d->place), "%s", d->to);
	const char *rest = d->under;
	char part[NAME_MAX + 1];

	for (;;) {
		int next;

		if (path_next(&rest, part) < 0 ||
			at + strlen(part) + 2 > sizeof(d->place))
			return err_set(e, "%s: the name is too long", d->under);
		if (hostfs_safe_name(part, name) < 0)
			return err_set(e, "%s cannot be a name on the host",
				d->file->path);
		at += (size_t)snprintf(
			d->place + at, sizeof(d->place) - at, "/%s", name);
		if (!*rest)
			return fd_take(&dir);
		next = path_enter(dir, name, &how);
		if (next < 0)
			return err_errno(e, "make directory %s", name);
		fd_drop(&dir);
		dir = next;
	}
}

/* The file at the destination is the one that was downloaded, and the home's
 * has not changed since. */
static bool is_saved(const struct down *d, int dir, const char *name)
{
	struct stat st;
	time_t when;

	return d->t->skip_saved &&
	       transfer_ledger_status(d->t->ledger, d->file, &when) ==
		       TRANSFER_DOWNLOADED &&
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
	const struct jail_file *file = d->file;
	struct io_newfile f;
	int r;

	if (hostfs_create(&f, dir, replace ? name : NULL, e) < 0)
		return -1;
	r = copy(d->t, file->path, file->bytes, in, f.fd, e);
	d->bytes = lseek(f.fd, 0, SEEK_CUR);
	if (r == 0)
		r = hostfs_commit(&f, name, replace, e);
	io_newfile_abort(&f);
	return r;
}

static int download_file(struct down *d, struct err *e)
{
	const struct jail_file *file = d->file;
	char name[NAME_MAX + 1];
	auto_close int dir = -1;
	auto_close int in = -1;
	bool replace;

	if (check_size(d->t, file->path, file->bytes, e) < 0)
		return -1;
	dir = walk_to_dir(d, name, e);
	if (dir < 0 || may_replace(d, dir, name, &replace, e) < 0)
		return -1;
	in = jail_home_open(d->t->jail, file->path, e);
	if (in < 0)
		return -1;
	if (copy_to_host(d, dir, name, replace, in, e) < 0)
		return err_wrap(e, "%s", d->place);
	return 0;
}

static void download_one(struct down *d)
{
	struct err e = {0};

	if (is_full(d->t))
		return;
	if (download_file(d, &e) < 0) {
		if (e.code != EALREADY)
			refuse(d->t, &e);
		return;
	}
	arrived(d->t, d->file->path, d->bytes, d->place);
	note(d->t->ledger, d->file, TRANSFER_DOWNLOADED);
}

/* Whether `w` takes the file, and how much of its path is not kept on the host.
 * A directory of the home stands for all beneath it. */
static bool takes(const struct lexer_word *w, const char *path, size_t *prefix)
{
	const char *name = transfer_home_name(w->s);
	const char *pattern = transfer_home_name(w->pattern);
	const char *rest = w->is_pattern ? NULL : path_beneath(path, name);

	if (rest && *rest) {
		size_t n = strlen(name);

		while (n && name[n - 1] == '/')
			n--;
		while (n && name[n - 1] != '/')
			n--;
		*prefix = n;
		return true;
	}
	if (!transfer_matches(pattern, path))
		return false;
	*prefix = w->is_pattern ? transfer_prefix(pattern) : strlen(path) + 1;
	if (*prefix > strlen(path))
		*prefix = (size_t)(path_last(path) - path);
	return true;
}

static void refuse_kind(struct transfer *t, const struct jail_file *f)
{
	struct err e = {0};

	err_set(&e, "%s is %s, not a regular file", f->path,
		f->type == 'l' ? "a link" : "a device, a FIFO or a socket");
	refuse(t, &e);
}

static void download_matches(struct down *d, const struct lexer_word *w,
	const struct jail_files *files)
{
	bool any = false;
	struct err e = {0};

	for (size_t i = 0; i < files->n && !d->t->cancelled; i++) {
		const struct jail_file *file = &files->v[i];
		size_t prefix;

		if (file->type == 'd' || !takes(w, file->path, &prefix))
			continue;
		any = true;
		d->file = file;
		d->under = file->path + prefix;
		/* A link that is named is read through; a pattern skips it. */
		if (file->type == 'f' || (file->type == 'l' && !w->is_pattern))
			download_one(d);
		else
			refuse_kind(d->t, file);
	}
	if (any || d->t->cancelled)
		return;
	err_set(&e, "%s: there is no such file in the home", w->s);
	refuse(d->t, &e);
}

int transfer_download(struct transfer *t, const struct lexer_word *from, int n,
	const char *to, struct err *e)
{
	auto_free char *dir = hostfs_expand(t->host, to ? to : ".");
	auto_free char *place =
		dir ? hostfs_place(t->host, HOSTFS_WRITE, dir) : NULL;
	auto_close int root = -1;
	struct down d = {.t = t, .to = place};
	struct jail_files files = {0};
	size_t len;

	if (!place)
		return err_errno(e, "download");
	d.root = root = hostfs_open_dir(t->host, HOSTFS_WRITE, dir, e);
	if (root < 0)
		return err_wrap(e, "download to");
	len = strlen(place);
	while (len && place[len - 1] == '/')
		place[--len] = '\0';
	if (jail_home_list(t->jail, &files, e) < 0)
		return -1;
	for (int i = 0; i < n && !t->cancelled; i++)
		download_matches(&d, &from[i], &files);
	report_left(t);
	jail_files_free(&files);
	return 0;
}

int transfer_check_target(
	const struct hostfs *host, const char *to, struct err *e)
{
	auto_free char *path = hostfs_expand(host, to ? to : ".");
	auto_close int dir = -1;
	struct io_newfile f;

	if (!path)
		return err_errno(e, "download");
	dir = hostfs_open_dir(host, HOSTFS_WRITE, path, e);
	if (dir < 0)
		return err_wrap(e, "download to");
	if (hostfs_create(&f, dir, NULL, e) < 0)
		return err_wrap(e, "download to %s", path);
	io_newfile_abort(&f);
	return 0;
}

/* ---- the skeleton: a whole directory of the host into the home ---- */

/* A path of the host; from `root` on it is the path in the home. */
struct tree {
	struct transfer *t;
	size_t root;
	char path[PATH_MAX];
};

static void tree_walk(struct tree *w, size_t len, int depth);

static void tree_visit(struct tree *w, size_t len, const char *name, int depth)
{
	struct err e = {0};
	struct stat st;
	int n = snprintf(w->path + len, sizeof(w->path) - len, "/%s", name);

	if (n < 0 || len + (size_t)n >= sizeof(w->path) || depth == DEPTH_MAX) {
		err_set(&e, "%.*s: too deep", (int)len, w->path);
		refuse(w->t, &e);
	} else if (lstat(w->path, &st) == 0 && S_ISDIR(st.st_mode)) {
		tree_walk(w, len + (size_t)n, depth + 1);
	} else if (stat(w->path, &st) == 0 && S_ISDIR(st.st_mode)) {
		err_set(&e, "%s: a link to a directory is not copied", w->path);
		refuse(w->t, &e);
	} else {
		upload_one(w->t, w->path, w->path + w->root + 1, false);
	}
	w->path[len] = '\0';
}

static int is_entry(const struct dirent *d)
{
	return !path_is_dots(d->d_name);
}

static void tree_walk(struct tree *w, size_t len, int depth)
{
	struct dirent **names;
	struct err e = {0};
	int n = scandir(w->path, &names, is_entry, alphasort);

	if (n < 0) {
		err_errno(&e, "%s", w->path);
		refuse(w->t, &e);
		return;
	}
	for (int i = 0; i < n; i++) {
		if (!w->t->cancelled)
			tree_visit(w, len, names[i]->d_name, depth);
		free(names[i]);
	}
	free(names);
}

/* ---- unasked: the skeleton, -u and -d ---- */

static void say_nothing(void *arg, const char *line)
{
	(void)arg;
	(void)line;
}

/* The administrator named the directory: the roots of a locked session do not
 * bind it, a link in it is read through, and the limits of a transfer do not
 * apply. The home's own do. */
int transfer_skeleton(const struct transfer *with, const char *dir)
{
	struct transfer t = *with;
	struct hostfs free_host = {0};
	struct limits limits = *with->limits;
	struct strlist names = {0};
	struct tree w = {.t = &t};
	struct err e = {0};

	if (!dir)
		return 0;
	limits.max_count = INT_MAX;
	limits.max_file_bytes = INT64_MAX;
	t.limits = &limits;
	t.host = &free_host;
	t.say = say_nothing;
	t.arrived = &names;
	w.root = strlen(dir);
	if (w.root < sizeof(w.path)) {
		strcpy(w.path, dir);
		tree_walk(&w, w.root, 0);
	} else {
		err_set(&e, "home.skeleton: the path is too long");
		refuse(&t, &e);
	}
	upload_end(&t);
	return t.failed ? -1 : 0;
}

/* 0, or -1: something was refused, and that was said. */
static int result(struct transfer *t, int r, const struct err *e)
{
	if (r < 0)
		t->refuse(t->arg, e);
	return r < 0 || t->failed ? -1 : 0;
}

int transfer_upload_pair(
	const struct transfer *with, const char *from, const char *to)
{
	struct transfer t = *with;
	struct lexer_word w = {.s = (char *)from, .pattern = (char *)from};
	struct err e = {0};
	int r = transfer_upload(&t, &w, 1, to, &e);

	return result(&t, r, &e);
}

int transfer_download_pair(
	const struct transfer *with, const char *from, const char *to)
{
	struct transfer t = *with;
	struct lexer_word w = {.s = (char *)from,
		.pattern = (char *)from,
		.is_pattern = strpbrk(from, "*?[") != NULL};
	struct err e = {0};
	int r = transfer_download(&t, &w, 1, to, &e);

	return result(&t, r, &e);
}
