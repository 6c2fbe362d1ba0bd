/* SPDX-License-Identifier: MIT */
/*
 * loop.h - the warden's start, and its wait between cells
 */
#ifndef JAIL_WARDEN_LOOP_H
#define JAIL_WARDEN_LOOP_H

struct err;
struct jail_spec;
struct warden;

/* Be the warden: called in the child of the front end's fork, never returns.
 * Takes `front`, the socket to the front end; the session ends with it. */
_Noreturn void warden_loop_run(int front, const struct jail_spec *spec);

/* On a site that is open, build the first jail and serve the front end until
 * the session is over. SESSION_OVER; -1 with e: there never was one. */
int warden_loop_serve(struct warden *w, struct err *e);

#endif
