/* SPDX-License-Identifier: MIT */
/*
 * newfile.c - a file that gets its name when it is whole
 *
 * Runs in:   front end, warden
 * Trusts:    nothing in the directory: the temporary name is new, and no link
 *            is followed
 * Leaves:    whole files only
 */
#include "newfile.h"

#include "io.h"
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>

static int create(int dir, const char *name, mode_t mode)
{
	return openat(dir, name,
		O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
}

int newfile_create(struct newfile *f, int dir, mode_t mode)
{
	uint64_t r = 0;

	*f = (struct newfile){.dir = -1, .fd = -1};
	if (getrandom(&r, sizeof(r), 0) != (ssize_t)sizeof(r))
		return -1;
	snprintf(f->temp, sizeof(f->temp), ".cellblock-%016llx.part",
		(unsigned long long)r);
	f->dir = fcntl(dir, F_DUPFD_CLOEXEC, 3);
	if (f->dir < 0)
		return -1;
	f->fd = create(f->dir, f->temp, mode);
	if (f->fd < 0) {
		fd_drop(&f->dir);
		return -1;
	}
	return 0;
}

/* Where the file system knows no rename that spares what is there: take the
 * name first, exclusively, then rename over the empty file. */
static int rename_reserving(const struct newfile *f, const char *name)
{
	auto_close int fd = create(f->dir, name, 0666);

	return fd < 0 ? -1 : renameat(f->dir, f->temp, f->dir, name);
}

int newfile_commit(struct newfile *f, const char *name, bool replace)
{
	int r;

	if (replace) {
		r = renameat(f->dir, f->temp, f->dir, name);
	} else {
		r = sys_renameat2(
			f->dir, f->temp, f->dir, name, SYS_RENAME_NOREPLACE);
		if (r < 0 && (errno == EINVAL || errno == ENOSYS))
			r = rename_reserving(f, name);
	}
	if (r < 0)
		return -1;
	fd_drop(&f->fd);
	fd_drop(&f->dir);
	return 0;
}

void newfile_abort(struct newfile *f)
{
	if (f->dir >= 0)
		unlinkat(f->dir, f->temp, 0);
	fd_drop(&f->fd);
	fd_drop(&f->dir);
}
