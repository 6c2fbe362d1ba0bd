/* SPDX-License-Identifier: MIT */
/*
 * courier.c - asks root's service, for a front end that is confined
 *
 * Runs in:   the courier, a child that the front end forked before it was
 *            confined
 * Holds:     what the person holds
 * Trusts:    the process that listens in a directory only root can write to. Of
 *            its front end it reads messages of one size: one that has been
 * taken over can hand in as the person, and nothing else
 * Leaves:    nothing: it ends with its socket
 *
 * The service may be restarted while the session goes on, so each request is a
 * connection of its own. The socket that the service answers with goes to the
 * front end.
 */
#include "repl/maker/maker.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "repl/lab/lab.h"

#include <signal.h>
#include <unistd.h>

static _Noreturn void serve(int sock)
{
	for (;;) {
		auto_close int got = -1;
		struct handin_ask ask;
		struct err e = {0};
		ssize_t n = io_recv_fds(sock, &ask, sizeof(ask), NULL, 0, 0);

		if (n <= 0 || !asked_is_ours(&ask, (size_t)n))
			_exit(0);
		got = fetch_socket(&ask, sizeof(ask), &e);
		if (got < 0)
			jail_refuse(sock, &e);
		else
			jail_hand_over(sock, got);
	}
}

int courier_start(void)
{
	struct err why = {0};
	sigset_t none;
	int sock;

	if (io_fork(&sock) == 0) {
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		if (jail_stand_apart(&sock, 1, "cellblock-hand", &why) < 0)
			_exit(1);
		serve(sock);
	}
	return sock;
}
