/* SPDX-License-Identifier: MIT */
/*
 * home_impl.h - what the parts of the home share
 */
#ifndef JAIL_WALLS_HOME_IMPL_H
#define JAIL_WALLS_HOME_IMPL_H

#include "home.h"
#include "jail/base/sys.h"

#define HOME_RESOLVE_READ                                                      \
	(SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_MAGICLINKS | SYS_RESOLVE_NO_XDEV)
#define HOME_RESOLVE_WRITE (HOME_RESOLVE_READ | SYS_RESOLVE_NO_SYMLINKS)

/* Open beneath a directory of the home. `path` may not be absolute or empty.
 * A descriptor, or -1 with errno. */
int home_open_beneath(int dir, const char *path, int flags, unsigned resolve);

/* Both set e from errno after that failed, and return -1: for `what` we were
 * doing to the home itself, and for a path of the person's. */
int home_fail_open(struct err *e, const char *what);
int home_explain_open(struct err *e, const char *path);

/* ---- home_upload.c ---- */

/* Whether a file of this name is one that is being written. */
int home_is_upload(const struct home *h, const char *name);

void home_uploads_fini(struct home *h);

#endif
