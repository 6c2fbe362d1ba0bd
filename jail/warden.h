/* SPDX-License-Identifier: MIT */
/*
 * warden.h - the owner of a session
 */
#ifndef JAIL_WARDEN_H
#define JAIL_WARDEN_H

struct jail_spec;

/*
 * Be the warden: called in the child of the front end's fork, never returns.
 * Takes `front`, the socket to the front end; the session ends with it.
 */
_Noreturn void warden_main(int front, const struct jail_spec *spec);

#endif
