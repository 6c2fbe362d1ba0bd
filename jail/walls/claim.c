/* SPDX-License-Identifier: MIT */
/*
 * claim.c - an outside uid of its own for each session that root starts
 *
 * Runs in:   warden, while it is still root; janitor
 * Holds:     root
 * Trusts:    a directory of locks that only root can write to
 * Leaves:    a lock on one byte of a file, at the offset of the uid. The kernel
 *            drops the lock when the last holder of the descriptor dies, so a
 *            crash leaks nothing
 */
#include "claim.h"

#include "jail/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Nobody: many services share this uid. */
#define UID_NOBODY 65534

static int run_dir_open(const char *dir, struct err *e)
{
	auto_close int fd = -1;
	struct stat st;

	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return err_errno(e, "make %s", dir);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(e, "open %s", dir);
	if (st.st_uid != 0 || (st.st_mode & 022))
		return err_set(e, "%s must be root's, and nobody else's", dir);
	return fd_take(&fd);
}

/* Lock or unlock the byte of a uid: 0, or -1 with errno (EAGAIN: taken). The
 * lock belongs to the open file, not to the process: it survives fork(). */
static int uid_lock(int fd, uid_t uid, short type)
{
	struct flock l = {.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = (off_t)uid,
		.l_len = 1};

	return fcntl(fd, F_OFD_SETLK, &l);
}

/* Whether a process of this uid lives: one that a dead session left behind
 * could reach into the next session of the uid. 1, 0, or -1 with errno. */
static int uid_is_running(uid_t uid)
{
	errno = 0;
	getpriority(PRIO_USER, uid); /* -1 may be a priority: look at errno */
	return errno == ESRCH ? 0 : errno ? -1 : 1;
}

static int uid_is_claimable(uid_t uid)
{
	return uid != 0 && uid != UID_NOBODY && uid != (uid_t)-1;
}

/* 0 it is ours, 1 it cannot be, -1 with errno. */
static int uid_try(int fd, uid_t uid)
{
	int running;

	if (!uid_is_claimable(uid))
		return 1;
	if (uid_lock(fd, uid, F_WRLCK) < 0)
		return errno == EAGAIN || errno == EACCES ? 1 : -1;
	running = uid_is_running(uid);
	if (running > 0 && uid_lock(fd, uid, F_UNLCK) < 0)
		return -1;
	return running;
}

int claim_uid(const char *dir, uid_t lo, uid_t hi, uid_t *uid, int *lock_fd,
	struct err *e)
{
	auto_close int dfd = -1, fd = -1;
	uint64_t count = (uint64_t)hi - lo + 1;
	uint32_t at = 0;

	if (lo > hi)
		return err_set(e, "uids: the range %u to %u is empty", lo, hi);
	dfd = run_dir_open(dir, e);
	if (dfd < 0)
		return err_wrap(e, "uids");
	fd = openat(
		dfd, "uids", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_errno(e, "uids: open %s/uids", dir);
	/* Start at a random one, not at the first that is free: so the remains
	 * of the last owner of a uid (a key, a counter) have time to go. */
	if (getrandom(&at, sizeof(at), GRND_NONBLOCK) < 0)
		at = (uint32_t)getpid();
	for (uint64_t i = 0; i < count; i++) {
		uid_t u = lo + (uid_t)((at + i) % count);
		int r = uid_try(fd, u);

		if (r < 0)
			return err_errno(e, "uids: claim %u in %s", u, dir);
		if (r > 0)
			continue;
		*uid = u;
		*lock_fd = fd_take(&fd);
		return 0;
	}
	err_set(e, "uids: all of %u to %u are in use", lo, hi);
	return err_hint(e, "widen [jail] uids");
}

void claim_release(int lock_fd)
{
	struct flock all = {.l_type = F_UNLCK, .l_whence = SEEK_SET};

	fcntl(lock_fd, F_OFD_SETLK, &all);
}

int claim_name(int lock_fd, uid_t uid, char name[CLAIM_NAME_MAX], struct err *e)
{
	struct stat st;

	if (fstat(lock_fd, &st) < 0)
		return err_errno(e, "uids: look at the locks");
	snprintf(name, CLAIM_NAME_MAX, "%u-%llx-%llx", uid,
		(unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	return 0;
}

int claim_is_free(int lock_fd, const char *name)
{
	uid_t uid = (uid_t)strtoul(name, NULL, 10);
	char ours[CLAIM_NAME_MAX];

	return uid_is_claimable(uid) &&
	       claim_name(lock_fd, uid, ours, NULL) == 0 &&
	       !strcmp(name, ours) && uid_lock(lock_fd, uid, F_WRLCK) == 0;
}
