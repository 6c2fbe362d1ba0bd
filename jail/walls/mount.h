/* SPDX-License-Identifier: MIT */
/*
 * mount.h - build a root file system by descriptor
 *
 * A target is a path as the jail will see it ("/usr"). It is walked from the
 * new root without following a link, and missing directories on the way are
 * made.
 */
#ifndef JAIL_WALLS_MOUNT_H
#define JAIL_WALLS_MOUNT_H

#include "jail/base/err.h"

#include <sys/types.h>

/* The top directory of the new root, and its path in this process. */
struct mount_root {
	int fd;
	const char *path;
	int no_setattr; /* do not use mount_setattr(2) (Linux 5.12) */
};

/* Make every mount of this namespace private: no mount event leaves it. */
int mount_private_all(struct err *e);

/* Mount a new tmpfs over the directory `at` of this process's own root.
 * Options as "size=1048576,mode=0755", attributes SYS_ATTR_*. A descriptor of
 * its top directory (caller closes), or -1 with e. */
int mount_tmpfs_over(
	const char *at, const char *options, unsigned attrs, struct err *e);

/* Mount a new file system of `fstype` on a target. */
int mount_fs(const struct mount_root *r, const char *fstype, const char *target,
	const char *options, unsigned attrs, struct err *e);

/* Make a file system with device nodes like the `n` of the host at `paths`,
 * for mount_attach(): a descriptor (caller closes), or -1 with e. Only real
 * root can, and not in every container. */
int mount_make_nodes(const char *const *paths, size_t n, struct err *e);

/* Make a new file system that is mounted nowhere: a descriptor of its top
 * directory (caller closes), or -1 with e, which names the place `on`. */
int mount_detached(const char *fstype, const char *options, unsigned attrs,
	const char *on, struct err *e);

/* Change the options of the file system in memory whose top `fd` is; it is at
 * `on`. 0, or -1 with e, also when the kernel did not keep them. */
int mount_change(int fd, const char *options, const char *on, struct err *e);

/* Show the host's `source` and everything mounted below it at a target, with at
 * least these attributes on every mount. The path of `source` must have no link
 * in it. Regular files, directories and character devices only. */
int mount_bind(const struct mount_root *r, const char *source,
	const char *target, unsigned attrs, struct err *e);

/*
 * Show the host's `source` at a target, with what was mounted below it when
 * this namespace was made. Where possible it gets inodes of its own, and so
 * locks and watches of its own: a directory becomes an overlay of itself, a
 * small file a copy. Returns 1 if so, 0 if it is bound and shares the host's
 * inodes, -1 with e.
 */
int mount_show(const struct mount_root *r, const char *source,
	const char *target, unsigned attrs, struct err *e);

/* A detached copy of the mount on top of the directory `at`, with everything
 * mounted below it: a descriptor (caller closes), or -1 with e. It must be the
 * mount that `same_fd` belongs to, or the call fails. */
int mount_copy(const char *at, int same_fd, struct err *e);

/* Attach such a copy at a target. Borrows `copy`. */
int mount_attach(const struct mount_root *r, int copy, const char *target,
	struct err *e);

/* Add attributes to the one mount at a target ("/" is the root itself). */
int mount_restrict(const struct mount_root *r, const char *target,
	unsigned attrs, struct err *e);

/* Make a symbolic link (an identical one may exist already), or a small file;
 * open a directory for reading: descriptor, or -1 with e. */
int mount_symlink(const struct mount_root *r, const char *text,
	const char *target, struct err *e);
int mount_file(const struct mount_root *r, const char *target,
	const char *content, struct err *e);
int mount_open_dir(
	const struct mount_root *r, const char *target, struct err *e);

/* Make the new root this process's root, and detach the old one for good. */
int mount_pivot(const struct mount_root *r, struct err *e);

/* Go on in a copy of all mounts that belongs to no namespace, and so is in no
 * table of mounts: a descriptor that keeps the copy, or -1 with e. */
int mount_hide(struct err *e);

#endif
