/* SPDX-License-Identifier: MIT */
/*
 * transfer.c - what uploads and downloads share
 *
 * Runs in:   front end, between cells; before the first and after the last
 * Trusts:    nothing in the names, contents and sizes of the home
 * Leaves:    lines for the person: what was copied, and what was not
 */
#include "repl/files/files.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/path.h"
#include "jail/jail.h"
#include "repl/term/term.h"
#include "repl/text/text.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COPY_BYTES (128u << 10)
/* Most lines of a kind; we sum up any more. */
#define LINES_MAX 20
/* Most names in a question. */
#define NAMES_MAX 3

/* ---- names and patterns ---- */
static bool component_matches(
	const char *pattern, size_t n, const char *name, size_t name_n)
{
	char p[NAME_MAX + 1], s[NAME_MAX + 1];

	if (n > NAME_MAX || name_n > NAME_MAX)
		return false;
	snprintf(p, sizeof(p), "%.*s", (int)n, pattern);
	snprintf(s, sizeof(s), "%.*s", (int)name_n, name);
	return fnmatch(p, s, FNM_PERIOD) == 0;
}

static const char *next_component(const char *s, size_t n)
{
	return s + n + strspn(s + n, "/");
}

/* `budget` bounds the work that several "**" can make. */
static bool pattern_matches(const char *pattern, const char *path, int *budget)
{
	size_t n = strcspn(pattern, "/"), m = strcspn(path, "/");

	if (--*budget < 0)
		return false;
	if (!*pattern || !*path)
		return !*pattern && !*path;
	if (n == 2 && !memcmp(pattern, "**", 2)) {
		const char *rest = next_component(pattern, n);

		if (pattern_matches(*rest ? rest : "*", path, budget))
			return true;
		return path[0] != '.' && path[m] &&
		       pattern_matches(
			       pattern, next_component(path, m), budget);
	}
	return component_matches(pattern, n, path, m) &&
	       pattern_matches(next_component(pattern, n),
		       next_component(path, m), budget);
}

bool transfer_matches(const char *pattern, const char *path)
{
	int budget = 10000;

	return pattern_matches(pattern, path, &budget);
}

size_t transfer_prefix(const char *pattern)
{
	size_t prefix = 0, n = 0;

	for (const char *p = pattern; *p && !strchr("*?[", *p); p++) {
		if (*p == '/' && p > pattern && p[-1] == '/')
			continue;
		n++;
		if (*p == '\\' && p[1])
			p++;
		else if (*p == '/')
			prefix = n;
	}
	return prefix;
}

const char *transfer_home_name(const char *s)
{
	const char *rest = path_beneath(s, "/home");

	if (rest)
		return rest;
	return strncmp(s, "./", 2) ? s : next_component(s, 1);
}

bool transfer_is_deep(const char *pattern)
{
	const char *p = pattern;

	while (p && strcmp(p, "**") != 0 && strncmp(p, "**/", 3) != 0) {
		p = strchr(p, '/');
		p = p ? p + 1 : NULL;
	}
	return p != NULL;
}

static int by_path(const void *path, const void *file)
{
	return strcmp(path, ((const struct jail_file *)file)->path);
}

const struct jail_file *transfer_find(
	const struct jail_files *files, const char *path)
{
	return files->n ? bsearch(path, files->v, files->n, sizeof(*files->v),
				  by_path)
			: NULL;
}

bool transfer_has_dir(const struct jail_files *files, const char *name)
{
	auto_free char *path = strdup(name);
	size_t n = strlen(name);
	const struct jail_file *f;

	while (path && n && path[n - 1] == '/')
		path[--n] = '\0';
	f = path && n ? transfer_find(files, path) : NULL;
	return !n || (f && f->type == 'd');
}

/* ---- a progress bar, after half a second ---- */

#define PATIENCE_MS 500
#define REDRAW_MS 100

static void draw_bar(const struct transfer *t, const char *name, int64_t ms)
{
	char have[TEXT_HUMAN], all[TEXT_HUMAN], rate[TEXT_HUMAN], text[300];
	char bar[] = "--------------------", what[64];
	size_t full = 0, width = sizeof(bar) - 1;
	uint64_t done = (uint64_t)t->copied, total = (uint64_t)t->bytes;

	if (t->files > 1)
		snprintf(what, sizeof(what), "%d of %zu files", t->done,
			t->files);
	else
		text_safe(what, sizeof(what), name, strlen(name));
	if (total)
		full = done >= total ? width : done * width / total;
	memset(bar, '#', full);
	text_size(have, done);
	if (t->term->cols && t->term->cols < 72)
		snprintf(text, sizeof(text), "\r[%s] %s\x1b[K", bar, have);
	else
		snprintf(text, sizeof(text),
			"\r%.24s [%s] %s of %s, %s/s\x1b[K", what, bar, have,
			total ? text_size(all, total) : "?",
			text_size(rate, done * 1000 / (uint64_t)ms));
	terminal_puts(t->term, text);
}

static void update_bar(struct transfer *t, const char *name)
{
	int64_t now = now_ms();

	if (!t->start_ms)
		t->start_ms = now;
	if (!t->term || !t->term->out_tty || t->term->dumb ||
		now - t->start_ms < PATIENCE_MS ||
		now - t->drawn_ms < REDRAW_MS)
		return;
	draw_bar(t, name, now - t->start_ms);
	t->drawn_ms = now;
}

static void erase_bar(struct transfer *t)
{
	if (t->drawn_ms)
		terminal_puts(t->term, "\r\x1b[K");
	t->drawn_ms = 0;
}

/* ---- errors ---- */

static void report_failure(struct transfer *t, const struct err *e)
{
	t->failed++;
	erase_bar(t);
	if (e->code == EINTR)
		t->cancelled = true; /* the caller says so, once */
	else
		t->refuse(t->arg, e);
}

int transfer_object(void *transfer, const struct err *e)
{
	struct transfer *t = transfer;

	if (!t->partial)
		return -1;
	transfer_leave_out(t, e);
	return 0;
}

void transfer_leave_out(struct transfer *t, const struct err *e)
{
	if (t->left++ < LINES_MAX || e->code == EINTR)
		report_failure(t, e);
	else
		t->failed++;
}

static void report_left(struct transfer *t)
{
	struct err e = {0};
	char more[64];

	if (t->left <= LINES_MAX)
		return;
	err_set(&e, "%s left out",
		text_count(more, sizeof(more), (uint64_t)(t->left - LINES_MAX),
			"more was", "more were"));
	t->refuse(t->arg, &e);
}

/* ---- before the first byte ---- */

#define COUNT_HINT                                                             \
	"the limit is files.max_count; where that is not set, home.files"

static int refuse_count(
	const struct transfer *t, const struct manifest *m, struct err *e)
{
	err_set(e,
		"there are %zu files or more, and no more than %d are "
		"transferred at once",
		m->files, t->limits->transfer_count);
	return err_hint(e, COUNT_HINT);
}

int transfer_check_count(
	const struct transfer *t, const struct manifest *m, struct err *e)
{
	if (t->trusted || m->files <= (size_t)t->limits->transfer_count)
		return 0;
	return refuse_count(t, m, e);
}

static int check_size(
	struct transfer *t, const struct manifest_item *item, struct err *e)
{
	char size[TEXT_HUMAN], max[TEXT_HUMAN];

	if (t->trusted || item->bytes <= t->limits->max_file_bytes)
		return 0;
	err_set(e, "%s is %s, and no file of a transfer may be larger than %s",
		item->from, text_size(size, (uint64_t)item->bytes),
		text_size(max, (uint64_t)t->limits->max_file_bytes));
	return err_hint(e, "the limit is files.max_file");
}

static int check_number(struct transfer *t, int more, struct err *e)
{
	char left[64];

	err_set(e, "%s left out: no more than %d are transferred at once",
		text_count(left, sizeof(left), (uint64_t)more, "file was",
			"files were"),
		t->limits->transfer_count);
	err_hint(e, COUNT_HINT);
	return transfer_object(t, e);
}

int transfer_check(struct transfer *t, struct manifest *m, struct err *e)
{
	int more = 0;

	t->files = 0;
	for (size_t i = 0; i < m->n; i++) {
		struct manifest_item *item = &m->v[i];

		if (item->left || item->type != 'f')
			continue;
		item->left = check_size(t, item, e) < 0;
		if (item->left && transfer_object(t, e) < 0)
			return -1;
		if (item->left)
			continue;
		if (!t->trusted &&
			t->files == (size_t)t->limits->transfer_count) {
			item->left = true;
			more++;
			continue;
		}
		t->files++;
		t->bytes += item->bytes;
	}
	if (more && !t->partial) {
		m->files = t->files + (size_t)more;
		return refuse_count(t, m, e);
	}
	return more ? check_number(t, more, e) : 0;
}

static bool is_replaced(const struct manifest_item *item)
{
	return item->type == 'f' && item->there && !item->left;
}

/* Append the names of files that would be replaced: "where/a, where/b,
 * where/c". Returns how many files there are. */
static size_t list_replaced(
	const struct manifest *m, const char *where, struct strbuf *names)
{
	char safe[300], name[600];
	size_t n = 0;

	for (size_t i = 0; i < m->n; i++) {
		if (!is_replaced(&m->v[i]))
			continue;
		if (n++ >= NAMES_MAX)
			continue;
		snprintf(name, sizeof(name), "%s/%s", where, m->v[i].to);
		text_safe(safe, sizeof(safe), name, strlen(name));
		strbuf_printf(names, "%s%s", n > 1 ? ", " : "", safe);
	}
	if (n > NAMES_MAX)
		strbuf_puts(names, ", …");
	return n;
}

static int refuse_replacing(
	const struct transfer *t, const char *names, size_t n, struct err *e)
{
	if (n == 1)
		err_set(e, "%s is there already and was left alone", names);
	else
		err_set(e,
			"%zu files are there already and were left alone: "
			"%s",
			n, names);
	if (!t->ask && t->force)
		err_hint(e, "%s overwrites", t->force);
	if (e)
		e->code = EEXIST;
	return -1;
}

/* Leave out the files that would replace others: there is nobody to ask. */
static int leave_replaced(struct transfer *t, struct manifest *m,
	const char *where, struct err *e)
{
	char name[600];

	for (size_t i = 0; i < m->n; i++) {
		if (!is_replaced(&m->v[i]))
			continue;
		snprintf(name, sizeof(name), "%s/%s", where, m->v[i].to);
		refuse_replacing(t, name, 1, e);
		m->v[i].left = true;
		transfer_leave_out(t, e);
	}
	return 0;
}

static int get_consent(struct transfer *t, struct manifest *m,
	const char *where, struct err *e)
{
	struct strbuf names = {0}, question = {0};
	size_t n = t->overwrite ? 0 : list_replaced(m, where, &names);
	int r = 0;

	if (n && !t->ask && t->partial) {
		r = leave_replaced(t, m, where, e);
	} else if (n && names.s) {
		if (n == 1)
			strbuf_printf(&question,
				"%s is there already. Overwrite?", names.s);
		else
			strbuf_printf(&question,
				"%zu files are there already: %s. Overwrite "
				"them?",
				n, names.s);
		if (!t->ask || !question.s || !t->ask(t->arg, question.s))
			r = refuse_replacing(t, names.s, n, e);
	} else if (n) {
		r = err_errno(e, "ask before anything is overwritten");
	}
	strbuf_free(&names);
	strbuf_free(&question);
	return r;
}

int transfer_meet(struct manifest_item *item, bool is_dir, const char *where,
	struct err *e)
{
	item->there = true;
	if ((item->type == 'd') == is_dir)
		return 0;
	return err_set(e, "%s/%s is in the way: %s", where, item->to,
		is_dir ? "a directory" : "not a directory");
}

int transfer_check_target(struct transfer *t, struct manifest *m,
	const char *where,
	int (*look)(void *arg, struct manifest_item *item, struct err *e),
	void *arg, struct err *e)
{
	for (size_t i = 0; i < m->n; i++) {
		struct manifest_item *item = &m->v[i];

		if (item->left || look(arg, item, e) == 0)
			continue;
		item->left = true;
		if (transfer_object(t, e) < 0)
			return -1;
	}
	return get_consent(t, m, where, e);
}

/* ---- the copy ---- */

bool transfer_is_cancelled(struct transfer *t)
{
	if (t->signals && !t->cancelled &&
		terminal_signals_cancelled(t->signals)) {
		t->cancelled = true;
		t->failed++;
	}
	return t->cancelled;
}

static int refuse_growth(const struct transfer *t, struct err *e)
{
	char max[TEXT_HUMAN];

	err_set(e, "larger than %s",
		text_size(max, (uint64_t)t->limits->max_file_bytes));
	return err_hint(e, "the limit is files.max_file");
}

int transfer_copy(struct transfer *t, const char *name, int in, int out,
	int64_t *bytes, struct err *e)
{
	*bytes = 0;
	if (!t->buf)
		t->buf = malloc(COPY_BYTES);
	if (!t->buf)
		return err_errno(e, "copy");
	for (;;) {
		ssize_t n = read(in, t->buf, COPY_BYTES);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(e, "read");
		if (n == 0)
			return 0;
		*bytes += n;
		t->copied += n;
		if (!t->trusted && *bytes > t->limits->max_file_bytes)
			return refuse_growth(t, e);
		if (t->most_bytes && t->copied > t->most_bytes)
			return err_set(e,
				"the files have more bytes than the home "
				"may have");
		if (io_write_full(out, t->buf, (size_t)n) < 0)
			return err_errno(e, "write");
		update_bar(t, name);
		if (transfer_is_cancelled(t)) {
			err_set(e, "interrupted");
			e->code = EINTR;
			return -1;
		}
	}
}

int transfer_explain_full(struct jail *j, const struct limits *l, struct err *e)
{
	struct jail_files files = {0};
	char one[TEXT_HUMAN], two[TEXT_HUMAN];

	if (!e || e->code != ENOSPC || jail_home_list(j, &files, NULL) < 0)
		return -1;
	err_hint(e,
		"of %s (home.size) %s are free, of %d files (home.files) "
		"%d · :rm and :wipe make room",
		text_size(one, (uint64_t)l->home_bytes),
		text_size(two,
			files.used_bytes < l->home_bytes
				? (uint64_t)(l->home_bytes - files.used_bytes)
				: 0),
		l->home_files,
		files.used_files < l->home_files
			? l->home_files - files.used_files
			: 0);
	jail_files_free(&files);
	return -1;
}

/* ---- telling the person ---- */

/* True if an item has a line of its own: a file, or an empty directory. */
static bool is_told(const struct manifest *m, size_t i)
{
	return m->v[i].done && (m->v[i].type == 'f' || manifest_is_empty(m, i));
}

static void tell_each(const struct manifest *m, const char *where, size_t skip,
	struct text_table *t)
{
	for (size_t i = 0; i < m->n; i++) {
		const struct manifest_item *item = &m->v[i];
		char safe[256], full[600], place[600], size[TEXT_HUMAN];
		const char *end = item->type == 'd' ? "/" : "";

		if (!is_told(m, i))
			continue;
		snprintf(full, sizeof(full), "%s%s",
			item->to + (strlen(item->to) > skip ? skip : 0), end);
		text_safe(safe, sizeof(safe), full, strlen(full));
		memcpy(place, "→ ", sizeof("→ "));
		snprintf(full, sizeof(full), "%s/%s%s", where, item->to, end);
		text_safe(place + strlen(place), sizeof(place) - strlen(place),
			full, strlen(full));
		text_table_add(t,
			(const char *[]){safe,
				*end ? ""
				     : text_size(size, (uint64_t)item->bytes),
				place});
	}
}

static void tell_total(const struct manifest *m, const char *where,
	size_t files, size_t dirs, struct text_table *t)
{
	char count[64], more[64], what[160], full[600], place[600],
		size[TEXT_HUMAN];
	size_t shared = manifest_shared(m);
	int64_t bytes = 0;
	const char *to = "";

	for (size_t i = 0; i < m->n; i++) {
		if (!m->v[i].done || m->v[i].type != 'f')
			continue;
		bytes += m->v[i].bytes;
		to = m->v[i].to;
	}
	text_count(count, sizeof(count), files, "file", NULL);
	text_count(more, sizeof(more), dirs, "directory", "directories");
	snprintf(what, sizeof(what), "%s%s%s", files ? count : "",
		files && dirs ? ", " : "", dirs ? more : "");
	snprintf(full, sizeof(full), "%s/%.*s", where, (int)shared, to);
	memcpy(place, "→ ", sizeof("→ "));
	text_safe(place + strlen(place), sizeof(place) - strlen(place), full,
		strlen(full));
	text_table_add(t, (const char *[]){what,
				  text_size(size, (uint64_t)bytes), place});
}

static void tell_copied(struct transfer *t, const struct manifest *m,
	const char *where, size_t skip)
{
	bool tty = t->term && t->term->out_tty;
	struct text_table table = {
		.columns = 3,
		.right = 1 << 1,
		.width = tty ? t->term->cols : 0,
	};
	size_t lines = 0, files = 0, dirs = 0;
	struct strbuf b = {0};

	for (size_t i = 0; i < m->n; i++) {
		lines += is_told(m, i);
		files += m->v[i].done && m->v[i].type == 'f';
		dirs += m->v[i].done && m->v[i].type == 'd';
	}
	if (!lines)
		return;
	if (lines > LINES_MAX)
		tell_total(m, where, files, dirs, &table);
	else
		tell_each(m, where, skip, &table);
	text_table_write(&table, &b);
	if (!b.failed && b.s)
		t->say(t->arg, b.s);
	strbuf_free(&b);
}

void transfer_end(struct transfer *t, const struct manifest *m,
	const char *where, size_t skip)
{
	erase_bar(t);
	report_left(t);
	if (!t->trusted)
		tell_copied(t, m, where, skip);
	free(t->buf);
	t->buf = NULL;
}

int transfer_result(struct transfer *t, int r, const struct err *e)
{
	if (r < 0)
		t->refuse(t->arg, e);
	return r < 0 || t->failed ? -1 : 0;
}
