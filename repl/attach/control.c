/* SPDX-License-Identifier: MIT */
/*
 * control.c - a session's own socket and its clients
 *
 * Runs in:   front end; opened before it confines itself
 * Holds:     the socket that listens, the link to the client, the connections
 *            of a few clients
 * Trusts:    nobody. We drop a connection unread unless its peer is the person
 *            or root (SO_PEERCRED). A client proves with a descriptor that it
 *            comes from no jail, and we check its request. No client makes us
 *            wait: we drop one that stalls or floods
 * Leaves:    no socket behind
 */
#include "attach.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "repl/term/term.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* Clients at a time. One without a request makes room after CALLER_MS. */
#define CALLERS 8
#define CALLER_MS 2000

struct caller {
	struct control_request v; /* fd -1: free */
	int64_t since_ms;
	bool whole; /* waits for control_take() */
};

struct control {
	int link;   /* SOCK_SEQPACKET to the client; -1: no client */
	bool stops; /* the client can stop: a shell waits for it */
	int listener, dir, ns, events, timer;
	int id;
	uid_t uid;
	char place[PATH_MAX];
	bool due;
	struct caller callers[CALLERS];
};

struct control *control_new(int link)
{
	struct control *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->link = link;
	d->stops = job_has_shell(); /* the client is our parent */
	d->listener = d->dir = d->ns = d->events = d->timer = -1;
	d->uid = geteuid();
	for (size_t i = 0; i < CALLERS; i++)
		d->callers[i].v.fd = -1;
	return d;
}

void control_drop(struct control_request *v)
{
	for (int i = 0; i < v->nfds; i++)
		fd_drop(&v->fds[i]);
	v->nfds = 0;
	fd_drop(&v->fd);
}

void control_free(struct control *d)
{
	if (!d)
		return;
	if (d->listener >= 0)
		rundir_remove(d->dir, d->id);
	for (size_t i = 0; i < CALLERS; i++)
		control_drop(&d->callers[i].v);
	fd_drop(&d->listener);
	fd_drop(&d->dir);
	fd_drop(&d->ns);
	fd_drop(&d->events);
	fd_drop(&d->timer);
	fd_drop(&d->link);
	free(d);
}

int control_open(struct control *d, const struct rundir_of *of, bool server,
	struct err *e)
{
	d->ns = query_namespace(e);
	if (d->ns < 0)
		return -1;
	d->id = server ? RUNDIR_SESSIONS + 1 : 1;
	d->listener = rundir_bind(of, &d->dir, d->place, &d->id, e);
	return d->listener < 0 ? -1 : 0;
}

bool control_is_open(const struct control *d)
{
	return d && d->listener >= 0;
}

bool control_is_named(const struct control *d)
{
	char name[16];
	struct stat st;

	snprintf(name, sizeof(name), "%d", d->id);
	return fstatat(d->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

int control_id(const struct control *d)
{
	return d->id;
}

const char *control_place(const struct control *d)
{
	return d->place;
}

/* ---- clients ---- */

static void add_event(const struct control *d, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};

	epoll_ctl(d->events, EPOLL_CTL_ADD, fd, &ev);
}

static void remove_event(const struct control *d, int fd)
{
	epoll_ctl(d->events, EPOLL_CTL_DEL, fd, NULL);
}

/* A free place; if there is none, we drop the oldest connection. */
static struct caller *make_room(struct control *d, int64_t now)
{
	struct caller *oldest = &d->callers[0];

	for (size_t i = 0; i < CALLERS; i++) {
		struct caller *v = &d->callers[i];

		if (v->v.fd >= 0 && !v->whole && now - v->since_ms > CALLER_MS)
			control_drop(&v->v);
		if (v->v.fd < 0)
			return v;
		if (v->since_ms < oldest->since_ms)
			oldest = v;
	}
	control_drop(&oldest->v);
	return oldest;
}

static void accept_one(struct control *d)
{
	struct ucred who = {0};
	socklen_t n = sizeof(who);
	struct caller *v;
	auto_close int fd =
		accept4(d->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0 ||
		(who.uid != d->uid && who.uid != 0))
		return;
	v = make_room(d, now_ms());
	*v = (struct caller){.since_ms = now_ms(),
		.v = {.fd = fd_take(&fd), .uid = who.uid, .pid = who.pid}};
	add_event(d, v->v.fd);
}

bool control_check(struct attach_request *r, size_t n)
{
	static const size_t ends[] = {
		offsetof(struct attach_request, term) - 1,
		offsetof(struct attach_request, colorterm) - 1,
		offsetof(struct attach_request, no_color) - 1,
		offsetof(struct attach_request, from) - 1,
		sizeof(struct attach_request) - 1,
	};

	if (n < ATTACH_HEAD || r->magic != ATTACH_MAGIC)
		return false;
	if (n < sizeof(*r))
		memset((char *)r + n, 0, sizeof(*r) - n);
	for (size_t i = 0; i < COUNT(ends); i++)
		((char *)r)[ends[i]] = '\0';
	return true;
}

static bool is_our_namespace(const struct control *d, int fd)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && fstat(d->ns, &b) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static void read_caller(struct control *d, struct caller *v)
{
	struct control_request *w = &v->v;
	char buf[2 * sizeof(w->request)];
	ssize_t n = io_recv_fds(
		w->fd, buf, sizeof(buf), w->fds, ATTACH_FDS, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	remove_event(d, w->fd);
	w->nfds = ATTACH_FDS;
	w->n = n > 0 ? (size_t)n : 0;
	if (w->n > sizeof(w->request))
		w->n = sizeof(w->request);
	memcpy(&w->request, buf, w->n);
	if (!control_check(&w->request, w->n) || w->fds[0] < 0 ||
		!is_our_namespace(d, w->fds[0])) {
		control_drop(w);
		return;
	}
	v->whole = true;
}

/* The client was stopped, and brings its terminal back: its link becomes the
 * connection of a request. */
static void take_link(struct control *d, struct control_request *v)
{
	struct caller *c = make_room(d, now_ms());

	remove_event(d, d->link);
	*c = (struct caller){.v = *v, .since_ms = now_ms(), .whole = true};
	c->v.fd = fd_take(&d->link);
	c->v.linked = true;
}

/* Read what the client says; the link's end is SIGHUP. */
static void read_link(struct control *d, struct signals *sig)
{
	struct control_request v = {.fd = -1, .uid = d->uid};
	struct attach_request *r = &v.request;
	ssize_t n = io_recv_fds(d->link, r, sizeof(*r), v.fds + 1,
		ATTACH_FDS - 1, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		fd_drop(&d->link);
		terminal_signals_take(sig, SIGHUP);
		return;
	}
	v.fds[0] = -1;
	v.nfds = ATTACH_FDS;
	v.n = (size_t)n;
	if (control_check(r, v.n) && r->kind == ATTACH_ATTACH) {
		take_link(d, &v);
		return;
	}
	if (control_check(r, v.n) && r->kind == ATTACH_SIGNAL)
		terminal_signals_take(sig, r->number);
	control_drop(&v);
}

static void read_timer(struct control *d)
{
	uint64_t times;

	if (read(d->timer, &times, sizeof(times)) == sizeof(times))
		d->due = true;
}

static void take_event(struct control *d, int fd, struct signals *sig)
{
	if (fd == d->link) {
		read_link(d, sig);
		return;
	}
	if (fd == d->timer) {
		read_timer(d);
		return;
	}
	if (fd == d->listener) {
		accept_one(d);
		return;
	}
	for (size_t i = 0; i < CALLERS; i++)
		if (d->callers[i].v.fd == fd && !d->callers[i].whole)
			read_caller(d, &d->callers[i]);
}

static void take_events(void *arg, struct signals *sig)
{
	struct control *d = arg;
	struct epoll_event ev[CALLERS + 4];
	int n = epoll_wait(d->events, ev, CALLERS + 4, 0);

	for (int i = 0; i < n; i++)
		take_event(d, ev[i].data.fd, sig);
}

int control_watch(struct control *d, struct signals *sig, struct err *e)
{
	d->events = epoll_create1(EPOLL_CLOEXEC);
	d->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (d->events < 0 || d->timer < 0)
		return err_errno(e, "watch the terminal");
	add_event(d, sig->fd);
	add_event(d, d->timer);
	if (d->link >= 0)
		add_event(d, d->link);
	if (d->listener >= 0)
		add_event(d, d->listener);
	terminal_signals_through(sig, d->events, take_events, d);
	return 0;
}

int control_take(struct control *d, int kind, struct control_request *out)
{
	struct caller *first = NULL;

	for (size_t i = 0; i < CALLERS; i++) {
		struct caller *v = &d->callers[i];

		if (v->v.fd >= 0 && v->whole &&
			(!kind || v->v.request.kind == kind) &&
			(!first || v->since_ms < first->since_ms))
			first = v;
	}
	if (!first)
		return 0;
	*out = first->v;
	first->v.fd = -1;
	first->v.nfds = 0;
	first->whole = false;
	return 1;
}

bool control_has(int client)
{
	char byte;
	ssize_t n = recv(client, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return n > 0 || (n < 0 && errno == EAGAIN);
}

bool control_is_same_build(const struct control_request *v)
{
	return v->request.version == ATTACH_VERSION &&
	       v->n == sizeof(v->request);
}

bool control_is_called(const struct control *d)
{
	for (size_t i = 0; i < CALLERS; i++) {
		if (d->callers[i].v.fd >= 0 && d->callers[i].whole)
			return true;
	}
	return false;
}

/* ---- answers ---- */

static void send_answer(int fd, enum attach_word word, int number,
	const char *text, const struct attach_status *st)
{
	struct attach_answer a = {.magic = ATTACH_MAGIC,
		.version = ATTACH_VERSION,
		.word = (uint16_t)word,
		.number = number};

	if (text)
		snprintf(a.text, sizeof(a.text), "%s", text);
	if (st)
		a.status = *st;
	io_send_fds(fd, &a, sizeof(a), NULL, 0, MSG_DONTWAIT);
}

void control_answer(struct control_request *v, enum attach_word word,
	const char *text, const struct attach_status *st)
{
	send_answer(v->fd, word, 0, text, st);
	control_drop(v);
}

int control_hand(int client, int fd, const char *why)
{
	struct attach_answer a = {.magic = ATTACH_MAGIC,
		.version = ATTACH_VERSION,
		.word = fd >= 0 ? ATTACH_OK : ATTACH_NO};

	snprintf(a.text, sizeof(a.text), "%s", why);
	return io_send_fds(client, &a, sizeof(a), &fd, fd >= 0, MSG_DONTWAIT);
}

int control_keep(struct control *d, struct control_request *v)
{
	struct epoll_event ev = {
		.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.fd = v->fd};
	int kept = fd_take(&v->fd);

	send_answer(kept, ATTACH_OK, WATCHER_STREAM, NULL, NULL);
	epoll_ctl(d->events, EPOLL_CTL_ADD, kept, &ev);
	control_drop(v);
	return kept;
}

bool control_listens(int kept)
{
	char byte;

	return recv(kept, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
	       (errno == EAGAIN || errno == EINTR);
}

void control_link(struct control *d, struct control_request *v)
{
	if (d->link >= 0)
		close(d->link);
	d->link = fd_take(&v->fd);
	d->stops = v->request.number != 0;
	add_event(d, d->link);
	send_answer(d->link, ATTACH_OK, 0, NULL, NULL);
	control_drop(v);
}

void control_leave(
	struct control *d, enum attach_word word, int number, const char *text)
{
	if (d->link < 0)
		return;
	send_answer(d->link, word, number, text, NULL);
	fd_drop(&d->link);
}

bool control_stops(const struct control *d)
{
	return d->link >= 0 && d->stops;
}

void control_stop(struct control *d, bool whole)
{
	send_answer(d->link, ATTACH_STOP, whole, NULL, NULL);
}

void control_alarm(struct control *d, int64_t ms)
{
	const struct itimerspec t = {.it_value = {.tv_sec = ms / 1000,
					     .tv_nsec = ms % 1000 * 1000000}};

	d->due = false;
	timerfd_settime(d->timer, 0, &t, NULL);
}

bool control_is_due(const struct control *d)
{
	return d->due;
}
