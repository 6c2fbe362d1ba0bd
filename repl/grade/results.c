/* SPDX-License-Identifier: MIT */
/*
 * results.c - results in a file, from which a later run goes on
 *
 * Runs in:   front end; the file is opened before it is confined
 * Trusts:    nothing in the file but what we can parse: it may have been cut,
 *            or be another file, which stays as it is
 * Leaves:    a whole line for each submission that was graded
 *
 * A line is a JSON object. A submission is graded again when the plan or its
 * own files have changed; then the later line counts.
 */
#include "repl/grade/grade.h"

#include "jail/base/io.h"
#include "repl/json/json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Largest file of results. */
#define BYTES_MAX (256 << 20)

static void write_digest(char buf[static 40], const struct exercise *p,
	const struct submission *u)
{
	snprintf(buf, 40, "%016" PRIx64 "-%016" PRIx64, p->digest, u->digest);
}

/* How each line begins. */
static const char beginning[] = "{\"submission\": \"";

/* Keep a line that an earlier run has left. 0, or -1: it is none of ours, or
 * there is no memory. */
static int take_line(struct results *r, const char *s, size_t n)
{
	json_t *o = json_loadb(s, n, 0, NULL);
	const char *name = json_string_value(json_object_get(o, "submission"));
	int status = -1;

	if (name && json_is_string(json_object_get(o, "digest")) &&
		json_is_array(json_object_get(o, "tests")))
		status = json_object_set(r->by_name, name, o);
	json_decref(o);
	return status;
}

/* True if a run that was killed may have left these bytes without a line end.
 */
static bool is_torn(const char *s, size_t n)
{
	size_t most = sizeof(beginning) - 1;

	return !memcmp(s, beginning, n < most ? n : most);
}

static int read_lines(struct results *r, const char *path, struct err *e)
{
	auto_free char *text = NULL;
	struct stat st;
	size_t at = 0, n;

	if (fstat(r->fd, &st) < 0)
		return err_errno(e, "read %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, "%s is no regular file", path);
	if (st.st_size > BYTES_MAX)
		return err_set(e, "%s is larger than any results", path);
	if (io_read_some(r->fd, (size_t)st.st_size, &text, &n) < 0)
		return err_errno(e, "read %s", path);
	for (int line = 1; at < n; line++) {
		const char *nl = memchr(text + at, '\n', n - at);

		if (nl ? take_line(r, text + at, (size_t)(nl - text) - at) < 0
		       : !is_torn(text + at, n - at))
			return err_set(e,
				"%s is no file of results, and stays as it is: "
				"line %d is no result",
				path, line);
		if (!nl)
			break;
		at = (size_t)(nl - text) + 1;
	}
	if (at < n && ftruncate(r->fd, (off_t)at) < 0)
		return err_errno(e, "mend the last line of %s", path);
	return 0;
}

int results_open(struct results *r, const struct exercise *p, const char *path,
	struct err *e)
{
	*r = (struct results){.plan = p, .fd = -1, .by_name = json_object()};
	if (!r->by_name)
		return err_errno(e, "hold the results");
	if (!path)
		return 0;
	r->fd = open(path,
		O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
		0600);
	if (r->fd < 0)
		return err_errno(e, "open %s for the results", path);
	if (flock(r->fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK
			       ? err_set(e, "another run writes to %s", path)
			       : err_errno(e, "lock %s", path);
	return read_lines(r, path, e);
}

void results_close(struct results *r)
{
	fd_drop(&r->fd);
	json_decref(r->by_name);
	r->by_name = NULL;
}

bool results_have(const struct results *r, const struct submission *u)
{
	return json_object_get(r->by_name, u->name) != NULL;
}

const json_t *results_find(const struct results *r, const struct submission *u)
{
	const json_t *o = json_object_get(r->by_name, u->name);
	const char *has = json_string_value(json_object_get(o, "digest"));
	char digest[40];

	write_digest(digest, r->plan, u);
	return has && !strcmp(has, digest) ? o : NULL;
}

static void add_test(struct strbuf *b, const struct exercise_test *t,
	const struct judgement *v)
{
	emit_open(b, NULL, '{');
	emit_text(b, "name", t->name);
	emit_bool(b, "passed", v->passed);
	emit_int(b, "points", v->passed ? t->points : 0);
	emit_int(b, "of", t->points);
	emit_text(b, "why", v->why);
	emit_text(b, "limit", verdict_limit_key(v->limit));
	emit_int_or_null(b, "exit_code", v->status >= 0, v->status);
	emit_int(b, "duration_ms", v->wall_ms);
	emit_int(b, "cpu_ms", v->cpu_ms);
	emit_int(b, "memory_peak_bytes", v->peak_bytes);
	emit_close(b, '}');
}

static void add_result(struct strbuf *b, const struct exercise *p,
	const struct submission *u, const struct judgement *v, const char *why)
{
	char digest[40];
	int points = 0;

	for (size_t i = 0; !why && i < p->ntests; i++)
		points += v[i].passed ? p->tests[i].points : 0;
	write_digest(digest, p, u);
	emit_open(b, NULL, '{');
	emit_text(b, "submission", u->name);
	emit_int_or_null(b, "version", u->version > 0, u->version);
	emit_int(b, "points", points);
	emit_int(b, "of", p->points);
	emit_text(b, "why", why);
	emit_texts(b, "left_out", &u->left);
	emit_open(b, "tests", '[');
	for (size_t i = 0; !why && i < p->ntests; i++)
		add_test(b, &p->tests[i], &v[i]);
	emit_close(b, ']');
	emit_text(b, "digest", digest);
	emit_close(b, '}');
}

/* Write a whole line, or nothing. 0, or -1 with e. */
static int write_line(struct results *r, const struct strbuf *b, struct err *e)
{
	off_t end;

	if (r->fd < 0)
		return 0;
	end = lseek(r->fd, 0, SEEK_END);
	if (b->failed || end < 0 || io_write_full(r->fd, b->s, b->n) < 0) {
		err_errno(e, "write a result");
		if (end >= 0 && ftruncate(r->fd, end) < 0)
			return -1; /* the next run drops the torn line */
		return -1;
	}
	return 0;
}

int results_add(struct results *r, const struct submission *u,
	const struct judgement *v, const char *why, struct err *e)
{
	struct strbuf b = {0};
	int status = 0;

	add_result(&b, r->plan, u, v, why);
	if (b.failed || take_line(r, b.s, b.n) < 0)
		status = err_set(e, "hold a result: out of memory");
	strbuf_puts(&b, "\n");
	if (status == 0)
		status = write_line(r, &b, e);
	strbuf_free(&b);
	return status;
}
