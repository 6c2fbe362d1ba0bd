/* SPDX-License-Identifier: MIT */
/*
 * mount.c - build a root file system by descriptor
 *
 * Runs in:   warden (the home), init (the root)
 * Holds:     CAP_SYS_ADMIN in the user namespace that owns its mounts
 * Trusts:    its caller for sources; for targets only the kernel's walk
 * Leaves:    mounts that are gone with the namespace
 *
 * A source is copied into a detached tree and restricted before it is
 * attached, so there is no moment at which it is there and writable. Kernels
 * before 5.12 cannot do that; remount.c then restricts it in place, and
 * nothing but ourselves runs in the jail by then.
 */
#include "mount.h"

#include "jail/base/io.h"
#include "jail/base/path.h"
#include "jail/base/sys.h"
#include "remount.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define DIR_MODE 0755

/* ---- targets ---- */

static const struct path_walk enter = {.flags = O_PATH};
static const struct path_walk make = {.flags = O_PATH, .mode = DIR_MODE};

/* A path in two: where it leads from the root, "" for nowhere, and what is
 * there, "." for the root itself. 0, or -1 with errno. */
static int split(
	const char *path, char parent[PATH_MAX], char last[NAME_MAX + 1])
{
	size_t n, at;

	path += strspn(path, "/");
	n = strlen(path);
	while (n > 0 && path[n - 1] == '/')
		n--;
	for (at = n; at > 0 && path[at - 1] != '/';)
		at--;
	if (at >= PATH_MAX || n - at > NAME_MAX ||
		(n - at == 2 && !memcmp(path + at, "..", 2))) {
		errno = EINVAL;
		return -1;
	}
	memcpy(parent, path, at);
	parent[at] = '\0';
	memcpy(last, n ? path + at : ".", n ? n - at : 1);
	last[n ? n - at : 1] = '\0';
	return 0;
}

/* openat2(2) would do what we do, at once; but it may be missing. */
static int walk_is_needed(int code)
{
	return code == ENOSYS || code == EPERM || code == EAGAIN;
}

/* Where a target is, or will be. */
struct place {
	int dir; /* -1 with errno: out of reach */
	int own; /* the same if it is to be closed, else -1 */
	char last[NAME_MAX + 1];
};

static void place_close(struct place *p)
{
	fd_drop(&p->own);
}

#define auto_place __attribute__((cleanup(place_close))) struct place

/* What is missing on the way to it is made. */
static struct place place_find(int root, const char *target)
{
	struct place p = {.dir = -1, .own = -1};
	char parent[PATH_MAX];

	if (split(target, parent, p.last) < 0)
		return p;
	p.dir = root;
	if (!parent[0])
		return p;
	p.own = sys_openat2(root, parent, O_PATH | O_DIRECTORY, 0,
		SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_SYMLINKS);
	if (p.own < 0 && (errno == ENOENT || walk_is_needed(errno)))
		p.own = path_walk(root, parent, &make);
	p.dir = p.own;
	return p;
}

int mount_symlink(const struct mount_root *r, const char *text,
	const char *target, struct err *e)
{
	auto_place at = place_find(r->fd, target);
	char is[PATH_MAX];
	ssize_t n;

	if (at.dir < 0)
		return err_errno(e, "make link %s", target);
	if (symlinkat(text, at.dir, at.last) == 0)
		return 0;
	if (errno == EEXIST) {
		n = readlinkat(at.dir, at.last, is, sizeof(is) - 1);
		if (n >= 0 && (size_t)n == strlen(text) &&
			!memcmp(is, text, (size_t)n))
			return 0;
		errno = EEXIST;
	}
	return err_errno(e, "make link %s", target);
}

/* A file that was not there: descriptor, or -1. */
static int create(const struct place *at, mode_t mode)
{
	if (at->dir < 0)
		return -1;
	return openat(at->dir, at->last,
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
}

int mount_file(const struct mount_root *r, const char *target,
	const char *content, struct err *e)
{
	auto_place at = place_find(r->fd, target);
	auto_close int fd = create(&at, 0644);

	if (fd < 0 || io_write_full(fd, content, strlen(content)) < 0)
		return err_errno(e, "write %s", target);
	return 0;
}

/* A mount point of the right kind at `target`, a new one where there is none:
 * descriptor, or -1. */
static int open_point(const struct mount_root *r, const char *target, int isdir)
{
	auto_place at = place_find(r->fd, target);
	int fd;

	if (at.dir < 0)
		return -1;
	if (isdir) {
		if (mkdirat(at.dir, at.last, DIR_MODE) < 0 && errno != EEXIST)
			return -1;
		return path_enter(at.dir, at.last, &enter);
	}
	fd = create(&at, 0444);
	if (fd >= 0 || errno != EEXIST)
		return fd;
	return openat(at.dir, at.last, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

int mount_open_dir(
	const struct mount_root *r, const char *target, struct err *e)
{
	auto_place at = place_find(r->fd, target);
	int fd = -1;

	if (at.dir >= 0)
		fd = openat(at.dir, at.last,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_errno(e, "open the jail's %s", target) : fd;
}

/* ---- file systems ---- */

/* The kernel's own words about a file system it would not make ("e tmpfs:
 * Bad value for 'size'"), if it has any. */
static int fail_fs(int fs, const char *what, const char *on, struct err *e)
{
	int code = errno;
	char why[128];
	ssize_t n = read(fs, why, sizeof(why) - 1);

	errno = code;
	if (n <= 2)
		return err_errno(e, "mount %s on %s", what, on);
	why[n] = '\0';
	why[strcspn(why, "\n")] = '\0';
	err_errno(e, "mount %s on %s (%s)", what, on, why + 2);
	return -1;
}

/* "a=1,b" one by one. */
static int set_options(int fs, const char *options)
{
	char buf[256], *save = NULL;

	if (strlen(options) >= sizeof(buf)) {
		errno = E2BIG;
		return -1;
	}
	strcpy(buf, options);
	for (char *o = strtok_r(buf, ",", &save); o;
		o = strtok_r(NULL, ",", &save)) {
		char *value = strchr(o, '=');
		int r;

		if (value)
			*value++ = '\0';
		r = value ? sys_fsconfig_string(fs, o, value)
			  : sys_fsconfig_flag(fs, o);
		if (r < 0)
			return -1;
	}
	return 0;
}

/* A detached mount of a new file system. */
static int make_fs(const char *fstype, const char *options, unsigned attrs,
	const char *on, struct err *e)
{
	auto_close int fs = sys_fsopen(fstype);
	int fd;

	if (fs < 0)
		return err_errno(e, "mount %s on %s", fstype, on);
	if (set_options(fs, options) < 0 || sys_fsconfig_create(fs) < 0)
		return fail_fs(fs, fstype, on, e);
	fd = sys_fsmount(fs, attrs);
	return fd < 0 ? fail_fs(fs, fstype, on, e) : fd;
}

int mount_tmpfs_over(
	const char *at, const char *options, unsigned attrs, struct err *e)
{
	auto_close int to = open(at, O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_close int fd = -1;

	if (to < 0)
		return err_errno(e, "mount tmpfs on %s", at);
	fd = make_fs("tmpfs", options, attrs, at, e);
	if (fd < 0)
		return -1;
	if (sys_move_mount_fd(fd, to) < 0)
		return err_errno(e, "mount tmpfs on %s", at);
	return fd_take(&fd);
}

int mount_fs(const struct mount_root *r, const char *fstype, const char *target,
	const char *options, unsigned attrs, struct err *e)
{
	auto_close int to = open_point(r, target, 1);
	auto_close int fd = -1;

	if (to < 0)
		return err_errno(e, "mount %s on %s", fstype, target);
	fd = make_fs(fstype, options, attrs, target, e);
	if (fd < 0)
		return -1;
	if (sys_move_mount_fd(fd, to) < 0)
		return err_errno(e, "mount %s on %s", fstype, target);
	return 0;
}

/* ---- binds ---- */

static int walk_to_source(const char *source, int flags)
{
	auto_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_close int dir = -1, fd = -1;
	char parent[PATH_MAX], last[NAME_MAX + 1];
	struct stat st;

	if (split(source, parent, last) < 0)
		return -1;
	dir = path_walk(root, parent, &enter);
	if (dir >= 0)
		fd = openat(dir, last, flags | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISLNK(st.st_mode)) {
		errno = ELOOP;
		return -1;
	}
	return fd_take(&fd);
}

/*
 * A source, an absolute path, is opened without following a link. Whoever
 * named it has looked where it leads and whether that may be shown
 * (plan_show.c); what has been put in its way since is something else.
 */
static int open_source(const char *source, int flags)
{
	int fd = sys_openat2(
		AT_FDCWD, source, flags, 0, SYS_RESOLVE_NO_SYMLINKS);

	return fd < 0 && walk_is_needed(errno) ? walk_to_source(source, flags)
					       : fd;
}

/* A detached copy of the mount at an open source. */
static int clone_source(int source, unsigned flags)
{
	return source < 0 ? -1
			  : sys_open_tree(source, "",
				    flags | SYS_OPEN_TREE_CLONE |
					    SYS_AT_EMPTY_PATH);
}

/* A kernel that lacks a call says ENOSYS; a container's filter may say EPERM,
 * and where it is the kernel that does, the slow way will fail as well. */
static int is_missing(int code)
{
	return code == ENOSYS || code == EPERM;
}

/*
 * Attach a tree that is attached nowhere yet at a target, an open mount point
 * (-1 with errno: it could not be opened), and restrict it before; afterwards
 * where this kernel cannot. `below`: it may have mounts below its top.
 */
static int attach(const struct mount_root *r, int tree, int to,
	const char *target, unsigned attrs, int below, struct err *e)
{
	int done = 0;

	if (to < 0)
		return err_errno(e, "show %s", target);
	if (!r->no_setattr) {
		done = sys_mount_setattr(
			       tree, below ? SYS_AT_RECURSIVE : 0, attrs) == 0;
		if (!done && !is_missing(errno))
			return err_errno(e, "restrict %s", target);
	}
	if (sys_move_mount_fd(tree, to) < 0)
		return err_errno(e, "show %s", target);
	if (!done)
		return remount_tree(tree, r->path, target, attrs, below, e);
	return 0;
}

static int is_bindable(mode_t mode)
{
	return S_ISREG(mode) || S_ISDIR(mode) || S_ISCHR(mode);
}

int mount_bind(const struct mount_root *r, const char *source,
	const char *target, unsigned attrs, struct err *e)
{
	auto_close int from = open_source(source, O_PATH);
	auto_close int tree = clone_source(from, SYS_AT_RECURSIVE);
	auto_close int to = -1;
	struct stat st;

	if (tree < 0 || fstat(tree, &st) < 0)
		return err_errno(e, "show %s", source);
	if (!is_bindable(st.st_mode))
		return err_set(e,
			"show %s: neither a file, a directory nor a "
			"character device",
			source);
	to = open_point(r, target, S_ISDIR(st.st_mode));
	return attach(r, tree, to, target, attrs, 1, e);
}

/* ---- with locks of its own ---- */

/* A file of up to this size is copied; the root has room for a few. */
#define COPY_MAX (1024 * 1024)

/* For files this small sendfile() takes several times as long. */
static int copy_bytes(int from, int to)
{
	char buf[16384];
	ssize_t n;

	while ((n = io_read_full(from, buf, sizeof(buf))) > 0)
		if (io_write_full(to, buf, (size_t)n) < 0)
			return -1;
	return (int)n;
}

/* 1 a copy is there, 0 nothing is. */
static int show_copy(
	const struct mount_root *r, const char *source, const char *target)
{
	auto_close int from = open_source(source, O_RDONLY | O_NONBLOCK);
	auto_place at = place_find(r->fd, target);
	auto_close int to = -1;
	struct stat st;

	if (from < 0 || fstat(from, &st) < 0 || !S_ISREG(st.st_mode) ||
		st.st_size > COPY_MAX)
		return 0;
	to = create(&at, 0444 | (st.st_mode & 0111));
	if (to < 0)
		return 0;
	if (copy_bytes(from, to) == 0 &&
		futimens(to, (struct timespec[]){st.st_atim, st.st_mtim}) == 0)
		return 1;
	unlinkat(at.dir, at.last, 0);
	return 0;
}

/*
 * Mount an overlay of the directory `shown` over it. Where nothing can be
 * written the kernel wants a second directory to lay it over: the empty mount
 * point beneath. 0, or -1: before Linux 5.11 a user namespace may not, and
 * some file systems refuse to be part of one.
 */
static int cover(int shown, int point, const char *target, unsigned attrs)
{
	auto_close int fd = -1;
	struct statvfs st;
	char options[96];

	if (fstatvfs(shown, &st) < 0)
		return -1;
	if (st.f_flag & ST_NOEXEC)
		attrs |= SYS_ATTR_NOEXEC;
	snprintf(options, sizeof(options),
		"lowerdir=/proc/self/fd/%d:/proc/self/fd/%d,userxattr", shown,
		point);
	fd = make_fs("overlay", options, attrs, target, NULL);
	return fd < 0 ? -1 : sys_move_mount_fd(fd, shown);
}

/*
 * An overlay ends where another mount begins, so it may only cover a directory
 * with none below. The kernel tells: mounts that came with our namespace are
 * locked to what they are on, and it copies no directory without them.
 */
static int show_directory(const struct mount_root *r, int from,
	const char *source, const char *target, unsigned attrs, struct err *e)
{
	auto_close int alone = clone_source(from, 0);
	auto_close int to = -1;

	if (alone < 0)
		return mount_bind(r, source, target, attrs, e);
	to = open_point(r, target, 1);
	if (attach(r, alone, to, target, attrs, 0, e) < 0)
		return -1;
	return cover(alone, to, target, attrs) == 0;
}

int mount_show(const struct mount_root *r, const char *source,
	const char *target, unsigned attrs, struct err *e)
{
	auto_close int from = open_source(source, O_PATH);
	struct stat st;

	if (from >= 0 && fstat(from, &st) == 0 && S_ISDIR(st.st_mode))
		return show_directory(r, from, source, target, attrs, e);
	if (show_copy(r, source, target))
		return 1;
	return mount_bind(r, source, target, attrs, e);
}

int mount_copy(const char *at, int same_fd, struct err *e)
{
	auto_close int copy = sys_open_tree(
		AT_FDCWD, at, SYS_OPEN_TREE_CLONE | SYS_AT_RECURSIVE);
	struct stat is, want;

	if (copy < 0 || fstat(copy, &is) < 0 || fstat(same_fd, &want) < 0)
		return err_errno(e, "copy the mount on %s", at);
	if (is.st_dev != want.st_dev || is.st_ino != want.st_ino)
		return err_set(
			e, "copy the mount on %s: something else is there", at);
	return fd_take(&copy);
}

int mount_attach(
	const struct mount_root *r, int copy, const char *target, struct err *e)
{
	auto_close int to = open_point(r, target, 1);

	if (to < 0 || sys_move_mount_fd(copy, to) < 0)
		return err_errno(e, "attach a mount at %s", target);
	return 0;
}

int mount_restrict(const struct mount_root *r, const char *target,
	unsigned attrs, struct err *e)
{
	auto_place at = place_find(r->fd, target);
	auto_close int fd = -1;

	if (at.dir >= 0)
		fd = openat(at.dir, at.last, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_errno(e, "restrict %s", target);
	if (!r->no_setattr) {
		if (sys_mount_setattr(fd, 0, attrs) == 0)
			return 0;
		if (!is_missing(errno))
			return err_errno(e, "restrict %s", target);
	}
	return remount_tree(fd, r->path, target, attrs, 0, e);
}

/* ---- the namespace ---- */

int mount_private_all(struct err *e)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_errno(e, "make every mount private");
	return 0;
}

/*
 * pivot_root(2), "pivot_root(".", ".")": the old root ends up on top of the
 * new one, at ".", from where it is let go. Nothing needs a directory for it.
 */
int mount_pivot(const struct mount_root *r, struct err *e)
{
	if (fchdir(r->fd) < 0)
		return err_errno(e, "enter the new root");
	if (sys_pivot_root(".", ".") < 0)
		return err_errno(e, "make it the root");
	if (umount2(".", MNT_DETACH) < 0)
		return err_errno(e, "let go of the host's root");
	if (chdir("/") < 0)
		return err_errno(e, "enter the new root");
	return 0;
}
