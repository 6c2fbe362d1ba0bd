/* SPDX-License-Identifier: MIT */
/*
 * remount.c - restrict mounts in place, where mount_setattr is missing
 *
 * Runs in:   init, while it builds the root
 * Holds:     CAP_SYS_ADMIN in the user namespace that owns its mounts
 * Trusts:    the kernel's list of mounts
 * Leaves:    every mount of the tree restricted, or an error
 *
 * The flags of a bind mount can only be changed one mount at a time, and
 * MS_REMOUNT replaces them all, so each mount's present flags are read first.
 */
#include "remount.h"

#include "jail/base/io.h"
#include "jail/base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#define MOUNTINFO_MAX (4 * 1024 * 1024)
#define TREE_MAX 1024

/* Flags that a mount keeps; the same bits for statvfs(3) and mount(2). */
#define KEPT                                                                   \
	(MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME |           \
		MS_NODIRATIME)
_Static_assert((ST_RDONLY | ST_NOSUID | ST_NODEV | ST_NOEXEC | ST_NOATIME |
		       ST_NODIRATIME) == KEPT,
	"statvfs and mount agree");
/* And the bits of SYS_ATTR_*. */
_Static_assert(SYS_ATTR_RDONLY == MS_RDONLY && SYS_ATTR_NOSUID == MS_NOSUID &&
		       SYS_ATTR_NODEV == MS_NODEV &&
		       SYS_ATTR_NOEXEC == MS_NOEXEC,
	"attributes and mount agree");

/* Undo the octal escapes of a mount point (space, tab, newline, backslash). */
static int unescape(char *to, size_t size, const char *from, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)from[i];

		if (c == '\\' && i + 3 < n && from[i + 1] >= '0' &&
			from[i + 1] <= '3') {
			c = (unsigned char)((from[i + 1] - '0') << 6 |
					    (from[i + 2] - '0') << 3 |
					    (from[i + 3] - '0'));
			i += 3;
		}
		if (k + 1 >= size)
			return -1;
		to[k++] = (char)c;
	}
	to[k] = '\0';
	return 0;
}

int remount_line_parse(struct remount_line *m, const char *line)
{
	const char *p;
	int at = 0;

	if (sscanf(line, "%d %d %*u:%*u %*s %n", &m->id, &m->parent, &at) < 2 ||
		at == 0)
		return -1;
	p = line + at;
	return unescape(m->path, sizeof(m->path), p, strcspn(p, " \n"));
}

/* The kernel's id of the mount that fd is in. */
static int mount_id(int fd)
{
	char path[64];
	auto_free char *text = NULL;
	const char *at;
	size_t n;
	int id;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	if (io_read_file(AT_FDCWD, path, 4096, &text, &n) < 0)
		return -1;
	at = strstr(text, "mnt_id:");
	return at && sscanf(at, "mnt_id: %d", &id) == 1 ? id : -1;
}

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

struct tree {
	int ids[TREE_MAX];
	size_t n;
};

static int tree_has(const struct tree *t, int id)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->ids[i] == id)
			return 1;
	return 0;
}

/* Restrict each mount below the first of `t`. The kernel lists a parent before
 * its children. */
static int remount_below(
	struct tree *t, const char *text, unsigned attrs, struct err *e)
{
	struct remount_line m;

	for (const char *line = text; *line;) {
		if (remount_line_parse(&m, line) < 0)
			return err_set(e, "read the list of mounts: malformed");
		if (tree_has(t, m.parent) && !tree_has(t, m.id)) {
			if (t->n == TREE_MAX)
				return err_set(e,
					"more than %d mounts below %s",
					TREE_MAX, m.path);
			t->ids[t->n++] = m.id;
			if (remount_one(m.path, attrs, e) < 0)
				return -1;
		}
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	return 0;
}

int remount_tree(int fd, const char *root, const char *target, unsigned attrs,
	int recursive, struct err *e)
{
	struct tree t = {.n = 1};
	auto_free char *text = NULL;
	char path[PATH_MAX];
	size_t n;

	if (snprintf(path, sizeof(path), "%s%s", root,
		    strcmp(target, "/") ? target : "") >= (int)sizeof(path))
		return err_set(e, "restrict %s: path too long", target);
	if (remount_one(path, attrs, e) < 0)
		return -1;
	if (!recursive)
		return 0;
	t.ids[0] = mount_id(fd);
	if (t.ids[0] < 0 || io_read_file(AT_FDCWD, "/proc/self/mountinfo",
				    MOUNTINFO_MAX, &text, &n) < 0)
		return err_errno(e, "read the list of mounts");
	return remount_below(&t, text, attrs, e);
}
