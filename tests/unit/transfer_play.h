/* SPDX-License-Identifier: MIT */
/*
 * transfer_play.h - a host and a home to copy between
 *
 * The home is a directory of the test's own, and what the warden does with a
 * home is done to that.
 */
#ifndef TESTS_TRANSFER_PLAY_H
#define TESTS_TRANSFER_PLAY_H

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "jail/walls/walls.h"
#include "repl/files/files.h"
#include "repl/text/text.h"
#include "tests/lib/defaults.h"
#include "tests/lib/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- a home that is a directory ---- */

struct scene;

struct jail {
	struct home home;
	int opened, created; /* how many questions there were */
	int64_t used_bytes;
	int used_files;
	void (*meanwhile)(struct scene *); /* before files are opened */
	struct scene *scene;
};

/* As jail/client/requests.c takes it apart, sorted. */
static int by_path(const void *a, const void *b)
{
	const struct jail_file *x = a, *y = b;

	return strcmp(x->path, y->path);
}

int jail_home_list(struct jail *j, struct jail_files *out, struct err *e)
{
	size_t n = 0;
	auto_free char *text = home_list(&j->home, &n, &out->truncated, e);

	assert_non_null(text);
	*out = (struct jail_files){.v = calloc(10000, sizeof(*out->v))};
	for (char *p = text; p < text + n; p += strlen(p) + 1) {
		struct jail_file *f = &out->v[out->n++];
		long long bytes, blocks, mtime;
		unsigned mode;
		int at = 0;

		assert_int_equal(
			sscanf(p, "%c %o %lld %lld %lld %u%n", &f->type, &mode,
				&bytes, &blocks, &mtime, &f->nlink, &at),
			6);
		f->mode = (int)mode;
		f->bytes = bytes;
		f->blocks_bytes = blocks;
		f->mtime_ns = mtime;
		f->path = strdup(p + at + 1);
	}
	qsort(out->v, out->n, sizeof(*out->v), by_path);
	out->used_bytes = j->used_bytes;
	out->used_files = j->used_files;
	return 0;
}

void jail_files_free(struct jail_files *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->v[i].path);
	free(f->v);
	*f = (struct jail_files){0};
}

int jail_home_open_many(struct jail *j, const char *const *paths, int n,
	int *fds, struct err *e)
{
	int i = 0;

	j->opened++;
	if (j->meanwhile)
		j->meanwhile(j->scene);
	while (i < n && (fds[i] = home_open(&j->home, paths[i], e)) >= 0)
		i++;
	return i;
}

int jail_home_create_many(struct jail *j, const char *const *paths, int n,
	int mode, int *fds, uint32_t *tokens, struct err *e)
{
	int i = 0;

	j->created++;
	for (; i < n; i++) {
		fds[i] = home_create(
			&j->home, paths[i], (mode_t)mode, &tokens[i], e);
		if (fds[i] < 0)
			break;
		fds[i] = dup(fds[i]); /* the front end has one of its own */
	}
	return i;
}

int jail_home_commit_many(
	struct jail *j, const struct jail_end *ends, int n, struct err *e)
{
	int i = 0;

	while (i < n && home_commit(&j->home, &ends[i], e) == 0)
		i++;
	return i;
}

int jail_home_mkdir_many(struct jail *j, const char *const *paths,
	const struct jail_end *ends, int n, struct err *e)
{
	int i = 0;

	while (i < n && home_mkdir(&j->home, paths[i], &ends[i], e) == 0)
		i++;
	return i;
}

int jail_home_abort(struct jail *j, uint32_t token)
{
	return home_abort(&j->home, token, NULL);
}

/* ---- the scene ---- */

struct scene {
	char top[64], host[96], out[96], home[96];
	struct jail jail;
	struct hostfs hostfs;
	struct limits limits;
	struct ledger ledger;
	struct transfer t;
	char said[4096], refused[4096], asked[400];
	struct err e; /* of the last transfer */
	bool may_overwrite;
};

static void say(void *arg, const char *lines)
{
	struct scene *s = arg;

	strcat(s->said, lines);
}

static void refuse(void *arg, const struct err *e)
{
	struct scene *s = arg;

	strcat(strcat(s->refused, e->msg), "\n");
}

static bool answer(void *arg, const char *question)
{
	struct scene *s = arg;

	snprintf(s->asked, sizeof(s->asked), "%s", question);
	return s->may_overwrite;
}

static int set_up(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	/* A tmpfs, as a home is: elsewhere a file may be of another device than its
	 * directory, and is left out. */
	strcpy(s->top, "/dev/shm/test_transfer.XXXXXX");
	assert_non_null(mkdtemp(s->top));
	snprintf(s->host, sizeof(s->host), "%s/host", s->top);
	snprintf(s->out, sizeof(s->out), "%s/out", s->top);
	snprintf(s->home, sizeof(s->home), "%s/home", s->top);
	assert_int_equal(mkdir(s->host, 0700), 0);
	assert_int_equal(mkdir(s->out, 0700), 0);
	assert_int_equal(mkdir(s->home, 0700), 0);
	home_init(&s->jail.home,
		open(s->home, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	s->jail.scene = s;
	s->limits = default_limits();
	s->t = (struct transfer){.jail = &s->jail,
		.host = &s->hostfs,
		.limits = &s->limits,
		.ledger = &s->ledger,
		.say = say,
		.refuse = refuse,
		.ask = answer,
		.arg = s};
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *s = *state;

	home_fini(&s->jail.home);
	ledger_free(&s->ledger);
	hostfs_close(&s->hostfs);
	assert_int_equal(tree_remove(s->top), 0);
	free(s);
	return 0;
}

static void put(const char *dir, const char *name, const char *text)
{
	char path[400];
	auto_close int fd = -1;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(io_write_full(fd, text, strlen(text)), 0);
}

static void expect(const char *dir, const char *name, const char *text)
{
	char path[400], buf[4096] = "";
	auto_close int fd = -1;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(io_read_full(fd, buf, sizeof(buf) - 1) >= 0);
	assert_string_equal(buf, text);
}

static int entries(const char *dir)
{
	DIR *d = opendir(dir);
	const struct dirent *entry;
	int n = 0;

	while ((entry = readdir(d)))
		n += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
	closedir(d);
	return n;
}

static int upload(struct scene *s, const char *name, const char *to)
{
	char path[400];
	struct lexer_word w = {.s = path, .pattern = path};

	snprintf(path, sizeof(path), "%s/%s", s->host, name);
	w.is_pattern = strpbrk(name, "*?[") != NULL;
	s->t.done = s->t.failed = s->t.left = 0;
	return upload_run(&s->t, &w, 1, to, &s->e);
}

static int download(struct scene *s, const char *pattern)
{
	char text[400];
	struct lexer_word w = {.s = text, .pattern = text};

	snprintf(text, sizeof(text), "%s", pattern);
	w.is_pattern = strpbrk(pattern, "*?[") != NULL;
	s->t.done = s->t.failed = s->t.left = 0;
	return download_run(&s->t, &w, 1, s->out, &s->e);
}

#define SCENE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

#endif
