/* SPDX-License-Identifier: MIT */
/* fuzz-sources: repl/json/request.c repl/json/fields.c repl/json/python.c
 * repl/json/stream.c repl/json/emit.c repl/json/report.c repl/json/bundle.c */
/* fuzz-libs: -ljansson */
/*
 * fuzz_request.c - any bytes as a stream of requests, and as a driver's report
 *
 * The stream is one pipe. Each refusal is told in words that are JSON; a
 * path that is accepted stays in the home.
 */
#include "must.h"
#include "repl/json/json.h"
#include "small_rules.h"

#include "jail/spec.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX 4000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_path(const char *path)
{
	must(*path != '/' && *path);
	for (; *path; path += strcspn(path, "/") + (strchr(path, '/') != NULL))
		must(strncmp(path, "..", 2) != 0 ||
			(path[2] && path[2] != '/'));
}

static void check_json(const char *s, size_t n)
{
	struct strbuf b = {0};
	json_t *v;

	emit_bytes(&b, NULL, n ? s : "", n);
	v = json_loadb(b.s, b.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	must(v != NULL);
	json_decref(v);
	strbuf_free(&b);
}

static void parse(const char *text, size_t n, int session)
{
	struct request_rules with = rules;
	struct request_refusal why;
	struct request q;

	with.session = session;
	if (request_parse(&q, text, n, &with, &why) < 0) {
		must(why.title && why.title[0]);
		check_json(why.description.s, why.description.n);
	} else if (q.form == REQUEST_SNEKBOX) {
		must(q.args != NULL && q.python == 0);
	} else if (q.form == REQUEST_CELL) {
		must(q.code && q.code_n <= 1000);
	} else if (q.form == REQUEST_READ) {
		must(q.pattern != NULL);
	} else if (q.form == REQUEST_OURS) {
		must(q.timeout_ms > 0 && q.timeout_ms <= 1000 && q.source.n);
	}
	for (size_t i = 0; i < q.nfiles; i++)
		if (q.files[i].clean)
			check_path(q.files[i].clean);
	request_fini(&q);
	strbuf_free(&why.description);
}

/* The bundle is one member of an object, whatever the value before it is. */
static void check_bundle(const struct report *r)
{
	struct strlist notes = {0};
	struct strbuf b = {0};
	json_t *v;

	emit_open(&b, NULL, '{');
	if (!r->json.p || !emit_json(&b, "value", r->json.p, r->json.n))
		emit_word(&b, "value", "null");
	bundle_add(&b, r);
	emit_close(&b, '}');
	v = json_loadb(b.s, b.n, JSON_ALLOW_NUL, NULL);
	must(v != NULL && json_object_size(v) == 2);
	json_decref(v);
	strbuf_free(&b);
	bundle_list_notes(&notes, r);
	must(notes.n == r->nnotes);
	strlist_fini(&notes);
}

static void take_report(const char *s, size_t n)
{
	struct report r;

	report_parse(&r, s, n);
	for (size_t i = 0; i < r.npng; i++)
		must(r.png[i].p >= s && r.png[i].p + r.png[i].n <= s + n);
	check_bundle(&r);
	must(!r.json.p || (r.json.p >= s && r.json.p + r.json.n <= s + n));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	int fd = memfd_create("requests", MFD_CLOEXEC);
	char *copy = malloc(n + 1);
	struct stream s;
	const char *text;
	size_t len;
	enum stream_next next;

	must(fd >= 0 && copy && write(fd, data, n) == (ssize_t)n &&
		lseek(fd, 0, SEEK_SET) == 0);
	memcpy(copy, data, n);
	take_report(copy, n);
	free(copy);
	stream_open(&s, fd, MAX, 20, 1000);
	while ((next = stream_next(&s, &text, &len)) != STREAM_END) {
		must(next != STREAM_FAILED);
		if (next == STREAM_REQUEST) {
			must(len <= MAX);
			parse(text, len, 0);
			parse(text, len, 1);
		}
	}
	stream_close(&s);
	close(fd);
	return 0;
}
