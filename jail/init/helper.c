/* SPDX-License-Identifier: MIT */
/*
 * helper.c - work that may be kept waiting, done by a child that can be killed
 *
 * Runs in:   init, and a child of it
 * Trusts:    nobody: a guest can kill or stop the child, and make it fail, at
 *            once
 * Leaves:    nothing
 */
#include "jail/init/init.h"

#include "jail/base/io.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Longest time between two checks whether the child is stopped. */
#define LOOK_MS 10

static int is_stopped(pid_t pid)
{
	siginfo_t si = {0};

	return waitid(P_PID, (id_t)pid, &si, WSTOPPED | WNOHANG | WNOWAIT) ==
		       0 &&
	       si.si_pid == pid;
}

/* True if the child has answered, or ended, by then. */
static int await_child(pid_t pid, int fd, int timeout_ms)
{
	int64_t end = now_ms() + timeout_ms, left;

	while ((left = end - now_ms()) > 0 && !is_stopped(pid))
		if (io_await(fd, left < LOOK_MS ? (int)left : LOOK_MS))
			return 1;
	return 0;
}

int64_t init_helper_run(int64_t (*work)(void *), void *arg, int timeout_ms)
{
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
	if (pid > 0 && (!await_child(pid, ends[0], timeout_ms) ||
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
