/* SPDX-License-Identifier: MIT */
/*
 * execute.c - the body of POST /v1/execute
 *
 * Runs in:   front end, confined
 * Trusts:    nobody: the body is a client's
 * Leaves:    a request in which every field is valid, or a refusal
 *
 * FastAPI and pydantic answer a wrong body with a list of all its mistakes.
 * Clients get the same list here.
 */
#include "repl/serve/parts.h"

#include "jail/base/array.h"
#include "jail/base/io.h"
#include "jail/spec.h"
#include "repl/json/json.h"

#include <stdio.h>
#include <string.h>

#define UNPROCESSABLE 422
/* Longest value that a mistake repeats. */
#define INPUT_MAX 4096

void execute_add_detail(struct strbuf *b, const char *words, size_t n)
{
	emit_open(b, NULL, '{');
	emit_bytes(b, "detail", words, n);
	emit_close(b, '}');
}

/* ---- mistakes, in pydantic's words ---- */

struct mistakes {
	struct strbuf *b;
	int n;
};

static void add_input(struct strbuf *b, const json_t *v)
{
	char *text =
		v ? json_dumps(v, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;

	emit_word(
		b, "input", text && strlen(text) <= INPUT_MAX ? text : "null");
	free(text);
}

/* `where` continues the list ["body". */
static void begin_mistake(struct mistakes *m, const char *type,
	const char *where, const char *words)
{
	if (!m->n++) {
		emit_open(m->b, NULL, '{');
		emit_open(m->b, "detail", '[');
	}
	emit_open(m->b, NULL, '{');
	emit_text(m->b, "type", type);
	emit_open(m->b, "loc", '[');
	strbuf_printf(m->b, "\"body\"%s]", where);
	emit_text(m->b, "msg", words);
}

static void add_mistake(struct mistakes *m, const char *type, const char *where,
	const char *words, const json_t *input)
{
	begin_mistake(m, type, where, words);
	add_input(m->b, input);
	emit_close(m->b, '}');
}

static int end_mistakes(struct mistakes *m)
{
	if (m->n)
		strbuf_puts(m->b, "]}");
	return m->n ? UNPROCESSABLE : 0;
}

void execute_add_no_file(struct strbuf *b)
{
	struct mistakes m = {.b = b};

	add_mistake(&m, "missing", ", \"file\"", "Field required", NULL);
	end_mistakes(&m);
}

/* Words for a value of a wrong type. */
static const struct {
	const char *type, *mistake, *words;
} type_mistakes[] = {
	{"array", "list_type", "Input should be a valid list"},
	{"boolean", "bool_type", "Input should be a valid boolean"},
	{"integer", "int_type", "Input should be a valid integer"},
	{"object", "model_attributes_type",
		"Input should be a valid dictionary or object to extract "
		"fields from"},
	{"string", "string_type", "Input should be a valid string"},
};

static void add_wrong_type(struct mistakes *m, const char *type,
	const char *where, const json_t *v)
{
	for (size_t i = 0; i < COUNT(type_mistakes); i++)
		if (!strcmp(type_mistakes[i].type, type))
			add_mistake(m, type_mistakes[i].mistake, where,
				type_mistakes[i].words, v);
}

void execute_add_no_object(struct strbuf *b)
{
	struct mistakes m = {.b = b};

	add_wrong_type(&m, "object", "", NULL);
	end_mistakes(&m);
}

static void check_field(struct mistakes *m, const json_t *owner,
	const struct request_field *f, const char *where)
{
	const json_t *v = json_object_get(owner, f->name);
	char words[80], ctx[48];

	if (!v) {
		if (f->required)
			add_mistake(
				m, "missing", where, "Field required", owner);
	} else if (!fields_takes(f, v)) {
		add_wrong_type(m, f->type, where, v);
	} else if (json_is_integer(v) && json_integer_value(v) < f->least) {
		snprintf(words, sizeof(words),
			"Input should be greater than or equal to %lld",
			(long long)f->least);
		snprintf(ctx, sizeof(ctx), "{\"ge\": %lld}",
			(long long)f->least);
		begin_mistake(m, "greater_than_equal", where, words);
		add_input(m->b, v);
		emit_word(m->b, "ctx", ctx);
		emit_close(m->b, '}');
	}
}

/* `where` is the path of the object. */
static void check_object(struct mistakes *m, const json_t *v,
	const struct request_field *fields, const char *where)
{
	char place[128];

	if (!json_is_object(v)) {
		add_wrong_type(m, "object", where, v);
		return;
	}
	for (const struct request_field *f = fields; f->name; f++) {
		snprintf(place, sizeof(place), "%s, \"%s\"", where, f->name);
		check_field(m, v, f, place);
	}
}

static int check_body(const json_t *root, struct strbuf *words)
{
	struct mistakes m = {.b = words};
	const json_t *files = json_object_get(root, "files");
	char where[64];

	check_object(&m, root, fields_execute_request, "");
	for (size_t i = 0; i < json_array_size(files) && m.n < 100; i++) {
		snprintf(where, sizeof(where), ", \"files\", %zu", i);
		check_object(&m, json_array_get(files, i), fields_stored_file,
			where);
	}
	return end_mistakes(&m);
}

/* ---- files ---- */

static int refuse_body(struct strbuf *words, int status, const char *text)
{
	execute_add_detail(words, text, strlen(text));
	return status;
}

/* Say why a request was refused, and free that. */
static int refuse_request(struct strbuf *words, struct request_refusal *why)
{
	const struct strbuf *d = &why->description;

	execute_add_detail(words, strbuf_text(d), d->n);
	strbuf_free(&why->description);
	return UNPROCESSABLE;
}

static const char *explain_path(const json_t *path)
{
	const char *p = json_string_value(path), *part;

	if (strlen(p) != json_string_length(path))
		return "File path must not hold a NUL.";
	if (!p[strspn(p, "./")])
		return strstr(p, "..") ? "File paths must not contain '..'."
		       : *p == '/'     ? "File paths must be relative."
				       : "File path must not be empty.";
	if (*p == '/')
		return "File paths must be relative.";
	for (part = p; part; part = strchr(part, '/')) {
		part += *part == '/';
		if (!strncmp(part, "..", 2) && (!part[2] || part[2] == '/'))
			return "File paths must not contain '..'.";
	}
	return NULL;
}

static int add_stored_file(struct request *q, struct execute_files *files,
	const json_t *file, const struct request_rules *rules,
	struct strbuf *words)
{
	const json_t *path = json_object_get(file, "path");
	const char *id = json_string_value(json_object_get(file, "file_id"));
	const char *wrong = explain_path(path), *p = json_string_value(path);
	struct store_file *f;
	struct request_refusal why = {0};
	char text[1024];
	off_t at;
	int r, fd;

	if (wrong)
		return refuse_body(words, UNPROCESSABLE, wrong);
	f = store_find(files->store, id, files->who);
	if (!f) {
		snprintf(text, sizeof(text),
			"File with ID '%.100s' not found for path '%.800s'.",
			id, p);
		return refuse_body(words, 404, text);
	}
	if (array_grow(&files->v, files->n, sizeof(*files->v)) < 0)
		return refuse_body(words, 503, "out of memory");
	store_hold(f);
	files->v[files->n++] = f;
	fd = store_locate(files->store, f, &at);
	r = request_add_file(q, p, fd, at, (size_t)f->size, rules, &why);
	if (r < 0)
		return refuse_request(words, &why);
	if (!strcmp(q->files[q->nfiles - 1].clean, "__main__.py"))
		return refuse_body(words, UNPROCESSABLE,
			"File path '__main__.py' is reserved for the execution "
			"entrypoint.");
	return 0;
}

void execute_release(struct execute_files *files)
{
	for (size_t i = 0; i < files->n; i++)
		store_release(files->store, files->v[i]);
	free(files->v);
	files->v = NULL;
	files->n = 0;
}

/* ---- all of it ---- */

static int refuse_non_json(struct strbuf *words, const json_error_t *e)
{
	struct mistakes m = {.b = words};
	char where[32];

	snprintf(where, sizeof(where), ", %d",
		e->position > 0 ? e->position : 0);
	begin_mistake(&m, "json_invalid", where, "JSON decode error");
	emit_word(words, "input", "{}");
	emit_open(words, "ctx", '{');
	emit_text(words, "error", e->text);
	strbuf_puts(words, "}}");
	end_mistakes(&m);
	return UNPROCESSABLE;
}

/* Make a request of --eval from the body. Other keys are left out. */
static json_t *translate_body(const json_t *root, int64_t timeout_ms)
{
	static const char *const keys[] = {
		"code", "stdin", "last_line_interactive", "variables", "mime"};
	json_t *to = json_object();

	for (size_t i = 0; i < COUNT(keys); i++) {
		json_t *v = json_object_get(root, keys[i]);

		if (v && json_object_set(to, keys[i], v) < 0)
			break;
	}
	json_object_set_new(to, "timeout_ms", json_integer(timeout_ms));
	return to;
}

static int fill_request(struct request *q, struct execute_files *files,
	const json_t *root, const struct request_rules *rules,
	struct strbuf *words)
{
	const json_t *timeout = json_object_get(root, "timeout_ms");
	const json_t *list = json_object_get(root, "files");
	int64_t most = rules->most_ms;
	int64_t ms =
		fields_find(fields_execute_request, "timeout_ms")->fallback;
	struct limits limits = *rules->limits;
	struct request_rules longer = *rules;
	struct request_refusal why = {0};
	char text[80];
	int r;

	if (timeout)
		ms = json_integer_value(timeout);
	if (timeout && ms > most) {
		snprintf(text, sizeof(text),
			"timeout_ms exceeds maximum of %lld ms",
			(long long)most);
		return refuse_body(words, UNPROCESSABLE, text);
	}
	limits.cell_wall_ms = most;
	longer.limits = &limits;
	longer.works = true;
	r = request_take(
		q, translate_body(root, ms < most ? ms : most), &longer, &why);
	if (r < 0)
		return refuse_request(words, &why);
	r = 0;
	for (size_t i = 0; i < json_array_size(list) && r == 0; i++)
		r = add_stored_file(
			q, files, json_array_get(list, i), rules, words);
	if (r == 0 && request_add_main(q, rules, &why) < 0)
		return refuse_request(words, &why);
	return r;
}

int execute_parse(struct request *q, struct execute_files *files,
	const struct strbuf *body, const struct request_rules *rules,
	struct strbuf *words)
{
	struct mistakes m = {.b = words};
	json_error_t e;
	json_t *root;
	int r;

	*q = (struct request){0};
	if (body->n == 0) {
		add_mistake(&m, "missing", "", "Field required", NULL);
		return end_mistakes(&m);
	}
	root = json_loadb(body->s, body->n,
		JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &e);
	if (!root)
		return refuse_non_json(words, &e);
	r = check_body(root, words);
	if (r == 0)
		r = fill_request(q, files, root, rules, words);
	/* The request borrows the paths of files from it. */
	if (q->root)
		json_object_set_new(q->root, "files",
			json_incref(json_object_get(root, "files")));
	json_decref(root);
	return r;
}
