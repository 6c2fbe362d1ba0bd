/* SPDX-License-Identifier: MIT */
/*
 * emit.c - writing JSON
 *
 * Runs in:   front end, confined
 * Trusts:    keys, which are ours; no text
 */
#include "repl/json/json.h"

#include "repl/text/text.h"

#include <stdlib.h>
#include <string.h>

bool emit_is_text(const char *s, size_t n)
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
	static const char hex[] = "0123456789abcdef";
	char text[] = "\\u0000";

	for (int i = 5; i > 1; i--, unit >>= 4)
		text[i] = hex[unit & 15];
	strbuf_add(b, text, 6);
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

/* How many bytes from `s` on need no escape. */
static size_t plain_length(const char *s, const char *end)
{
	const char *p = s;

	while (p < end && *p >= 0x20 && *p < 0x7f && *p != '"' && *p != '\\')
		p++;
	return (size_t)(p - s);
}

static void add_string(struct strbuf *b, const char *s, size_t n)
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

/* ---- members of an object, or items of a list ---- */

void emit_key(struct strbuf *b, const char *key)
{
	/* An object or list that has just begun ends in a bracket, a blank or a
	 * line's end. */
	if (b->n && !strchr("{[ \n", b->s[b->n - 1]))
		strbuf_puts(b, ", ");
	if (key)
		strbuf_printf(b, "\"%s\": ", key);
}

void emit_open(struct strbuf *b, const char *key, char bracket)
{
	emit_key(b, key);
	strbuf_add(b, &bracket, 1);
}

void emit_close(struct strbuf *b, char bracket)
{
	strbuf_add(b, &bracket, 1);
}

void emit_text(struct strbuf *b, const char *key, const char *s)
{
	if (s)
		emit_bytes(b, key, s, strlen(s));
	else
		emit_word(b, key, "null");
}

void emit_word(struct strbuf *b, const char *key, const char *word)
{
	emit_key(b, key);
	strbuf_puts(b, word);
}

void emit_bool(struct strbuf *b, const char *key, bool v)
{
	emit_word(b, key, v ? "true" : "false");
}

void emit_int(struct strbuf *b, const char *key, int64_t v)
{
	emit_key(b, key);
	strbuf_printf(b, "%lld", (long long)v);
}

void emit_int_or_null(struct strbuf *b, const char *key, bool known, int64_t v)
{
	if (known)
		emit_int(b, key, v);
	else
		emit_word(b, key, "null");
}

void emit_base64(struct strbuf *b, const char *key, const void *bytes, size_t n)
{
	emit_key(b, key);
	strbuf_puts(b, "\"");
	base64_add(b, bytes, n);
	strbuf_puts(b, "\"");
}

void emit_texts(struct strbuf *b, const char *key, const struct strlist *l)
{
	emit_open(b, key, '[');
	for (size_t i = 0; i < l->n; i++)
		emit_text(b, NULL, l->items[i]);
	emit_close(b, ']');
}

void emit_value(struct strbuf *b, const char *key, const json_t *v)
{
	char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);

	emit_word(b, key, text ? text : "null");
	free(text);
}

/* A client's parser may give up on deeper values. */
static bool is_deeper(const json_t *v, int most)
{
	const char *key;
	json_t *one;
	size_t i;

	if (most == 0)
		return json_is_array(v) || json_is_object(v);
	json_array_foreach(
		(json_t *)v, i, one) if (is_deeper(one, most - 1)) return true;
	json_object_foreach((json_t *)v, key,
		one) if (is_deeper(one, most - 1)) return true;
	return false;
}

/* Append JSON, with an escape for each character that is not ASCII: only strings
 * have such. */
static void add_json(struct strbuf *b, const char *s, const char *end)
{
	uint32_t c;

	while (s < end) {
		const char *run = s;

		while (s < end && *s >= ' ' && *s <= '~')
			s++;
		strbuf_add(b, run, (size_t)(s - run));
		if (s < end) {
			utf8_next(&s, end, &c);
			add_character(b, c);
		}
	}
}

bool emit_json(struct strbuf *b, const char *key, const char *s, size_t n)
{
	json_t *v;
	bool fits;

	/* emit_key() would take a blank at the end for our own. */
	while (n > 0 && s[n - 1] == ' ')
		n--;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] < ' ')
			return false;
	v = json_loadb(s, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	fits = v && !is_deeper(v, REQUEST_DEPTH_MAX);
	json_decref(v);
	if (!fits)
		return false;
	emit_key(b, key);
	add_json(b, s, s + n);
	return true;
}

void emit_bytes(struct strbuf *b, const char *key, const char *s, size_t n)
{
	emit_key(b, key);
	add_string(b, s, n);
}
