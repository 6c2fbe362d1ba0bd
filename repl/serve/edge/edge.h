/* SPDX-License-Identifier: MIT */
/*
 * edge.h - clients of --serve, and the bytes that they send
 *
 *	connections.c	clients: their sockets, their slots and their timeouts
 *	form.c		the file in a form (multipart/form-data), as it arrives
 *	framing.c	where a request begins and ends, beyond doubt
 *	subids.c	the ranges of subordinate ids: subuid(5)
 */
#ifndef REPL_SERVE_EDGE_EDGE_H
#define REPL_SERVE_EDGE_EDGE_H

#include "repl/text/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct connections;
struct connections_client;
struct err;
struct form;
struct framing;

/* ---- connections.c ---- */

/* The family of a client that is a tenant, from whatever address. */
#define CONNECTIONS_TENANT (-1)

/* The address or the user of a client, or the tenant that it is. */
struct connections_peer {
	int family;
	uint64_t key;
};

/* Result of more(). */
enum connections_more {
	CONNECTIONS_BROKEN, /* the answer cannot be completed */
	CONNECTIONS_MORE,
	CONNECTIONS_OVER, /* the answer is complete */
	CONNECTIONS_LAST, /* complete, and the connection ends */
};

struct connections_calls {
	/* connections.c calls these for a whole head, for bytes of the body,
	 * and at the end of a request. Each may call connections_answer(). */
	void (*head)(void *arg, struct connections_client *c);
	void (*data)(void *arg, struct connections_client *c, const char *p,
		size_t n);
	void (*whole)(void *arg, struct connections_client *c);
	/* Append more of the answer. After CONNECTIONS_MORE without bytes
	 * connections.c waits for connections_go_on(). */
	enum connections_more (*more)(
		void *arg, struct connections_client *c, struct strbuf *out);
	/* The client has its answer, or is gone. */
	void (*over)(void *arg, struct connections_client *c);
	/* Write a whole refusal of a request, whose head may be incomplete. */
	void (*refuse)(void *arg, struct connections_client *c, int status,
		const char *words, struct strbuf *answer);
	void *arg;
};

/* Accept up to `clients` clients at these listening sockets (borrowed). 0, or
 * -1 with e. */
int connections_open(struct connections **out, const int *fds, int nfds,
	int clients, const struct connections_calls *calls, struct err *e);
void connections_close(struct connections *g);

/* Add a connected client (fd is taken). 0, or -1. */
int connections_add(struct connections *g, int fd);

/* Accept no further clients. */
void connections_drain(struct connections *g);

size_t connections_clients(const struct connections *g);

/* True if a client waits for an answer, or may be about to ask. */
bool connections_owes(const struct connections *g);

/* Readable when connections_turn() has something to do. Call that once a second
 * anyway. */
int connections_fd(const struct connections *g);
void connections_turn(struct connections *g);

/* ---- one client ---- */

/* True if two clients have one address (of IPv6: the same first 64 bits), or
 * one user id or range of subordinate ids at a socket in the file system. */
bool connections_is_same(struct connections_peer a, struct connections_peer b);
struct connections_peer connections_peer(const struct connections_client *c);

/* True if each may have the files and sessions of the other: both are one
 * tenant, or neither is a tenant. */
bool connections_may_share(
	struct connections_peer a, struct connections_peer b);

/* The client's address, or "uid:1000" at a socket in the file system. */
const char *connections_name(const struct connections_client *c);

/* Nanoseconds since the first byte of the request. */
int64_t connections_took_ns(const struct connections_client *c);

/* In over(): true if the client has not got all of its answer. */
bool connections_is_gone(const struct connections_client *c);

/* The client's request. connections.c empties its body as it passes bytes on.
 */
const struct framing *connections_head(const struct connections_client *c);

/* The caller's own pointer for a request, from head() to over(). Without one,
 * over() is not called. */
void connections_set_own(struct connections_client *c, void *own);
void *connections_own(const struct connections_client *c);

/* The answer begins or has more bytes: connections.c calls more(). */
void connections_go_on(struct connections_client *c);

/* Milliseconds since the client last took bytes of its answer. From
 * CONNECTIONS_STALLED_MS on we may drop it to make room. */
#define CONNECTIONS_STALLED_MS 1000
int64_t connections_stalled_ms(const struct connections_client *c);

/* Drop the client, also in the middle of its answer. over() is called. */
void connections_leave(struct connections_client *c);

/* Send this answer (taken) in place of the rest of any other, then close the
 * connection. over() is not called. */
void connections_answer(struct connections_client *c, struct strbuf *answer);

/* ---- form.c ---- */

struct form_calls {
	/* The first file of the field `file` begins; its name is borrowed. */
	void (*begin)(void *arg, const char *name);
	/* Bytes of that file. */
	void (*content)(void *arg, const char *p, size_t n);
	void *arg;
};

/* NULL: the Content-Type (which may be NULL) is not that of a form, or out of
 * memory. */
struct form *form_open(const char *type, const struct form_calls *calls);
void form_close(struct form *f);

/* Parse the next bytes. */
void form_take(struct form *f, const char *p, size_t n);

/* True if the form is complete. */
bool form_is_whole(const struct form *f);

/* ---- framing.c ---- */

/* The header fields that we keep; framing.c has their names. */
enum framing_field {
	FRAMING_CONTENT_LENGTH,
	FRAMING_TRANSFER_ENCODING,
	FRAMING_HOST,
	FRAMING_CONTENT_TYPE,
	FRAMING_AUTHORIZATION,
	FRAMING_ORIGIN,
	FRAMING_EXPECT,
	FRAMING_CONNECTION,
	FRAMING_ACCEPT,
	FRAMING_REQUEST_ID,
	FRAMING_IDEMPOTENCY_KEY,
	FRAMING_LAST_EVENT_ID,
	FRAMING_FIELDS,
};

enum framing_state {
	FRAMING_IN_START, /* the first line */
	FRAMING_IN_FIELDS,
	FRAMING_IN_LENGTH, /* a body of a known length */
	FRAMING_IN_CHUNK_SIZE,
	FRAMING_IN_CHUNK,
	FRAMING_IN_CHUNK_END,
	FRAMING_IN_TRAILER,
	FRAMING_OVER,  /* later bytes are of the next request */
	FRAMING_WRONG, /* `status` and `words` say why */
};

#define FRAMING_CHUNKS UINT64_MAX

/* Zero at first. Only framing.c writes it, except that connections.c empties
 * `body`. */
struct framing {
	enum framing_state state;
	char *method;
	char *path; /* NULL before the first line is whole; unescaped, and
		     * without a query */
	char *host; /* in front of the path; NULL: none */
	char *values[FRAMING_FIELDS];
	bool old;	    /* HTTP/1.0 */
	uint64_t length;    /* of the body; FRAMING_CHUNKS: unknown */
	uint64_t left;	    /* of the body or the chunk, to come */
	struct strbuf body; /* bytes that connections.c has not passed on */
	int status;
	const char *words;
	/* state of the parser */
	struct strbuf line;
	size_t bytes, lines;
};

/* Parse the next bytes. Returns how many of them belong to this request. */
size_t framing_take(struct framing *h, const char *p, size_t n);

/* Undo %xx in place. */
void framing_unescape(char *s);

/* True if the head is whole. */
bool framing_is_whole(const struct framing *h);

/* True if the client wants no further answer on its connection. */
bool framing_is_last(const struct framing *h);

/* Forget this request, and begin the next. */
void framing_reset(struct framing *h);

/* ---- subids.c ---- */

#define SUBIDS_PATH "/etc/subuid"

struct subids {
	struct {
		uint32_t first, n;
	} * v;
	size_t n;
};

/* Read the ranges in a file such as SUBIDS_PATH. Without it, or without memory,
 * every other id is a user of its own. */
void subids_load(struct subids *s, const char *path);
void subids_free(struct subids *s);

/* The key of the user with this id. All ids of a range have one key, which is
 * no id; any other id is its own key. */
uint64_t subids_key(const struct subids *s, uid_t uid);

#endif
