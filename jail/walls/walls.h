/* SPDX-License-Identifier: MIT */
/*
 * walls.h - what a jail is made of, each wall by itself
 *
 *	home.c		files of the session's home, reached without trusting
 *			any of it
 *	ident.c		who a process is, and how it gives up what it is allowed
 *			to do
 *	landlock.c	a second wall around files, behind the mounts
 *	mount.c		build a root file system by descriptor
 *	pty.c		ptys of the jail's own devpts, and their settings
 *	seccomp.c	which system calls a process may make
 */
#ifndef JAIL_WALLS_WALLS_H
#define JAIL_WALLS_WALLS_H

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- home.c ---- */

/*
 * Every path is relative to the home. The kernel resolves it beneath the
 * home's root, so no name leads out of the home.
 */

/* Most files that are written at the same time. */
#define HOME_TOKENS_MAX JAIL_MANY_MAX
/* Most entries in a listing. */
#define HOME_LIST_MAX 10000

/* A file that is being written, under a temporary name. */
struct home_upload {
	uint32_t token; /* 0: the slot is free */
	struct io_newfile file;
	char name[NAME_MAX + 1];
	mode_t mode;
};

struct home {
	int root; /* directory descriptor of the mount, owned */
	int own;  /* names that are not the session's: the root, and the mount
		   * points of what is shown below /home */
	uint32_t last_token;
	struct home_upload uploads[HOME_TOKENS_MAX];
};

/* Takes `root`, before any guest has seen it. */
void home_init(struct home *h, int root);

/* The same home for another process, which begins no file in it. */
void home_share(struct home *h, const struct home *of);

void home_fini(struct home *h);

/* Open a regular file for reading: descriptor, or -1 with e. */
int home_open(struct home *h, const char *path, struct err *e);

/* Begin, end and give up writing a file; see jail_home_create_many(). The
 * descriptor is borrowed until then. A file that cannot be committed is given
 * up. */
int home_create(struct home *h, const char *path, mode_t mode, uint32_t *token,
	struct err *e);
int home_commit(struct home *h, const struct jail_end *end, struct err *e);
int home_abort(struct home *h, uint32_t token, struct err *e);

/* Make a directory, if there is none, and give it its mode and time. */
int home_mkdir(struct home *h, const char *path, const struct jail_end *end,
	struct err *e);

/* Remove a file, a link or a whole directory, however deep. */
int home_remove(struct home *h, const char *path, struct err *e);

/*
 * The entries (the caller frees them), one record each, unsorted, `n` bytes in
 * all; NULL with e:
 *	type SP mode SP bytes SP allocated SP mtime SP links SP path NUL
 * with the mode in octal and the time in nanoseconds.
 * Only the session's own entries are listed. *truncated is 1 when there were
 * more than HOME_LIST_MAX, or when a path was too long to be listed.
 */
char *home_list(struct home *h, size_t *n, int *truncated, struct err *e);

/* Bytes, and files of every kind, that the session uses. */
void home_usage(const struct home *h, int64_t *bytes, int *files);

/* ---- ident.c ---- */

/*
 * Each drop is verified by an attempt to undo it. If the attempt succeeds, the
 * call fails, and nothing of the jail may start.
 */

/* ---- an outside uid of its own for each session that root starts ---- */

/* The directory that holds the file of locks. */
#define IDENT_ALLOCATIONS "/run/cellblock"

enum { IDENT_NAME_MAX = 64 };

/* Root only: pick a uid of [lo, hi] that no other session holds and that no
 * process on this host has; never 0, 65534 or -1. The allocation lasts until it
 * is released or the last copy of *lock_fd is closed (caller closes). `dir` is
 * IDENT_ALLOCATIONS, or a directory of a test. */
int ident_allocate(const char *dir, uid_t lo, uid_t hi, uid_t *uid,
	int *lock_fd, struct err *e);

/* Take one of `most` places that belong to `owner`, at most IDENT_PLACES_MAX.
 * It goes with the allocation. 1, 0: all are taken, or -1 with e. An owner is a
 * person's uid, for sessions; that and IDENT_PLACES_ANY, for sessions and
 * programs; or IDENT_PLACES_ALL, for all persons together. */
#define IDENT_PLACES_MAX 65535
#define IDENT_PLACES_ALL ((uint64_t)(uid_t)-1)
#define IDENT_PLACES_ANY ((uint64_t)1 << 32)
int ident_allocation_place(
	int lock_fd, uint64_t owner, int most, struct err *e);

/* True if other allocations have places that belong to `owner`, or it cannot be
 * found out. */
int ident_allocation_has_others(int lock_fd, uint64_t owner);

/* Keep others from deciding in which directory sessions of this person go
 * (cgroup_person_choose()). Waits for another holder, which does nothing else
 * meanwhile. 0, or -1 with e. */
int ident_person_lock(int lock_fd, uid_t person, struct err *e);
void ident_person_unlock(int lock_fd, uid_t person);

/* Give the places of an owner back; or those of all, and keep the uid. */
void ident_release_places(int lock_fd, uint64_t owner);
void ident_release_all_places(int lock_fd);

/* Give back every uid that is allocated through lock_fd. */
void ident_allocation_release(int lock_fd);

/* The public name of an allocated uid, as in the name of a cgroup: the number,
 * and which file holds the lock. Where /run is another one (a container, a
 * service with a private /run) a lock on the same number says nothing about
 * this one.
 */
int ident_allocation_name(
	int lock_fd, uid_t uid, char name[IDENT_NAME_MAX], struct err *e);

/* True if `name` is the name of a uid of our file of locks that no session
 * holds. If so it is allocated from then on, so that no session takes it. */
int ident_allocation_is_free(int lock_fd, const char *name);

/* ---- becoming somebody, and giving everything up ---- */

/* After unshare(CLONE_NEWUSER): map one uid and one gid of the new namespace
 * to the ids that the caller had in its parent, with setgroups denied. The
 * error says what to do where the host does not allow it. The caller must be
 * dumpable. */
int ident_map_self(uid_t inside_uid, uid_t outside_uid, gid_t inside_gid,
	gid_t outside_gid, struct err *e);

/* True if the caller is uid 0 and can become other uids. The root of a user
 * namespace that maps a single id cannot: outside it is an ordinary user. */
int ident_is_root(void);

/* Root only: become uid and gid, without supplementary groups, capabilities,
 * root's keyring or a way back. The process is dumpable afterwards, because the
 * maps of a user namespace cannot be written otherwise: call
 * ident_set_undumpable() once they are written. */
int ident_become(uid_t uid, gid_t gid, struct err *e);

/* Give up everything: five empty capability sets, locked securebits,
 * no_new_privs. Needs CAP_SETPCAP in the current user namespace. */
int ident_drop(struct err *e);

/* The same for the front end, which may never have had a capability: then what
 * only CAP_SETPCAP could change stays as it is, and no_new_privs makes it
 * harmless. */
int ident_drop_front(struct err *e);

/* No core dumps, no ptrace by equals, /proc/self owned by root. */
int ident_set_undumpable(struct err *e);

/* Give up a real-time policy: guests would inherit it, and no CPU limit holds
 * real-time processes. */
int ident_set_ordinary_scheduling(struct err *e);

/* Close every descriptor but the `n` in `keep`, in any order; -1 is ignored. */
int ident_close_fds(const int *keep, int n, struct err *e);

/* ---- landlock.c ---- */

enum landlock_class {
	LANDLOCK_READ,	     /* read files, list directories */
	LANDLOCK_READ_EXEC,  /* and execute */
	LANDLOCK_WRITE,	     /* read, write, truncate, create, remove, rename;
			      * never device nodes */
	LANDLOCK_WRITE_EXEC, /* and execute: the jail's /home and /tmp */
	LANDLOCK_DEVICE,     /* read, write and ioctl on device files */
	LANDLOCK_REMOVE,     /* remove files that are no directories */
};

/* Everything beneath a directory, or one file. */
struct landlock_rule {
	const char *path; /* opened here; NULL: use fd */
	int fd;		  /* borrowed (O_PATH will do); only if path is NULL */
	enum landlock_class cls;
	int optional; /* a path that does not exist is no error */
};

enum landlock_flags {
	LANDLOCK_NEED_REFER = 1, /* renames between directories must work:
				  * do nothing on ABI 1 */
	LANDLOCK_NO_TCP = 2,	 /* deny TCP bind and connect (ABI 4) */
	LANDLOCK_SCOPE = 4,	 /* no signals to, no abstract sockets of,
				  * processes outside (ABI 6) */
};

/* Deny everything that no rule allows, for good; sets no_new_privs. `abi_max`
 * switches later features off (for tests); otherwise LANDLOCK_ABI_ANY.
 * Returns the ABI in force; 0 when Landlock cannot be used (it is absent, or
 * see LANDLOCK_NEED_REFER); -1 with e when a rule failed. */
#define LANDLOCK_ABI_ANY 99
int landlock_confine(const struct landlock_rule *rules, size_t n,
	unsigned flags, int abi_max, struct err *e);

/* ---- mount.c ---- */

/*
 * A target is a path as the jail will see it ("/usr"). It is walked from the
 * new root without following a link, and missing directories on the way are
 * made.
 */

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
 * for mount_attach(): a descriptor (caller closes), or -1. Only real root can,
 * and not in every container. */
int mount_make_nodes(const char *const *paths, size_t n);

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

/* ---- pty.c ---- */

/* Open a pair on the devpts whose top directory is `pts_dirfd`. Neither end
 * becomes a controlling terminal. The caller closes both. */
int pty_open_pair(int pts_dirfd, int *master, int *slave, struct err *e);

/* Open the slave of a master once more, so that O_NONBLOCK in `flags` concerns
 * this descriptor alone. The caller closes it; -1 with e. */
int pty_open_slave(int master, int flags, struct err *e);

/*
 * Set the profile that a cell starts with: canonical mode with echo; Ctrl-C and
 * Ctrl-\ signal, Ctrl-Z does not; Ctrl-C keeps pending output; Ctrl-S and
 * Ctrl-Q are ordinary keys; output is on. Every setting is written, so nothing
 * that a guest set survives. `fd` is a slave.
 */
int pty_set_cooked(int fd, struct err *e);

/* Set a slave raw: bytes pass unchanged both ways. */
int pty_set_raw(int fd, struct err *e);

/* Set a slave raw for what is typed; output is as in a cell. */
int pty_set_keys(int fd, struct err *e);

/* Set the window size; the foreground group gets SIGWINCH if it changed. */
int pty_set_size(
	int fd, unsigned short rows, unsigned short cols, struct err *e);

/* SIGINT for the foreground group of the master's slave. 0, or -1 with errno.
 */
int pty_interrupt(int master);

/* ---- seccomp.c ---- */

/*
 * The filters are made at build time from seccomp_rules.h and embedded.
 */

enum seccomp_profile {
	SECCOMP_GUEST,	     /* Python and whatever it starts */
	SECCOMP_GUEST_NOMEM, /* the same where no cgroup counts its memory */
	SECCOMP_INIT,	     /* pid 1 of a finished jail; allows all that GUEST
			      * allows, because guests inherit it and add theirs */
	SECCOMP_FRONT,	     /* the front end: no exec, no sockets */
	SECCOMP_INIT_SHARED, /* INIT in a jail that shares inodes with the host:
			      * without inotify */
	SECCOMP_SERVER,	     /* FRONT that accepts clients */
	SECCOMP_CONTROL,     /* FRONT that other terminals come to */
	SECCOMP_TRIAL,	     /* a copy of Python that reads and computes: no
			      * process, no file, no memory of others changes */
};
#define SECCOMP_PROFILES 8

/* Confine every thread of the process, for good. Needs no_new_privs, which
 * SECCOMP_FRONT and SECCOMP_SERVER set themselves. Verified by a call that
 * every profile refuses. */
int seccomp_load(enum seccomp_profile profile, struct err *e);

/* From now on each flock() and each fcntl() that sets a lock, and with `maps`
 * each mmap() of anonymous shared memory, by this process or by one that it
 * starts later, waits for an answer on the descriptor that *fd becomes. Where
 * the kernel gives none, because somebody above us listens already, such calls
 * fail with ENOSYS, ENOLCK and EPERM, and *fd is -1. */
int seccomp_hear(int *fd, int maps, struct err *e);

/* From now on this process, and what it starts, makes no socket but pairs of
 * streams: it reaches nobody through a name. Verified by the attempt. */
int seccomp_pairs_only(struct err *e);

/* Number of instructions of a filter, 0 where this processor has none. */
int seccomp_size(enum seccomp_profile profile);

/* The instructions, for a process that is traced. */
const struct sock_filter *seccomp_code(enum seccomp_profile profile);

#endif
