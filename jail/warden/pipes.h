/* SPDX-License-Identifier: MIT */
/*
 * pipes.h - the pipes of a program: never a descriptor of the caller's
 */
#ifndef JAIL_WARDEN_PIPES_H
#define JAIL_WARDEN_PIPES_H

struct err;

/* stdin, stdout, stderr, the driver's report, which programs have not */
#define PIPES 4
#define PIPES_PROGRAM 3

/* The first `n`: the program's ends in `inner`, the front end's in `outer`, all
 * -1 before. `merged`: stdout and stderr are one. 0, or -1 with e and some
 * open. */
int pipes_open(int *inner, int *outer, int n, int merged, struct err *e);

/* Close those of one side (PIPES of them) that are open. */
void pipes_drop(int *fds);

#endif
