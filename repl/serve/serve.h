/* SPDX-License-Identifier: MIT */
/*
 * serve.h - cellblock --serve, and what every server does
 *
 *	serve.c		the server of HTTP
 *	listen.c	the socket to which clients come
 *	notify.c	telling a service manager how far we are
 */
#ifndef REPL_SERVE_SERVE_H
#define REPL_SERVE_SERVE_H

#include <stdint.h>

struct config;
struct err;
struct jail_spec;
struct log;
struct serve;
struct signals;

/* How long code of a request may be asked to run: jail_spec.asked_wall_ms. */
int64_t serve_most_ms(const struct config *cfg);

/* Get ready, before it is confined: fork the maker, listen at `where` (NULL:
 * the default), open what files are kept in. All is borrowed until
 * serve_close(). 0, or -1 with e. */
int serve_open(struct serve **out, const struct config *cfg,
	const struct jail_spec *spec, const char *where, struct err *e);

/* Where it listens; and whether anybody from another host may come. */
const char *serve_address(const struct serve *s);
int serve_is_open(const struct serve *s);

/* How many clients there may be at a time, if RLIMIT_NOFILE allows fewer than
 * serve.clients; or 0. */
int serve_clients(const struct serve *s);

/* Serve until a signal, and then those that were accepted. 0, or -1 with e. */
int serve_run(struct serve *s, struct signals *signals, const struct log *log,
	struct err *e);

/* End every session, and wait until it is gone. -1 with e when something may
 * be left. */
int serve_close(struct serve *s, struct err *e);

/* ---- listen.c ---- */

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

/* True if this Host of a request names the host that it comes from. */
bool listen_is_local_name(const char *host);

/* ---- notify.c ---- */

/* A socket to whom NOTIFY_SOCKET names, to be closed by the caller; -1: nobody
 * asked. 0, or -1 with e. */
int notify_open(int *fd, struct err *e);

/* Say it, if somebody asked: READY=1 or STOPPING=1, and lines like it. */
void notify_say(int fd, const char *what);

#endif
