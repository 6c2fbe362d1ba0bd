/* SPDX-License-Identifier: MIT */
/*
 * parts.h - what the files of --mcp share
 *
 *	message.c	JSON-RPC 2.0, as the Model Context Protocol has it
 *	calls.c		the session, and the call that is served in it
 *	uri.c		names of files as URIs
 *	resource.c	files of the home, as tools and as resources
 *	tools.c		names, arguments and results of the tools: tools.txt
 */
#ifndef REPL_MCP_PARTS_H
#define REPL_MCP_PARTS_H

#include "repl/json/json.h"

#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

struct calls;
struct pool;

/* ---- message.c ---- */

/* Codes of errors. */
enum {
	MESSAGE_NO_JSON = -32700,
	MESSAGE_NO_REQUEST = -32600,
	MESSAGE_NO_METHOD = -32601,
	MESSAGE_BAD_PARAMS = -32602,
	MESSAGE_FAILED = -32603,
	/* the protocol's own */
	MESSAGE_NO_RESOURCE = -32002, /* until 2025-11-25 */
	MESSAGE_NO_VERSION = -32022,  /* since 2026-07-28 */
};

enum message_kind {
	MESSAGE_REQUEST,
	MESSAGE_NOTE,	/* a notification, without an answer */
	MESSAGE_ANSWER, /* to a request; but we send none */
	MESSAGE_BAD,	/* malformed: `why`, `code` */
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

/* Parse a value (taken). message_fini() frees the message. */
enum message_kind message_take(struct message *m, json_t *root);
void message_fini(struct message *m);

/* A member of `params` or of its "_meta", if it is of the type; or NULL. */
const json_t *message_param(
	const struct message *m, const char *name, json_type type);
const json_t *message_meta(const struct message *m, const char *name);

/* Append the beginning of any message; of an answer, up to the members of its
 * result. */
void message_begin(struct strbuf *b);
void message_add_result(struct strbuf *b, const json_t *id);

/* Append an answer that is an error, without its last two brackets; `id` NULL:
 * we do not know the request. */
void message_add_error(
	struct strbuf *b, const json_t *id, int code, const char *text);

/* How long a client may keep a result. */
enum message_cache { MESSAGE_FOR_ONCE, MESSAGE_STALE, MESSAGE_FOR_GOOD };

/* End a result. The protocol without handshakes (`stateless`) wants more
 * members in it. */
void message_end(struct strbuf *b, bool stateless, enum message_cache cache);

/* Append our name and version. */
void message_add_server(struct strbuf *b, const char *key);

/* ---- calls.c ---- */

/*
 * One call at a time: calls_begin() when calls_is_ready(), then calls_turn()
 * until calls_is_done(), then calls_answer().
 */

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
	bool dropped;	/* the client has cancelled it */
};

/* Begin with a session from the pool. All is borrowed. Without a session the
 * answer to each call says why. 0, or -1 with e. */
int calls_open(struct calls **out, struct pool *pool, const struct config *cfg,
	struct log *log, struct err *e);

/* End the session. -1 with e when a jail could not be built, or a session
 * broke. */
int calls_close(struct calls *c, struct err *e);

/* Append the table of tools. */
void calls_add_tools(const struct calls *c, struct strbuf *b);

bool calls_is_ready(const struct calls *c);

/* Begin to serve a call (borrowed until it is answered). */
void calls_begin(struct calls *c, const struct call *call);

/* As cells_polls() and cells_turn(), also between calls, and with the pool's
 * descriptors. */
#define CALLS_POLLS (CELLS_POLLS + 8)
int calls_polls(const struct calls *c, struct pollfd p[static CALLS_POLLS]);
void calls_turn(struct calls *c, const struct pollfd *p);
bool calls_is_done(const struct calls *c);

/* Interrupt the cell that runs; no other call takes long. */
void calls_interrupt(struct calls *c);

/* Append the answer, a whole message. A call that was dropped has none. */
void calls_answer(struct calls *c, struct strbuf *b);

/* Append a progress notification, a whole message, if the client wants one and
 * it is due. */
void calls_add_progress(struct calls *c, struct strbuf *b);

/* ---- uri.c ---- */

/*
 * A file of the home has the URI cellblock:///PATH, in which all bytes but
 * letters, digits and -._~/ are written as %XX. So every name has a URI.
 */

#define URI_SCHEME "cellblock:///"

/* Append a path with escapes; append a member "uri" with the URI of a path. */
void uri_escape(struct strbuf *b, const char *path);
void uri_add(struct strbuf *b, const char *path);

/* Replace the escapes, in place. 0; -1: an incomplete escape, or a NUL. */
int uri_unescape(char *s);

bool uri_is_ours(const char *s);

/* The path that a URI stands for. Owned; NULL with e. */
char *uri_path(const char *uri, struct err *e);

/* ---- resource.c ---- */

/* Longest file that we read; most bytes that it may take as JSON: clients take
 * messages of 10 MiB. */
#define RESOURCE_MAX (5 << 20)
#define RESOURCE_TOLD_MAX (7 << 20)

/* The template of all URIs. */
#define RESOURCE_TEMPLATE URI_SCHEME "{+path}"

/* The path in the home that a URI, or the name of a file, stands for. Owned;
 * NULL with e. */
char *resource_from_uri(const json_t *uri, struct err *e);
char *resource_from_name(const json_t *name, struct err *e);

/* Append the members of a list of resources: one page, which begins behind the
 * cursor (NULL: at the start). 0, or -1 with e. */
int resource_add_page(struct strbuf *b, const struct jail_files *files,
	const char *cursor, struct err *e);

/* Append {"files": ..., "truncated": ...} as an item, with the files that match
 * (NULL: all), and the same as text. */
void resource_add_files(struct strbuf *b, struct strbuf *text,
	const struct jail_files *files, const char *pattern);

/* The form of a file in an answer. */
enum resource_as {
	RESOURCE_AS_CONTENTS, /* an item of "contents" */
	RESOURCE_AS_BLOCK,    /* a block of a tool's "content" */
};

/* Append the file `path`, which is open as `fd` (borrowed). 0, or -1 with e. */
int resource_add(struct strbuf *b, int fd, const char *path,
	const struct limits *limits, enum resource_as as, struct err *e);

/* Append a picture as a block. */
void resource_add_picture(
	struct strbuf *b, const char *s, size_t n, const char *type);

/* True if the bytes begin as a picture of this type does. */
bool resource_is_png(const char *s, size_t n);

/* Make *q a request to write a file with the text, or with what the base64
 * encodes. The caller calls request_fini() either way. 0, or -1 with e. */
int resource_take(struct request *q, const char *path, const json_t *text,
	const json_t *base64, const struct limits *limits, struct err *e);

/* ---- tools.c ---- */

enum tools_tool {
	TOOLS_RUN_CELL,
	TOOLS_SHOW_PICTURES,
	TOOLS_UNDO,
	TOOLS_RESET,
	TOOLS_LIST_FILES,
	TOOLS_READ_FILE,
	TOOLS_WRITE_FILE,
	TOOLS_UNKNOWN,
};

/* Read the table that is built in. NULL with e. json_decref() frees. */
json_t *tools_load(struct err *e);

/* The command that does the same at the prompt, or NULL. */
const char *tools_command(enum tools_tool tool);

/* Take a tool out of the table. */
void tools_leave_out(json_t *tools, enum tools_tool tool);

/* Append the table. */
void tools_add(struct strbuf *b, const json_t *tools);

/* The tool of this name, or TOOLS_UNKNOWN. */
enum tools_tool tools_find(const json_t *name);

/* Check the arguments of a call (NULL: none) against the tool's inputSchema:
 * their names, their types, the required ones. 0, or -1 with e, in words that
 * the client can act on. */
int tools_check(const json_t *tools, enum tools_tool tool,
	const json_t *arguments, struct err *e);

#endif
