/* SPDX-License-Identifier: MIT */
/*
 * test_framing.c - which requests are beyond doubt, and what is kept of them
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "repl/serve/edge/edge.h"

#include <string.h>

#define START "POST /eval HTTP/1.1\r\n"
#define HOST "Host: x\r\n"

/* Read it whole, and byte by byte; both come to the same. */
static void read_both(struct framing *h, const char *p, size_t n)
{
	struct framing slow = {0};
	size_t used = framing_take(h, p, n), at = 0;

	while (at < n && slow.state < FRAMING_OVER)
		at += framing_take(&slow, p + at, 1);
	assert_int_equal(at, used);
	assert_int_equal(slow.state, h->state);
	assert_int_equal(slow.status, h->status);
	framing_reset(&slow);
}

static void what_is_in_order_is_told_apart(void **state)
{
	static const struct {
		const char *in, *method, *path, *host, *body;
		size_t rest; /* bytes that belong to the next request */
	} t[] = {
		{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "GET", "/", "x", "", 0},
		{"\r\nGET /a?b=c HTTP/1.0\r\n\r\nGET", "GET", "/a", NULL, "",
			3},
		{"GET http://X:1/%61 HTTP/1.1\r\nhOST:x:1\t \r\nCookie: "
		 "a=b\r\nLast-Event-ID: 1\r\n\r\n",
			"GET", "/a", "x:1", "", 0},
		{START HOST "Content-Length: 2\r\n\r\n{}x", "POST", "/eval",
			"x", "{}", 1},
		{START HOST "transfer-encoding: Chunked\r\n\r\n"
			    "002;a=b\r\n{}\r\n1 \t;a\r\n \r\n0 \r\nX: y\r\n"
			    "Content-Length: 9\r\n\r\nx",
			"POST", "/eval", "x", "{} ", 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct framing h = {0};

		read_both(&h, t[i].in, strlen(t[i].in));
		assert_int_equal(h.state, FRAMING_OVER);
		assert_string_equal(h.method, t[i].method);
		assert_string_equal(h.path, t[i].path);
		assert_int_equal(!h.values[FRAMING_HOST], !t[i].host);
		if (t[i].host)
			assert_string_equal(h.values[FRAMING_HOST], t[i].host);
		assert_string_equal(h.body.s ? h.body.s : "", t[i].body);
		framing_reset(&h);
		assert_int_equal(framing_take(&h, t[i].in, strlen(t[i].in)),
			strlen(t[i].in) - t[i].rest);
		framing_reset(&h);
	}
}

static void what_can_be_read_in_two_ways_is_refused(void **state)
{
	static const struct {
		const char *in;
		int status;
	} t[] = {
		{"GET /\r\n", 400},
		{"GET  / HTTP/1.1\r\n", 400},
		{"GET / HTTP/1.1 \r\n", 400},
		{"GET\t/ HTTP/1.1\r\n", 400},
		{"GET / http/1.1\r\n", 400},
		{"GET / HTTP/1.1\n", 400},
		{"GET / HTTP/2.0\r\n", 505},
		{"GET / HTTP/1.10\r\n", 505},
		{"GET x HTTP/1.1\r\n", 400},
		{"GET /%00 HTTP/1.1\r\n", 400},
		{"GET /\xc3 HTTP/1.1\r\n", 400},
		{"G[T / HTTP/1.1\r\n", 400},
		{"\r\n\r\n\r\n", 400},
		{"\x16\x03\x01", 400},
		{START "\r\n", 400},
		{START HOST HOST, 400},
		{"GET http://a/ HTTP/1.1\r\nHost: b\r\n", 400},
		{"GET http://a/ HTTP/1.0\r\n\r\n", 400},
		{"GET http:///a HTTP/1.1\r\n", 400},
		{"GET http:/a HTTP/1.1\r\n", 400},
		{"GET http://u@a/ HTTP/1.1\r\n", 400},
		{"GET http://a#/ HTTP/1.1\r\n", 400},
		{START "Host: a b\r\n", 400},
		{START "Host: a, b\r\n", 400},
		{START "Host: a/b\r\n", 400},
		{START "Host: u@a\r\n", 400},
		{START "Host : x\r\n", 400},
		{START " Host: x\r\n", 400},
		{START HOST "X: a\r\n b\r\n", 400},
		{START HOST "X: a\n", 400},
		{START HOST "X: a\rb\r\n", 400},
		{START HOST "X: a\x01\r\n", 400},
		{START HOST "X\r\n", 400},
		{START HOST ": x\r\n", 400},
		{START HOST "Content-Length: +1\r\n", 400},
		{START HOST "Content-Length: 1, 1\r\n", 400},
		{START HOST "Content-Length: 0x1\r\n", 400},
		{START HOST "Content-Length:\r\n", 400},
		{START HOST "Content-Length: 1111111111111111111\r\n", 413},
		{START HOST "Content-Length: 1\r\nContent-Length: 1\r\n", 400},
		{START HOST "Content-Length: 1\r\n"
			    "Transfer-Encoding: chunked\r\n\r\n",
			400},
		{START HOST "Transfer-Encoding: xchunked\r\n", 501},
		{START HOST "Transfer-Encoding: chunked, identity\r\n", 501},
		{START HOST "Transfer-Encoding:\r\n", 501},
		{"GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
		{START HOST "Expect: more\r\n", 417},
#define CHUNKED START HOST "Transfer-Encoding: chunked\r\n\r\n"
		{CHUNKED "\r\n", 400},
		{CHUNKED "-1\r\n", 400},
		{CHUNKED "0x1\r\n", 400},
		{CHUNKED "1\n", 400},
		{CHUNKED "1g\r\n", 400},
		{CHUNKED "1 1\r\n", 400},
		{CHUNKED "1111111111111111\r\n", 413},
		{CHUNKED "1\r\nab\r\n", 400},
		{CHUNKED "0\r\nX\r\n", 400},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct framing h = {0};

		read_both(&h, t[i].in, strlen(t[i].in));
		if (h.state != FRAMING_WRONG || h.status != t[i].status)
			fail_msg("%s: %d", t[i].in, h.status);
		assert_non_null(h.words);
		framing_reset(&h);
	}
}

/* The status for `n` times this piece. */
static int status_of(const char *start, const char *piece, size_t n)
{
	struct framing h = {0};
	int status;

	framing_take(&h, start, strlen(start));
	for (size_t i = 0; i < n; i++)
		framing_take(&h, piece, strlen(piece));
	status = h.status;
	framing_reset(&h);
	return status;
}

static void what_is_too_long_is_refused(void **state)
{
	(void)state;
	assert_int_equal(status_of("GET /", "a", 8000), 0);
	assert_int_equal(status_of("GET /", "a", 8200), 414);
	assert_int_equal(status_of(START HOST "X:", "a", 16000), 0);
	assert_int_equal(status_of(START HOST "X:", "a", 16400), 431);
	assert_int_equal(status_of(START HOST, "X:\r\n", 90), 0);
	assert_int_equal(status_of(START HOST, "X:\r\n", 110), 431);
	assert_int_equal(status_of(CHUNKED "1;", "a", 200), 0);
	assert_int_equal(status_of(CHUNKED "1;", "a", 300), 400);
	assert_int_equal(status_of(CHUNKED "0\r\n", "X:\r\n", 110), 431);
	assert_int_equal(status_of(CHUNKED, "1\r\nx\r\n", 100000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_in_order_is_told_apart),
		cmocka_unit_test(what_can_be_read_in_two_ways_is_refused),
		cmocka_unit_test(what_is_too_long_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
