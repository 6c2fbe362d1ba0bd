/* SPDX-License-Identifier: MIT */
/*
 * store.c - files that clients keep with us for a while
 *
 * Runs in:   front end; confined but for store_open()
 * Holds:     the descriptor of one sparse file, in which each file that we keep
 *            has a place of its own
 * Trusts:    nobody: contents and names are a client's or a program's
 * Leaves:    nothing: the file has no name, so the kernel frees all when we end
 *
 * The process that reads HTTP can open no file. So store_open() opens one, and
 * a place in it begins at a multiple of the longest file (serve.upload). A
 * place takes room on the disk only where it was written. Only store_read() and
 * store_locate() say where a place is.
 */
#include "repl/serve/parts.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "repl/config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* Places begin at a multiple of this: more than a block of any disk. */
#define ALIGN (64LL << 10)

struct store {
	const struct config_serve *rules; /* borrowed */
	int fd;
	int64_t place; /* bytes of a place */
	struct store_file *v;
	size_t n; /* all files from here on are free */
	int64_t total;
	uint64_t dropped;
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
	s->place = (rules->upload / ALIGN + 1) * ALIGN;
	s->fd = open_unnamed(rules->directory);
	if (s->fd < 0) {
		err_errno(e, "make a file in %s", rules->directory);
		store_close(s);
		return err_hint(e, "serve.directory");
	}
	*out = s;
	return 0;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i].name);
	fd_drop(&s->fd);
	free(s->v);
	free(s);
}

/* ---- places ---- */

static int64_t place_of(const struct store *s, const struct store_file *f)
{
	return s->place * (f - s->v);
}

int store_locate(const struct store *s, const struct store_file *f, off_t *at)
{
	*at = (off_t)place_of(s, f);
	return s->fd;
}

ssize_t store_read(const struct store *s, const struct store_file *f, void *p,
	size_t n, int64_t at)
{
	int64_t left = f->size - at;

	return pread(s->fd, p, (int64_t)n < left ? n : (size_t)left,
		(off_t)(place_of(s, f) + at));
}

/* Free a file. A file system that cannot free its room on the disk (it has no
 * holes) has the next file in the same place use that room again. */
static void empty_file(struct store *s, struct store_file *f)
{
	if (f->size)
		fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(off_t)place_of(s, f), (off_t)f->size);
	s->total -= f->size;
	free(f->name);
	*f = (struct store_file){0};
	while (s->n && !s->v[s->n - 1].used)
		s->n--;
}

/* ---- room ---- */

/* The oldest result that nobody holds, of this client or (NULL) of anybody; or
 * NULL. */
static struct store_file *find_oldest_result(
	const struct store *s, const struct connections_peer *who)
{
	struct store_file *oldest = NULL;

	for (struct store_file *f = s->v; f < s->v + s->n; f++)
		if (f->id[0] && f->is_result && !f->holders &&
			(!who || connections_is_same(f->owner, *who)) &&
			(!oldest || f->born_ms < oldest->born_ms))
			oldest = f;
	return oldest;
}

/* Drop the oldest result: of the client if it has more than its share, or else
 * of anybody. An upload stays: its client counts on it. False: there is none.
 */
static bool drop_oldest_result(
	struct store *s, const struct connections_peer *who)
{
	struct store_file *oldest = find_oldest_result(s, who);

	if (!oldest)
		return false;
	store_drop(s, oldest);
	s->dropped++;
	return true;
}

/* Make room for so many more files and bytes of a client. */
static bool make_room(struct store *s, struct connections_peer who,
	int64_t files, int64_t bytes)
{
	const struct config_serve *r = s->rules;

	for (;;) {
		int64_t all = files, own = files, size = bytes;
		bool over_share;

		for (const struct store_file *f = s->v; f < s->v + s->n; f++) {
			bool is_own = connections_is_same(f->owner, who);

			all += f->used;
			own += f->used && is_own;
			size += f->used && is_own ? f->size : 0;
		}
		over_share = own > store_share_of_client(r->files) ||
			     size > store_share_of_client(r->storage);
		if (!over_share && all <= r->files &&
			s->total + bytes <= r->storage)
			return true;
		if (!drop_oldest_result(s, over_share ? &who : NULL))
			return false;
	}
}

static struct store_file *begin_file(
	struct store *s, struct connections_peer owner, int64_t size)
{
	struct store_file *f = s->v;

	if (size > store_share_of_client(s->rules->storage) ||
		!make_room(s, owner, 1, size))
		return NULL;
	while (f->used)
		f++;
	*f = (struct store_file){.used = true, .owner = owner, .holders = 1};
	if (f == s->v + s->n)
		s->n++;
	return f;
}

struct store_file *store_begin(struct store *s, struct connections_peer owner)
{
	return begin_file(s, owner, 0);
}

struct store_file *store_begin_result(
	struct store *s, struct connections_peer owner, int64_t size)
{
	struct store_file *f = begin_file(s, owner, size);

	if (f)
		f->is_result = true;
	return f;
}

enum store_problem store_write(
	struct store *s, struct store_file *f, const void *p, size_t n)
{
	if ((int64_t)n > s->rules->upload - f->size)
		return STORE_FILE_FULL;
	if (!make_room(s, f->owner, 0, (int64_t)n))
		return STORE_FULL;
	for (size_t at = 0; at < n;) {
		ssize_t w = pwrite(s->fd, (const char *)p + at, n - at,
			(off_t)(place_of(s, f) + f->size));

		/* The disk may be full before serve.storage is. */
		if (w <= 0 && !drop_oldest_result(s, &f->owner) &&
			!drop_oldest_result(s, NULL))
			return STORE_FULL;
		if (w <= 0)
			continue;
		at += (size_t)w;
		f->size += w;
		s->total += w;
	}
	return STORE_FINE;
}

/* ---- files ---- */

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
	size_t n = strlen(name);

	(void)s;
	f->name = strndup(name, n > NAME_MAX ? utf8_start(name, NAME_MAX) : n);
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

void store_count(const struct store *s, struct store_count *c)
{
	*c = (struct store_count){.bytes = s->total, .dropped = s->dropped};
	for (const struct store_file *f = s->v; f < s->v + s->n; f++)
		c->files += f->used;
}

void store_sweep(struct store *s, const struct tenants *tenants)
{
	int64_t now = now_ms();

	for (struct store_file *f = s->v; f < s->v + s->n; f++)
		if (f->id[0] && (now - f->born_ms > s->rules->keep_ms ||
					tenants_is_gone(tenants, f->owner)))
			store_drop(s, f);
}
