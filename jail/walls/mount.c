/* SPDX-License-Identifier: MIT */
/*
 * mount.c - build a root file system by descriptor
 *
 * Runs in:   warden (the home), init (the root)
 * Holds:     CAP_SYS_ADMIN in the user namespace that owns its mounts
 * Trusts:    its caller for sources; for targets only the kernel's walk
 * Leaves:    mounts that are gone with the namespace
 *
 * A source is copied into a detached tree and restricted before it is attached,
 * so the jail never holds a writable one. A kernel before 5.12 cannot do that:
 * there the tree is restricted in place. Until the root is finished only our
 * own code runs in the jail.
 */
#include "jail/walls/walls.h"

#include "jail/base/io.h"
#include "jail/base/path.h"
#include "jail/base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define DIR_MODE 0755

/* ---- targets ---- */

static const struct path_walk enter = {.flags = O_PATH};
static const struct path_walk make = {.flags = O_PATH, .mode = DIR_MODE};

/* Split a path: the way from the root, "" for none, and the last component, "."
 * for the root itself. 0, or -1 with errno. */
static int split_path(
	const char *path, char parent[PATH_MAX], char last[NAME_MAX + 1])
{
	char *slash = NULL;

	if (snprintf(parent, PATH_MAX, "/%s", path) < PATH_MAX &&
		path_clean(parent, false) == 0)
		slash = strrchr(parent, '/');
	if (!slash || strlen(slash + 1) > NAME_MAX) {
		errno = EINVAL;
		return -1;
	}
	strcpy(last, slash[1] ? slash + 1 : ".");
	*slash = '\0';
	memmove(parent, parent + 1, strlen(parent));
	return 0;
}

/* True if openat2(2), which does in one call what a walk does, is missing. */
static int walk_is_needed(int code)
{
	return code == ENOSYS || code == EPERM || code == EAGAIN;
}

/* Where a target is, or will be. */
struct mount_place {
	int dir; /* -1 with errno: out of reach */
	char last[NAME_MAX + 1];
};

static void place_close(struct mount_place *p)
{
	fd_drop(&p->dir);
}

#define auto_place __attribute__((cleanup(place_close))) struct mount_place

/* Missing directories on the way are made. */
static struct mount_place place_find(int root, const char *target)
{
	struct mount_place p = {.dir = -1};
	char parent[PATH_MAX];

	if (split_path(target, parent, p.last) < 0)
		return p;
	if (parent[0])
		p.dir = sys_openat2(root, parent, O_PATH | O_DIRECTORY,
			SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_SYMLINKS);
	if (!parent[0] ||
		(p.dir < 0 && (errno == ENOENT || walk_is_needed(errno))))
		p.dir = path_walk(root, parent, &make);
	return p;
}

/* Open a target that exists: descriptor, or -1 with errno. */
static int open_target(
	const struct mount_root *r, const char *target, int flags)
{
	auto_place at = place_find(r->fd, target);

	return at.dir < 0 ? -1
			  : openat(at.dir, at.last,
				    flags | O_NOFOLLOW | O_CLOEXEC);
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

/* Make a new file: descriptor, or -1 with errno. */
static int create_file(const struct mount_place *at, mode_t mode)
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
	auto_close int fd = create_file(&at, 0644);

	if (fd < 0 || io_write_full(fd, content, strlen(content)) < 0)
		return err_errno(e, "write %s", target);
	return 0;
}

/* A mount point of the right kind at `target`, made if it is missing:
 * descriptor, or -1 with errno. */
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
	fd = create_file(&at, 0444);
	if (fd >= 0 || errno != EEXIST)
		return fd;
	return openat(at.dir, at.last, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

int mount_open_dir(
	const struct mount_root *r, const char *target, struct err *e)
{
	int fd = open_target(r, target, O_RDONLY | O_DIRECTORY);

	return fd < 0 ? err_errno(e, "open the jail's %s", target) : fd;
}

/* ---- file systems ---- */

/* Add the kernel's own words about a file system that it did not make, if it
 * has any ("e tmpfs: Bad value for 'size'"). */
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
	return err_errno(e, "mount %s on %s (%s)", what, on, why + 2);
}

/* Set options that look like "a=1,b". */
static int set_options(int fs, const char *options)
{
	auto_free char *text = strdup(options);
	char *rest = text, *value;
	int r = text ? 0 : -1;

	while (r == 0 && (value = strsep(&rest, ","))) {
		char *key = strsep(&value, "=");

		if (*key)
			r = value ? sys_fsconfig_string(fs, key, value)
				  : sys_fsconfig_flag(fs, key);
	}
	return r;
}

int mount_detached(const char *fstype, const char *options, unsigned attrs,
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

/* The number of an option; 0: it is not there. */
static uint64_t option_number(const char *options, const char *key)
{
	const char *at = strstr(options, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

int mount_change(int fd, const char *options, const char *on, struct err *e)
{
	auto_close int fs = sys_fspick(fd);
	struct statvfs st;

	if (fs < 0)
		return err_errno(e, "change the file system on %s", on);
	if (set_options(fs, options) < 0 || sys_fsconfig_change(fs) < 0)
		return fail_fs(fs, "other options", on, e);
	if (fstatvfs(fd, &st) < 0)
		return err_errno(e, "look at the file system on %s", on);
	/* Bytes are rounded up to whole pages. */
	if ((st.f_blocks - 1) * (uint64_t)st.f_frsize >=
			option_number(options, "size=") ||
		st.f_files != option_number(options, "nr_inodes="))
		return err_set(e, "%s: the kernel did not change its size", on);
	return 0;
}

/* Mount a new file system on `to`, which was opened for that or is -1 with
 * errno: a descriptor of its top directory. */
static int mount_new(const char *fstype, int to, const char *options,
	unsigned attrs, const char *on, struct err *e)
{
	auto_close int fd = -1;

	if (to < 0)
		return err_errno(e, "mount %s on %s", fstype, on);
	fd = mount_detached(fstype, options, attrs, on, e);
	if (fd < 0)
		return -1;
	if (sys_move_mount_fd(fd, to) < 0)
		return err_errno(e, "mount %s on %s", fstype, on);
	return fd_take(&fd);
}

int mount_tmpfs_over(
	const char *at, const char *options, unsigned attrs, struct err *e)
{
	auto_close int to = open(at, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return mount_new("tmpfs", to, options, attrs, at, e);
}

int mount_fs(const struct mount_root *r, const char *fstype, const char *target,
	const char *options, unsigned attrs, struct err *e)
{
	auto_close int to = open_point(r, target, 1);
	auto_close int fd = mount_new(fstype, to, options, attrs, target, e);

	return fd < 0 ? -1 : 0;
}

static int copy_node(int dir, const char *path)
{
	const char *name = path_last(path);
	struct stat st;

	if (stat(path, &st) < 0 ||
		mknodat(dir, name, S_IFCHR | 0666, st.st_rdev) < 0)
		return -1;
	return fchmodat(dir, name, 0666, 0); /* whatever the umask is */
}

/* Nodes on a file system that a user namespace mounts cannot be opened. */
int mount_make_nodes(const char *const *paths, size_t n)
{
	auto_close int fd = mount_detached("tmpfs", "size=4096,mode=0755",
		SYS_ATTR_NOSUID | SYS_ATTR_NOEXEC, "/dev", NULL);
	auto_close int node = -1;

	for (size_t i = 0; fd >= 0 && i < n; i++)
		if (copy_node(fd, paths[i]) < 0)
			return -1;
	/* A container may let nodes be made and not used. */
	if (fd >= 0)
		node = openat(fd, path_last(paths[0]), O_RDWR | O_CLOEXEC);
	return node < 0 ? -1 : fd_take(&fd);
}

/* ---- where mount_setattr is missing: one mount after the other ---- */

#define MOUNTINFO_MAX (4 * 1024 * 1024)
#define TREE_MAX 1024

/* Flags that a mount keeps; the same bits for statvfs(3) and mount(2). */
#define KEPT                                                                   \
	(MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME |           \
		MS_NODIRATIME)
_Static_assert((ST_RDONLY | ST_NOSUID | ST_NODEV | ST_NOEXEC | ST_NOATIME |
		       ST_NODIRATIME) == KEPT,
	"statvfs and mount agree");
_Static_assert(SYS_ATTR_RDONLY == MS_RDONLY && SYS_ATTR_NOSUID == MS_NOSUID &&
		       SYS_ATTR_NODEV == MS_NODEV &&
		       SYS_ATTR_NOEXEC == MS_NOEXEC,
	"attributes and mount agree");

/* MS_REMOUNT replaces all flags, so the present ones are read first. Flags that
 * are set stay: they are locked where the mount came from a more privileged
 * namespace. */
static int remount_one(const char *path, unsigned attrs, struct err *e)
{
	unsigned long flags = MS_REMOUNT | MS_BIND | attrs;
	struct statvfs st;

	if (statvfs(path, &st) < 0)
		return err_errno(e, "restrict %s", path);
	flags |= st.f_flag & KEPT;
	if (st.f_flag & ST_RELATIME)
		flags |= MS_RELATIME;
	if (mount(NULL, path, NULL, flags, NULL) < 0)
		return err_errno(e, "restrict %s", path);
	return 0;
}

/* The kernel's id of the mount that fd is in, or -1. */
static int mount_id(int fd)
{
	auto_free char *text = NULL;
	char path[64], *at;
	size_t n;
	int id;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	if (io_read_file(AT_FDCWD, path, 4096, &text, &n) < 0)
		return -1;
	at = strstr(text, "mnt_id:");
	return at && sscanf(at, "mnt_id: %d", &id) == 1 ? id : -1;
}

/* Undo the octal escapes of a mount point (space, tab, newline, backslash). */
static void unescape_octal(char *from)
{
	char *to = from;

	for (; *from; from++) {
		*to = *from;
		if (*from == '\\' && strspn(from + 1, "01234567") >= 3) {
			*to = (char)((from[1] - '0') << 6 |
				     (from[2] - '0') << 3 | (from[3] - '0'));
			from += 3;
		}
		to++;
	}
	*to = '\0';
}

static int is_in(const int *ids, size_t n, int id)
{
	while (n > 0)
		if (ids[--n] == id)
			return 1;
	return 0;
}

/* Restrict each mount below the mount `top`. `text` is /proc/self/mountinfo,
 * which lists a parent before its children. */
static int remount_below(int top, char *text, unsigned attrs, struct err *e)
{
	int ids[TREE_MAX] = {top};
	size_t n = 1;

	while (text && *text) {
		char *line = strsep(&text, "\n"), *path;
		int id, parent, at = 0;

		if (sscanf(line, "%d %d %*u:%*u %*s %n", &id, &parent, &at) <
				2 ||
			at == 0)
			return err_set(e, "read the list of mounts: malformed");
		path = line + at;
		path[strcspn(path, " ")] = '\0';
		unescape_octal(path);
		if (!is_in(ids, n, parent) || is_in(ids, n, id))
			continue;
		if (n == TREE_MAX)
			return err_set(e, "more than %d mounts below %s",
				TREE_MAX, path);
		ids[n++] = id;
		if (remount_one(path, attrs, e) < 0)
			return -1;
	}
	return 0;
}

/* Add attributes to the mount at a target, which `fd` is the top of, and with
 * `below` to each mount below it. */
static int remount_tree(const struct mount_root *r, int fd, const char *target,
	unsigned attrs, int below, struct err *e)
{
	auto_free char *text = NULL;
	char path[PATH_MAX];
	size_t n;
	int id;

	if (snprintf(path, sizeof(path), "%s%s", r->path,
		    strcmp(target, "/") ? target : "") >= (int)sizeof(path))
		return err_set(e, "restrict %s: path too long", target);
	if (remount_one(path, attrs, e) < 0)
		return -1;
	if (!below)
		return 0;
	id = mount_id(fd);
	if (id < 0 || io_read_file(AT_FDCWD, "/proc/self/mountinfo",
			      MOUNTINFO_MAX, &text, &n) < 0)
		return err_errno(e, "read the list of mounts");
	return remount_below(id, text, attrs, e);
}

/* ---- binds ---- */

static int walk_to_source(const char *source, int flags)
{
	auto_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_close int dir = -1, fd = -1;
	char parent[PATH_MAX], last[NAME_MAX + 1];
	struct stat st;

	if (split_path(source, parent, last) < 0)
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
 * Open a source, an absolute path, without following a link. The caller has
 * checked where the source leads and whether it may be shown (plan.c); a link
 * that was put in its way since is refused.
 */
static int open_source(const char *source, int flags)
{
	int fd = sys_openat2(AT_FDCWD, source, flags, SYS_RESOLVE_NO_SYMLINKS);

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

/* A kernel that lacks a call says ENOSYS; a container's filter may say EPERM.
 * If EPERM came from the kernel, the fallback fails as well. */
static int is_missing(int code)
{
	return code == ENOSYS || code == EPERM;
}

/* Add attributes to the mount of fd, with SYS_AT_RECURSIVE also to those below
 * it. 1 done, 0 this kernel cannot, -1 with errno. */
static int set_attrs(
	const struct mount_root *r, int fd, unsigned flags, unsigned attrs)
{
	if (r->no_setattr)
		return 0;
	if (sys_mount_setattr(fd, flags, attrs) == 0)
		return 1;
	return is_missing(errno) ? 0 : -1;
}

/*
 * Restrict a detached tree and attach it at a target; where this kernel cannot
 * restrict it before, restrict it afterwards. `to` is the open mount point, or
 * -1 with errno. `below`: the tree may have mounts below its top.
 */
static int attach_tree(const struct mount_root *r, int tree, int to,
	const char *target, unsigned attrs, int below, struct err *e)
{
	int done;

	if (to < 0)
		return err_errno(e, "show %s", target);
	done = set_attrs(r, tree, below ? SYS_AT_RECURSIVE : 0, attrs);
	if (done < 0)
		return err_errno(e, "restrict %s", target);
	if (sys_move_mount_fd(tree, to) < 0)
		return err_errno(e, "show %s", target);
	return done ? 0 : remount_tree(r, tree, target, attrs, below, e);
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
	return attach_tree(r, tree, to, target, attrs, 1, e);
}

/* ---- with inodes of the jail's own ---- */

/* Larger files are not copied: the root has room for a few of this size. */
#define COPY_MAX (1024 * 1024)

/* sendfile() takes several times as long for files this small. */
static int copy_bytes(int from, int to)
{
	char buf[16384];
	ssize_t n;

	while ((n = io_read_full(from, buf, sizeof(buf))) > 0)
		if (io_write_full(to, buf, (size_t)n) < 0)
			return -1;
	return (int)n;
}

/* 1 if the target is a copy, 0 if nothing was made. */
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
	to = create_file(&at, 0444 | (st.st_mode & 0111));
	if (to < 0)
		return 0;
	if (copy_bytes(from, to) == 0 &&
		futimens(to, (struct timespec[]){st.st_atim, st.st_mtim}) == 0)
		return 1;
	unlinkat(at.dir, at.last, 0);
	return 0;
}

/*
 * Show an overlay of the directory `from` instead of the directory itself, so
 * that the table of mounts does not name the disk and the path of the host. An
 * overlay that cannot be written to needs a second layer: the empty mount point
 * beneath. 1 done; 0 not: before Linux 5.11 a user namespace may not mount
 * overlays, and some file systems cannot be part of one; -1 with e.
 */
static int cover_directory(
	int from, int point, const char *target, unsigned attrs, struct err *e)
{
	auto_close int fd = -1;
	struct statvfs st;
	char options[96];

	if (fstatvfs(from, &st) < 0)
		return 0;
	if (st.f_flag & ST_NOEXEC)
		attrs |= SYS_ATTR_NOEXEC;
	snprintf(options, sizeof(options),
		"lowerdir=/proc/self/fd/%d:/proc/self/fd/%d,userxattr", from,
		point);
	fd = mount_detached("overlay", options, attrs, target, NULL);
	if (fd < 0)
		return 0;
	if (sys_move_mount_fd(fd, point) < 0)
		return err_errno(e, "show %s", target);
	return 1;
}

/*
 * An overlay does not show what is mounted inside its layers, so it may only
 * cover a directory without mounts below. The kernel tells: mounts that came
 * with our namespace are locked to their place, and such a directory can
 * neither be a layer (Linux 5.14) nor be copied without them.
 */
static int show_directory(const struct mount_root *r, int from,
	const char *source, const char *target, unsigned attrs, struct err *e)
{
	auto_close int to = open_point(r, target, 1);
	auto_close int alone = -1;
	int covered = to < 0 ? 0 : cover_directory(from, to, target, attrs, e);

	if (covered)
		return covered;
	alone = clone_source(from, 0);
	if (alone < 0)
		return mount_bind(r, source, target, attrs, e);
	return attach_tree(r, alone, to, target, attrs, 0, e);
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
	auto_close int fd = open_target(r, target, O_PATH);
	int done = fd < 0 ? -1 : set_attrs(r, fd, 0, attrs);

	if (done < 0)
		return err_errno(e, "restrict %s", target);
	return done ? 0 : remount_tree(r, fd, target, attrs, 0, e);
}

/* ---- the namespace ---- */

int mount_private_all(struct err *e)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_errno(e, "make every mount private");
	return 0;
}

/* pivot_root(".", "."), see pivot_root(2): the old root ends up on top of the
 * new one, at ".", and is detached from there. No directory is needed for it.
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

/*
 * /proc/PID/mountinfo lists the mounts of the process's namespace that its root
 * leads to. A detached tree is in no namespace. The kernel takes the tree apart
 * when the descriptor is closed.
 */
int mount_hide(struct err *e)
{
	auto_close int tree = sys_open_tree(
		AT_FDCWD, "/", SYS_OPEN_TREE_CLONE | SYS_AT_RECURSIVE);

	if (tree < 0)
		return err_errno(e, "copy the root");
	if (fchdir(tree) < 0 || chroot(".") < 0)
		return err_errno(e, "enter the copy of the root");
	return fd_take(&tree);
}
