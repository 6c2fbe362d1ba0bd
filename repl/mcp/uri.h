/* SPDX-License-Identifier: MIT */
/*
 * uri.h - names of files as URIs
 *
 * A file of the home has the URI cellblock:///PATH, in which all bytes but
 * letters, digits and -._~/ are written as %XX. So every name has one, whatever
 * its bytes.
 */
#ifndef REPL_MCP_URI_H
#define REPL_MCP_URI_H

#include <stdbool.h>

struct err;
struct strbuf;

#define URI_SCHEME "cellblock:///"

/* Append a path with escapes; the URI of a path, as a JSON string. */
void uri_escape(struct strbuf *b, const char *path);
void uri_add(struct strbuf *b, const char *path);

/* Take the escapes out, in place. 0; -1: half an escape, or a NUL. */
int uri_unescape(char *s);

bool uri_is_ours(const char *s);

/* The path that a URI stands for. Owned; NULL with e. */
char *uri_path(const char *uri, struct err *e);

#endif
