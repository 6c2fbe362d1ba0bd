/* SPDX-License-Identifier: MIT */
/*
 * resource.c - files of the home, as tools and as resources
 *
 * Runs in:   front end, confined, between cells
 * Trusts:    nobody: URIs and names are a client's, files are a cell's. The
 *            warden opens and names files, and lets nothing but regular files
 *            of the home through
 * Leaves:    a file whole or not at all
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

/* Resources of one page. */
#define PAGE 500
/* Bytes of a list, beyond which it ends. */
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
	strbuf_puts(b, "{\"uri\": ");
	uri_add(b, f->path);
	strbuf_puts(b, ", \"name\": ");
	json_text_add(b, f->path, strlen(f->path));
	strbuf_printf(b, ", \"size\": %lld}", (long long)f->bytes);
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
	strbuf_puts(b, "\"resources\": [");
	for (size_t i = 0; i < files->n && n <= PAGE; i++) {
		const struct jail_file *f = &files->v[i];

		if (f->type != 'f' || (last && strcmp(f->path, last) <= 0))
			continue;
		if (b->n - before > LIST_MAX)
			n = PAGE;
		if (n++ == PAGE)
			break;
		strbuf_puts(b, end ? ", " : "");
		add_resource(b, f);
		end = f;
	}
	strbuf_puts(b, "]");
	if (n > PAGE) {
		strbuf_puts(b, ", \"nextCursor\": \"");
		uri_escape(b, end->path);
		strbuf_puts(b, "\"");
	}
	return 0;
}

static void add_file(
	struct strbuf *b, struct strbuf *text, const struct jail_file *f)
{
	char shown[1024];

	strbuf_puts(b, "{\"path\": ");
	json_text_add(b, f->path, strlen(f->path));
	strbuf_printf(b, ", \"kind\": \"%s\", \"size\": %lld, \"uri\": ",
		f->type == 'f'	 ? "file"
		: f->type == 'l' ? "link"
				 : "other",
		(long long)f->bytes);
	uri_add(b, f->path);
	strbuf_puts(b, "}");
	text_safe(shown, sizeof(shown), f->path, strlen(f->path));
	strbuf_printf(text, "%lld\t%s\n", (long long)f->bytes, shown);
}

void resource_add_files(struct strbuf *b, struct strbuf *text,
	const struct jail_files *files, const char *pattern)
{
	bool any = false, cut = files->truncated;

	strbuf_puts(b, "{\"files\": [");
	for (size_t i = 0; i < files->n; i++) {
		const struct jail_file *f = &files->v[i];

		if (f->type == 'd' ||
			(pattern && !transfer_matches(pattern, f->path)))
			continue;
		if (b->n > LIST_MAX) {
			cut = true;
			break;
		}
		strbuf_puts(b, any ? ", " : "");
		add_file(b, text, f);
		any = true;
	}
	strbuf_printf(b, "], \"truncated\": %s}", cut ? "true" : "false");
	if (cut)
		strbuf_puts(text, "[there are more]\n");
}

/* ---- one file ---- */

/* Pictures that clients show, by how they begin. */
static const char *picture_type(const char *s, size_t n)
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

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (n >= types[i].at + types[i].length &&
			!memcmp(s + types[i].at, types[i].start,
				types[i].length))
			return types[i].type;
	return NULL;
}

bool resource_is_png(const char *s, size_t n)
{
	const char *type = picture_type(s, n);

	return type && !strcmp(type, "image/png");
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

static void add_contents(struct strbuf *b, const char *path, const char *type,
	const struct strbuf *file, bool text)
{
	const char *bytes = file->n ? file->s : "";

	strbuf_puts(b, "{\"uri\": ");
	uri_add(b, path);
	strbuf_printf(b, ", \"mimeType\": \"%s\", \"%s\": ", type,
		text ? "text" : "blob");
	if (text) {
		json_text_add(b, bytes, file->n);
	} else {
		strbuf_puts(b, "\"");
		base64_add(b, bytes, file->n);
		strbuf_puts(b, "\"");
	}
	strbuf_puts(b, "}");
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
	picture = picture_type(file.s, file.n);
	text = !picture && json_text_is_valid(file.s, file.n) &&
	       !(file.n && memchr(file.s, '\0', file.n));
	type = picture ? picture
	       : text  ? "text/plain"
		       : "application/octet-stream";
	if (as == RESOURCE_AS_CONTENTS) {
		add_contents(b, path, type, &file, text);
	} else if (picture) {
		strbuf_puts(b, "{\"type\": \"image\", \"data\": \"");
		base64_add(b, file.s, file.n);
		strbuf_printf(b, "\", \"mimeType\": \"%s\"}", type);
	} else if (text && file.n) {
		strbuf_puts(b, "{\"type\": \"text\", \"text\": ");
		json_text_add(b, file.s, file.n);
		strbuf_puts(b, "}");
	} else {
		strbuf_puts(b, "{\"type\": \"resource\", \"resource\": ");
		add_contents(b, path, type, &file, text);
		strbuf_puts(b, "}");
	}
	strbuf_free(&file);
	if (b->n - before > RESOURCE_TOLD_MAX)
		return err_set(e,
			"%.200s takes more than 7 MiB as JSON: read it in "
			"pieces, in a cell",
			path);
	return 0;
}

/* The bytes that the base64 says. Owned; NULL with e. */
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
