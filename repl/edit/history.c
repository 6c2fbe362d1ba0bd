/* SPDX-License-Identifier: MIT */
/*
 * history.c - remembered cells, in memory and in a file
 *
 * Runs in:   the front end
 * Holds:     a descriptor of the state directory, which works under Landlock
 * Trusts:    neither the file's name nor a byte of it: another program may
 *            have put a link, a pipe or another file there
 * Leaves:    entries of valid UTF-8 without controls; a file that is complete
 *            at any time: a session appends a record in one write, compacts by
 *            rename, and does both under the lock of the file with the name
 */
#include "repl/edit/editor.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/path.h"
#include "repl/text/text.h"

/* A stopped session may hold the lock. */
#define LOCK_MS 1000
/* How often the file may be replaced before we have its lock. */
#define REPLACED_MAX 250

struct history_entry {
	char *s;
	size_t n;
};

struct history {
	struct history_entry *v;
	size_t n;
	size_t skipped;
	int dirfd; /* -1: memory only */
	char *name;
	bool loaded;
};

/* ---- the file ---- */

int history_open_dir(const char *path, struct err *e)
{
	auto_free char *dir = strdup(path);
	auto_close int fd = -1;
	struct stat st;

	if (!dir)
		return err_errno(e, "%s", path);
	if (!*dir)
		return err_set(e, "the name of the directory is empty");
	for (char *p = strchr(dir + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = 0;
		if (mkdir(dir, 0700) < 0 && errno != EEXIST && errno != EROFS &&
			errno != EACCES)
			return err_errno(e, "make directory %s", dir);
		*p = '/';
	}
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return err_errno(e, "make directory %s", dir);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(e, "%s", dir);
	if (st.st_uid != geteuid())
		return err_set(e, "%s: belongs to uid %u, not to you", dir,
			(unsigned)st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH)) {
		err_set(e, "%s: others may write there", dir);
		return err_hint(e, "chmod go-w %s", dir);
	}
	return fd_take(&fd);
}

static int find_fault(const struct stat *st, const char *name, struct err *e)
{
	if (S_ISLNK(st->st_mode))
		return err_set(e, "%s: is a symbolic link", name);
	if (!S_ISREG(st->st_mode))
		return err_set(e, "%s: is not a regular file", name);
	if (st->st_uid != geteuid())
		return err_set(e, "%s: belongs to uid %u, not to you", name,
			(unsigned)st->st_uid);
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return err_set(e, "%s: others may write to it", name);
	if (st->st_nlink > 1)
		return err_set(e, "%s: has other hard links", name);
	if ((size_t)st->st_size > 2 * HISTORY_FILE_MAX)
		return err_set(e, "%s: is too large (%lld bytes)", name,
			(long long)st->st_size);
	return 0;
}

/* Refuse a file that may not be used. 0, or -1. */
static int check_file(const struct stat *st, const char *name, struct err *e)
{
	if (find_fault(st, name, e) == 0)
		return 0;
	return err_hint(
		e, "it is left as it is; move it away, and a new one is begun");
}

/* Open the file and check the opened file, not its name. -1 with errno; ENOENT
 * if there is no file. */
static int file_open(
	const struct history *h, int flags, struct stat *st, struct err *e)
{
	auto_close int fd = openat(h->dirfd, h->name,
		flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);

	if (fd < 0)
		return err_errno(e, "open %s", h->name);
	if (fstat(fd, st) < 0)
		return err_errno(e, "%s", h->name);
	if (check_file(st, h->name, e) < 0) {
		errno = EPERM;
		return -1;
	}
	return fd_take(&fd);
}

/* Read the whole file (caller frees); *s is NULL without one. 0, or -1. */
static int file_read(
	const struct history *h, char **s, size_t *n, struct err *e)
{
	struct stat st;
	auto_close int fd = file_open(h, O_RDONLY, &st, e);

	*s = NULL;
	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	return io_read_some(fd, (size_t)st.st_size, s, n) < 0
		       ? err_errno(e, "read %s", h->name)
		       : 0;
}

/* Open and lock the file that has the name. Between open and lock another
 * session may compact the history and rename a new file into its place. */
static int file_open_locked(
	const struct history *h, struct stat *st, struct err *e)
{
	for (int i = 0; i < REPLACED_MAX; i++) {
		struct stat now;
		auto_close int fd =
			file_open(h, O_RDWR | O_APPEND | O_CREAT, st, e);

		if (fd < 0)
			return -1;
		if (io_lock(fd, LOCK_MS) < 0)
			return err_errno(e, "lock %s", h->name);
		if (fstatat(h->dirfd, h->name, &now, AT_SYMLINK_NOFOLLOW) ==
				0 &&
			now.st_ino == st->st_ino && now.st_dev == st->st_dev) {
			if (fstat(fd, st) < 0)
				return err_errno(e, "%s", h->name);
			return fd_take(&fd);
		}
	}
	return err_set(e, "lock %s: it keeps being replaced", h->name);
}

/* Replace the file by its newest records. The caller holds its lock. */
static int file_compact(const struct history *h, struct err *e)
{
	auto_free char *s = NULL;
	struct io_newfile f;
	const char *from;
	size_t n, cut;
	int r = 0;

	if (file_read(h, &s, &n, e) < 0 || !s)
		return -1;
	if (io_newfile_create(&f, h->dirfd, 0600) < 0)
		return err_errno(e, "compact %s", h->name);
	/* Keep the newest half, from the start of a record. */
	cut = n > HISTORY_FILE_MAX / 2 ? n - HISTORY_FILE_MAX / 2 : 0;
	from = cut ? memchr(s + cut, '\n', n - cut) : NULL;
	cut = from ? (size_t)(from + 1 - s) : cut ? n : 0;
	if (io_write_full(f.fd, s + cut, n - cut) < 0 ||
		io_newfile_commit(&f, h->name, true) < 0)
		r = err_errno(e, "compact %s", h->name);
	io_newfile_abort(&f);
	return r;
}

/* End a record cut short by a full disk or a crash: the next begins a line. */
static int file_heal(int fd, off_t size)
{
	char last;

	if (size == 0 || pread(fd, &last, 1, size - 1) != 1 || last == '\n')
		return 0;
	return write(fd, "\n", 1) == 1 ? 0 : -1;
}

/* Append a record in one write under the lock, then drop the oldest ones if the
 * file is too large. 0, or -1. */
static int file_append(
	const struct history *h, const struct strbuf *record, struct err *e)
{
	struct stat st;
	auto_close int fd = file_open_locked(h, &st, e);
	ssize_t r;

	if (fd < 0)
		return err_wrap(e, "history");
	if (file_heal(fd, st.st_size) < 0)
		return err_errno(e, "history: write %s", h->name);
	r = write(fd, record->s, record->n);
	if (r < 0 || (size_t)r < record->n) {
		errno = r < 0 ? errno : ENOSPC;
		err_errno(e, "history: write %s", h->name);
		/* If this fails, file_heal() ends the half record. */
		if (r > 0)
			(void)!ftruncate(fd, st.st_size);
		return -1;
	}
	if ((size_t)st.st_size + record->n > HISTORY_FILE_MAX &&
		file_compact(h, e) < 0)
		return err_wrap(e, "history");
	return 0;
}

/* ---- records ---- */

static bool is_text(const char *s, size_t n)
{
	return n && utf8_is_text(s, n, "\n\t");
}

static void escape_record(struct strbuf *b, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '\n')
			strbuf_puts(b, "\\n");
		else if (s[i] == '\\')
			strbuf_puts(b, "\\\\");
		else
			strbuf_add(b, s + i, 1);
	}
	strbuf_puts(b, "\n");
}

/* Undo escape_record(). False: the line is no valid record. */
static bool unescape_record(const char *s, size_t n, char *out, size_t *len)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		char c = s[i];

		if (c == '\\') {
			if (++i == n || (s[i] != 'n' && s[i] != '\\'))
				return false;
			c = s[i] == 'n' ? '\n' : '\\';
		}
		out[at++] = c;
	}
	out[at] = 0;
	*len = at;
	return at <= HISTORY_ENTRY_MAX && is_text(out, at);
}

/* Takes `s`. 0, or -1 (no memory). */
static int push_entry(struct history *h, char *s, size_t n)
{
	if (array_grow(&h->v, h->n, sizeof(*h->v)) < 0) {
		free(s);
		return -1;
	}
	h->v[h->n++] = (struct history_entry){.s = s, .n = n};
	return 0;
}

static void parse_records(struct history *h, const char *s, size_t n)
{
	const char *end = s + n;

	while (s < end) {
		const char *nl = memchr(s, '\n', (size_t)(end - s));
		size_t len = (size_t)((nl ? nl : end) - s), out_n;
		char *out = malloc(len + 1);

		if (!out)
			return;
		if (nl && unescape_record(s, len, out, &out_n)) {
			push_entry(h, out, out_n);
		} else {
			free(out);
			h->skipped += len > 0;
		}
		s += len + 1;
	}
}

static void load_file(struct history *h)
{
	auto_free char *s = NULL;
	size_t n;

	if (h->loaded || h->dirfd < 0)
		return;
	h->loaded = true;
	if (file_read(h, &s, &n, NULL) == 0 && s)
		parse_records(h, s, n);
}

/* ---- the history ---- */

struct history *history_new(void)
{
	struct history *h = calloc(1, sizeof(*h));

	if (h)
		h->dirfd = -1;
	return h;
}

void history_free(struct history *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->n; i++)
		free(h->v[i].s);
	free(h->v);
	free(h->name);
	fd_drop(&h->dirfd);
	free(h);
}

int history_attach(
	struct history *h, int dirfd, const char *name, struct err *e)
{
	auto_close int fd = -1;
	struct stat st;
	char *copy;

	if (!path_is_name(name))
		return err_set(
			e, "history not kept: %s: not a file name", name);
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno != ENOENT)
			return err_errno(e, "history not kept: %s", name);
	} else if (check_file(&st, name, e) < 0) {
		return err_wrap(e, "history not kept");
	}
	fd = fcntl(dirfd, F_DUPFD_CLOEXEC, 3);
	copy = strdup(name);
	if (fd < 0 || !copy) {
		free(copy);
		return err_errno(e, "history not kept: %s", name);
	}
	fd_drop(&h->dirfd);
	free(h->name);
	h->name = copy;
	h->dirfd = fd_take(&fd);
	return 0;
}

int history_attach_path(struct history *h, const char *path, struct err *e)
{
	const char *name = path_last(path);
	auto_free char *dir = strndup(path, (size_t)(name - path));
	auto_close int dirfd = -1;

	if (*path != '/' || !*name)
		return err_set(
			e, "history not kept: not a full path: %s", path);
	if (!dir)
		return err_errno(e, "history not kept");
	dir[name - path - 1] = '\0';
	dirfd = history_open_dir(dir, e);
	if (dirfd < 0)
		return err_wrap(e, "history not kept");
	return history_attach(h, dirfd, name, e);
}

int history_add(struct history *h, const char *s, size_t n, struct err *e)
{
	struct strbuf record = {0};
	char *copy;
	int r;

	load_file(h);
	if (!is_text(s, n))
		return 0;
	if (h->n && h->v[h->n - 1].n == n && !memcmp(h->v[h->n - 1].s, s, n))
		return 0;
	copy = strndup(s, n);
	if (!copy || push_entry(h, copy, n) < 0)
		return err_set(e, "history: out of memory");
	if (h->dirfd < 0)
		return 0;
	if (n > HISTORY_ENTRY_MAX)
		return err_set(e,
			"history: a cell of %zu bytes is kept for this session "
			"only (longest in the file: %zu)",
			n, HISTORY_ENTRY_MAX);
	escape_record(&record, s, n);
	r = record.failed ? err_set(e, "history: out of memory")
			  : file_append(h, &record, e);
	strbuf_free(&record);
	return r;
}

size_t history_count(struct history *h)
{
	load_file(h);
	return h->n;
}

const char *history_get(struct history *h, size_t i, size_t *n)
{
	load_file(h);
	if (i >= h->n)
		return NULL;
	*n = h->v[i].n;
	return h->v[i].s;
}

size_t history_find(struct history *h, size_t before, const char *s, size_t n)
{
	load_file(h);
	if (before > h->n)
		before = h->n;
	while (before-- > 0)
		if (memmem(h->v[before].s, h->v[before].n, s, n))
			return before;
	return (size_t)-1;
}

size_t history_skipped(const struct history *h)
{
	return h->skipped;
}
