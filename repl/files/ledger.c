/* SPDX-License-Identifier: MIT */
/*
 * ledger.c - which files were transferred, and have changed since
 *
 * Runs in:   front end, between cells
 * Trusts:    sizes and times of the home: a cell that restores a file's size
 *            and time can make the file look unchanged, which misleads only
 *            its own session
 */
#include "repl/files/files.h"

#include "jail/base/array.h"
#include "jail/jail.h"

#include <stdlib.h>
#include <string.h>

/* The index of a path, or the index that it would have. */
static size_t find_index(const struct ledger *l, const char *path)
{
	size_t from = 0, to = l->n;

	/* A transfer notes its files in the order of their paths. */
	if (to && strcmp(l->v[to - 1].path, path) < 0)
		return to;
	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (strcmp(l->v[mid].path, path) < 0)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

static struct ledger_entry *find_entry(const struct ledger *l, const char *path)
{
	size_t i = find_index(l, path);

	return i < l->n && !strcmp(l->v[i].path, path) ? &l->v[i] : NULL;
}

static struct ledger_entry *insert_entry(struct ledger *l, const char *path)
{
	size_t i = find_index(l, path);
	char *copy = strdup(path);

	if (!copy || array_grow(&l->v, l->n, sizeof(*l->v)) < 0) {
		free(copy);
		return NULL;
	}
	memmove(&l->v[i + 1], &l->v[i], (l->n++ - i) * sizeof(*l->v));
	l->v[i] = (struct ledger_entry){.path = copy};
	return &l->v[i];
}

void ledger_note(struct ledger *l, const char *path, int64_t bytes,
	int64_t mtime_ns, enum ledger_status status)
{
	struct ledger_entry *entry = find_entry(l, path);

	if (!entry)
		entry = insert_entry(l, path);
	if (!entry)
		return;
	entry->status = status;
	entry->bytes = bytes;
	entry->mtime_ns = mtime_ns;
	entry->when = time(NULL);
}

enum ledger_status ledger_status(
	const struct ledger *l, const struct jail_file *f, time_t *when)
{
	const struct ledger_entry *entry = find_entry(l, f->path);

	*when = entry ? entry->when : 0;
	if (!entry)
		return LEDGER_NEW;
	if (entry->bytes != f->bytes || entry->mtime_ns != f->mtime_ns)
		return LEDGER_CHANGED;
	return entry->status;
}

bool ledger_is_hidden(const char *path)
{
	return path[0] == '.' || strstr(path, "/.");
}

size_t ledger_unsaved(const struct ledger *l, const struct jail_files *files,
	size_t *which, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < files->n; i++) {
		const struct jail_file *f = &files->v[i];
		enum ledger_status status;
		time_t when;

		/* The person has made none of these files. */
		if (f->type != 'f' || ledger_is_hidden(f->path) ||
			strstr(f->path, "__pycache__/"))
			continue;
		status = ledger_status(l, f, &when);
		if (status != LEDGER_NEW && status != LEDGER_CHANGED)
			continue;
		if (n < max)
			which[n] = i;
		n++;
	}
	return n;
}

void ledger_free(struct ledger *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i].path);
	free(l->v);
	*l = (struct ledger){0};
}
