/* SPDX-License-Identifier: MIT */
/*
 * attach.c - files of the home that go into an answer
 *
 * Runs in:   front end, confined, after the program's end
 * Trusts:    nothing of the home: a name can be any bytes, a file can be
 *            sparse, a tree can be as deep as there are names
 */
#include "repl/json/json.h"

#include "jail/base/io.h"
#include "jail/base/path.h"
#include "jail/jail.h"
#include "repl/files/files.h"
#include "repl/text/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Python gives up at about this depth. */
#define DEPTH_MAX 900

static const char too_deep[] = "FileParsingError: Exceeded directory depth "
			       "limit while parsing attachments";
static const char too_late[] =
	"TimeoutError: Exceeded time limit while parsing attachments";
static const char bad_name[] =
	"FileParsingError: invalid bytes in filename while parsing attachments";
static const char unknown_error[] =
	"FileParsingError: Unknown error while parsing attachments";

static const char too_long[] = "it is larger than files.max_file";
static const char too_many[] = "there are more than files.max_count";
static const char too_large[] = "all together would be larger than home.size";

/* Longest turn, not counting its last file. */
#define TURN_MS 3

struct attach {
	struct strbuf *b;
	struct drive *drive;
	struct attach_rules rules;
	bool kind;
	struct jail_files files;
	bool asked, listed;
	size_t before, at;		 /* bytes of `b` before; next file */
	int64_t left_ms, end_ms, due_ms; /* due_ms: the names are due */
	int64_t total;
	int n;
	/* the first file that is left out, and why; how many were looked at */
	char left_out[256];
	const char *left_why;
	unsigned left_n;
};

/* Whether a file that came from the store has the bytes that it had. */
static bool is_as_stored(const struct request_file *f, int fd, int64_t size)
{
	char stored[16 << 10], now[sizeof(stored)];

	if (f->fd < 0 || (int64_t)f->n != size)
		return false;
	for (int64_t at = 0; at < size;) {
		size_t want = size - at < (int64_t)sizeof(now)
				      ? (size_t)(size - at)
				      : sizeof(now);

		if (pread(fd, now, want, at) != (ssize_t)want ||
			pread(f->fd, stored, want, f->from + at) !=
				(ssize_t)want ||
			memcmp(now, stored, want) != 0)
			return false;
		at += (int64_t)want;
	}
	return true;
}

/* snekbox goes by the time of a change, Onyx's interpreter by the bytes. The
 * last file of a path is the one that was there. */
static bool was_sent(
	const struct attach *a, const char *path, int fd, const struct stat *st)
{
	const struct put_file *f = a->rules.sent + a->rules.nsent;

	while (f > a->rules.sent)
		if (!strcmp((--f)->from->clean, path))
			return (f->mtime.tv_sec == st->st_mtim.tv_sec &&
				       f->mtime.tv_nsec ==
					       st->st_mtim.tv_nsec) ||
			       is_as_stored(f->from, fd, st->st_size);
	return false;
}

/* A multiple of three bytes, so that the base64 of the pieces joins. */
#define PIECE (3 * 16384)

static const char *add_content(struct attach *a, int fd, int64_t size)
{
	char piece[PIECE];

	for (int64_t at = 0; at < size; at += PIECE) {
		int64_t want = size - at < PIECE ? size - at : PIECE;

		if (pread(fd, piece, (size_t)want, at) != want)
			return unknown_error;
		base64_add(a->b, piece, (size_t)want);
		if (now_ms() > a->end_ms)
			return too_late;
	}
	return NULL;
}

static void leave_out(struct attach *a, const char *path, const char *why)
{
	if (a->left_n++)
		return;
	snprintf(a->left_out, sizeof(a->left_out), "%s", path);
	a->left_why = why;
}

const char *attach_left_out(const struct attach *a, char *buf, size_t size)
{
	if (!a->left_n)
		return NULL;
	snprintf(buf, size, "left out: %s%s: %s", a->left_out,
		a->left_n > 1 ? " and others" : "", a->left_why);
	return buf;
}

static const char *add_file(
	struct attach *a, const char *path, int fd, int64_t size)
{
	const struct attach_store *store = a->rules.store;
	size_t before = a->b->n;
	const char *why;

	if (!emit_is_text(path, strlen(path)))
		return bad_name;
	emit_open(a->b, NULL, '{');
	emit_text(a->b, "path", path);
	if (a->kind)
		emit_text(a->b, "kind", "file");
	emit_int(a->b, "size", size);
	if (store) {
		emit_key(a->b, "file_id");
		why = store->put(store->arg, a->b, path, fd, size);
		if (why) {
			leave_out(a, path, why);
			a->b->n = before;
			return NULL;
		}
	} else {
		emit_key(a->b, "content");
		strbuf_puts(a->b, "\"");
		why = add_content(a, fd, size);
		strbuf_puts(a->b, "\"");
	}
	emit_close(a->b, '}');
	a->n++;
	a->total += size;
	return a->b->failed ? unknown_error : why;
}

/* Add an entry, if it is a file to attach. *full: this entry and all after it
 * stay out. */
static const char *add_entry(
	struct attach *a, const struct jail_file *f, bool *full)
{
	const struct limits *l = a->rules.limits;
	auto_close int fd = -1;
	struct stat st;

	if ((f->type != 'f' && f->type != 'l') ||
		(a->rules.pattern &&
			!transfer_matches(a->rules.pattern, f->path)))
		return NULL;
	/* A link that leaves the home, or to a directory, cannot be opened. */
	fd = jail_home_open(a->drive->jail, f->path, NULL);
	if (fd < 0 || fstat(fd, &st) < 0 || was_sent(a, f->path, fd, &st))
		return NULL;
	if (st.st_size > l->max_file_bytes) {
		leave_out(a, f->path, too_long);
		return NULL;
	}
	*full = a->n >= l->max_count || a->total + st.st_size > l->home_bytes;
	if (!*full)
		return add_file(a, f->path, fd, st.st_size);
	leave_out(a, f->path, a->n >= l->max_count ? too_many : too_large);
	return NULL;
}

/* Take the names from the drive: the home has been listed. */
static void take_names(struct attach *a)
{
	a->asked = a->listed = true;
	a->files = a->drive->files;
	a->drive->files = (struct jail_files){0};
}

static const char *check_depths(const struct attach *a)
{
	for (size_t i = 0; i < a->files.n; i++)
		if (path_depth(a->files.v[i].path) > DEPTH_MAX)
			return too_deep;
	return NULL;
}

/* Ask the warden for the names. While it walks through the home, other requests
 * have their turn. */
static void ask_for_names(struct attach *a)
{
	a->asked = true;
	a->due_ms = now_ms() + a->left_ms;
	drive_call(a->drive, CALL_LIST, 0, NULL);
}

/* Take the names, if they have come. */
static const char *poll_names(struct attach *a)
{
	struct drive *d = a->drive;

	if (!a->asked)
		ask_for_names(a);
	drive_take(d);
	if (!d->replied)
		return d->gone		      ? unknown_error
		       : now_ms() > a->due_ms ? too_late
					      : NULL;
	if (!d->ok)
		return unknown_error;
	take_names(a);
	return check_depths(a);
}

struct attach *attach_begin(struct strbuf *b, struct drive *d,
	const struct attach_rules *rules, bool kind)
{
	struct attach *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	*a = (struct attach){.b = b,
		.drive = d,
		.rules = *rules,
		.kind = kind,
		.asked = rules->empty,
		.listed = rules->empty,
		.before = b->n,
		.left_ms = rules->limits->files_ms};
	return a;
}

void attach_close(struct attach *a)
{
	if (!a)
		return;
	jail_files_free(&a->files);
	free(a);
}

/* Only time in our own turns counts (left_ms), not that of other requests. We
 * look at one file at least, however slow the host is. */
bool attach_turn(struct attach *a, const char **why)
{
	int64_t begun = now_ms();
	bool full = false;

	a->end_ms = begun + a->left_ms;
	*why = a->listed ? NULL : poll_names(a);
	while (!*why && a->listed && !full && a->at < a->files.n) {
		*why = now_ms() > a->end_ms
			       ? too_late
			       : add_entry(a, &a->files.v[a->at++], &full);
		if (now_ms() - begun >= TURN_MS)
			break;
	}
	a->left_ms = a->end_ms - now_ms();
	if (*why)
		a->b->n = a->before;
	if (*why && a->rules.store)
		a->rules.store->forget(a->rules.store->arg);
	return *why || full || (a->listed && a->at == a->files.n);
}

int attach_timeout_ms(const struct attach *a, int *fd)
{
	bool waits = a->asked && !a->listed;
	int64_t left = a->due_ms - now_ms() + 1;

	*fd = waits ? jail_fd(a->drive->jail) : -1;
	return waits && left > 0 ? (int)left : 0;
}

const char *attach_files(
	struct strbuf *b, struct drive *d, const struct attach_rules *rules)
{
	struct attach *a = attach_begin(b, d, rules, true);
	const char *why;

	if (!a)
		return unknown_error;
	take_names(a);
	why = check_depths(a);
	while (!why && !attach_turn(a, &why))
		;
	attach_close(a);
	return why;
}
