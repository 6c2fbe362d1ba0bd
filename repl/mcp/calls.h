/* SPDX-License-Identifier: MIT */
/*
 * calls.h - the session, and the call that is served in it
 *
 * One call at a time: calls_begin() when calls_is_ready(), then calls_turn()
 * until calls_is_done(), then calls_answer().
 */
#ifndef REPL_MCP_CALLS_H
#define REPL_MCP_CALLS_H

#include "message.h"
#include "repl/json/cells.h"

#include <poll.h>
#include <stdbool.h>

struct calls;
struct config;
struct err;
struct log;
struct pool;
struct strbuf;

/* Longest answer: clients take messages of 10 MiB. */
#define CALLS_ANSWER_MAX (8 << 20)

enum calls_kind {
	CALLS_TOOL,	 /* tools/call */
	CALLS_RESOURCES, /* resources/list */
	CALLS_READ,	 /* resources/read */
};

struct call {
	struct message m;
	enum calls_kind kind;
	bool stateless; /* of the protocol without handshakes */
	bool dropped;	/* nobody wants the answer any more */
};

/* Begin with a session from the pool. All is borrowed. A session that cannot be
 * had is told to each call. 0, or -1 with e. */
int calls_open(struct calls **out, struct pool *pool, const struct config *cfg,
	struct log *log, struct err *e);

/* End the session. -1 with e when no jail could be built, or it broke. */
int calls_close(struct calls *c, struct err *e);

/* Append what the tools are. */
void calls_add_tools(const struct calls *c, struct strbuf *b);

bool calls_is_ready(const struct calls *c);

/* Begin to serve a call (borrowed until it is answered). */
void calls_begin(struct calls *c, const struct call *call);

/* As in cells.h, also between calls; and the pool's. */
#define CALLS_POLLS (CELLS_POLLS + 8)
int calls_polls(const struct calls *c, struct pollfd p[static CALLS_POLLS]);
void calls_turn(struct calls *c, const struct pollfd *p);
bool calls_is_done(const struct calls *c);

/* Interrupt the cell that runs; nothing else takes long. */
void calls_interrupt(struct calls *c);

/* Append the answer, a whole message. A call that was dropped has none. */
void calls_answer(struct calls *c, struct strbuf *b);

/* Append how far the call is, a whole message, if it is time and the client
 * asked for it. */
void calls_add_progress(struct calls *c, struct strbuf *b);

#endif
