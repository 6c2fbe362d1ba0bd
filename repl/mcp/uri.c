/* SPDX-License-Identifier: MIT */
/*
 * uri.c - names of files as URIs
 *
 * Runs in:   front end, confined
 * Trusts:    nobody. The path of a URI may lead anywhere: the warden decides
 *            what to open
 */
#include "repl/mcp/parts.h"

#include "jail/base/err.h"
#include "repl/text/text.h"

#include <stdlib.h>
#include <string.h>

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || (c && strchr("-._~/", c));
}

void uri_escape(struct strbuf *b, const char *path)
{
	for (; *path; path++)
		if (is_plain(*path))
			strbuf_add(b, path, 1);
		else
			strbuf_printf(b, "%%%02X", (unsigned char)*path);
}

static int hex_value(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

int uri_unescape(char *s)
{
	char *to = s;

	for (; *s; s++, to++) {
		int high = *s == '%' ? hex_value(s[1]) : -1;
		int low = high >= 0 ? hex_value(s[2]) : -1;

		if (*s != '%') {
			*to = *s;
		} else if (low >= 0 && (high || low)) {
			*to = (char)(high << 4 | low);
			s += 2;
		} else {
			return -1;
		}
	}
	*to = '\0';
	return 0;
}

void uri_add(struct strbuf *b, const char *path)
{
	emit_key(b, "uri");
	strbuf_puts(b, "\"" URI_SCHEME);
	uri_escape(b, path);
	strbuf_puts(b, "\"");
}

bool uri_is_ours(const char *s)
{
	return !strncmp(s, URI_SCHEME, sizeof(URI_SCHEME) - 1);
}

char *uri_path(const char *uri, struct err *e)
{
	char *path;

	if (!uri_is_ours(uri)) {
		err_set(e, "%.200s: a file of the home is " URI_SCHEME "PATH",
			uri);
		return NULL;
	}
	path = strdup(uri + sizeof(URI_SCHEME) - 1);
	if (!path) {
		err_errno(e, "hold a name");
	} else if (uri_unescape(path) < 0) {
		err_set(e, "%.200s: %% stands before two digits, not 00", uri);
		free(path);
		path = NULL;
	}
	return path;
}
