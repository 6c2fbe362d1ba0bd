/* SPDX-License-Identifier: MIT */
/*
 * show.c - what of the host is shown, and what must never be
 *
 * Runs in:   warden; pure
 * Trusts:    nothing: the paths are the configuration's
 * Leaves:    a list of paths that hide nothing of the jail's own
 */
#include "show.h"

#include "jail/base/path.h"
#include "jail/host/host.h"
#include "plan.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* No jail shows this path; with `below`, nothing under it either. */
static const struct {
	const char *path;
	int below;
	const char *why;
} forbidden[] = {
	{"/", 0, "it is the whole host"},
	{"/proc", 1, "it would hide the jail's own"},
	{"/dev", 1, "it would hide the jail's own"},
	{"/sys", 1, "limits can be lifted from there"},
	{"/run", 1, "services of the host listen there"},
	{"/var/run", 1, "services of the host listen there"},
	{"/home", 0, "it would hide the session's home"},
	{"/tmp", 0, "it would hide the jail's own"},
	{"/etc", 0, "it would hide the jail's own; name the files you need"},
	{"/etc/passwd", 1, "it would hide the jail's own"},
	{"/etc/group", 1, "it would hide the jail's own"},
	{"/etc/hosts", 1, "it would hide the jail's own"},
	{"/etc/host.conf", 1, "it would hide the jail's own"},
	{"/etc/nsswitch.conf", 1, "it would hide the jail's own"},
	{"/etc/resolv.conf", 1, "it would hide the jail's own"},
	{"/var", 0, "it is too much of the host; name the directories"},
};

/* Whether path_clean() leaves the path as it is. */
static bool is_plain(const char *path)
{
	char clean[PATH_MAX];

	if (strlen(path) >= sizeof(clean))
		return false;
	strcpy(clean, path);
	return path_clean(clean, false) == 0 && !strcmp(clean, path);
}

int plan_show_check(const char *path, struct err *e)
{
	if (path[0] != '/')
		return err_set(e, "%s cannot be shown: not an absolute path",
			path[0] ? path : "''");
	if (!is_plain(path))
		return err_set(e,
			"%s cannot be shown: write it without //, . and ..",
			path);
	for (size_t i = 0; i < COUNT(forbidden); i++)
		if (forbidden[i].below
				? path_is_beneath(path, forbidden[i].path)
				: !strcmp(path, forbidden[i].path))
			return err_set(e, "%s cannot be shown: %s", path,
				forbidden[i].why);
	return 0;
}

/* Directories that hold a person's own things. An interpreter installed right
 * in one (prefix = $HOME) would show all of it. */
static int is_personal(const char *path)
{
	return !strcmp(path, "/root") ||
	       (path_is_beneath(path, "/home") && !strchr(path + 6, '/'));
}

/* A path of the configuration must not be forbidden under any of its names. The
 * files of /etc that Python needs may lie anywhere on the host. */
static int check(const char *path, const char *real, enum plan_show_from from,
	struct err *e)
{
	if (plan_show_check(path, e) < 0)
		return -1;
	if (from != SHOW_PYTHON && plan_show_check(real, e) < 0)
		return strcmp(real, path)
			       ? err_wrap(e, "%s leads elsewhere", path)
			       : -1;
	if (from == SHOW_PYTHON && is_personal(path)) {
		err_set(e, "%s cannot be shown: it is somebody's home", path);
		return err_hint(e, "install Python, or make the virtual "
				   "environment, in a directory of its own");
	}
	return 0;
}

int plan_show_add(struct plan_show *s, const char *path, const char *real,
	enum plan_show_from from, struct err *e)
{
	static const char *const named[] = {
		[SHOW_PYTHON] = "python",
		[SHOW_PACKAGES] = "python.packages",
		[SHOW_EXPOSED] = "jail.expose",
	};

	if (check(path, real, from, e) < 0) {
		err_kind_set(e, ERR_CONFIG);
		return err_wrap(e, "%s", named[from]);
	}
	if (s->n == PLAN_SHOW_MAX) {
		err_set(e, "%s: more than %d directories to show", named[from],
			PLAN_SHOW_MAX);
		return err_kind_set(e, ERR_CONFIG);
	}
	s->v[s->n++] = (struct plan_shown){path, real, from};
	return 0;
}

static int by_path(const void *a, const void *b)
{
	const struct plan_shown *x = a, *y = b;
	int order = strcmp(x->path, y->path);

	return order ? order : (int)x->from - (int)y->from;
}

void plan_show_settle(struct plan_show *s)
{
	int n = s->n;

	qsort(s->v, (size_t)n, sizeof(s->v[0]), by_path);
	s->n = 0; /* those that stay */
	for (int i = 0; i < n; i++)
		if (!plan_show_has(s, s->v[i].path))
			s->v[s->n++] = s->v[i];
}

int plan_show_has(const struct plan_show *s, const char *path)
{
	for (int i = 0; i < s->n; i++)
		if (path_is_beneath(path, s->v[i].path))
			return 1;
	return 0;
}
