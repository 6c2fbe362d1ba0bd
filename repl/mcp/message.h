/* SPDX-License-Identifier: MIT */
/*
 * message.h - JSON-RPC 2.0, as the Model Context Protocol has it
 */
#ifndef REPL_MCP_MESSAGE_H
#define REPL_MCP_MESSAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct strbuf;

/* Codes of errors. */
enum {
	MESSAGE_NO_JSON = -32700,
	MESSAGE_NO_REQUEST = -32600,
	MESSAGE_NO_METHOD = -32601,
	MESSAGE_BAD_PARAMS = -32602,
	MESSAGE_FAILED = -32603,
	/* of the protocol's own */
	MESSAGE_NO_RESOURCE = -32002, /* until 2025-11-25 */
	MESSAGE_NO_VERSION = -32022,  /* since 2026-07-28 */
};

enum message_kind {
	MESSAGE_REQUEST,
	MESSAGE_NOTE,	/* nobody waits for an answer */
	MESSAGE_ANSWER, /* to a request, and we send none */
	MESSAGE_BAD,	/* not in order: `why`, `code` */
};

/* One message. All but `root` borrow from it. */
struct message {
	json_t *root;	  /* owned */
	const json_t *id; /* a string or an integer; NULL: none */
	const char *method;
	const json_t *params; /* an object, or NULL */
	int code;
	const char *why; /* static */
};

/* Take a value apart (takes it). message_fini() frees. */
enum message_kind message_take(struct message *m, json_t *root);
void message_fini(struct message *m);

/* A member of `params` or of its "_meta", if it is of the type; or NULL. */
const json_t *message_param(
	const struct message *m, const char *name, json_type type);
const json_t *message_meta(const struct message *m, const char *name);

/* Append any JSON value. */
void message_add_value(struct strbuf *b, const json_t *v);

/* Append the beginning of an answer, up to the members of its result. */
void message_add_result(struct strbuf *b, const json_t *id);

/* Append an answer that is an error, without its last two brackets; `id` NULL:
 * nobody knows to what. */
void message_add_error(
	struct strbuf *b, const json_t *id, int code, const char *text);

/* Whether a list or an object has just begun; append a comma unless it has. */
bool message_is_empty(const struct strbuf *b);
void message_add_comma(struct strbuf *b);

/* How long a client may keep a result. */
enum message_cache { MESSAGE_FOR_ONCE, MESSAGE_STALE, MESSAGE_FOR_GOOD };

/* End a result; the protocol without handshakes wants more in it. */
void message_end(struct strbuf *b, bool stateless, enum message_cache cache);

/* Append who we are. */
void message_add_server(struct strbuf *b);

#endif
