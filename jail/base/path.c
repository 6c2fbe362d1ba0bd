/* SPDX-License-Identifier: MIT */
/*
 * path.c - paths as text, and directories opened one component at a time
 *
 * Runs in:   every process
 * Trusts:    nothing under a name: we hold what we open by descriptor
 * Leaves:    the directories it was asked to make
 */
#include "path.h"

#include "io.h"
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

const char *path_beneath(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	while (n && dir[n - 1] == '/')
		n--;
	if (strncmp(path, dir, n) != 0)
		return NULL;
	path += n;
	if (*path != '/' && (*path || !n))
		return NULL;
	return path + strspn(path, "/");
}

const char *path_last(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int path_depth(const char *path)
{
	int n = 0;

	for (; *path; path++)
		n += *path == '/';
	return n;
}

bool path_is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

bool path_is_name(const char *name)
{
	return *name && !strchr(name, '/') && !path_is_dots(name) &&
	       strlen(name) <= NAME_MAX;
}

int path_clean(char *path, bool climb)
{
	char *to = path;

	for (const char *p = path; *p;) {
		size_t n;

		p += strspn(p, "/");
		n = strcspn(p, "/");
		if (n == 2 && !memcmp(p, "..", 2)) {
			if (!climb)
				return -1;
			while (to > path && *--to != '/')
				;
		} else if (n && !(n == 1 && *p == '.')) {
			*to++ = '/';
			memmove(to, p, n);
			to += n;
		}
		p += n;
	}
	if (to == path)
		*to++ = '/';
	*to = '\0';
	return 0;
}

int path_next(const char **path, char name[static NAME_MAX + 1])
{
	const char *p = *path + strspn(*path, "/");
	size_t n = strcspn(p, "/");

	if (n > NAME_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(name, p, n);
	name[n] = '\0';
	*path = p + n;
	return n > 0;
}

static int dir_open(int dir, const char *name, const struct path_walk *how)
{
	int flags = how->flags | O_DIRECTORY | O_CLOEXEC;

	if (how->resolve)
		return sys_openat2(dir, name, flags, how->resolve);
	return openat(dir, name, flags | O_NOFOLLOW);
}

int path_enter(int dir, const char *name, const struct path_walk *how)
{
	int fd = dir_open(dir, name, how);

	if (fd >= 0 || errno != ENOENT || !how->mode)
		return fd;
	if (mkdirat(dir, name, how->mode) < 0 && errno != EEXIST)
		return -1;
	return dir_open(dir, name, how);
}

int path_walk(int root, const char *path, const struct path_walk *how)
{
	auto_close int dir = fcntl(root, F_DUPFD_CLOEXEC, 3);
	char name[NAME_MAX + 1];
	int more = 0;

	while (dir >= 0 && (more = path_next(&path, name)) > 0) {
		int fd;

		if (!strcmp(name, "..")) {
			errno = EXDEV;
			return -1;
		}
		fd = path_enter(dir, name, how);
		fd_drop(&dir);
		dir = fd;
	}
	return more < 0 ? -1 : fd_take(&dir);
}
