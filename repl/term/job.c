/* SPDX-License-Identifier: MIT */
/*
 * job.c - stopping as a job of the shell that started us
 *
 * Runs in:   front end, or the client of a session
 * Holds:     nothing; the caller has given the terminal its own modes back
 * Trusts:    the kernel, which stops no process group that nobody would
 *            continue
 * Leaves:    the signals' actions and the mask as they were
 *
 * The whole process group stops, as when a terminal makes SIGTSTP of Ctrl-Z: a
 * script that started us stops, too, and so do the others in a pipe. The warden
 * and the jail have left the group, and go on.
 */
#include "repl/term/term.h"

#include <time.h>
#include <unistd.h>

bool job_has_shell(void)
{
	pid_t session = getsid(0), group = getpgrp(), parent = getppid();
	struct sigaction a;

	/* `trap "" TSTP` has us ignore the signal, and wants it so. */
	if (sigaction(SIGTSTP, NULL, &a) < 0 || a.sa_handler == SIG_IGN)
		return false;
	/* The group of a session's leader is that of a login shell, or of what
	 * runs in its place: its parent is outside the session. */
	if (group == session)
		return false;
	return getpgid(parent) == group || getsid(parent) == session;
}

/* A pending SIGCONT proves that we were stopped: a stop signal removes SIGCONTs
 * that came before, and we block those that come after. */
static bool stop_group(int sig)
{
	const struct timespec none = {0};
	sigset_t stop, cont, before;
	struct sigaction act = {.sa_handler = SIG_DFL}, old;
	bool stopped;

	sigemptyset(&stop);
	sigaddset(&stop, sig);
	sigemptyset(&cont);
	sigaddset(&cont, SIGCONT);
	sigprocmask(SIG_BLOCK, &cont, &before);
	while (sigtimedwait(&cont, NULL, &none) == SIGCONT)
		;
	sigaction(sig, &act, &old);
	kill(0, sig);
	sigprocmask(SIG_UNBLOCK, &stop, NULL); /* we stop here at the latest */
	stopped = sigtimedwait(&cont, NULL, &none) == SIGCONT;
	sigprocmask(SIG_SETMASK, &before, NULL);
	sigaction(sig, &old, NULL);
	return stopped;
}

bool job_stop(void)
{
	return stop_group(SIGTSTP);
}

bool job_is_in_front(int tty)
{
	pid_t front = tcgetpgrp(tty);

	return front < 0 || front == getpgrp();
}

/* True if a signal waits that ends us. */
static bool is_ending(void)
{
	sigset_t set;

	return sigpending(&set) == 0 &&
	       (sigismember(&set, SIGTERM) || sigismember(&set, SIGHUP) ||
		       sigismember(&set, SIGQUIT));
}

void job_await_front(int tty, int wake)
{
	struct pollfd p = {.fd = wake, .events = POLLIN};

	while (!job_is_in_front(tty) && !is_ending() && poll(&p, 1, 0) == 0)
		if (!stop_group(SIGTTOU))
			return;
}
