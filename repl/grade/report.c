/* SPDX-License-Identifier: MIT */
/*
 * report.c - results as a table, JSON and JUnit's XML
 *
 * Runs in:   front end, confined
 * Trusts:    no name and no word: students chose them
 */
#include "repl/grade/grade.h"

#include "jail/base/io.h"

#include <string.h>

/* The result of a submission, or NULL: it was not graded. A result that the
 * plan or the submission has outlived counts no more. */
static const json_t *find_result(
	const struct results *r, const struct submission *u)
{
	return u->digest ? results_find(r, u) : NULL;
}

static const char *word_of(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

static int64_t number_of(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

/* ---- a table ---- */

/* The first test that failed, and why. */
static void write_why(char *buf, size_t size, const json_t *result)
{
	const json_t *tests = json_object_get(result, "tests");
	const char *why = word_of(result, "why");
	char words[200];
	size_t failed = 0;

	buf[0] = '\0';
	if (why) {
		text_safe(buf, size, why, strlen(why));
		return;
	}
	for (size_t i = 0; i < json_array_size(tests); i++) {
		const json_t *t = json_array_get(tests, i);

		why = word_of(t, "why");
		if (!why || failed++)
			continue;
		snprintf(words, sizeof(words), "%s: %s", word_of(t, "name"),
			why);
		text_safe(buf, size, words, strlen(words));
	}
	if (failed > 1)
		snprintf(buf + strlen(buf), size - strlen(buf), " · %zu more",
			failed - 1);
}

void report_table(const struct results *r, const struct submissions *s,
	int width, FILE *f)
{
	struct text_table t = {.columns = 4, .width = width, .right = 6};
	struct strbuf b = {0};

	text_table_add(&t, (const char *[]){"SUBMISSION", "VERSION", "POINTS",
				   "WHY NOT ALL"});
	for (size_t i = 0; i < s->n; i++) {
		const json_t *o = find_result(r, &s->v[i]);
		char name[100], version[16], points[48], why[300];

		text_safe(
			name, sizeof(name), s->v[i].name, strlen(s->v[i].name));
		snprintf(version, sizeof(version), "%d", s->v[i].version);
		snprintf(points, sizeof(points), "%lld of %lld",
			(long long)number_of(o, "points"),
			(long long)number_of(o, "of"));
		if (o)
			write_why(why, sizeof(why), o);
		text_table_add(&t,
			(const char *[]){name, s->v[i].version ? version : "",
				o ? points : "", o ? why : "not graded"});
	}
	text_table_write(&t, &b);
	if (!b.failed)
		fwrite(b.s, 1, b.n, f);
	strbuf_free(&b);
}

void report_json(const struct results *r, const struct submissions *s, FILE *f)
{
	for (size_t i = 0; i < s->n; i++) {
		const json_t *o = find_result(r, &s->v[i]);

		if (!o)
			continue;
		json_dumpf(o, f, JSON_ENSURE_ASCII | JSON_COMPACT);
		fputc('\n', f);
	}
}

/* ---- JUnit ---- */

/* Append text for XML: what XML cannot have at all becomes '?'. */
static void add_xml(struct strbuf *b, const char *s)
{
	static const struct {
		char c;
		const char *as;
	} marks[] = {
		{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}};
	const char *end = s ? s + strlen(s) : s;
	uint32_t c;

	while (s < end) {
		const char *from = s, *as = NULL;
		bool is_text = utf8_next(&s, end, &c);

		for (size_t i = 0; i < COUNT(marks); i++)
			if (c == (unsigned char)marks[i].c)
				as = marks[i].as;
		if (!is_text || (c < 0x20 && c != '\n' && c != '\t') ||
			c == 0xfffe || c == 0xffff)
			as = "?";
		if (as)
			strbuf_puts(b, as);
		else
			strbuf_add(b, from, (size_t)(s - from));
	}
}

static void add_attribute(struct strbuf *b, const char *name, const char *text)
{
	strbuf_printf(b, " %s=\"", name);
	add_xml(b, text);
	strbuf_puts(b, "\"");
}

/* `as` is the element for a test that did not pass. */
static void add_case(struct strbuf *b, const char *suite, const char *name,
	const char *as, const char *why, int64_t ms)
{
	strbuf_puts(b, "    <testcase");
	add_attribute(b, "classname", suite);
	add_attribute(b, "name", name);
	strbuf_printf(b, " time=\"%lld.%03lld\">", (long long)(ms / 1000),
		(long long)(ms % 1000));
	if (why) {
		strbuf_printf(b, "<%s", as);
		add_attribute(b, "message", why);
		strbuf_puts(b, "/>");
	}
	strbuf_puts(b, "</testcase>\n");
}

/* `o` is NULL for a submission that was not graded. */
static void add_suite(
	struct strbuf *b, const struct submission *u, const json_t *o)
{
	const json_t *tests = json_object_get(o, "tests");
	const char *why = o ? word_of(o, "why") : "not graded";
	size_t n = json_array_size(tests), failed = o && why;

	for (size_t i = 0; i < n; i++)
		failed += word_of(json_array_get(tests, i), "why") != NULL;
	strbuf_puts(b, "  <testsuite");
	add_attribute(b, "name", u->name);
	strbuf_printf(b, " tests=\"%zu\" failures=\"%zu\" errors=\"%d\">\n",
		n + (why != NULL), failed, !o);
	if (why)
		add_case(b, u->name, "submission", o ? "failure" : "error", why,
			0);
	for (size_t i = 0; i < n; i++) {
		const json_t *t = json_array_get(tests, i);

		add_case(b, u->name, word_of(t, "name"), "failure",
			word_of(t, "why"), number_of(t, "duration_ms"));
	}
	strbuf_puts(b, "  </testsuite>\n");
}

int report_junit(const struct results *r, const struct submissions *s, int fd,
	struct err *e)
{
	struct strbuf b = {0};
	int status = 0;

	strbuf_puts(&b, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
			"<testsuites");
	add_attribute(
		&b, "name", r->plan->title ? r->plan->title : r->plan->program);
	strbuf_puts(&b, ">\n");
	for (size_t i = 0; i < s->n; i++)
		add_suite(&b, &s->v[i], find_result(r, &s->v[i]));
	strbuf_puts(&b, "</testsuites>\n");
	if (b.failed)
		status = err_set(e, "write JUnit's XML: out of memory");
	else if (io_write_full(fd, b.s, b.n) < 0)
		status = err_errno(e, "write JUnit's XML");
	strbuf_free(&b);
	return status;
}
