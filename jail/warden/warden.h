/* SPDX-License-Identifier: MIT */
/*
 * warden.h - the owner of a session
 */
#ifndef JAIL_WARDEN_WARDEN_H
#define JAIL_WARDEN_WARDEN_H

struct jail_spec;

/* What the warden does between two waits takes less, or it dies of it
 * (warden_poll). The longest is to remove millions of files from a home. */
#define WARDEN_WORK_MS 20000

/*
 * Be the warden: called in the child of the front end's fork, never returns.
 * Takes `front`, the socket to the front end; the session ends with it.
 */
_Noreturn void warden_main(int front, const struct jail_spec *spec);

#endif
