/* SPDX-License-Identifier: MIT */
/*
 * manifest.c - the items to copy, known before the first byte moves
 *
 * Runs in:   front end, between cells
 * Trusts:    nothing: names are bytes, and two items may not get one name
 */
#include "repl/files/files.h"

#include "jail/base/array.h"
#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int manifest_add(
	struct manifest *m, const struct manifest_item *item, struct err *e)
{
	struct manifest_item copy = *item;

	copy.from = strdup(item->from);
	copy.to = strdup(item->to);
	if (!copy.from || !copy.to ||
		array_grow(&m->v, m->n, sizeof(*m->v)) < 0) {
		free(copy.from);
		free(copy.to);
		return err_errno(e, "look at what is to be copied");
	}
	m->v[m->n++] = copy;
	m->files += copy.type == 'f';
	return 0;
}

/* Join a directory and a name. Caller frees. */
static char *join_path(const char *above, const char *name)
{
	size_t n = strlen(above);
	char *s;

	while (n > 1 && above[n - 1] == '/')
		n--;
	if (!n || !*name)
		return strdup(n ? above : name);
	return asprintf(&s, "%.*s%s%s", (int)n, above,
		       above[n - 1] == '/' ? "" : "/", name) < 0
		       ? NULL
		       : s;
}

int manifest_add_beneath(struct manifest *m, const struct manifest_item *above,
	const char *name, const struct manifest_item *item, struct err *e)
{
	auto_free char *from = join_path(above->from, name);
	auto_free char *to = join_path(above->to, name);
	struct manifest_item copy = *item;

	if (!from || !to)
		return err_errno(e, "look at what is to be copied");
	copy.from = from;
	copy.to = to;
	copy.base = above->base;
	copy.rel = above->rel;
	return manifest_add(m, &copy, e);
}

void manifest_drop_last(struct manifest *m)
{
	struct manifest_item *last = &m->v[--m->n];

	m->files -= last->type == 'f';
	free(last->from);
	free(last->to);
}

/* ---- sorting ---- */

/* A slash comes before all other characters: the entries of a directory follow
 * it at once. */
static int rank_character(char c)
{
	return !c ? 0 : c == '/' ? 1 : (unsigned char)c + 1;
}

static int compare_items(const void *a, const void *b)
{
	const struct manifest_item *x = a, *y = b;
	const char *p = x->to, *q = y->to;

	while (*p && *p == *q)
		p++, q++;
	if (*p != *q)
		return rank_character(*p) - rank_character(*q);
	if (x->implied != y->implied)
		return x->implied - y->implied;
	return strcmp(x->from, y->from);
}

/* Add the parent directories of an item. Directories that the item before it
 * has, too, are there already. */
static int add_parents(struct manifest *m, size_t i, struct err *e)
{
	const char *to = m->v[i].to, *before = i ? m->v[i - 1].to : "";

	for (const char *p = strchr(to, '/'); p; p = strchr(p + 1, '/')) {
		size_t n = (size_t)(p - to);
		auto_free char *dir = strndup(to, n);
		struct manifest_item above = {.from = m->v[i].from,
			.to = dir,
			.base = -1,
			.type = 'd',
			.implied = true};

		if (!dir)
			return err_errno(e, "look at what is to be copied");
		if (strncmp(before, to, n + 1) != 0 &&
			manifest_add(m, &above, e) < 0)
			return -1;
	}
	return 0;
}

static bool is_same(
	const struct manifest_item *a, const struct manifest_item *b)
{
	if (a->type == 'd' && b->type == 'd')
		return true;
	return a->type == b->type && !strcmp(a->from, b->from);
}

static int settle_item(struct manifest_item **kept, struct manifest_item *item,
	int (*object)(void *, const struct err *), void *arg, struct err *e)
{
	struct manifest_item *before = *kept;

	item->left |= !*item->to;
	if (item->left)
		return 0;
	if (!before || strcmp(before->to, item->to) != 0) {
		*kept = item;
		return 0;
	}
	item->left = true;
	if (is_same(before, item))
		return 0;
	err_set(e, "%s and %s would both become %s", before->from, item->from,
		item->to);
	return object(arg, e);
}

int manifest_settle(struct manifest *m,
	int (*object)(void *arg, const struct err *e), void *arg, struct err *e)
{
	struct manifest_item *kept = NULL;
	size_t n = m->n;

	for (size_t i = 0; i < n; i++)
		if (add_parents(m, i, e) < 0)
			return -1;
	if (m->n)
		qsort(m->v, m->n, sizeof(*m->v), compare_items);
	for (size_t i = 0; i < m->n; i++)
		if (settle_item(&kept, &m->v[i], object, arg, e) < 0)
			return -1;
	return 0;
}

bool manifest_is_empty(const struct manifest *m, size_t i)
{
	size_t n = strlen(m->v[i].to);

	for (size_t k = i + 1; k < m->n; k++) {
		if (m->v[k].left)
			continue;
		return strncmp(m->v[k].to, m->v[i].to, n) != 0 ||
		       m->v[k].to[n] != '/';
	}
	return true;
}

size_t manifest_shared(const struct manifest *m)
{
	const char *first = NULL;
	size_t shared = 0, n;

	for (size_t i = 0; i < m->n; i++) {
		const char *to = m->v[i].to;

		if (!m->v[i].done || m->v[i].type != 'f')
			continue;
		if (!first) {
			first = to;
			shared = strlen(to) - strlen(path_last(to));
		}
		for (n = 0; n < shared && to[n] == first[n]; n++)
			;
		for (shared = n; shared && first[shared - 1] != '/'; shared--)
			;
	}
	return shared ? shared - 1 : 0;
}

void manifest_free(struct manifest *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->v[i].from);
		free(m->v[i].to);
	}
	free(m->v);
	*m = (struct manifest){0};
}
