/* SPDX-License-Identifier: MIT */
/*
 * coding.c - the encoding that a script declares
 *
 * Runs in:   the front end
 * Trusts:    no byte of the script
 *
 * Python reads a file in the encoding that one of its first two lines declares
 * (PEP 263); cells are UTF-8. We look for the declaration where Python's
 * tokenizer does: in a comment that has the first line to itself, or the second
 * line if the first has no code.
 */
#include "command.h"

#include "jail/base/err.h"
#include "repl/text/text.h"

#include <ctype.h>
#include <strings.h>

#define NAME_MAX_BYTES 64

/* Find the name that the comment declares, or "". */
static void find_declared_name(
	const char *s, const char *end, char name[static NAME_MAX_BYTES])
{
	size_t n = 0;

	for (; end - s > 7 && !n; s++) {
		const char *p = s + 7;

		if (memcmp(s, "coding", 6) != 0 || (s[6] != ':' && s[6] != '='))
			continue;
		while (p < end && (*p == ' ' || *p == '\t'))
			p++;
		for (; p < end && n < NAME_MAX_BYTES - 1; p++) {
			if (!isalnum((unsigned char)*p) &&
				!memchr("-_.", *p, 3))
				break;
			name[n++] = *p;
		}
	}
	name[n] = '\0';
}

/* Look at the first line of [*s, end) and step over it. True if the next line
 * may still declare an encoding. */
static bool look_at_line(
	const char **s, const char *end, char name[static NAME_MAX_BYTES])
{
	const char *p = *s, *nl = memchr(p, '\n', (size_t)(end - p));

	*s = nl ? nl + 1 : end;
	end = nl ? nl : end;
	while (p < end && memchr(" \t\f\r", *p, 4))
		p++;
	if (p < end && *p != '#')
		return false;
	find_declared_name(p, end, name);
	return !name[0] && nl;
}

static bool is_utf8(const char *name)
{
	return !strcasecmp(name, "utf8") || !strcasecmp(name, "utf-8") ||
	       !strcasecmp(name, "utf_8") || !strncasecmp(name, "utf-8-", 6) ||
	       !strncasecmp(name, "utf_8_", 6);
}

int coding_check(const char *s, size_t n, const char *name, struct err *e)
{
	char coding[NAME_MAX_BYTES] = "";
	const char *rest = s;
	size_t at = 0, ascii = 0;
	int line = 1, len;
	uint32_t c;

	if (look_at_line(&rest, s + n, coding))
		look_at_line(&rest, s + n, coding);
	for (; at < n && (len = utf8_get(s + at, n - at, &c)) > 0;
		at += (size_t)len) {
		ascii += len == 1;
		line += c == '\n';
	}
	if (!coding[0] || is_utf8(coding)) {
		if (at == n)
			return 0;
		err_set(e, "%s:%d: expected UTF-8", name, line);
		return err_hint(e, "no other encoding is declared");
	}
	/* Every encoding but those of Unicode includes ASCII. */
	if (ascii == n && strncasecmp(coding, "utf", 3) != 0)
		return 0;
	err_set(e, "%s: expected UTF-8, but it is declared to be %s", name,
		coding);
	return err_hint(e, "convert it, and change that line");
}
