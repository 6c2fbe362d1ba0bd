/* SPDX-License-Identifier: MIT */
/*
 * site.h - what every jail of the session is built on
 *
 * The warden's own namespaces, the cgroup with its janitor, the home, and the
 * plan. Made once; they outlive each jail.
 */
#ifndef JAIL_WARDEN_SITE_H
#define JAIL_WARDEN_SITE_H

#include "jail/enforce.h"
#include "jail/host/host.h"
#include "jail/plan/plan.h"
#include "jail/spec.h"
#include "jail/walls/cgroup/cgroup.h"
#include "jail/walls/home.h"

struct err;

/* Only site.c writes it; the home has functions of its own. */
struct site {
	const struct jail_spec *spec;
	struct host host;
	struct plan plan;
	struct cgroup cgroup;
	struct home home;
	int janitor; /* its life line; our death closes it */
	int claim;   /* (root) locks: on its host id, and on its places */
	uid_t id;    /* (root) the host id */
	struct enforce_facts facts; /* what there is to enforce with */
	char limited[256];	    /* what it cannot enforce, in words */
};

/* Make it, and become a process that has nothing of its caller's but the
 * socket `front`. 0, or -1 with e. */
int site_open(
	struct site *s, const struct jail_spec *spec, int front, struct err *e);

/* Count the session of a claim in: the places go with it. 0, or -1 with e, of
 * kind ERR_BUSY when there are too many: then it has none. And give the places
 * back. */
int site_count_in(const struct spec_made *made, int claim, struct err *e);
void site_count_out(const struct spec_made *made, int claim);

/* Give the places of this session back, before its end: nothing of it runs any
 * more, and nobody can keep it. */
void site_leave_places(const struct site *s);

/* A jail that was made ahead is claimed: `plan` takes the place of the plan. It
 * is what the session's spec, changed by then, makes of the same host. -1 with
 * e when it differs in more than what a claim changes. */
int site_make_plan(struct site *s, struct plan *plan, struct err *e);
void site_take_plan(struct site *s, struct plan *plan);

/* In a child: another site on the same home and in the same cgroup, for a
 * program beside the session. Nothing of it is frozen, and nothing of `of` is
 * kept open but that, and the socket `front`. 0, or -1 with e. */
int site_share(struct site *s, const struct site *of,
	const struct jail_spec *spec, int front, struct err *e);

/* A jail stands, and it is known whether it could have a /proc, and inodes of
 * its own, and whether guests can ask init. */
void site_note_jail(struct site *s, int has_proc, int own_inodes, int asks);

void site_close(struct site *s);

#endif
