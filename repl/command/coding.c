/* SPDX-License-Identifier: MIT */
/*
 * coding.c - the encoding that a script declares
 *
 * Runs in:   the front end
 * Trusts:    no byte of the script
 *
 * Python reads a file in the encoding that one of its first two lines declares
 * (PEP 263); cells are UTF-8. The declaration is found as Python's tokenizer
 * finds it: in a comment that is alone on the first line, or on the second
 * line below one without code.
 */
#include "command.h"

#include "jail/base/err.h"
#include "repl/text/text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#define NAME_MAX_BYTES 64

static size_t line_length(const char *s, size_t n)
{
	const char *nl = memchr(s, '\n', n);

	return nl ? (size_t)(nl - s) : n;
}

static bool is_of_a_name(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("-_.", c));
}

/* The name that the comment declares, or "". */
static void declared_name(
	const char *s, const char *end, char name[static NAME_MAX_BYTES])
{
	size_t n = 0;

	for (; end - s > 7; s++) {
		const char *p = s + 7;

		if (memcmp(s, "coding", 6) != 0 || (s[6] != ':' && s[6] != '='))
			continue;
		while (p < end && (*p == ' ' || *p == '\t'))
			p++;
		while (p < end && is_of_a_name(*p) && n < NAME_MAX_BYTES - 1)
			name[n++] = *p++;
		if (n)
			break;
	}
	name[n] = '\0';
}

/* Look at one line. True if the next line may still declare an encoding. */
static bool look_at_line(
	const char *s, size_t n, char name[static NAME_MAX_BYTES])
{
	const char *end = s + n;

	while (s < end && strchr(" \t\f\r", *s) && *s)
		s++;
	if (s == end)
		return true;
	if (*s != '#')
		return false;
	declared_name(s, end, name);
	return !name[0];
}

static bool is_utf8(const char *name)
{
	return !strcasecmp(name, "utf8") || !strcasecmp(name, "utf-8") ||
	       !strcasecmp(name, "utf_8") || !strncasecmp(name, "utf-8-", 6) ||
	       !strncasecmp(name, "utf_8_", 6);
}

/* How many bytes there are before the first that is not ASCII, or UTF-8. */
static size_t decodable_length(const char *s, size_t n, bool ascii)
{
	size_t at = 0;

	while (at < n) {
		uint32_t c;
		int len = utf8_get(s + at, n - at, &c);

		if (len <= 0 || (ascii && len > 1))
			break;
		at += (size_t)len;
	}
	return at;
}

/* A line's number for the error, from 1 on. */
static int line_of(const char *s, size_t at)
{
	int line = 1;

	for (size_t i = 0; i < at; i++)
		line += s[i] == '\n';
	return line;
}

int coding_check(const char *s, size_t n, const char *name, struct err *e)
{
	char coding[NAME_MAX_BYTES] = "";
	size_t first = line_length(s, n), at;

	if (look_at_line(s, first, coding) && first < n)
		look_at_line(s + first + 1,
			line_length(s + first + 1, n - first - 1), coding);
	if (!coding[0] || is_utf8(coding)) {
		at = decodable_length(s, n, false);
		if (at == n)
			return 0;
		err_set(e, "%s:%d: expected UTF-8", name, line_of(s, at));
		return err_hint(e, "no other encoding is declared");
	}
	/* Every encoding but those of Unicode includes ASCII. */
	if (decodable_length(s, n, true) == n &&
		strncasecmp(coding, "utf", 3) != 0)
		return 0;
	err_set(e, "%s: expected UTF-8, but it is declared to be %s", name,
		coding);
	return err_hint(e, "convert it, and change that line");
}
