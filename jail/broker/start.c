/* SPDX-License-Identifier: MIT */
/*
 * start.c - a warden is started, and the process that asked gets its socket
 *
 * Runs in:   start_warden(): the front end, or the supplier; start_run(),
 *            start_become(): a child of root's maker; start_apart(): a child
 *            of the front end; the rest: both ends of the connection over
 *            which a session is asked for
 * Holds:     what its caller holds: as root, everything
 * Trusts:    start_receive(): the process that was asked
 * Leaves:    a warden, which ends with the socket that was handed over
 */
#include "broker.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/procstat.h"
#include "jail/base/sys.h"
#include "jail/walls/walls.h"
#include "jail/warden/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* It brings the socket when `ok`. */
struct start_answer {
	int ok;
	struct err err;
};

/* A guest's limit is 1: with 0 the kernel dumps more (plan.c). Root may have 1
 * whatever the limit was. */
static void raise_core(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_CORE, &r) == 0 && r.rlim_max == 0)
		setrlimit(RLIMIT_CORE, &(struct rlimit){1, 1});
}

pid_t start_warden(const struct jail_spec *spec, int *sock, struct err *e)
{
	sigset_t all, before;
	pid_t pid;

	raise_core();
	/* A Ctrl-C of the terminal's is for the caller's group. The warden is
	 * in it until it has one of its own. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid = io_fork(sock);
	if (pid == 0) {
		/* A warden writes its own maps, and the supplier is undumpable.
		 */
		prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
		warden_loop_run(*sock, spec);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (pid < 0)
		return err_errno(e, "start a session");
	sys_run_side(pid);
	return pid;
}

_Noreturn void start_run(int sock, const struct jail_spec *spec)
{
	raise_core();
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	procstat_set_title("cellblock-warden", NULL);
	warden_loop_run(sock, spec);
}

int start_apart(const int *keep, size_t n, const char *name, struct err *e)
{
	int null;

	if (setsid() < 0 && errno != EPERM)
		return err_errno(e, "start a session");
	if (ident_close_fds(keep, n, e) < 0)
		return -1;
	null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < 3; fd++)
		if (null < 0 || (fd != null && dup2(null, fd) < 0))
			return err_errno(e, "use /dev/null");
	if (null > 2)
		close(null);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_NAME, name);
	return ident_set_undumpable(e);
}

int start_answer(int asked, int sock, const struct err *e, int flags)
{
	struct start_answer a = {.ok = sock >= 0, .err = *e};

	if (io_send_fds(asked, &a, sizeof(a), &sock, a.ok, flags) == 0)
		return 0;
	/* A guest keeps too many descriptors of this user on their way: this
	 * session is refused, and the next one may not be. */
	if (errno != ETOOMANYREFS || !a.ok)
		return -1;
	a.ok = 0;
	err_errno(&a.err, "hand over the session");
	return io_send_fds(asked, &a, sizeof(a), NULL, 0, flags) < 0 ? -1 : 1;
}

int start_hand_over(int asked, int sock)
{
	return start_answer(asked, sock, &(struct err){0}, MSG_DONTWAIT);
}

_Noreturn void start_become(int asked, const struct jail_spec *spec)
{
	struct err e = {0};
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		err_errno(&e, "start a session");
		start_refuse(asked, &e);
		_exit(1);
	}
	if (start_hand_over(asked, pair[0]) != 0)
		_exit(1);
	close(pair[0]);
	close(asked);
	alarm(0);
	start_run(pair[1], spec);
}

void start_refuse(int asked, const struct err *e)
{
	start_answer(asked, -1, e, MSG_DONTWAIT);
}

int start_receive(int sock, struct err *e)
{
	struct start_answer a;
	int fd = -1;
	ssize_t n = io_recv_fds(sock, &a, sizeof(a), &fd, 1, 0);

	/* A caller that refuses without reading the question resets the
	 * connection; the answer is behind that. */
	if (n < 0 && errno == ECONNRESET)
		n = io_recv_fds(sock, &a, sizeof(a), &fd, 1, 0);
	if (n != (ssize_t)sizeof(a) || (a.ok && fd < 0)) {
		fd_drop(&fd);
		return err_set(e, "the maker is gone");
	}
	if (a.ok)
		return fd;
	fd_drop(&fd);
	a.err.msg[sizeof(a.err.msg) - 1] = '\0';
	a.err.hint[sizeof(a.err.hint) - 1] = '\0';
	if (e)
		*e = a.err;
	return -1;
}
