/* SPDX-License-Identifier: MIT */
/*
 * connections.c - clients: their sockets, their slots and their timeouts
 *
 * Runs in:   front end, confined but for connections_open()
 * Holds:     a descriptor for each client
 * Trusts:    nobody
 * Leaves:    no client that stays for more than a bounded time
 *
 * framing.c parses what a client sends; this file answers malformed requests.
 * Bytes behind the end of a request stay in the kernel until that request is
 * answered, so a client has one request at a time. We ask the caller for the
 * next piece of an answer when the client has taken the last.
 *
 * At a socket in the file system a client can send descriptors, whose close()
 * takes as long as the client likes. The kernel refuses to send them, where it
 * can (io_refuse_fds()). Elsewhere nobody receives them, or closes a connection
 * in which one lies: the client keeps its slot.
 */
#include "repl/serve/edge/edge.h"

#include "jail/base/err.h"
#include "jail/base/io.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* Longest time between two requests. */
#define IDLE_MS 60000
/* When the server ends: for the first byte of a new client. */
#define FRESH_MS 1000
/* For a head. */
#define FRAMING_MS 20000
/* For a body, and for an answer; so many bytes add a millisecond. */
#define PATIENCE_MS 60000
#define BYTES_A_MS 64
/* For what the client still sends after our last answer. */
#define LINGER_MS 2000
#define SWEEP_MS 1000
#define PIECE (64 << 10)
#define EVENTS 64
/* Most clients that we still accept when the server ends. */
#define LAST_CLIENTS 4096
/* Marks an event of a listening socket. Others carry a pointer, which is even.
 */
#define LISTENS UINT64_C(1)

enum phase {
	PHASE_IDLE, /* no byte of a request */
	PHASE_HEAD,
	PHASE_BODY,
	PHASE_WAIT, /* for our answer, or the rest of it */
	PHASE_LAST, /* we send the last bytes, then close */
	PHASE_LINGER,
	PHASE_GONE,
};

struct connections_client {
	struct connections *connections;
	struct connections_client *next, *before;
	int fd;
	uint32_t events; /* watched */
	struct connections_peer peer;
	char name[INET6_ADDRSTRLEN];
	enum phase phase;
	void *own;    /* the caller's, of the request */
	bool goes_on; /* more() has bytes */
	enum connections_more said;
	bool known; /* has sent a byte */
	struct framing head;
	int64_t asked_ns;  /* when its first byte came */
	struct strbuf out; /* to be sent */
	size_t sent;
	int64_t since_ms, bytes; /* begin of the phase, bytes received in it */
	int64_t slow_ms;    /* since when a piece waits for the client; or 0 */
	int64_t owed_ms;    /* how long earlier pieces of the answer waited */
	int64_t slow_bytes; /* bytes of the answer that the client took */
};

struct connections {
	struct connections_calls calls;
	const int *fds; /* listening */
	int nfds, epoll;
	size_t most, n;
	struct connections_client *clients, *gone;
	struct subids subids;
	int64_t swept_ms;
	bool full; /* we accept no client until the next sweep */
};

/* ---- bytes in which a descriptor may lie ---- */

/* Look at the first bytes, at most PIECE: as recv(2). *fds: a descriptor lies
 * in them or right behind. */
static ssize_t peek_bytes(int fd, char *buf, bool *fds)
{
	struct iovec iov = {.iov_base = buf, .iov_len = PIECE};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n = recvmsg(fd, &m, MSG_PEEK | MSG_DONTWAIT);

	*fds = n >= 0 && m.msg_flags & MSG_CTRUNC;
	return n;
}

/* True if what the client has sent holds a descriptor; if not, nothing is left
 * of it. */
static bool holds_descriptors(int fd)
{
	static char buf[PIECE];
	ssize_t n;
	bool fds;

	shutdown(fd, SHUT_RD);
	while ((n = peek_bytes(fd, buf, &fds)) > 0 && !fds)
		recv(fd, buf, (size_t)n, MSG_DONTWAIT);
	return fds;
}

static void enter_phase(struct connections_client *c, enum phase phase)
{
	c->phase = phase;
	c->since_ms = now_ms();
	c->bytes = 0;
}

/* ---- new clients ---- */

static void find_peer(const struct connections *g, struct connections_client *c)
{
	struct sockaddr_storage a = {0};
	const struct sockaddr_in *v4 = (const void *)&a;
	const struct sockaddr_in6 *v6 = (const void *)&a;
	socklen_t n = sizeof(a);
	const struct in6_addr *ip = &v6->sin6_addr;
	struct ucred who = {0};
	uint32_t v4_key;

	if (getpeername(c->fd, (void *)&a, &n) < 0)
		return;
	c->peer.family = a.ss_family;
	n = sizeof(who);
	v4_key = v4->sin_addr.s_addr;
	if (a.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(ip)) {
		c->peer.family = AF_INET;
		memcpy(&v4_key, &ip->s6_addr[12], sizeof(v4_key));
	}
	if (c->peer.family == AF_INET) {
		c->peer.key = v4_key;
		inet_ntop(AF_INET, &v4_key, c->name, sizeof(c->name));
	} else if (a.ss_family == AF_INET6) {
		memcpy(&c->peer.key, ip, sizeof(c->peer.key));
		inet_ntop(AF_INET6, ip, c->name, sizeof(c->name));
	} else if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0) {
		c->peer.key = subids_key(&g->subids, who.uid);
		snprintf(c->name, sizeof(c->name), "uid:%u", who.uid);
	}
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
	/* Without this the last bytes of an answer wait for an acknowledgement.
	 */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	c->connections = g;
	c->fd = fd;
	c->events = ev.events;
	find_peer(g, c);
	if (c->peer.family == AF_UNIX) {
		io_refuse_fds(fd);
		/* peek_bytes() does not see urgent bytes that are not inline.
		 */
		setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
	}
	enter_phase(c, PHASE_IDLE);
	c->next = g->clients;
	if (c->next)
		c->next->before = c;
	g->clients = c;
	g->n++;
	return 0;
}

/* ---- clients that go ---- */

static void end_request(struct connections_client *c)
{
	if (c->own)
		c->connections->calls.over(c->connections->calls.arg, c);
	c->own = NULL;
	c->goes_on = false;
	c->said = CONNECTIONS_MORE;
}

/* Close the connection, unless a descriptor lies in it. */
static void close_client(struct connections_client *c)
{
	struct connections *g = c->connections;

	if (c->peer.family == AF_UNIX && holds_descriptors(c->fd)) {
		epoll_ctl(g->epoll, EPOLL_CTL_DEL, c->fd, NULL);
		shutdown(c->fd, SHUT_RDWR);
	} else {
		fd_drop(&c->fd);
		g->n--;
	}
}

/* Drop the client. free_gone() frees it later: a pending event may point to it.
 */
static void drop_client(struct connections_client *c)
{
	struct connections *g = c->connections;

	if (c->phase == PHASE_GONE)
		return;
	c->phase = PHASE_GONE;
	end_request(c);
	close_client(c);
	framing_reset(&c->head);
	strbuf_free(&c->out);
	*(c->before ? &c->before->next : &g->clients) = c->next;
	if (c->next)
		c->next->before = c->before;
	c->next = g->gone;
	g->gone = c;
}

static void free_gone(struct connections *g)
{
	struct connections_client *next;

	for (; g->gone; g->gone = next) {
		next = g->gone->next;
		free(g->gone);
	}
}

/* ---- events to wait for ---- */

static bool wants_bytes(const struct connections_client *c)
{
	return c->phase <= PHASE_BODY && c->out.n == 0;
}

/* True if the client waits for its answer, and we have no bytes of it. */
static bool awaits_answer(const struct connections_client *c)
{
	return c->phase == PHASE_WAIT && c->out.n == 0 && !c->goes_on;
}

/* Restart the clock of a piece that waits for the client, or (not `owed`) stop
 * it. */
static void time_answer(struct connections_client *c, bool owed)
{
	int64_t now = now_ms();

	if (c->slow_ms)
		c->owed_ms += now - c->slow_ms;
	c->slow_ms = owed ? now : 0;
}

static void watch_client(struct connections_client *c)
{
	struct epoll_event ev = {.data.ptr = c};

	if (awaits_answer(c))
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

/* ---- refusals ---- */

void connections_answer(struct connections_client *c, struct strbuf *answer)
{
	c->own = NULL;
	end_request(c);
	/* Send the rest of an earlier answer first. */
	strbuf_add(&c->out, strbuf_text(answer), answer->n);
	strbuf_free(answer);
	enter_phase(c, PHASE_LAST);
	watch_client(c);
}

/* Refuse a request. No answer to it may have begun. */
static void refuse_request(
	struct connections_client *c, int status, const char *words)
{
	const struct connections_calls *calls = &c->connections->calls;
	struct strbuf b = {0};

	calls->refuse(calls->arg, c, status, words, &b);
	end_request(c);
	connections_answer(c, &b);
}

/* ---- bytes in ---- */

/* Begin to serve a request whose head is whole. */
static void begin_request(struct connections_client *c)
{
	const struct connections_calls *calls = &c->connections->calls;
	const struct framing *h = &c->head;

	enter_phase(c, PHASE_BODY);
	calls->head(calls->arg, c);
	if (!c->own && c->phase == PHASE_BODY)
		refuse_request(c, 503, "out of memory");
	else if (c->phase == PHASE_BODY && h->values[FRAMING_EXPECT] &&
		 !h->old && h->state != FRAMING_OVER)
		strbuf_puts(&c->out, "HTTP/1.1 100 Continue\r\n\r\n");
}

/* Pass to the caller the parts of a request that have come. */
static void pass_request_on(struct connections_client *c)
{
	const struct connections_calls *calls = &c->connections->calls;
	struct strbuf *body = &c->head.body;

	if (c->phase < PHASE_BODY && framing_is_whole(&c->head))
		begin_request(c);
	if (c->own && body->n > 0)
		calls->data(calls->arg, c, body->s, body->n);
	strbuf_free(body);
	if (c->own && c->head.state == FRAMING_OVER) {
		enter_phase(c, PHASE_WAIT);
		calls->whole(calls->arg, c);
	}
}

static void handle_received(struct connections_client *c)
{
	if (c->phase == PHASE_IDLE) {
		enter_phase(c, PHASE_HEAD);
		c->asked_ns = now_ns();
	}
	pass_request_on(c);
	if (c->phase < PHASE_LAST && c->head.state == FRAMING_WRONG)
		refuse_request(c, c->head.status, c->head.words);
}

static void handle_eof(struct connections_client *c)
{
	if (c->phase == PHASE_IDLE)
		drop_client(c);
	else
		refuse_request(c, 400, "the request ends before its end");
}

static void take_bytes(struct connections_client *c)
{
	static char buf[PIECE];
	bool fds;
	ssize_t n = peek_bytes(c->fd, buf, &fds);

	if (n == 0) {
		handle_eof(c);
	} else if (fds || (n < 0 && errno != EAGAIN)) {
		drop_client(c);
	} else if (n > 0) {
		n = (ssize_t)framing_take(&c->head, buf, (size_t)n);
		c->bytes += n;
		c->known = true;
		recv(c->fd, buf, (size_t)n, MSG_DONTWAIT);
		handle_received(c);
	}
}

/* ---- bytes out ---- */

static void fetch_answer(struct connections_client *c)
{
	const struct connections_calls *calls = &c->connections->calls;

	c->said = calls->more(calls->arg, c, &c->out);
	c->goes_on = c->said == CONNECTIONS_MORE && c->out.n > 0;
	if (c->said == CONNECTIONS_BROKEN || c->out.failed)
		drop_client(c);
}

/* Forget an answered request. Then wait for the next or, after
 * CONNECTIONS_LAST, close. */
static void end_answer(struct connections_client *c)
{
	enum phase phase =
		c->said == CONNECTIONS_LAST ? PHASE_LAST : PHASE_IDLE;

	end_request(c);
	framing_reset(&c->head);
	c->slow_ms = c->owed_ms = c->slow_bytes = 0;
	enter_phase(c, phase);
}

static void send_owed(struct connections_client *c)
{
	ssize_t n = send(c->fd, c->out.s + c->sent, c->out.n - c->sent,
		MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0 && errno != EAGAIN) {
		drop_client(c);
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

/* Read and drop what the client still sends: the kernel resets a connection
 * that is closed with unread bytes, and the client may lose our answer. */
static void linger_client(struct connections_client *c)
{
	static char buf[PIECE];
	ssize_t n;
	bool fds;

	if (c->phase == PHASE_LAST) {
		shutdown(c->fd, SHUT_WR);
		enter_phase(c, PHASE_LINGER);
	}
	n = peek_bytes(c->fd, buf, &fds);
	if (n == 0 || fds || (n < 0 && errno != EAGAIN))
		drop_client(c);
	else if (n > 0)
		recv(c->fd, buf, (size_t)n, MSG_DONTWAIT);
}

/* ---- a turn ---- */

static void serve_client(struct connections_client *c)
{
	if (wants_bytes(c))
		take_bytes(c);
	if (c->phase == PHASE_WAIT && c->goes_on && c->out.n == 0)
		fetch_answer(c);
	if (c->phase != PHASE_GONE && c->out.n > 0)
		send_owed(c);
	if (c->phase == PHASE_WAIT && c->said > CONNECTIONS_MORE &&
		c->out.n == 0)
		end_answer(c);
	if (c->phase == PHASE_LINGER ||
		(c->phase == PHASE_LAST && c->out.n == 0))
		linger_client(c);
	if (c->phase != PHASE_GONE)
		watch_client(c);
}

/* ---- slots ---- */

/* Eviction priority when all slots are taken. 0: never; the client waits for
 * our answer. */
static int eviction_priority(const struct connections_client *c)
{
	if (c->phase <= PHASE_HEAD || c->phase == PHASE_LINGER)
		return 2;
	return c->phase == PHASE_BODY || c->out.n > 0 ||
			       connections_stalled_ms(c) >
				       CONNECTIONS_STALLED_MS
		       ? 1
		       : 0;
}

/* The client to evict: of the highest priority the one that is in its phase for
 * longest. NULL: none. */
static struct connections_client *find_evictable(const struct connections *g)
{
	struct connections_client *best = NULL;

	for (struct connections_client *c = g->clients; c; c = c->next) {
		int more = eviction_priority(c) -
			   (best ? eviction_priority(best) : 0);

		if (more > 0 ||
			(best && more == 0 && c->since_ms <= best->since_ms))
			best = c;
	}
	return best;
}

static void evict_client(struct connections_client *c)
{
	if (c->phase == PHASE_HEAD || c->phase == PHASE_BODY) {
		refuse_request(c, 503, "too many clients");
		send_owed(c);
	}
	drop_client(c);
}

/* Accept clients, or stop. `how` is EPOLL_CTL_ADD at first, then EPOLL_CTL_MOD.
 */
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

/* Accept a client. When all slots are taken, evict another. When none may be
 * evicted, or descriptors run out, accept none until the next sweep. */
static bool accept_one(struct connections *g, int from)
{
	struct connections_client *spare =
		g->n < g->most ? NULL : find_evictable(g);
	int fd;

	if (g->n >= g->most && !spare) {
		watch_listen(g, EPOLL_CTL_MOD, false);
		return false;
	}
	fd = accept4(from, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0 && (errno == EAGAIN || errno == ECONNABORTED))
		return false;
	if (fd < 0) {
		spare = find_evictable(g);
		watch_listen(g, EPOLL_CTL_MOD, false);
	}
	if (spare)
		evict_client(spare);
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
		drop_client(c);
	else if ((c->phase == PHASE_IDLE && took > IDLE_MS) ||
		 (c->phase == PHASE_LINGER && took > LINGER_MS))
		drop_client(c);
	else if (c->phase == PHASE_HEAD && took > FRAMING_MS)
		refuse_request(c, 408, "the head of the request took too long");
	else if (c->phase == PHASE_BODY &&
		 took > PATIENCE_MS + c->bytes / BYTES_A_MS)
		refuse_request(c, 408, "the body of the request took too long");
	else
		return;
	if (c->phase != PHASE_GONE)
		serve_client(c);
}

static void sweep_clients(struct connections *g)
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

/* True if the client is gone. A client that ends its side while it waits for
 * our answer counts as gone: most of these are. */
static bool is_client_gone(const struct connections_client *c, uint32_t events)
{
	return (events & (EPOLLHUP | EPOLLERR)) ||
	       (awaits_answer(c) && (events & EPOLLRDHUP));
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
		else if (is_client_gone(c, ev[i].events))
			drop_client(c);
		else
			serve_client(c);
	}
	sweep_clients(g);
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
	for (int i = 0; i < nfds; i++)
		io_refuse_fds(fds[i]);
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
		drop_client(g->clients);
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

const char *connections_name(const struct connections_client *c)
{
	return c->name;
}

int64_t connections_took_ns(const struct connections_client *c)
{
	return now_ns() - c->asked_ns;
}

bool connections_is_gone(const struct connections_client *c)
{
	return c->phase == PHASE_GONE;
}

bool connections_is_same(struct connections_peer a, struct connections_peer b)
{
	return a.family == b.family && a.key == b.key;
}

bool connections_may_share(struct connections_peer a, struct connections_peer b)
{
	return (a.family != CONNECTIONS_TENANT &&
		       b.family != CONNECTIONS_TENANT) ||
	       connections_is_same(a, b);
}

int64_t connections_stalled_ms(const struct connections_client *c)
{
	return c->slow_ms ? now_ms() - c->slow_ms : 0;
}

void connections_leave(struct connections_client *c)
{
	drop_client(c);
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
	watch_client(c);
}
