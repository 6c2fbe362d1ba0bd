/* SPDX-License-Identifier: MIT */
/*
 * sys.c - raw system calls that the C library may not know
 *
 * Runs in:   warden, init, guest before exec
 * Trusts:    its caller
 *
 * All architectures share the numbers from open_tree on, so a missing
 * definition can be filled in.
 */
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_open_tree
#define SYS_open_tree 428
#define SYS_move_mount 429
#define SYS_fsopen 430
#define SYS_fsconfig 431
#define SYS_fsmount 432
#define SYS_fspick 433
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#endif

#define FSOPEN_CLOEXEC_ 1u
#define FSPICK_CLOEXEC_ 1u
#define FSPICK_EMPTY_PATH_ 8u
#define FSMOUNT_CLOEXEC_ 1u
#define FSCONFIG_SET_FLAG_ 0u
#define FSCONFIG_SET_STRING_ 1u
#define FSCONFIG_CMD_CREATE_ 6u
#define FSCONFIG_CMD_RECONFIGURE_ 7u
#define MOVE_MOUNT_F_EMPTY_PATH_ 0x04u
#define MOVE_MOUNT_T_EMPTY_PATH_ 0x40u
#define LANDLOCK_CREATE_RULESET_VERSION_ 1u
#define RENAME_NOREPLACE_ 1u

struct open_how_ {
	uint64_t flags, mode, resolve;
};

struct mount_attr_ {
	uint64_t attr_set, attr_clr, propagation, userns_fd;
};

/* Where a path has "..", the kernel refuses with EAGAIN if anything on the host
 * was renamed or mounted meanwhile: so often we ask again. */
#define OPEN_TRIES 100

int sys_openat2(int dirfd, const char *path, int flags, uint64_t resolve)
{
	struct open_how_ how = {
		.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
		.resolve = resolve,
	};
	int fd, tries = OPEN_TRIES;

	do
		fd = (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
	while (fd < 0 && errno == EAGAIN && --tries);
	return fd;
}

const char *sys_openat2_remedy(int code)
{
	if (code != ENOSYS && code != EPERM)
		return NULL;
	return "files are only ever reached with openat2(2): Linux 5.6 has "
	       "it, unless a container's seccomp filter hides it";
}

int sys_rename_new(int dir, const char *from, const char *to)
{
	return (int)syscall(
		SYS_renameat2, dir, from, dir, to, RENAME_NOREPLACE_);
}

int sys_open_tree(int dirfd, const char *path, unsigned flags)
{
	return (int)syscall(
		SYS_open_tree, dirfd, path, flags | (unsigned)O_CLOEXEC);
}

int sys_move_mount_fd(int from, int to)
{
	return (int)syscall(SYS_move_mount, from, "", to, "",
		MOVE_MOUNT_F_EMPTY_PATH_ | MOVE_MOUNT_T_EMPTY_PATH_);
}

int sys_fsopen(const char *fstype)
{
	return (int)syscall(SYS_fsopen, fstype, FSOPEN_CLOEXEC_);
}

int sys_fspick(int fd)
{
	return (int)syscall(
		SYS_fspick, fd, "", FSPICK_CLOEXEC_ | FSPICK_EMPTY_PATH_);
}

int sys_fsconfig_flag(int fs, const char *key)
{
	return (int)syscall(SYS_fsconfig, fs, FSCONFIG_SET_FLAG_, key, NULL, 0);
}

int sys_fsconfig_string(int fs, const char *key, const char *value)
{
	return (int)syscall(
		SYS_fsconfig, fs, FSCONFIG_SET_STRING_, key, value, 0);
}

int sys_fsconfig_create(int fs)
{
	return (int)syscall(
		SYS_fsconfig, fs, FSCONFIG_CMD_CREATE_, NULL, NULL, 0);
}

int sys_fsconfig_change(int fs)
{
	return (int)syscall(
		SYS_fsconfig, fs, FSCONFIG_CMD_RECONFIGURE_, NULL, NULL, 0);
}

int sys_fsmount(int fs, unsigned attrs)
{
	return (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC_, attrs);
}

int sys_mount_setattr(int fd, unsigned flags, unsigned attrs)
{
	struct mount_attr_ attr = {.attr_set = attrs};

	return (int)syscall(SYS_mount_setattr, fd, "",
		flags | SYS_AT_EMPTY_PATH, &attr, sizeof(attr));
}

int sys_pivot_root(const char *new_root, const char *put_old)
{
	return (int)syscall(SYS_pivot_root, new_root, put_old);
}

int sys_close_range(unsigned first, unsigned last, unsigned flags)
{
	return (int)syscall(SYS_close_range, first, last, flags);
}

int sys_landlock_abi(void)
{
	return (int)syscall(SYS_landlock_create_ruleset, NULL, 0,
		LANDLOCK_CREATE_RULESET_VERSION_);
}

/*
 * Some kernels start a child on its parent's CPU, where it waits for the
 * parent although other CPUs are idle. Virtual machines do this to need few
 * CPUs. Two processes with a millisecond of work each would then take turns.
 */
void sys_run_side(pid_t child)
{
	cpu_set_t all, others;
	int here = sched_getcpu();

	if (here < 0 || sched_getaffinity(0, sizeof(all), &all) < 0)
		return;
	others = all;
	CPU_CLR((size_t)here, &others);
	if (CPU_COUNT(&others) == 0 ||
		sched_setaffinity(child, sizeof(others), &others) < 0)
		return;
	sched_setaffinity(child, sizeof(all), &all);
}
