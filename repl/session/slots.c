/* SPDX-License-Identifier: MIT */
/*
 * slots.c - how many sessions a person has at the same time
 *
 * Runs in:   front end, before it confines itself
 * Trusts:    the person's own state directory: who may write there without
 *            Cellblock is bound by nothing that Cellblock says
 * Leaves:    a lock on one byte, which the kernel drops with the descriptor
 */
#include "slots.h"

#include "jail/base/err.h"
#include "jail/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

int slots_claim(const char *dir, int most, struct err *e)
{
	auto_close int fd = -1;
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/sessions", dir);
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK,
		0600);
	if (fd < 0)
		return err_errno(e, "count the sessions in %s", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(e, "count the sessions in %s: not a file", path);
	for (int i = 0; i < most; i++) {
		struct flock place = {.l_type = F_WRLCK,
			.l_whence = SEEK_SET,
			.l_start = i,
			.l_len = 1};

		if (fcntl(fd, F_OFD_SETLK, &place) == 0)
			return fd_take(&fd);
		if (errno != EAGAIN && errno != EACCES)
			return err_errno(e, "count the sessions in %s", path);
	}
	err_set(e,
		most == 1 ? "there is %d session already"
			  : "there are %d sessions already",
		most);
	err_hint(e, "leave one of them; session.per_user = %d", most);
	return err_kind_set(e, ERR_CONFIG);
}
