/* SPDX-License-Identifier: MIT */
/*
 * cage.c - the confinement of a front end
 *
 * Runs in:   front end, once, after the warden was forked
 * Holds:     before: whatever the person has; after: the allowed paths
 * Trusts:    the caller about the paths
 * Leaves:    a process that cannot start another or open a socket
 *            (invariant 7), or an error and a process that must end
 */
#include "jail/cage.h"

#include "jail/base/err.h"
#include "jail/walls/ident.h"
#include "jail/walls/landlock.h"
#include "jail/walls/seccomp.h"

static const enum landlock_class classes[] = {
	[CAGE_READ] = LANDLOCK_READ,
	[CAGE_WRITE] = LANDLOCK_WRITE,
	[CAGE_DEVICE] = LANDLOCK_DEVICE,
};

void cage_allow(struct cage *c, const char *path, enum cage_access access)
{
	if (!path || !path[0] || c->n == CAGE_PATHS)
		return;
	c->v[c->n].path = path;
	c->v[c->n++].access = access;
}

int cage_close(const struct cage *c, struct err *e)
{
	struct landlock_rule rules[CAGE_PATHS];

	for (size_t i = 0; i < c->n; i++)
		rules[i] = (struct landlock_rule){.path = c->v[i].path,
			.fd = -1,
			.cls = classes[c->v[i].access],
			.optional = 1};
	if (ident_drop_front(e) < 0 ||
		landlock_confine(rules, c->n, LANDLOCK_NO_TCP, LANDLOCK_ABI_ANY,
			e) < 0 ||
		seccomp_load(SECCOMP_FRONT, e) < 0)
		return err_wrap(e, "confine the front end");
	return 0;
}
