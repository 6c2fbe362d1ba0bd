/* SPDX-License-Identifier: MIT */
/*
 * base64.c - bytes as text (RFC 4648, section 4)
 *
 * Runs in:   the front end
 * Trusts:    no input: a stranger may have sent it
 */
#include "repl/text/text.h"

static const char alphabet[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_add(struct strbuf *b, const void *p, size_t n)
{
	const unsigned char *at = p;

	while (n > 0) {
		size_t has = n < 3 ? n : 3;
		uint32_t v = (uint32_t)at[0] << 16 |
			     (uint32_t)(has > 1 ? at[1] : 0) << 8 |
			     (has > 2 ? at[2] : 0);
		char four[4] = {alphabet[v >> 18], alphabet[v >> 12 & 63],
			has > 1 ? alphabet[v >> 6 & 63] : '=',
			has > 2 ? alphabet[v & 63] : '='};

		strbuf_add(b, four, 4);
		at += has;
		n -= has;
	}
}

/* The value of a character: 0 to 63, 64 for padding, -1 for any other. */
static int value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : c == '=' ? 64 : -1;
}

/* Decode four characters; the last `pads` are padding. The bits that padding
 * leaves over must be zero. */
static int take_four(const int four[4], int pads, char *out, size_t *out_n)
{
	uint32_t v = 0;

	for (int i = 0; i < 4; i++)
		v = v << 6 | (uint32_t)(four[i] & 63);
	if (pads > 2 || (v & ((1u << 8 * pads) - 1)) != 0)
		return -1;
	for (int i = 0; i < 3 - pads; i++)
		out[(*out_n)++] = (char)(v >> (16 - 8 * i));
	return 0;
}

int base64_decode(const char *s, size_t n, char *out, size_t *out_n)
{
	int four[4], have = 0, pads = 0;

	*out_n = 0;
	for (size_t i = 0; i < n; i++) {
		int v = value_of(s[i]);

		if (s[i] == ' ' || s[i] == '\n' || s[i] == '\r')
			continue;
		/* Only padding may follow padding. */
		if (v < 0 || (pads && (v != 64 || have == 0)))
			return -1;
		pads += v == 64;
		four[have++] = v == 64 ? 0 : v;
		if (have < 4)
			continue;
		if (take_four(four, pads, out, out_n) < 0)
			return -1;
		have = 0;
	}
	return have == 0 ? 0 : -1;
}
