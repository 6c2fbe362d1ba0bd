/* SPDX-License-Identifier: MIT */
/*
 * home.c - files of the session's home, reached without trusting any of it
 *
 * Runs in:   warden
 * Trusts:    the kernel's openat2(): beneath the root, across no mount,
 *            through no magic link, and for writing through no link at all
 * Leaves:    descriptors of regular files
 *
 * The jail may be running or stopped while this runs: nothing here relies on
 * a name meaning the same thing twice.
 */
#include "home_impl.h"

#include "jail/base/err.h"
#include "jail/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>

/* Names in use, every kind and the root itself counted; 0 when unknown. */
static int64_t names_used(int root)
{
	struct statfs s;

	return fstatfs(root, &s) < 0 ? 0 : (int64_t)(s.f_files - s.f_ffree);
}

void home_init(struct home *h, int root)
{
	*h = (struct home){.root = root, .own = (int)names_used(root)};
}

void home_fini(struct home *h)
{
	home_uploads_fini(h);
	fd_drop(&h->root);
}

int home_open_beneath(int dir, const char *path, int flags, unsigned resolve)
{
	return sys_openat2(dir, path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
		0, resolve);
}

int home_fail_open(struct err *e, const char *what)
{
	const char *remedy = sys_openat2_remedy(errno);

	err_errno(e, "%s", what);
	return remedy ? err_hint(e, "%s", remedy) : -1;
}

int home_explain_open(struct err *e, const char *path)
{
	switch (errno) {
	case EXDEV:
	case ELOOP:
		return err_set(e, "%s: leads out of the home", path);
	case ENXIO:
		return err_set(e, "%s: not a regular file", path);
	}
	return home_fail_open(e, path);
}

int home_open(struct home *h, const char *path, struct err *e)
{
	auto_close int fd =
		home_open_beneath(h->root, path, O_RDONLY, HOME_RESOLVE_READ);
	struct stat st;

	if (fd < 0)
		return home_explain_open(e, path);
	if (fstat(fd, &st) < 0)
		return err_errno(e, "%s", path);
	if (S_ISDIR(st.st_mode))
		return err_set(e, "%s: is a directory", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, "%s: not a regular file", path);
	io_set_nonblock(fd, 0);
	return fd_take(&fd);
}

void home_usage(const struct home *h, int64_t *bytes, int *files)
{
	struct statfs s;

	*bytes = 0;
	*files = 0;
	if (fstatfs(h->root, &s) < 0)
		return;
	*bytes = (int64_t)(s.f_blocks - s.f_bfree) * (int64_t)s.f_bsize;
	*files = (int)names_used(h->root) - h->own;
}
