/* SPDX-License-Identifier: MIT */
/*
 * ledger.c - what was uploaded and downloaded, and what has changed since
 *
 * Runs in:   front end
 * Trusts:    the warden's list of files. A cell that restores a file's size
 *            and time can make the file look unchanged, which misleads only
 *            its own session
 */
#include "ledger.h"

#include "jail/base/array.h"
#include "jail/jail.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static struct ledger_entry *find(const struct ledger *l, const char *path)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->v[i].path, path))
			return &l->v[i];
	return NULL;
}

int ledger_note(
	struct ledger *l, const struct jail_file *f, enum ledger_status status)
{
	struct ledger_entry *entry = find(l, f->path);

	if (!entry) {
		if (array_grow(&l->v, l->n, sizeof(*l->v)) < 0)
			return -1;
		entry = &l->v[l->n];
		entry->path = strdup(f->path);
		if (!entry->path)
			return -1;
		l->n++;
	}
	entry->status = status;
	entry->bytes = f->bytes;
	entry->mtime = f->mtime;
	entry->when = time(NULL);
	return 0;
}

enum ledger_status ledger_status(
	const struct ledger *l, const struct jail_file *f, time_t *when)
{
	const struct ledger_entry *entry = find(l, f->path);

	*when = entry ? entry->when : 0;
	if (!entry)
		return LEDGER_NEW;
	if (entry->bytes != f->bytes || entry->mtime != f->mtime)
		return LEDGER_CHANGED;
	return entry->status;
}

/* Programs keep such files for themselves; the person made none of them. */
static bool is_hidden(const char *path)
{
	return path[0] == '.' || strstr(path, "/.");
}

size_t ledger_unsaved(const struct ledger *l, const struct jail_files *files,
	size_t *which, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < files->n; i++) {
		enum ledger_status status;
		time_t when;

		if (files->v[i].type != 'f' || is_hidden(files->v[i].path))
			continue;
		status = ledger_status(l, &files->v[i], &when);
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
