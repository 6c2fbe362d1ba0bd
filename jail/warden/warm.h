/* SPDX-License-Identifier: MIT */
/*
 * warm.h - Python has run once in a jail that was made ahead for a program
 */
#ifndef JAIL_WARDEN_WARM_H
#define JAIL_WARDEN_WARM_H

#include "link.h"

struct err;
struct warden;

/* Run Python once, and leave nothing of it (SPEC_PROGRAM). 0; -1 with e: the
 * jail must not be used; SESSION_OVER. */
LINK_CHECKED int warm_python(struct warden *w, struct err *e);

#endif
