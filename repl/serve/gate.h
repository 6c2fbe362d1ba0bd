/* SPDX-License-Identifier: MIT */
/*
 * gate.h - clients, and what of their bytes is let in
 */
#ifndef REPL_SERVE_GATE_H
#define REPL_SERVE_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct gate;
struct gate_client;
struct strbuf;

/* Where a client comes from. */
struct gate_peer {
	int family;
	uint64_t key;
};

struct gate_calls {
	/* Read requests from this socket (taken), and write answers to it. 0,
	 * or -1. */
	int (*serve)(void *arg, struct gate_client *c, int fd);
	/* Nobody wants the answer any more; `c` is about to be freed. */
	void (*gone)(void *arg, struct gate_client *c);
	/* Write a whole answer that says no. `path` may be NULL. */
	void (*refuse)(void *arg, const char *path, int status,
		const char *words, struct strbuf *answer);
	void *arg;
};

/* Clients come to these sockets, which listen (borrowed). */
int gate_open(struct gate **out, const int *fds, int nfds, int clients,
	const struct gate_calls *calls, struct err *e);
void gate_close(struct gate *g);

/* A client that is connected (fd is taken). 0, or -1. */
int gate_add(struct gate *g, int fd);

/* No further clients. */
void gate_drain(struct gate *g);

size_t gate_clients(const struct gate *g);

/* Whether a client waits for an answer, or may be about to ask. */
bool gate_owes(const struct gate *g);

/* Readable when gate_turn() has something to do, which it has once a second
 * anyway. */
int gate_fd(const struct gate *g);
void gate_turn(struct gate *g);

/* ---- one client ---- */

/* Whether two come from one address (of IPv6 its first 64 bits), or are of one
 * user at a socket in the file system (all subordinate ids of a user are one).
 */
bool gate_is_same(struct gate_peer a, struct gate_peer b);
struct gate_peer gate_peer(const struct gate_client *c);

/* Its request runs: should it go now, the call gone() says so. Its answer
 * begins: nothing else can be answered any more. */
void gate_set_running(struct gate_client *c);
void gate_set_answering(struct gate_client *c);

/* Its request is answered; the next may come in. */
void gate_next(struct gate_client *c);

/* How long it has taken nothing of what it is owed. */
int64_t gate_stalled_ms(const struct gate_client *c);

/* It goes, whatever it is owed; the call gone() says so. */
void gate_leave(struct gate_client *c);

/* This answer (taken) takes the place of any other, at once, and is the last.
 * gone() is not called. */
void gate_answer(struct gate_client *c, struct strbuf *answer);

#endif
