/* SPDX-License-Identifier: MIT */
/*
 * show.h - what of the host is shown, and what must never be
 */
#ifndef JAIL_PLAN_SHOW_H
#define JAIL_PLAN_SHOW_H

#include "jail/base/err.h"

#define PLAN_SHOW_MAX 64

/* Where a directory to be shown came from. */
enum plan_show_from {
	SHOW_PYTHON,   /* the interpreter needs it */
	SHOW_PACKAGES, /* python.packages */
	SHOW_EXPOSED,  /* jail.expose */
};

/* One directory or file, and where it is without a link on the way. */
struct plan_shown {
	const char *path, *real;
	enum plan_show_from from;
};

/* What to show at the path it has, sorted so that what is above comes first,
 * none below another. */
struct plan_show {
	struct plan_shown v[PLAN_SHOW_MAX];
	int n;
};

/* Add a path, and where it really is (both borrowed), after checking that it
 * may be shown. */
int plan_show_add(struct plan_show *s, const char *path, const char *real,
	enum plan_show_from from, struct err *e);

/* Sort, and drop what another path already shows. */
void plan_show_settle(struct plan_show *s);

/* Whether one of the paths shows `path`. */
int plan_show_has(const struct plan_show *s, const char *path);

#endif
