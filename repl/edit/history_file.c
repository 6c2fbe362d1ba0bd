/* SPDX-License-Identifier: MIT */
/*
 * history_file.c - the history's file
 *
 * Runs in:   the front end
 * Holds:     the directory's descriptor, so that it works under Landlock
 * Trusts:    nothing under the name: whatever may write in the directory may
 *            have put a link, a pipe or another file there
 * Leaves:    a file that is whole at every moment: a record is one write,
 *            compaction is a rename, and both hold the lock of the file that
 *            has the name
 */
#include "history_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "history.h"
#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/newfile.h"
#include "jail/base/path.h"

/* A stopped session must not hold up this one by its lock. */
#define LOCK_TRIES 250
#define LOCK_WAIT_MS 4

static int dir_check(int fd, const char *path, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_errno(e, "%s", path);
	if (st.st_uid != geteuid())
		return err_set(e, "%s: belongs to uid %u, not to you", path,
			(unsigned)st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH)) {
		err_set(e, "%s: others may write there", path);
		return err_hint(e, "chmod go-w %s", path);
	}
	return 0;
}

int history_file_dir(const char *path, size_t n, struct err *e)
{
	auto_free char *dir = strndup(path, n);
	auto_close int fd = -1;

	if (!dir)
		return err_errno(e, "%s", path);
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
	if (fd < 0)
		return err_errno(e, "%s", dir);
	if (dir_check(fd, dir, e) < 0)
		return -1;
	return fd_take(&fd);
}

static int file_check(const struct stat *st, const char *name, struct err *e)
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

static int refuse(struct err *e)
{
	return err_hint(
		e, "it is left as it is; move it away, and a new one is begun");
}

int history_file_check(int dirfd, const char *name, struct err *e)
{
	struct stat st;

	if (!path_is_name(name))
		return err_set(e, "%s: not a file name", name);
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_errno(e, "%s", name);
	return file_check(&st, name, e) < 0 ? refuse(e) : 0;
}

/* Open the name and look at what was really opened. -1 with errno ENOENT
 * where there is none. */
static int file_open(
	int dirfd, const char *name, int flags, struct stat *st, struct err *e)
{
	auto_close int fd = openat(dirfd, name,
		flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);

	if (fd < 0) {
		int code = errno;

		err_errno(e, "open %s", name);
		errno = code;
		return -1;
	}
	if (fstat(fd, st) < 0)
		return err_errno(e, "%s", name);
	if (file_check(st, name, e) < 0) {
		refuse(e);
		errno = EPERM;
		return -1;
	}
	return fd_take(&fd);
}

int history_file_read(
	int dirfd, const char *name, char **s, size_t *n, struct err *e)
{
	struct stat st;
	auto_close int fd = file_open(dirfd, name, O_RDONLY, &st, e);
	ssize_t r;

	*s = NULL;
	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	*s = malloc((size_t)st.st_size + 1);
	if (!*s)
		return err_errno(e, "read %s", name);
	r = io_read_full(fd, *s, (size_t)st.st_size);
	if (r < 0) {
		free(*s);
		*s = NULL;
		return err_errno(e, "read %s", name);
	}
	(*s)[r] = 0;
	*n = (size_t)r;
	return 0;
}

static int file_lock(int fd)
{
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -1;
		poll(NULL, 0, LOCK_WAIT_MS);
	}
	errno = EWOULDBLOCK;
	return -1;
}

/* Open and lock the file that has the name: another session may have
 * compacted it, and renamed a new one into its place, in between. */
static int file_open_locked(
	int dirfd, const char *name, struct stat *st, struct err *e)
{
	for (int i = 0; i < LOCK_TRIES; i++) {
		struct stat now;
		auto_close int fd = file_open(
			dirfd, name, O_RDWR | O_APPEND | O_CREAT, st, e);

		if (fd < 0)
			return -1;
		if (file_lock(fd) < 0)
			return err_errno(e, "lock %s", name);
		if (fstatat(dirfd, name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
			now.st_ino == st->st_ino && now.st_dev == st->st_dev) {
			if (fstat(fd, st) < 0)
				return err_errno(e, "%s", name);
			return fd_take(&fd);
		}
	}
	return err_set(e, "lock %s: it keeps being replaced", name);
}

/* Where the newest half begins: a record's first byte. */
static const char *keep_from(const char *s, size_t n)
{
	const char *at = s, *nl;

	if (n <= HISTORY_FILE_MAX / 2)
		return s;
	at += n - HISTORY_FILE_MAX / 2;
	nl = memchr(at, '\n', (size_t)(s + n - at));
	return nl ? nl + 1 : s + n;
}

/* With the lock held: a new file with the newest records takes the name. */
static int file_compact(int dirfd, const char *name, struct err *e)
{
	auto_free char *s = NULL;
	struct newfile f;
	const char *from;
	size_t n;
	int r;

	if (history_file_read(dirfd, name, &s, &n, e) < 0 || !s)
		return -1;
	if (newfile_create(&f, dirfd, 0600) < 0)
		return err_errno(e, "compact %s", name);
	from = keep_from(s, n);
	r = io_write_full(f.fd, from, (size_t)(s + n - from));
	if (r == 0)
		r = newfile_commit(&f, name, true);
	if (r < 0)
		err_errno(e, "compact %s", name);
	newfile_abort(&f);
	return r;
}

/* A record cut short by a full disk or a crash must not swallow this one. */
static int file_heal(int fd, off_t size)
{
	char last;

	if (size == 0 || pread(fd, &last, 1, size - 1) != 1 || last == '\n')
		return 0;
	return write(fd, "\n", 1) == 1 ? 0 : -1;
}

int history_file_append(int dirfd, const char *name, const char *record,
	size_t n, struct err *e)
{
	struct stat st;
	auto_close int fd = file_open_locked(dirfd, name, &st, e);
	ssize_t r;

	if (fd < 0)
		return err_wrap(e, "history");
	if (file_heal(fd, st.st_size) < 0)
		return err_errno(e, "history: write %s", name);
	r = write(fd, record, n);
	if (r >= 0 && (size_t)r < n)
		errno = ENOSPC;
	if (r < 0 || (size_t)r < n) {
		err_errno(e, "history: write %s", name);
		if (r > 0 && ftruncate(fd, st.st_size) < 0)
			return -1;
		return -1;
	}
	if ((size_t)st.st_size + n > HISTORY_FILE_MAX &&
		file_compact(dirfd, name, e) < 0)
		return err_wrap(e, "history");
	return 0;
}
