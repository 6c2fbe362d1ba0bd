/* SPDX-License-Identifier: MIT */
/*
 * front.h - the front end's requests, between cells
 */
#ifndef JAIL_WARDEN_FRONT_H
#define JAIL_WARDEN_FRONT_H

#include "link.h"

struct warden;

/* A link_aside: serve a request that any moment suits. */
int front_serve_aside(void *warden, const struct wire_front *m);

/* Wait for a request of the front end's and serve it. 0, or SESSION_OVER. */
LINK_CHECKED int front_serve(struct warden *w);

#endif
