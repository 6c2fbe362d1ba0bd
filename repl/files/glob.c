/* SPDX-License-Identifier: MIT */
/*
 * glob.c - names on the host that match a pattern
 *
 * Runs in:   front end
 * Trusts:    nothing it finds: at most `max` names, at most DEPTH_MAX deep,
 *            and no more than LOOKS_MAX entries looked at
 */
#include "hostfs.h"

#include "jail/base/array.h"
#include "jail/base/err.h"
#include "jail/base/io.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEPTH_MAX 32
#define LOOKS_MAX 200000

struct glob {
	const struct hostfs *h;
	struct hostfs_names *out;
	size_t max, looks;
	char path[PATH_MAX];
};

int hostfs_names_add(struct hostfs_names *names, const char *s)
{
	if (array_grow(&names->v, names->n, sizeof(*names->v)) < 0)
		return -1;
	names->v[names->n] = strdup(s);
	if (!names->v[names->n])
		return -1;
	names->n++;
	return 0;
}

void hostfs_names_free(struct hostfs_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->v[i]);
	free(names->v);
	*names = (struct hostfs_names){0};
}

static bool has_wildcard(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '\\')
			i++;
		else if (s[i] == '*' || s[i] == '?' || s[i] == '[')
			return true;
	}
	return false;
}

/* Append `n` bytes of pattern, backslashes taken off, to the path. */
static int path_add(struct glob *g, size_t *at, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '\\' && i + 1 < n)
			i++;
		if (*at + 2 >= sizeof(g->path))
			return -1;
		g->path[(*at)++] = s[i];
	}
	g->path[*at] = '\0';
	return 0;
}

static void found(struct glob *g)
{
	struct stat st;
	auto_close int fd = -1;

	if (g->out->n >= g->max) {
		g->out->truncated = true;
		return;
	}
	if (!g->h->locked) {
		if (lstat(g->path, &st) < 0)
			return;
	} else {
		fd = hostfs_open_file(g->h, g->path, &st, NULL);
		if (fd < 0)
			return;
	}
	hostfs_names_add(g->out, g->path);
}

static void walk(struct glob *g, size_t at, const char *pattern, int depth);

/* Every entry of the directory so far that matches one component. */
static void walk_dir(struct glob *g, size_t at, const char *part,
	const char *rest, bool deep, int depth)
{
	int fd = hostfs_open_dir(g->h, HOSTFS_READ, at ? g->path : ".", NULL);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(d)) && !g->out->truncated) {
		const char *name = entry->d_name;
		size_t end = at, n = strlen(name);

		if (++g->looks > LOOKS_MAX)
			g->out->truncated = true;
		if (fnmatch(part, name, FNM_PERIOD) != 0)
			continue;
		if (at + n + 2 >= sizeof(g->path))
			continue;
		/* A link could lead "**" in circles. */
		if (deep && entry->d_type != DT_DIR)
			continue;
		memcpy(g->path + at, name, n + 1);
		end += n;
		if (*rest) {
			g->path[end++] = '/';
			g->path[end] = '\0';
		}
		walk(g, end, rest, depth + 1);
		g->path[at] = '\0';
	}
	closedir(d);
}

/* g->path[0..at) is what has matched so far, with its slash. */
static void walk(struct glob *g, size_t at, const char *pattern, int depth)
{
	char part[NAME_MAX + 1];
	size_t n = strcspn(pattern, "/");
	const char *rest = pattern + n;

	if (depth > DEPTH_MAX || g->out->truncated)
		return;
	if (!*pattern) {
		found(g);
		return;
	}
	while (*rest == '/')
		rest++;
	if (n == 2 && !memcmp(pattern, "**", 2)) {
		walk(g, at, *rest ? rest : "*", depth + 1);
		walk_dir(g, at, "*", pattern, true, depth);
		return;
	}
	if (!has_wildcard(pattern, n)) {
		if (path_add(g, &at, pattern, (size_t)(rest - pattern)) == 0)
			walk(g, at, rest, depth + 1);
		return;
	}
	if (n >= sizeof(part))
		return;
	memcpy(part, pattern, n);
	part[n] = '\0';
	walk_dir(g, at, part, rest, false, depth);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int hostfs_glob(const struct hostfs *h, const char *pattern, size_t max,
	struct hostfs_names *out, struct err *e)
{
	auto_free char *expanded = hostfs_expand(h, pattern);
	struct glob *g = calloc(1, sizeof(*g));

	*out = (struct hostfs_names){0};
	if (!g || !expanded) {
		free(g);
		return err_errno(e, "match %s", pattern);
	}
	g->h = h;
	g->out = out;
	g->max = max;
	walk(g, 0, expanded, 0);
	free(g);
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), by_name);
	return 0;
}
