/* SPDX-License-Identifier: MIT */
/*
 * json_text.c - any bytes as a JSON string
 *
 * Runs in:   front end, confined
 * Trusts:    nobody
 */
#include "repl/json/json.h"

#include "repl/text/text.h"

#include <string.h>

bool json_text_is_valid(const char *s, size_t n)
{
	const char *end = s + n;
	uint32_t c;

	while (s < end)
		if (!utf8_next(&s, end, &c))
			return false;
	return true;
}

static void add_unit(struct strbuf *b, uint32_t unit)
{
	strbuf_printf(b, "\\u%04x", unit);
}

static void add_character(struct strbuf *b, uint32_t c)
{
	static const char from[] = "\"\\\n\r\t", to[] = "\"\\nrt";
	const char *short_form = c && c < 0x80 ? strchr(from, (int)c) : NULL;
	char pair[2] = {'\\', short_form ? to[short_form - from] : 0};

	if (short_form) {
		strbuf_add(b, pair, 2);
	} else if (c >= 0x10000) {
		add_unit(b, 0xd800 + ((c - 0x10000) >> 10));
		add_unit(b, 0xdc00 + ((c - 0x10000) & 0x3ff));
	} else {
		add_unit(b, c);
	}
}

/* How many bytes from here on stand for themselves. */
static size_t plain_length(const char *s, const char *end)
{
	const char *p = s;

	while (p < end && *p >= 0x20 && *p < 0x7f && *p != '"' && *p != '\\')
		p++;
	return (size_t)(p - s);
}

void json_text_add(struct strbuf *b, const char *s, size_t n)
{
	const char *end = s + n;
	uint32_t c;

	strbuf_puts(b, "\"");
	while (s < end) {
		size_t run = plain_length(s, end);

		strbuf_add(b, s, run);
		s += run;
		if (s == end)
			break;
		utf8_next(&s, end, &c);
		add_character(b, c);
	}
	strbuf_puts(b, "\"");
}
