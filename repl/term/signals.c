/* SPDX-License-Identifier: MIT */
/*
 * signals.c - signals as something to poll
 *
 * Runs in:   front end
 * Trusts:    nothing: anybody whom the kernel lets may send us a signal
 */
#include "signals.h"

#include "jail/base/err.h"
#include "jail/base/io.h"

#include <errno.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const int ending[] = {SIGTERM, SIGHUP, SIGQUIT};
#define N_ENDING (sizeof(ending) / sizeof(ending[0]))

/* nohup(1) makes us ignore SIGHUP, and that is respected. */
static bool is_ignored(int sig)
{
	struct sigaction a;

	return sigaction(sig, NULL, &a) == 0 && a.sa_handler == SIG_IGN;
}

int signals_open(struct signals *s, bool session, struct err *e)
{
	sigset_t set;

	*s = (struct signals){.fd = -1};
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGWINCH);
	for (size_t i = 0; i < N_ENDING; i++)
		if (!is_ignored(ending[i]))
			sigaddset(&set, ending[i]);
	if (!session)
		sigaddset(&set, SIGCONT);
	sigprocmask(SIG_BLOCK, &set, &s->before);
	signal(SIGINT, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	if (session) {
		signal(SIGTSTP, SIG_IGN);
		signal(SIGTTIN, SIG_IGN);
		signal(SIGTTOU, SIG_IGN);
	}
	s->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->fd < 0)
		return err_errno(e, "open a descriptor for signals");
	return 0;
}

void signals_close(struct signals *s)
{
	if (s->fd < 0)
		return;
	fd_drop(&s->fd);
	sigprocmask(SIG_SETMASK, &s->before, NULL);
}

void signals_read(struct signals *s)
{
	struct signalfd_siginfo si;

	while (read(s->fd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		int sig = (int)si.ssi_signo;

		if (sig == SIGINT)
			s->interrupt = true;
		else if (sig == SIGWINCH)
			s->resized = true;
		else if (sig == SIGCONT)
			s->continued = true;
		else
			s->end = sig;
	}
}

bool signals_cancelled(struct signals *s)
{
	bool was;

	signals_read(s);
	was = s->interrupt || s->end;
	s->interrupt = false;
	return was;
}
