/* SPDX-License-Identifier: MIT */
/*
 * home.c - files of the session's home, reached without trusting any of it
 *
 * Runs in:   warden
 * Trusts:    the kernel's openat2(): beneath the root, across no mount,
 *            through no magic link, and for writing through no link at all
 * Leaves:    whole files only: what is written is renamed into place
 *
 * The jail may be running or stopped while this runs: nothing here relies on
 * a name meaning the same thing twice.
 */
#include "home.h"

#include "err.h"
#include "io.h"
#include "sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#define RESOLVE_READ                                                           \
	(SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_MAGICLINKS | SYS_RESOLVE_NO_XDEV)
#define RESOLVE_WRITE (RESOLVE_READ | SYS_RESOLVE_NO_SYMLINKS)
/* Deepest tree that is listed or removed. */
#define DEPTH_MAX 64
/* Longest listing, and what an entry takes beside its path. */
#define LIST_BYTES_MAX (12 << 20)
#define RECORD_BYTES 96

struct home_upload {
	uint32_t token;
	int dir; /* where it goes */
	char temp[40];
	char name[256];
};

void home_init(struct home *h, int root)
{
	*h = (struct home){.root = root};
}

static void upload_free(struct home_upload **u)
{
	if (!*u)
		return;
	close((*u)->dir);
	free(*u);
	*u = NULL;
}

void home_fini(struct home *h)
{
	for (int i = 0; i < HOME_TOKENS_MAX; i++)
		upload_free(&h->uploads[i]);
	fd_drop(&h->root);
}

/* Open beneath the root. `path` may not be absolute or empty. */
static int open_beneath(int root, const char *path, int flags, int resolve)
{
	return sys_openat2(root, path,
		flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0,
		(uint64_t)resolve);
}

static int fail_open(struct err *e, const char *what)
{
	const char *remedy = sys_openat2_remedy(errno);

	err_errno(e, "%s", what);
	return remedy ? err_hint(e, "%s", remedy) : -1;
}

static int explain_open(struct err *e, const char *path)
{
	switch (errno) {
	case EXDEV:
	case ELOOP:
		return err_set(e, "%s: leads out of the home", path);
	case ENXIO:
		return err_set(e, "%s: not a regular file", path);
	}
	return fail_open(e, path);
}

int home_open(struct home *h, const char *path, struct err *e)
{
	auto_close int fd = open_beneath(h->root, path, O_RDONLY, RESOLVE_READ);
	struct stat st;

	if (fd < 0)
		return explain_open(e, path);
	if (fstat(fd, &st) < 0)
		return err_errno(e, "%s", path);
	if (S_ISDIR(st.st_mode))
		return err_set(e, "%s: is a directory", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, "%s: not a regular file", path);
	io_set_nonblock(fd, 0);
	return fd_take(&fd);
}

/* The directory that will hold `path`, made where it is missing; *name is
 * the last component. */
static int parent_open(
	struct home *h, const char *path, const char **name, struct err *e)
{
	auto_close int dir = open_beneath(
		h->root, ".", O_RDONLY | O_DIRECTORY, RESOLVE_WRITE);
	const char *at = path, *slash;
	char part[256];

	if (dir < 0)
		return fail_open(e, "open the home");
	while ((slash = strchr(at, '/'))) {
		size_t n = (size_t)(slash - at);
		int next;

		if (n >= sizeof(part))
			return err_set(e, "%s: name too long", path);
		memcpy(part, at, n);
		part[n] = '\0';
		at = slash + 1;
		if (n == 0 || !strcmp(part, "."))
			continue;
		if (!strcmp(part, ".."))
			return err_set(e, "%s: leads out of the home", path);
		if (mkdirat(dir, part, 0755) < 0 && errno != EEXIST)
			return err_errno(e, "make %s", path);
		next = open_beneath(
			dir, part, O_RDONLY | O_DIRECTORY, RESOLVE_WRITE);
		if (next < 0)
			return explain_open(e, path);
		close(dir);
		dir = next;
	}
	if (!*at || !strcmp(at, ".") || !strcmp(at, ".."))
		return err_set(e, "%s: not a file name", path);
	if (strlen(at) > 255)
		return err_set(e, "%s: name too long", path);
	*name = at;
	return fd_take(&dir);
}

int home_create(
	struct home *h, const char *path, uint32_t *token, struct err *e)
{
	auto_close int dir = -1;
	auto_free struct home_upload *u = calloc(1, sizeof(*u));
	const char *name = NULL;
	int slot = 0, fd;

	while (slot < HOME_TOKENS_MAX && h->uploads[slot])
		slot++;
	if (!u || slot == HOME_TOKENS_MAX)
		return err_set(e, "%s: too many files at once", path);
	if (path[0] == '/')
		return err_set(e, "%s: leads out of the home", path);
	dir = parent_open(h, path, &name, e);
	if (dir < 0)
		return -1;
	u->token = ++h->last_token;
	snprintf(u->temp, sizeof(u->temp), ".cellblock-%08x-%u",
		(unsigned)now_ns(), u->token);
	snprintf(u->name, sizeof(u->name), "%s", name);
	fd = openat(dir, u->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return err_errno(e, "%s", path);
	u->dir = fd_take(&dir);
	*token = u->token;
	h->uploads[slot] = u;
	u = NULL;
	return fd;
}

static struct home_upload **upload_find(struct home *h, uint32_t token)
{
	for (int i = 0; i < HOME_TOKENS_MAX; i++)
		if (h->uploads[i] && h->uploads[i]->token == token)
			return &h->uploads[i];
	return NULL;
}

int home_commit(struct home *h, uint32_t token, int replace, struct err *e)
{
	struct home_upload **u = upload_find(h, token);
	int r;

	if (!u)
		return err_set(e, "no such upload");
	if (replace)
		r = renameat((*u)->dir, (*u)->temp, (*u)->dir, (*u)->name);
	else
		r = sys_renameat2((*u)->dir, (*u)->temp, (*u)->dir, (*u)->name,
			SYS_RENAME_NOREPLACE);
	if (r < 0) {
		err_errno(e, "%s", (*u)->name);
		unlinkat((*u)->dir, (*u)->temp, 0);
	}
	upload_free(u);
	return r;
}

int home_abort(struct home *h, uint32_t token, struct err *e)
{
	struct home_upload **u = upload_find(h, token);

	if (!u)
		return err_set(e, "no such upload");
	unlinkat((*u)->dir, (*u)->temp, 0);
	upload_free(u);
	return 0;
}

/* ---- walking ---- */

struct walk {
	int (*file)(struct walk *w, int dir, const char *name,
		const struct stat *st);
	int post; /* visit a directory after what it holds */
	char path[4096];
	size_t len;
	FILE *out;
	size_t bytes;
	int n, truncated;
};

static int walk_dir(struct walk *w, int dir, int depth);

static int walk_one(struct walk *w, int dir, const char *name, int depth)
{
	size_t before = w->len, n = strlen(name);
	struct stat st;
	int r = 0;

	if (before + n + 2 > sizeof(w->path)) {
		w->truncated = 1;
		return 0;
	}
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (before > 0)
		w->path[w->len++] = '/';
	memcpy(w->path + w->len, name, n + 1);
	w->len += n;
	if (!w->post)
		r = w->file(w, dir, name, &st);
	if (!r && S_ISDIR(st.st_mode)) {
		int sub = open_beneath(
			dir, name, O_RDONLY | O_DIRECTORY, RESOLVE_WRITE);

		if (sub >= 0)
			r = walk_dir(w, sub, depth + 1);
	}
	if (!r && w->post)
		r = w->file(w, dir, name, &st);
	w->len = before;
	w->path[w->len] = '\0';
	return r;
}

/* Takes `dir`. */
static int walk_dir(struct walk *w, int dir, int depth)
{
	DIR *d = fdopendir(dir);
	struct dirent *de;
	int r = 0;

	if (!d) {
		close(dir);
		return 0;
	}
	if (depth > DEPTH_MAX) {
		w->truncated = 1;
		closedir(d);
		return 0;
	}
	while (!r && (de = readdir(d)))
		if (strcmp(de->d_name, ".") != 0 &&
			strcmp(de->d_name, "..") != 0)
			r = walk_one(w, dirfd(d), de->d_name, depth);
	closedir(d);
	return r;
}

static char type_letter(mode_t mode)
{
	if (S_ISREG(mode))
		return 'f';
	if (S_ISDIR(mode))
		return 'd';
	return S_ISLNK(mode) ? 'l' : 'o';
}

static int list_file(
	struct walk *w, int dir, const char *name, const struct stat *st)
{
	(void)dir;
	if (!strncmp(name, ".cellblock-", 11))
		return 0;
	if (w->n == HOME_LIST_MAX || w->bytes > LIST_BYTES_MAX) {
		w->truncated = 1;
		return 1;
	}
	w->n++;
	w->bytes += w->len + RECORD_BYTES;
	fprintf(w->out, "%c %lld %lld %lld %u %s%c", type_letter(st->st_mode),
		(long long)st->st_size, (long long)st->st_blocks * 512,
		(long long)st->st_mtime, (unsigned)st->st_nlink, w->path, '\0');
	return 0;
}

int home_list(struct home *h, int *truncated, struct err *e)
{
	struct walk w = {.file = list_file};
	auto_free char *text = NULL;
	size_t n = 0;
	int root = open_beneath(
		h->root, ".", O_RDONLY | O_DIRECTORY, RESOLVE_WRITE);
	int fd;

	if (root < 0)
		return fail_open(e, "list the home");
	w.out = open_memstream(&text, &n);
	if (!w.out) {
		close(root);
		return err_errno(e, "list the home");
	}
	walk_dir(&w, root, 0);
	*truncated = w.truncated;
	if (fclose(w.out) != 0)
		return err_errno(e, "list the home");
	fd = io_sealed_memfd("cellblock-list", text, n);
	return fd < 0 ? err_errno(e, "list the home") : fd;
}

static int remove_file(
	struct walk *w, int dir, const char *name, const struct stat *st)
{
	if (unlinkat(dir, name, S_ISDIR(st->st_mode) ? AT_REMOVEDIR : 0) < 0)
		w->n = errno;
	return 0;
}

int home_remove(struct home *h, const char *path, struct err *e)
{
	struct walk w = {.file = remove_file, .post = 1};
	auto_close int dir = -1;
	const char *name = NULL, *slash = strrchr(path, '/');
	char parent[4096];

	if (path[0] == '/' || strlen(path) >= sizeof(parent))
		return err_set(e, "%s: not in the home", path);
	name = slash ? slash + 1 : path;
	if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
		return err_set(e, "%s: not a file name", path);
	snprintf(parent, sizeof(parent), "%.*s", (int)(name - path), path);
	dir = open_beneath(h->root, *parent ? parent : ".",
		O_RDONLY | O_DIRECTORY, RESOLVE_WRITE);
	if (dir < 0)
		return explain_open(e, path);
	if (faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return err_errno(e, "%s", path);
	walk_one(&w, dir, name, 0);
	if (w.n) {
		errno = w.n;
		return err_errno(e, "%s", path);
	}
	return 0;
}

void home_usage(const struct home *h, int64_t *bytes, int *files)
{
	struct statfs s;

	*bytes = 0;
	*files = 0;
	if (fstatfs(h->root, &s) < 0)
		return;
	*bytes = (int64_t)(s.f_blocks - s.f_bfree) * (int64_t)s.f_bsize;
	*files = (int)(s.f_files - s.f_ffree) - 1;
}
