/* SPDX-License-Identifier: MIT */
/*
 * resource.h - files of the home, as tools and as resources
 */
#ifndef REPL_MCP_RESOURCE_H
#define REPL_MCP_RESOURCE_H

#include "uri.h"

#include <jansson.h>
#include <stddef.h>

struct err;
struct jail_files;
struct limits;
struct request;
struct strbuf;

/* Longest file that is read, and most that is told of one: clients take
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

/* Append {"files": ..., "truncated": ...} with the files that match (NULL:
 * all), and the same as text. */
void resource_add_files(struct strbuf *b, struct strbuf *text,
	const struct jail_files *files, const char *pattern);

/* How a file is told. */
enum resource_as {
	RESOURCE_AS_CONTENTS, /* one of "contents" */
	RESOURCE_AS_BLOCK,    /* a block of a tool's "content" */
};

/* Append the file `path`, which is open as `fd` (borrowed). 0, or -1 with e. */
int resource_add(struct strbuf *b, int fd, const char *path,
	const struct limits *limits, enum resource_as as, struct err *e);

/* Whether the bytes begin as a picture of this type does. */
bool resource_is_png(const char *s, size_t n);

/* Make it a request to write a file with the text, or the base64; the caller
 * ends with request_fini() either way. 0, or -1 with e. */
int resource_take(struct request *q, const char *path, const json_t *text,
	const json_t *base64, const struct limits *limits, struct err *e);

#endif
