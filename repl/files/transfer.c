/* SPDX-License-Identifier: MIT */
/*
 * transfer.c - safe copies: what both directions share
 *
 * Runs in:   front end, between cells
 * Holds:     one open file of each side
 * Trusts:    the warden for the home's descriptors, which are of regular
 *            files; nothing in their contents, sizes or names
 * Leaves:    files that are whole, or not there
 */
#include "impl.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/path.h"
#include "jail/jail.h"
#include "jail/limits.h"
#include "repl/term/progress.h"
#include "repl/term/signals.h"
#include "repl/text/text.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COPY_BYTES (128u << 10)

int transfer_copy(struct signals *signals, struct progress *p, int in, int out,
	int64_t max, struct err *e)
{
	auto_free char *buf = malloc(COPY_BYTES);
	char limit[TEXT_HUMAN];
	int64_t done = 0;

	if (!buf)
		return err_errno(e, "copy");
	for (;;) {
		ssize_t n = read(in, buf, COPY_BYTES);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(e, "read");
		if (n == 0)
			return 0;
		done += n;
		if (done > max) {
			err_set(e, "larger than %s",
				text_size(limit, (uint64_t)max));
			return err_hint(e, "the limit is files.max_file");
		}
		if (io_write_full(out, buf, (size_t)n) < 0)
			return err_errno(e, "write");
		if (p)
			progress_update(p, (uint64_t)done);
		if (signals && signals_cancelled(signals)) {
			err_set(e, "interrupted");
			if (e)
				e->code = EINTR;
			return -1;
		}
	}
}

static bool component_matches(
	const char *pattern, size_t n, const char *name, size_t name_n)
{
	char p[NAME_MAX + 1], s[NAME_MAX + 1];

	if (n > NAME_MAX || name_n > NAME_MAX)
		return false;
	memcpy(p, pattern, n);
	p[n] = '\0';
	memcpy(s, name, name_n);
	s[name_n] = '\0';
	return fnmatch(p, s, FNM_PERIOD) == 0;
}

static const char *next_component(const char *s, size_t n)
{
	s += n;
	while (*s == '/')
		s++;
	return s;
}

/* `budget` bounds the work that several "**" can make. */
static bool matches(const char *pattern, const char *path, int *budget)
{
	size_t n = strcspn(pattern, "/"), m = strcspn(path, "/");

	if (--*budget < 0)
		return false;
	if (!*pattern || !*path)
		return !*pattern && !*path;
	if (n == 2 && !memcmp(pattern, "**", 2)) {
		const char *rest = next_component(pattern, n);

		if (matches(*rest ? rest : "*", path, budget))
			return true;
		return path[0] != '.' && path[m] &&
		       matches(pattern, next_component(path, m), budget);
	}
	return component_matches(pattern, n, path, m) &&
	       matches(next_component(pattern, n), next_component(path, m),
		       budget);
}

bool transfer_matches(const char *pattern, const char *path)
{
	int budget = 10000;

	return matches(pattern, path, &budget);
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
	if (path_is_beneath(s, "/home"))
		return path_beneath(s, "/home");
	return strncmp(s, "./", 2) ? s : s + 1 + strspn(s + 1, "/");
}

bool transfer_home_has_dir(struct jail *j, const char *name)
{
	struct jail_files files = {0};
	size_t n = strlen(name);
	bool has = !n;

	while (n && name[n - 1] == '/')
		n--;
	if (!n || jail_home_list(j, &files, NULL) < 0)
		return has;
	for (size_t i = 0; i < files.n && !has; i++)
		has = files.v[i].type == 'd' &&
		      !strncmp(files.v[i].path, name, n) && !files.v[i].path[n];
	jail_files_free(&files);
	return has;
}

int transfer_refuse(struct transfer *t, const struct err *e)
{
	t->failed++;
	if (e->code == EINTR)
		t->cancelled = true; /* said once, for all of it */
	else
		t->refuse(t->arg, e);
	return -1;
}

/* "name   12.4 KiB   → place" */
void transfer_said(
	struct transfer *t, const char *name, int64_t bytes, const char *place)
{
	char safe[256], where[512], size[TEXT_HUMAN], line[1024];

	text_safe(safe, sizeof(safe), name, strlen(name));
	text_safe(where, sizeof(where), place, strlen(place));
	snprintf(line, sizeof(line), "%s   %s   → %s", safe,
		text_size(size, (uint64_t)bytes), where);
	t->done++;
	t->say(t->arg, line);
}

int transfer_check_size(const struct transfer *t, const char *name,
	int64_t bytes, struct err *e)
{
	char size[TEXT_HUMAN], max[TEXT_HUMAN];

	if (bytes <= t->limits->max_file_bytes)
		return 0;
	err_set(e, "%s is %s, and no file of a transfer may be larger than %s",
		name, text_size(size, (uint64_t)bytes),
		text_size(max, (uint64_t)t->limits->max_file_bytes));
	return err_hint(e, "the limit is files.max_file");
}

bool transfer_is_full(struct transfer *t)
{
	if (t->done < t->limits->max_count)
		return false;
	t->left++;
	return true;
}

void transfer_report_left(struct transfer *t)
{
	struct err e = {0};
	char left[64];

	if (!t->left)
		return;
	err_set(&e, "%s left out: no more than %d are transferred at once",
		text_count(left, sizeof(left), (uint64_t)t->left, "file was",
			"files were"),
		t->limits->max_count);
	err_hint(&e, "the limit is files.max_count");
	transfer_refuse(t, &e);
}
