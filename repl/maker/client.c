/* SPDX-License-Identifier: MIT */
/*
 * client.c - one request of the maker's, and one jail that is made ahead
 *
 * Runs in:   root: a child of the service, which answers, or becomes the warden
 *            of the session, or keeps a transcript
 * Holds:     everything, until it gives root up as any warden does that root
 *            starts (site.c)
 * Trusts:    the system's configuration, the name service, the kernel's word on
 *            the client's uid. A request is hostile: order.c checks it
 * Leaves:    wardens of sessions, which no longer need the maker; what was handed
 *            in (repl/lab/handin.c)
 *
 * A client can send descriptors whose close() takes as long as the client
 * likes. The kernel refuses to send them, where it can (io_refuse_fds()).
 * Elsewhere we never receive them: a child gives its place up (leave()) and
 * exits, and at an exit no socket lingers. We close() a connection only when
 * it is empty and nothing more can come.
 */
#include "repl/maker/service.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "repl/config/config.h"
#include "repl/config/person.h"
#include "repl/lab/lab.h"
#include "repl/session/session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <syslog.h>
#include <unistd.h>

/* Most requests at a time: of one person; of uids whose accounts are not looked
 * up yet. */
#define PLACES_OF_ONE 8
#define PLACES_OF_UNKNOWN 16
/* Most of them that hand files in, which may take long: in all; of one. */
#define PLACES_TAKE 48
#define PLACES_TAKE_OF_ONE 2
/* A child that has handed a spare over ends so much later. */
#define LINGER_MS 200
/* One person may have one in so many of all sessions and programs. */
#define PART_OF_ONE 4
/* How long a child waits for a request to be sent; and may take for what is
 * handed in. */
#define REQUEST_MS 2000
#define TAKE_ALARM_S 60

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
void client_leave_log(void)
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
	ssize_t n;

	if (!io_await(conn, REQUEST_MS))
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
	/* A person can list the files handed in after the exam, too. */
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

	proctor_forget(end->id);
	account_end(&v->cfg, end);
}

/* So does it when no process of an exam's session is left. */
static void take_home(const struct jail_spec *spec, int home)
{
	const struct maker_client *v = spec->made->arg;

	left_hand_in(&v->cfg, v->person.name, home);
}

/* How many sessions and programs a person may have: a part of the host's. */
static int any_of_person(const struct config *cfg)
{
	int part = cfg->all_sessions / PART_OF_ONE;

	return part > cfg->limits.per_user ? part : cfg->limits.per_user;
}

/* A session counts toward per_user. A program does if the configuration is
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
		.ended = tell_end,
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

/* If `r` is 0, make a socket to the client; else, or if that fails, refuse the
 * client and leave. Returns our end; the client's is in *its. */
static int make_socket(const struct maker_client *v, int conn, int type, int r,
	int *its, struct err *e)
{
	int pair[2];

	if (r == 0 && socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair) < 0)
		r = err_errno(e, "make a socket to the client");
	if (r < 0) {
		jail_refuse(conn, e);
		leave(v->service, v->place);
	}
	io_refuse_fds(pair[1]);
	*its = pair[0];
	return pair[1];
}

static _Noreturn void take_in(const struct maker_client *v, int conn)
{
	struct err e = {0};
	int its, r = admit_taking(v, &e);
	int ours = make_socket(v, conn, SOCK_SEQPACKET, r, &its, &e);

	alarm(TAKE_ALARM_S);
	r = jail_hand_over(conn, its);
	close(its);
	if (r == 0)
		handin_serve(ours, &v->ask, &v->cfg, v->person.name);
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
	int its, r = scribe_open(&scribe, &v->cfg, &of, &e);
	int ours = make_socket(v, conn, SOCK_STREAM, r, &its, &e);

	r = jail_hand_over(conn, its);
	close(its);
	close(conn);
	alarm(0);
	note(v->service, v->place, PLACE_LEFT);
	drop_shared(v->service);
	if (r < 0)
		_exit(1);
	scribe_run(&scribe, ours);
}

/* ---- a child: a request that has come ---- */

_Noreturn void client_serve(
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
	switch (v.wants) {
	case WANTS_HANDIN:
		take_in(&v, conn);
	case WANTS_TRANSCRIPT:
		write_down(&v, conn);
	case WANTS_HOSTS:
		hosts_answer(conn, &v.cfg, v.cred.uid, v.person.name);
		leave(s, mine);
	case WANTS_SESSION:
		break;
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

void client_make_ahead(void *service, enum spec_mode mode,
	enum spec_prewarm prewarm, const struct spare *its,
	struct spare_key *key)
{
	static struct spec_made made;
	static struct jail_spec spec;
	static struct maker_client v;
	struct err e = {0};

	client_leave_log();
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
