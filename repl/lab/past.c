/* SPDX-License-Identifier: MIT */
/*
 * past.c - the moments that root's service has seen pass
 *
 * Runs in:   root: a child of the service, or the janitor of a session
 * Trusts:    the clock of the host, but not that it goes forward: a moment that
 *            has passed once stays past, also if the clock is set back
 * Leaves:    an empty file for each such moment, in a directory that is root's
 *            alone. An administrator who removes it, or sets another moment,
 *            is obeyed
 */
#include "repl/lab/lab.h"

#include "jail/base/io.h"

#include <fcntl.h>
#include <inttypes.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

enum past past_look(int dir, int64_t moment_s, const char *what)
{
	time_t now = time(NULL);
	char name[40], moment[TEXT_HUMAN], clock[TEXT_HUMAN];
	auto_close int fd = -1;

	snprintf(name, sizeof(name), ".past-%" PRId64, moment_s);
	if (now >= moment_s) {
		if (dir >= 0)
			fd = openat(dir, name,
				O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
				0600);
		return PAST_NOW;
	}
	if (dir < 0 || faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return PAST_NOT;
	syslog(LOG_WARNING,
		"%s: %s has passed before, and this host's clock says %s: it "
		"was set back",
		what, text_moment(moment, moment_s, now, true),
		text_moment(clock, now, now, true));
	return PAST_BEFORE;
}
