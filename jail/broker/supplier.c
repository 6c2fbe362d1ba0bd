/* SPDX-License-Identifier: MIT */
/*
 * supplier.c - a process that starts wardens for a front end that can no longer
 * fork
 *
 * Runs in:   the supplier, a child that the front end forked before it was
 *            confined
 * Holds:     what the front end held at its start: as root, everything
 * Trusts:    the configuration it was forked with. It reads from its front end
 *            two numbers, in messages of one size: a front end that has been
 *            taken over gets sessions as the configuration allows them, at
 *            most so many at a time, and nothing else
 * Leaves:    nothing: it ends with its own socket, and each warden with the
 *            socket that was handed over
 */
#include "broker.h"

#include "jail/base/err.h"
#include "jail/base/io.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* From a session's last word to its end as a process. */
#define END_MS 100

struct supplier {
	int sock;
	int deaths; /* a signalfd: of sessions */
	const struct supplier_offer *offer;
	pid_t front;
	int living;
};

static int watch_deaths(struct supplier *s, struct err *e)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	s->deaths = sigprocmask(SIG_BLOCK, &set, NULL) < 0
			    ? -1
			    : signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->deaths < 0 ? err_errno(e, "watch for deaths") : 0;
}

static void reap_sessions(struct supplier *s)
{
	struct signalfd_siginfo si;

	(void)!read(s->deaths, &si, sizeof(si));
	while (waitpid(-1, NULL, WNOHANG) > 0)
		s->living--;
}

/* The front end may know a moment before us that one has ended. */
static int has_room(struct supplier *s)
{
	reap_sessions(s);
	if (s->living >= s->offer->most && io_await(s->deaths, END_MS))
		reap_sessions(s);
	return s->living < s->offer->most;
}

static void start_session(struct supplier *s, const struct supplier_question *q,
	int *sock, struct err *e)
{
	struct jail_spec spec = *s->offer->spec;

	if (q->python >= s->offer->npythons || (unsigned)q->mode > SPEC_CELL)
		err_set(e, "malformed request");
	else if (!has_room(s))
		err_set(e, "there are %d sessions already", s->living);
	if (e->msg[0])
		return;
	spec.python = s->offer->pythons[q->python];
	spec.mode = q->mode;
	spec.prewarm = SPEC_AHEAD;
	spec.unbuffered = 1;
	spec.front = s->front;
	spec.parent = getpid();
	s->living += start_warden(&spec, sock, e) > 0;
}

static _Noreturn void leave(const struct supplier *s)
{
	if (s->offer->gone)
		s->offer->gone(s->offer->arg);
	_exit(0);
}

static void answer_question(struct supplier *s)
{
	auto_close int sock = -1;
	struct supplier_question q;
	struct err e = {0};
	ssize_t n = io_recv_fds(s->sock, &q, sizeof(q), NULL, 0, 0);

	if (n != (ssize_t)sizeof(q))
		leave(s);
	start_session(s, &q, &sock, &e);
	if (start_answer(s->sock, sock, &e, 0) < 0)
		leave(s);
}

static _Noreturn void serve_front(struct supplier *s)
{
	struct pollfd p[2] = {{.fd = s->sock, .events = POLLIN},
		{.fd = s->deaths, .events = POLLIN}};

	for (;;) {
		if (poll(p, 2, -1) < 0)
			_exit(1);
		if (p[1].revents)
			reap_sessions(s);
		if (p[0].revents)
			answer_question(s);
	}
}

pid_t supplier_start(
	const struct supplier_offer *offer, int *sock, struct err *e)
{
	struct supplier s = {.offer = offer, .front = getpid()};
	struct err why = {0};
	pid_t pid = io_fork(sock);

	if (pid == 0) {
		s.sock = *sock;
		if (start_apart(&s.sock, 1, "cellblock-suppl", &why) < 0 ||
			watch_deaths(&s, &why) < 0)
			_exit(1);
		serve_front(&s);
	}
	return pid < 0 ? err_errno(e, "start the supplier of jails") : pid;
}

/* ---- its front end ---- */

int supplier_ask(int sock, const struct supplier_question *q, struct err *e)
{
	if (io_send_fds(sock, q, sizeof(*q), NULL, 0, 0) == 0)
		return 0;
	return err_errno(e, "ask for a session");
}
