/* SPDX-License-Identifier: MIT */
/*
 * hostfs.c - the host's files, as far as a session may touch them
 *
 * Runs in:   front end
 * Holds:     the roots of a locked session, opened at the start
 * Trusts:    the person of an ordinary session. In a locked session no path:
 *            openat2(2) resolves each path beneath a root, without links, so
 *            no rename can win a race
 * Leaves:    nothing; jail/base/io.h makes the files
 */
#include "repl/files/files.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/path.h"
#include "jail/base/sys.h"
#include "repl/text/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* How deep we follow a pattern, and how many entries we look at for it. */
#define DEPTH_MAX 32
#define LOOKS_MAX 200000

/* ---- roots ---- */

/* A person who may write into a directory need not be able to list it. */
static const int open_flags[] = {
	[HOSTFS_READ] = O_RDONLY | O_DIRECTORY,
	[HOSTFS_WRITE] = O_PATH | O_DIRECTORY,
};

static int open_roots(struct hostfs *h, enum hostfs_use use,
	const struct strlist *dirs, struct err *e)
{
	struct hostfs_root *v = calloc(dirs->n + 1, sizeof(*v));

	if (!v)
		return err_errno(e, "remember directories");
	h->roots[use] = v;
	for (size_t i = 0; i < dirs->n; i++) {
		int fd = open(dirs->items[i], open_flags[use] | O_CLOEXEC);

		if (fd < 0)
			continue;
		v[h->n_roots[use]++] =
			(struct hostfs_root){.path = dirs->items[i], .fd = fd};
	}
	return 0;
}

static const char *const keys[] = {
	[HOSTFS_READ] = "files.upload_from",
	[HOSTFS_WRITE] = "files.download_to",
};

int hostfs_open(struct hostfs *h, const struct config *cfg, const char *home,
	struct err *e)
{
	*h = (struct hostfs){.locked = cfg->locked,
		.remote = cfg->remote,
		.home = home,
		.source = {
			[HOSTFS_READ] = config_source(cfg, keys[HOSTFS_READ]),
			[HOSTFS_WRITE] =
				config_source(cfg, keys[HOSTFS_WRITE])}};
	if (!h->locked)
		return 0;
	if (open_roots(h, HOSTFS_READ, &cfg->upload_from, e) < 0)
		return -1;
	return open_roots(h, HOSTFS_WRITE, &cfg->download_to, e);
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

/* ---- paths ---- */

#define FULL_MAX (2 * PATH_MAX + 2)

char *hostfs_expand(const struct hostfs *h, const char *path)
{
	char *s;

	if (path[0] != '~' || (path[1] && path[1] != '/') || !h->home)
		return strdup(path);
	if (asprintf(&s, "%s%s", h->home, path + 1) < 0)
		return NULL;
	return s;
}

/* Find the root that `path` lies beneath, and the rest of the path; or NULL. */
static const struct hostfs_root *find_root(const struct hostfs *h,
	enum hostfs_use use, const char *path, const char **rest)
{
	for (size_t i = 0; i < h->n_roots[use]; i++) {
		*rest = path_beneath(path, h->roots[use][i].path);
		if (*rest)
			return &h->roots[use][i];
	}
	return NULL;
}

/* Make `path` absolute, in a locked session. A relative path starts at the
 * working directory if that lies in a root, else at the first root. We resolve
 * ".." in the text alone, which is right because we follow no link below a
 * root. 0, or -1: there is no root, or the path is too long. */
static int make_absolute(const struct hostfs *h, enum hostfs_use use,
	const char *path, char full[static FULL_MAX])
{
	char cwd[PATH_MAX];
	const char *base = "", *rest;

	if (!h->n_roots[use] || strlen(path) >= PATH_MAX)
		return -1;
	if (path[0] != '/') {
		base = getcwd(cwd, sizeof(cwd));
		if (!base || !find_root(h, use, base, &rest))
			base = h->roots[use][0].path;
	}
	snprintf(full, FULL_MAX, "%s/%s", base, path);
	return path_clean(full, true);
}

char *hostfs_place(const struct hostfs *h, const char *path)
{
	char full[FULL_MAX];

	if (!h->locked || make_absolute(h, HOSTFS_WRITE, path, full) < 0)
		return strdup(path);
	return strdup(full);
}

/* ---- opening ---- */

static int refuse_path(const struct hostfs *h, enum hostfs_use use,
	const char *path, struct err *e)
{
	const char *verb = use == HOSTFS_READ ? "upload from" : "download to";

	if (!h->n_roots[use]) {
		err_set(e,
			"this session may not %s the host: %s names no "
			"directory that is there (%s)",
			verb, keys[use], h->source[use]);
		return h->remote ? err_hint(e, "scp copies into the home and "
					       "out of it, over ssh")
				 : -1;
	}
	err_set(e, "%s: this session may only %s %s: %s (%s)", path, verb,
		h->roots[use][0].path, keys[use], h->source[use]);
	if (e)
		e->code = EACCES;
	return -1;
}

/* Open beneath a root of a locked session. */
static int open_locked(const struct hostfs *h, enum hostfs_use use,
	const char *path, int flags, struct err *e)
{
	const struct hostfs_root *root = NULL;
	char full[FULL_MAX];
	const char *rest;
	int fd;

	if (make_absolute(h, use, path, full) == 0)
		root = find_root(h, use, full, &rest);
	if (!root)
		return refuse_path(h, use, path, e);
	fd = sys_openat2(root->fd, *rest ? rest : ".", flags,
		SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_SYMLINKS |
			SYS_RESOLVE_NO_MAGICLINKS | SYS_RESOLVE_NO_XDEV);
	if (fd >= 0)
		return fd;
	if (errno == ELOOP)
		return err_set(e, "%s: links are not followed here", path);
	if (errno != ENOSYS)
		return err_errno(e, "%s", path);
	err_errno(e, "%s", path);
	return err_hint(e, "%s", sys_openat2_remedy(ENOSYS));
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

const char *hostfs_kind(mode_t mode)
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
		err_set(e, "%s %s", path, hostfs_kind(st->st_mode));
		if (e)
			e->code = S_ISDIR(st->st_mode) ? EISDIR : ESPIPE;
		return -1;
	}
	return fd_take(&fd);
}

int hostfs_open_beneath(const struct hostfs *h, int dir, const char *path,
	int flags, bool links)
{
	uint64_t resolve = SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_MAGICLINKS;

	if (!links || h->locked)
		resolve |= SYS_RESOLVE_NO_SYMLINKS;
	if (h->locked)
		resolve |= SYS_RESOLVE_NO_XDEV;
	return sys_openat2(dir, path, flags, resolve);
}

int hostfs_open_dir(const struct hostfs *h, enum hostfs_use use,
	const char *path, struct err *e)
{
	return open_any(h, use, path, open_flags[use], e);
}

bool hostfs_is_dir(
	const struct hostfs *h, enum hostfs_use use, const char *path)
{
	auto_close int fd = hostfs_open_dir(h, use, path, NULL);

	return fd >= 0;
}

/* ---- making ---- */

/* We set the permissions at creation: the front end's seccomp filter refuses
 * chmod(2). */
int hostfs_create(struct io_newfile *f, int dir, mode_t mode,
	const char *replaces, struct err *e)
{
	struct stat st;
	bool exact = replaces &&
		     !fstatat(dir, replaces, &st, AT_SYMLINK_NOFOLLOW) &&
		     S_ISREG(st.st_mode);
	mode_t mask = exact ? umask(0) : 0;
	int r = io_newfile_create(f, dir, exact ? st.st_mode & 0777 : mode);

	if (r < 0)
		err_errno(e, "create a file");
	if (exact)
		umask(mask);
	if (r < 0 && e && e->code == EACCES && geteuid() == 0)
		err_hint(e, "a session of root's has no capability: it writes "
			    "where uid 0 may by permissions");
	return r;
}

int hostfs_commit(
	struct io_newfile *f, const char *name, bool replace, struct err *e)
{
	return io_newfile_commit(f, name, replace) < 0
		       ? err_errno(e, "%s", name)
		       : 0;
}

bool hostfs_has(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

int hostfs_safe_name(const char *name, char out[static NAME_MAX + 1])
{
	size_t left = strlen(name);

	if (!path_is_name(name))
		return -1;
	while (left) {
		uint32_t c = 0;
		int n = utf8_get(name, left, &c);

		if (n <= 0 || utf8_is_unseen(c)) {
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

/* ---- names that match a pattern ---- */

struct glob {
	const struct hostfs *h;
	struct strlist *out;
	size_t max, looks;
	bool full; /* look for no more names */
	char path[PATH_MAX];
};

static bool has_wildcard(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '\\')
			i++;
		else if (s[i] == '*' || s[i] == '?' || s[i] == '[')
			return true;
	}
	return false;
}

/* Append `n` bytes of pattern to the path, without its backslashes. */
static int add_to_path(struct glob *g, size_t *at, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '\\' && i + 1 < n)
			i++;
		if (*at + 2 >= sizeof(g->path))
			return -1;
		g->path[(*at)++] = s[i];
	}
	g->path[*at] = '\0';
	return 0;
}

static void add_found(struct glob *g)
{
	struct stat st;
	auto_close int fd = -1;

	g->full = g->out->n >= g->max;
	if (g->full)
		return;
	if (g->h->locked)
		fd = open_any(g->h, HOSTFS_READ, g->path, O_PATH, NULL);
	if (g->h->locked ? fd >= 0 : lstat(g->path, &st) == 0)
		strlist_add(g->out, g->path);
}

static void walk_pattern(
	struct glob *g, size_t at, const char *pattern, int depth);

/* Match `rest` in every entry of the directory g->path[0..at) that matches
 * `part`. */
static void walk_dir(struct glob *g, size_t at, const char *part,
	const char *rest, bool deep, int depth)
{
	DIR *d = io_list_taken(
		hostfs_open_dir(g->h, HOSTFS_READ, at ? g->path : ".", NULL));
	const struct dirent *entry;

	if (!d)
		return;
	while ((entry = readdir(d)) && !g->full) {
		size_t n = strlen(entry->d_name);

		if (++g->looks > LOOKS_MAX)
			g->full = true;
		if (fnmatch(part, entry->d_name, FNM_PERIOD) != 0 ||
			at + n + 2 >= sizeof(g->path))
			continue;
		/* A link could lead "**" in circles. */
		if (deep && entry->d_type != DT_DIR)
			continue;
		n = (size_t)snprintf(g->path + at, sizeof(g->path) - at, "%s%s",
			entry->d_name, *rest ? "/" : "");
		walk_pattern(g, at + n, rest, depth + 1);
		g->path[at] = '\0';
	}
	closedir(d);
}

/* Match a pattern beneath g->path[0..at), the path that has matched so far,
 * with its slash. */
static void walk_pattern(
	struct glob *g, size_t at, const char *pattern, int depth)
{
	char part[NAME_MAX + 1];
	size_t n = strcspn(pattern, "/");
	const char *rest = pattern + n + strspn(pattern + n, "/");

	if (depth > DEPTH_MAX || g->full) {
		return;
	} else if (!*pattern) {
		add_found(g);
	} else if (n == 2 && !memcmp(pattern, "**", 2)) {
		walk_pattern(g, at, *rest ? rest : "*", depth + 1);
		walk_dir(g, at, "*", pattern, true, depth);
	} else if (!has_wildcard(pattern, n)) {
		if (add_to_path(g, &at, pattern, n) == 0 &&
			(rest == pattern + n ||
				add_to_path(g, &at, "/", 1) == 0))
			walk_pattern(g, at, rest, depth + 1);
	} else if (n < sizeof(part)) {
		memcpy(part, pattern, n);
		part[n] = '\0';
		walk_dir(g, at, part, rest, false, depth);
	}
}

int hostfs_glob(const struct hostfs *h, const char *pattern, size_t max,
	struct strlist *out, struct err *e)
{
	auto_free char *expanded = hostfs_expand(h, pattern);
	struct glob g = {.h = h, .out = out, .max = max};

	*out = (struct strlist){0};
	if (!expanded)
		return err_errno(e, "match %s", pattern);
	walk_pattern(&g, 0, expanded, 0);
	strlist_sort(out);
	return 0;
}
