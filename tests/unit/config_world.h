/* SPDX-License-Identifier: MIT */
/*
 * config_world.h - a configuration directory that a test can fill
 */
#ifndef TESTS_UNIT_CONFIG_WORLD_H
#define TESTS_UNIT_CONFIG_WORLD_H

#include "repl/config/config.h"
#include "tests/lib/tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* A system directory of its own for each test, and what is read from it. */
struct world {
	char dir[64];
	struct config_where where;
	struct config cfg;
	struct config_errors errors;
	const char *sets[8];
	char own[96];
};

static inline int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	strcpy(w->dir, "/tmp/cellblock-test-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	assert_int_equal(chmod(w->dir, 0755), 0);
	w->where.system_dir = w->dir;
	w->where.system_uid = geteuid();
	w->where.sets = w->sets;
	*state = w;
	return 0;
}

static inline int teardown(void **state)
{
	struct world *w = *state;

	config_fini(&w->cfg);
	config_errors_fini(&w->errors);
	assert_int_equal(tree_remove(w->dir), 0);
	free(w);
	return 0;
}

/* The path of a file below the system directory. */
static inline const char *path_of(struct world *w, const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", w->dir, name);
	return path;
}

static inline void put_bytes(
	struct world *w, const char *name, const char *text, size_t n)
{
	char dir[256];
	FILE *f;

	snprintf(dir, sizeof(dir), "%s", path_of(w, name));
	*strrchr(dir, '/') = '\0';
	mkdir(dir, 0755);
	chmod(dir, 0755);
	f = fopen(path_of(w, name), "w");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path_of(w, name), 0644), 0);
}

static inline void put(struct world *w, const char *name, const char *text)
{
	put_bytes(w, name, text, strlen(text));
}

static inline void put_own(struct world *w, const char *text)
{
	put(w, "own/user.conf", text);
	snprintf(w->own, sizeof(w->own), "%s/own/user.conf", w->dir);
	w->where.user_file = w->own;
}

static inline void add_set(struct world *w, const char *set)
{
	assert_true(w->where.nsets < 8);
	w->sets[w->where.nsets++] = set;
}

static inline void put_line(FILE *f, const char *line)
{
	fprintf(f, "%s\n", line);
}

static inline int load(struct world *w)
{
	config_fini(&w->cfg);
	config_errors_fini(&w->errors);
	return config_load(&w->cfg, &w->where, &w->errors);
}

static inline void load_ok(struct world *w)
{
	int r = load(w);

	config_errors_print(&w->errors, put_line);
	assert_int_equal(r, 0);
}

/* Loading fails with exactly these errors, each named by a part of its text. */
static inline void load_fails(
	struct world *w, const char *const *parts, size_t n)
{
	assert_int_equal(load(w), -1);
	if (w->errors.list.n != n)
		config_errors_print(&w->errors, put_line);
	assert_int_equal(w->errors.list.n, n);
	for (size_t i = 0; i < n; i++)
		if (!strstr(w->errors.list.items[i], parts[i]))
			fail_msg("error %zu\n  wanted: ...%s...\n  got:    %s",
				i, parts[i], w->errors.list.items[i]);
}

#define LOAD_FAILS(w, ...)                                                     \
	load_fails(w, (const char *const[]){__VA_ARGS__},                      \
		sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* The value as it would be written. */
static inline void assert_value(struct world *w, const char *section,
	const char *name, const char *want)
{
	char buf[512];

	assert_string_equal(
		config_value_format(&w->cfg, config_keys_find(section, name),
			buf, sizeof(buf)),
		want);
}

#endif
