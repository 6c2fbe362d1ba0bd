/* SPDX-License-Identifier: MIT */
/*
 * ident.h - who a process is, and how it stops being that for good
 *
 * Every change here is verified by trying to undo it: if that works, the call
 * fails, and nothing of the jail may start.
 */
#ifndef JAIL_WALLS_IDENT_H
#define JAIL_WALLS_IDENT_H

#include "jail/base/err.h"

#include <sys/types.h>

/* After unshare(CLONE_NEWUSER): map one uid and one gid of the new namespace
 * to the ids the caller had in its parent, setgroups denied. Says what to do
 * where the host does not allow it. The caller must be dumpable. */
int ident_map_self(uid_t inside_uid, uid_t outside_uid, gid_t inside_gid,
	gid_t outside_gid, struct err *e);

/* Whether the caller is uid 0 and has other ids to give: the root of a user
 * namespace that maps one id alone is an ordinary user outside of it. */
int ident_is_root(void);

/* Root only: become uid and gid, no supplementary groups, no capabilities, no
 * way back. The process is dumpable afterwards, because the maps of the
 * user namespace that follows cannot be written otherwise: call
 * ident_set_undumpable() once they are. */
int ident_become(uid_t uid, gid_t gid, struct err *e);

/* Give up everything: a new anonymous session keyring, five empty capability
 * sets, locked securebits, no_new_privs. Needs CAP_SETPCAP in the current
 * user namespace, as init has it. */
int ident_drop(struct err *e);

/* The same for a process that may never have had a capability (the front end
 * of an ordinary user): what only CAP_SETPCAP could change is left alone when
 * there is no capability at all, and no_new_privs makes it moot. The person's
 * keyring is left alone too. */
int ident_drop_front(struct err *e);

/* No core dumps, no ptrace by equals, /proc/self owned by root. */
int ident_set_undumpable(struct err *e);

/* Be scheduled like everybody else: a real-time policy would be inherited by
 * what is jailed, and no share of cores holds that. */
int ident_set_ordinary_scheduling(struct err *e);

/* Close every descriptor but the `n` in `keep` (any order, -1 ignored). */
int ident_close_fds(const int *keep, int n, struct err *e);

#endif
