/* SPDX-License-Identifier: MIT */
/*
 * service.c - cellblock --maker: sessions for permitted users
 *
 * Runs in:   root, a service of its own; each request in a child of its own,
 *            which becomes the warden of the session (client.c)
 * Holds:     everything
 * Trusts:    its children. The service itself reads nothing that clients send
 * Leaves:    wardens of sessions, which no longer need the maker; no spare
 *            (spares.c). A service manager's socket stays
 *
 * A child waits before the next request comes. An alarm ends every child that
 * has not handed its session over in time. Each child writes its state into a
 * place of shared memory; there is no table of sessions. The parent touches a
 * connection only when it cannot fork a child, to refuse it (refuse()).
 */
#include "repl/maker/service.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/prefault.h"
#include "jail/jail.h"
#include "repl/config/config.h"
#include "repl/config/person.h"
#include "repl/serve/serve.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <syslog.h>

/* A waiting child maps its pages after so long without a request: the last
 * client no longer needs the cores. */
#define QUIET_MS 20
/* The last client has the cores for so long before we fork the next child,
 * unless another client asks. */
#define NEXT_MS 5
/* The pause after a failed fork. */
#define AGAIN_MS 100
/* Most connections that the parent cannot close (refuse()). */
#define UNCLOSED_MAX 64
/* A child may take so long for a request. */
#define ALARM_S 10
/* How often sessions from before an exam are looked for; and how long that may
 * take. */
#define EXAMS_MS 10000
#define EXAMS_ALARM_S 300

/* The cgroup under systemd (etc/systemd/cellblock-sessions.service). */
#define BELOW "system.slice/cellblock-sessions.service"

/* ---- a child: until a request comes ---- */

static nfds_t watch(const struct service *s, struct pollfd *p)
{
	for (int i = 0; i < s->listen.n; i++)
		p[i] = (struct pollfd){
			.fd = s->listen.fds[i], .events = POLLIN};
	return (nfds_t)s->listen.n;
}

static int await(const struct service *s)
{
	struct pollfd p[LISTEN_MAX];
	nfds_t n = watch(s, p);
	int conn, r, quiet_ms = QUIET_MS;

	for (;;) {
		r = poll(p, n, quiet_ms);
		if (r < 0)
			_exit(1);
		if (r == 0) {
			prefault_own();
			quiet_ms = -1;
		}
		for (int i = 0; i < s->listen.n; i++) {
			if (!p[i].revents)
				continue;
			conn = accept4(p[i].fd, NULL, NULL, SOCK_CLOEXEC);
			if (conn >= 0)
				return conn;
		}
	}
}

static _Noreturn void child(struct service *s, struct service_place *mine)
{
	sigset_t none;
	int conn;

	client_leave_log();
	/* A spare in the making ends when the service closes its ends. */
	spares_leave(&s->spares);
	/* While it waits, the child ends with its parent. */
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != s->pid)
		_exit(1);
	sigemptyset(&none);
	signal(SIGALRM, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	conn = await(s);
	alarm(ALARM_S);
	prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
	/* Our session may outlive this maker; the next one listens there. */
	listen_close(&s->listen);
	/* The client may have connected before service_open() said this. */
	io_refuse_fds(conn);
	client_serve(s, mine, conn);
}

/* ---- the parent ---- */

static struct service_place *find(struct service *s, enum service_state state)
{
	for (size_t i = 0; i < PLACES; i++)
		if (s->places[i].state == (int)state)
			return &s->places[i];
	return NULL;
}

static bool somebody_asks(const struct service *s)
{
	struct pollfd p[LISTEN_MAX];

	return poll(p, watch(s, p), 0) > 0;
}

/* Answer a client that no child can be forked. A connection whose unread
 * message may hold descriptors stays open: closing them could take long, see
 * above. */
static void refuse(struct service *s, int conn, const struct err *e)
{
	char byte;

	io_refuse_fds(conn);
	jail_refuse(conn, e);
	shutdown(conn, SHUT_RD);
	while (io_look_at_first(conn) == IO_FIRST_BYTES)
		(void)!recv(conn, &byte, 1, MSG_DONTWAIT);
	if (io_look_at_first(conn) == IO_FIRST_NOTHING)
		close(conn);
	else
		s->unclosed++;
}

static void refuse_all(struct service *s, const struct err *e)
{
	int conn;

	for (int i = 0; i < s->listen.n; i++)
		while (s->unclosed < UNCLOSED_MAX &&
			(conn = accept4(s->listen.fds[i], NULL, NULL,
				 SOCK_CLOEXEC)) >= 0)
			refuse(s, conn, e);
}

/* Fork a child that waits in this place. If the fork fails, refuse the clients
 * that ask now; the others wait for the next try. */
static void start_child(struct service *s, struct service_place *p)
{
	struct err e = {0};
	pid_t pid;

	p->ahead = false;
	p->state = PLACE_WAITS;
	pid = fork();
	if (pid == 0)
		child(s, p);
	s->next_ms = pid < 0 ? now_ms() + AGAIN_MS : 0;
	if (pid < 0) {
		err_errno(&e, "the maker of sessions: start a process");
		if (!s->failed)
			syslog(LOG_ERR, "%s", e.msg);
		p->state = PLACE_FREE;
		refuse_all(s, &e);
	}
	s->failed = pid < 0;
	p->child = pid < 0 ? 0 : pid;
}

/* Fork a child that waits if there is none, and a place is free: at once if a
 * client asks, or else in a moment. */
static void keep_one_waiting(struct service *s)
{
	struct service_place *p =
		find(s, PLACE_WAITS) ? NULL : find(s, PLACE_FREE);

	if (!p) {
		s->next_ms = 0;
		return;
	}
	if (!s->next_ms)
		s->next_ms = now_ms() + NEXT_MS;
	if (now_ms() >= s->next_ms || (!s->failed && somebody_asks(s)))
		start_child(s, p);
}

static void tell_spares(struct service *s)
{
	int n = spares_count(&s->spares);

	if (s->tell && n != s->told)
		fprintf(stderr, "spare jails: %d\n", n);
	s->told = n;
}

/* The person's front end logs the session's end. The count of spares without
 * the one that the session got comes first: a reader may wait for the next. */
static void log_made(struct service *s, const struct service_place *p)
{
	static const char form[] = "%s (uid %u): a session as host id %u%s";
	const char *more = p->ahead ? ", made ahead" : "";

	if (p->logged)
		syslog(LOG_INFO, form, p->name, p->uid, p->id, more);
	if (s->tell) {
		tell_spares(s);
		fprintf(stderr, form, p->name, p->uid, p->id, more);
		fputc('\n', stderr);
	}
}

/* Free the places of children that have become wardens, or have refused. */
static void take_left(struct service *s)
{
	for (size_t i = 0; i < PLACES; i++) {
		struct service_place *p = &s->places[i];

		if (p->state != PLACE_MADE && p->state != PLACE_LEFT)
			continue;
		if (p->state == PLACE_MADE) {
			log_made(s, p);
			if (p->session)
				hosts_note(p->id, p->name);
			spares_rest(&s->spares, true);
		}
		p->child = 0;
		p->state = PLACE_FREE;
	}
}

/* Reap children, also those that have become wardens. */
static void reap(struct service *s)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
		/* It may have become a warden since we looked. */
		take_left(s);
		spares_reap(&s->spares, pid);
		if (pid == s->proctor)
			s->proctor = 0;
		for (size_t i = 0; i < PLACES; i++)
			if (s->places[i].child == pid) {
				s->places[i].child = 0;
				s->places[i].state = PLACE_FREE;
			}
	}
}

/* 1: a signal ends the service. */
static int take_signals(struct service *s)
{
	struct signalfd_siginfo si;
	int enough = 0;

	while (read(s->signals, &si, sizeof(si)) == (ssize_t)sizeof(si))
		enough |= si.ssi_signo != SIGCHLD && si.ssi_signo != SIGUSR1;
	take_left(s);
	reap(s);
	if (find(s, PLACE_ASKS) || find(s, PLACE_WORKS))
		spares_rest(&s->spares, false);
	return enough;
}

/* For poll(2). */
static int timeout_ms(struct service *s)
{
	int spares_ms = spares_timeout_ms(&s->spares);
	int64_t left = s->next_ms - now_ms();
	int next_ms = left > 0 ? (int)left : 0;

	int64_t exams_ms = s->exams_ms - now_ms();

	if (s->next_ms && (spares_ms < 0 || next_ms < spares_ms))
		spares_ms = next_ms;
	if (spares_ms >= 0 && spares_ms < exams_ms)
		return spares_ms;
	return exams_ms > 0 ? (int)exams_ms : 0;
}

/* See to it from time to time that nobody goes on in an exam with a session
 * from before. */
static void look_after_exams(struct service *s)
{
	if (now_ms() < s->exams_ms)
		return;
	s->exams_ms = now_ms() + EXAMS_MS;
	if (s->proctor || !proctor_is_wanted())
		return;
	s->proctor = fork();
	if (s->proctor == 0) {
		client_leave_log();
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		signal(SIGALRM, SIG_DFL);
		alarm(EXAMS_ALARM_S);
		proctor_look();
		_exit(0);
	}
	if (s->proctor < 0)
		s->proctor = 0;
}

static int loop(struct service *s, struct err *e)
{
	struct pollfd p[2 + LISTEN_MAX] = {
		{.fd = s->signals, .events = POLLIN}};
	nfds_t n;

	for (;;) {
		keep_one_waiting(s);
		spares_turn(&s->spares);
		look_after_exams(s);
		tell_spares(s);
		p[1] = spares_poll(&s->spares);
		n = 2 + (s->next_ms && !s->failed ? watch(s, p + 2) : 0);
		if (poll(p, n, timeout_ms(s)) < 0 && errno != EINTR)
			return err_errno(e, "wait for requests");
		if (p[0].revents && take_signals(s))
			return 0;
	}
}

static int take_over_signals(struct service *s, struct err *e)
{
	static const int ours[] = {SIGCHLD, SIGUSR1, SIGTERM, SIGINT, SIGHUP};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < COUNT(ours); i++)
		sigaddset(&set, ours[i]);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	s->signals = sigprocmask(SIG_SETMASK, &set, NULL) < 0
			     ? -1
			     : signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->signals < 0 ? err_errno(e, "watch for signals") : 0;
}

/* Any user may ask, so any user may search the directory (0711). */
static int make_dir(struct err *e)
{
	if ((mkdir(SERVICE_DIR, 0711) < 0 && errno != EEXIST) ||
		chmod(SERVICE_DIR, 0711) < 0)
		return err_errno(e, "make " SERVICE_DIR);
	return 0;
}

/* Read once how many spares to keep, and whether there are other hosts. With a
 * faulty configuration there are no sessions either. */
static int open_spares(struct service *s, struct err *e)
{
	static const struct person nobody;
	static struct config cfg;
	int most = policy_load(&nobody, &cfg, e) == 0 ? cfg.spares : 0;

	if (cfg.hosts)
		hosts_start();
	config_fini(&cfg);
	return spares_open(&s->spares, most, client_make_ahead, s, e);
}

static int service_open(struct service *s, const char *path, struct err *e)
{
	struct person root = {0};
	void *shared;
	int passed;

	if (geteuid() != 0) {
		err_set(e, "--maker makes sessions for others, and only root "
			   "can");
		err_hint(e, "as root, or: systemctl enable --now "
			    "cellblock.socket");
		return err_kind_set(e, ERR_USAGE);
	}
	if (make_dir(e) < 0)
		return -1;
	passed = listen_open_packets(&s->listen, path, SERVICE_PATH, e);
	if (passed < 0)
		return -1;
	if (!passed)
		s->path = path ? path : SERVICE_PATH;
	for (int i = 0; i < s->listen.n; i++)
		io_refuse_fds(s->listen.fds[i]);
	s->below = passed ? BELOW : NULL;
	shared = mmap(NULL, PLACES * sizeof(*s->places), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return err_errno(e, "start the maker of sessions");
	s->places = shared;
	s->pid = getpid();
	openlog(LOG_NAME, LOG_NDELAY | LOG_PID, LOG_AUTHPRIV);
	/* We reap the janitor of a session, which outlives its warden. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return err_errno(e, "start the maker of sessions");
	/* Load the name service's libraries once, and not in each child. */
	person_find(&root, 0);
	person_free(&root);
	/* Sessions that use up their memory make the kernel drop pages of
	 * files, ours too. All logins would wait for the process that reads
	 * such a page again, and it may get no CPU time. Without the right to
	 * lock memory we go on. */
	mlockall(MCL_CURRENT);
	return take_over_signals(s, e) < 0 ? -1 : open_spares(s, e);
}

int service_run(const char *path, bool quiet, bool tells, struct err *e)
{
	/* next_ms: fork the first child at once. */
	struct service s = {.tell = tells, .signals = -1, .next_ms = 1};
	int r = service_open(&s, path, e);

	if (r == 0 && !quiet)
		fprintf(stderr, "cellblock: making sessions at %s\n",
			s.listen.shown);
	if (r == 0)
		r = loop(&s, e);
	for (size_t i = 0; s.places && i < PLACES; i++)
		if (s.places[i].state == PLACE_WAITS)
			kill(s.places[i].child, SIGKILL);
	spares_close(&s.spares);
	fd_drop(&s.signals);
	if (s.path)
		unlink(s.path);
	/* Our exit closes the socket and its queue: see the head. */
	return r;
}
