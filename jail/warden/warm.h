/* SPDX-License-Identifier: MIT */
/*
 * warm.h - a jail that waits for a program has what its Python needs
 */
#ifndef JAIL_WARDEN_WARM_H
#define JAIL_WARDEN_WARM_H

#include "link.h"

struct warden;
struct err;

/* Have Python run once in the jail, which stands, unless that is hurried; and
 * hold the program's. 0, or -1 with e: the jail is not to be used;
 * SESSION_OVER. */
LINK_CHECKED int warm_python(struct warden *w, struct err *e);

#endif
