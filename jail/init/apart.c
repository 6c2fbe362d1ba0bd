/* SPDX-License-Identifier: MIT */
/*
 * apart.c - work that may be kept waiting, done by a child that can be killed
 *
 * Runs in:   init, and a child of it
 * Trusts:    nobody: a guest can kill or stop the child, and so has it fail
 * Leaves:    nothing
 */
#include "apart.h"

#include "jail/base/io.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

int64_t apart_do(int64_t (*work)(void *), void *arg, int timeout_ms)
{
	struct pollfd p = {.events = POLLIN};
	int64_t result = -1;
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		result = work(arg);
		_exit(write(ends[1], &result, sizeof(result)) < 0);
	}
	close(ends[1]);
	p.fd = ends[0];
	if (pid > 0 && (poll(&p, 1, timeout_ms) <= 0 ||
			       read(ends[0], &result, sizeof(result)) !=
				       sizeof(result)))
		result = -1;
	close(ends[0]);
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	return result;
}
