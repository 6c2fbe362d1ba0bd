/* SPDX-License-Identifier: MIT */
/*
 * upload.c - copies of the host's files in the home
 *
 * Runs in:   front end, between cells, and before the first
 * Holds:     the directories that are copied; a few files of each side
 * Trusts:    no name on the host: we open a file without waiting, then look at
 *            it, and do both again when we copy it. The administrator, who
 *            named the skeleton
 * Leaves:    files of the home that are whole, or not there
 */
#include "repl/files/files.h"

#include "jail/base/array.h"
#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/path.h"
#include "jail/jail.h"
#include "repl/text/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Most directories that an upload may have. */
#define DIRS_MAX 20000

struct upload {
	struct transfer *t;
	struct manifest m;
	struct jail_files files; /* of the home */
	int *bases;		 /* descriptors of the directories to copy */
	size_t nbases;
	char *to;  /* the target in the home, no slash at its end; "": home */
	bool into; /* `to` is a directory, and gets the copies */
};

/* ---- the target ---- */

static int no_memory(struct err *e)
{
	return err_errno(e, "upload");
}

/* True if the path has a component "..". */
static bool path_climbs(const char *path)
{
	char name[NAME_MAX + 1];

	while (path_next(&path, name) > 0)
		if (!strcmp(name, ".."))
			return true;
	return false;
}

static int find_target(struct upload *u, const struct lexer_word *from, int n,
	const char *to, struct err *e)
{
	const char *name = transfer_home_name(to ? to : "");
	size_t len = strlen(name);
	bool slash = len && name[len - 1] == '/';

	if (name[0] == '/')
		return err_set(e, "%s is not in the home", name);
	if (path_climbs(name))
		return err_set(e, "%s: leads out of the home", name);
	while (len && name[len - 1] == '/')
		len--;
	u->to = strndup(name, len == 1 && name[0] == '.' ? 0 : len);
	if (!u->to)
		return no_memory(e);
	u->into = slash || n > 1 || from[0].is_pattern ||
		  transfer_has_dir(&u->files, u->to);
	return 0;
}

/* The path in the home for `name`; caller frees, NULL: no memory. */
static char *make_target_path(const struct upload *u, const char *name)
{
	char *s;

	if (!u->into || !*name)
		return strdup(u->to);
	return asprintf(&s, "%s%s%s", u->to, *u->to ? "/" : "", name) < 0 ? NULL
									  : s;
}

/* ---- the sources ---- */

static int add_base(struct upload *u, int fd, struct err *e)
{
	if (array_grow(&u->bases, u->nbases, sizeof(*u->bases)) < 0) {
		close(fd);
		return no_memory(e);
	}
	u->bases[u->nbases++] = fd;
	return (int)u->nbases - 1;
}

static const char *path_in_base(const struct manifest_item *item)
{
	const char *rel = item->from + item->rel;

	rel += strspn(rel, "/");
	return *rel ? rel : ".";
}

/* Open the file or directory of an item: descriptor, or -1 with errno. */
static int open_item(
	const struct upload *u, const struct manifest_item *item, int flags)
{
	int base = u->bases[item->base];

	flags |= O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC;
	return u->t->trusted ? openat(base, path_in_base(item), flags)
			     : hostfs_open_beneath(u->t->host, base,
				       path_in_base(item), flags, true);
}

static void describe_item(struct manifest_item *item, const struct stat *st)
{
	item->mode = st->st_mode & 0777;
	item->bytes = st->st_size;
	item->mtime_ns = io_time_to_ns(&st->st_mtim);
	item->type = S_ISDIR(st->st_mode) ? 'd' : 'f';
}

/* Check that we can read the file, or the file that a link leads to. Returns
 * NULL, or why we cannot. */
static const char *check_file(
	struct upload *u, struct manifest_item *item, bool link)
{
	auto_close int fd = open_item(u, item, 0);
	struct stat st;

	if (fd < 0 && (errno == EXDEV || errno == ELOOP))
		return "is a link that leads out of what is copied";
	if (fd < 0 || fstat(fd, &st) < 0)
		return strerror(errno);
	if (S_ISDIR(st.st_mode) && link)
		return "is a link to a directory, which is not copied";
	if (!S_ISREG(st.st_mode))
		return hostfs_kind(st.st_mode);
	describe_item(item, &st);
	return NULL;
}

/* Add an entry of an open directory. `walk`: a directory comes with all in it.
 */
static int add_entry(struct upload *u, int dir,
	const struct manifest_item *above, const char *name, bool walk,
	struct err *e)
{
	struct manifest_item item = {.walk = walk, .type = 'f'}, *added;
	const char *why = NULL;
	struct stat st = {0};

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		why = strerror(errno);
	else if (S_ISDIR(st.st_mode))
		describe_item(&item, &st);
	else if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		why = hostfs_kind(st.st_mode);
	if (manifest_add_beneath(&u->m, above, name, &item, e) < 0)
		return -1;
	added = &u->m.v[u->m.n - 1];
	if (!why && added->type == 'f')
		why = check_file(u, added, S_ISLNK(st.st_mode));
	if (why) {
		struct err left = {0};

		err_set(&left, "%s %s", added->from, why);
		transfer_leave_out(u->t, &left);
		manifest_drop_last(&u->m);
	}
	if (u->m.n - u->m.files > DIRS_MAX)
		return err_set(e, "%s: more than %d directories", above->from,
			DIRS_MAX);
	return transfer_check_count(u->t, &u->m, e);
}

static int read_dir(struct upload *u, size_t i, struct err *e)
{
	const struct manifest_item above = u->m.v[i]; /* add_entry() moves v */
	DIR *d = io_list_taken(open_item(u, &above, O_DIRECTORY));
	const struct dirent *entry;
	struct err left = {0};
	int r = 0;

	if (!d) {
		err_errno(&left, "%s", above.from);
		transfer_leave_out(u->t, &left);
		return 0;
	}
	while (r == 0 && !transfer_is_cancelled(u->t) && (entry = readdir(d)))
		if (!path_is_dots(entry->d_name))
			r = add_entry(
				u, dirfd(d), &above, entry->d_name, true, e);
	closedir(d);
	return r;
}

/* Read all directories to walk. The manifest is the queue: no recursion, and
 * one open directory at a time. */
static int read_dirs(struct upload *u, struct err *e)
{
	for (size_t i = 0; i < u->m.n; i++)
		if (u->m.v[i].type == 'd' && u->m.v[i].walk &&
			read_dir(u, i, e) < 0)
			return -1;
	return 0;
}

/* Add a directory and all in it, under `to`. */
static int add_tree(
	struct upload *u, const char *path, const char *to, struct err *e)
{
	int fd = u->t->trusted
			 ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
			 : hostfs_open_dir(u->t->host, HOSTFS_READ, path, e);
	int base = fd < 0 ? -1 : add_base(u, fd, e);
	struct manifest_item item = {.from = (char *)path,
		.to = (char *)to,
		.rel = strlen(path),
		.base = base,
		.walk = true};
	struct stat st;

	if (fd < 0 && u->t->trusted)
		return err_errno(e, "%.200s", path);
	if (base < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return err_errno(e, "%s", path);
	describe_item(&item, &st);
	return manifest_add(&u->m, &item, e);
}

/* Add a file that the person named. hostfs_open_file() has followed links, if
 * the session may. */
static int add_file(struct upload *u, const char *path, const char *to,
	const struct stat *st, struct err *e)
{
	struct manifest_item item = {
		.from = (char *)path, .to = (char *)to, .base = -1};

	describe_item(&item, st);
	return manifest_add(&u->m, &item, e);
}

/* Add a hint: the person may have meant the `last` of several words as the
 * target. */
static void hint_at_target(const char *name, bool last, struct err *e)
{
	if (last && e->code == ENOENT && !strchr("/~.", name[0]))
		err_hint(e, "/home/%s is the place of that name in the home",
			name);
}

static int add_named(
	struct upload *u, const struct lexer_word *w, bool last, struct err *e)
{
	auto_free char *path = hostfs_expand(u->t->host, w->s);
	auto_free char *to = NULL;
	const char *name;
	size_t len = path ? strlen(path) : 0;
	struct stat st;
	int fd;

	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
	if (!path)
		return no_memory(e);
	name = path_last(path);
	to = make_target_path(u, path_is_name(name) ? name : "");
	if (!to)
		return no_memory(e);
	fd = hostfs_open_file(u->t->host, path, &st, e);
	if (fd >= 0) {
		close(fd);
		return add_file(u, path, to, &st, e);
	}
	if (e->code == EISDIR && !u->t->one_file)
		return add_tree(u, path, to, e);
	hint_at_target(path, last, e);
	return -1;
}

/* Add the files that match a pattern. Their names in the home do not have the
 * directory that the pattern begins with. */
static int add_matches(
	struct upload *u, const struct lexer_word *w, struct err *e)
{
	auto_free char *pattern = hostfs_expand(u->t->host, w->pattern);
	size_t max = (size_t)u->t->limits->transfer_count + DIRS_MAX;
	size_t prefix = pattern ? transfer_prefix(pattern) : 0;
	struct manifest_item above = {.to = u->to, .base = -1};
	struct strlist names = {0};
	int fd, r = 0;

	if (!pattern || hostfs_glob(u->t->host, pattern, max, &names, e) < 0)
		return pattern ? -1 : no_memory(e);
	if (!names.n)
		return err_set(e, "%s matches nothing on the host", w->s);
	above.from = strndup(names.items[0], prefix);
	fd = above.from ? hostfs_open_dir(u->t->host, HOSTFS_READ,
				  prefix ? above.from : ".", e)
			: no_memory(e);
	above.rel = prefix;
	above.base = fd < 0 ? -1 : add_base(u, fd, e);
	for (size_t i = 0; above.base >= 0 && r == 0 && i < names.n; i++)
		r = add_entry(u, fd, &above, names.items[i] + prefix,
			!transfer_is_deep(pattern), e);
	free(above.from);
	strlist_fini(&names);
	return above.base < 0 ? -1 : r;
}

static int add_sources(
	struct upload *u, const struct lexer_word *from, int n, struct err *e)
{
	for (int i = 0; i < n; i++)
		if ((from[i].is_pattern ? add_matches(u, &from[i], e)
					: add_named(u, &from[i],
						  n > 1 && i == n - 1, e)) < 0)
			return -1;
	return read_dirs(u, e);
}

/* ---- the target: existing files, and room ---- */

static int look_at_target(
	void *upload, struct manifest_item *item, struct err *e)
{
	const struct upload *u = upload;
	const struct jail_file *f = transfer_find(&u->files, item->to);

	if (strlen(item->to) >= JAIL_PATH_MAX)
		return err_set(e, "%s: the name is too long", item->from);
	return f ? transfer_meet(item, f->type == 'd', "/home", e) : 0;
}

static int64_t round_to_pages(int64_t bytes)
{
	const int64_t page = sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

/* Check that the home has room. A replaced file makes room for the new one. */
static int check_room(struct upload *u, struct err *e)
{
	const struct limits *l = u->t->limits;
	int64_t bytes = 0, left = l->home_bytes - u->files.used_bytes;
	int files = 0, more = l->home_files - u->files.used_files;
	char need[TEXT_HUMAN], have[TEXT_HUMAN], all[TEXT_HUMAN];

	for (size_t i = 0; i < u->m.n; i++) {
		const struct manifest_item *item = &u->m.v[i];
		const struct jail_file *f =
			item->there ? transfer_find(&u->files, item->to) : NULL;

		if (item->left)
			continue;
		files += !f;
		if (item->type == 'f')
			bytes += round_to_pages(item->bytes) -
				 (f ? f->blocks_bytes : 0);
	}
	if (bytes > left)
		err_set(e,
			"there is no room in the home: %s are needed, and "
			"of %s (home.size) %s are free",
			text_size(need, (uint64_t)bytes),
			text_size(all, (uint64_t)l->home_bytes),
			text_size(have, left > 0 ? (uint64_t)left : 0));
	else if (files > more)
		err_set(e,
			"there is no room in the home for %d more files and "
			"directories: of %d (home.files) %d are free",
			files, l->home_files, more > 0 ? more : 0);
	else
		return 0;
	return err_hint(e, ":rm and :wipe make room");
}

static int check_target(struct upload *u, struct err *e)
{
	if (transfer_check_target(u->t, &u->m, "/home", look_at_target, u, e) <
		0)
		return -1;
	return u->t->partial ? 0 : check_room(u, e);
}

/* ---- the copy, a few files at a time ---- */

struct upload_batch {
	int n;
	struct manifest_item *items[JAIL_MANY_MAX];
	const char *paths[JAIL_MANY_MAX];
	int in[JAIL_MANY_MAX], out[JAIL_MANY_MAX];
	uint32_t tokens[JAIL_MANY_MAX];
	struct jail_end ends[JAIL_MANY_MAX];
};

/* Open the file again: it may have changed since we looked at it. */
static int open_source(
	struct upload *u, struct manifest_item *item, struct err *e)
{
	struct stat st;
	int fd;

	if (item->base < 0)
		fd = hostfs_open_file(u->t->host, item->from, &st, e);
	else
		fd = open_item(u, item, 0);
	if (fd < 0)
		return item->base < 0 ? -1 : err_errno(e, "%s", item->from);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return err_set(e, "%s is no file any more", item->from);
	}
	describe_item(item, &st);
	return fd;
}

/* Fill the batch with files from the item *i on. */
static void fill_batch(struct upload *u, struct upload_batch *b, size_t *i)
{
	struct err e = {0};

	for (b->n = 0; b->n < JAIL_MANY_MAX && *i < u->m.n; ++*i) {
		struct manifest_item *item = &u->m.v[*i];
		int fd;

		if (item->left || item->type != 'f')
			continue;
		fd = open_source(u, item, &e);
		if (fd < 0) {
			transfer_leave_out(u->t, &e);
			continue;
		}
		b->items[b->n] = item;
		b->paths[b->n] = item->to;
		b->in[b->n++] = fd;
	}
}

/* Fill one file of the home: 1: it is whole; 0: it was left out; -1 with e:
 * copy no more files. */
static int fill_file(
	struct upload *u, struct upload_batch *b, int i, struct err *e)
{
	struct manifest_item *item = b->items[i];
	int64_t bytes;

	if (transfer_is_cancelled(u->t))
		return -1;
	if (transfer_copy(u->t, item->from, b->in[i], b->out[i], &bytes, e) ==
		0) {
		item->bytes = bytes;
		return 1;
	}
	if (e->code == EINTR)
		return -1;
	err_wrap(e, "%s", item->from);
	if (e->code == ENOSPC)
		return transfer_explain_full(u->t->jail, u->t->limits, e);
	transfer_leave_out(u->t, e);
	return 0;
}

static void commit_files(struct upload *u, struct upload_batch *b, int n)
{
	int at = 0;

	while (at < n) {
		struct err e = {0};
		int some = jail_home_commit_many(
			u->t->jail, b->ends + at, n - at, &e);

		for (int i = at; i < at + some; i++) {
			struct manifest_item *item = b->items[i];

			item->done = true;
			u->t->done++;
			ledger_note(u->t->ledger, item->to, item->bytes,
				item->mtime_ns, LEDGER_UPLOADED);
		}
		at += some;
		if (at < n) {
			transfer_explain_full(u->t->jail, u->t->limits, &e);
			transfer_leave_out(u->t, &e);
			at = e.kind == ERR_JAIL ? n : at + 1;
		}
	}
}

/* Move a whole file to the front of the batch. */
static void keep_filled(struct upload_batch *b, int at, int i, bool overwrite)
{
	const struct manifest_item *item = b->items[i];

	b->items[at] = b->items[i];
	b->ends[at] = (struct jail_end){.token = b->tokens[i],
		.replace = item->there || overwrite,
		.mode = item->mode,
		.mtime_ns = item->mtime_ns};
}

static int copy_batch(struct upload *u, struct upload_batch *b, struct err *e)
{
	int created = jail_home_create_many(
		u->t->jail, b->paths, b->n, 0600, b->out, b->tokens, e);
	int whole = 0, r = 0;

	if (created < b->n) {
		err_wrap(e, "%s", b->items[created]->from);
		r = transfer_explain_full(u->t->jail, u->t->limits, e);
	}
	for (int i = 0; i < created; i++) {
		int some = r < 0 ? -1 : fill_file(u, b, i, e);

		close(b->out[i]);
		if (some > 0)
			keep_filled(b, whole++, i, u->t->overwrite);
		else
			jail_home_abort(u->t->jail, b->tokens[i]);
		if (some < 0)
			r = -1;
	}
	commit_files(u, b, whole);
	return r;
}

/* Copy all files. 0, or -1 with e; without a message if the person has
 * interrupted us. */
static int copy_files(struct upload *u, struct err *e)
{
	struct upload_batch b;
	int r = 0;

	for (size_t i = 0; r == 0 && i < u->m.n;) {
		fill_batch(u, &b, &i);
		if (b.n)
			r = copy_batch(u, &b, e);
		for (int k = 0; k < b.n; k++)
			close(b.in[k]);
	}
	return r;
}

/* Make directories after their files: a new file changes a directory's time. */
static int make_dirs(struct upload *u, struct err *e)
{
	const char *paths[JAIL_MANY_MAX];
	struct jail_end ends[JAIL_MANY_MAX];
	struct manifest_item *items[JAIL_MANY_MAX];
	int n = 0;

	for (size_t i = u->m.n; i-- > 0;) {
		struct manifest_item *item = &u->m.v[i];

		if (item->type == 'd' && !item->left && !item->there &&
			!item->implied) {
			items[n] = item;
			paths[n] = item->to;
			ends[n++] = (struct jail_end){.mode = item->mode | 0700,
				.mtime_ns = item->mtime_ns};
		}
		if (n < JAIL_MANY_MAX && (i || !n))
			continue;
		if (jail_home_mkdir_many(u->t->jail, paths, ends, n, e) < n)
			return transfer_explain_full(
				u->t->jail, u->t->limits, e);
		while (n)
			items[--n]->done = true;
	}
	return 0;
}

/* ---- the whole upload ---- */

static int plan_upload(struct upload *u, const struct lexer_word *from, int n,
	const char *to, struct err *e)
{
	struct transfer *t = u->t;

	if (jail_home_list(t->jail, &u->files, e) < 0 ||
		find_target(u, from, n, to, e) < 0 ||
		add_sources(u, from, n, e) < 0 || t->cancelled ||
		manifest_settle(&u->m, transfer_object, t, e) < 0 ||
		transfer_check(t, &u->m, e) < 0)
		return -1;
	return check_target(u, e);
}

static int copy_items(struct upload *u, struct err *e)
{
	if (transfer_is_cancelled(u->t) || copy_files(u, e) < 0)
		return -1;
	return make_dirs(u, e);
}

static void upload_fini(struct upload *u)
{
	size_t skip = u->to && u->into ? strlen(u->to) + (*u->to != '\0') : 0;

	if (u->to && !u->into)
		skip = strlen(u->to) - strlen(path_last(u->to));
	transfer_end(u->t, &u->m, "/home", skip);
	jail_files_free(&u->files);
	manifest_free(&u->m);
	while (u->nbases)
		close(u->bases[--u->nbases]);
	free(u->bases);
	free(u->to);
}

int upload_run(struct transfer *t, const struct lexer_word *from, int n,
	const char *to, struct err *e)
{
	struct upload u = {.t = t};
	int r = plan_upload(&u, from, n, to, e);

	if (r == 0)
		r = copy_items(&u, e);
	upload_fini(&u);
	return t->cancelled ? 0 : r;
}

/* ---- uploads without a command ---- */

/* The administrator named the directory: the roots of a locked session do not
 * apply, we follow links in it, and the limits of a transfer do not apply. The
 * home's own limits do. */
int upload_skeleton(const struct transfer *with, const char *dir)
{
	struct transfer t = *with;
	struct hostfs free_host = {0};
	struct upload u = {.t = &t, .to = strdup("")};
	struct err e = {0};
	int r;

	if (!dir) {
		free(u.to);
		return 0;
	}
	t.host = &free_host;
	t.trusted = t.partial = t.overwrite = true;
	r = add_tree(&u, dir, "", &e);
	if (r < 0)
		err_wrap(&e, "home.skeleton");
	else
		r = read_dirs(&u, &e);
	if (r == 0)
		r = manifest_settle(&u.m, transfer_object, &t, &e);
	if (r == 0)
		r = copy_items(&u, &e);
	upload_fini(&u);
	return transfer_result(&t, r, &e);
}

int upload_pair(const struct transfer *with, const char *from, const char *to)
{
	struct transfer t = *with;
	struct lexer_word w = {.s = (char *)from, .pattern = (char *)from};
	struct err e = {0};
	int r = upload_run(&t, &w, 1, to, &e);

	return transfer_result(&t, r, &e);
}
