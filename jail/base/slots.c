/* SPDX-License-Identifier: MIT */
/*
 * slots.c - counting sessions with locks on the bytes of a file
 *
 * Runs in:   front end, warden
 * Trusts:    processes that may open the file
 * Leaves:    locks, which go with the descriptor
 */
#include "slots.h"

#include "err.h"

#include <errno.h>
#include <fcntl.h>

int slots_lock(int fd, off_t at, short type)
{
	struct flock l = {.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = at,
		.l_len = 1};

	return fcntl(fd, F_OFD_SETLK, &l);
}

int slots_is_taken(void)
{
	return errno == EAGAIN || errno == EACCES;
}

int slots_claim(int fd, off_t first, int most, struct err *e)
{
	for (int i = 0; i < most; i++) {
		if (slots_lock(fd, first + i, F_WRLCK) == 0)
			return 1;
		if (!slots_is_taken())
			return err_errno(e, "count the sessions");
	}
	return 0;
}

int slots_all_taken(int most, struct err *e)
{
	err_set(e,
		most == 1 ? "there is %d session already"
			  : "there are %d sessions already",
		most);
	err_hint(e,
		"leave one of them, or end it: cellblock --end ID, over ssh "
		"also: ssh HOST end ID; session.per_user = %d",
		most);
	return err_kind_set(e, ERR_BUSY);
}
