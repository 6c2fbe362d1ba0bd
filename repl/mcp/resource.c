/* SPDX-License-Identifier: MIT */
/*
 * resource.c - files of the home, as tools and as resources
 *
 * Runs in:   front end, confined, between cells
 * Trusts:    nobody: URIs and names are a client's, files are a cell's. The
 *            warden opens and names files, and lets nothing but regular files
 *            of the home through
 * Leaves:    a whole file, or an error
 */
#include "repl/mcp/parts.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "repl/files/files.h"
#include "repl/json/json.h"
#include "repl/text/text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Most resources of a page. */
#define PAGE 500
/* A list ends behind so many bytes. */
#define LIST_MAX (2 << 20)

/* ---- names ---- */

char *resource_from_uri(const json_t *uri, struct err *e)
{
	const char *s = json_string_value(uri);

	if (strlen(s) == json_string_length(uri))
		return uri_path(s, e);
	err_set(e, "a name may not hold a NUL");
	return NULL;
}

char *resource_from_name(const json_t *name, struct err *e)
{
	const char *s = json_string_value(name);
	const char *in_home = transfer_home_name(s);
	char *path = NULL;

	if (uri_is_ours(s))
		return resource_from_uri(name, e);
	if (strlen(s) != json_string_length(name))
		err_set(e, "a name may not hold a NUL");
	else if (in_home[0] == '/')
		err_set(e, "%.200s is not below the home, /home", s);
	else if (!(path = strdup(in_home)))
		err_errno(e, "hold a name");
	return path;
}

/* ---- lists ---- */

static void add_resource(struct strbuf *b, const struct jail_file *f)
{
	emit_open(b, NULL, '{');
	uri_add(b, f->path);
	emit_text(b, "name", f->path);
	emit_int(b, "size", f->bytes);
	emit_close(b, '}');
}

/* The cursor is the escaped path of the last file of the page before. */
int resource_add_page(struct strbuf *b, const struct jail_files *files,
	const char *cursor, struct err *e)
{
	auto_free char *last = cursor ? strdup(cursor) : NULL;
	const struct jail_file *end = NULL;
	size_t n = 0, before = b->n;

	if (cursor && (!last || uri_unescape(last) < 0))
		return err_set(e, "there is no such cursor");
	emit_open(b, "resources", '[');
	for (size_t i = 0; i < files->n && n <= PAGE; i++) {
		const struct jail_file *f = &files->v[i];

		if (f->type != 'f' || (last && strcmp(f->path, last) <= 0))
			continue;
		if (b->n - before > LIST_MAX)
			n = PAGE;
		if (n++ == PAGE)
			break;
		add_resource(b, f);
		end = f;
	}
	emit_close(b, ']');
	if (n > PAGE) {
		emit_key(b, "nextCursor");
		strbuf_puts(b, "\"");
		uri_escape(b, end->path);
		strbuf_puts(b, "\"");
	}
	return 0;
}

static void add_file(
	struct strbuf *b, struct strbuf *text, const struct jail_file *f)
{
	char shown[1024];

	outcome_begin_file(b, f->path, f->type, f->bytes);
	uri_add(b, f->path);
	emit_close(b, '}');
	text_safe(shown, sizeof(shown), f->path, strlen(f->path));
	strbuf_printf(text, "%lld\t%s\n", (long long)f->bytes, shown);
}

void resource_add_files(struct strbuf *b, struct strbuf *text,
	const struct jail_files *files, const char *pattern)
{
	bool cut = files->truncated;

	emit_open(b, NULL, '{');
	emit_open(b, "files", '[');
	for (size_t i = 0; i < files->n; i++) {
		const struct jail_file *f = &files->v[i];

		if (f->type == 'd' ||
			(pattern && !transfer_matches(pattern, f->path)))
			continue;
		if (b->n > LIST_MAX) {
			cut = true;
			break;
		}
		add_file(b, text, f);
	}
	emit_close(b, ']');
	emit_bool(b, "truncated", cut);
	emit_close(b, '}');
	if (cut)
		strbuf_puts(text, "[there are more]\n");
}

/* ---- one file ---- */

/* The type of a picture that clients can show, by its first bytes; NULL: it is
 * none. */
static const char *find_picture_type(const char *s, size_t n)
{
	static const struct {
		const char *type, *start;
		size_t at, length;
	} types[] = {
		{"image/png", "\x89PNG\r\n\x1a\n", 0, 8},
		{"image/jpeg", "\xff\xd8\xff", 0, 3},
		{"image/gif", "GIF8", 0, 4},
		{"image/webp", "WEBP", 8, 4},
	};

	for (size_t i = 0; i < COUNT(types); i++)
		if (n >= types[i].at + types[i].length &&
			!memcmp(s + types[i].at, types[i].start,
				types[i].length))
			return types[i].type;
	return NULL;
}

bool resource_is_png(const char *s, size_t n)
{
	const char *type = find_picture_type(s, n);

	return type && !strcmp(type, "image/png");
}

void resource_add_picture(
	struct strbuf *b, const char *s, size_t n, const char *type)
{
	emit_open(b, NULL, '{');
	emit_text(b, "type", "image");
	emit_base64(b, "data", s, n);
	emit_text(b, "mimeType", type);
	emit_close(b, '}');
}

static int read_file(struct strbuf *b, int fd, const char *path,
	const struct limits *limits, struct err *e)
{
	int64_t max = limits->max_file_bytes;
	char piece[64 << 10];
	struct stat st;
	ssize_t n;

	if (max > RESOURCE_MAX)
		max = RESOURCE_MAX;
	if (fstat(fd, &st) < 0)
		return err_errno(e, "look at %.200s", path);
	if (st.st_size > max)
		return err_set(e,
			"%.200s has %lld bytes, and at most %lld are read: "
			"read it in pieces, in a cell",
			path, (long long)st.st_size, (long long)max);
	while ((int64_t)b->n < st.st_size &&
		(n = pread(fd, piece, sizeof(piece), (off_t)b->n)) > 0)
		strbuf_add(b, piece, (size_t)n);
	return b->failed ? err_set(e, "read %.200s: out of memory", path) : 0;
}

static void add_contents(struct strbuf *b, const char *key, const char *path,
	const char *type, const struct strbuf *file, bool text)
{
	const char *bytes = strbuf_text(file);

	emit_open(b, key, '{');
	uri_add(b, path);
	emit_text(b, "mimeType", type);
	if (text)
		emit_bytes(b, "text", bytes, file->n);
	else
		emit_base64(b, "blob", bytes, file->n);
	emit_close(b, '}');
}

int resource_add(struct strbuf *b, int fd, const char *path,
	const struct limits *limits, enum resource_as as, struct err *e)
{
	struct strbuf file = {0};
	size_t before = b->n;
	const char *picture, *type;
	bool text;

	if (read_file(&file, fd, path, limits, e) < 0) {
		strbuf_free(&file);
		return -1;
	}
	picture = find_picture_type(file.s, file.n);
	text = !picture && emit_is_text(file.s, file.n) &&
	       !(file.n && memchr(file.s, '\0', file.n));
	type = picture ? picture
	       : text  ? "text/plain"
		       : "application/octet-stream";
	if (as == RESOURCE_AS_CONTENTS) {
		add_contents(b, NULL, path, type, &file, text);
	} else if (picture) {
		resource_add_picture(b, file.s, file.n, type);
	} else if (text && file.n) {
		emit_open(b, NULL, '{');
		emit_text(b, "type", "text");
		emit_bytes(b, "text", file.s, file.n);
		emit_close(b, '}');
	} else {
		emit_open(b, NULL, '{');
		emit_text(b, "type", "resource");
		add_contents(b, "resource", path, type, &file, text);
		emit_close(b, '}');
	}
	strbuf_free(&file);
	if (b->n - before > RESOURCE_TOLD_MAX)
		return err_set(e,
			"%.200s takes more than 7 MiB as JSON: read it in "
			"pieces, in a cell",
			path);
	return 0;
}

/* Decode base64. Owned; NULL with e. */
static char *decode_content(const json_t *base64, size_t *n, struct err *e)
{
	size_t length = json_string_length(base64);
	char *content = malloc(BASE64_ROOM(length));

	if (!content)
		err_errno(e, "hold the file");
	else if (base64_decode(json_string_value(base64), length, content, n) ==
		 0)
		return content;
	else
		err_set(e, "content is no base64");
	free(content);
	return NULL;
}

int resource_take(struct request *q, const char *path, const json_t *text,
	const json_t *base64, const struct limits *limits, struct err *e)
{
	const struct request_rules rules = {.limits = limits};
	auto_free char *decoded = NULL;
	struct request_refusal why = {0};
	size_t bytes = json_string_length(text);
	int r;

	if (!text == !base64)
		return err_set(e, "give either text or content");
	if (base64 && !(decoded = decode_content(base64, &bytes, e)))
		return -1;
	q->form = REQUEST_WRITE;
	r = request_add_content(q, path,
		text ? json_string_value(text) : decoded, bytes, &rules, &why);
	if (r < 0)
		err_set(e, "%.480s", why.description.s);
	strbuf_free(&why.description);
	return r;
}
