/* SPDX-License-Identifier: MIT */
/*
 * pipes.c - the pipes of a program: never a descriptor of the caller's
 *
 * Runs in:   warden
 */
#include "jail/warden/parts.h"

#include "jail/base/err.h"
#include "jail/base/io.h"

#include <fcntl.h>
#include <unistd.h>

int pipes_open(int *inner, int *outer, int n, int merged, struct err *e)
{
	for (int i = 0; i < n; i++) {
		int p[2];

		if (i == 2 && merged) {
			inner[i] = fcntl(inner[1], F_DUPFD_CLOEXEC, 3);
			if (inner[i] < 0)
				return err_errno(e, "duplicate a pipe");
			continue;
		}
		if (pipe2(p, O_CLOEXEC) < 0)
			return err_errno(e, "create a pipe");
		inner[i] = i == 0 ? p[0] : p[1];
		outer[i] = i == 0 ? p[1] : p[0];
	}
	return 0;
}

void pipes_drop(int *fds)
{
	for (int i = 0; i < PIPES; i++)
		fd_drop(&fds[i]);
}
