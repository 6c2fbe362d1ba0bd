/* SPDX-License-Identifier: MIT */
/*
 * maker.c - make sessions for a front end that can no longer fork
 *
 * Runs in:   maker_make(): the front end, or the maker; all else: the maker, a
 *            child that the front end forked before it was confined
 * Holds:     what the front end held at its start: as root, everything
 * Trusts:    the configuration it was forked with. Of its front end it reads
 *            three numbers, in messages of one size: a front end that has been
 *            taken over gets sessions as the configuration allows them, at
 *            most so many at a time, and nothing else
 * Leaves:    wardens, each of which ends with the socket that was handed over;
 *            itself it ends with its own socket
 */
#include "maker.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/sys.h"
#include "jail/walls/walls.h"
#include "jail/warden/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* From a session's last word to its end as a process. */
#define END_MS 100

/* To a question; it brings the socket when `ok`. */
struct maker_answer {
	int ok;
	struct err err;
};

/* ---- a warden ---- */

/* The kernel counts the descriptors on their way through sockets for each user,
 * and refuses more than RLIMIT_NOFILE of the sender. A guest, with a limit of
 * its own, can keep as many on their way: ours must not be refused for it. */
static void raise_descriptors(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
}

/* A guest's limit is 1: with 0 the kernel dumps more (plan.c). Root may have 1
 * whatever the limit was. */
static void raise_core(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_CORE, &r) == 0 && r.rlim_max == 0)
		setrlimit(RLIMIT_CORE, &(struct rlimit){1, 1});
}

pid_t maker_make(const struct jail_spec *spec, int *sock, struct err *e)
{
	sigset_t all, before;
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, "start a session");
	raise_descriptors();
	raise_core();
	/* A Ctrl-C of the terminal's is for the caller's group. The warden is
	 * in it until it has one of its own. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid == 0) {
		/* A warden writes its own maps, and the maker is undumpable. */
		prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
		warden_loop_run(pair[1], spec);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return err_errno(e, "start a session");
	}
	sys_run_side(pid);
	*sock = pair[0];
	return pid;
}

_Noreturn void maker_run(int sock, const struct jail_spec *spec)
{
	raise_descriptors();
	raise_core();
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	warden_loop_run(sock, spec);
}

int maker_hand_over(int asked, int sock)
{
	struct maker_answer a = {.ok = 1};

	return io_send_fds(asked, &a, sizeof(a), &sock, 1, MSG_DONTWAIT);
}

_Noreturn void maker_become(int asked, const struct jail_spec *spec)
{
	struct err e = {0};
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		err_errno(&e, "start a session");
		maker_refuse(asked, &e);
		_exit(1);
	}
	if (maker_hand_over(asked, pair[0]) < 0)
		_exit(1);
	close(pair[0]);
	close(asked);
	alarm(0);
	maker_run(pair[1], spec);
}

void maker_refuse(int asked, const struct err *e)
{
	struct maker_answer a = {.ok = 0, .err = *e};

	io_send_fds(asked, &a, sizeof(a), NULL, 0, MSG_DONTWAIT);
}

/* ---- the maker ---- */

struct maker {
	int sock;
	int deaths; /* a signalfd: of sessions */
	const struct maker_offer *offer;
	pid_t front;
	int living;
};

/* Nothing of the front end's but the one socket; a session of our own, so that
 * no key of the terminal ends us before the front end. */
static int detach_from_front(int sock, struct err *e)
{
	int null;

	if (setsid() < 0 && errno != EPERM)
		return err_errno(e, "start a session");
	if (ident_close_fds(&sock, 1, e) < 0)
		return -1;
	null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < 3; fd++)
		if (null < 0 || (fd != null && dup2(null, fd) < 0))
			return err_errno(e, "use /dev/null");
	if (null > 2)
		close(null);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_NAME, "cellblock-maker");
	return ident_set_undumpable(e);
}

static int watch_deaths(struct maker *m, struct err *e)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	m->deaths = sigprocmask(SIG_BLOCK, &set, NULL) < 0
			    ? -1
			    : signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return m->deaths < 0 ? err_errno(e, "watch for deaths") : 0;
}

static void reap_sessions(struct maker *m)
{
	struct signalfd_siginfo si;

	(void)!read(m->deaths, &si, sizeof(si));
	while (waitpid(-1, NULL, WNOHANG) > 0)
		m->living--;
}

/* The front end may know a moment before us that one has ended. */
static int has_room(struct maker *m)
{
	struct pollfd p = {.fd = m->deaths, .events = POLLIN};

	reap_sessions(m);
	if (m->living >= m->offer->most && poll(&p, 1, END_MS) > 0)
		reap_sessions(m);
	return m->living < m->offer->most;
}

static pid_t make_session(struct maker *m, const struct maker_question *q,
	int *sock, struct err *e)
{
	struct jail_spec spec = *m->offer->spec;
	pid_t pid;

	if (q->python >= m->offer->npythons || (unsigned)q->mode > SPEC_CELL)
		return err_set(e, "malformed request");
	if (!has_room(m))
		return err_set(e, "there are %d sessions already", m->living);
	spec.python = m->offer->pythons[q->python];
	spec.mode = q->mode;
	spec.hurried = q->hurried != 0;
	spec.unbuffered = 1;
	spec.early = q->mode == SPEC_SESSION;
	spec.front = m->front;
	spec.maker = getpid();
	pid = maker_make(&spec, sock, e);
	m->living += pid > 0;
	return pid;
}

static void answer_question(struct maker *m)
{
	struct maker_answer a = {.ok = 0};
	auto_close int sock = -1;
	struct maker_question q;
	ssize_t n = io_recv_fds(m->sock, &q, sizeof(q), NULL, 0, 0);

	if (n != (ssize_t)sizeof(q))
		_exit(0);
	a.ok = make_session(m, &q, &sock, &a.err) > 0;
	if (io_send_fds(m->sock, &a, sizeof(a), &sock, a.ok, 0) < 0)
		_exit(0);
}

static _Noreturn void serve_front(struct maker *m)
{
	struct pollfd p[2] = {{.fd = m->sock, .events = POLLIN},
		{.fd = m->deaths, .events = POLLIN}};

	for (;;) {
		if (poll(p, 2, -1) < 0)
			_exit(1);
		if (p[1].revents)
			reap_sessions(m);
		if (p[0].revents)
			answer_question(m);
	}
}

pid_t maker_start(const struct maker_offer *offer, int *sock, struct err *e)
{
	struct maker m = {.offer = offer, .front = getpid()};
	struct err why = {0};
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, "start the maker");
	pid = fork();
	if (pid == 0) {
		m.sock = pair[1];
		if (detach_from_front(pair[1], &why) < 0 ||
			watch_deaths(&m, &why) < 0)
			_exit(1);
		serve_front(&m);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return err_errno(e, "start the maker");
	}
	*sock = pair[0];
	return pid;
}

/* ---- its front end ---- */

int maker_ask(int sock, const struct maker_question *q, struct err *e)
{
	if (io_send_fds(sock, q, sizeof(*q), NULL, 0, 0) == 0)
		return 0;
	return err_errno(e, "ask for a session");
}

int maker_answer(int sock, struct err *e)
{
	struct maker_answer a;
	int fd = -1;
	ssize_t n = io_recv_fds(sock, &a, sizeof(a), &fd, 1, 0);

	/* A caller that refuses without reading the question resets the
	 * connection; the answer is behind that. */
	if (n < 0 && errno == ECONNRESET)
		n = io_recv_fds(sock, &a, sizeof(a), &fd, 1, 0);
	if (n != (ssize_t)sizeof(a) || (a.ok && fd < 0)) {
		fd_drop(&fd);
		return err_set(e, "make a session: the maker is gone");
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
