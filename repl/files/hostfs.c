/* SPDX-License-Identifier: MIT */
/*
 * hostfs.c - the host's files, as far as a session may touch them
 *
 * Runs in:   front end
 * Holds:     the directories of a locked session, opened at the start
 * Trusts:    the person of an ordinary session; in a locked one nobody: paths
 *            are resolved beneath a directory by openat2(2), without links,
 *            so no rename can win a race
 * Leaves:    files that are whole, or not there
 */
#include "hostfs.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/newfile.h"
#include "jail/base/path.h"
#include "jail/base/sys.h"
#include "repl/text/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_beneath(int root, const char *path, int flags)
{
	return sys_openat2(root, path, flags, 0,
		SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_SYMLINKS |
			SYS_RESOLVE_NO_MAGICLINKS | SYS_RESOLVE_NO_XDEV);
}

static int roots_open(struct hostfs *h, enum hostfs_use use,
	const struct config_list *dirs, struct err *e)
{
	struct hostfs_root *v = calloc(dirs->n + 1, sizeof(*v));

	if (!v)
		return err_errno(e, "remember directories");
	h->roots[use] = v;
	for (size_t i = 0; i < dirs->n; i++) {
		int fd = open(
			dirs->items[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd < 0)
			continue;
		v[h->n_roots[use]++] =
			(struct hostfs_root){.path = dirs->items[i], .fd = fd};
	}
	return 0;
}

int hostfs_open(struct hostfs *h, const struct config *cfg, const char *home,
	struct err *e)
{
	*h = (struct hostfs){.locked = cfg->locked, .home = home};
	if (!h->locked)
		return 0;
	if (roots_open(h, HOSTFS_READ, &cfg->upload_from, e) < 0)
		return -1;
	return roots_open(h, HOSTFS_WRITE, &cfg->download_to, e);
}

void hostfs_close(struct hostfs *h)
{
	for (int use = 0; use < 2; use++) {
		for (size_t i = 0; i < h->n_roots[use]; i++)
			fd_drop(&h->roots[use][i].fd);
		free(h->roots[use]);
		h->roots[use] = NULL;
		h->n_roots[use] = 0;
	}
}

char *hostfs_expand(const struct hostfs *h, const char *path)
{
	char *s;

	if (path[0] != '~' || (path[1] && path[1] != '/') || !h->home)
		return strdup(path);
	if (asprintf(&s, "%s%s", h->home, path + 1) < 0)
		return NULL;
	return s;
}

static const struct hostfs_root *root_find(const struct hostfs *h,
	enum hostfs_use use, const char *path, const char **rest)
{
	for (size_t i = 0; i < h->n_roots[use]; i++) {
		*rest = path_beneath(path, h->roots[use][i].path);
		if (*rest)
			return &h->roots[use][i];
	}
	return NULL;
}

static int refuse(const struct hostfs *h, enum hostfs_use use, const char *path,
	struct err *e)
{
	const char *verb = use == HOSTFS_READ ? "upload from" : "download to";

	if (!h->n_roots[use])
		return err_set(e, "this session may not %s the host", verb);
	err_set(e, "%s: this session may only %s %s", path, verb,
		h->roots[use][0].path);
	if (e)
		e->code = EACCES;
	return -1;
}

/* What `path` means in a locked session that has a root: one that is relative
 * is relative to the working directory where that lies in a root, else to the
 * first of them. */
static void make_full(const struct hostfs *h, enum hostfs_use use,
	const char *path, char full[static 2 * PATH_MAX + 2])
{
	char cwd[PATH_MAX];
	const char *base = "", *rest;

	if (path[0] != '/') {
		base = getcwd(cwd, sizeof(cwd));
		if (!base || !root_find(h, use, base, &rest))
			base = h->roots[use][0].path;
	}
	snprintf(full, 2 * PATH_MAX + 2, "%s/%s", base, path);
	/* Links are not followed below a root, so the text is the truth. */
	path_clean(full, true);
}

char *hostfs_place(
	const struct hostfs *h, enum hostfs_use use, const char *path)
{
	char full[2 * PATH_MAX + 2];

	if (!h->locked || !h->n_roots[use] || strlen(path) >= PATH_MAX)
		return strdup(path);
	make_full(h, use, path, full);
	return strdup(full);
}

/* Open beneath a root of a locked session. */
static int open_locked(const struct hostfs *h, enum hostfs_use use,
	const char *path, int flags, struct err *e)
{
	const struct hostfs_root *root;
	char full[2 * PATH_MAX + 2];
	const char *rest;
	int fd;

	if (!h->n_roots[use] || strlen(path) >= PATH_MAX)
		return refuse(h, use, path, e);
	make_full(h, use, path, full);
	root = root_find(h, use, full, &rest);
	if (!root)
		return refuse(h, use, path, e);
	fd = open_beneath(root->fd, *rest ? rest : ".", flags);
	if (fd < 0 && errno == ELOOP)
		return err_set(e, "%s: links are not followed here", path);
	if (fd < 0 && errno == ENOSYS) {
		err_errno(e, "%s", path);
		return err_hint(e, "%s", sys_openat2_remedy(ENOSYS));
	}
	if (fd < 0)
		return err_errno(e, "%s", path);
	return fd;
}

static int open_any(const struct hostfs *h, enum hostfs_use use,
	const char *path, int flags, struct err *e)
{
	int fd;

	if (h->locked)
		return open_locked(h, use, path, flags, e);
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? err_errno(e, "%s", path) : fd;
}

static const char *kind_of(mode_t mode)
{
	if (S_ISDIR(mode))
		return "is a directory, not a regular file";
	if (S_ISFIFO(mode))
		return "is a FIFO, not a regular file";
	if (S_ISSOCK(mode))
		return "is a socket, not a regular file";
	return "is a device, not a regular file";
}

int hostfs_open_file(const struct hostfs *h, const char *path, struct stat *st,
	struct err *e)
{
	auto_close int fd = open_any(
		h, HOSTFS_READ, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, e);

	if (fd < 0)
		return -1;
	if (fstat(fd, st) < 0)
		return err_errno(e, "%s", path);
	if (!S_ISREG(st->st_mode)) {
		err_set(e, "%s %s", path, kind_of(st->st_mode));
		if (e)
			e->code = S_ISDIR(st->st_mode) ? EISDIR : ESPIPE;
		return -1;
	}
	return fd_take(&fd);
}

int hostfs_open_dir(const struct hostfs *h, enum hostfs_use use,
	const char *path, struct err *e)
{
	return open_any(h, use, path, O_RDONLY | O_DIRECTORY, e);
}

bool hostfs_is_dir(
	const struct hostfs *h, enum hostfs_use use, const char *path)
{
	auto_close int fd = hostfs_open_dir(h, use, path, NULL);

	return fd >= 0;
}

/* The permissions of a new file: those of the file `like`, exactly, or what
 * the umask leaves. They are not set later: chmod(2) is not the front end's to
 * use. */
static int create_like(struct newfile *f, int dir, const char *like)
{
	struct stat st;
	bool exact = like && !fstatat(dir, like, &st, AT_SYMLINK_NOFOLLOW) &&
		     S_ISREG(st.st_mode);
	mode_t mask = exact ? umask(0) : 0;
	int r = newfile_create(f, dir, exact ? st.st_mode & 0777 : 0666);

	if (exact)
		umask(mask);
	return r;
}

int hostfs_create(
	struct newfile *f, int dir, const char *replaces, struct err *e)
{
	if (create_like(f, dir, replaces) == 0)
		return 0;
	err_errno(e, "create a file");
	if (errno == EACCES && geteuid() == 0)
		err_hint(e, "a session of root's has no capability: it "
			    "writes where uid 0 may by permissions");
	return -1;
}

int hostfs_commit(
	struct newfile *f, const char *name, bool replace, struct err *e)
{
	return newfile_commit(f, name, replace) < 0 ? err_errno(e, "%s", name)
						    : 0;
}

bool hostfs_has(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

int hostfs_make_dir(int dir, const char *name, struct err *e)
{
	static const struct path_walk how = {.mode = 0777};
	int fd = path_enter(dir, name, &how);

	return fd < 0 ? err_errno(e, "make directory %s", name) : fd;
}

int hostfs_safe_name(const char *name, char out[static NAME_MAX + 1])
{
	size_t left = strlen(name);

	if (!path_is_name(name))
		return -1;
	while (left) {
		uint32_t cp = 0;
		int n = utf8_get(name, left, &cp);

		if (n <= 0 || utf8_is_unseen(cp)) {
			*out++ = '_';
			n = n > 0 ? n : 1;
		} else {
			memcpy(out, name, (size_t)n);
			out += n;
		}
		name += n;
		left -= (size_t)n;
	}
	*out = '\0';
	return 0;
}
