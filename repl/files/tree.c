/* SPDX-License-Identifier: MIT */
/*
 * tree.c - a whole directory of the host's into the home
 *
 * Runs in:   front end, before the first cell or program
 * Trusts:    the administrator, who named the directory: a link in it is
 *            read through, and the limits of a transfer are not asked. The
 *            home's own hold
 * Leaves:    files that are whole in the home, or not there, with a word
 */
#include "impl.h"

#include "hostfs.h"
#include "jail/base/err.h"
#include "jail/base/io.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEPTH_MAX 32

/* Where we are: a path of the host, whose part from `root` on is the path in
 * the home. */
struct tree {
	struct transfer *t;
	size_t root;
	char path[PATH_MAX];
};

static void walk(struct tree *w, size_t len, int depth);

static void visit(struct tree *w, size_t len, const char *name, int depth)
{
	struct err e = {0};
	struct stat st;
	int n = snprintf(w->path + len, sizeof(w->path) - len, "/%s", name);

	if (n < 0 || len + (size_t)n >= sizeof(w->path) || depth == DEPTH_MAX) {
		err_set(&e, "%.*s: too deep", (int)len, w->path);
		transfer_refuse(w->t, &e);
	} else if (lstat(w->path, &st) == 0 && S_ISDIR(st.st_mode)) {
		walk(w, len + (size_t)n, depth + 1);
	} else if (stat(w->path, &st) == 0 && S_ISDIR(st.st_mode)) {
		err_set(&e, "%s: a link to a directory is not copied", w->path);
		transfer_refuse(w->t, &e);
	} else {
		transfer_upload_one(
			w->t, w->path, w->path + w->root + 1, false);
	}
	w->path[len] = '\0';
}

static int is_entry(const struct dirent *d)
{
	return strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
}

static void walk(struct tree *w, size_t len, int depth)
{
	struct dirent **names;
	struct err e = {0};
	int n = scandir(w->path, &names, is_entry, alphasort);

	if (n < 0) {
		err_errno(&e, "%s", w->path);
		transfer_refuse(w->t, &e);
		return;
	}
	for (int i = 0; i < n; i++) {
		if (!w->t->cancelled)
			visit(w, len, names[i]->d_name, depth);
		free(names[i]);
	}
	free(names);
}

void transfer_upload_tree(struct transfer *t, const char *dir)
{
	struct hostfs_names arrived = {0};
	struct tree w = {.t = t, .root = strlen(dir)};

	snprintf(w.path, sizeof(w.path), "%s", dir);
	t->arrived = &arrived;
	walk(&w, w.root, 0);
	transfer_note_arrived(t);
	t->arrived = NULL;
	hostfs_names_free(&arrived);
}
