/* SPDX-License-Identifier: MIT */
/*
 * history.c - cells remembered, in memory
 *
 * Runs in:   the front end
 * Holds:     a descriptor of the state directory, through history_file.c
 * Trusts:    no byte of the file: another program may have written it
 * Leaves:    entries of valid UTF-8 without controls
 */
#include "history.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "history_file.h"
#include "jail/base/array.h"
#include "jail/base/err.h"
#include "jail/base/io.h"
#include "repl/text/strbuf.h"
#include "repl/text/utf8.h"

struct history_entry {
	char *s;
	size_t n;
};

struct history {
	struct history_entry *v;
	size_t n;
	size_t skipped;
	int dirfd; /* -1: memory only */
	char *name;
	int loaded;
};

struct history *history_new(void)
{
	struct history *h = calloc(1, sizeof(*h));

	if (h)
		h->dirfd = -1;
	return h;
}

void history_free(struct history *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->n; i++)
		free(h->v[i].s);
	free(h->v);
	free(h->name);
	fd_drop(&h->dirfd);
	free(h);
}

/* Takes `s`. */
static int history_push(struct history *h, char *s, size_t n)
{
	if (array_grow(&h->v, h->n, sizeof(*h->v)) < 0) {
		free(s);
		return -1;
	}
	h->v[h->n++] = (struct history_entry){.s = s, .n = n};
	return 0;
}

/* Undo history_escape(); -1: not a record. */
static int history_unescape(const char *s, size_t n, char *out, size_t *len)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		char c = s[i];

		if (c == '\\') {
			if (++i == n || (s[i] != 'n' && s[i] != '\\'))
				return -1;
			c = s[i] == 'n' ? '\n' : '\\';
		}
		out[at++] = c;
	}
	out[at] = 0;
	*len = at;
	return at && at <= HISTORY_ENTRY_MAX && utf8_is_text(out, at, "\n\t")
		       ? 0
		       : -1;
}

static void history_escape(struct strbuf *b, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '\n')
			strbuf_puts(b, "\\n");
		else if (s[i] == '\\')
			strbuf_puts(b, "\\\\");
		else
			strbuf_add(b, s + i, 1);
	}
	strbuf_puts(b, "\n");
}

static void history_parse(struct history *h, const char *s, size_t n)
{
	const char *end = s + n;

	while (s < end) {
		const char *nl = memchr(s, '\n', (size_t)(end - s));
		size_t len = (size_t)((nl ? nl : end) - s), out_n;
		char *out = malloc(len + 1);

		if (!out)
			return;
		if (!nl || history_unescape(s, len, out, &out_n) < 0) {
			free(out);
			h->skipped += len > 0;
		} else {
			history_push(h, out, out_n);
		}
		s += len + 1;
	}
}

static void history_load(struct history *h)
{
	auto_free char *s = NULL;
	size_t n;

	if (h->loaded || h->dirfd < 0)
		return;
	h->loaded = 1;
	if (history_file_read(h->dirfd, h->name, &s, &n, NULL) == 0 && s)
		history_parse(h, s, n);
}

int history_attach(
	struct history *h, int dirfd, const char *name, struct err *e)
{
	auto_close int fd = -1;
	char *copy;

	if (history_file_check(dirfd, name, e) < 0)
		return err_wrap(e, "history not kept");
	fd = fcntl(dirfd, F_DUPFD_CLOEXEC, 3);
	copy = strdup(name);
	if (fd < 0 || !copy) {
		free(copy);
		return err_errno(e, "history not kept: %s", name);
	}
	fd_drop(&h->dirfd);
	free(h->name);
	h->name = copy;
	h->dirfd = fd_take(&fd);
	return 0;
}

int history_attach_path(struct history *h, const char *path, struct err *e)
{
	const char *slash = strrchr(path, '/');
	auto_close int dirfd = -1;

	if (!slash || !slash[1] || *path != '/')
		return err_set(
			e, "history not kept: not a full path: %s", path);
	dirfd = history_file_dir(path, (size_t)(slash - path), e);
	if (dirfd < 0)
		return err_wrap(e, "history not kept");
	return history_attach(h, dirfd, slash + 1, e);
}

int history_add(struct history *h, const char *s, size_t n, struct err *e)
{
	struct strbuf record = {0};
	char *copy;
	int r = 0;

	history_load(h);
	if (n == 0 || !utf8_is_text(s, n, "\n\t"))
		return 0;
	if (h->n && h->v[h->n - 1].n == n && !memcmp(h->v[h->n - 1].s, s, n))
		return 0;
	copy = strndup(s, n);
	if (!copy || history_push(h, copy, n) < 0)
		return err_set(e, "history: out of memory");
	if (h->dirfd < 0)
		return 0;
	if (n > HISTORY_ENTRY_MAX)
		return err_set(e,
			"history: a cell of %zu bytes is kept for this session "
			"only (longest in the file: %zu)",
			n, HISTORY_ENTRY_MAX);
	history_escape(&record, s, n);
	if (record.failed)
		r = err_set(e, "history: out of memory");
	else
		r = history_file_append(
			h->dirfd, h->name, record.s, record.n, e);
	strbuf_free(&record);
	return r;
}

size_t history_count(struct history *h)
{
	history_load(h);
	return h->n;
}

const char *history_get(struct history *h, size_t i, size_t *n)
{
	history_load(h);
	if (i >= h->n)
		return NULL;
	*n = h->v[i].n;
	return h->v[i].s;
}

size_t history_find(struct history *h, size_t before, const char *s, size_t n)
{
	history_load(h);
	if (before > h->n)
		before = h->n;
	while (before-- > 0)
		if (memmem(h->v[before].s, h->v[before].n, s, n))
			return before;
	return (size_t)-1;
}

size_t history_skipped(const struct history *h)
{
	return h->skipped;
}
