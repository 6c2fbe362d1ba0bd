/* SPDX-License-Identifier: MIT */
/*
 * test_json.c - the parts of --eval that need no jail
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "jail/base/io.h"
#include "repl/json/json.h"
#include "repl/text/text.h"

#include "tests/lib/defaults.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* ---- base64 ---- */

static void base64_is_strict(void **state)
{
	static const struct {
		const char *text;
		int r;
		const char *bytes;
	} t[] = {
		{"", 0, ""},
		{"YQ==", 0, "a"},
		{"YWI=", 0, "ab"},
		{"YWJj", 0, "abc"},
		{"YW\r\nJj\n", 0, "abc"},
		{"YQ=", -1, ""},
		{"YQ", -1, ""},
		{"Y", -1, ""},
		{"YR==", -1, ""}, /* bits that nobody writes */
		{"YQ==YQ==", -1, ""},
		{"YQ=a", -1, ""},
		{"====", -1, ""},
		{"Y===", -1, ""},
		{"YW-_", -1, ""},
		{"YWJ\xc3", -1, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		char out[BASE64_ROOM(16)];
		size_t n;

		assert_int_equal(
			base64_decode(t[i].text, strlen(t[i].text), out, &n),
			t[i].r);
		if (t[i].r < 0)
			continue;
		assert_int_equal(n, strlen(t[i].bytes));
		assert_memory_equal(out, t[i].bytes, n);
	}
}

static void base64_comes_back_as_it_went(void **state)
{
	unsigned char bytes[70];
	char back[BASE64_ROOM(100)];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 37 + 200);
	for (size_t n = 0; n <= sizeof(bytes); n++) {
		struct strbuf b = {0};
		size_t m;

		base64_add(&b, bytes, n);
		assert_int_equal(
			base64_decode(b.s ? b.s : "", b.n, back, &m), 0);
		assert_int_equal(m, n);
		assert_memory_equal(back, bytes, n);
		strbuf_free(&b);
	}
}

/* ---- words and values of Python ---- */

static void a_value_is_marshalled_as_python_reads_it(void **state)
{
	/* marshal.dumps(…, 2) of Python 3.11, where it writes the same. */
	static const char json[] = "[-1099511627776, 1.5, \"\\u00e9\\u0000\","
				   " null, true, false, {}, 0]";
	static const char want[] = "[\x08\0\0\0"
				   "l\xfd\xff\xff\xff\0\0\0\0\0\x04"
				   "g\0\0\0\0\0\0\xf8?"
				   "u\x03\0\0\0\xc3\xa9\0"
				   "NTF{0"
				   "l\0\0\0\0";
	json_t *v = json_loads(json, JSON_ALLOW_NUL, NULL);
	struct strbuf b = {0};

	(void)state;
	python_marshal(&b, v);
	assert_int_equal(b.n, sizeof(want) - 1);
	assert_memory_equal(b.s, want, b.n);
	strbuf_free(&b);
	json_decref(v);
}

static void any_bytes_become_an_ascii_string(void **state)
{
	static const char bytes[] = "a\"\\\n\r\t\0\x7f\xc3\xa9\xf0\x9f\x98\x80"
				    "\xff\xe2\x82";
	static const char want[] = "\"a\\\"\\\\\\n\\r\\t\\u0000\\u007f\\u00e9"
				   "\\ud83d\\ude00\\ufffd\\ufffd\\ufffd\"";
	struct strbuf b = {0};

	(void)state;
	emit_bytes(&b, NULL, bytes, sizeof(bytes) - 1);
	assert_string_equal(b.s, want);
	assert_false(emit_is_text(bytes, sizeof(bytes) - 1));
	assert_true(emit_is_text(bytes, 14));
	strbuf_free(&b);
}

/* ---- requests ---- */

static struct limits limits;
static const char *const pythons[] = {"/usr/bin/env"};
static const struct request_rules rules = {.limits = &limits,
	.pythons = pythons,
	.resolved = pythons,
	.npythons = 1};

/* The mistake of a request: NULL, or its title and description. */
static const char *mistake(const char *text, size_t n, struct strbuf *b)
{
	struct request_refusal why;
	struct request q;
	int r;

	limits = default_limits();
	r = request_parse(&q, text, n, &rules, &why);
	request_fini(&q);
	b->n = 0;
	if (r < 0)
		strbuf_printf(b, "%s: ", why.title);
	strbuf_add(b, why.description.s, why.description.n);
	strbuf_free(&why.description);
	return r < 0 ? b->s : NULL;
}

struct told {
	const char *json, *words; /* NULL: the request is in order */
};

/* jansson's words vary: only their beginning is ours. */
#define NO_JSON "Invalid JSON: "

/* Each request is told its words, behind the title. */
static void each_is_told(const struct told *t, size_t n, const char *title)
{
	struct strbuf b = {0};

	for (size_t i = 0; i < n; i++) {
		const char *is = mistake(t[i].json, strlen(t[i].json), &b);

		if (!t[i].words) {
			assert_null(is);
			continue;
		}
		assert_non_null(is);
		assert_memory_equal(is, title, strlen(title));
		is += strlen(title);
		if (strcmp(t[i].words, NO_JSON) == 0)
			assert_memory_equal(is, NO_JSON, strlen(NO_JSON));
		else
			assert_string_equal(is, t[i].words);
	}
	strbuf_free(&b);
}

#define EACH_IS_TOLD(t, title)                                                 \
	each_is_told(t, sizeof(t) / sizeof((t)[0]), title)

#define INVALID "Request data failed validation: "
#define NO_NAME                                                                \
	" is not a name of ASCII letters, digits and underscores, or it has "  \
	"two at both ends"
#define FILE_IS "Request file is invalid: "

/* clang-format off */
/* From jsonschema 4.26. */
static const struct told of_jsonschema[] = {
	{"{\"stuff\": \"foo\"}",
		"{'stuff': 'foo'} is not valid under any of the given schemas"},
	{"{\"args\": \"\\u00a0\\u200d\\ue000\\u3000\\u20ac\"}",
		"'\\xa0\\u200d\\ue000\\u3000\xe2\x82\xac' is not of type 'array'"},
	{"{\"args\": 400}",
		"400 is not of type 'array'"},
	{"{\"input\": 1}",
		"1 is not of type 'string'"},
	{"{\"args\": [], \"input\": 5, \"files\": 7, \"executable_path\": 9}",
		"5 is not of type 'string'"},
	{"{\"args\": 3, \"files\": 7}",
		"7 is not of type 'array'"},
	{"{\"args\": 3, \"executable_path\": null}",
		"None is not of type 'string'"},
	{"{\"args\": [\"a\", 1, 2.5]}",
		"2.5 is not of type 'string'"},
	{"{\"input\": \"\", \"files\": [215]}",
		"215 is not of type 'object'"},
	{"{\"input\": \"\", \"files\": [{}]}",
		"'path' is a required property"},
	{"{\"args\": [1], \"files\": [{\"path\": \"ok\"}, {}, {\"path\": \"x\"}]}",
		"'path' is a required property"},
	{"{\"input\": \"\", \"files\": [{\"path\": \"/etc\"}]}",
		"'/etc' does not match '^(?!/)(?!.*\\\\\\\\0).*$'"},
	{"{\"input\": \"\", \"files\": [{\"path\": 5, \"content\": 6}]}",
		"5 is not of type 'string'"},
	{"{\"input\": \"\", \"files\": [{\"path\": \"a\\\\0b\"}]}",
		"'a\\\\0b' does not match '^(?!/)(?!.*\\\\\\\\0).*$'"},
	{"{\"input\": \"\", \"files\": [{\"path\": \"a\\nb\"}]}",
		"'a\\nb' does not match '^(?!/)(?!.*\\\\\\\\0).*$'"},
	{"{\"input\": \"\", \"files\": [{\"path\": \"a\\n\\\\0\"}]}",
		"'a\\n\\\\0' does not match '^(?!/)(?!.*\\\\\\\\0).*$'"},
	{"{\"input\": \"\", \"files\": [{\"path\": \"\", \"content\": 3}]}",
		"3 is not of type 'string'"},
	{"{\"input\": \"\", \"files\": [{\"path\": \"/b\"}, {\"path\": \"c\", \"content\": [1]}]}",
		"[1] is not of type 'string'"},
	{"[1, \"a'b\", \"q\\\"'\", null, true, 1e+16, 1e-05, 0.1, -0.0, 123456789.125, 1e+22, 1.5e+300, 5e-324]",
		"[1, \"a'b\", 'q\"\\'', None, True, 1e+16, 1e-05, 0.1, -0.0, 123456789.125, 1e+22, 1.5e+300, 5e-324] is not of type 'object'"},
	{"\"x\\t\\u007f\\u00e9\\u200b\"",
		"'x\\t\\x7fé\\u200b' is not of type 'object'"},
	{"{\"a\": {\"b\": []}, \"\\u00e9\": false}",
		"{'a': {'b': []}, 'é': False} is not valid under any of the given schemas"},
	{"{\"args\": [[]], \"files\": [{\"path\": \"x\"}, []]}",
		"[] is not of type 'object'"},
	{"{\"args\": [], \"input\": null}",
		"None is not of type 'string'"},
	{"{\"files\": []}",
		"{'files': []} is not valid under any of the given schemas"},
	{"12",
		"12 is not of type 'object'"},
	{"{\"input\": \"\", \"files\": [{\"path\": \"a\\n\"}]}",
		NULL},
	{"{\"input\": \"x\", \"files\": [{\"path\": \"\\u00e9/\\\\0\"}]}",
		"'é/\\\\0' does not match '^(?!/)(?!.*\\\\\\\\0).*$'"},
	{"{\"input\": \"\", \"args\": {}}",
		"{} is not of type 'array'"},
	{"{\"input\": \"\", \"files\": \"x\"}",
		"'x' is not of type 'array'"},
};
/* clang-format on */

static const struct told of_ours[] = {
	{"{\"input\": \"1\"}", NULL},
	{"{\"input\": 1e999}", NO_JSON},
	{"{\"input\": 99999999999999999999}", NO_JSON},
	{"{\"input\": \"1\", \"input\": \"2\"}", NO_JSON},
	{"{\"input\": \"\\ud800\"}", NO_JSON},
	{"{\"input\": \"\xff\"}", NO_JSON},
	{"{\"input\": \"1\"} x", NO_JSON},
	{"", NO_JSON},
	{"{\"input\": \"\", \"files\": [{\"path\": \"../x\"}]}",
		FILE_IS "File path '../x' may not traverse beyond "
			"root"},
	{"{\"input\": \"\", \"files\": [{\"path\": \"a/../../x\"}]}",
		FILE_IS "File path 'a/../../x' may not traverse beyond "
			"root"},
	{"{\"input\": \"\", \"files\": [{\"path\": \"a/../x\"}]}", NULL},
	{"{\"input\": \"\", \"files\": [{\"path\": "
	 "\"../home/x\"}]}",
		NULL},
	{"{\"input\": \"\", \"files\": [{\"path\": "
	 "\"../homes/x\"}]}",
		FILE_IS "File path '../homes/x' may not traverse "
			"beyond root"},
	{"{\"input\": \"\", \"files\": [{\"path\": \"x\", "
	 "\"content\": \"?\"}]}",
		FILE_IS "Invalid base64 encoding for file 'x'"},
	{"{\"input\": \"\", \"files\": [{\"path\": "
	 "\"a\\u0000b\"}]}",
		FILE_IS "File path 'a' may not hold a NUL"},
	{"{\"input\": \"\", \"executable_path\": \"/no/such\"}",
		"executable_path does not exist: /no/such"},
	{"{\"input\": \"\", \"executable_path\": \"/usr\"}",
		"executable_path is not a file: /usr"},
	{"{\"input\": \"\", \"executable_path\": \"/etc/passwd\"}",
		"executable_path is not executable: /etc/passwd"},
	{"{\"input\": \"\", \"executable_path\": "
	 "\"/usr/bin/env\"}",
		NULL},
	{"{\"input\": \"\", \"executable_path\": "
	 "\"/usr/bin/id\"}",
		"executable_path is not executable: /usr/bin/id is not "
		"one of python.executable"},
	{"{\"input\": \"\", \"executable_path\": "
	 "\"/usr/bin/env\\u0000x\"}",
		"executable_path does not exist: /usr/bin/env"},
	{"{\"code\": \"1\"}", NULL},
	{"{\"code\": 1}", INVALID "code: 1 is not of type 'string'"},
	{"{\"code\": \"\", \"input\": \"\"}",
		INVALID "'input' is not a key of this form of request"},
	{"{\"code\": \"\", \"files\": [{\"path\": \"b\", "
	 "\"content\": \"eA==\"}]}",
		NULL},
	{"{\"code\": \"\", \"files\": [{\"path\": \"b\", "
	 "\"file_id\": \"x\"}]}",
		INVALID "'file_id' is not a key of a file here: it has "
			"'path' and 'content'"},
	{"{\"input\": \"\", \"files\": [{\"path\": \"b\", "
	 "\"file_id\": \"x\"}]}",
		NULL},
	{"{\"code\": \"\", \"stdin\": null}", NULL},
	{"{\"code\": \"\", \"stdin\": 5}",
		INVALID "stdin: 5 is not of type 'string'"},
	{"{\"code\": \"\", \"timeout_ms\": 0}",
		INVALID "timeout_ms: 0 is less than the minimum of 1"},
	{"{\"code\": \"\", \"timeout_ms\": 10001}",
		INVALID "timeout_ms exceeds maximum of 10000 ms"},
	{"{\"code\": \"\", \"timeout_ms\": 1.0}",
		INVALID "timeout_ms: 1.0 is not of type 'integer'"},
	{"{\"code\": \"\", \"timeout_ms\": true}",
		INVALID "timeout_ms: True is not of type 'integer'"},
	{"{\"code\": \"\", \"last_line_interactive\": 1}",
		INVALID "last_line_interactive: 1 is not of type "
			"'boolean'"},
	{"{\"code\": \"\", \"variables\": []}",
		INVALID "variables: [] is not of type 'object'"},
	{"{\"code\": \"\", \"variables\": {\"_a1\": []}}", NULL},
	{"{\"code\": \"\", \"variables\": {\"1a\": 1}}",
		INVALID "variables: '1a'" NO_NAME},
	{"{\"code\": \"\", \"variables\": {\"__doc__\": 1}}",
		INVALID "variables: '__doc__'" NO_NAME},
	{"{\"session\": true}", NULL},
	{"{\"session\": true, \"input\": \"\"}",
		INVALID "session: goes alone, on the first line of a "
			"stream"},
	{"{\"code\": \"\", \"session\": false}", NULL},
	{"{\"code\": \"\", \"session\": true}",
		INVALID "session: goes alone, on the first line of a "
			"stream"},
	{"{\"code\": \"\", \"files\": [{\"path\": \"/x\"}]}",
		INVALID "'/x' does not match '^(?!/)(?!.*\\\\\\\\0).*$'"},
};

static void mistakes_are_told_in_the_words_of_jsonschema(void **state)
{
	(void)state;
	EACH_IS_TOLD(of_jsonschema, INVALID);
}

static void each_mistake_is_told(void **state)
{
	(void)state;
	EACH_IS_TOLD(of_ours, "");
}

/* In a session, other requests are in order. */
static void a_session_has_cells_and_commands(void **state)
{
	static const struct {
		const char *json;
		int form; /* -1: it is refused */
	} t[] = {
		{"{\"code\": \"1\"}", REQUEST_CELL},
		{"{\"code\": \"1\", \"stdin\": \"a\\n\", \"timeout_ms\": 5, "
		 "\"files\": [{\"path\": \"x\"}]}",
			REQUEST_CELL},
		{"{\"code\": \"1\", \"stdin\": \"\\u0003\"}", -1},
		{"{\"code\": \"1\", \"stdin\": \"\\u009b\"}", -1},
		{"{\"code\": \"1\", \"variables\": {}}", -1},
		{"{\"code\": \"1\", \"last_line_interactive\": true}", -1},
		{"{\"code\": \"1\", \"session\": true}", -1},
		{"{\"code\": \"1\", \"undo\": 1}", -1},
		{"{\"undo\": 1}", REQUEST_UNDO},
		{"{\"undo\": 99999999999}", -1},
		{"{\"undo\": \"1\"}", -1},
		{"{\"undo\": 1, \"reset\": true}", -1},
		{"{\"reset\": true}", REQUEST_RESET},
		{"{\"reset\": false}", -1},
		{"{\"read\": \"**/*a*.txt\"}", REQUEST_READ},
		{"{\"read\": \"*a*a*\"}", -1},
		{"{\"read\": null}", -1},
		{"{\"session\": true}", -1},
		{"{\"input\": \"1\"}", -1},
		{"[]", -1},
	};
	struct request_rules in_session = rules;
	struct request_refusal why;
	struct request q;

	(void)state;
	limits = default_limits();
	in_session.session = true;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		int r = request_parse(
			&q, t[i].json, strlen(t[i].json), &in_session, &why);

		assert_int_equal(r < 0 ? -1 : (int)q.form, t[i].form);
		request_fini(&q);
		strbuf_free(&why.description);
	}
}

/* Where the configuration is locked, a request finds out nothing of the host
 * but which interpreters it may use. */
static void a_locked_configuration_tells_nothing_of_the_host(void **state)
{
	static const char *const paths[] = {
		"/no/such", "/usr", "/etc/passwd", "/usr/bin/id"};
	struct request_rules locked = rules;
	struct request_refusal why;
	struct request q;
	char text[100];

	(void)state;
	locked.locked = true;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		snprintf(text, sizeof(text),
			"{\"input\": \"\", \"executable_path\": \"%s\"}",
			paths[i]);
		assert_int_equal(
			request_parse(&q, text, strlen(text), &locked, &why),
			-1);
		assert_string_equal(
			why.title, "executable_path does not exist");
		assert_string_equal(why.description.s, paths[i]);
		request_fini(&q);
		strbuf_free(&why.description);
	}
	strcpy(text, "{\"input\": \"\", \"executable_path\": "
		     "\"/usr/bin/env\"}");
	assert_int_equal(
		request_parse(&q, text, strlen(text), &locked, &why), 0);
	request_fini(&q);
}

static void arguments_are_put_together_as_snekbox_does(void **state)
{
	static const struct {
		const char *json;
		const char *args[4];
		bool has_nul;
	} t[] = {
		{"{\"input\": \"1\"}", {"-c", "1"}, false},
		{"{\"args\": [], \"input\": \"1\"}", {"1"}, false},
		{"{\"args\": [\"\", \"\", \"-m\", \"\"]}", {"-m", ""}, false},
		{"{\"args\": [\"-I\", \"-c\"], \"input\": \"\"}",
			{"-I", "-c", ""}, false},
		{"{\"args\": [\"\"]}", {NULL}, false},
		{"{\"input\": \"a\\u0000b\"}", {"-c", "a"}, true},
	};

	(void)state;
	limits = default_limits();
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct request_refusal why;
		struct request q;
		int k;

		assert_int_equal(request_parse(&q, t[i].json, strlen(t[i].json),
					 &rules, &why),
			0);
		for (k = 0; t[i].args[k]; k++)
			assert_string_equal(q.args[k], t[i].args[k]);
		assert_null(q.args[k]);
		assert_int_equal(q.has_nul, t[i].has_nul);
		request_fini(&q);
	}
}

/* ---- the stream ---- */

/* The requests, one letter each: its length as a digit, L long, D deep,
 * M too many values. */
static void requests_are_told_apart(void **state)
{
	static const struct {
		const char *text, *is;
	} t[] = {
		{"", ""},
		{"\n\n  \n", ""},
		{"{}\n[1]\n", "23"},
		{"{}\n[1]", "23"},
		{"{\n}\n{}", "32"},
		{"  {}  \r\n", "7"},
		{"1\n2\n", "11"},
		{"{\"a\n{}\n", "32"},	   /* a quote was forgotten */
		{"\"\\\"\n{}\n", "32"},	   /* an escaped quote is none */
		{"\"{\"\n}\n{}\n", "312"}, /* a bracket in a string */
		{"{1\n{}\n", "32"},	   /* a bracket was forgotten */
		{"[{\n[1]\n\n{}\n", "333"},
		{"[1\n2\n{}\n", "52"},
		{"[1,\n{}]\n", "7"}, /* none was */
		{"{1:\n{}}\n{}\n", "72"},
		{"[1\n {}]\n", "7"},	    /* not the first of its line */
		{"{} {}\n", "5"},	    /* is not in order, but one */
		{"[[[[\n]]]]\n{}\n", "D2"}, /* too deep */
		{"[1,1,1,1]\n{}\n", "92"},
		{"[1,1,1,1,1]\n{}\n", "M2"},
		{"\",,,,,,\"\n{}\n", "82"},
		{"\"123456789012345\"\n{}\n", "L2"},
		{"123456789012345678901234567890\n{}\n", "L2"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		char is[8] = "";
		struct stream s;
		const char *text;
		size_t n, at = 0;
		enum stream_next next;
		int p[2];

		assert_int_equal(pipe(p), 0);
		assert_int_equal(write(p[1], t[i].text, strlen(t[i].text)),
			strlen(t[i].text));
		close(p[1]);
		stream_open(&s, p[0], 12, 3, 4);
		while ((next = stream_next(&s, &text, &n)) != STREAM_END)
			is[at++] = next == STREAM_LONG	 ? 'L'
				   : next == STREAM_DEEP ? 'D'
				   : next == STREAM_MANY ? 'M'
							 : (char)('0' + n);
		assert_string_equal(is, t[i].is);
		stream_close(&s);
		close(p[0]);
	}
}

/* ---- output ---- */

static void output_is_counted_as_snekbox_counts(void **state)
{
	static const struct {
		const char *piece;
		size_t n, chars; /* kept when there is no end */
	} t[] = {
		{"x", 1, 1000000},
		{"\xc3\xa9", 2, 1000000},
		{"\xe2\x82\xac", 3, 500000},
		{"\xf0\x9f\x98\x80", 4, 250000},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		char block[12000];
		struct capture c;
		int p[2];

		for (size_t k = 0; k < sizeof(block); k++)
			block[k] = t[i].piece[k % t[i].n];
		assert_int_equal(pipe(p), 0);
		capture_open(&c, p[0], 1000000, true);
		while (!c.cut) {
			assert_int_equal(write(p[1], block, sizeof(block)),
				sizeof(block));
			capture_read(&c);
		}
		assert_true(c.text.n / t[i].n >= t[i].chars);
		assert_true(c.text.n / t[i].n < t[i].chars + 10001);
		assert_int_equal(c.text.n % (10000 * t[i].n), 0);
		/* The bytes after it are dropped, up to the end. */
		assert_int_equal(write(p[1], "more", 4), 4);
		close(p[1]);
		while (c.fd >= 0)
			capture_read(&c);
		assert_int_equal(c.text.n % (10000 * t[i].n), 0);
		capture_close(&c);
	}
}

/* Bytes that belong to no character are not counted as snekbox counts, but
 * they are not kept for ever either. */
static void bytes_that_are_no_characters_end_too(void **state)
{
	char block[12000];
	struct capture c;
	int p[2];

	(void)state;
	memset(block, 0x80, sizeof(block));
	assert_int_equal(pipe(p), 0);
	capture_open(&c, p[0], 100000, true);
	for (int i = 0; i < 100 && !c.cut; i++) {
		assert_int_equal(
			write(p[1], block, sizeof(block)), sizeof(block));
		capture_read(&c);
	}
	assert_true(c.cut);
	assert_int_equal(c.text.n, 440000);
	close(p[1]);
	capture_close(&c);
	close(p[0]);
}

static void lines_end_with_a_line_feed(void **state)
{
	static const char text[] = "a\r\nb\rc\n\r\r\n\nd";
	const size_t len = strlen(text);

	(void)state;
	/* In two pieces, cut anywhere. */
	for (size_t cut = 0; cut <= len; cut++) {
		char b[sizeof(text)], last = 0;
		size_t n;

		memcpy(b, text, sizeof(text));
		n = answer_unify_lines(b, cut, &last);
		memmove(b + n, b + cut, len - cut);
		n += answer_unify_lines(b + n, len - cut, &last);
		assert_int_equal(n, 10);
		assert_memory_equal(b, "a\nb\nc\n\n\n\nd", n);
	}
}

static void a_report_is_believed_as_far_as_it_goes(void **state)
{
	static const struct {
		const char *text, *type, *json;
		size_t npng;
	} t[] = {
		{"type 3\nintjson 2\n42", "int", "42", 0},
		{"json 2\n42png 0\npng 1\nx", NULL, "42", 2},
		{"what 1\nxtype 1\ny", "y", NULL, 0},
		{"", NULL, NULL, 0},
		{"type 99\nint", NULL, NULL, 0},
		{"type 9999999999999\nint", NULL, NULL, 0},
		{"type x\nint", NULL, NULL, 0},
		{"type 3 int", NULL, NULL, 0},
		{"typeandmore 3\nint", NULL, NULL, 0},
		{"type 3\n", NULL, NULL, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct report r;

		report_parse(&r, t[i].text, strlen(t[i].text));
		assert_int_equal(!!r.type.p, !!t[i].type);
		assert_int_equal(!!r.json.p, !!t[i].json);
		if (t[i].type)
			assert_memory_equal(r.type.p, t[i].type, r.type.n);
		if (t[i].json)
			assert_memory_equal(r.json.p, t[i].json, r.json.n);
		assert_int_equal(r.npng, t[i].npng);
	}
}

static void a_text_of_a_report_has_a_limit(void **state)
{
	static const char *const names[] = {"json", "repr", "type", "png"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (size_t more = 0; more < 2; more++) {
			struct strbuf b = {0};
			struct report r;
			size_t n = REPORT_TEXT_MAX + more;

			strbuf_printf(&b, "%s %zu\n", names[i], n);
			while (n-- > 0)
				strbuf_puts(&b, "1");
			report_parse(&r, b.s, b.n);
			assert_int_equal(r.json.p || r.repr.p || r.type.p,
				i < 3 && !more);
			assert_int_equal(r.npng, i == 3);
			strbuf_free(&b);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(base64_is_strict),
		cmocka_unit_test(base64_comes_back_as_it_went),
		cmocka_unit_test(a_value_is_marshalled_as_python_reads_it),
		cmocka_unit_test(any_bytes_become_an_ascii_string),
		cmocka_unit_test(mistakes_are_told_in_the_words_of_jsonschema),
		cmocka_unit_test(each_mistake_is_told),
		cmocka_unit_test(
			a_locked_configuration_tells_nothing_of_the_host),
		cmocka_unit_test(a_session_has_cells_and_commands),
		cmocka_unit_test(arguments_are_put_together_as_snekbox_does),
		cmocka_unit_test(requests_are_told_apart),
		cmocka_unit_test(output_is_counted_as_snekbox_counts),
		cmocka_unit_test(bytes_that_are_no_characters_end_too),
		cmocka_unit_test(lines_end_with_a_line_feed),
		cmocka_unit_test(a_text_of_a_report_has_a_limit),
		cmocka_unit_test(a_report_is_believed_as_far_as_it_goes),
	};

	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
