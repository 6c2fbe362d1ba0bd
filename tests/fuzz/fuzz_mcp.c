/* SPDX-License-Identifier: MIT */
/* fuzz-sources: repl/mcp/message.c repl/mcp/tools.c repl/mcp/uri.c
 * repl/json/stream.c repl/json/emit.c */
/* fuzz-libs: -ljansson */
/*
 * fuzz_mcp.c - any bytes as messages of the Model Context Protocol
 *
 * Each line is one message, whatever it holds. The answers are JSON, and a path
 * comes back from its URI.
 */
#include "must.h"

#include "repl/json/json.h"
#include "repl/mcp/parts.h"

#include "jail/base/err.h"
#include "repl/text/text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX 4000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_json(struct strbuf *b)
{
	json_t *v = json_loadb(b->s, b->n, JSON_ALLOW_NUL, NULL);

	must(v != NULL && !memchr(b->s, '\n', b->n));
	json_decref(v);
	strbuf_free(b);
}

static void check_call(const struct message *m)
{
	static json_t *tools;
	const json_t *name = message_param(m, "name", JSON_STRING);
	const json_t *arguments = message_param(m, "arguments", JSON_OBJECT);
	enum tools_tool tool = tools_find(name);
	struct err e = {0};

	if (!tools)
		tools = tools_load(NULL);
	must(tools != NULL);
	if (tool == TOOLS_UNKNOWN)
		return;
	if (tools_check(tools, tool, arguments, &e) < 0)
		must(e.msg[0]);
	else if (tool == TOOLS_RUN_CELL)
		must(json_is_string(json_object_get(arguments, "code")));
}

static void check_answer(const struct message *m)
{
	struct strbuf b = {0};

	message_add_result(&b, m->id);
	message_end(&b, m->params != NULL, MESSAGE_STALE);
	check_json(&b);
	message_add_error(&b, m->id, -1, m->method);
	strbuf_puts(&b, "}}");
	check_json(&b);
}

static void take(const char *text, size_t n)
{
	json_t *root = json_loadb(text, n,
		JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY,
		NULL);
	struct message m;

	if (!root)
		return;
	switch (message_take(&m, root)) {
	case MESSAGE_REQUEST:
		must(m.id && m.method);
		check_call(&m);
		check_answer(&m);
		break;
	case MESSAGE_NOTE:
		must(!m.id && m.method);
		break;
	case MESSAGE_ANSWER:
		must(!m.method);
		break;
	case MESSAGE_BAD:
		must(m.why && m.code < 0);
		break;
	}
	message_fini(&m);
}

/* Any bytes have a URI, which leads back to them. */
static void check_uri(const uint8_t *data, size_t n)
{
	struct strbuf b = {0};
	char name[MAX + 1], *path;
	struct err e = {0};

	memcpy(name, data, n);
	name[n] = '\0';
	path = uri_path(name, &e);
	must(path || e.msg[0]);
	free(path);
	strbuf_puts(&b, URI_SCHEME);
	uri_escape(&b, name);
	path = uri_path(b.s, NULL);
	must(path && !strcmp(path, name));
	free(path);
	strbuf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	enum stream_next what;
	struct stream s;
	const char *text;
	size_t length;

	n = n < MAX ? n : MAX;
	must(fd >= 0 && write(fd, data, n) == (ssize_t)n);
	lseek(fd, 0, SEEK_SET);
	check_uri(data, n);
	stream_open(&s, fd, MAX / 2, 20, 200);
	s.lines = true;
	while ((what = stream_next(&s, &text, &length)) != STREAM_END) {
		must(what != STREAM_FAILED && what != STREAM_MORE);
		if (what != STREAM_REQUEST)
			continue;
		/* Empty lines may stand before it. */
		while (length > 0 && strchr("\r\n\t ", *text) && *text)
			text++, length--;
		must(length > 0 && !memchr(text, '\n', length));
		take(text, length);
	}
	stream_close(&s);
	close(fd);
	return 0;
}
