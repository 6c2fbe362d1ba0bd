/* SPDX-License-Identifier: MIT */
/*
 * listen.h - the socket to which clients come
 */
#ifndef REPL_SERVE_LISTEN_H
#define REPL_SERVE_LISTEN_H

#include <stdbool.h>
#include <stddef.h>

struct err;

#define LISTEN_DEFAULT "127.0.0.1:8060"

/* Most sockets that a service manager passes. */
#define LISTEN_MAX 8

/* Where we listen. Caller's storage. */
struct listen {
	int fds[LISTEN_MAX];
	int n;
	char shown[256]; /* as it can be given to --serve */
	bool local;	 /* no other host can reach it */
};

/* Listen at ADDRESS:PORT (the address a number, IPv6 in brackets; port 0 is any
 * that is free) or unix:PATH. NULL: at the sockets that a service manager
 * passed, or else at the default. 0, or -1 with e. */
int listen_open(struct listen *l, const char *where, struct err *e);

/* The same for messages (SOCK_SEQPACKET) at a path, for everybody on this host:
 * 1: at the sockets that a service manager passed, 0: at `path`, or at
 * `otherwise` where that is NULL; -1 with e. */
int listen_open_packets(struct listen *l, const char *path,
	const char *otherwise, struct err *e);

void listen_close(struct listen *l);

/* Whether this Host of a request names the host that it comes from. */
bool listen_is_local_name(const char *host);

#endif
