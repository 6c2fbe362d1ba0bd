/* SPDX-License-Identifier: MIT */
/*
 * python.c - JSON values as repr() and as marshal
 *
 * Runs in:   front end
 * Trusts:    that the depth of a value is bounded (request.c)
 *
 * repr(): snekbox's clients get a mistake in the words of Python's jsonschema.
 * marshal: the driver reads it without loading a module.
 */
#include "repl/json/json.h"

#include "repl/text/text.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- repr ---- */

/* False for characters that repr() escapes: every blank but the space,
 * invisible and private characters. */
static bool is_printable(uint32_t c)
{
	if (c < 0x80)
		return c >= 0x20 && c < 0x7f;
	if (c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200f) ||
		c == 0x202f || c == 0x205f || c == 0x3000)
		return false;
	return utf8_is_visible(c) && !(c >= 0xe000 && c < 0xf900) &&
	       c < 0xf0000;
}

static void repr_character(struct strbuf *b, uint32_t c, char quote)
{
	char utf8[4];

	if (c == (uint32_t)quote || c == '\\')
		strbuf_printf(b, "\\%c", (char)c);
	else if (c == '\n' || c == '\r' || c == '\t')
		strbuf_printf(b, "\\%c",
			c == '\n'   ? 'n'
			: c == '\r' ? 'r'
				    : 't');
	else if (is_printable(c))
		strbuf_add(b, utf8, utf8_put(c, utf8));
	else
		strbuf_printf(b,
			c < 0x100     ? "\\x%02x"
			: c < 0x10000 ? "\\u%04x"
				      : "\\U%08x",
			c);
}

void python_repr_text(struct strbuf *b, const char *s, size_t n)
{
	const char *end = s + n;
	char quote = memchr(s, '\'', n) && !memchr(s, '"', n) ? '"' : '\'';
	uint32_t c;

	strbuf_add(b, &quote, 1);
	while (s < end && b->n <= PYTHON_REPR_MAX) {
		utf8_next(&s, end, &c);
		repr_character(b, c, quote);
	}
	strbuf_add(b, &quote, 1);
}

/* The shortest text that reads back as the same number. Python uses an exponent
 * from 1e16 on and below 1e-4. */
static void repr_real(struct strbuf *b, double d)
{
	char text[40];
	int digits = 1, exponent;

	do
		snprintf(text, sizeof(text), "%.*e", digits - 1, d);
	while (strtod(text, NULL) != d && ++digits <= 17);
	exponent = atoi(strchr(text, 'e') + 1);
	if (d == 0 || (exponent >= -4 && exponent < 16)) {
		int after = digits - 1 - (d == 0 ? 0 : exponent);

		snprintf(text, sizeof(text), "%.*f", after > 1 ? after : 1, d);
	}
	strbuf_puts(b, text);
}

static void repr_list(struct strbuf *b, const json_t *v)
{
	strbuf_puts(b, "[");
	for (size_t i = 0; i < json_array_size(v) && b->n <= PYTHON_REPR_MAX;
		i++) {
		strbuf_puts(b, i ? ", " : "");
		python_repr(b, json_array_get(v, i));
	}
	strbuf_puts(b, "]");
}

static void repr_dict(struct strbuf *b, const json_t *v)
{
	const char *sep = "";

	strbuf_puts(b, "{");
	for (void *i = json_object_iter((json_t *)v);
		i && b->n <= PYTHON_REPR_MAX;
		i = json_object_iter_next((json_t *)v, i)) {
		strbuf_puts(b, sep);
		python_repr_text(b, json_object_iter_key(i),
			strlen(json_object_iter_key(i)));
		strbuf_puts(b, ": ");
		python_repr(b, json_object_iter_value(i));
		sep = ", ";
	}
	strbuf_puts(b, "}");
}

void python_repr(struct strbuf *b, const json_t *v)
{
	switch (json_typeof(v)) {
	case JSON_OBJECT:
		repr_dict(b, v);
		break;
	case JSON_ARRAY:
		repr_list(b, v);
		break;
	case JSON_STRING:
		python_repr_text(
			b, json_string_value(v), json_string_length(v));
		break;
	case JSON_INTEGER:
		strbuf_printf(
			b, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
		break;
	case JSON_REAL:
		repr_real(b, json_real_value(v));
		break;
	case JSON_TRUE:
		strbuf_puts(b, "True");
		break;
	case JSON_FALSE:
		strbuf_puts(b, "False");
		break;
	case JSON_NULL:
		strbuf_puts(b, "None");
		break;
	}
}

/* ---- marshal: little endian on every machine ---- */

static void add_type(struct strbuf *b, char type)
{
	strbuf_add(b, &type, 1);
}

static void add_bytes(struct strbuf *b, uint64_t v, int n)
{
	for (int i = 0; i < n; i++)
		add_type(b, (char)(v >> 8 * i));
}

static void add_text(struct strbuf *b, char type, const void *p, size_t n)
{
	add_type(b, type);
	add_bytes(b, n, 4);
	strbuf_add(b, p, n);
}

/* A sign with the number of digits, then digits of 15 bits. */
static void add_long(struct strbuf *b, json_int_t v)
{
	uint64_t rest = v < 0 ? -(uint64_t)v : (uint64_t)v;
	int n = 0;

	for (uint64_t r = rest; r; r >>= 15)
		n++;
	add_type(b, 'l');
	add_bytes(b, (uint64_t)(uint32_t)(v < 0 ? -n : n), 4);
	for (; rest; rest >>= 15)
		add_bytes(b, rest & 0x7fff, 2);
}

static void add_real(struct strbuf *b, double d)
{
	uint64_t bits;

	memcpy(&bits, &d, sizeof(bits));
	add_type(b, 'g');
	add_bytes(b, bits, 8);
}

static void add_list(struct strbuf *b, const json_t *v)
{
	add_type(b, '[');
	add_bytes(b, json_array_size(v), 4);
	for (size_t i = 0; i < json_array_size(v); i++)
		python_marshal(b, json_array_get(v, i));
}

static void add_dict(struct strbuf *b, const json_t *v)
{
	add_type(b, '{');
	for (void *i = json_object_iter((json_t *)v); i;
		i = json_object_iter_next((json_t *)v, i)) {
		add_text(b, 'u', json_object_iter_key(i),
			strlen(json_object_iter_key(i)));
		python_marshal(b, json_object_iter_value(i));
	}
	add_type(b, '0');
}

void python_marshal(struct strbuf *b, const json_t *v)
{
	switch (json_typeof(v)) {
	case JSON_OBJECT:
		add_dict(b, v);
		break;
	case JSON_ARRAY:
		add_list(b, v);
		break;
	case JSON_STRING:
		add_text(b, 'u', json_string_value(v), json_string_length(v));
		break;
	case JSON_INTEGER:
		add_long(b, json_integer_value(v));
		break;
	case JSON_REAL:
		add_real(b, json_real_value(v));
		break;
	case JSON_TRUE:
		add_type(b, 'T');
		break;
	case JSON_FALSE:
		add_type(b, 'F');
		break;
	case JSON_NULL:
		add_type(b, 'N');
		break;
	}
}

void python_marshal_tuple(struct strbuf *b, int n)
{
	add_type(b, '(');
	add_bytes(b, (uint64_t)n, 4);
}

void python_marshal_bytes(struct strbuf *b, const void *p, size_t n)
{
	add_text(b, 's', p, n);
}
