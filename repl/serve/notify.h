/* SPDX-License-Identifier: MIT */
/*
 * notify.h - telling a service manager how far we are
 */
#ifndef REPL_SERVE_NOTIFY_H
#define REPL_SERVE_NOTIFY_H

struct err;

/* A socket to whom NOTIFY_SOCKET names, to be closed by the caller; -1: nobody
 * asked. 0, or -1 with e. */
int notify_open(int *fd, struct err *e);

/* Say it, if somebody asked: READY=1 or STOPPING=1, and lines like it. */
void notify_say(int fd, const char *what);

#endif
