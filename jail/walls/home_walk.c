/* SPDX-License-Identifier: MIT */
/*
 * home_walk.c - list and remove whole trees of the home
 *
 * Runs in:   warden
 * Trusts:    nothing in the home: a tree may be as deep as there are inodes,
 *            and may be moved about while it is walked
 * Leaves:    a list in a sealed file; or one tree less
 *
 * Neither walk recurses, and neither holds more than one directory open.
 */
#include "home_impl.h"

#include "jail/base/err.h"
#include "jail/base/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

/* Longest listing, and what an entry takes beside its path. */
#define LIST_BYTES_MAX (12 << 20)
#define RECORD_BYTES 96
#define PATH_BYTES 4096

static int is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/* Open the directory `path` beneath `dir` for reading, or NULL with errno. */
static DIR *dir_open(int dir, const char *path)
{
	auto_close int fd = home_open_beneath(
		dir, path, O_RDONLY | O_DIRECTORY, HOME_RESOLVE_WRITE);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (d)
		fd = -1; /* its own now */
	return d;
}

/* ---- listing ---- */

/*
 * The list is its own queue: each directory in it is opened in turn, by its
 * path from the root, and what it holds is added at the end.
 */
struct listing {
	const struct home *h;
	dev_t dev; /* what is mounted in the home is not of it */
	FILE *out;
	char *text; /* all of it, after a flush */
	size_t size;
	int n, full;
	int truncated; /* not all of it could be named */
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
		st.st_dev != l->dev || home_is_upload(l->h, name))
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
	fprintf(l->out, "%c %lld %lld %lld %u %s%c", type_letter(st.st_mode),
		(long long)st.st_size, (long long)st.st_blocks * 512,
		(long long)st.st_mtime, (unsigned)st.st_nlink, path, '\0');
}

/* 0, or -1 with errno when it cannot be opened. */
static int list_dir(struct listing *l, const char *path)
{
	DIR *d = dir_open(l->h->root, *path ? path : ".");
	struct dirent *de;

	if (!d)
		return -1;
	while (!l->full && (de = readdir(d)))
		if (!is_dots(de->d_name))
			list_one(l, dirfd(d), path, de->d_name);
	closedir(d);
	return 0;
}

/* A record's path: what is after the fifth space. */
static const char *record_path(const char *record)
{
	for (int i = 0; i < 5; i++)
		record = strchr(record, ' ') + 1;
	return record;
}

/* A directory that is not there any more holds nothing. */
static int list_all(struct listing *l, struct err *e)
{
	char path[PATH_BYTES];
	size_t at = 0;

	if (list_dir(l, "") < 0)
		return home_fail_open(e, "list the home");
	while (!l->full && fflush(l->out) == 0 && at < l->size) {
		/* What is written next may move the text. */
		char type = l->text[at];

		strcpy(path, record_path(l->text + at));
		at += strlen(l->text + at) + 1;
		if (type == 'd')
			list_dir(l, path);
	}
	return 0;
}

int home_list(struct home *h, int *truncated, struct err *e)
{
	struct listing l = {.h = h};
	auto_free char *text = NULL;
	struct stat st;
	int r, fd;

	if (fstat(h->root, &st) < 0)
		return err_errno(e, "list the home");
	l.dev = st.st_dev;
	l.out = open_memstream(&l.text, &l.size);
	if (!l.out)
		return err_errno(e, "list the home");
	r = list_all(&l, e);
	if (fclose(l.out) != 0 && r == 0)
		r = err_errno(e, "list the home");
	text = l.text;
	if (r < 0)
		return -1;
	*truncated = l.truncated;
	fd = io_sealed_memfd("cellblock-list", text, l.size);
	return fd < 0 ? err_errno(e, "list the home") : fd;
}

/* ---- removing ---- */

/*
 * Down into the first directory that is not empty, and when it is, up again:
 * by "..", which is believed only if it is the directory we came from.
 */
struct removal {
	DIR *at;
	ino_t *above; /* the directories above it in the tree */
	size_t depth, room;
	dev_t dev;
	int64_t left; /* names there can have been at the start */
};

/* 0 it is gone, -1 with errno. */
static int remove_name(int dir, const char *name)
{
	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR)
		return -1;
	return unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0
									 : -1;
}

/* Takes `d`, which may be NULL. */
static int removal_enter(struct removal *r, DIR *d)
{
	if (!d)
		return -1;
	if (r->at)
		closedir(r->at);
	r->at = d;
	return 0;
}

static int removal_down(struct removal *r, const char *name)
{
	struct stat st;

	if (r->depth == r->room) {
		size_t room = r->room ? 2 * r->room : 64;
		ino_t *more = realloc(r->above, room * sizeof(*more));

		if (!more)
			return -1;
		r->above = more;
		r->room = room;
	}
	if (fstat(dirfd(r->at), &st) < 0)
		return -1;
	r->above[r->depth++] = st.st_ino;
	return removal_enter(r, dir_open(dirfd(r->at), name));
}

static int removal_up(struct removal *r)
{
	auto_close int fd = sys_openat2(dirfd(r->at), "..",
		O_RDONLY | O_DIRECTORY, 0, SYS_RESOLVE_NO_XDEV);
	struct stat st;
	DIR *d;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (st.st_dev != r->dev || st.st_ino != r->above[--r->depth]) {
		errno = EAGAIN; /* it was moved */
		return -1;
	}
	d = fdopendir(fd);
	if (d)
		fd = -1;
	return removal_enter(r, d);
}

/* Remove what is in the directory until one in it is not empty, and go there:
 * 1; 0 when nothing is left in it; -1 with errno. */
static int removal_step(struct removal *r)
{
	struct dirent *de;

	while ((de = readdir(r->at))) {
		if (is_dots(de->d_name))
			continue;
		if (remove_name(dirfd(r->at), de->d_name) == 0) {
			if (r->left-- > 0)
				continue;
			errno = EAGAIN; /* as fast as they go, others come */
			return -1;
		}
		if (errno != ENOTEMPTY)
			return -1;
		return removal_down(r, de->d_name) < 0 ? -1 : 1;
	}
	return 0;
}

/* Leave the directory `name` of `dir` empty. 0, or -1 with errno. */
static int empty(const struct home *h, int dir, const char *name)
{
	struct removal r = {.at = dir_open(dir, name)};
	struct statfs fs;
	struct stat st;
	int went = -1;

	if (r.at && fstat(h->root, &st) == 0 && fstatfs(h->root, &fs) == 0) {
		r.dev = st.st_dev;
		r.left = (int64_t)fs.f_files;
		went = 1;
	}
	while (went > 0) {
		went = removal_step(&r);
		if (went == 0 && r.depth > 0)
			went = removal_up(&r) < 0 ? -1 : 1;
	}
	free(r.above);
	if (r.at)
		closedir(r.at);
	return went;
}

static int fail_remove(struct err *e, const char *path)
{
	if (errno == EAGAIN)
		return err_set(e, "%s: it changes while it is removed", path);
	return err_errno(e, "%s", path);
}

int home_remove(struct home *h, const char *path, struct err *e)
{
	auto_close int dir = -1;
	const char *name = NULL, *slash = strrchr(path, '/');
	char parent[PATH_BYTES];
	int r;

	if (path[0] == '/' || strlen(path) >= sizeof(parent))
		return err_set(e, "%s: not in the home", path);
	name = slash ? slash + 1 : path;
	if (!*name || is_dots(name))
		return err_set(e, "%s: not a file name", path);
	snprintf(parent, sizeof(parent), "%.*s", (int)(name - path), path);
	dir = home_open_beneath(h->root, *parent ? parent : ".",
		O_RDONLY | O_DIRECTORY, HOME_RESOLVE_WRITE);
	if (dir < 0)
		return home_explain_open(e, path);
	if (faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return err_errno(e, "%s", path);
	r = remove_name(dir, name);
	if (r < 0 && errno == ENOTEMPTY)
		r = empty(h, dir, name) < 0 ? -1 : remove_name(dir, name);
	return r < 0 ? fail_remove(e, path) : 0;
}
