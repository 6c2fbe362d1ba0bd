/* SPDX-License-Identifier: MIT */
/*
 * show.h - what of the host is shown, and what must never be
 */
#ifndef JAIL_PLAN_SHOW_H
#define JAIL_PLAN_SHOW_H

#include "jail/base/err.h"

#define PLAN_SHOW_MAX 64

/* Why a directory is shown. */
enum plan_show_from {
	SHOW_PYTHON,   /* the interpreter needs it */
	SHOW_PACKAGES, /* python.packages */
	SHOW_EXPOSED,  /* jail.expose */
};

/* One directory or file, and its path without links. */
struct plan_shown {
	const char *path, *real;
	enum plan_show_from from;
};

/* After plan_show_settle() sorted by path, and none lies beneath another. */
struct plan_show {
	struct plan_shown v[PLAN_SHOW_MAX];
	int n;
};

/* Whether the host's `path` may be shown in a jail: an absolute path, without
 * "..", that hides nothing of the jail's own. 0, or -1 with e. */
int plan_show_check(const char *path, struct err *e);

/* Add a path, and the path without links (both borrowed), after checking that
 * both may be shown. */
int plan_show_add(struct plan_show *s, const char *path, const char *real,
	enum plan_show_from from, struct err *e);

/* Sort, and drop each path that another path already shows. */
void plan_show_settle(struct plan_show *s);

/* Whether one of the paths shows `path`. */
int plan_show_has(const struct plan_show *s, const char *path);

#endif
