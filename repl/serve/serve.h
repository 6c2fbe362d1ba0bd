/* SPDX-License-Identifier: MIT */
/*
 * serve.h - cellblock --serve, and what every server does
 *
 *	serve.c		the server of HTTP
 *	listen.c	the listening sockets
 *	notify.c	sd_notify(3)
 */
#ifndef REPL_SERVE_SERVE_H
#define REPL_SERVE_SERVE_H

#include "repl/serve/reload/reload.h"

#include <stdbool.h>
#include <stdint.h>

struct config;
struct control;
struct err;
struct jail_spec;
struct log;
struct serve;
struct signals;

/* The longest timeout that a request may ask for: jail_spec.asked_wall_ms. */
int64_t serve_most_ms(const struct config *cfg);

/* Prepare before the process confines itself: fork the supplier, and the
 * process that reads `source` at SIGHUP; listen at `where` (NULL: the default);
 * open the files of the store. All arguments are borrowed until serve_close().
 * 0, or -1 with e. */
int serve_open(struct serve **out, const struct config *cfg,
	const struct jail_spec *spec, const struct reload_source *source,
	const char *where, struct err *e);

/* The address where the server listens, for messages; true if other hosts can
 * connect without a token. */
const char *serve_address(const struct serve *s);
int serve_is_open(const struct serve *s);

/* Let the clients of this control socket (borrowed; `signals` wakes for it)
 * list and end sessions. */
void serve_set_control(struct serve *s, struct control *d);

/* Serve until a signal comes, and serve.drain longer; then answer the requests
 * that were accepted. A second signal ends that. 0, or -1 with e. */
int serve_run(struct serve *s, struct signals *signals, const struct log *log,
	struct err *e);

/* End every session, and wait until all are gone. -1 with e when something may
 * be left. */
int serve_close(struct serve *s, struct err *e);

/* ---- listen.c ---- */

#define LISTEN_DEFAULT "127.0.0.1:8060"

/* Most sockets that a service manager may pass. */
#define LISTEN_MAX 8

/* The sockets where we listen. Caller's storage. */
struct listener {
	int fds[LISTEN_MAX];
	int n;
	char shown[256];  /* the addresses, as --serve takes them */
	const char *path; /* of the socket that we made (borrowed), or NULL */
	bool local;	  /* no other host can reach any of them */
};

/* Listen at ADDRESS:PORT (a numeric address, IPv6 in brackets; the kernel
 * chooses a free port for 0) or unix:PATH. NULL: at the sockets that a service
 * manager passed, or else at the default. 0, or -1 with e. */
int listen_open(struct listener *l, const char *where, struct err *e);

/* Listen for messages (SOCK_SEQPACKET) of everybody on this host. 1: at the
 * sockets that a service manager passed; 0: at `path`, or at `otherwise` where
 * `path` is NULL; -1 with e. */
int listen_open_packets(struct listener *l, const char *path,
	const char *otherwise, struct err *e);

/* Move the sockets to free descriptors from `lowest` on. */
void listen_raise(struct listener *l, int lowest);

void listen_close(struct listener *l);

/* Remove the socket that listen_open() made in the file system, if nobody
 * listens there. `arg` is a struct listener, which may be closed. */
void listen_remove(void *arg);

/* True if the Host of a request is a loopback address or "localhost". */
bool listen_is_local_name(const char *host);

/* ---- notify.c ---- */

/* Connect a socket for datagrams that never waits. The caller closes it; -1
 * with errno. */
int notify_connect(const char *path);

/* *fd: a socket to NOTIFY_SOCKET, which the caller closes; -1 without
 * NOTIFY_SOCKET. 0, or -1 with e. */
int notify_open(int *fd, struct err *e);

/* Send a line such as READY=1 or STOPPING=1, unless fd is -1. */
void notify_say(int fd, const char *what);

#endif
