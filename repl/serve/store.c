/* SPDX-License-Identifier: MIT */
/*
 * store.c - files that clients keep with us for a while
 *
 * Runs in:   front end; confined but for store_open()
 * Holds:     a descriptor for each of serve.files files
 * Trusts:    nobody: contents and names are a client's or a program's
 * Leaves:    nothing: no file has a name, so the kernel frees all when we end
 *
 * The process that reads HTTP can open no file. So store_open() opens all
 * files, empty, and we use them again and again.
 */
#include "repl/serve/parts.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "repl/config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* One client can have all files and bytes but this part (1/4), which is left to
 * others. */
#define OTHERS_DEN 4

struct store {
	const struct config_serve *rules; /* borrowed */
	struct store_file *v;
	size_t n;
	int64_t total;
};

/* Open a file without a name. On a file system without O_TMPFILE we make a
 * file, and remove its name at once. */
static int open_unnamed(const char *dir)
{
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char *path = NULL;

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd;
	if (asprintf(&path, "%s/cellblock-XXXXXX", dir) < 0)
		return -1;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	free(path);
	return fd;
}

int store_open(
	struct store **out, const struct config_serve *rules, struct err *e)
{
	struct store *s = calloc(1, sizeof(*s));

	if (s)
		s->v = calloc((size_t)rules->files + 1, sizeof(*s->v));
	if (!s || !s->v) {
		free(s);
		return err_errno(e, "prepare for uploads");
	}
	s->rules = rules;
	for (; s->n < (size_t)rules->files; s->n++) {
		s->v[s->n].fd = open_unnamed(rules->directory);
		if (s->v[s->n].fd >= 0)
			continue;
		err_errno(e, "make files in %s", rules->directory);
		store_close(s);
		return err_hint(e, "serve.directory and serve.files");
	}
	*out = s;
	return 0;
}

static void empty_file(struct store *s, struct store_file *f)
{
	s->total -= f->size;
	free(f->name);
	/* A file that cannot be emptied is not used again. */
	*f = (struct store_file){.fd = f->fd, .used = ftruncate(f->fd, 0) < 0};
}

void store_close(struct store *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++) {
		free(s->v[i].name);
		close(s->v[i].fd);
	}
	free(s->v);
	free(s);
}

static int64_t share_of_client(int64_t all)
{
	return all - all / OTHERS_DEN;
}

/* How many files a client has; *bytes: their total size. */
static int64_t count_files(
	const struct store *s, struct connections_peer who, int64_t *bytes)
{
	int64_t n = 0;

	*bytes = 0;
	for (size_t i = 0; i < s->n; i++) {
		if (!s->v[i].used || !connections_is_same(s->v[i].owner, who))
			continue;
		n++;
		*bytes += s->v[i].size;
	}
	return n;
}

struct store_file *store_begin(struct store *s, struct connections_peer owner)
{
	int64_t bytes;

	if (count_files(s, owner, &bytes) >= share_of_client((int64_t)s->n))
		return NULL;
	for (size_t i = 0; i < s->n; i++) {
		if (s->v[i].used)
			continue;
		s->v[i].used = true;
		s->v[i].owner = owner;
		s->v[i].holders = 1;
		return &s->v[i];
	}
	return NULL;
}

enum store_problem store_write(
	struct store *s, struct store_file *f, const void *p, size_t n)
{
	int64_t bytes;

	if ((int64_t)n > s->rules->upload - f->size)
		return STORE_FILE_FULL;
	count_files(s, f->owner, &bytes);
	if ((int64_t)n > s->rules->storage - s->total ||
		(int64_t)n > share_of_client(s->rules->storage) - bytes)
		return STORE_FULL;
	for (size_t at = 0; at < n;) {
		ssize_t w = pwrite(
			f->fd, (const char *)p + at, n - at, (off_t)(f->size));

		if (w <= 0)
			return STORE_FULL;
		at += (size_t)w;
		f->size += w;
		s->total += w;
	}
	return STORE_FINE;
}

void store_make_id(char id[static STORE_ID_LEN + 1])
{
	unsigned char r[16] = {0};

	/* getrandom(2) never fails for so few bytes once the system is up. */
	(void)!getrandom(r, sizeof(r), 0);
	r[6] = (unsigned char)((r[6] & 0x0f) | 0x40);
	r[8] = (unsigned char)((r[8] & 0x3f) | 0x80);
	snprintf(id, STORE_ID_LEN + 1,
		"%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
		"%02x%02x%02x%02x%02x%02x",
		r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9],
		r[10], r[11], r[12], r[13], r[14], r[15]);
}

int store_finish(struct store *s, struct store_file *f, const char *name)
{
	struct timespec t;

	(void)s;
	f->name = strdup(name);
	if (!f->name)
		return -1;
	clock_gettime(CLOCK_REALTIME, &t);
	f->time = (double)t.tv_sec + (double)t.tv_nsec / 1e9;
	f->born_ms = now_ms();
	store_make_id(f->id);
	f->holders--;
	return 0;
}

void store_hold(struct store_file *f)
{
	f->holders++;
}

void store_release(struct store *s, struct store_file *f)
{
	if (--f->holders == 0 && !f->id[0])
		empty_file(s, f);
}

void store_drop(struct store *s, struct store_file *f)
{
	f->id[0] = '\0';
	f->holders++;
	store_release(s, f);
}

struct store_file *store_next(
	struct store *s, struct store_file *f, struct connections_peer who)
{
	for (f = f ? f + 1 : s->v; f < s->v + s->n; f++)
		if (f->id[0] && connections_may_share(f->owner, who))
			return f;
	return NULL;
}

struct store_file *store_find(
	struct store *s, const char *id, struct connections_peer who)
{
	struct store_file *f = NULL;

	while ((f = store_next(s, f, who)))
		if (!strcmp(f->id, id))
			return f;
	return NULL;
}

void store_sweep(struct store *s, const struct tenants *tenants)
{
	int64_t now = now_ms();

	for (struct store_file *f = s->v; f < s->v + s->n; f++)
		if (f->id[0] && (now - f->born_ms > s->rules->keep_ms ||
					tenants_is_gone(tenants, f->owner)))
			store_drop(s, f);
}
