/* SPDX-License-Identifier: MIT */
/*
 * own_ns.h - a child in a user and mount namespace of its own
 */
#ifndef TESTS_OWN_NS_H
#define TESTS_OWN_NS_H

#include "jail/base/err.h"
#include "jail/walls/walls.h"

#include "forked.h"

#include <sched.h>

/* Exit status of a child that could not make its namespaces. */
#define OWN_NS_NONE 77

/* Enter new namespaces as uid 1000 with every capability there, or exit. */
static inline void own_ns_enter(int more)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	struct err e = {0};

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | more) < 0)
		_exit(OWN_NS_NONE);
	if (ident_map_self(1000, uid, 1000, gid, &e) < 0 ||
		mount_private_all(&e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		_exit(OWN_NS_NONE);
	}
}

/* Run fn(arg) in a child; it calls own_ns_enter() and must return 0. Skips
 * where the host refuses user namespaces. */
static inline void own_ns_run(int (*fn)(void *), void *arg)
{
	int status = forked(fn, arg);

	if (status == OWN_NS_NONE)
		SKIP("this host lets nobody make a user namespace");
	assert_int_equal(status, 0);
}

#endif
