/* SPDX-License-Identifier: MIT */
/*
 * connections.c - clients: their sockets, their places and their time
 *
 * Runs in:   front end, confined but for connections_open()
 * Holds:     a descriptor for each client
 * Trusts:    nobody
 * Leaves:    no client that takes more than that and a bounded time
 *
 * framing.c reads what a client sends; what is wrong is answered here. Bytes
 * behind the end of a request stay in the kernel until that request is
 * answered, so there is one request of a client at a time. An answer is asked
 * for in pieces, as the client takes them.
 */
#include "repl/serve/parts.h"

#include "jail/base/err.h"
#include "jail/base/io.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* Milliseconds: between requests; for a first byte, when the server ends; for a
 * head; for a body and for an answer, and the bytes that buy one more of these;
 * to read what was still being sent. */
#define IDLE_MS 60000
#define FRESH_MS 1000
#define FRAMING_MS 20000
#define PATIENCE_MS 60000
#define BYTES_A_MS 64
#define LINGER_MS 2000
#define SWEEP_MS 1000
#define PIECE (64 << 10)
#define EVENTS 64
/* Most clients that we still accept when the server ends. */
#define LAST_CLIENTS 4096
/* In what an event carries, instead of a pointer. */
#define LISTENS UINT64_C(1)

enum phase {
	PHASE_IDLE, /* no byte of a request */
	PHASE_HEAD,
	PHASE_BODY,
	PHASE_WAIT, /* for its answer, or the rest of it */
	PHASE_LAST, /* what is owed, and then the end */
	PHASE_LINGER,
	PHASE_GONE,
};

struct connections_client {
	struct connections *connections;
	struct connections_client *next, *before;
	int fd;
	uint32_t events; /* watched */
	struct connections_peer peer;
	enum phase phase;
	void *own;    /* of the request */
	bool goes_on; /* there is more of its answer */
	enum connections_more said;
	bool known; /* has asked for something */
	struct framing head;
	struct strbuf out; /* owed */
	size_t sent;
	int64_t since_ms, bytes; /* of this phase */
	int64_t slow_ms; /* since when it took no piece that it is owed; or 0 */
	int64_t owed_ms; /* how long before, of this answer */
	int64_t slow_bytes; /* it has taken of this answer */
};

struct connections {
	struct connections_calls calls;
	const int *fds; /* they listen */
	int nfds, epoll;
	size_t most, n;
	struct connections_client *clients, *gone;
	struct subids subids;
	int64_t swept_ms;
	bool full; /* nobody is accepted until somebody goes */
};

static void enter(struct connections_client *c, enum phase phase)
{
	c->phase = phase;
	c->since_ms = now_ms();
	c->bytes = 0;
}

/* ---- who comes ---- */

static struct connections_peer find_peer(const struct connections *g, int fd)
{
	struct sockaddr_storage a = {0};
	const struct sockaddr_in *v4 = (const void *)&a;
	const struct sockaddr_in6 *v6 = (const void *)&a;
	socklen_t n = sizeof(a);
	struct ucred who = {0};
	struct connections_peer p = {0};
	uint32_t mapped;

	if (getpeername(fd, (void *)&a, &n) < 0)
		return p;
	p.family = a.ss_family;
	n = sizeof(who);
	if (a.ss_family == AF_INET) {
		p.key = v4->sin_addr.s_addr;
	} else if (a.ss_family == AF_INET6 &&
		   IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
		p.family = AF_INET;
		memcpy(&mapped, &v6->sin6_addr.s6_addr[12], sizeof(mapped));
		p.key = mapped;
	} else if (a.ss_family == AF_INET6) {
		memcpy(&p.key, &v6->sin6_addr, sizeof(p.key));
	} else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0) {
		p.key = subids_key(&g->subids, who.uid);
	}
	return p;
}

int connections_add(struct connections *g, int fd)
{
	struct connections_client *c = calloc(1, sizeof(*c));
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
	int on = 1;

	if (!c || epoll_ctl(g->epoll, EPOLL_CTL_ADD, fd, &ev) < 0) {
		close(fd);
		free(c);
		return -1;
	}
	/* An answer's last bytes would wait for an acknowledgement. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	c->connections = g;
	c->fd = fd;
	c->events = ev.events;
	c->peer = find_peer(g, fd);
	enter(c, PHASE_IDLE);
	c->next = g->clients;
	if (c->next)
		c->next->before = c;
	g->clients = c;
	g->n++;
	return 0;
}

/* ---- who goes ---- */

/* Its request is over. */
static void forget(struct connections_client *c)
{
	if (c->own)
		c->connections->calls.over(c->connections->calls.arg, c);
	c->own = NULL;
	c->goes_on = false;
	c->said = CONNECTIONS_MORE;
}

/* It is freed later: another event may still name it. */
static void drop(struct connections_client *c)
{
	struct connections *g = c->connections;

	if (c->phase == PHASE_GONE)
		return;
	c->phase = PHASE_GONE;
	forget(c);
	fd_drop(&c->fd);
	framing_reset(&c->head);
	strbuf_free(&c->out);
	*(c->before ? &c->before->next : &g->clients) = c->next;
	if (c->next)
		c->next->before = c->before;
	c->next = g->gone;
	g->gone = c;
	g->n--;
}

static void free_gone(struct connections *g)
{
	struct connections_client *next;

	for (; g->gone; g->gone = next) {
		next = g->gone->next;
		free(g->gone);
	}
}

/* ---- what is waited for ---- */

static bool wants_bytes(const struct connections_client *c)
{
	return c->phase <= PHASE_BODY && c->out.n == 0;
}

/* True if nothing can be done for it but wait for its answer. */
static bool waits(const struct connections_client *c)
{
	return c->phase == PHASE_WAIT && c->out.n == 0 && !c->goes_on;
}

/* The clock of what it is owed runs on, or stops. */
static void time_answer(struct connections_client *c, bool owed)
{
	int64_t now = now_ms();

	if (c->slow_ms)
		c->owed_ms += now - c->slow_ms;
	c->slow_ms = owed ? now : 0;
}

static void watch(struct connections_client *c)
{
	struct epoll_event ev = {.data.ptr = c};

	if (waits(c))
		ev.events |= EPOLLRDHUP;
	if (wants_bytes(c) || c->phase == PHASE_LINGER)
		ev.events |= EPOLLIN;
	if (c->out.n > 0 || (c->phase == PHASE_WAIT && c->goes_on))
		ev.events |= EPOLLOUT;
	if (!(ev.events & EPOLLOUT) != !c->slow_ms)
		time_answer(c, ev.events & EPOLLOUT);
	if (c->events != ev.events)
		epoll_ctl(c->connections->epoll, EPOLL_CTL_MOD, c->fd, &ev);
	c->events = ev.events;
}

/* ---- no ---- */

void connections_answer(struct connections_client *c, struct strbuf *answer)
{
	c->own = NULL;
	forget(c);
	/* The rest of an earlier answer goes first. */
	strbuf_add(&c->out, answer->s ? answer->s : "", answer->n);
	strbuf_free(answer);
	enter(c, PHASE_LAST);
	watch(c);
}

/* No answer to its request has begun. */
static void refuse(struct connections_client *c, int status, const char *words)
{
	const struct connections_calls *calls = &c->connections->calls;
	struct strbuf b = {0};

	calls->refuse(calls->arg, &c->head, status, words, &b);
	forget(c);
	connections_answer(c, &b);
}

/* ---- bytes in ---- */

/* The head is whole. */
static void begin(struct connections_client *c)
{
	const struct connections_calls *calls = &c->connections->calls;
	const struct framing *h = &c->head;

	enter(c, PHASE_BODY);
	calls->head(calls->arg, c);
	if (!c->own && c->phase == PHASE_BODY)
		refuse(c, 503, "out of memory");
	else if (c->phase == PHASE_BODY && h->values[FRAMING_EXPECT] &&
		 !h->old && h->state != FRAMING_OVER)
		strbuf_puts(&c->out, "HTTP/1.1 100 Continue\r\n\r\n");
}

/* Pass the parts of a request that have come to the caller. */
static void pass_on(struct connections_client *c)
{
	const struct connections_calls *calls = &c->connections->calls;
	struct strbuf *body = &c->head.body;

	if (c->phase < PHASE_BODY && framing_is_whole(&c->head))
		begin(c);
	if (c->own && body->n > 0)
		calls->data(calls->arg, c, body->s, body->n);
	strbuf_free(body);
	if (c->own && c->head.state == FRAMING_OVER) {
		enter(c, PHASE_WAIT);
		calls->whole(calls->arg, c);
	}
}

static void follow_head(struct connections_client *c)
{
	if (c->phase == PHASE_IDLE)
		enter(c, PHASE_HEAD);
	pass_on(c);
	if (c->phase < PHASE_LAST && c->head.state == FRAMING_WRONG)
		refuse(c, c->head.status, c->head.words);
}

static void end_of_input(struct connections_client *c)
{
	if (c->phase == PHASE_IDLE)
		drop(c);
	else
		refuse(c, 400, "the request ends before its end");
}

static void take_bytes(struct connections_client *c)
{
	static char buf[PIECE];
	ssize_t n = recv(c->fd, buf, sizeof(buf), MSG_PEEK | MSG_DONTWAIT);

	if (n == 0) {
		end_of_input(c);
	} else if (n < 0 && errno != EAGAIN) {
		drop(c);
	} else if (n > 0) {
		n = (ssize_t)framing_take(&c->head, buf, (size_t)n);
		c->bytes += n;
		c->known = true;
		recv(c->fd, buf, (size_t)n, MSG_DONTWAIT);
		follow_head(c);
	}
}

/* ---- bytes out ---- */

static void take_answer(struct connections_client *c)
{
	const struct connections_calls *calls = &c->connections->calls;

	c->said = calls->more(calls->arg, c, &c->out);
	c->goes_on = c->said == CONNECTIONS_MORE && c->out.n > 0;
	if (c->said == CONNECTIONS_BROKEN || c->out.failed)
		drop(c);
}

/* The next request may come in, unless that was the last. */
static void end_answer(struct connections_client *c)
{
	enum phase phase =
		c->said == CONNECTIONS_LAST ? PHASE_LAST : PHASE_IDLE;

	forget(c);
	framing_reset(&c->head);
	c->slow_ms = c->owed_ms = c->slow_bytes = 0;
	enter(c, phase);
}

static void send_owed(struct connections_client *c)
{
	ssize_t n = send(c->fd, c->out.s + c->sent, c->out.n - c->sent,
		MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0 && errno != EAGAIN) {
		drop(c);
		return;
	}
	c->sent += n > 0 ? (size_t)n : 0;
	c->slow_bytes += n > 0 ? n : 0;
	if (c->sent < c->out.n)
		return;
	strbuf_free(&c->out);
	c->sent = 0;
	time_answer(c, true);
}

/* Read what is left: the kernel resets a connection that is closed with unread
 * bytes, and the client may lose our answer. */
static void linger(struct connections_client *c)
{
	static char buf[PIECE];
	ssize_t n;

	if (c->phase == PHASE_LAST) {
		shutdown(c->fd, SHUT_WR);
		enter(c, PHASE_LINGER);
	}
	n = recv(c->fd, buf, sizeof(buf), MSG_DONTWAIT);
	if (n == 0 || (n < 0 && errno != EAGAIN))
		drop(c);
}

/* ---- a turn ---- */

static void serve(struct connections_client *c)
{
	if (wants_bytes(c))
		take_bytes(c);
	if (c->phase == PHASE_WAIT && c->goes_on && c->out.n == 0)
		take_answer(c);
	if (c->phase != PHASE_GONE && c->out.n > 0)
		send_owed(c);
	if (c->phase == PHASE_WAIT && c->said > CONNECTIONS_MORE &&
		c->out.n == 0)
		end_answer(c);
	if (c->phase == PHASE_LINGER ||
		(c->phase == PHASE_LAST && c->out.n == 0))
		linger(c);
	if (c->phase != PHASE_GONE)
		watch(c);
}

/* ---- places ---- */

/* Eviction priority when all places are taken. 0: never; the client waits for
 * our answer. */
static int spareness(const struct connections_client *c)
{
	if (c->phase <= PHASE_HEAD || c->phase == PHASE_LINGER)
		return 2;
	return c->phase == PHASE_BODY || c->out.n > 0 ||
			       connections_stalled_ms(c) >
				       CONNECTIONS_STALLED_MS
		       ? 1
		       : 0;
}

/* The client that has kept us waiting for longest; NULL: none. */
static struct connections_client *find_spare(const struct connections *g)
{
	struct connections_client *best = NULL;

	for (struct connections_client *c = g->clients; c; c = c->next) {
		int more = spareness(c) - (best ? spareness(best) : 0);

		if (more > 0 ||
			(best && more == 0 && c->since_ms <= best->since_ms))
			best = c;
	}
	return best;
}

static void send_away(struct connections_client *c)
{
	if (c->phase == PHASE_HEAD || c->phase == PHASE_BODY) {
		refuse(c, 503, "too many clients");
		send_owed(c);
	}
	drop(c);
}

/* Let clients in, or not; how: EPOLL_CTL_ADD at first. */
static int watch_listen(struct connections *g, int how, bool on)
{
	g->full = !on;
	for (int i = 0; i < g->nfds; i++) {
		struct epoll_event ev = {.events = on ? EPOLLIN : 0};

		ev.data.u64 = (uint64_t)i << 1 | LISTENS;
		if (epoll_ctl(g->epoll, how, g->fds[i], &ev) < 0)
			return -1;
	}
	return 0;
}

/* When all places are taken, who comes gets a spare one. Where there is none,
 * or descriptors run out, nobody is let in until the next sweep. */
static bool accept_one(struct connections *g, int from)
{
	struct connections_client *spare =
		g->n < g->most ? NULL : find_spare(g);
	int fd;

	if (g->n >= g->most && !spare) {
		watch_listen(g, EPOLL_CTL_MOD, false);
		return false;
	}
	fd = accept4(from, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0 && (errno == EAGAIN || errno == ECONNABORTED))
		return false;
	if (fd < 0) {
		spare = find_spare(g);
		watch_listen(g, EPOLL_CTL_MOD, false);
	}
	if (spare)
		send_away(spare);
	return fd >= 0 && connections_add(g, fd) == 0;
}

static void accept_some(struct connections *g, int from, int most)
{
	while (most-- > 0 && accept_one(g, from))
		;
}

/* ---- time ---- */

static void check_time(struct connections_client *c, int64_t now)
{
	int64_t took = now - c->since_ms;

	if (c->slow_ms && now - c->slow_ms + c->owed_ms >
				  PATIENCE_MS + c->slow_bytes / BYTES_A_MS)
		drop(c);
	else if ((c->phase == PHASE_IDLE && took > IDLE_MS) ||
		 (c->phase == PHASE_LINGER && took > LINGER_MS))
		drop(c);
	else if (c->phase == PHASE_HEAD && took > FRAMING_MS)
		refuse(c, 408, "the head of the request took too long");
	else if (c->phase == PHASE_BODY &&
		 took > PATIENCE_MS + c->bytes / BYTES_A_MS)
		refuse(c, 408, "the body of the request took too long");
	else
		return;
	if (c->phase != PHASE_GONE)
		serve(c);
}

static void sweep(struct connections *g)
{
	struct connections_client *next;
	int64_t now = now_ms();

	if (now - g->swept_ms < SWEEP_MS)
		return;
	g->swept_ms = now;
	for (struct connections_client *c = g->clients; c; c = next) {
		next = c->next;
		check_time(c, now);
	}
	if (g->full)
		watch_listen(g, EPOLL_CTL_MOD, true);
}

/* True if nobody is there to be answered. A client that sends no more counts so
 * while it waits: most that do are gone. */
static bool is_end(const struct connections_client *c, uint32_t events)
{
	return (events & (EPOLLHUP | EPOLLERR)) ||
	       (waits(c) && (events & EPOLLRDHUP));
}

void connections_turn(struct connections *g)
{
	struct epoll_event ev[EVENTS];
	int n = epoll_wait(g->epoll, ev, EVENTS, 0);

	for (int i = 0; i < n; i++) {
		struct connections_client *c = ev[i].data.ptr;

		if (ev[i].data.u64 & LISTENS)
			accept_some(g, g->fds[ev[i].data.u64 >> 1], EVENTS);
		else if (c->phase == PHASE_GONE)
			continue;
		else if (is_end(c, ev[i].events))
			drop(c);
		else
			serve(c);
	}
	sweep(g);
	free_gone(g);
}

/* ---- open, close ---- */

int connections_open(struct connections **out, const int *fds, int nfds,
	int clients, const struct connections_calls *calls, struct err *e)
{
	struct connections *g = calloc(1, sizeof(*g));

	if (!g)
		return err_errno(e, "serve");
	g->calls = *calls;
	g->fds = fds;
	g->nfds = nfds;
	g->most = (size_t)clients;
	subids_load(&g->subids, SUBIDS_PATH);
	g->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (g->epoll < 0 || watch_listen(g, EPOLL_CTL_ADD, true) < 0) {
		err_errno(e, "serve: wait for clients");
		connections_close(g);
		return -1;
	}
	*out = g;
	return 0;
}

void connections_drain(struct connections *g)
{
	for (int i = 0; i < g->nfds; i++) {
		/* A client in the backlog may have sent a request. */
		accept_some(g, g->fds[i], LAST_CLIENTS);
		epoll_ctl(g->epoll, EPOLL_CTL_DEL, g->fds[i], NULL);
	}
	g->nfds = 0;
	g->full = false;
}

void connections_close(struct connections *g)
{
	if (!g)
		return;
	connections_drain(g);
	while (g->clients)
		drop(g->clients);
	free_gone(g);
	fd_drop(&g->epoll);
	subids_free(&g->subids);
	free(g);
}

size_t connections_clients(const struct connections *g)
{
	return g->n;
}

bool connections_owes(const struct connections *g)
{
	int64_t now = now_ms();

	for (const struct connections_client *c = g->clients; c; c = c->next)
		if (c->out.n > 0 ||
			(c->phase > PHASE_IDLE && c->phase < PHASE_LAST) ||
			(!c->known && now - c->since_ms < FRESH_MS))
			return true;
	return false;
}

int connections_fd(const struct connections *g)
{
	return g->epoll;
}

/* ---- one client ---- */

struct connections_peer connections_peer(const struct connections_client *c)
{
	return c->peer;
}

bool connections_is_same(struct connections_peer a, struct connections_peer b)
{
	return a.family == b.family && a.key == b.key;
}

int64_t connections_stalled_ms(const struct connections_client *c)
{
	return c->slow_ms ? now_ms() - c->slow_ms : 0;
}

void connections_leave(struct connections_client *c)
{
	drop(c);
}

const struct framing *connections_head(const struct connections_client *c)
{
	return &c->head;
}

void connections_set_own(struct connections_client *c, void *own)
{
	c->own = own;
}

void *connections_own(const struct connections_client *c)
{
	return c->own;
}

void connections_go_on(struct connections_client *c)
{
	c->goes_on = true;
	watch(c);
}
