/* SPDX-License-Identifier: MIT */
/*
 * ident.h - who a process is, and how it gives up what it is allowed to do
 *
 * Each drop is verified by an attempt to undo it. If the attempt succeeds, the
 * call fails, and nothing of the jail may start.
 */
#ifndef JAIL_WALLS_IDENT_H
#define JAIL_WALLS_IDENT_H

#include "jail/base/err.h"

#include <stdint.h>
#include <sys/types.h>

/* ---- an outside uid of its own for each session that root starts ---- */

/* The directory that holds the file of locks. */
#define IDENT_CLAIMS "/run/cellblock"

enum { IDENT_NAME_MAX = 64 };

/* Root only: pick a uid of [lo, hi] that no other session holds and that no
 * process on this host has; never 0, 65534 or -1. The claim lasts until it is
 * released or the last copy of *lock_fd is closed (caller closes). `dir` is
 * IDENT_CLAIMS, or a directory of a test. */
int ident_claim(const char *dir, uid_t lo, uid_t hi, uid_t *uid, int *lock_fd,
	struct err *e);

/* Take one of `most` places that belong to `owner`, at most IDENT_PLACES_MAX.
 * It goes with the claim. 1, 0: all are taken, or -1 with e. An owner is a
 * person's uid, for sessions; that and IDENT_PLACES_ANY, for sessions and
 * programs; or IDENT_PLACES_ALL, for all persons together. */
#define IDENT_PLACES_MAX 65535
#define IDENT_PLACES_ALL ((uint64_t)(uid_t)-1)
#define IDENT_PLACES_ANY ((uint64_t)1 << 32)
int ident_claim_place(int lock_fd, uint64_t owner, int most, struct err *e);

/* Give the places of an owner back; or those of all, and keep the uid. */
void ident_release_places(int lock_fd, uint64_t owner);
void ident_release_all_places(int lock_fd);

/* Give back every uid that is claimed through lock_fd. */
void ident_claim_release(int lock_fd);

/* What a claimed uid is called where others see it, as in the name of a cgroup:
 * the number, and which file holds the lock. Where /run is another one (a
 * container, a service with a private /run) a lock on the same number says
 * nothing about this one. */
int ident_claim_name(
	int lock_fd, uid_t uid, char name[IDENT_NAME_MAX], struct err *e);

/* Whether `name` is the name of a uid of our file of locks that no session
 * holds. If so it is claimed from then on, so that no session takes it. */
int ident_claim_is_free(int lock_fd, const char *name);

/* ---- becoming somebody, and giving everything up ---- */

/* After unshare(CLONE_NEWUSER): map one uid and one gid of the new namespace
 * to the ids that the caller had in its parent, with setgroups denied. The
 * error says what to do where the host does not allow it. The caller must be
 * dumpable. */
int ident_map_self(uid_t inside_uid, uid_t outside_uid, gid_t inside_gid,
	gid_t outside_gid, struct err *e);

/* Whether the caller is uid 0 and can become other uids. The root of a user
 * namespace that maps a single id cannot: outside it is an ordinary user. */
int ident_is_root(void);

/* Root only: become uid and gid, without supplementary groups, capabilities,
 * root's keyring or a way back. The process is dumpable afterwards, because the
 * maps of a user namespace cannot be written otherwise: call
 * ident_set_undumpable() once they are written. */
int ident_become(uid_t uid, gid_t gid, struct err *e);

/* Give up everything: five empty capability sets, locked securebits,
 * no_new_privs. Needs CAP_SETPCAP in the current user namespace. */
int ident_drop(struct err *e);

/* The same for the front end, which may never have had a capability: then what
 * only CAP_SETPCAP could change stays as it is, and no_new_privs makes it
 * harmless. */
int ident_drop_front(struct err *e);

/* No core dumps, no ptrace by equals, /proc/self owned by root. */
int ident_set_undumpable(struct err *e);

/* Give up a real-time policy: guests would inherit it, and no CPU limit holds
 * real-time processes. */
int ident_set_ordinary_scheduling(struct err *e);

/* Close every descriptor but the `n` in `keep`, in any order; -1 is ignored. */
int ident_close_fds(const int *keep, int n, struct err *e);

#endif
