/* SPDX-License-Identifier: MIT */
/*
 * warden.h - the warden, for who starts one
 *
 *	loop.c		the warden's start, and its wait between cells
 *	lease.c		a jail that was made ahead waits until it is somebody's
 */
#ifndef JAIL_WARDEN_WARDEN_H
#define JAIL_WARDEN_WARDEN_H

#include "jail/jail.h"
#include "jail/spec.h"
#include "jail/walls/cgroup/cgroup.h"

#include <sys/types.h>

struct warden;

/* ---- loop.c ---- */

/* Be the warden: called in the child of the front end's fork, never returns.
 * Takes `front`, the socket to the front end; the session ends with it. */
_Noreturn void warden_loop_run(int front, const struct jail_spec *spec);

/* On a site that is open, build the first jail and serve the front end until
 * the session is over. SESSION_OVER; -1 with e: there never was one. */
int warden_loop_serve(struct warden *w, struct err *e);

/* ---- a jail that was made ahead, and its lease ---- */

/* The warden's first message over the socket of a lease, when all that can be
 * ready without a person is. Descriptors come with it: the lease of the host
 * id, and the directories that `cgroup` holds. */
struct lease_offer {
	uid_t id;
	struct limits limits; /* as it was made */
	struct cgroup cgroup;
};

/* And then: struct spec_lease comes, and this goes back. */
struct lease_answer {
	int ok;
	struct err err;
};

#endif
