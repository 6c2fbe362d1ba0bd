/* SPDX-License-Identifier: MIT */
/*
 * told.h - what a person has been told on this host
 */
#ifndef REPL_SESSION_TOLD_H
#define REPL_SESSION_TOLD_H

#include <stdbool.h>

/* Open the file in the person's directory `dir`, before the front end is
 * confined. A descriptor, or -1: then everything is said each time. */
int told_open(int dir);

/* Whether this person was told `text` here before; from now on they were. */
bool told_before(int fd, const char *text);

#endif
