/* SPDX-License-Identifier: MIT */
/*
 * message.c - JSON-RPC 2.0, as the Model Context Protocol has it
 *
 * Runs in:   front end, confined
 * Trusts:    nobody: a message is a client's
 * Leaves:    a message in which each part has its type, or the reason why not
 *
 * Params are an object and never a list, an id is a string or an integer and
 * never null: the protocol is stricter than JSON-RPC.
 */
#include "repl/mcp/parts.h"

#include "repl/json/json.h"
#include "repl/text/text.h"

#include <stdlib.h>
#include <string.h>

static enum message_kind reject_message(
	struct message *m, int code, const char *why)
{
	m->code = code;
	m->why = why;
	return MESSAGE_BAD;
}

/* A string without a NUL, or NULL. */
static const char *plain_text(const json_t *v)
{
	const char *s = json_string_value(v);

	return s && strlen(s) == json_string_length(v) ? s : NULL;
}

enum message_kind message_take(struct message *m, json_t *root)
{
	const json_t *id = json_object_get(root, "id");
	const json_t *method = json_object_get(root, "method");
	const char *version = plain_text(json_object_get(root, "jsonrpc"));

	*m = (struct message){.root = root};
	if (!json_is_object(root))
		return reject_message(m, MESSAGE_NO_REQUEST,
			"Invalid Request: a message is an object");
	if (json_is_string(id) || json_is_integer(id))
		m->id = id;
	if (!version || strcmp(version, "2.0") != 0)
		return reject_message(m, MESSAGE_NO_REQUEST,
			"Invalid Request: jsonrpc is not \"2.0\"");
	if (id && !m->id)
		return reject_message(m, MESSAGE_NO_REQUEST,
			"Invalid Request: id is no string and no integer");
	if (!method && (json_object_get(root, "result") ||
			       json_object_get(root, "error")))
		return MESSAGE_ANSWER;
	m->method = plain_text(method);
	if (!m->method)
		return reject_message(m, MESSAGE_NO_REQUEST,
			"Invalid Request: method is no name");
	m->params = json_object_get(root, "params");
	if (m->params && !json_is_object(m->params))
		return reject_message(m, MESSAGE_BAD_PARAMS,
			"Invalid params: params is no object");
	return m->id ? MESSAGE_REQUEST : MESSAGE_NOTE;
}

void message_fini(struct message *m)
{
	json_decref(m->root);
	*m = (struct message){0};
}

const json_t *message_param(
	const struct message *m, const char *name, json_type type)
{
	const json_t *v = json_object_get(m->params, name);

	return v && json_typeof(v) == type ? v : NULL;
}

const json_t *message_meta(const struct message *m, const char *name)
{
	return json_object_get(json_object_get(m->params, "_meta"), name);
}

void message_begin(struct strbuf *b)
{
	emit_open(b, NULL, '{');
	emit_text(b, "jsonrpc", "2.0");
}

void message_add_result(struct strbuf *b, const json_t *id)
{
	message_begin(b);
	emit_value(b, "id", id);
	emit_open(b, "result", '{');
}

void message_add_error(
	struct strbuf *b, const json_t *id, int code, const char *text)
{
	message_begin(b);
	emit_value(b, "id", id);
	emit_open(b, "error", '{');
	emit_int(b, "code", code);
	emit_text(b, "message", text);
}

void message_end(struct strbuf *b, bool stateless, enum message_cache cache)
{
	if (stateless && cache != MESSAGE_FOR_ONCE) {
		emit_int(b, "ttlMs", cache == MESSAGE_FOR_GOOD ? 3600000 : 0);
		emit_text(b, "cacheScope",
			cache == MESSAGE_FOR_GOOD ? "public" : "private");
	}
	if (stateless) {
		emit_text(b, "resultType", "complete");
		emit_open(b, "_meta", '{');
		message_add_server(b, "io.modelcontextprotocol/serverInfo");
		emit_close(b, '}');
	}
	strbuf_puts(b, "}}");
}

void message_add_server(struct strbuf *b, const char *key)
{
	emit_open(b, key, '{');
	emit_text(b, "name", "cellblock");
	emit_text(b, "title", "Cellblock");
	emit_text(b, "version", CELLBLOCK_VERSION);
	emit_close(b, '}');
}
