/* SPDX-License-Identifier: MIT */
/*
 * home.c - files of the session's home, reached without trusting any of it
 *
 * Runs in:   warden
 * Trusts:    the kernel's openat2(): it stays beneath the root, crosses no
 *            mount, follows no magic link, and for writing follows no link.
 *            Nothing in the home: a tree may be as deep as there are inodes,
 *            and the jail may move it while it is walked
 * Leaves:    descriptors of regular files, whole uploaded files, a list
 *
 * The jail may be running or stopped meanwhile: nothing here relies on a name
 * meaning the same thing twice.
 */
#include "jail/walls/walls.h"

#include "jail/base/array.h"
#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/path.h"
#include "jail/base/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#define RESOLVE_READ                                                           \
	(SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_MAGICLINKS | SYS_RESOLVE_NO_XDEV)
#define RESOLVE_WRITE (RESOLVE_READ | SYS_RESOLVE_NO_SYMLINKS)

/* Longest listing, and what an entry takes beside its path. */
#define LIST_BYTES_MAX (12 << 20)
#define RECORD_BYTES 112
#define PATH_BYTES 4096

/* ---- opening ---- */

/* Open beneath a directory of the home: descriptor, or -1 with errno. */
static int open_beneath(int dir, const char *path, int flags, unsigned resolve)
{
	return sys_openat2(dir, path, flags | O_NOCTTY | O_NONBLOCK, resolve);
}

static int dir_fd(int dir, const char *path)
{
	return open_beneath(dir, path, O_RDONLY | O_DIRECTORY, RESOLVE_WRITE);
}

/* Report a failed open_beneath(): `what` is what we were doing to the home
 * itself, or a path of the person's. */
static int fail_open(struct err *e, const char *what)
{
	const char *remedy = sys_openat2_remedy(errno);

	err_errno(e, "%s", what);
	return remedy ? err_hint(e, "%s", remedy) : -1;
}

static int fail_path(struct err *e, const char *path)
{
	if (errno == EXDEV || errno == ELOOP)
		return err_set(e, "%s: leads out of the home", path);
	if (errno == ENXIO)
		return err_set(e, "%s: not a regular file", path);
	return fail_open(e, path);
}

int home_open(struct home *h, const char *path, struct err *e)
{
	auto_close int fd = open_beneath(h->root, path, O_RDONLY, RESOLVE_READ);
	struct stat st;

	if (fd < 0)
		return fail_path(e, path);
	if (fstat(fd, &st) < 0)
		return err_errno(e, "%s", path);
	if (S_ISDIR(st.st_mode))
		return err_set(e, "%s: is a directory", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, "%s: not a regular file", path);
	io_set_nonblock(fd, 0);
	return fd_take(&fd);
}

static int walk_making(struct home *h, const char *path, mode_t mode)
{
	const struct path_walk how = {.mode = mode, .resolve = RESOLVE_WRITE};
	auto_close int root = dir_fd(h->root, ".");

	return root < 0 ? -1 : path_walk(root, path, &how);
}

/* Open the directory that holds `path`: descriptor, or -1 with e. Missing
 * directories are made with mode `make`, or not at all when that is 0. */
static int parent_open(
	struct home *h, const char *path, mode_t make, struct err *e)
{
	const char *name = path_last(path);
	char parent[PATH_BYTES];
	int dir;

	if (path[0] == '/')
		return err_set(e, "%s: leads out of the home", path);
	if (strlen(name) > NAME_MAX || strlen(path) >= sizeof(parent))
		return err_set(e, "%s: name too long", path);
	if (!path_is_name(name))
		return err_set(e, "%s: not a file name", path);
	snprintf(parent, sizeof(parent), "%.*s", (int)(name - path), path);
	dir = dir_fd(h->root, *parent ? parent : ".");
	if (dir < 0 && errno == ENOENT && make)
		dir = walk_making(h, parent, make);
	return dir < 0 ? fail_path(e, path) : dir;
}

/* ---- use ---- */

void home_usage(const struct home *h, int64_t *bytes, int *files)
{
	struct statfs s;

	*bytes = 0;
	*files = 0;
	if (fstatfs(h->root, &s) < 0)
		return;
	*bytes = (int64_t)(s.f_blocks - s.f_bfree) * (int64_t)s.f_bsize;
	*files = (int)(s.f_files - s.f_ffree) - h->own;
}

/* ---- uploads: written under a temporary name, then renamed ---- */

/* The upload with this token; token 0 finds a free slot. */
static struct home_upload *upload_find(struct home *h, uint32_t token)
{
	for (int i = 0; i < HOME_TOKENS_MAX; i++)
		if (h->uploads[i].token == token)
			return &h->uploads[i];
	return NULL;
}

static int is_upload(const struct home *h, const char *name)
{
	for (int i = 0; i < HOME_TOKENS_MAX; i++)
		if (h->uploads[i].token &&
			!strcmp(h->uploads[i].file.temp, name))
			return 1;
	return 0;
}

int home_create(struct home *h, const char *path, mode_t mode, uint32_t *token,
	struct err *e)
{
	struct home_upload *u = upload_find(h, 0);
	auto_close int dir = -1;

	if (!u)
		return err_set(e, "%s: too many files at once", path);
	dir = parent_open(h, path, 0755, e);
	if (dir < 0)
		return -1;
	if (io_newfile_create(&u->file, dir, 0600) < 0)
		return err_errno(e, "%s", path);
	strcpy(u->name, path_last(path));
	u->mode = mode;
	*token = u->token = ++h->last_token;
	return u->file.fd;
}

/* Where `end` has no mode, the time stays that of the last change. */
static int finish_file(int fd, int mode, const struct jail_end *end)
{
	const struct timespec t[2] = {
		{.tv_nsec = UTIME_OMIT}, io_time_from_ns(end->mtime_ns)};

	if (fchmod(fd, (mode_t)mode & 0777) < 0)
		return -1;
	if (end->mode < 0)
		return 0;
	return futimens(fd, t);
}

int home_commit(struct home *h, const struct jail_end *end, struct err *e)
{
	struct home_upload *u = end->token ? upload_find(h, end->token) : NULL;
	int r;

	if (!u)
		return err_set(e, "no such upload");
	r = finish_file(
		u->file.fd, end->mode < 0 ? (int)u->mode : end->mode, end);
	if (r == 0)
		r = io_newfile_commit(&u->file, u->name, end->replace);
	if (r < 0)
		err_errno(e, "%s", u->name);
	io_newfile_abort(&u->file);
	u->token = 0;
	return r;
}

int home_abort(struct home *h, uint32_t token, struct err *e)
{
	struct home_upload *u = token ? upload_find(h, token) : NULL;

	if (!u)
		return err_set(e, "no such upload");
	io_newfile_abort(&u->file);
	u->token = 0;
	return 0;
}

int home_mkdir(struct home *h, const char *path, const struct jail_end *end,
	struct err *e)
{
	const struct path_walk how = {.mode = 0700, .resolve = RESOLVE_WRITE};
	auto_close int above = parent_open(h, path, 0755, e);
	auto_close int dir = -1;

	if (above < 0)
		return -1;
	dir = path_enter(above, path_last(path), &how);
	if (dir < 0)
		return fail_path(e, path);
	return finish_file(dir, end->mode < 0 ? 0755 : end->mode, end) < 0
		       ? err_errno(e, "%s", path)
		       : 0;
}

void home_init(struct home *h, int root)
{
	int64_t bytes;

	*h = (struct home){.root = root};
	home_usage(h, &bytes, &h->own);
}

void home_share(struct home *h, const struct home *of)
{
	*h = (struct home){.root = of->root, .own = of->own};
}

void home_fini(struct home *h)
{
	for (int i = 0; i < HOME_TOKENS_MAX; i++)
		if (h->uploads[i].token) {
			fd_drop(&h->uploads[i].file.fd);
			fd_drop(&h->uploads[i].file.dir);
		}
	fd_drop(&h->root);
}

/* ---- listing: no recursion, one directory open at a time ---- */

/*
 * The list is its own queue: each directory in it is opened in turn, by its
 * path from the root, and its entries are added at the end.
 */
struct listing {
	const struct home *h;
	dev_t dev; /* entries of other mounts are not the session's */
	FILE *out;
	char *text; /* all of it, after a flush */
	size_t size;
	int n, full, truncated;
};

static char type_letter(mode_t mode)
{
	if (S_ISREG(mode))
		return 'f';
	if (S_ISDIR(mode))
		return 'd';
	return S_ISLNK(mode) ? 'l' : 'o';
}

static void list_one(
	struct listing *l, int dir, const char *above, const char *name)
{
	char path[PATH_BYTES];
	struct stat st;
	int n;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		st.st_dev != l->dev || is_upload(l->h, name))
		return;
	n = snprintf(
		path, sizeof(path), "%s%s%s", above, *above ? "/" : "", name);
	l->full = l->n == HOME_LIST_MAX ||
		  ftell(l->out) + n + RECORD_BYTES > LIST_BYTES_MAX;
	if (l->full || n >= (int)sizeof(path)) {
		l->truncated = 1;
		return;
	}
	l->n++;
	fprintf(l->out, "%c %o %lld %lld %lld %u %s%c", type_letter(st.st_mode),
		(unsigned)st.st_mode & 0777, (long long)st.st_size,
		(long long)st.st_blocks * 512,
		(long long)io_time_to_ns(&st.st_mtim), (unsigned)st.st_nlink,
		path, '\0');
}

/* 0, or -1 with errno when the directory cannot be opened. */
static int list_dir(struct listing *l, const char *path)
{
	DIR *d = io_list_taken(dir_fd(l->h->root, *path ? path : "."));
	struct dirent *de;

	if (!d)
		return -1;
	while (!l->full && (de = readdir(d)))
		if (!path_is_dots(de->d_name))
			list_one(l, dirfd(d), path, de->d_name);
	closedir(d);
	return 0;
}

/* The path of a record stands after its sixth space. */
static const char *record_path(const char *record)
{
	for (int i = 0; i < 6; i++)
		record = strchr(record, ' ') + 1;
	return record;
}

static int list_all(struct listing *l, struct err *e)
{
	char path[PATH_BYTES];
	size_t at = 0;

	if (list_dir(l, "") < 0)
		return fail_open(e, "list the home");
	while (!l->full && fflush(l->out) == 0 && at < l->size) {
		char type = l->text[at];

		/* Copied, because new records may move the text. */
		strcpy(path, record_path(l->text + at));
		at += strlen(l->text + at) + 1;
		/* A directory that is gone by now holds nothing. */
		if (type == 'd')
			list_dir(l, path);
	}
	return 0;
}

char *home_list(struct home *h, size_t *n, int *truncated, struct err *e)
{
	struct listing l = {.h = h};
	struct stat st;
	int r = -1;

	if (fstat(h->root, &st) == 0)
		l.out = open_memstream(&l.text, &l.size);
	if (!l.out) {
		err_errno(e, "list the home");
		return NULL;
	}
	l.dev = st.st_dev;
	r = list_all(&l, e);
	if (fclose(l.out) != 0 && r == 0)
		r = err_errno(e, "list the home");
	if (r < 0) {
		free(l.text);
		return NULL;
	}
	*n = l.size;
	*truncated = l.truncated;
	return l.text;
}

/* ---- removing: no recursion, one directory open at a time ---- */

/*
 * The walk goes down into the first directory that is not empty. Once that is
 * empty the walk goes up again by "..", and checks that "..", which the jail
 * may have moved, is the directory the walk came from.
 */
struct removal {
	DIR *at;
	ino_t *above; /* the directories above it in the tree */
	size_t depth;
	dev_t dev;
	int64_t left; /* no more names than this existed at the start */
};

/* 0 when the name is gone, -1 with errno. */
static int remove_name(int dir, const char *name)
{
	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR)
		return -1;
	return unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0
									 : -1;
}

/* Takes `fd`, which may be -1. */
static int removal_enter(struct removal *r, int fd)
{
	DIR *d = io_list_taken(fd);

	if (!d)
		return -1;
	closedir(r->at);
	r->at = d;
	return 0;
}

static int removal_down(struct removal *r, const char *name)
{
	struct stat st;

	if (array_grow(&r->above, r->depth, sizeof(*r->above)) < 0 ||
		fstat(dirfd(r->at), &st) < 0)
		return -1;
	r->above[r->depth++] = st.st_ino;
	return removal_enter(r, dir_fd(dirfd(r->at), name));
}

static int removal_up(struct removal *r)
{
	auto_close int fd = sys_openat2(dirfd(r->at), "..",
		O_RDONLY | O_DIRECTORY, SYS_RESOLVE_NO_XDEV);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (st.st_dev != r->dev || st.st_ino != r->above[--r->depth]) {
		errno = EAGAIN; /* it was moved */
		return -1;
	}
	return removal_enter(r, fd_take(&fd));
}

/* Remove the names in the directory up to a directory that is not empty, and
 * go down into that: 1; 0 when no name is left; -1 with errno. */
static int removal_step(struct removal *r)
{
	struct dirent *de;

	while ((de = readdir(r->at))) {
		if (path_is_dots(de->d_name))
			continue;
		if (remove_name(dirfd(r->at), de->d_name) == 0) {
			if (r->left-- > 0)
				continue;
			errno = EAGAIN; /* new ones are made meanwhile */
			return -1;
		}
		if (errno != ENOTEMPTY)
			return -1;
		return removal_down(r, de->d_name) < 0 ? -1 : 1;
	}
	return 0;
}

/* Empty the directory `name` of `dir`. 0, or -1 with errno. */
static int empty_directory(const struct home *h, int dir, const char *name)
{
	struct removal r = {.at = io_list_taken(dir_fd(dir, name))};
	struct statfs fs = {0};
	struct stat st = {0};
	int went = 1;

	if (!r.at)
		return -1;
	if (fstat(h->root, &st) < 0 || fstatfs(h->root, &fs) < 0)
		went = -1;
	r.dev = st.st_dev;
	r.left = (int64_t)fs.f_files;
	while (went > 0) {
		went = removal_step(&r);
		if (went == 0 && r.depth > 0)
			went = removal_up(&r) < 0 ? -1 : 1;
	}
	free(r.above);
	closedir(r.at);
	return went;
}

int home_remove(struct home *h, const char *path, struct err *e)
{
	auto_close int dir = parent_open(h, path, 0, e);
	const char *name = path_last(path);
	int r;

	if (dir < 0)
		return -1;
	if (faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return err_errno(e, "%s", path);
	r = remove_name(dir, name);
	if (r < 0 && errno == ENOTEMPTY)
		r = empty_directory(h, dir, name) < 0 ? -1
						      : remove_name(dir, name);
	if (r < 0 && errno == EAGAIN)
		return err_set(e, "%s: it changes while it is removed", path);
	return r < 0 ? err_errno(e, "%s", path) : 0;
}
