/* SPDX-License-Identifier: MIT */
/*
 * sys.h - raw system calls that the C library may not know
 *
 * Numbers and flags are our own, so that this builds with old kernel headers
 * and with musl. A call that the kernel lacks fails with ENOSYS. Every call
 * returns what the kernel returns, with errno. Every descriptor made here is
 * close-on-exec.
 */
#ifndef JAIL_BASE_SYS_H
#define JAIL_BASE_SYS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- openat2(2), Linux 5.6 ---- */

#define SYS_RESOLVE_NO_XDEV 0x01u
#define SYS_RESOLVE_NO_MAGICLINKS 0x02u
#define SYS_RESOLVE_NO_SYMLINKS 0x04u
#define SYS_RESOLVE_BENEATH 0x08u

/* open(2) of a file that is there, with limits on how the path is resolved;
 * O_CLOEXEC is added. */
int sys_openat2(int dirfd, const char *path, int flags, uint64_t resolve);

/* The remedy when the kernel lacks openat2, or a container's seccomp filter
 * hides it (EPERM); NULL for any other errno. */
const char *sys_openat2_remedy(int code);

/* ---- renameat2(2) ---- */

/* Rename a file of `dir`, unless there is one of that name: EEXIST. */
int sys_rename_new(int dir, const char *from, const char *to);

/* ---- the file-descriptor mount interface, Linux 5.2 ---- */

/* Attributes of a mount, the kernel's MOUNT_ATTR_*. */
#define SYS_ATTR_RDONLY 0x01u
#define SYS_ATTR_NOSUID 0x02u
#define SYS_ATTR_NODEV 0x04u
#define SYS_ATTR_NOEXEC 0x08u

#define SYS_OPEN_TREE_CLONE 1u
#define SYS_AT_RECURSIVE 0x8000u
#define SYS_AT_EMPTY_PATH 0x1000u

/* A descriptor of the mount at `path`, or, with SYS_OPEN_TREE_CLONE, of a
 * detached copy of it. */
int sys_open_tree(int dirfd, const char *path, unsigned flags);

/* Attach the tree `from` (a descriptor from open_tree or fsmount) at `to` (a
 * descriptor of a directory or file). */
int sys_move_mount_fd(int from, int to);

int sys_fsopen(const char *fstype);
/* The same for the file system that a mount shows: `fd` is the mount's top. */
int sys_fspick(int fd);
int sys_fsconfig_flag(int fs, const char *key);
int sys_fsconfig_string(int fs, const char *key, const char *value);
int sys_fsconfig_create(int fs);
int sys_fsconfig_change(int fs);

/* A detached mount of the created file system: a descriptor of its root. */
int sys_fsmount(int fs, unsigned attrs);

/* Set attributes on a mount, `flags` may hold SYS_AT_RECURSIVE. Linux 5.12. */
int sys_mount_setattr(int fd, unsigned flags, unsigned attrs);

/* ---- others ---- */

int sys_pivot_root(const char *new_root, const char *put_old);

/* close(2) all descriptors from `first` to `last`, or with CLOSE_RANGE_CLOEXEC
 * only at exec. Linux 5.9; EPERM where a container's filter hides it. */
int sys_close_range(unsigned first, unsigned last, unsigned flags);

/* Landlock's ABI version, or -1: ENOSYS where it was not built, EOPNOTSUPP
 * where it is switched off. */
int sys_landlock_abi(void);

/* Start a child that was just forked at once, on another CPU than the caller's
 * if it may use one. Afterwards the child may run anywhere. */
void sys_run_side(pid_t child);

#endif
