/* SPDX-License-Identifier: MIT */
/*
 * service.c - cellblock --maker: sessions for permitted users
 *
 * Runs in:   root, a service of its own; each request in a child of its own,
 *            which becomes the warden of the session
 * Holds:     everything, until the child gives root up as any warden does that
 *            root starts (site.c)
 * Trusts:    the system's configuration, the name service, the kernel's word on
 *            the client's uid. A request is hostile: order.c checks it
 * Leaves:    wardens of sessions, which no longer need the maker; what was handed
 *            in (repl/lab/handin.c); no spare (spares.c). A service manager's
 *            socket stays
 *
 * A child waits before the next request comes. An alarm ends every child that
 * has not handed its session over in time. Each child writes its state into a
 * place of shared memory; there is no table of sessions. The parent touches a
 * connection only when it cannot fork a child, to refuse it (refuse()).
 *
 * A client can send descriptors whose close() takes as long as the client
 * likes. The kernel refuses to send them, where it can (io_refuse_fds()).
 * Elsewhere we never receive them: a child gives its place up (leave()) and
 * exits, and at an exit no socket lingers. We close() a connection only when
 * it is empty and nothing more can come.
 */
#include "repl/maker/maker.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/prefault.h"
#include "jail/jail.h"
#include "repl/config/config.h"
#include "repl/config/person.h"
#include "repl/lab/lab.h"
#include "repl/serve/serve.h"
#include "repl/session/session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <syslog.h>

/* Most requests at a time: in all; of one person; of uids whose accounts are
 * not looked up yet. */
#define PLACES 64
#define PLACES_OF_ONE 8
#define PLACES_OF_UNKNOWN 16
/* Most of them that hand files in, which may take long: in all; of one. */
#define PLACES_TAKE 48
#define PLACES_TAKE_OF_ONE 2
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
/* A child that has handed a spare over ends so much later. */
#define LINGER_MS 200
/* One person may have one in so many of all sessions and programs. */
#define PART_OF_ONE 4
/* How long a child waits for a request to be sent, and may take for it all. */
#define REQUEST_MS 2000
#define ALARM_S 10
#define TAKE_ALARM_S 60
/* How often sessions from before an exam are looked for; and how long that may
 * take. */
#define EXAMS_MS 10000
#define EXAMS_ALARM_S 300

#define LOG_NAME "cellblock-maker"

/* The cgroup under systemd (etc/systemd/cellblock-sessions.service). */
#define BELOW "system.slice/cellblock-sessions.service"

enum service_state {
	PLACE_FREE,
	PLACE_WAITS, /* for a request */
	PLACE_ASKS,  /* the name service, who `uid` is */
	PLACE_WORKS, /* for `uid` */
	PLACE_TAKES, /* what `uid` hands in */
	PLACE_MADE,  /* a session that has host id `id` */
	PLACE_LEFT,  /* by a child that has refused, and ends */
};

/* While the child lives and is neither PLACE_MADE nor PLACE_LEFT, only the
 * child writes here. */
struct service_place {
	_Atomic int state;
	uid_t uid, id;
	bool logged, ahead, session;
	char name[64];
	pid_t child; /* only the parent writes it */
};

struct service {
	struct listen listen;
	struct service_place *places; /* shared with the children */
	int signals;		      /* a signalfd */
	struct spares spares;
	int64_t next_ms;  /* when to fork the next child that waits; 0: one
			   * waits, or no place is free */
	bool failed;	  /* the last fork failed */
	int unclosed;	  /* connections (refuse()) */
	int64_t exams_ms; /* when to look at exams again */
	pid_t proctor;	  /* looks; 0: nobody does */
	pid_t pid;
	const char *below;
	const char *path; /* of a socket that we made; NULL: there is none */
	bool tell;
};

enum service_wants {
	WANTS_SESSION,
	WANTS_HANDIN,
	WANTS_TRANSCRIPT,
	WANTS_HOSTS
};

/* A client and its request. */
struct maker_client {
	struct ucred cred;
	struct person person;
	struct config cfg; /* the system's, for this person */
	struct setup setup;
	union {
		struct order order;
		struct handin_ask ask;
		struct scribe_ask scribe;
		struct hosts_ask hosts;
	};
	enum service_wants wants;
	struct service *service;
	struct service_place *place;
};

/* A child closes the connection to syslog while its number is that. A warden
 * and a janitor close all that they do not know, and syslog(3) would then close
 * whatever has got the number since. It connects again where it is used. */
static void leave_log(void)
{
	closelog();
	openlog(LOG_NAME, LOG_PID, LOG_AUTHPRIV);
}

/* ---- a child: one request ---- */

/* A person has an account. Any user can own thousands of uids without one
 * (subuid(5)), and each would count as another person. */
static int find_person(struct maker_client *v, struct err *e)
{
	uid_t uid = v->cred.uid;

	person_find(&v->person, uid);
	if (!v->person.name) {
		err_set(e,
			"cellblock-maker refuses uid %u, which has no account",
			uid);
		err_hint(e, "getent passwd %u", uid);
		return err_kind_set(e, ERR_CONFIG);
	}
	v->place->state = PLACE_WORKS;
	person_find_groups(&v->person, uid);
	return 0;
}

static int look_up(struct maker_client *v, struct err *e)
{
	const struct config *cfg = &v->cfg;
	uid_t uid = v->cred.uid;

	if (find_person(v, e) < 0 || policy_load(&v->person, &v->cfg, e) < 0)
		return -1;
	if (uid >= cfg->uids.lo && uid <= cfg->uids.hi) {
		err_set(e, "cellblock-maker refuses uid %u, which is for jails",
			uid);
		err_hint(e, "jail.uids (%s)", config_source(cfg, "jail.uids"));
	} else if (cfg->maker == MAKER_OFF) {
		err_set(e, "cellblock-maker refuses user %.60s",
			v->person.name);
		err_hint(e, "session.maker = off (%s)",
			config_source(cfg, "session.maker"));
	} else {
		return 0;
	}
	return err_kind_set(e, ERR_CONFIG);
}

static int receive(int conn, struct maker_client *v, struct err *e)
{
	struct pollfd p = {.fd = conn, .events = POLLIN};
	ssize_t n;

	if (poll(&p, 1, REQUEST_MS) <= 0)
		return err_set(e, "no request came");
	if (io_look_at_first(conn) == IO_FIRST_FDS)
		return err_set(e, "read a request: it holds descriptors");
	n = io_recv_fds(
		conn, &v->order, sizeof(v->order), NULL, 0, MSG_DONTWAIT);
	if (n > 0 && asked_is_ours(&v->ask, (size_t)n))
		v->wants = WANTS_HANDIN;
	else if (n > 0 && scribe_is_asked(&v->scribe, (size_t)n))
		v->wants = WANTS_TRANSCRIPT;
	else if (n > 0 && hosts_is_asked(&v->hosts, (size_t)n))
		v->wants = WANTS_HOSTS;
	if (n < 0)
		return err_errno(e, "read a request");
	/* From here on the client can send nothing more. */
	if (shutdown(conn, SHUT_RD) < 0 && errno != ENOTCONN)
		return err_errno(e, "read a request");
	if (io_look_at_first(conn) != IO_FIRST_NOTHING)
		return err_set(e, "read a request: more than one came");
	if (v->wants == WANTS_HOSTS)
		return 0;
	/* What was handed in is shown after the exam, too. */
	if (!(v->wants == WANTS_HANDIN && v->ask.kind == HANDIN_LIST) &&
		policy_keep_exam(&v->cfg, e) < 0)
		return -1;
	if (v->wants != WANTS_SESSION)
		return 0;
	if (hosts_check(&v->cfg, e) < 0)
		return -1;
	if (order_check(&v->order, (size_t)n, &v->cfg, e) < 0)
		return -1;
	return order_check_files(&v->order, e);
}

static void note(const struct service *s, struct service_place *p,
	enum service_state state)
{
	p->state = (int)state;
	if (getppid() == s->pid)
		kill(s->pid, SIGUSR1);
}

/* Give up the place, then exit: closing unread descriptors may block. */
static _Noreturn void leave(const struct service *s, struct service_place *mine)
{
	note(s, mine, PLACE_LEFT);
	_exit(0);
}

/* A warden keeps nothing that it shares with the parent. */
static void drop_shared(struct service *s)
{
	munmap(s->places, PLACES * sizeof(*s->places));
	spares_forget(&s->spares);
}

static void account_for(const struct maker_client *v, uid_t id)
{
	const struct account_begin b = {.id = id,
		.name = v->person.name,
		.uid = v->cred.uid,
		.front = v->cred.pid,
		.mode = (enum spec_mode)v->order.mode,
		.number = v->order.number,
		.from = v->order.from};

	account_begin(&v->cfg, &b);
	proctor_note(id, v->cred.uid, v->cred.pid, v->cfg.exam_end_s);
}

/* The warden, which this process is now, calls this before it gives root up. */
static void tell(const struct jail_spec *spec, uid_t id)
{
	const struct maker_client *v = spec->made->arg;

	account_for(v, id);
	v->place->id = id;
	note(v->service, v->place, PLACE_MADE);
	drop_shared(v->service);
}

/* The janitor of the session calls this. */
static void tell_end(const struct jail_spec *spec, const struct spec_end *end)
{
	const struct maker_client *v = spec->made->arg;

	account_end(&v->cfg, end);
}

/* So does it when no process of an exam's session is left. */
static void take_home(const struct jail_spec *spec, int home)
{
	const struct maker_client *v = spec->made->arg;

	policy_exam_ended(&v->cfg);
	left_hand_in(&v->cfg, v->person.name, home);
}

/* How many sessions and programs a person may have: a part of the host's. */
static int any_of_person(const struct config *cfg)
{
	int part = cfg->all_sessions / PART_OF_ONE;

	return part > cfg->limits.per_user ? part : cfg->limits.per_user;
}

/* A session counts toward per_user. So does a program if the configuration is
 * locked: a login can start as many programs as it likes. */
static void make_spec(const struct maker_client *v, struct spec_made *made,
	struct jail_spec *spec)
{
	const struct config *cfg = &v->cfg;
	bool counts = v->order.mode == SPEC_SESSION || cfg->locked;

	order_spec(&v->order, cfg, (struct setup *)&v->setup, spec);
	*made = (struct spec_made){.person = v->cred.uid,
		.most_of_person = counts ? v->order.limits.per_user : 0,
		.any_of_person = any_of_person(cfg),
		.most = cfg->all_sessions,
		.memory_bytes = cfg->all_memory,
		.reserve_bytes = cfg->reserve,
		.below = v->service->below,
		.tell = tell,
		.ended = cfg->accounting ? tell_end : NULL,
		.accounting = cfg->accounting,
		.left = v->order.mode == SPEC_SESSION && exam_hands_in(cfg)
				? take_home
				: NULL,
		.arg = v};
	spec->front = v->cred.pid;
	spec->parent = v->service->pid;
	spec->made = made;
}

/* True if our request and the others at work are not too many. */
static bool has_room(const struct service *s, uid_t uid)
{
	int unknown = 0, same = 0;

	for (size_t i = 0; i < PLACES; i++) {
		const struct service_place *p = &s->places[i];
		bool asks = p->state == PLACE_ASKS;

		unknown += asks;
		same += (asks || p->state == PLACE_WORKS) && p->uid == uid;
	}
	return unknown <= PLACES_OF_UNKNOWN && same <= PLACES_OF_ONE;
}

/* Find out who asks, and note it in our place. */
static int admit(struct maker_client *v, int conn, struct err *e)
{
	const struct service *s = v->service;
	socklen_t n = sizeof(v->cred);

	if (getsockopt(conn, SOL_SOCKET, SO_PEERCRED, &v->cred, &n) < 0)
		return err_errno(e, "find out who asks");
	v->place->uid = v->cred.uid;
	note(s, v->place, PLACE_ASKS);
	if (!has_room(s, v->cred.uid)) {
		err_set(e, "too many requests for sessions at a time");
		e->code = EAGAIN;
		return err_kind_set(e, ERR_BUSY);
	}
	return 0;
}

/* If a spare fits, hand it over and exit. */
static void hand_spare_over(
	const struct maker_client *v, int conn, const struct jail_spec *spec)
{
	struct spare spare;
	struct err e = {0};
	int r = spares_lease(
		&v->service->spares, spec, &spare, &v->place->id, &e);

	if (r == 0)
		return;
	if (r < 0)
		jail_refuse(conn, &e);
	else
		account_for(v, v->place->id);
	v->place->ahead = true;
	r = r < 0 ? r : spare_hand_over(&spare, conn);
	if (r == 0)
		note(v->service, v->place, PLACE_MADE);
	spare_close(&spare);
	close(conn);
	/* Our exit would take a core from the session that begins now. */
	if (r == 0)
		poll(NULL, 0, LINGER_MS);
	_exit(0);
}

/* ---- a child: it takes what is handed in ---- */

/* Note that we take something; -1 with e: too many do. */
static int admit_taking(const struct maker_client *v, struct err *e)
{
	int all = 0, same = 0;

	note(v->service, v->place, PLACE_TAKES);
	for (size_t i = 0; i < PLACES; i++) {
		const struct service_place *p = &v->service->places[i];

		all += p->state == PLACE_TAKES;
		same += p->state == PLACE_TAKES && p->uid == v->cred.uid;
	}
	if (all <= PLACES_TAKE && same <= PLACES_TAKE_OF_ONE)
		return 0;
	err_set(e, "too many hand something in at this moment");
	e->code = EAGAIN;
	return err_kind_set(e, ERR_BUSY);
}

static _Noreturn void take_in(const struct maker_client *v, int conn)
{
	struct err e = {0};
	int pair[2], r = admit_taking(v, &e);

	if (r == 0 &&
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		r = err_errno(&e, "take what is handed in");
	if (r < 0) {
		jail_refuse(conn, &e);
		leave(v->service, v->place);
	}
	io_refuse_fds(pair[1]);
	alarm(TAKE_ALARM_S);
	r = jail_hand_over(conn, pair[0]);
	close(pair[0]);
	if (r == 0)
		handin_serve(pair[1], &v->ask, &v->cfg, v->person.name);
	leave(v->service, v->place);
}

/* ---- a child: it keeps a transcript ---- */

static _Noreturn void write_down(const struct maker_client *v, int conn)
{
	const struct scribe_of of = {.name = v->person.name,
		.uid = v->cred.uid,
		.front = v->cred.pid};
	struct scribe scribe;
	struct err e = {0};
	int pair[2], r = scribe_open(&scribe, &v->cfg, &of, &e);

	if (r == 0 &&
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		r = err_errno(&e, "keep a transcript");
	if (r < 0) {
		jail_refuse(conn, &e);
		leave(v->service, v->place);
	}
	io_refuse_fds(pair[1]);
	r = jail_hand_over(conn, pair[0]);
	close(pair[0]);
	close(conn);
	alarm(0);
	note(v->service, v->place, PLACE_LEFT);
	drop_shared(v->service);
	if (r < 0)
		_exit(1);
	scribe_run(&scribe, pair[1]);
}

/* ---- a child: a request that has come ---- */

static _Noreturn void serve(
	struct service *s, struct service_place *mine, int conn)
{
	static struct maker_client v;
	static struct spec_made made;
	static struct jail_spec spec;
	struct err e = {0};

	v.service = s;
	v.place = mine;
	if (admit(&v, conn, &e) < 0 || look_up(&v, &e) < 0 ||
		receive(conn, &v, &e) < 0) {
		jail_refuse(conn, &e);
		leave(s, mine);
	}
	if (v.wants == WANTS_HANDIN)
		take_in(&v, conn);
	if (v.wants == WANTS_TRANSCRIPT)
		write_down(&v, conn);
	if (v.wants == WANTS_HOSTS) {
		hosts_answer(conn, &v.cfg, v.cred.uid, v.person.name);
		leave(s, mine);
	}
	make_spec(&v, &made, &spec);
	mine->logged = v.cfg.syslog;
	mine->session = spec.mode == SPEC_SESSION;
	snprintf(mine->name, sizeof(mine->name), "%s", v.person.name);
	/* The janitor of a spare does not know whose home it will have. */
	if (!made.left)
		hand_spare_over(&v, conn, &spec);
	/* Without a spare, `-e` is a program like any other. */
	if (spec.mode == SPEC_CELL)
		spec.mode = SPEC_PROGRAM;
	jail_become(conn, &spec);
}

/* ---- a child: it makes a spare ---- */

static void make_ahead(void *service, enum spec_mode mode,
	enum spec_prewarm prewarm, const struct spare *its,
	struct spare_key *key)
{
	static struct spec_made made;
	static struct jail_spec spec;
	static struct maker_client v;
	struct err e = {0};

	leave_log();
	v.service = service;
	if (policy_load(&v.person, &v.cfg, &e) < 0)
		return;
	order_fill_all(&v.order, mode, &v.cfg);
	make_spec(&v, &made, &spec);
	spec.prewarm = mode == SPEC_PROGRAM ? prewarm : SPEC_AHEAD;
	if (spare_key_fill(key, &spec) < 0)
		return;
	drop_shared(service);
	spare_become(its, &spec);
}

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

	leave_log();
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
	serve(s, mine, conn);
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

/* The person's front end logs the session's end. */
static void log_made(const struct service *s, const struct service_place *p)
{
	static const char form[] = "%s (uid %u): a session as host id %u%s";
	const char *more = p->ahead ? ", made ahead" : "";

	if (p->logged)
		syslog(LOG_INFO, form, p->name, p->uid, p->id, more);
	if (s->tell) {
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

static void tell_spares(const struct service *s, int *told)
{
	int n = spares_count(&s->spares);

	if (s->tell && n != *told)
		fprintf(stderr, "spare jails: %d\n", n);
	*told = n;
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
		leave_log();
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
	int told = 0;
	nfds_t n;

	for (;;) {
		keep_one_waiting(s);
		spares_turn(&s->spares);
		look_after_exams(s);
		tell_spares(s, &told);
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
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
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
	static struct maker_client v;
	int most = policy_load(&v.person, &v.cfg, e) == 0 ? v.cfg.spares : 0;

	if (v.cfg.hosts)
		hosts_start();
	config_fini(&v.cfg);
	return spares_open(&s->spares, most, make_ahead, s, e);
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
